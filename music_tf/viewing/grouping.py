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
from music_tf.training.results import NoEpochError, Numbers, group_and_seed, read_result

_PRESET = "preset"


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


def load(path: Path) -> Run:
    """Reads a run directory, also of a run still going, or a copy of its `metrics.csv`.

    Steps and minutes of a copy count the runs that it started from.

    Raises:
        NoEpochError: It holds no epoch yet.
        UsageError: It is neither.
    """
    if not os.path.isdir(path):
        result = read_result(path)
        counted = {
            name: result.in_all(name)
            for name in ("time/env_steps", "time/elapsed_s")
            if name in result.columns
        }
        study = {"of": path.resolve().parent.name}
        group, _ = group_and_seed(path)
        return Run(path.stem, group, {**result.columns, **counted}, study, str(path.parent))
    stored = read_run(path, stored_env_id(path))  # a module that it names is not imported here
    if not (path / CSV_NAME).exists():
        raise NoEpochError(f"{path}: holds no epoch of a run yet")
    group = kind_of(stored)
    columns = read_result(path / CSV_NAME).columns
    return Run(f"{group}, {path.name}", group, columns, settings_of(stored), str(path.parent))


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

    That is all but the seed and what may change on resume.
    """
    return {
        _PRESET: stored.preset,
        **{
            field.name: show_value(field.value)
            for field in fields_of(stored.config)
            if field.name not in ("seed", *MAY_CHANGE_ON_RESUME)
        },
    }


def in_groups(runs: Sequence[Run], each: bool = False) -> dict[str, list[Run]]:
    """Returns the runs that share a line, by its label; with `each` every run by itself."""
    namesakes = Counter(run.name for run in runs)
    groups: dict[str, list[Run]] = {}
    for run in runs:
        own = run.name if namesakes[run.name] == 1 else f"{run.name} ({run.folder})"
        groups.setdefault(own if each else run.group, []).append(run)
    return groups


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
