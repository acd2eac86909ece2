"""How soon does a user's own arm push its disc, with the command lines that `check-env` prints?

The arm of docs/your_robot.md is in `tests/kit/arm.py`, so run this in a checkout. Plain Box: the
MUSIC line of `check-env`. With goals: `ddpg_her` without further options. Seeds 313 to 315 were not
looked at before. About two and four minutes per run on one core.

A link is 0.5 long. MUSIC moves the disc within 2.9 minutes, hindsight reaches 0.8 within 4.2, on
one of two busy cores. `music-tf tune` had ten minutes of the same cores (trials of 2 epochs, two
processes, one killed and started again; commit cb17274). Five trials ended; on three other seeds
the best has 0.40 of co-motion and the preset 0.41, so `tune` printed the preset.
"""

from music_tf.tools.study import Condition, Study, Task

ARM, WITH_GOALS = "tests.kit.arm:Arm-v0", "tests.kit.arm:ArmWithGoals-v0"
_WORLD = "--world.agent 4 5 --world.surrounding 6 7 --world.object 6 7 --world.gripper 4 5"

STUDY = Study(
    question="Do the commands of check-env train a robot of your own?",
    role="reported",
    tasks=(
        Task(env_id=ARM, seeds=range(313, 316), epochs=8, level={"eval/object_comotion_m": 0.2}),
        Task(env_id=WITH_GOALS, seeds=range(313, 316), epochs=20, level={"eval/success_rate": 0.8}),
    ),
    conditions=(
        Condition(name="music", label="MUSIC", recipe="ddpg_music", arguments=_WORLD, tasks=(ARM,)),
        Condition(name="her", label="hindsight", recipe="ddpg_her", tasks=(WITH_GOALS,)),
    ),
    shown={
        "eval/object_comotion_m": "co-motion",
        "eval/success_rate": "success",
        "level/minutes": "0.2 of co-motion or 0.8 of success: minutes from the launch",
    },
)
