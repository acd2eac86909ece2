"""Do four skills that begin with control of a block bring it to different places?

`sac_disk_music` on FetchPickAndPlace: 160 thousand steps of MUSIC for the first skill, then four
skills of 40 thousand steps each. `sac_music_diayn` explains 0.88 of the variance of end positions
after the same number of steps. Displacement cells count only episodes in which the block is kept,
so that throwing it does not help.

Runs end after 25 minutes of one core, with three or four skills in all. Nothing was tuned for it:
settings are those of MUSIC and of `sac_disk`, which were chosen on seeds 100 to 119.

The limit ended the runs after 248 to 296 of 320 thousand steps. In all episodes of all skills the
block ends on the table or held. By chance skills explain 0.03 of the variance.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Which share of where a block ends do skills explain that begin with control of it?",
    role="reported",
    tasks=(Task(env_id="FetchPickAndPlace-v4", seeds=range(280, 283), epochs=40, minutes=25),),
    conditions=(Condition(name="disk", label="MUSIC, then DISk", recipe="sac_disk_music"),),
    shown={
        "control/skill_variance": "variance of ends by skill",
        "coverage/displacement_cells": "kept displacement cells",
        "skill/hausdorff_mean": "mean Hausdorff distance (m)",
    },
)
