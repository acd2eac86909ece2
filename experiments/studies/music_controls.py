"""What is learning the bound worth, and what is it worth to know the table?

Beside `music_holds`, on the same seeds and steps: a statistics network left at its random start, a
reward made by hand for moving together, random numbers of the same mean pay, and MUSIC where an
episode goes on after the block is lost. `music_settings` tries four settings and one of its own for
each reward, on seeds 102 and 103. What it chose for each is a condition here: `joint_motion5`, paid
from 5 mm a step, and `frozen_hold8`. So is `frozen_mean5`, which lifted the block on 102. For the
learned bound it chose what is now the preset.
"""

from music_tf.tools.study import CONTROL, LIFTED, Condition, Picture, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"

STUDY = Study(
    question="What does ddpg_music do that its controls do not?",
    role="reported",
    tasks=(
        Task(env_id=PUSH, seeds=range(200, 210), epochs=20, level=CONTROL),
        Task(env_id=PICK, seeds=range(200, 205), epochs=20, level=LIFTED),
    ),
    conditions=(
        Condition(name="frozen", label="frozen T", recipe="ddpg_music_frozen"),
        Condition(
            name="frozen_mean5",
            label="frozen T, `mean 5`",
            recipe="ddpg_music_frozen",
            arguments="--music.mean 5",
        ),
        Condition(
            name="frozen_hold8",
            label="frozen T, `random-hold 8`",
            recipe="ddpg_music_frozen",
            arguments="--exploration.random-hold 8",
        ),
        Condition(name="joint_motion", label="hand-made reward, 1 mm", recipe="ddpg_joint_motion"),
        Condition(
            name="joint_motion5",
            label="hand-made reward, 5 mm",
            recipe="ddpg_joint_motion",
            arguments="--joint-motion.threshold 0.005",
        ),
        Condition(name="random_reward", label="random reward", recipe="ddpg_random_reward"),
        Condition(
            name="continue",
            label="learned T, table unknown",
            recipe="ddpg_music",
            arguments="--lost-object continue",
        ),
    ),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "eval/object_lift_rate": "lifted",
        "level/steps": "control: seeds, thousand steps",
    },
    beside=("music_holds/music",),
    compared_with="music",
    followed=(
        "eval/object_comotion_m",
        "reward/music_mean",
        "reward/joint_motion_mean",
        "reward/random_reward_mean",
    ),
    pictures=tuple(
        Picture(
            name=f"music_controls_{name}", metrics=("eval/object_comotion_m", more), tasks=(task,)
        )
        for name, task, more in (
            ("push", PUSH, "eval/object_on_support_rate"),
            ("pick", PICK, "eval/object_lift_rate"),
        )
    ),
)
