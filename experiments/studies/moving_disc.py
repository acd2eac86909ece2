"""Does a learned bound win where it should: beside a disc that moves by itself, in another unit?

Three rewards on `music_tf/PointPushCrowd-v0`, with the second disc in thousandths of the unit, two
columns of noise, and the point initially beside its own disc: five seeds, 38 thousand steps. Every
reward is clipped on both sides of zero, so that noise pays nothing on average. The frozen network
is also tried with `mean 5`, with which it has lifted a block. `never_below_zero` has the bounds of
the preset.
"""

from music_tf.tools.study import Condition, Study, Task

WORLD = """--env.kwargs '{"unit": 1000, "near": true}'"""

STUDY = Study(
    question="Does a learned bound tell the disc that it can move from the one that moves itself?",
    role="reported",
    tasks=(Task(env_id="music_tf/PointPushCrowd-v0", seeds=range(200, 205), epochs=8),),
    conditions=(
        Condition(
            name="music",
            label="learned T, bounds below zero",
            recipe="ddpg_music",
            arguments=f"{WORLD} --music.clip -4 4",
        ),
        Condition(name="never_below_zero", label="learned T", recipe="ddpg_music", arguments=WORLD),
        Condition(
            name="frozen",
            label="frozen T",
            recipe="ddpg_music_frozen",
            arguments=f"{WORLD} --music.clip -4 4",
        ),
        Condition(
            name="frozen_mean5",
            label="frozen T, `mean 5`",
            recipe="ddpg_music_frozen",
            arguments=f"{WORLD} --music.clip -4 4 --music.mean 5",
        ),
        Condition(
            name="joint_motion",
            label="hand-made reward, 1 mm",
            recipe="ddpg_joint_motion",
            arguments=f"{WORLD} --joint-motion.clip -4 4",
        ),
    ),
    shown={
        "eval/object_moved_rate": "moved",
        "coverage/moved_and_kept_rate": "moved and kept",
        "eval/object_displacement_m": "displacement",
    },
    compared_with="music",
)
