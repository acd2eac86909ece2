"""A warm start: networks, targets and running statistics of an earlier run, and the record of it.

The source is the newest intact checkpoint of a run, or a folder of weights, which is a checkpoint
with some of the parts. Names, shapes and types must be those of the new run. `config.json` records
the source with its epochs and steps.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_tf import recipes
from music_tf.config.settings import Config
from music_tf.config.warm_start import AGENT_PARTS, parts_of
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.files import as_object
from music_tf.gate import (
    ENVIRONMENT,
    Arrays,
    MisfitError,
    check_fit,
    declared_in,
    expected_of,
    is_count,
)
from music_tf.networks.acting import GAUSSIANS, SKILLS
from music_tf.networks.embedding import SPEED
from music_tf.normalizer import COLUMNS
from music_tf.reading.stored import CONFIG_NAME, StoredRun, run_to_json
from music_tf.storage.checkpoint import (
    MANIFEST,
    META,
    STATE,
    StoredWeights,
    newest_weights,
    save_weights,
)
from music_tf.storage.frozen_skills import of_one_skill, with_zeros
from music_tf.storage.results import BEFORE, COUNTED, are_numbers
from music_tf.storage.run_directory import write_json
from music_tf.storage.run_paths import AGENTS
from music_tf.types import ACTIONS, Declared, refusal

_PREFIXES = {
    "actor": ("parameters/actor/", SKILLS, f"{COLUMNS}/"),
    "critic": ("parameters/critic_", "parameters/value/", f"{COLUMNS}/"),
    "targets": ("targets/",),
    "normalizer": ("normalizer/",),
}
"""Prefixes of the arrays of a part; any other part is the network of a reward term."""
_READ_CONDITIONS = tuple(prefix for part in AGENT_PARTS for prefix in _PREFIXES[part])
"""Prefixes of the arrays of networks that read a condition."""
_HIDDEN = re.compile(r"parameters/actor/hidden_\d+/bias", re.ASCII)
_STATISTICS, _GOAL_STATISTICS = "normalizer/observation", "normalizer/goal"
_ACTION, _MEAN = "parameters/actor/action/", "parameters/actor/mean/"
"""Prefixes of the last layer of a deterministic actor, and of its place in a Gaussian one."""
ROBOT = "robot"
"""Folder beside exported weights with the two files that a robot needs."""
_EXPORTED = {MANIFEST, STATE, META, CONFIG_NAME, ROBOT}
_MEASURED = re.compile(r"(evaluation|skills)(_.*)?\.json", re.DOTALL)
"""Names of what `evaluate` and `skills` write beside exported weights, about them alone."""
_SHOWN = 5
_LONGEST = 300
_FIRST = "hidden_0/"
_PLAIN = re.compile(r"[A-Za-z]\w{0,39}", re.ASCII)
_FACTS = ("goals", "condition", "env_id", ENVIRONMENT, "inputs", "counters", BEFORE, "incremental")


class WarmStartTarget(NamedTuple):
    """The facts about a new run that determine what it can take over."""

    arrays: Arrays
    """Its initial weights, targets and statistics without a warm start."""
    inputs: Mapping[str, Any]
    """Inputs of its reward networks and encoder, see `RewardTerm.inputs`."""
    declared: Declared
    """What its environment declares; actions must mean the same as in the source."""
    config: Config

    @property
    def observed(self) -> int:
        """Size of the observation, which precedes the condition."""
        return self.arrays[_STATISTICS].size // 2


class LoadedWarmStart(NamedTuple):
    """Parts of an earlier run, as they are stored."""

    source: Path
    parts: tuple[str, ...]
    stored: StoredWeights
    record: dict[str, Any]
    otherwise: str = ""
    """Ends the refusal of a source that does not fit."""


def load_warm_start(config: Config, source: Path, parts: Sequence[str]) -> LoadedWarmStart:
    """Reads any of `config.warm_start.parts_of` for a run, from checkpoints or exported weights."""
    stored = _stored(source, parts)
    record = record_of(source, stored, parts)
    if _is_of_one_skill(config, stored, parts):
        record["skill"] = config.pinned_skill
    return LoadedWarmStart(source, tuple(parts), stored, record)


def _is_of_one_skill(config: Config, stored: StoredWeights, parts: Sequence[str]) -> bool:
    """Whether one of the frozen skills of a source is taken over, each of which has an actor."""
    frozen = any(name.startswith(SKILLS) for name in stored.names)
    return frozen and not config.incremental.on and bool({*AGENT_PARTS} & {*parts})


def initial_arrays(start: LoadedWarmStart, target: WarmStartTarget) -> Arrays:
    """Returns all weights, targets and statistics of a new run, taken over or its own."""
    # A run whose skills are learned in turn starts its first one from the newest networks.
    source, parts, stored = start.source, start.parts, start.stored
    initial, config, where = _without_skills(target.arrays), target.config, str(stored.folder)
    if {*AGENT_PARTS} & {*parts}:
        _check_actions(source, stored, target.declared)
        if _is_of_one_skill(config, stored, parts):
            sizes = (target.observed, config.seen_condition)
            stored = of_one_skill(stored, source, config.pinned_skill, sizes)
            where = f"skill {config.pinned_skill} of {source}"
    earlier = _as_gaussian(stored, target, parts)
    arrays = dict(initial)
    for part in parts:
        needed, loaded = (
            {name: array for name, array in _part(part, every).items() if name != SPEED}
            for every in (initial, earlier)  # a run sets its own speed, or reads it off its start
        )
        if stored.meta.get("goals") != "environment":  # zero goals would clip any real one
            needed.pop(_GOAL_STATISTICS, None)
            loaded.pop(_GOAL_STATISTICS, None)
        if not needed:
            raise _absent(part, "this run", initial)
        if not loaded:
            raise _absent(part, where, stored.names)
        _check_inputs(part, stored, target.inputs)
        kind = stored.meta.get("condition", "one_hot")  # the only kind of older versions
        loaded = _with_conditions(loaded, needed, target, kind)
        try:
            check_fit(expected_of(loaded), expected_of(needed))
        except MisfitError as misfit:
            raise _misfit(part, misfit, stored.folder, (needed, loaded)) from misfit
        arrays |= loaded
    if "targets" not in parts:
        followed = [name for name in initial if name.startswith("targets/")]
        arrays |= {name: arrays[name.replace("targets", "parameters", 1)] for name in followed}
    return arrays


def export_weights(
    source: Path,
    folder: Path,  # new, or weights that are replaced, with what was measured of these
    parts: Sequence[str],
    run: StoredRun | None = None,  # with it, and the parts actor and normalizer, a folder can act
) -> None:
    """Writes parts of a run's newest checkpoint as a folder that another run can start from."""
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise UsageError(f"{folder}: expected a new directory or a folder of weights to replace")
    entries = set(os.listdir(folder) if folder.exists() else ()) - _EXPORTED
    if others := sorted(name for name in entries if not _MEASURED.fullmatch(name)):
        raise UsageError(
            f"{folder}: an export replaces the whole folder, expected nothing in it but one, got "
            f"{', '.join(others[:_SHOWN])[:_LONGEST]}\nmove that, or name a new folder"
        )
    terms = () if run is None else run.config.rewards.values()
    gains = [term.name for term in terms if term.built and {*term.built} <= {*parts}]
    stored = _stored(source, (*parts, *gains))
    arrays: Arrays = {}
    for part in parts:
        exported = _part(part, stored.arrays)
        if not exported:
            raise _absent(part, str(stored.folder), stored.names)
        arrays |= exported
    for term in gains:  # else no film could show its reward
        arrays |= _part(term, stored.arrays)
    facts: dict[str, Any] = {}
    if run is not None:
        facts = {"recipe": run.recipe, "env_id": run.config.env_id, "seed": run.config.seed}
    facts |= {name: stored.meta[name] for name in _FACTS if name in stored.meta}
    if not save_weights(folder, arrays, {**facts, "exported_from": stored.sha256}):
        raise EnvironmentFault(f"{folder}: the weights could not be written")
    if run is not None:
        drawn = {} if run.tasks is None else {"tasks": run.tasks}
        moved = run._replace(arguments=_without_directory(run.arguments))
        write_json(folder / CONFIG_NAME, run_to_json(moved) | drawn, folder)


def _without_directory(arguments: Sequence[str]) -> tuple[str, ...]:
    """Returns a command line without `--run-dir` and its value."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, _ = word.replace("_", "-").partition("=")
        if option != "--run-dir":
            kept.append(word)
        elif not equals:
            next(words, None)
    return tuple(kept)


def _stored(source: Path, parts: Sequence[str]) -> StoredWeights:
    """Reads the arrays of parts that exist, whatever their names and shapes."""
    wanted = [prefix.removesuffix("/") for part in parts for prefix in _prefixes(part)]
    try:
        return newest_weights(source, wanted=tuple(wanted))
    except ValueError as error:
        raise UsageError(f"--init-from: {source}: {error}") from error


def _prefixes(part: str) -> tuple[str, ...]:
    return _PREFIXES.get(part, (f"parameters/{part}/", f"scales/{part}/"))


def _part(part: str, arrays: Arrays) -> Arrays:
    prefixes = _prefixes(part)
    return {name: array for name, array in arrays.items() if f"{name}/".startswith(prefixes)}


def _as_gaussian(stored: StoredWeights, target: WarmStartTarget, parts: Sequence[str]) -> Arrays:
    """Returns arrays with a deterministic actor as a Gaussian one of bit-equal mode."""
    kind, arrays = GAUSSIANS.get(target.config.agent.actor), _without_skills(stored.arrays)
    if kind is None or f"{_ACTION}kernel" not in stored.names:
        return arrays
    if {*AGENT_PARTS[1:]} & {*parts}:
        raise UsageError(
            f"--parts {','.join(parts)}: sac takes no critics of ddpg, expected an actor alone\n"
            "for example: --parts actor,normalizer"
        )
    fitted = {name.replace(_ACTION, _MEAN): array for name, array in arrays.items()}
    features, deviation = (_MEAN.replace("mean", head) for head in ("features", "log_deviation"))
    for name, array in target.arrays.items():
        if name.startswith((features, deviation)):
            fitted[name] = np.zeros_like(array)
    fitted[f"{deviation}bias"] += kind.output_of(-2.0)  # the first log-deviation
    if kind.features:
        np.fill_diagonal(fitted[f"{features}kernel"], 1.0)
    return fitted


def _with_conditions(
    loaded: Arrays, needed: Arrays, target: WarmStartTarget, kind: object
) -> Arrays:
    """Returns networks of a source without skills with inputs for the conditions of a new run."""
    # Outputs stay the same for any condition, to which first layers have rows of zeros. The one-hot
    # vector of a single skill is constant, so its row is added to the bias.
    fitted, observation, condition = dict(loaded), target.observed, target.config.seen_condition
    wanted_kind = target.config.condition.kind
    grows = condition > 1 or (wanted_kind != "one_hot" and kind == "one_hot")
    constant = kind == "one_hot" and condition <= 1
    for name, kernel in loaded.items():
        network, first, weight = name.partition(_FIRST)
        bias = f"{network}{_FIRST}bias"
        more = len(needed[name]) - len(kernel) if name in needed and kernel.ndim else 0
        reads = first and name.startswith(_READ_CONDITIONS)
        if reads and weight == "kernel" and bias in loaded and grows and more == condition - 1:
            if kind != "one_hot":
                raise UsageError(
                    f"--init-from: expected a source without conditions, or with those of "
                    f"{condition} numbers; found {printable(kind)} ones of one number"
                )
            others = np.delete(kernel, observation, axis=0)
            fitted[name] = with_zeros(others, observation, condition)
            fitted[bias] = loaded[bias] + kernel[observation]
        elif reads and weight == "kernel" and not more and kind != wanted_kind and not constant:
            raise UsageError(
                f"--init-from: expected a source with {wanted_kind} conditions, found "
                f"{printable(kind)} ones{_same_kind(target.config, printable(kind))}"
            )
    return fitted


def _same_kind(config: Config, kind: str) -> str:
    """Returns advice by which a run gets conditions of another kind; empty where it cannot."""
    if "belief" in (kind, config.condition.kind):  # which the agent decides
        return ""
    options = f"--condition.kind {kind}"
    if config.condition.kind == "one_hot":
        options += f" --skills 1 --condition.size {config.seen_condition}"
    if config.pinned_skill is not None:
        options += " --pinned-skill None"
    return f"\nthis run can have the same: {options}"


def _without_skills(arrays: Arrays) -> Arrays:
    return {name: array for name, array in arrays.items() if not name.startswith(SKILLS)}


def _misfit(
    part: str, misfit: MisfitError, folder: Path, needed_loaded: tuple[Arrays, Arrays]
) -> UsageError:
    """Returns the message about a weight that does not fit, and what both runs must share."""
    text = (
        f"--parts {part}: {misfit.name.partition('/')[2]} does not fit\n"
        f"expected {misfit.expected or 'no such weight'}, "
        f"found {misfit.stored or 'no such weight'} in {folder}"
    )
    widths, before = (
        [array.size for name, array in each.items() if _HIDDEN.fullmatch(name)]
        for each in needed_loaded
    )
    if misfit.name == COLUMNS or sum(COLUMNS in each for each in needed_loaded) == 1:
        text += "\nboth runs need replay.reach of this version"
    elif misfit.name.startswith("scales/"):
        text += "\nboth runs need the same normalize_inputs of this reward"
    elif misfit.expected is None or misfit.stored is None:
        text += "\nboth runs need one learner (ddpg or sac), agent.layer-norm, layers and critics"
    elif widths != before:
        text += f"\nfor example: --agent.hidden-sizes {' '.join(map(str, before))}"
    return UsageError(text)


def _absent(part: str, where: str, names: Iterable[str]) -> UsageError:
    every = dict.fromkeys((*parts_of(recipes.terms().values()), part))
    present = [p for p in every if any(f"{name}/".startswith(_prefixes(p)) for name in names)]
    return UsageError(f"--parts {part}: {where} has none; its parts are {','.join(present)}")


def _check_actions(source: Path, stored: StoredWeights, declared: Declared) -> None:
    """Refuses networks if actions mean something else in the source."""
    try:
        before = declared_in(stored.meta)
    except ValueError as error:
        raise UsageError(f"--init-from: {source}: {error}") from error
    if text := refusal(before, declared, f"--init-from {source}", ACTIONS):
        raise UsageError(text)


def _check_inputs(part: str, stored: StoredWeights, inputs: Mapping[str, Any]) -> None:
    """Refuses a network if its inputs mean something else in the source."""
    before = as_object(stored.meta.get("inputs"))
    if part in inputs and part in before and before[part] != inputs[part]:
        raise UsageError(
            f"--parts {part}: has other inputs than here\n"
            f"expected {inputs[part]}, found {printable(str(before[part]))} in {stored.folder}"
        )


# --- the record of a start --------------------------------------------------------------------


def record_of(source: Path, stored: StoredWeights, parts: Sequence[str]) -> dict[str, Any]:
    counters = as_object(stored.meta.get("counters"))
    earlier = stored.meta.get(BEFORE, {})
    counted = {column: counters[name] for column, name in COUNTED.items() if name in counters}
    numbers = are_numbers(counted) and are_numbers(earlier)
    before = {c: value + earlier.get(c, 0.0) for c, value in counted.items()} if numbers else {}
    if not numbers or not are_numbers(before):
        raise UsageError(f"{stored.folder}: expected numbers of steps and seconds in its counters")
    epoch, env_id = counters.get("epoch"), stored.meta.get("env_id")
    return {
        "run": str(source.resolve()),
        "checkpoint": stored.folder.name,
        "epoch": epoch if is_count(epoch) else None,
        "env_id": printable(env_id) if isinstance(env_id, str) else None,
        "sha256": stored.sha256,
        "parts": list(parts),
        BEFORE: before,
    }


def taken_before(record: Mapping[str, Any] | None, run: Path) -> dict[str, float]:
    """Returns steps and seconds of the runs that a warm start goes back to, if recorded."""
    before = (record or {}).get(BEFORE, {})
    if not are_numbers(before):
        raise UsageError(
            f"{run / CONFIG_NAME}: expected numbers by column under 'init_from.{BEFORE}'"
        )
    return dict(before)


def start_line(record: Mapping[str, Any]) -> str:
    run = printable(record.get("run")).removesuffix("/checkpoints")
    if Path(run).parent == AGENTS:
        return f"starts from the agent {Path(run).name}: {', '.join(parts_taken(record))}"
    epoch = record.get("epoch")
    where = f"epoch {epoch}"
    if not is_count(epoch):
        where = f"checkpoint {printable(record.get('checkpoint'))}"
    if is_count(record.get("skill")):
        where += f", skill {record['skill']}"
    return f"starts from {run}, {where}: {', '.join(parts_taken(record))}"


def parts_taken(record: Mapping[str, Any] | None) -> list[str]:
    parts = (record or {}).get("parts")
    few = parts[:12] if isinstance(parts, list) else []
    return [part if isinstance(part, str) and _PLAIN.fullmatch(part) else "?" for part in few]


def digest_of(record: Mapping[str, Any] | None) -> str:
    digest = (record or {}).get("sha256")
    return digest if isinstance(digest, str) else ""


def printable(value: object) -> str:
    """Makes text from a file safe to print: control characters become question marks."""
    text = value if isinstance(value, str) else "?"
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST])
