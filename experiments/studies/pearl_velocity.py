"""Does a cheetah run at new speeds after an episode of each?

`sac_pearl` on HalfCheetah with speeds from 0 to 3 m/s, preset `laptop`: 20 tasks to train on and 10
others, drawn for each seed. A return over 200 steps is about -300 for standing still, and about
-150 for the best speed without knowledge of the task. Settings were chosen on seed 100, after runs
of at most 12 thousand updates, at whose end most cheetahs still fell on their backs; discount 0.97
lies between the two that were tried. At most 40 minutes per run on one core.

1.9 million steps in 32 to 37 minutes. The aim was -130 after two episodes, which each seed meets.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a cheetah adapt to a speed from a few episodes?",
    role="reported",
    tasks=(
        Task(
            env_id="music_tf/HalfCheetahVelocity-v0", seeds=range(300, 303), epochs=60, minutes=40
        ),
    ),
    conditions=(Condition(name="pearl", label="PEARL", recipe="sac_pearl"),),
    shown={
        "adapt/return_prior": "prior",
        "adapt/return_1": "after 1 episode",
        "adapt/return_last": "after 2",
    },
)
