"""What is the learned bound worth, and what is it worth to know the table?

On the seeds and steps of `music_holds`: an untrained statistics network (ablation), a
hand-made reward for moving together, random numbers with the same mean reward, and MUSIC in
episodes that continue after the block is lost. The study `music_settings` of commit 53c0837 tries
four settings, and one of its own for each reward, on seeds 102 and 103. Its choices are conditions:
`joint_motion5`, which counts steps of at least 5 mm, and `frozen_hold8`. `frozen_mean5` is added
because it lifted the block on seed 102. The choice for the learned bound is now the preset.

Searches on these two seeds had five settings for each reward, six for the learned bound (also study
`music_slow` of commit 53c0837), and found no significant difference. `frozen_mean5` was chosen on
seed 102 of FetchPickAndPlace, where an untrained network lifts; on seed 103 it does not. It
was not tried at other gains. Random reward pays random numbers.

Repeated under noise, final positions of the block spread farther with a learned network than with
an untrained one: by 4 ± 2 cm on FetchPush and 3 ± 2 cm on FetchPickAndPlace. So learning makes the
final position no more repeatable. With the table unknown, seed 202 of FetchPush still shoves the
block off the table in three of four episodes at the end, for the same reward.
"""

from music_tf.tools.study import CONTROL, LIFTED, Condition, Picture, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"
FROZEN, MOTION = "ddpg_music_frozen", "ddpg_joint_motion"

STUDY = Study(
    question="What does ddpg_music do that its controls do not?",
    role="reported",
    tasks=(
        Task(env_id=PUSH, seeds=range(200, 210), epochs=20, level=CONTROL),
        Task(env_id=PICK, seeds=range(200, 205), epochs=20, level=LIFTED),
    ),
    conditions=Condition.of_rows(
        ("frozen", "untrained T", FROZEN, ""),
        ("frozen_mean5", "untrained T, `mean 5`", FROZEN, "--music.mean 5"),
        ("frozen_hold8", "untrained T, `random-hold 8`", FROZEN, "--exploration.random-hold 8"),
        ("joint_motion", "hand-made reward, 1 mm", MOTION, ""),
        ("joint_motion5", "hand-made reward, 5 mm", MOTION, "--joint-motion.threshold 0.005"),
        ("random_reward", "random reward", "ddpg_random_reward", ""),
        ("continue", "learned T, table unknown", "ddpg_music", "--lost-object continue"),
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
