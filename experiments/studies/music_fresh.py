"""Does the preset hold on seeds of which nothing at all had been seen?

`ddpg_music` as it is, as in `music_holds`. There, what seed 204 of FetchPush did with a faster
statistics network gave the idea of a slower one, and `music_slow` chose its step size on other
seeds. These five of each task were not used for anything before that, nor looked at.
"""

from music_tf.tools.study import CONTROL, LIFTED, Condition, Study, Task

STUDY = Study(
    question="Does ddpg_music control the block on seeds of which nothing had been seen?",
    role="reported",
    tasks=tuple(
        Task(env_id=env_id, seeds=range(210, 215), epochs=20, level=level)
        for env_id, level in (("FetchPush-v4", CONTROL), ("FetchPickAndPlace-v4", LIFTED))
    ),
    conditions=(Condition(name="music", label="learned T, fresh seeds", recipe="ddpg_music"),),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "level/steps": "control: seeds, thousand steps",
        "level/held": "held",
    },
    followed=("eval/object_comotion_m", "reward/music_mean"),
)
