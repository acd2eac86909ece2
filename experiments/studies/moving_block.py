"""Does a learned bound win where it should: on a table with a second, shaken block?

Three rewards on `music_tf/FetchPushConveyor-v0`, with the robot initially beside its own block:
five seeds, 96 thousand steps. Every reward is clipped on both sides of zero, so that noise pays
nothing on average. The untrained network is also tried with `mean 5`, with which it has lifted a
block. `followed` is the same world with a second block that moves to and fro. In `music_1e3` the
learning rate of the statistics network is 1e-3, not the preset's 1e-4.

Co-motion is 0.16 ± 0.13 m at 1e-3: the robot carries its own block on four of five seeds, by 0.12
to 0.27 m. On the fifth, seed 202, it pushes the other, shaken block with its arm and ignores its
own. At 1e-4 co-motion is 0.08 ± 0.08 m (two seeds have 0.13 and 0.17 m). With an untrained network
no seed has more than 0.03 m. Not run: the hand-made reward, the second block to and fro, other
learning rates.
"""

from music_tf.tools.study import CONTROL, Condition, Study, Task

WORLD = """--env.kwargs '{"shakes": true, "near": true}'"""
MUSIC, MOTION = (f"{WORLD} --{term}.clip -4 4" for term in ("music", "joint-motion"))
FOLLOWED = """--env.kwargs '{"near": true}' --music.clip -4 4"""

STUDY = Study(
    question="Does a learned bound tell the block that it can move from the one that moves itself?",
    role="reported",
    tasks=(
        Task(
            env_id="music_tf/FetchPushConveyor-v0", seeds=range(200, 205), epochs=12, level=CONTROL
        ),
    ),
    conditions=Condition.of_rows(
        ("music", "learned T", "ddpg_music", MUSIC),
        ("frozen", "untrained T", "ddpg_music_frozen", MUSIC),
        ("frozen_mean5", "untrained T, `mean 5`", "ddpg_music_frozen", f"{MUSIC} --music.mean 5"),
        ("joint_motion", "hand-made reward, 1 mm", "ddpg_joint_motion", MOTION),
        ("followed", "learned T, second block to and fro", "ddpg_music", FOLLOWED),
        ("music_1e3", "learned T at 1e-3", "ddpg_music", f"{MUSIC} --music.learning-rate 1e-3"),
    ),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "eval/object_moved_rate": "moved",
        "level/steps": "control: seeds, thousand steps",
    },
    compared_with="music",
)
