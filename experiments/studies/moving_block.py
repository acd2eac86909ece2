"""Where must a learned bound win? On a table where a second block is shaken.

Three rewards on `music_tf/FetchPushConveyor-v0`, the robot beside its own block at first: five
seeds, 96 thousand steps. Bounds on both sides of zero pay nothing for noise on average, whichever
the reward. The frozen network is tried with `mean 5`, too, with which it has lifted. `followed` is
the same world with a second block that goes to and fro. `music_1e3` has a statistics network that
takes steps of 1e-3, not of 1e-4 as the preset has it.
"""

from music_tf.tools.study import CONTROL, Condition, Study, Task

WORLD = """--env.kwargs '{"shakes": true, "near": true}'"""

STUDY = Study(
    question="Does a learned bound tell the block that it can move from the one that moves itself?",
    role="reported",
    tasks=(
        Task(
            env_id="music_tf/FetchPushConveyor-v0", seeds=range(200, 205), epochs=12, level=CONTROL
        ),
    ),
    conditions=(
        Condition(
            name="music",
            label="learned T",
            recipe="ddpg_music",
            arguments=f"{WORLD} --music.clip -4 4",
        ),
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
        Condition(
            name="followed",
            label="learned T, second block to and fro",
            recipe="ddpg_music",
            arguments="""--env.kwargs '{"near": true}' --music.clip -4 4""",
        ),
        Condition(
            name="music_1e3",
            label="learned T at 1e-3",
            recipe="ddpg_music",
            arguments=f"{WORLD} --music.clip -4 4 --music.learning-rate 1e-3",
        ),
    ),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "eval/object_moved_rate": "moved",
        "level/steps": "control: seeds, thousand steps",
    },
    compared_with="music",
)
