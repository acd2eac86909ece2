"""Where a run started from: the record of it in `config.json`, in words and in numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_tf.config.start import PARTS
from music_tf.config.stored import CONFIG_NAME
from music_tf.errors import UsageError
from music_tf.storage.results import BEFORE, COUNTED, are_numbers
from music_tf.storage.weights import StoredWeights

_LONGEST = 300
_MOST_EPOCHS = 10**9


def record_of(source: Path, stored: StoredWeights, parts: Sequence[str]) -> dict[str, Any]:
    """Returns what `config.json` says about the start of a run.

    Args:
        source: The checkpoints of a run, or a folder of weights.
        stored: What was found there.
        parts: What is taken over.

    Raises:
        UsageError: The checkpoint counts what is no number.
    """
    counters = stored.meta.get("counters")
    counters = counters if isinstance(counters, dict) else {}
    earlier = stored.meta.get(BEFORE, {})
    own = {column: counters[name] for column, name in COUNTED.items() if name in counters}
    fault = UsageError(f"{stored.folder}: expected numbers of steps and seconds in its counters")
    if not are_numbers(own) or not are_numbers(earlier):
        raise fault
    before = {column: value + earlier.get(column, 0.0) for column, value in own.items()}
    if not are_numbers(before):
        raise fault
    epoch, env_id = counters.get("epoch"), stored.meta.get("env_id")
    return {
        "run": str(source.resolve()),
        "checkpoint": stored.folder.name,
        "epoch": epoch if _is_epoch(epoch) else None,
        "env_id": printable(env_id) if isinstance(env_id, str) else None,
        "sha256": stored.sha256,
        "parts": list(parts),
        BEFORE: before,
    }


def taken_before(record: Mapping[str, Any] | None, run: Path) -> dict[str, float]:
    """Returns what the runs had taken that a run started from, by column of `metrics.csv`.

    Args:
        record: `init_from` of `config.json`; one of an older version counts nothing.
        run: Whose it is, for the text of the fault.

    Raises:
        UsageError: It counts what is no number.
    """
    before = (record or {}).get(BEFORE, {})
    if not are_numbers(before):
        raise UsageError(
            f"{run / CONFIG_NAME}: expected numbers by column under 'init_from.{BEFORE}'"
        )
    return dict(before)


def start_line(record: Mapping[str, Any]) -> str:
    """Returns in words where a run started, and with what."""
    run = printable(record.get("run")).removesuffix("/checkpoints")
    epoch = record.get("epoch")
    checkpoint = printable(record.get("checkpoint"))
    where = f"epoch {epoch}" if _is_epoch(epoch) else f"checkpoint {checkpoint}"
    return f"starts from {run}, {where}: {', '.join(parts_of(record))}"


def parts_of(record: Mapping[str, Any] | None) -> list[str]:
    """Returns what a run took over; nothing where it began with random weights."""
    parts = (record or {}).get("parts")
    if not isinstance(parts, list):
        return []
    return [part if part in PARTS else "?" for part in parts[: len(PARTS)]]


def digest_of(record: Mapping[str, Any] | None) -> str:
    """Returns what tells the checkpoint that a run started from; empty where there is none."""
    digest = (record or {}).get("sha256")
    return digest if isinstance(digest, str) else ""


def printable(value: object) -> str:
    """Returns a text from a file without what moves a cursor; a question mark for anything else."""
    text = value if isinstance(value, str) else "?"
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST])


def _is_epoch(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_EPOCHS
