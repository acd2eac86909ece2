"""How far does METRA drive an ant in an hour of one core?

The authors' settings for states (preset `metra_release`), with networks of 256 x 2 in place of
1024 x 2. A run ends after 6 million steps or an hour. There are fewer than three seeds, for want of
time. Nothing was chosen here.

6 million steps took 56 minutes. The ant visits 1,881 cells of 1 m (random actions 96), the angle
between its displacement and the condition has a cosine of 0.98, and the direction explains 93 % of
the variance of end positions.
"""

from music_tf.tools.study import Condition, Study, Task

WIDTHS = "--agent.hidden-sizes 256 256 --distance.hidden-sizes 256 256"

STUDY = Study(
    question="How far, and in how many directions, does METRA drive an ant?",
    role="reported",
    tasks=(Task(env_id="Ant-v5", seeds=(280,), epochs=75, minutes=60),),
    conditions=(
        Condition(
            name="metra",
            label="METRA",
            recipe="sac_metra",
            arguments=f"--preset metra_release {WIDTHS}",
        ),
    ),
    shown={
        "control/descriptor_cells": "cells of 1 m",
        "control/skill_variance": "variance of ends explained",
        "distance/aligned": "cosine of way and direction",
    },
)
