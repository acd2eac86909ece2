"""Do skills that are learned one after the other all go somewhere else, on a toy?

`sac_disk` on Square, preset `laptop`: four skills of 4,000 steps, corners at best. A minute a run
on one core. Settings were chosen on seeds 100 to 102.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Do four skills, learned one after the other, end far apart?",
    role="reported",
    tasks=(Task(env_id="music_tf/Square-v0", seeds=range(290, 295), epochs=16),),
    conditions=(Condition(name="disk", label="DISk, four skills", recipe="sac_disk"),),
    shown={
        "skill/hausdorff_mean": "mean Hausdorff distance",
        "skill/hausdorff_min": "least",
    },
)
