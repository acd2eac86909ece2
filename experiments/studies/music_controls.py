"""What is learning the bound worth, and what is it worth to know the table?

Beside `music_holds`, on the same seeds and steps: a statistics network left at its random start, a
reward made by hand for moving together, random numbers of the same mean pay, and MUSIC where an
episode goes on after the block is lost. `music_settings` tries four settings and one of its own for
each reward, on seeds 102 and 103. What it chose for each is a condition here: `joint_motion5`, paid
from 5 mm a step, and `frozen_hold8`. So is `frozen_mean5`, which lifted the block on 102. For the
learned bound it chose what is now the preset; `continue_1e3` is the preset before that.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="What does ddpg_music do that its controls do not?",
    role="reported",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(200, 210), epochs=20),
        Task(env_id="FetchPickAndPlace-v4", seeds=range(200, 205), epochs=20),
    ),
    conditions=(
        Condition(name="frozen", recipe="ddpg_music_frozen"),
        Condition(name="frozen_mean5", recipe="ddpg_music_frozen", arguments="--music.mean 5"),
        Condition(
            name="frozen_hold8",
            recipe="ddpg_music_frozen",
            arguments="--exploration.random-hold 8",
        ),
        Condition(name="joint_motion", recipe="ddpg_joint_motion"),
        Condition(
            name="joint_motion5",
            recipe="ddpg_joint_motion",
            arguments="--joint-motion.threshold 0.005",
        ),
        Condition(name="random_reward", recipe="ddpg_random_reward"),
        Condition(name="continue", recipe="ddpg_music", arguments="--lost-object continue"),
        Condition(
            name="continue_1e3",
            recipe="ddpg_music",
            arguments="--lost-object continue --music.learning-rate 1e-3",
        ),
    ),
)
