"""What each skill of a run does to the object, as data and as a table."""

from collections.abc import Sequence
from typing import Any

from music_tf.measures.behaviour import direction, shifts
from music_tf.rollout import Policy
from music_tf.runs.progress import Row
from music_tf.training.trainer import Trainer
from music_tf.types import Metrics

_COLUMNS = {
    "skill/accuracy_heldout": "accuracy",
    "eval/success_rate": "success",
    "eval/object_moved_rate": "moved",
    "eval/object_displacement_m": "distance m",
    "eval/object_comotion_m": "comotion m",
    "eval/object_on_support_rate": "on support",
    "eval/object_lift_rate": "lifted",
}
"""Metrics of the table with the names of their columns, in their order."""
_AXES = ("dx m", "dy m", "dz m")


def measure_skills(trainer: Trainer, policy: Policy, episodes: int) -> list[dict[str, Any]]:
    """Measures each skill by itself on the same episodes; every rank must call it together.

    Returns:
        Its number, its metrics, and `shift_m`, the mean way [x, y, z] from the object's first to
        its last position (None without an object). Nothing where fewer than two skills act.
    """
    acting = trainer.config.acting_skills
    rows = []
    for skill in acting if len(acting) > 1 else ():
        played = trainer.played(episodes, policy, skill)
        ways = shifts(played.observation, played.length, trainer.envs.info)
        metrics = trainer.behaviour(played) | trainer.heldout(played)
        shift = None if ways is None else [float(way) for way in ways.mean(axis=0)]
        rows.append({"skill": skill, "metrics": metrics, "shift_m": shift})
    return rows


def skill_rows(measured: Sequence[dict[str, Any]], random: Metrics) -> dict[str, Row]:
    """Returns the rows of the table: what `measure_skills` found, and the random policy."""
    rows: dict[str, Row] = {}
    for found in measured:
        row: dict[str, float | str | None] = _named(found["metrics"])
        if found["shift_m"] is not None:
            row |= dict(zip(_AXES, found["shift_m"], strict=True))
            row["mean direction"] = direction(*found["shift_m"][:2])
        rows[f"skill {found['skill']}"] = row
    return rows | {"random": _named(random)}


def _named(metrics: Metrics) -> dict[str, float | str | None]:
    return {column: metrics[name] for name, column in _COLUMNS.items() if name in metrics}
