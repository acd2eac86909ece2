"""What `evaluate` reports of an agent that adapts: each task, by episodes seen of it."""

from typing import Any

import numpy as np

from music_tf.networks.acting import Snapshot
from music_tf.runs.progress import Progress, Row
from music_tf.training.adaptation import PARTS, Adaptation, MetaEvaluation
from music_tf.types import Metrics


def measure_adaptation(
    adaptation: MetaEvaluation, snapshot: Snapshot, visits: int, full: bool = False
) -> tuple[dict[str, Any], dict[str, Metrics]]:
    """Visits each task; returns the report and, by policy, columns of metrics.csv; collective."""
    parts = adaptation.parts
    played = {part: adaptation.play(snapshot, part, visits) for part in parts}
    random = {part: adaptation.play(None, part, visits) for part in parts}
    result: dict[str, Any] = {"visits": visits, "explored": adaptation.explored}
    for part, adapted in played.items():
        tasks = getattr(adaptation.tasks, part)
        by_task = adapted.returns.mean(axis=1)  # [N, E]
        at_random = random[part].returns.mean(axis=1)
        succeeds = (adapted.success >= 0.0).all()
        errors = np.zeros(by_task.shape[1:])
        if len(tasks) > 1:
            errors = by_task.std(axis=0, ddof=1) / np.sqrt(len(tasks))
        success = adapted.success.mean(axis=1) if succeeds else np.zeros([len(tasks), 0])
        rows = [
            {
                "task": task.tolist(),
                "returns": by_task[number].tolist(),
                "success": success[number].tolist(),
                "random": at_random[number].tolist(),
            }
            for number, task in enumerate(tasks)
        ]
        result[part] = {
            "tasks": rows,
            "returns": by_task.mean(axis=0).tolist(),
            "standard_errors": errors.tolist(),
            "success": success.mean(axis=0).tolist(),
            "random": at_random.mean(axis=0).tolist(),
        }
    if full:
        test, train = played["test"], played["train"]
        last = adaptation.episodes
        result["probe_r2"] = {
            str(seen): adaptation.probe(train, test, seen) for seen in (min(2, last), last)
        }
        result["leak"] = _leak(adaptation, snapshot, test)
    shown = parts[0]
    both = len(parts) > 1
    ours = adaptation.metrics(*played.values()) if both else adaptation.by_episode(played[shown])
    return result, {"ours": ours, "random": adaptation.by_episode(random[shown])}


def show_adaptation(
    measured: dict[str, Any], policies: dict[str, Metrics], env_id: str, progress: Progress
) -> None:
    parts = [part for part in PARTS if part in measured]
    for part in parts:
        by = f"{measured['visits']} visits to each {part} task: return by episodes seen"
        progress.table(adaptation_rows(measured, part), f"{env_id}, {by}", "task")
    progress.policies(policies, f"{env_id}, means over {parts[0]} tasks")
    if "probe_r2" in measured:
        probes = ", ".join(f"{r2:.2f} after {n}" for n, r2 in measured["probe_r2"].items())
        progress.banner(
            [
                f"R^2 of a linear probe of the belief: {probes} episodes",
                f"visits to a task beside other tasks differ by {measured['leak']:g}",
            ]
        )


def adaptation_rows(measured: dict[str, Any], part: str) -> dict[str, Row]:
    report = measured[part]

    def row(values: list[float], random: float | None) -> Row:
        episodes = {str(seen): value for seen, value in enumerate(values)}
        return {**episodes, "random": random}

    rows = {
        " ".join(f"{number:.6g}" for number in task["task"]): row(
            task["returns"], task["random"][-1]
        )
        for task in report["tasks"]
    }
    return {
        **rows,
        "mean": row(report["returns"], report["random"][-1]),
        "standard error": row(report["standard_errors"], None),
    }


def _leak(adaptation: MetaEvaluation, snapshot: Snapshot, test: Adaptation) -> float:
    """By how much visits to the first task change if another is visited among them; should be 0."""
    sets, repeats = adaptation.tasks, test.returns.shape[1]
    both = sets._replace(test=np.concatenate([sets.test[:1], sets.train[:1]]))
    rows = np.random.default_rng(0).permutation(2 * repeats)  # of both tasks in each batch
    mixed = adaptation._replace(tasks=both).play_some(snapshot, "test", repeats, rows)
    of_first = np.argsort(rows)[:repeats]
    pairs = zip(mixed, test, strict=True)
    return float(max(np.abs(among[of_first] - alone[0]).max() for among, alone in pairs))
