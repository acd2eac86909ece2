"""How many steps does `ddpg_her_fast` take in the window that RHER reports?

Three tuning seeds of FetchPush, 120 thousand steps each, before any setting was changed. The window
is the mean of four evaluations of ten episodes each, 2.4 thousand steps apart, with new goals each
time (RHER, arXiv:2208.00843: 2.5 thousand). Beside it: the first epoch whose 40 episodes reach it.
"""

from music_tf.config.key_metrics import SUCCESS
from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="How many steps does ddpg_her_fast take in the window that RHER reports?",
    role="tuning",
    tasks=(Task(env_id="FetchPush-v4", seeds=(100, 101, 102), epochs=15, level={SUCCESS: 0.95}),),
    conditions=(
        Condition(
            name="fast",
            label="`ddpg_her_fast`",
            recipe="ddpg_her_fast",
            arguments="--evaluation.every-cycles 6",
        ),
    ),
    shown={
        SUCCESS: "success",
        "level/steps": "0.95 in an epoch: seeds, thousand steps",
        "level/window": "0.95 in the window: seeds, thousand steps",
    },
)
