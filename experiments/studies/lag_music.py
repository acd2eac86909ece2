"""What does `ddpg_music` lose by acting with weights that are one cycle old?

`--lag 1` lets actors play while the learner learns. The numbers are the same on any ranks, so a run
of one process shows the effect on learning. About eleven minutes per seed on two cores. The
learning rate of the statistics network is 1e-3, not the preset's 1e-4.
"""

from music_tf.tools.study import CONTROL, Condition, Study, Task

STUDY = Study(
    question="Does lag 1 cost ddpg_music steps or control?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(260, 265), epochs=20, level=CONTROL),),
    conditions=tuple(
        Condition(
            name=f"lag_{lag}",
            label=f"`ddpg_music`, lag {lag}",
            recipe="ddpg_music",
            arguments=f"--lag {lag} --music.learning-rate 1e-3",
        )
        for lag in (0, 1)
    ),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "eval/success_rate": "success",
        "level/steps": "level: seeds, thousand steps",
    },
    compared_with="lag_0",
)
