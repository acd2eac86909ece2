"""What is soft actor-critic worth on two locomotion tasks, beside Stable-Baselines3's?

`sac`, preset `laptop`, which was written down before the first of these runs. 40 thousand steps a
run, as those of `compare_baselines.py` in `sb3_sac_locomotion`, which took turns with them on one
core. About four minutes a run on it.
"""

from music_tf.tools.study import Condition, Study, Task

SEEDS = range(220, 226)

STUDY = Study(
    question="What is the return of sac after 40 thousand steps?",
    role="reported",
    tasks=(
        Task(env_id="HalfCheetah-v5", seeds=SEEDS, epochs=8),
        Task(env_id="Hopper-v5", seeds=SEEDS, epochs=8),
    ),
    conditions=(Condition(name="sac", label="`sac`", recipe="sac"),),
    shown={"eval/return": "return", "spent/steps_a_minute": "steps a minute"},
    beside=("sb3_sac_locomotion/sb3",),
)
