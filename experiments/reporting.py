"""The forms of the tables that show stored results."""

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from cells import SUCCESS, TITLES, difference, each_seed, markdown, minutes, number

from music_tf.errors import UsageError
from music_tf.storage.results import FINAL, Numbers, StoredResult, group_and_seed, read_result
from music_tf.storage.run_directory import folder_name

MOVES = {"eval/object_moved_rate": 0.8}
CONTROL = {"eval/object_on_support_rate": 0.8, "eval/object_comotion_m": 0.2}
LEVELS = (0.5, 0.9)
POLICIES = {"random": "random policy"}
_BEHAVIOUR = tuple(name for name in TITLES if name.startswith("eval/object_"))
_STEADY = 5
_ENVIRONMENT = re.compile(r"_(?:music_tf_|(?=Fetch))(\w+)-v\d+$")
"""The end of the name of a condition on a toy or a Fetch task."""


def control_table(folders: Mapping[str, str], results: Path) -> str:
    """Returns when seeds of unsupervised runs came to control, and their last 100 episodes.

    Args:
        folders: Labels of their rows, with `{seed}` in them. What else there is beside a run, such
            as a random policy, comes from the first run of the first folder.
        results: Where the folders lie.
    """
    header = ["", "moves it (80 %)", "control", "held", "minutes in all"]
    rows = []
    first: StoredResult | None = None
    for folder, label in folders.items():
        for seed, result in seeds_of(results / folder):
            first = first or result
            minutes = result.columns["time/elapsed_s"] / 60.0
            moves, _ = first_time(result.columns, MOVES)
            control, held = first_time(result.columns, CONTROL)
            cores = f", {place_of(result)}" if place_of(result) != place_of(first) else ""
            rows.append(
                [
                    label.format(seed=seed) + cores,
                    "never" if moves is None else f"{minutes[moves]:.1f} min",
                    "never" if control is None else f"{minutes[control]:.1f} min",
                    "" if held is None else f"{held:.0%}",
                    f"{minutes[-1]:.1f}",
                    *_final(result, "ours"),
                ]
            )
    others = [name for name in (first.details.get(FINAL, {}) if first else {}) if name != "ours"]
    for policy in others:
        rows.append([POLICIES.get(policy, policy), "", "", "", "", *_final(first, policy)])
    return markdown([*header, *(TITLES[name] for name in _BEHAVIOUR)], rows)


def task_table(folders: Mapping[str, float], results: Path) -> str:
    """Returns when each seed first reached a level of success, and how it ended.

    Args:
        folders: The level of each.
        results: Where the folders lie.
    """
    header = ["task", "seed", "on", "level", "first reached after", "best"]
    header += ["mean of the last five", "100 episodes at the end", "minutes in all"]
    rows = []
    for folder, level in folders.items():
        for seed, result in seeds_of(results / folder):
            success = evaluated(result, SUCCESS)
            minutes = result.in_all("time/elapsed_s") / 60.0
            rows.append(
                [
                    environment_of(result).rpartition("-v")[0],
                    str(seed),
                    place_of(result),
                    f"{level:g}",
                    reached(result, level),
                    number(success.max()) if success.size else "",
                    number(success[-_STEADY:].mean()) if success.size else "",
                    number(final_of(result).get(SUCCESS)),
                    f"{minutes[-1]:.1f}",
                ]
            )
    return markdown(header, rows)


def steps_table(files: Mapping[str, str], steps: Sequence[int], results: Path) -> str:
    """Returns the success of single runs after numbers of environment steps.

    Args:
        files: The label of each, by its path without `.csv`.
        steps: At which an evaluation ended; blank where a run had none.
        results: Where the files lie.
    """
    rows = []
    for name, label in files.items():
        result = read_result(results / f"{name}.csv")
        found = [_after(result, SUCCESS, count) for count in steps]
        rows.append([label, seed_of(result), *map(number, found)])
    return markdown(["run", "seed", *_thousands(steps, TITLES[SUCCESS])], rows)


def progress_table(name: str, steps: Sequence[int], results: Path, metric: str = SUCCESS) -> str:
    """Returns a metric of each condition of a study after numbers of steps: mean, every seed.

    Conditions that have no such metric are left out.

    Args:
        name: The study.
        steps: At which an evaluation ended, those of the run that it started from included; blank
            where a run had none.
        results: Where the study's folder lies.
        metric: A column of `metrics.csv`.
    """
    rows = []
    for group, runs in conditions_of(results / name).items():
        if not any(_has(run, metric) for run in runs):
            continue
        cells = [each_seed([_after(run, metric, count) for run in runs]) for count in steps]
        rows.append([condition_label(group), str(len(runs)), *cells])
    return markdown(["", "seeds", *_thousands(steps, TITLES.get(metric, metric))], rows)


def study_table(name: str, results: Path) -> str:
    """Returns the last 100 episodes of each condition of a study: the mean, and every seed.

    Where there is a task, also when the conditions reached `LEVELS` of success; what the runs
    took that they started from is counted.
    """
    groups = conditions_of(results / name)
    finals, shown = _finals(groups)
    has_task = SUCCESS in shown
    header = ["condition", "seeds", "thousand steps in all", "minutes in all"]
    header += [f"success {level:g} after" for level in LEVELS if has_task]
    rows = []
    for group, runs in groups.items():
        steps = [run.in_all("time/env_steps")[-1] / 1e3 for run in runs]
        taken = [run.in_all("time/elapsed_s")[-1] / 60.0 for run in runs]
        levels = [_each(reached(run, level) for run in runs) for level in LEVELS if has_task]
        metrics = [each_seed([final.get(metric) for final in finals[group]]) for metric in shown]
        rows.append(
            [
                condition_label(group),
                str(len(runs)),
                f"{statistics.fmean(steps):.0f}",
                each_seed(taken, minutes),
                *levels,
                *metrics,
            ]
        )
    blank = [""] * (len(header) - 1)
    for label, final in _other_policies(groups).items():
        rows.append([label, *blank, *(number(final.get(metric)) for metric in shown)])
    return markdown([*header, *(TITLES[metric] for metric in shown)], rows)


def difference_table(name: str, base: str, results: Path) -> str:
    """Returns how far the last episodes of a study's conditions lie from those of one of them.

    Args:
        name: The study.
        base: The condition that the others are compared with.
        results: Where the study's folder lies.
    """
    groups = conditions_of(results / name)
    finals, shown = _finals(groups)
    return differences(groups, finals, base, {metric: TITLES[metric] for metric in shown})


def differences(
    groups: Mapping[str, Sequence[StoredResult]],
    measured: Mapping[str, Sequence[Mapping[str, float]]],
    base: str,
    columns: Mapping[str, str],
) -> str:
    """Returns how far conditions of a study lie from one of them, on the same environment.

    Each cell is a difference of means over seeds and the half width of its 95 % interval (Student's
    t with one variance for both); where the second is larger, the difference is not resolved. Blank
    where one of the seeds has no such measure.

    Args:
        groups: The runs of each condition.
        measured: Their measures.
        base: The condition that the others are compared with.
        columns: Titles by measure.
    """
    rows = []
    for group, ours in measured.items():
        theirs = measured.get(f"{base}_{folder_name(environment_of(groups[group][0]))}", ours)
        if theirs is not ours:
            cells = [
                difference([one.get(metric) for one in ours], [one.get(metric) for one in theirs])
                for metric in columns
            ]
            rows.append([f"{condition_label(group)}, minus `{base}`", *cells])
    return markdown(["", *columns.values()], rows)


def conditions_of(folder: Path) -> dict[str, list[StoredResult]]:
    """Returns the results of a study by condition and environment, each by seed.

    Raises:
        UsageError: There are none.
    """
    files = sorted(folder.glob("*_seed*.csv"), key=_by_group_and_seed)
    if not files:
        raise UsageError(f"{folder}: holds no stored result")
    groups: dict[str, list[StoredResult]] = {}
    for path in files:
        groups.setdefault(group_and_seed(path)[0], []).append(read_result(path))
    return groups


def seeds_of(folder: Path) -> list[tuple[int | None, StoredResult]]:
    """Returns the results of a folder of `seedN.csv`, by seed.

    Raises:
        UsageError: There are none.
    """
    files = sorted(folder.glob("seed*.csv"), key=_by_group_and_seed)
    if not files:
        raise UsageError(f"{folder}: holds no stored result")
    return [(group_and_seed(path)[1], read_result(path)) for path in files]


def environment_of(result: StoredResult) -> str:
    """Returns the environment that a command names."""
    found = re.search(r"--env-id (\S+)", result.command)
    return found.group(1) if found else ""


def seed_of(result: StoredResult) -> str:
    """Returns the seed that a command names."""
    found = re.search(r"--seed (\d+)", result.command)
    return found.group(1) if found else "0"


def place_of(result: StoredResult) -> str:
    """Returns on how much of a machine a command ran."""
    found = re.search(r"launch -n (\d+)", result.command)
    return "one core" if found is None else {"2": "two ranks"}.get(found[1], f"{found[1]} ranks")


def final_of(result: StoredResult, policy: str = "ours") -> Mapping[str, float]:
    """Returns the last 100 episodes of a policy; empty where there were none."""
    found: Mapping[str, float] = result.details.get(FINAL, {}).get(policy, {})
    return found


def evaluated(result: StoredResult, metric: str) -> Numbers:
    """Returns the values of a metric, epochs without an evaluation left out."""
    values = result.columns.get(metric, np.array([]))
    return values[np.isfinite(values)]


def first_time(
    columns: Mapping[str, Numbers], conditions: Mapping[str, float]
) -> tuple[int | None, float | None]:
    """Returns the row where the conditions were first met, and how often they were after.

    An epoch where one of the metrics is blank was not evaluated and counts neither way.

    Args:
        columns: Metrics by name, a value an epoch.
        conditions: The least value of each metric.

    Returns:
        The row, None if they never were, and the share of later evaluations that meet them, None
        where there is none.
    """
    blank = np.full(len(columns["time/elapsed_s"]), np.nan)
    values = np.array([columns.get(name, blank) for name in conditions])  # [conditions, epochs]
    limits = np.array(list(conditions.values()))[:, None]
    rows = np.flatnonzero(np.all(np.isfinite(values), axis=0))
    met = np.all(values[:, rows] >= limits, axis=0)
    if not met.any():
        return None, None
    first = int(np.argmax(met))
    later = met[first + 1 :]
    return int(rows[first]), float(later.mean()) if later.size else None


def reached(result: StoredResult, level: float) -> str:
    """Returns after what a run first came to a level of success; blank where it had no task."""
    if not _has(result, SUCCESS):
        return ""
    row, _ = first_time(result.columns, {SUCCESS: level})
    if row is None:
        return "never"
    taken = result.in_all("time/elapsed_s")[row] / 60.0
    return f"{minutes(taken)} min, {result.in_all('time/env_steps')[row] / 1e3:.0f} k steps"


def _each(texts: Iterable[str]) -> str:
    """Returns one text where all seeds have the same, else all of them."""
    found = list(texts)
    return found[0] if len(set(found)) == 1 else "; ".join(found)


def _has(result: StoredResult, metric: str) -> bool:
    return metric in result.columns and bool(np.isfinite(result.columns[metric]).any())


def _after(result: StoredResult, metric: str, steps: int) -> float | None:
    at = np.flatnonzero(result.in_all("time/env_steps") == steps)
    return float(result.columns[metric][at[0]]) if at.size and _has(result, metric) else None


def _thousands(steps: Sequence[int], title: str) -> list[str]:
    """Returns the titles of columns of a metric after numbers of steps."""
    after, *others = [f"{count // 1000}" for count in steps]
    return [f"{title} after {after}", *others[:-1], f"{others[-1]} thousand steps"]


def _finals(
    groups: Mapping[str, Sequence[StoredResult]],
) -> tuple[dict[str, list[Mapping[str, float]]], list[str]]:
    """Returns the last 100 episodes of each run, and the metrics that any of them has."""
    finals = {group: [final_of(run) for run in runs] for group, runs in groups.items()}
    present = {metric for runs in finals.values() for final in runs for metric in final}
    return finals, [metric for metric in TITLES if metric in present]


def _other_policies(
    groups: Mapping[str, Sequence[StoredResult]],
) -> dict[str, Mapping[str, float]]:
    """Returns the episodes of policies such as a random one, by policy and environment."""
    found: dict[str, Mapping[str, float]] = {}
    for first, *_ in groups.values():
        task = environment_of(first).removesuffix("-v4")
        for policy, final in first.details.get(FINAL, {}).items():
            if policy != "ours":
                found.setdefault(f"{POLICIES.get(policy, policy)} on {task}", final)
    return found


def condition_label(group: str) -> str:
    """Returns the words for a condition on an environment."""
    return _ENVIRONMENT.sub(r" on \1", group)


def _by_group_and_seed(path: Path) -> tuple[str, int]:
    group, seed = group_and_seed(path)
    return group, seed or 0


def _final(result: StoredResult | None, policy: str) -> list[str]:
    found = final_of(result, policy) if result else {}
    return [number(found.get(name)) for name in _BEHAVIOUR]
