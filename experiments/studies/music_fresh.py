"""Does the preset hold on seeds that had not been looked at in any way?

The unchanged `ddpg_music`, as in `music_holds`. There, seed 204 of FetchPush with a faster
statistics network suggested a slower one, whose learning rate was chosen on other seeds (study
`music_slow` of commit 53c0837).
These five seeds of each task had neither been used nor looked at before.

Seed 214 of FetchPickAndPlace pushes the block and does not lift it within 160 thousand steps. Why
is not known: the gain of its reward rose to 837, where the other 14 seeds of both studies have 69
to 179. With the ten seeds of `music_holds`, co-motion is 0.52 ± 0.04 m on FetchPush and 1.85 ± 0.22
m on FetchPickAndPlace.
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
        "level/held": "control afterwards",
    },
    followed=("eval/object_comotion_m", "reward/music_mean"),
)
