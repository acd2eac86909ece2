"""How good is Stable-Baselines3's SAC on two locomotion tasks, compared with `sac_locomotion`?

It has the same layers, batch size, updates per step and random steps; its runs alternated with ours
on one core. The return is that of the last evaluation, of 20 episodes.

Version 2.9.2 with PyTorch 2.15; both had one thread.
"""

from music_tf.tools.study import Condition, Study, Task

SEEDS = range(220, 226)

STUDY = Study(
    question="What does SAC of Stable-Baselines3 return on two locomotion tasks?",
    role="reported",
    tasks=(Task(env_id="HalfCheetah-v5", seeds=SEEDS), Task(env_id="Hopper-v5", seeds=SEEDS)),
    conditions=(
        Condition(name="sb3", label="SAC of Stable-Baselines3", recipe="stable-baselines3 2.9.2"),
    ),
    shown={"eval/return": "return", "spent/steps_a_minute": "steps a minute"},
    by_hand=(
        "`python experiments/compare_baselines.py SAC OUT.csv --env-id Hopper-v5 --seed 220 "
        "--steps 40000 --every 5000 --episodes 20`"
    ),
)
