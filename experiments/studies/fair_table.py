"""How do methods compare that learn to move an object without a task?

FetchPush and FetchPickAndPlace, 160 thousand steps of each method, three seeds. Methods after MUSIC
start from the run of `music` on the same seed, whose 160 thousand steps count as well; the agent of
`disk` learns MUSIC as its first skill. On FetchPickAndPlace that is `disk_fetch`, which was stopped
at 25 minutes. Methods of the distance family see the position of the block alone; the density of
CSD also models that of the gripper. Their ablations, the position itself and an untrained
network, have about the reward per metre of METRA at its end on FetchPush. The embedding of METRA
after MUSIC on FetchPickAndPlace never learned on seed 280, since conditions were followed to 0.43
and no further: that row is skills along a rotated position. In their first 8 thousand steps nothing
is learned. A goal is reached by a direction in the embedding, or by the skill that
ends nearest; a method with a single behaviour cannot reach goals.

No setting was chosen for this table: each method has the preset of its commit. Those of MUSIC were
chosen on seeds 100 to 107 of both tasks, those of METRA on seeds 100 to 104 and of CSD on seeds 100
and 102 of FetchPush, the noise of CAI's model on 100 and 101 (after a run of `influence` with seed
280), those of LSD on none. CSD with the 4 million steps of its authors is not compared. About 10
minutes per run and 3 for its evaluation on one core, 17 hours in all.

What the single seeds say, on FetchPush unless stated. METRA with a linear embedding that rests
until the policy follows conditions needs no MUSIC. Relabelling adds nothing to METRA after MUSIC.
An embedding that never learns reaches 0.28 of goals, at 0.6 to 0.9 of METRA's final reward per
metre; the place itself has 1.2 to 1.3 of it. On FetchPickAndPlace METRA from random weights never
lifts the block and loses it in three episodes of four; its two embeddings that learned have 1.8 and
1.9 units per metre of height, 12 to 34 along the table. LSD keeps the block in 0.54 of episodes,
METRA in 0.37, MUSIC in 0.98. Joint motion, MUSIC and CAI have co-motions of 0.24, 0.34 and 0.11 m.
"""

from music_tf.tools.study import Condition, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"
ZERO_SHOT, ACTOR = "--zero-shot", "actor,normalizer"
DIRECTIONS = "--condition.kind sphere --distance.speed inf --agent.discount 0.98"
"""Presets at the commits of these runs, which do not know `distance.speed`; now velocities."""
AT_HALF = f"{DIRECTIONS} --distance.rest-until 0.5"
RANDOM = "--init-from none"
"""Else the preset starts from an actor of MUSIC; earlier commits do not know this option."""


def alone(
    name: str, label: str, recipe: str, arguments: str = "", measured: str = ZERO_SHOT
) -> Condition:
    """Returns a method that starts from random weights."""
    return Condition(name=name, label=label, recipe=recipe, arguments=arguments, measured=measured)


def after_music(
    name: str, label: str, recipe: str, arguments: str = "", parts: str = ACTOR
) -> Condition:
    """Returns a method that starts from the actor of MUSIC, or from other parts of its run."""
    return Condition(
        name=name,
        label=f"MUSIC, then {label}",
        recipe=recipe,
        arguments=arguments,
        start_from="music",
        parts=parts,
        measured=ZERO_SHOT,
    )


STUDY = Study(
    question="What do ways of learning to move an object without a task give?",
    role="reported",
    tasks=tuple(Task(env_id=task, seeds=range(280, 283), epochs=20) for task in (PUSH, PICK)),
    conditions=(
        alone("joint_motion", "joint motion", "ddpg_joint_motion", measured=""),
        alone("music", "MUSIC", "sac_music", measured=""),
        alone("cai", "CAI", "ddpg_cai", measured=""),
        alone("diayn", "DIAYN", "sac_diayn"),
        after_music("music_diayn", "DIAYN", "sac_music_diayn", parts=""),
        Condition(
            name="disk",
            label="MUSIC, then DISk",
            recipe="sac_disk_music",
            tasks=(PUSH,),
            epochs={PUSH: 40},
            measured=ZERO_SHOT,
        ),
        alone("lsd", "LSD", "sac_lsd", RANDOM),
        alone("csd", "CSD", "sac_csd", RANDOM),
        alone("metra", "METRA", "sac_metra", f"{RANDOM} {AT_HALF}"),
        after_music("music_metra", "METRA", "sac_metra", AT_HALF),
        after_music(
            "music_plain",
            "METRA without relabelling",
            "sac_metra",
            f"--condition.relabel 0 {AT_HALF}",
        ),
        after_music(
            "music_frozen",
            "an embedding that never learns",
            "sac_metra",
            f"{DIRECTIONS} --distance.train False --distance.scale 125 --distance.rest-until -1 "
            "--distance.hidden-sizes 64 64 --distance.initializer glorot",
        ),
        after_music("music_place", "the place itself, directions", "sac_place", DIRECTIONS),
    ),
    shown={
        "coverage/displacement_cells": "cells of kept ways",
        "control/skill_variance": "variance of ends explained",
        "zero_shot/end_with_brake": "goals reached, with a brake",
    },
    overview={
        "eval/object_comotion_m": "co-motion (m)",
        "coverage/kept_rate": "kept",
        "coverage/displacement_cells": "cells of kept ways",
        "control/skill_variance": "variance of ends explained",
        "zero_shot/ever": "goals reached at any step",
        "zero_shot/end": "at the end",
        "zero_shot/end_with_brake": "with a brake",
        "spent/thousand_steps": "thousand steps, MUSIC's included",
        "spent/minutes": "minutes, MUSIC's included",
    },
    beside=("disk_fetch/disk",),
)
