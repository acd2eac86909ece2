"""What does it cost `ddpg_music` to act with the weights of one cycle before?

`--lag 1` lets actors play while the learner learns. The numbers are the same on any ranks, so a
run of one process shows what it does to learning. About eleven minutes a seed on two cores. The
statistics network takes steps of 1e-3, not of 1e-4 as the preset has it.
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
