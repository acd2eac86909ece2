"""How does soft actor-critic compare with Stable-Baselines3's on two locomotion tasks?

`sac`, preset `laptop`, which was written before the first of these runs. 40 thousand steps per run,
as for `compare_baselines.py` in `sb3_sac_locomotion`, whose runs alternated with these on one core.
About four minutes per run on it.
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
