"""Tables of a page about runs: how policies and skills behave, and whether that is control."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from music_tf.measures.behaviour import direction
from music_tf.storage.metrics import CONTROL, METRICS
from music_tf.tools.page import Html, bars, folded, is_number, join, number, table, tag
from music_tf.tools.recorded import BEHAVIOUR, OURS, WAYS, Recorded

_MEANINGS = {**METRICS, **WAYS}
_OF_CHANCE = ("_chance", "_null", "_null_std", "_p")
"""Endings of the measures of control that say what chance gives for another one."""


def all_behaviour(runs: Sequence[Recorded]) -> Html:
    """Returns the newest metrics of each run by its label, then those of simple policies."""
    labels = [run.label for run in runs]
    ours: dict[str, Mapping[str, Any]] = {}
    simple: dict[str, Mapping[str, Any]] = {}
    for label, run in zip(labels, runs, strict=True):
        unique = label if labels.count(label) == 1 else f"{label} ({run.path})"
        ours[unique] = run.behaviour()
        for policy, metrics in run.measured().policies.items():
            if policy != OURS:
                name = f"{policy} on {run.stored.config.env_id}"
                simple[name] = {**metrics, **simple.get(name, {})}  # goals add success to some
    return bars(BEHAVIOUR, ours | simple, "policy")


def behaviour(run: Recorded) -> Html:
    """Returns our policy beside simple ones, and when it was measured."""
    measured = run.measured()
    if not measured.policies:
        return Html("")
    ended = f"Measured at the end of training, after {_when(run, measured.epoch)}"
    source = _source(run) if measured == run.evaluated() else ended
    return join(
        tag("h3", "Behaviour"),
        tag("p", f"{source} All policies play the same episodes.", class_="quiet"),
        bars(_named(measured.policies), measured.policies, "policy"),
    )


def skills(run: Recorded) -> Html:
    """Returns what each skill does to the object, and the random policy beside them."""
    rows = run.skills()
    if not rows:
        return Html("")
    legend = "Arrows: the mean way of the object from above, x to the right and y up, over 5 cm."
    return join(
        tag("h3", "Skills"),
        tag("p", f"{_source(run)} Each skill plays all of them. {legend}", class_="quiet"),
        bars(
            _named(rows),
            {f"{name} {_arrow(row)}".rstrip(): row for name, row in rows.items()},
            "skill",
        ),
    )


def control(run: Recorded) -> Html:
    """Returns the measures of `evaluate --full`, with what chance gives where that is known."""
    policies = run.control()
    rows = [
        [
            tag("th", short(name), scope="row"),
            *(_beside_chance(measures, name) for measures in policies.values()),
            meaning,
        ]
        for name, meaning in CONTROL.items()
        if not name.endswith(_OF_CHANCE)
        and any(is_number(measures.get(name)) for measures in policies.values())
    ]
    if not rows:
        return Html("")
    return join(
        tag("h3", "Control"),
        tag("p", _source(run, "control_episodes"), class_="quiet"),
        table(["measure", *policies, "meaning"], rows, "texts"),
    )


def glossary(runs: Iterable[Recorded]) -> Html:
    """Returns what the columns of the tables mean, for those who cannot point at them."""
    rows = [row for run in runs for row in (run.measured().policies, run.skills())]
    present = {name for row in rows for metrics in row.values() for name in metrics}
    terms = [
        part
        for name, meaning in _MEANINGS.items()
        if name in present
        for part in (tag("dt", short(name)), tag("dd", meaning))
    ]
    return folded("What the columns mean", tag("dl", *terms)) if terms else Html("")


def short(metric: str) -> str:
    """Returns a metric's name as the title of a column."""
    return metric.rpartition("/")[2].replace("_", " ")


def _source(run: Recorded, count: str = "episodes") -> str:
    """Returns in words what `evaluation.json` is about; `count` is where it has the episodes."""
    episodes = number(run.evaluation.get(count, run.evaluation.get("episodes")))
    return f"{episodes} episodes with the checkpoint of {_when(run, run.evaluated().epoch)}"


def _when(run: Recorded, epoch: float) -> str:
    """Returns the end of a sentence: an epoch, and whether others have followed."""
    if epoch < 0:
        return "an unknown epoch."
    since = f" Training has gone on since, to epoch {run.epochs}." if epoch < run.epochs else ""
    return f"epoch {number(epoch)}.{since}"


def _named(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Returns all metrics of a table with their meaning, documented ones first."""
    present = {name for row in rows.values() for name in row}
    known = {name: meaning for name, meaning in _MEANINGS.items() if name in present}
    return known | {name: "" for name in sorted(present - set(known))}


def _arrow(row: Mapping[str, Any]) -> str:
    """Returns the direction of a skill's mean way, empty where it has none over 5 cm."""
    x, y, _ = (row.get(name) for name in WAYS)
    return direction(x, y).replace("-", "") if is_number(x) and is_number(y) else ""


def _beside_chance(measures: Mapping[str, Any], name: str) -> str:
    value, chance = number(measures.get(name)), measures.get(f"{name}_chance")
    null, deviation, p = (measures.get(f"{name}_{end}") for end in ("null", "null_std", "p"))
    if is_number(null):
        return f"{value} (chance {number(null)} ± {number(deviation)}, p = {number(p)})"
    return f"{value} (chance {number(chance)})" if is_number(chance) else value
