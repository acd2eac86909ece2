"""How much do four skills of robots differ, learned one by one or at once?

HalfCheetah, Ant, Hopper and Swimmer in episodes of 200 steps. `sac_disk`, preset `laptop`, learns
four skills of 40,000 steps each. Baselines are `sac_diayn` with the same numbers of skills, steps
and updates, and random actions. Episodes of Ant and Hopper do not end when they fall. These are a
tenth of the paper's steps or fewer.

20 minutes per run on one core at most. There are fewer than three seeds of Hopper and Swimmer, for
want of time. Settings of `sac_disk` were chosen on seeds 100 to 102 of HalfCheetah, with 10,000
steps per skill; those of `sac_diayn` follow from them.

Four skills of HalfCheetah lie 20, 28 and 35 m apart on three seeds, with DIAYN 6, 5 and 8. The
paper reports mean distances of 80 (HalfCheetah), 137 (Ant), 6.3 (Hopper) and 6.4 (Swimmer) with
more skills, and 124, about 0, 3.1 and 3.0 for DIAYN. Its budgets were not tried.
"""

from music_tf.tools.study import Condition, Study, Task

CHEETAH, ANT, HOPPER = "HalfCheetah-v5", "music_tf/Ant-v0", "Hopper-v5"
SWIMMER = "Swimmer-v5"
_DISK = "--incremental.epochs 20"
_DIAYN = """
--skills 4 --cycles 40 --agent.hidden-sizes 128 128 --agent.actor-learning-rate 1e-3
--agent.critic-learning-rate 1e-3 --agent.temperature-learning-rate 1e-3
--skill.hidden-sizes 128 128 --skill.learning-rate 1e-3 --replay.batch-size 128
--collect.random-steps 2000 --collect.updates-per-step 0.5 --env.max-episode-steps 200
"""
_FALLS = """--env.kwargs '{"terminate_when_unhealthy": false}'"""


def _beside(name: str, tasks: tuple[str, ...], where: str, more: str = "") -> list[Condition]:
    """Returns both recipes on some robots, which are measured by where they are."""
    ends = f"{name}_" if name else ""
    both = (("disk", "DISk", _DISK), ("diayn", "DIAYN", f"{_DIAYN} --world.descriptor {where}"))
    return [
        Condition(
            name=f"{ends}{recipe}",
            label=label,
            recipe=f"sac_{recipe}",
            arguments=f"{arguments} {more}",
            tasks=tasks,
        )
        for recipe, label, arguments in both
    ]


STUDY = Study(
    question="How far do four skills of robots part, one after the other or at once?",
    role="reported",
    tasks=(
        Task(env_id=CHEETAH, seeds=range(290, 293), epochs=80, minutes=20),
        Task(env_id=ANT, seeds=range(290, 293), epochs=80, minutes=20),
        Task(env_id=HOPPER, seeds=(290,), epochs=80, minutes=20),
        Task(env_id=SWIMMER, seeds=(290,), epochs=80, minutes=20),
    ),
    conditions=(
        *_beside("", (CHEETAH, SWIMMER), "plane"),
        *_beside("ant", (ANT,), "xy", _FALLS),
        *_beside("hopper", (HOPPER,), "plane", _FALLS),
    ),
    shown={
        "skill/hausdorff_mean": "mean Hausdorff distance (m)",
        "skill/hausdorff_min": "least (m)",
        "skill/spread": "spread within a skill (m)",
    },
)
