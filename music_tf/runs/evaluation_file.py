"""Reads and writes `evaluation.json`, which keeps the longest measurements of a checkpoint."""

import logging
from typing import Any

from music_tf.files import as_object, read_json
from music_tf.hints import fits
from music_tf.runs.loaded_run import LoadedRun
from music_tf.storage.metrics import JUDGED
from music_tf.storage.run_directory import EVALUATION_NAME, write_json
from music_tf.storage.run_paths import agents, comes_with_package

_LARGEST = 1_000_000
_EXTRAS = tuple(f"{name}{suffix}" for name in JUDGED for suffix in ("", "_episodes"))
_LOGGER = logging.getLogger(__name__)


def store_evaluation(
    loaded: LoadedRun, result: dict[str, Any], overwrite: bool
) -> tuple[dict[str, Any], list[str]]:
    """Returns the result with earlier extra measurements, and lines to print."""
    path, earlier = loaded.file(EVALUATION_NAME), earlier_evaluation(loaded)
    result = {name: earlier[name] for name in _EXTRAS if name in earlier} | result
    kept = result if overwrite else _fullest(earlier, result)
    if kept["episodes"] > result["episodes"]:
        _LOGGER.warning(
            "not stored: %s holds more of this checkpoint, %d %s\n"
            "to replace it: --overwrite, in Python overwrite=True",
            *(path, kept["episodes"]),
            "episodes" if loaded.adaptation is None else "visits to each task",
        )
        if kept == earlier:
            return result, []
    write_json(loaded.here / path, kept, path)
    return result, [f"written: {path}"]


def earlier_evaluation(loaded: LoadedRun) -> dict[str, Any]:
    """Returns stored results of this checkpoint in an equal environment; empty without any."""
    try:
        earlier = as_object(read_json(loaded.here / loaded.file(EVALUATION_NAME), _LARGEST))
    except (OSError, ValueError):
        return {}
    names = ("checkpoint", "env_kwargs")  # a stage has a file of its own
    same = all(earlier.get(name) == loaded.identity[name] for name in names)
    return earlier if same else {}


def brake_distance(loaded: LoadedRun) -> float:
    """Returns the distance to a goal below which it is best to do nothing; 0 if not measured."""
    if comes_with_package(loaded.path):
        measured = agents()[loaded.path.resolve().name]["evaluation"]
    else:
        measured = earlier_evaluation(loaded)
    for name in ("zero_shot", "ours"):
        measured = as_object(measured.get(name))
    stop = measured.get("zero_shot/stop")
    return float(stop) if fits(stop, float) and stop > 0.0 else 0.0


def _fullest(earlier: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Returns the evaluation and each of its extras from the one with more episodes of it."""

    def longer(count: str) -> dict[str, Any]:
        counts = [each[count] if type(each.get(count)) is int else 0 for each in (result, earlier)]
        return earlier if counts[1] > counts[0] else result

    extras = {name: longer(f"{name.removesuffix('_episodes')}_episodes") for name in _EXTRAS}
    return longer("episodes") | {n: source[n] for n, source in extras.items() if n in source}
