"""What do agents that come with the package do, whose runs belong to no other study?

They are evidence of what an agent does, and no results of a method. Seed 101 of the cheetah is one
of those on which settings of `sac_disk` were chosen, and the only one trained for this agent. The
point has diagonal beliefs, which its preset had then. There are fewer than three seeds.
"""

from music_tf.tools.study import Condition, Study, Task

CHEETAH, POINT = "HalfCheetah-v5", "music_tf/PointRobot-v0"

STUDY = Study(
    question="What do the agents `cheetah` and `point` do?",
    role="looked at",
    tasks=(Task(env_id=CHEETAH, seeds=(101,)), Task(env_id=POINT, seeds=(300,))),
    conditions=(
        Condition(name="cheetah", label="agent `cheetah`", recipe="sac_disk", tasks=(CHEETAH,)),
        Condition(name="point", label="agent `point`", recipe="sac_pearl", tasks=(POINT,)),
    ),
    shown={"eval/return": "return"},
    by_hand="`music-tf train` with the command that the first line of each file has",
)
