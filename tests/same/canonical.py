"""What a run has computed, read from its directory alone and freed from how it is stored.

Nothing of the package is imported. A commit that changes the format or renames a number says so
here.
"""

import csv
import json
import re

import numpy as np

RENAMED: list[tuple[str, str]] = []
"""Pairs: a pattern of old names, and what replaces it as `re.Match.expand` takes it.

Names are `state/...` for shared arrays, `meta/...`, `metrics/...`, `replay/WORKER/...`.
"""
DROPPED: list[str] = []
"""Patterns of names that only one of the sides stores and that say nothing about its numbers."""
CLOCKS = re.compile(
    r"metrics/(time/(fps|updates_per_second|elapsed_s|wall_s)|mpi/.*)|meta/(.*/)?(elapsed_s|wall_s|seconds)"
    r"|meta/(before|losses)(/.*)?"
)
_LABEL = re.compile(r"epoch_(\d+)(?:_(\d+))?")
_STEPS = {"action", "reward"}
_STATES = {"observation", "achieved_goal"}


def read_run(directory):
    """Returns everything that a run has computed, an array of bits by canonical name."""
    folder = newest(directory / "checkpoints")
    state = _arrays(folder / "state.npz")
    meta = json.loads((folder / "meta.json").read_text())
    content = json.loads((folder / "manifest.json").read_text())["content"]
    shards = {
        worker: [_arrays(folder.parent / path) for path, *_ in saved]
        for worker, saved in content["shards"].items()
    }
    found = {f"state/{name}": _as_text(array) for name, array in state.items()}
    found |= {f"meta/{name}": np.array(repr(value)) for name, value in _leaves(meta)}
    for worker, saved in shards.items():
        rows = valid_rows(repeated(saved))
        found |= {f"replay/{worker}/{name}": array for name, array in rows.items()}
    found |= read_metrics(directory / "metrics.csv")
    canonical = {new_name(name): array for name, array in found.items()}
    ignored = re.compile("|".join([CLOCKS.pattern, *DROPPED]))
    return {name: array for name, array in canonical.items() if not ignored.fullmatch(name)}


def new_name(name):
    """Returns what the newer side calls something; a name of its own stays as it is."""
    for pattern, replacement in RENAMED:
        if (found := re.fullmatch(pattern, name)) is not None:
            return found.expand(replacement)
    return name


def newest(checkpoints):
    found = {m: path for path in checkpoints.iterdir() if (m := _LABEL.fullmatch(path.name))}
    return found[max(found, key=lambda m: (int(m[1]), int(m[2] or 0)))]


def read_metrics(path):
    """Returns the columns of a table; numbers as Python writes them, blanks as they are.

    A column that is blank in every row says nothing: a run without it is the same.
    """
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    return {
        f"metrics/{name}": np.array([cell and repr(float(cell)) for cell in cells])
        for name, cells in columns.items()
        if any(cells)
    }


def repeated(saved):
    """Returns the filled slots of a worker's replay, after repeating what was saved, in order."""
    arrays, size, cursor = {}, 0, 0
    if saved and "slots" not in saved[0]:  # a ring of steps, behind which all is added
        return {n: np.concatenate([np.atleast_1d(one[n]) for one in saved]) for n in saved[0]}
    for shard in saved:
        fields = dict(shard)
        slots, size, cursor = (fields.pop(name) for name in ("slots", "size", "cursor"))
        for name, values in fields.items():
            old = arrays.get(name, np.zeros([0, *values.shape[1:]], values.dtype))
            new = np.zeros([int(size), *values.shape[1:]], values.dtype)
            new[: len(old)] = old
            new[slots] = values
            arrays[name] = new
    return arrays | {"size": np.asarray(size), "cursor": np.asarray(cursor)}


def valid_rows(arrays):
    """Returns replay without what lies beyond the length of an episode; slots stay in order."""
    if "length" not in arrays or "parts" in arrays:  # a ring holds no padding
        return arrays
    length = arrays["length"][:, None]
    rows = {}
    for name, values in arrays.items():
        if name in _STEPS:
            rows[name] = values[np.arange(values.shape[1]) < length]
        elif name in _STATES or name.startswith("extras/"):
            rows[name] = values[np.arange(values.shape[1]) <= length]
        else:
            rows[name] = values
    return rows


def difference(one, other):
    """Returns in words how two arrays differ, None where all bits are equal."""
    if one is None or other is None:
        return "only the working tree has it" if one is None else "the working tree lacks it"
    kinds = [f"{array.dtype} {array.shape}" for array in (one, other)]
    if one.dtype.kind == other.dtype.kind == "U":
        pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=False)
        unequal = [pair for pair in pairs if pair[0] != pair[1]]
        if one.shape == other.shape and not unequal:
            return None
        return f"{one.shape} {other.shape}: " + ", ".join(f"{a!r} -> {b!r}" for a, b in unequal[:3])
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} -> {kinds[1]}"
    if np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes():
        return None
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return f"{np.count_nonzero(apart)} of {apart.size} numbers, by up to {np.nanmax(apart):g}"


def _as_text(array):
    """Returns a single number as JSON would hold it, so that it may move from one to the other."""
    return array if array.ndim else np.array(repr(array.item()))


def _leaves(value, name=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}/{key}" if name else key)
    else:
        yield name, value


def _arrays(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}
