"""Where must a learned bound win? Beside a disc that goes round by itself, in another unit.

Three rewards on `music_tf/PointPushCrowd-v0`, the second disc in thousandths of the unit, two
columns of noise beside it, the point beside its own disc at first: five seeds, 38 thousand steps.
Bounds on both sides of zero pay nothing for noise on average, whichever the reward. The frozen
network is tried with `mean 5`, too, with which it has lifted. `never_below_zero` is the preset's
pay.
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
