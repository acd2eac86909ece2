"""How do agents of the package behave whose runs belong to no other study?

This documents the agent and is no result of a method. Seed 101 is one of the seeds on which
settings of `sac_disk` were chosen, and the only one trained for this agent: there are fewer than
three seeds.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="What does the agent `cheetah` do?",
    role="looked at",
    tasks=(Task(env_id="HalfCheetah-v5", seeds=(101,)),),
    conditions=(Condition(name="cheetah", label="agent `cheetah`", recipe="sac_disk"),),
    shown={"eval/return": "return"},
    by_hand="`music-tf train` with the command that the first line of each file has",
)
