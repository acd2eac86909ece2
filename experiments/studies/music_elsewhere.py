"""What does the same preset do on tasks that it was not chosen on?

`ddpg_music` on FetchSlide and on panda-gym's PandaPush, three seeds and 160 thousand steps each.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="What does ddpg_music do on FetchSlide and PandaPush?",
    role="reported",
    tasks=tuple(
        Task(env_id=env_id, seeds=range(200, 203), epochs=20)
        for env_id in ("FetchSlide-v4", "panda_gym:PandaPush-v3")
    ),
    conditions=(Condition(name="music", recipe="ddpg_music"),),
)
