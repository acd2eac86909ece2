"""Which runs share a line of a plot, what it is called, and which of them it leaves out."""

from collections import Counter
from collections.abc import Hashable, Sequence

from music_tf.config.names import FEW, few
from music_tf.tools.grouping import PRESET, Run

REPEATED = "another run of the same seed is drawn"
"""Why a run has no line that `without_repeats` left out."""


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


def _key(run: Run) -> Hashable:
    return frozenset(pair for pair in run.settings.items() if pair[0] != PRESET)


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
    names.sort(key=lambda name: (name != PRESET, sharing[name]))
    return [f"{name} {kind.settings[name]}" for name in names]
