"""Does seed 214 of FetchPickAndPlace lift the block when it is trained on to 240 thousand steps?

There are fewer than three seeds: it is the only one of 15 that did not lift within 160 thousand.
"""

from music_tf.tools.study import LIFTED, Condition, Study, Task

STUDY = Study(
    question="Does the seed that does not lift do so with more steps?",
    role="reported",
    tasks=(Task(env_id="FetchPickAndPlace-v4", seeds=(214,), level=LIFTED),),
    conditions=(Condition(name="music", label="learned T, longer", recipe="ddpg_music"),),
    shown={"eval/object_lift_rate": "lifted"},
    followed=("eval/object_lift_rate", "reward/music_mean"),
    by_hand="`music-tf train --run-dir RUN --resume --epochs 30` after its run of `music_fresh`",
)
