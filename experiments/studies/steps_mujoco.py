"""How many steps does `ddpg_rher` take on MuJoCo 3.17, whose physics differ from the lock's 3.10?

Five seeds of FetchPush that `steps` trains on MuJoCo 3.10, for 48 thousand steps, in the
environment of `make newest`:

    make newest
    .venv/newest/bin/music-tf study experiments/studies/steps_mujoco.py

Seed 351 alone is stored. The others had 36.0, 38.4, 28.8 and 33.6 thousand in the window: 350 was
trained for 80 thousand, and the checkout of 352 to 354 had another number of epochs in this file.
So the median of five is 36.0, on MuJoCo 3.10 that of the same seeds 38.4.
"""

from music_tf.config.key_metrics import SUCCESS
from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="How many steps does ddpg_rher take on MuJoCo 3.17?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(350, 355), epochs=12, level={SUCCESS: 0.95}),),
    conditions=(
        Condition(
            name="rher",
            label="`ddpg_rher`, MuJoCo 3.17",
            recipe="ddpg_rher",
            arguments="--evaluation.every-cycles 24",
        ),
    ),
    shown={
        SUCCESS: "success",
        "level/steps": "0.95 in an epoch: seeds, thousand steps",
        "level/window": "0.95 in the window: seeds, thousand steps",
    },
)
