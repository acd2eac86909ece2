"""Does one preset of MUSIC control the block on ten seeds that nothing was chosen on?

`ddpg_music` as it is, 160 thousand steps: ten seeds on FetchPush and FetchPickAndPlace, three on
FetchSlide and panda-gym's PandaPush, on which nothing was chosen. The budget was fixed beforehand;
settings were chosen on seeds 100 to 107. `rate_1e3` is the preset as it was before `music_slow`
gave the statistics network a tenth of its step size; `music_fresh` has seeds not seen until then.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does ddpg_music control the block on seeds that nobody tuned on?",
    role="reported",
    tasks=tuple(
        Task(env_id=env_id, seeds=range(200, 200 + seeds), epochs=20)
        for env_id, seeds in (
            ("FetchPush-v4", 10),
            ("FetchPickAndPlace-v4", 10),
            ("FetchSlide-v4", 3),
            ("panda_gym:PandaPush-v3", 3),
        )
    ),
    conditions=(
        Condition(name="music", recipe="ddpg_music"),
        Condition(name="rate_1e3", recipe="ddpg_music", arguments="--music.learning-rate 1e-3"),
    ),
)
