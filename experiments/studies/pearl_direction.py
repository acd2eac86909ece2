"""Does a cheetah run both ways after an episode, as fast as one that learns a single way?

`sac_pearl` on HalfCheetah forward and back, preset `laptop`; both tasks are trained on. The
baseline is soft actor-critic on each task alone, for 100 thousand steps; PEARL takes 960 thousand
of both together. Settings were chosen on the speeds of `pearl_velocity.py`. At most 40 minutes per
run on one core. There are fewer than three seeds, for want of time.

1.0 million steps in 29 to 33 minutes. The aim was 1,000 as the mean of both directions after two
episodes, which each seed meets.
"""

from music_tf.tools.study import Condition, Study, Task

CHEETAH = "music_tf/HalfCheetahDirection-v0"

STUDY = Study(
    question="Does a cheetah find from one episode which way it shall run?",
    role="reported",
    tasks=(Task(env_id=CHEETAH, seeds=(300, 301), epochs=60, minutes=40),),
    conditions=(
        Condition(name="pearl", label="PEARL, after 2 episodes", recipe="sac_pearl"),
        Condition(
            name="forward",
            label="SAC, forward alone",
            recipe="sac",
            arguments="""--env.kwargs '{"sign": 1}'""",
            epochs={CHEETAH: 20},
        ),
        Condition(
            name="back",
            label="SAC, back alone",
            recipe="sac",
            arguments="""--env.kwargs '{"sign": -1}'""",
            epochs={CHEETAH: 20},
        ),
    ),
    shown={
        "adapt/return_prior": "prior",
        "adapt/return_1": "after 1 episode",
        "eval/return": "after 2; SAC: return",
    },
)
