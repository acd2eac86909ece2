"""Does one preset of MUSIC control the block on ten seeds that nothing was chosen on?

`ddpg_music` as it is on FetchPush and FetchPickAndPlace, 160 thousand steps. The budget was fixed
beforehand; settings were chosen on seeds 100 to 105.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does ddpg_music control the block on seeds that nobody tuned on?",
    role="reported",
    tasks=tuple(
        Task(env_id=env_id, seeds=range(200, 210), epochs=20)
        for env_id in ("FetchPush-v4", "FetchPickAndPlace-v4")
    ),
    conditions=(Condition(name="music", recipe="ddpg_music"),),
)
