"""What `evaluate` says of an agent that adapts: each task, by how many episodes it has seen."""

from typing import Any

import numpy as np

from music_tf.networks.acting import Snapshot
from music_tf.runs.progress import Progress, Row
from music_tf.training.adaptation import Adaptation, MetaEvaluation

_PARTS = ("test", "train")
_DIGITS = 3


def measure_adaptation(
    adaptation: MetaEvaluation, snapshot: Snapshot, visits: int, full: bool = False
) -> dict[str, Any]:
    """Visits every task so many times; every rank must call it together.

    Returns:
        By `test` and `train`: of each task its vector, and the mean return and success of each
        episode of a visit; their means over tasks, and standard errors over tasks. Beside them
        what random actions return, and with `full` the R^2 of a linear probe after two and after
        all episodes, and what a visit alone differs by from the same visit beside others: 0.
    """
    played = {part: adaptation.play(snapshot, part, visits) for part in _PARTS}
    result: dict[str, Any] = {"visits": visits, "explored": adaptation.config.tasks.explore}
    for part, found in played.items():
        random = adaptation.play(None, part, visits).returns.mean(axis=(1, 2))
        tasks = getattr(adaptation.tasks, part)
        rows = [
            {
                "task": task.tolist(),
                "returns": _list(found.returns[number].mean(axis=0)),
                "success": _list(found.success[number].mean(axis=0)),
                "random": float(random[number]),
            }
            for number, task in enumerate(tasks)
        ]
        by_task = found.returns.mean(axis=1)  # [N, E]
        result[part] = {
            "tasks": rows,
            "returns": _list(by_task.mean(axis=0)),
            "standard_errors": _list(_standard_error(by_task)),
            "success": _list(found.success.mean(axis=(0, 1))),
            "random": float(random.mean()),
        }
    if full:
        test, train = (played[part] for part in _PARTS)
        last = adaptation.episodes
        result["probe_r2"] = {
            str(seen): adaptation.probe(train, test, seen) for seen in (min(2, last), last)
        }
        result["leak"] = _leak(adaptation, snapshot, test)
    return result


def policies_of(measured: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Returns the return of three policies in evaluation tasks, as other runs list them."""
    test = measured["test"]
    named = {"ours": test["returns"][-1], "prior": test["returns"][0], "random": test["random"]}
    return {name: {"eval/return": float(value)} for name, value in named.items()}


def show_adaptation(measured: dict[str, Any], env_id: str, progress: Progress) -> None:
    """Shows a table of evaluation tasks and one of training tasks, and what a probe found."""
    for part in _PARTS:
        by = f"{measured['visits']} visits to each {part} task: return by episodes seen"
        progress.table(adaptation_rows(measured, part), f"{env_id}, {by}", "task")
    if "probe_r2" in measured:
        probes = ", ".join(f"{r2:.2f} after {n}" for n, r2 in measured["probe_r2"].items())
        progress.banner(
            [
                f"R^2 of a linear probe of the belief: {probes} episodes",
                f"a visit alone and beside others differ by {measured['leak']:g}",
            ]
        )


def adaptation_rows(measured: dict[str, Any], part: str) -> dict[str, Row]:
    """Returns the rows of a table: a task each, then their mean with its standard error."""
    found = measured[part]

    def row(values: list[float], random: float | None) -> Row:
        episodes = {str(seen): value for seen, value in enumerate(values)}
        return {**episodes, "random": random}

    rows = {
        " ".join(f"{number:.{_DIGITS}g}" for number in one["task"]): row(
            one["returns"], one["random"]
        )
        for one in found["tasks"]
    }
    return {
        **rows,
        "mean": row(found["returns"], found["random"]),
        "standard error": row(found["standard_errors"], None),
    }


def _leak(adaptation: MetaEvaluation, snapshot: Snapshot, test: Adaptation) -> float:
    """Returns how much visits to the first task differ where no other task is visited."""
    sets = adaptation.tasks
    alone = adaptation._replace(tasks=sets._replace(test=sets.test[:1]))
    found = alone.play(snapshot, "test", test.returns.shape[1])
    return float(np.abs(found.returns[0] - test.returns[0]).max())


def _standard_error(values: np.ndarray) -> np.ndarray:
    """Returns the standard error of the mean over the first axis; 0 for one row."""
    count = len(values)
    if count < 2:  # noqa: PLR2004
        return np.zeros(values.shape[1:])
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(count))


def _list(values: np.ndarray) -> list[float]:
    return [float(value) for value in values]
