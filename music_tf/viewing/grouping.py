"""Runs as they are plotted: which of them share a line, and what it is called."""

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from music_tf.config.fields import fields_of, show_value
from music_tf.config.names import FEW, few
from music_tf.config.stored import MAY_CHANGE_ON_RESUME, StoredRun, read_run, stored_env_id
from music_tf.training.metrics import CSV_NAME
from music_tf.training.origin import digest_of, parts_of, taken_before
from music_tf.training.results import BEFORE, NoEpochError, Numbers, group_and_seed, read_result

_PRESET = "preset"
_TAKES_OVER = "takes over"
REPEATED = "another run of the same seed is drawn"
"""Why a run has no line that `without_repeats` left out."""


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


def load_begun(paths: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Reads the runs that have an epoch, and returns the paths of the others too.

    Raises:
        NoEpochError: None has one.
        UsageError: Something else is wrong with one of them.
    """
    runs: list[Run] = []
    others: dict[str, NoEpochError] = {}
    for path in paths:
        try:
            runs.append(load(path))
        except NoEpochError as error:
            others[str(path)] = error
    if not runs:
        raise next(iter(others.values()))
    return runs, list(others)


def kind_of(stored: StoredRun) -> str:
    """Returns recipe and environment, which runs of one group have in common."""
    return f"{stored.recipe}, {stored.config.env_id.rpartition('/')[2]}"


def settings_of(stored: StoredRun) -> dict[str, str]:
    """Returns what runs that share a line agree in, beside their preset.

    That is all but the seed and what may change on resume, and the parts of another run that
    they began with.
    """
    return {
        _PRESET: stored.preset,
        _TAKES_OVER: ",".join(parts_of(stored.init_from)) or "nothing",
        **{
            field.name: show_value(field.value)
            for field in fields_of(stored.config)
            if field.name not in ("seed", *MAY_CHANGE_ON_RESUME)
        },
    }


def without_repeats(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Returns the runs with each seed of a line once, and the labels of those left out.

    Of several runs of a line with one seed and one start that counts which has most epochs, the
    first of equals: together they would pass for several seeds.
    """
    longest: dict[Hashable, Run] = {}
    for number, run in enumerate(runs):
        key: Hashable = number if run.seed is None else (run.group, run.source, run.seed)
        if key not in longest or run.epochs > longest[key].epochs:
            longest[key] = run
    kept = {id(run) for run in longest.values()}
    repeats = [
        label for label, run in zip(own_labels(runs), runs, strict=True) if id(run) not in kept
    ]
    return [run for run in runs if id(run) in kept], repeats


def own_labels(runs: Sequence[Run]) -> list[str]:
    """Returns a label for each run, with its folder where several have its name."""
    namesakes = Counter(run.name for run in runs)
    return [run.name if namesakes[run.name] == 1 else f"{run.name} ({run.folder})" for run in runs]


def in_groups(runs: Sequence[Run], each: bool = False) -> dict[str, list[Run]]:
    """Returns the runs that share a line, by its label; with `each` every run by itself."""
    groups: dict[str, list[Run]] = {}
    for own, run in zip(own_labels(runs), runs, strict=True):
        groups.setdefault(own if each else run.group, []).append(run)
    return groups


def how_many(runs: Sequence[Run]) -> str:
    """Returns the number of runs in words, as seeds where each is known to have its own."""
    seeds = {run.seed for run in runs}
    known = None not in seeds and len(seeds) == len(runs)
    return f"{len(runs)} {'seeds' if known else 'runs'}"


def by_settings(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs grouped so that only runs of equal settings share a line.

    A group is named by what tells it from others of its recipe and environment: a preset of its
    own, then the settings that it shares with the fewest of them.
    """
    kinds: dict[str, dict[Hashable, Run]] = {}
    for run in runs:
        kinds.setdefault(run.group, {}).setdefault(_key(run), run)
    labels = {
        (group, key): label
        for group, alike in kinds.items()
        for key, label in zip(alike, _labels(list(alike.values())), strict=True)
    }
    return [run._replace(group=labels[run.group, _key(run)]) for run in runs]


def _key(run: Run) -> Hashable:
    return frozenset(pair for pair in run.settings.items() if pair[0] != _PRESET)


def _labels(kinds: Sequence[Run]) -> list[str]:
    """Returns labels of different runs of one group: few settings, or as many as it takes."""
    parts = [_differing(kind, kinds) for kind in kinds]
    longest = max(map(len, parts))
    for most in range(min(FEW, longest), longest + 1):
        labels = [
            ", ".join([kind.group, few(part, most)]) if part else kind.group
            for kind, part in zip(kinds, parts, strict=True)
        ]
        if len(set(labels)) == len(labels):
            break
    return labels


def _differing(kind: Run, kinds: Sequence[Run]) -> list[str]:
    """Returns the settings in which a run differs from any of others, the most telling first."""
    sharing = {
        name: sum(other.settings.get(name) == value for other in kinds)
        for name, value in kind.settings.items()
    }
    names = [name for name in sharing if sharing[name] < len(kinds)]
    names.sort(key=lambda name: (name != _PRESET, sharing[name]))
    return [f"{name} {kind.settings[name]}" for name in names]
