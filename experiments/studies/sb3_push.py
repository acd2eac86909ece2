"""What do DDPG and SAC of Stable-Baselines3 with HER learn of FetchPush in half an hour?

They have our layers, batch size and hindsight, else their defaults, with one update per step. The
two ran at the same time. There are fewer than three seeds, for want of time.

Version 2.9.2. DDPG makes 64 and SAC 44 thousand steps in 30 minutes, and both are at chance.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="How soon do DDPG and SAC of Stable-Baselines3 learn FetchPush?",
    role="looked at",
    tasks=(Task(env_id="FetchPush-v4", seeds=(0,), level={"eval/success_rate": 0.95}),),
    conditions=(
        Condition(name="ddpg", label="DDPG and HER of SB3", recipe="stable-baselines3 2.9.2"),
        Condition(name="sac", label="SAC and HER of SB3", recipe="stable-baselines3 2.9.2"),
    ),
    shown={
        "eval/success_rate": "success",
        "level/steps": "0.95: seeds, thousand steps",
        "spent/minutes": "minutes in all",
    },
    by_hand="`python experiments/compare_baselines.py DDPG OUT.csv --minutes 30`",
)
