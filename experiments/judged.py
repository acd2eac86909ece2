"""Tables of what `evaluate --full` measures at the end of each run of a study."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cells import TITLES, each_seed, markdown, number
from reporting import (
    condition_label,
    conditions_of,
    differences,
    environment_of,
    evaluated,
    final_of,
    seed_of,
)

from music_tf.measures.behaviour import direction
from music_tf.storage.results import StoredResult

CONTROL = {
    "control/coverage": "coverage",
    "control/rollout_coverage": "in training",
    "control/contact_rate": "contact",
    "control/steps_to_contact": "steps to contact",
    "control/end_spread_m": "spread of ends (m)",
    "control/information": "I(dx; dy) (nats)",
    "control/information_null": "by chance",
}
ACCURACY = "skill/accuracy_heldout"
RECOGNISED = "recognised"
_MOVED = "eval/object_moved_rate"
TOLD_APART = {
    ACCURACY: RECOGNISED,
    _MOVED: "object moved",
    "control/skill_variance": "variance of ends by skill",
    "control/skill_variance_chance": "by chance",
}
_BEHAVIOUR = (
    _MOVED,
    "eval/object_on_support_rate",
    "eval/object_comotion_m",
    "eval/object_lift_rate",
)


def judged_table(name: str, columns: Mapping[str, str], results: Path) -> str:
    """Returns measures of control by condition of a study: the mean, and every seed.

    Args:
        name: The study.
        columns: Titles by measure.
        results: Where the study's folder lies.
    """
    groups = conditions_of(results / name)
    rows = [[condition_label(name), *_cells(runs, columns)] for name, runs in groups.items()]
    first = {environment_of(runs[0]): runs[:1] for runs in reversed(groups.values())}
    for env_id, runs in sorted(first.items()):
        cells = _cells(runs, columns, policy="random")
        rows.append([f"random policy on {env_id.removesuffix('-v4')}", *cells])
    return markdown(["", *columns.values()], rows)


def judged_differences(name: str, base: str, columns: Mapping[str, str], results: Path) -> str:
    """Returns how far measures of a study's conditions lie from those of `base`.

    Args:
        name: The study.
        base: The condition that the others are compared with.
        columns: Titles by measure.
        results: Where the study's folder lies.
    """
    groups = conditions_of(results / name)
    measured = {group: [_measures(run) for run in runs] for group, runs in groups.items()}
    return differences(groups, measured, base, columns)


def recognition_table(name: str, results: Path) -> str:
    """Returns how well skills are told apart at the end of each condition: the mean, every seed."""
    rows = []
    for group, runs in conditions_of(results / name).items():
        found = [_measures(run) for run in runs]
        cells = [each_seed([one.get(metric) for one in found]) for metric in TOLD_APART]
        rows.append([condition_label(group), *cells])
    return markdown(["", *TOLD_APART.values()], rows)


def skills_table(name: str, results: Path) -> str:
    """Returns what each skill of each run of a study does, and how often it is recognised."""
    rows = []
    for group, runs in conditions_of(results / name).items():
        for run in runs:
            for found in run.details.get("skills", []):
                way = found["shift_m"]
                metrics = (ACCURACY, *_BEHAVIOUR)
                behaviour = [number(found["metrics"].get(metric)) for metric in metrics]
                rows.append(
                    [
                        condition_label(group),
                        seed_of(run),
                        str(found["skill"]),
                        *behaviour,
                        ", ".join(f"{part:+.2f}" for part in way) if way else "",
                        direction(*way[:2]) if way else "",
                    ]
                )
    titles = [RECOGNISED, *(TITLES[metric] for metric in _BEHAVIOUR)]
    return markdown(["", "seed", "skill", *titles, "mean way (m)", "from above"], rows)


def _measures(run: StoredResult) -> Mapping[str, float]:
    """Returns what was found at the end of a run: control, the last 100 episodes, recognition."""
    shares = evaluated(run, ACCURACY)
    last = {ACCURACY: float(shares[-1])} if shares.size else {}
    return {**_control(run), **final_of(run), **last}


def _cells(
    runs: Sequence[StoredResult], columns: Mapping[str, str], policy: str = "ours"
) -> list[str]:
    found = [_control(run, policy) for run in runs]
    return [each_seed([one.get(metric) for one in found]) for metric in columns]


def _control(run: StoredResult, policy: str = "ours") -> Mapping[str, float]:
    """Returns the measures of control of a policy at the end of a run."""
    found: Mapping[str, float] = run.details.get("control", {}).get(policy, {})
    return found
