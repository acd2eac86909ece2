"""Runs as they are plotted: what is read of each, and what those that share a line agree in."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from music_tf.config.fields import fields_of, show_value
from music_tf.config.stored import MAY_CHANGE_ON_RESUME, StoredRun, read_run, stored_env_id
from music_tf.errors import UsageError
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import BEFORE, NoEpochError, Numbers, group_and_seed, read_result
from music_tf.storage.start import digest_of, parts_of, taken_before

Read = TypeVar("Read")

PRESET = "preset"
_TAKES_OVER = "takes over"


class Run(NamedTuple):
    """What is drawn of a run."""

    name: str
    """Its own label."""
    group: str
    """Runs of one group differ in their seed only and share a line."""
    columns: Mapping[str, Numbers]
    """Metrics by name, a value an epoch; nan where there is none."""
    settings: Mapping[str, str] = MappingProxyType({})
    """What `settings_of` returns; of a copy that knows its metrics alone, its folder's name."""
    folder: str = ""
    """Where it lies, which tells it from others of its name."""
    seed: int | None = None
    """None where it is not known."""
    source: str = ""
    """Digest of the checkpoint that it started from; empty where it began with random weights."""

    @property
    def epochs(self) -> int:
        """How many it has."""
        return max((values.size for values in self.columns.values()), default=0)


def load(path: Path) -> Run:
    """Reads a run directory, also of a run still going, or a copy of its `metrics.csv`.

    Steps and minutes count the runs that it started from.

    Raises:
        NoEpochError: It holds no epoch yet.
        UsageError: It is neither.
    """
    if not os.path.isdir(path):
        result = read_result(path)
        study = {"of": path.resolve().parent.name}
        group, seed = group_and_seed(path)
        return Run(path.stem, group, result.counted_in_all(), study, str(path.parent), seed)
    stored = read_run(path, stored_env_id(path))  # a module that it names is not imported here
    if not (path / CSV_NAME).exists():
        raise NoEpochError(f"{path}: holds no epoch of a run yet")
    columns = columns_of(path, taken_before(stored.init_from, path))
    return as_run(path, f"{kind_of(stored)}, {path.name}", stored, columns)


def columns_of(path: Path, before: Mapping[str, float]) -> dict[str, Numbers]:
    """Returns the metrics of a run directory; steps and minutes begin with what was taken before.

    Raises:
        NoEpochError: It holds no epoch yet.
        UsageError: Its `metrics.csv` is damaged.
    """
    result = read_result(path / CSV_NAME)
    return result._replace(details={BEFORE: before}).counted_in_all()


def as_run(path: Path, name: str, stored: StoredRun, columns: Mapping[str, Numbers]) -> Run:
    """Returns what is drawn of a run directory.

    Args:
        path: The run directory.
        name: Its own label.
        stored: Its `config.json`.
        columns: What `columns_of` returned; none before its first epoch.
    """
    return Run(
        name,
        kind_of(stored),
        columns,
        settings_of(stored),
        str(path.parent),
        stored.config.seed,
        digest_of(stored.init_from),
    )


def read_each(
    paths: Iterable[Path], read: Callable[[Path], Read]
) -> tuple[list[Read], dict[str, UsageError]]:
    """Returns what can be read of some runs, and by path why others cannot.

    Raises:
        UsageError: None can be read; the text is about the first of them.
    """
    found: list[Read] = []
    faults: dict[str, UsageError] = {}
    for path in paths:
        try:
            found.append(read(path))
        except UsageError as fault:
            faults[str(path)] = fault
    if not found:
        raise next(iter(faults.values()))
    return found, faults


def load_begun(paths: Sequence[Path]) -> tuple[list[Run], list[str], list[str]]:
    """Reads the runs that have an epoch.

    Returns:
        The runs, the paths of those without an epoch, and the paths of those that are damaged.

    Raises:
        UsageError: There is no run with an epoch; the text is about the first of them.
    """
    runs, faults = read_each(paths, load)
    early = [path for path, fault in faults.items() if isinstance(fault, NoEpochError)]
    return runs, early, [path for path in faults if path not in early]


def kind_of(stored: StoredRun) -> str:
    """Returns recipe and environment, which runs of one group have in common."""
    return f"{stored.recipe}, {stored.config.env_id.rpartition('/')[2]}"


def settings_of(stored: StoredRun) -> dict[str, str]:
    """Returns what runs that share a line agree in, beside their preset.

    That is all but the seed and what may change on resume, and the parts of another run that
    they began with.
    """
    return {
        PRESET: stored.preset,
        _TAKES_OVER: ",".join(parts_of(stored.init_from)) or "nothing",
        **{
            field.name: show_value(field.value)
            for field in fields_of(stored.config)
            if field.name not in ("seed", *MAY_CHANGE_ON_RESUME)
        },
    }
