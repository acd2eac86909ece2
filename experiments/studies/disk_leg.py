"""What does an ant forget when a leg breaks, or when half of a ring of blocks opens?

Four skills of 40,000 steps each, two before the change and two after it. `sac_disk` freezes earlier
skills; `sac_diayn`, with the same numbers of skills, steps and updates, goes on training all of
them. Every skill is played in both worlds, at the change and at the end. Episodes have 200 steps
and do not end when the ant falls.

20 minutes per run on one core at most; fewer than three seeds, for want of time. Settings of
`sac_disk` were chosen on seeds 100 to 102 of HalfCheetah; those of `sac_diayn` follow from them.

Skills of DISk forget nothing; those of DIAYN move by 0.6 m in the old world. Among blocks skills of
DISk part by 7.9 m, but episodes of a skill scatter by 6.2.
"""

import json

from music_tf.tools.study import Condition, Study, Task

LEG, BLOCKS = "music_tf/Ant-v0", "music_tf/AntBlocks-v0"
_DISK = "--incremental.epochs 20"
_DIAYN = """
--skills 4 --cycles 40 --agent.hidden-sizes 128 128 --agent.actor-learning-rate 1e-3
--agent.critic-learning-rate 1e-3 --agent.temperature-learning-rate 1e-3
--skill.hidden-sizes 128 128 --skill.learning-rate 1e-3 --replay.batch-size 128
--collect.random-steps 2000 --collect.updates-per-step 0.5
"""
_BOTH = "--world.descriptor xy --env.max-episode-steps 200"
_FALLS = """--env.kwargs '{"terminate_when_unhealthy": false}'"""
_CHANGES = {LEG: {"gear": {"hip_4": 0, "ankle_4": 0}}, BLOCKS: {"set": {"opened": 2}}}


def _before_and_after(name: str, task: str, more: str = "") -> list[Condition]:
    """Returns both recipes on a task whose world changes half way."""
    both = (
        ("disk", "DISk", _DISK, {"skill": 2}),
        ("diayn", "DIAYN, trained on", _DIAYN, {"steps": 80_000}),
    )
    return [
        Condition(
            name=f"{recipe}_{name}",
            label=label,
            recipe=f"sac_{recipe}",
            arguments=f"{size} {_BOTH} {more} "
            f"--env.changes '{json.dumps([{}, {'at': at, **_CHANGES[task]}])}'",
            tasks=(task,),
        )
        for recipe, label, size, at in both
    ]


STUDY = Study(
    question="What becomes of the skills of an ant when a leg breaks, or when blocks open?",
    role="reported",
    tasks=tuple(Task(env_id=task, seeds=(290,), epochs=80, minutes=20) for task in (LEG, BLOCKS)),
    conditions=(*_before_and_after("leg", LEG, _FALLS), *_before_and_after("blocks", BLOCKS)),
    shown={
        "skill/hausdorff_mean": "mean Hausdorff distance (m)",
        "skill/spread": "spread within a skill (m)",
        "worlds/moved": "moved in the old world (m)",
    },
)
