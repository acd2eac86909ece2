"""What does `ddpg_her_fast` lose by acting with weights that are one cycle old?

As `lag_music`, with the task's own reward: 112 thousand steps, about thirty minutes per seed on two
cores.

Of 41 differences that are measured over both recipes one is larger than its interval: the block of
`ddpg_music` ends 6 ± 4 cm farther away with lag 1. Among so many, one is expected by chance. Other
tasks and larger lags were not tried.
"""

from music_tf.tools.study import Condition, Study, Task

SUCCESS = "eval/success_rate"

STUDY = Study(
    question="Does lag 1 cost ddpg_her_fast steps or success?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(260, 265), epochs=14, level={SUCCESS: 0.95}),),
    conditions=tuple(
        Condition(
            name=f"lag_{lag}",
            label=f"`ddpg_her_fast`, lag {lag}",
            recipe="ddpg_her_fast",
            arguments=f"--lag {lag}",
        )
        for lag in (0, 1)
    ),
    shown={SUCCESS: "success", "level/steps": "level: seeds, thousand steps"},
    compared_with="lag_0",
)
