"""Where must a learned bound win? On a table where a second block is shaken.

Three rewards on `music_tf/FetchPushConveyor-v0`, the robot beside its own block at first: five
seeds, 96 thousand steps. Bounds on both sides of zero pay nothing for noise on average, whichever
the reward. The frozen network is tried with `mean 5`, too, with which it has lifted. `followed` is
the same world with a second block that goes to and fro. `music_1e3` has the step size of the preset
before `music_slow`.
"""

from music_tf.tools.study import Condition, Study, Task

WORLD = """--env.kwargs '{"shakes": true, "near": true}'"""

STUDY = Study(
    question="Does a learned bound tell the block that it can move from the one that moves itself?",
    role="reported",
    tasks=(Task(env_id="music_tf/FetchPushConveyor-v0", seeds=range(200, 205), epochs=12),),
    conditions=(
        Condition(name="music", recipe="ddpg_music", arguments=f"{WORLD} --music.clip -4 4"),
        Condition(
            name="frozen", recipe="ddpg_music_frozen", arguments=f"{WORLD} --music.clip -4 4"
        ),
        Condition(
            name="frozen_mean5",
            recipe="ddpg_music_frozen",
            arguments=f"{WORLD} --music.clip -4 4 --music.mean 5",
        ),
        Condition(
            name="joint_motion",
            recipe="ddpg_joint_motion",
            arguments=f"{WORLD} --joint-motion.clip -4 4",
        ),
        Condition(
            name="followed",
            recipe="ddpg_music",
            arguments="""--env.kwargs '{"near": true}' --music.clip -4 4""",
        ),
        Condition(
            name="music_1e3",
            recipe="ddpg_music",
            arguments=f"{WORLD} --music.clip -4 4 --music.learning-rate 1e-3",
        ),
    ),
)
