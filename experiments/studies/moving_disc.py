"""Does a learned bound win where it should: beside a disc that moves by itself, in another unit?

Three rewards on `music_tf/PointPushCrowd-v0`, with the second disc in thousandths of the unit, two
columns of noise, and the point initially beside its own disc: five seeds, 38 thousand steps. Every
reward is clipped on both sides of zero, so that noise pays nothing on average. The untrained
network is also tried with `mean 5`, with which it has lifted a block. `never_below_zero` has
the bounds of the preset.
"""

from music_tf.tools.study import Condition, Study, Task

WORLD = """--env.kwargs '{"unit": 1000, "near": true}'"""
MUSIC, MOTION = (f"{WORLD} --{term}.clip -4 4" for term in ("music", "joint-motion"))

STUDY = Study(
    question="Does a learned bound tell the disc that it can move from the one that moves itself?",
    role="reported",
    tasks=(Task(env_id="music_tf/PointPushCrowd-v0", seeds=range(200, 205), epochs=8),),
    conditions=Condition.of_rows(
        ("music", "learned T, bounds below zero", "ddpg_music", MUSIC),
        ("never_below_zero", "learned T", "ddpg_music", WORLD),
        ("frozen", "untrained T", "ddpg_music_frozen", MUSIC),
        ("frozen_mean5", "untrained T, `mean 5`", "ddpg_music_frozen", f"{MUSIC} --music.mean 5"),
        ("joint_motion", "hand-made reward, 1 mm", "ddpg_joint_motion", MOTION),
    ),
    shown={
        "eval/object_moved_rate": "moved",
        "coverage/moved_and_kept_rate": "moved and kept",
        "eval/object_displacement_m": "displacement",
    },
    compared_with="music",
)
