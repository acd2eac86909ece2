"""What is the effect of `--workers` on learning, for equal numbers of steps?

A worker adds episodes to each cycle and rows to each update, but no update. So W workers take 192
thousand steps of FetchPush in 96 / W epochs, with fewer and larger updates. A run takes 16 to 42
minutes on one core.
"""

from music_tf.tools.study import CONTROL, Condition, Study, Task

PUSH = "FetchPush-v4"
WORKERS = (4, 8, 16, 32)
STEPS_OF_A_WORKER = 2_000
"""In an epoch: 20 cycles of two episodes of 50 steps."""

STUDY = Study(
    question="What does the number of workers do to learning at equal steps?",
    role="reported",
    tasks=(Task(env_id=PUSH, seeds=range(310, 313), level=CONTROL),),
    conditions=tuple(
        Condition(
            name=f"workers_{workers}",
            label=f"{workers} workers",
            recipe="ddpg_music",
            arguments=f"--workers {workers}",
            epochs={PUSH: 192_000 // (STEPS_OF_A_WORKER * workers)},
        )
        for workers in WORKERS
    ),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "eval/information": "I(dx; dy)",
        "level/steps": "control: seeds, thousand steps",
    },
)
