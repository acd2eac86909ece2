"""Do skills that are learned one by one end in different places, on a toy?

`sac_disk` on Square, preset `laptop`: four skills of 4,000 steps each, at best one per corner. The
baseline `sac_diayn` has the same numbers of skills, steps and updates, the same networks and
learning rates. A minute per run on one core. Settings of `sac_disk` were chosen on seeds 100 to
102; those of `sac_diayn` follow from them. Seeds 350 to 359 were added after a check
on 11 other seeds, whose runs are not stored, had found pairs 8.19 and 10.65 apart on two of them.

The nearest two of four skills lie at least 12.6 apart on 15 of 15 seeds; about 14 is possible.
"""

from music_tf.tools.study import Condition, Study, Task

_DIAYN = """
--skills 4 --agent.hidden-sizes 64 64 --agent.actor-learning-rate 1e-3
--agent.critic-learning-rate 1e-3 --agent.temperature-learning-rate 1e-3
--skill.hidden-sizes 64 64 --skill.learning-rate 1e-3 --replay.batch-size 128
--collect.random-steps 0 --collect.updates-per-step 0.5
"""

SEEDS = (*range(290, 295), *range(350, 360))

STUDY = Study(
    question="Do four skills, learned one after the other, end far apart?",
    role="reported",
    tasks=(Task(env_id="music_tf/Square-v0", seeds=SEEDS, epochs=16),),
    conditions=(
        Condition(name="disk", label="DISk, four skills", recipe="sac_disk"),
        Condition(name="diayn", label="DIAYN, four skills", recipe="sac_diayn", arguments=_DIAYN),
    ),
    shown={
        "skill/hausdorff_mean": "mean Hausdorff distance",
        "skill/hausdorff_min": "least",
        "skill/spread": "spread within a skill",
    },
)
