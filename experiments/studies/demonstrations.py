"""How many steps do demonstrations save on FetchPickAndPlace?

Three seeds of `steps`, 104 thousand steps each, with 10 or 50 episodes of `pick`, which lifts the
block in all of them and was trained by MUSIC, without goals: they are drawn only with goals that
they reached later. No setting was tuned. The files are written first:

    music-tf evaluate pick --episodes 10 --out runs/shown10.npz
    music-tf evaluate pick --episodes 50 --out runs/shown50.npz
"""

from music_tf.config.key_metrics import SUCCESS
from music_tf.tools.study import Condition, Study, Task

PICK = "FetchPickAndPlace-v4"

STUDY = Study(
    question="How many steps do demonstrations save on FetchPickAndPlace?",
    role="reported",
    tasks=(Task(env_id=PICK, seeds=(330, 331, 332), epochs=13, level={SUCCESS: 0.95}),),
    conditions=tuple(
        Condition(
            name=f"fast_{episodes}",
            label=f"`ddpg_her_fast`, {episodes} demonstrations",
            recipe="ddpg_her_fast",
            arguments=f"--evaluation.every-cycles 6 --demonstrations runs/shown{episodes}.npz",
        )
        for episodes in (50, 10)
    ),
    shown={
        SUCCESS: "success",
        "level/steps": "0.95 in an epoch: seeds, thousand steps",
        "level/window": "0.95 in the window: seeds, thousand steps",
    },
    beside=("steps/fast",),
)
