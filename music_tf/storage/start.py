"""What a run takes over from an earlier one: networks, targets, running statistics.

A source is a run, of which the newest intact checkpoint counts, or a folder of weights, which is
a checkpoint that holds nothing else and may leave out parts. Names, shapes and types must be
those of the new run.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_tf.config.start import PARTS
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.manifest import MANIFEST
from music_tf.storage.origin import printable, record_of
from music_tf.storage.results import BEFORE
from music_tf.storage.state_folder import Arrays
from music_tf.storage.weights import StoredWeights, newest_weights, save_weights

_PREFIXES = {
    "actor": ("parameters/actor/",),
    "critic": ("parameters/critic_",),
    "targets": ("targets/",),
    "statistics": ("parameters/statistics/", "scales/statistics"),
    "discriminator": ("parameters/discriminator/", "scales/discriminator"),
    "normalizer": ("normalizer/",),
}
_GOAL_STATISTICS = "normalizer/goal"
_REWARDS = {"statistics": "music", "discriminator": "skill"}
"""The reward whose network a part is."""
_NO_WEIGHT = "no such weight"
_OTHER_NETWORKS = "\nboth runs need the same learner (ddpg or sac), and as many layers and critics"
_KINDS = {True: "scaled", False: "raw"}
_FACTS = ("goals", "env_id", "inputs", "counters", BEFORE)


class Heritage(NamedTuple):
    """What a new run starts with, and where it comes from."""

    arrays: Arrays
    """All of its weights, targets and statistics, whoever they come from."""
    record: dict[str, Any]
    """For `config.json`, as `record_of` returns it."""


def inherit(own: Arrays, source: Path, parts: Sequence[str], inputs: Mapping[str, Any]) -> Heritage:
    """Returns what a run starts with that takes over parts of an earlier one.

    Targets that are not among the parts are copies of the networks that they follow. Statistics
    of goals are left behind where the source knew zero goals only: under them any real goal lies
    beyond all bounds.

    Args:
        own: Weights, targets and statistics of the new run as it would start by itself.
        source: The checkpoints of a run, or a folder of weights.
        parts: Names out of `PARTS`.
        inputs: What the reward networks of the new run look at, as `RewardTerm.inputs` says.

    Raises:
        UsageError: There is nothing at the source, or a part of it does not fit.
        EnvironmentFault: Whatever is there is damaged.
    """
    stored = _stored(source, parts)
    arrays = dict(own)
    for part in parts:
        if part in _REWARDS:
            _check_inputs(part, own, stored, inputs)
        arrays |= _taken(part, own, stored)
    if "targets" not in parts:
        followed = [name for name in own if name.startswith("targets/")]
        arrays |= {name: arrays[name.replace("targets", "parameters", 1)] for name in followed}
    return Heritage(arrays, record_of(source, stored, parts))


def export_weights(
    source: Path, folder: Path, parts: Sequence[str], facts: Mapping[str, Any] | None = None
) -> None:
    """Writes parts of a run's newest checkpoint as a folder that `inherit` can start from.

    Args:
        source: The checkpoints of a run.
        folder: A new directory, or one that holds weights and is replaced.
        parts: Names out of `PARTS`.
        facts: What else to say of the run, as JSON values; the checkpoint itself is believed first.

    Raises:
        UsageError: There is no such part, or the folder holds something else.
        EnvironmentFault: The checkpoints are damaged, or the folder cannot be written.
    """
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise UsageError(f"{folder}: expected a new directory or a folder of weights to replace")
    stored = _stored(source, parts)
    arrays: Arrays = {}
    for part in parts:
        found = _part(part, stored.arrays)
        if not found:
            raise _absent(part, str(stored.folder), stored.names)
        arrays |= found
    own = {name: stored.meta[name] for name in _FACTS if name in stored.meta}
    meta = {**(facts or {}), **own, "exported_from": stored.sha256}
    if not save_weights(folder, arrays, meta):
        raise EnvironmentFault(f"{folder}: the weights could not be written")


def _stored(source: Path, parts: Sequence[str]) -> StoredWeights:
    return newest_weights(
        source, wanted=tuple(prefix for part in parts for prefix in _PREFIXES[part])
    )


def _taken(part: str, own: Arrays, stored: StoredWeights) -> Arrays:
    """Returns the arrays of a part after checking that they are those of this run."""
    wanted, found = _part(part, own), _part(part, stored.arrays)
    if part == "normalizer" and stored.meta.get("goals") != "environment":
        wanted.pop(_GOAL_STATISTICS)
        found.pop(_GOAL_STATISTICS, None)
    if not wanted:
        raise _absent(part, "this run", own)
    if not found:
        raise _absent(part, str(stored.folder), stored.names)
    for name in sorted({**wanted, **found}):
        expected, came = _shape(wanted, name), _shape(found, name)
        if expected != came:
            raise UsageError(
                f"--parts {part}: {name.partition('/')[2]} does not fit\n"
                f"expected {expected}, found {came} in {stored.folder}"
                + (_OTHER_NETWORKS if _NO_WEIGHT in (expected, came) else "")
            )
    return found


def _part(part: str, arrays: Arrays) -> Arrays:
    prefix = _PREFIXES[part]
    return {name: array for name, array in arrays.items() if name.startswith(prefix)}


def _shape(arrays: Mapping[str, Any], name: str) -> str:
    if name not in arrays:
        return _NO_WEIGHT
    return f"{arrays[name].dtype} {arrays[name].shape}"


def _absent(part: str, where: str, names: Collection[str]) -> UsageError:
    present = [other for other in PARTS if any(n.startswith(_PREFIXES[other]) for n in names)]
    return UsageError(f"--parts {part}: {where} has none; its parts are {','.join(present)}")


def _check_inputs(part: str, own: Arrays, stored: StoredWeights, inputs: Mapping[str, Any]) -> None:
    """Refuses a reward network whose inputs mean something else in the run that it comes from."""
    here, there = (f"scales/{part}" in names for names in (own, stored.names))
    if here != there:
        raise UsageError(
            f"--parts {part}: expected {_KINDS[here]} inputs, found {_KINDS[there]} ones in "
            f"{stored.folder}\nboth runs need the same --{_REWARDS[part]}.normalize-inputs"
        )
    seen = stored.meta.get("inputs")
    if part in inputs and isinstance(seen, dict) and seen.get(part, inputs[part]) != inputs[part]:
        raise UsageError(
            f"--parts {part}: its inputs are others\n"
            f"expected {inputs[part]}, found {printable(str(seen[part]))} in {stored.folder}"
        )
