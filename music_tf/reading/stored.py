"""A run's configuration as JSON, which is not trusted.

Reading checks every key and type, and never imports a module that a file names: the classes follow
from the recipe and the names of its rewards. A recipe, an environment or a function in a user's
module must be typed again, or allowed with --allow-import.
"""

import contextlib
import dataclasses
import importlib.metadata
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from music_tf import recipes
from music_tf.config.changes import OPTION, SKILL, Stage, stages_of
from music_tf.config.fields import Settings, describe_type, show_option, show_value
from music_tf.config.names import KNOWN, names_a_module, suggestion, without_module
from music_tf.config.settings import Config
from music_tf.config.world import MAIN, allowed_in_shell, not_allowed, trust
from music_tf.errors import UsageError
from music_tf.files import links_and_devices, read_json
from music_tf.hints import hints_of, is_mapping, kinds_of
from music_tf.hints import read as read_value

CONFIG_NAME = "config.json"
LATEST = "latest"
MAY_CHANGE_ON_RESUME = ("epochs", "max_minutes", "hang_after")
"""Settings that do not change what a run computes up to a given epoch."""
REMOVED: Mapping[str, Any] = {
    "agent.entropy_clip": [-1.0, 0.0],
    "dads.components": 4,
    "dads.learn_deviations": False,
    "env.exact_goals": False,
    "env.skill_discount": 0.99,
    "env.skill_sample": False,
    "incremental.collect_sampled": False,
    "influence.change_scale": 50.0,
    "influence.every": 1,
    "influence.normalize_inputs": True,
    "influence.train": True,
    "skill.include_actions": False,
}
"""Settings of older versions that are constants now, each with its value."""
LARGEST_CONFIG = 10_000_000
"""Maximum size of a configuration in bytes, with the tasks that a run has drawn."""
_RUN = {"recipe": str, "preset": str, "arguments": list, "config": dict}
_OPTIONAL = {"init_from": dict, "resumes": list, "tasks": dict, "versions": dict}
_ALWAYS_THERE = ("env_id", "seed", "workers", "agent", "rewards")
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


class StoredRun(NamedTuple):
    """What a run directory says about its run."""

    recipe: str
    preset: str
    arguments: tuple[str, ...]
    config: Config
    init_from: Mapping[str, Any] | None = None
    """Its warm start: run, checkpoint, epoch, env_id, sha256, parts, and `before`, the steps and
    seconds of earlier runs; older versions wrote less."""
    missing: tuple[str, ...] = ()  # not written by an older version; they have general defaults
    tasks: Mapping[str, Any] | None = None  # that it has drawn; None with one, or before
    mujoco: str = ""
    """The version that it began with, if it is recorded."""

    @property
    def notice(self) -> str:
        """A line about missing settings and another MuJoCo; empty without any."""
        names = ", ".join(self.missing)
        texts = [f"{CONFIG_NAME} is of an older version, defaults for: {names}"[:200]] * bool(names)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            if self.mujoco not in ("", now := importlib.metadata.version("mujoco")):
                texts.append(
                    f"it began with MuJoCo {self.mujoco:.20}; {now} may give other numbers"
                )
        return "; ".join(texts)


def runs_root() -> Path:
    return Path(os.environ.get("MUSIC_TF_RUNS") or "runs")


def named_run(text: str) -> Path | None:
    """Returns the run directory of a path, or of a name in the root such as `latest`."""
    for directory in (Path(text), runs_root() / text) if text else ():
        if os.path.isfile(directory / CONFIG_NAME):  # False where `is_file` raises: private folders
            return directory
    return None


def run_to_json(run: StoredRun) -> dict[str, Any]:
    """Returns the entries of config.json that `read_run` needs; the file holds more."""
    return {
        "recipe": run.recipe,
        "preset": run.preset,
        "arguments": list(run.arguments),
        "config": config_to_json(run.config),
        "init_from": run.init_from,
    }


def read_record(directory: Path, *needed: str) -> dict[str, Any]:
    """Reads all of `config.json` in a run directory, and checks the types of its entries."""
    path = directory / CONFIG_NAME
    try:
        record = read_json(path, LARGEST_CONFIG)
    except OSError as error:
        raise UsageError(
            f"{directory}: expected a run directory with a {CONFIG_NAME} ({error.strerror})"
        ) from error
    except ValueError as error:
        raise UsageError(f"{path}: damaged: {str(error)[:120]}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path}: damaged: expected a JSON object")
    for key, kind in {**_RUN, **_OPTIONAL}.items():
        value = record.get(key)
        if not isinstance(value, kind) and (value is not None or key in needed):
            raise UsageError(f"{path}: damaged: expected a {kind.__name__} under {key!r}")
    return record


def read_run(directory: Path, typed_env_id: str | None = None) -> StoredRun:
    path, record = directory / CONFIG_NAME, read_record(directory, *_RUN)
    for odd in links_and_devices(directory):
        raise UsageError(
            f"{odd[:300]}: a run directory holds plain files and folders, this is a link or device"
        )
    try:
        config, missing = config_from_json(
            record["config"], record["recipe"], typed_env_id, record["preset"]
        )
    except UsageError as error:
        raise type(error)(f"{path}: {error}") from error
    return StoredRun(
        recipe=record["recipe"],
        preset=record["preset"],
        arguments=tuple(map(str, record["arguments"])),
        config=config,
        init_from=record.get("init_from"),
        missing=missing,
        tasks=record.get("tasks"),
        mujoco=str((record.get("versions") or {}).get("mujoco") or ""),
    )


def stored_start(directory: Path) -> Mapping[str, Any] | None:
    return read_record(directory).get("init_from")


def stored_env_id(directory: Path) -> str | None:
    """Returns the environment that a run directory names, for a user who trusts the directory."""
    env_id = read_record(directory, "config")["config"].get("env_id")
    return env_id if isinstance(env_id, str) else None


def check_same_env(option: str, stored: StoredRun, typed: str | None) -> None:
    env_id = stored.config.env_id
    if typed not in (None, env_id):
        raise UsageError(
            f"{option}: the run was trained on {env_id}, got {typed!r:.80}\n"
            "it may be left out, unless the id is of the form module:Id"
        )


def allow_modules(directory: Path) -> None:
    """Permits the modules that a run directory names, for a user who trusts the directory."""
    recipe = read_record(directory, "recipe")["recipe"]
    if not recipes.is_trusted(recipe):
        recipes.import_own(recipe)
    with contextlib.suppress(UsageError):  # the caller will read the run and meet the same fault
        trust(read_run(directory, stored_env_id(directory)).config.functions)


def allowed_env_id(directory: Path, typed: str | None = None) -> str | None:
    """Calls `allow_modules`; returns the typed environment, else the one of the directory."""
    allow_modules(directory)
    return typed or stored_env_id(directory)


def refuse_changes(stored: Mapping[str, Any], resumed: Mapping[str, Any]) -> None:
    """Refuses to resume a run with other settings; one that it lacks is newer, and free."""
    before, after = (
        {"RECIPE": run.get("recipe"), "preset": run.get("preset"), **flatten(run["config"])}
        for run in (stored, resumed)
    )
    allowed = (*MAY_CHANGE_ON_RESUME, *REMOVED, *_appended(before, after))
    allowed += ("env_id",) * _moved(before.get("env_id", ""), after.get("env_id", ""))
    lines = [
        f"{name if name == 'RECIPE' else show_option(name)}: "
        f"the run has {show_value(value)}, got {show_value(after.get(name))}"[:200]
        for name, value in before.items()
        if value != after.get(name) and name not in allowed
    ]
    if lines:
        may = ", ".join(map(show_option, MAY_CHANGE_ON_RESUME))
        more = "; skills may be added behind those that it has" if _each_skill(before) else ""
        raise UsageError(
            f"--resume continues a run exactly, only {may} may change{more}\n"
            + "\n".join(lines[:5])
        )


def _moved(env_id: str, typed: str) -> bool:
    """Whether an id that a notebook had registered, as a run has it, is now one of a module."""
    return env_id not in KNOWN and without_module(typed) == env_id


def _appended(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns further settings that may differ: later skills, and later stages of the world."""
    had, has = _each_skill(before), _each_skill(after)
    if not had or has[: len(had)] != had:
        return ()
    old, new = (stages_of(run.get(OPTION, "[]")) or (Stage(),) for run in (before, after))
    later = all(stage.at.get(SKILL, 0) >= len(had) for stage in new[len(old) :])
    return ("skills", "incremental.epochs", *([OPTION] if new[: len(old)] == old and later else []))


def _each_skill(run: Mapping[str, Any]) -> list[int]:
    """Returns the epochs of each skill; empty if all are learned at once."""
    epochs: list[int] = run.get("incremental.epochs") or []
    return epochs * run["skills"] if len(epochs) == 1 else epochs


def config_to_json(value: Any) -> Any:
    """Returns a configuration as JSON values; infinities are the texts "inf" and "-inf"."""
    if isinstance(value, Settings):
        return {name: config_to_json(getattr(value, name)) for name in hints_of(type(value))}
    if isinstance(value, Mapping):
        return {name: config_to_json(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return [config_to_json(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def config_from_json(
    data: Mapping[str, Any],  # parsed; a missing setting has the default of its class
    recipe: str,  # has the classes of the agent's settings and of the user's rewards
    typed_env_id: str | None = None,  # what the user typed; no file may say `module:Id`
    preset: str = recipes.DEFAULT_PRESET,  # another one may have another agent
) -> tuple[Config, tuple[str, ...]]:  # and the names of missing settings
    if not recipes.is_trusted(recipe):
        raise not_allowed("recipe", "recipe", recipe, ", in Python allow_import=True")
    env_id = data.get("env_id")
    reader = _Reader(recipe, preset, env_id if isinstance(env_id, str) else "")
    for key in _ALWAYS_THERE:
        if key not in data:
            raise UsageError(f"{key}: missing")
    config: Config = reader.settings(Config, data)
    named = config.env_id
    if names_a_module(named) and named != typed_env_id and not allowed_in_shell(named):
        ways = f" or --env-id {named[:80]}, in Python allow_import=True or env_id=..."
        raise not_allowed("env_id", "environment", named, ways)
    if typed_env_id and _moved(named, typed_env_id):
        config = dataclasses.replace(config, env_id=typed_env_id)
    return config, tuple(reader.missing)


def check_read_back(recipe: str, preset: str, config: Config) -> None:
    """Refuses a configuration that another process could not read back from `config.json`."""
    terms, module = recipes.terms(recipe), recipe.partition(":")[0]
    for name, settings in config.rewards.items():
        kind = type(settings)
        if settings.term.partition(":")[0] == MAIN:
            raise UsageError(
                f"reward {name}: another process cannot import {settings.term!r}\n"
                "put its class into a module of its own"
            )
        if terms.get(name) is not kind:
            cure = f"define it at the top of {module}"
            if kind.__module__ != module:
                cure += f", or import it there: from {kind.__module__} import {kind.__name__}"
            raise UsageError(
                f"reward {name}: expected settings of a class that {module} holds under its name, "
                f"got {kind.__name__} of {kind.__module__}\n{cure}"
            )
    written = config_to_json(config)
    for name, value in flatten(written).items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name}: expected what JSON holds: {error}") from error
    config_from_json(json.loads(json.dumps(written)), recipe, config.env_id, preset)


class _Reader:
    """Turns JSON values into the settings of a recipe, and lists missing ones."""

    def __init__(self, recipe: str, preset: str, env_id: str) -> None:
        self.missing: list[str] = []
        self._agent = type(recipes.resolve(recipe, preset, env_id).agent)
        self._terms = recipes.terms(recipe)

    def settings(self, kind: type[Any], data: Any, prefix: str = "") -> Any:
        """Returns settings; one that is newer than the run has the default of its class."""
        if not isinstance(data, Mapping):
            raise _refusal(prefix.rstrip(".") or "config", "an object", data)
        hints = hints_of(kind)
        for key in data:
            name = f"{prefix}{key}"
            if name in REMOVED and data[key] != REMOVED[name]:
                fixed = json.dumps(REMOVED[name])
                raise UsageError(f"{name}: this version has {fixed} alone, got {data[key]!r:.80}")
            if key not in hints and name not in REMOVED:
                raise UsageError(f"unknown setting {name[:80]!r}{suggestion(key, hints)}")
        self.missing += [f"{prefix}{key}" for key in hints if key not in data]
        stored = {key: hint for key, hint in hints.items() if key in data}
        return kind(**{k: self._value(hint, data[k], f"{prefix}{k}") for k, hint in stored.items()})

    def _value(self, hint: Any, value: Any, name: str) -> Any:
        (kind, *_) = kinds_of(hint)
        if is_mapping(kind):
            return self._rewards(value, name)
        if isinstance(kind, type) and issubclass(kind, Settings):
            return self.settings(self._agent if name == "agent" else kind, value, f"{name}.")
        try:
            return read_value(value, hint, _INFINITIES)
        except ValueError as error:
            raise _refusal(name, describe_type(hint), value) from error

    def _rewards(self, value: Any, name: str) -> dict[str, Any]:
        """Reads reward terms; their classes follow from their names, never from a path."""
        if not isinstance(value, Mapping):
            raise _refusal(name, "an object", value)
        for term in value:
            if term not in self._terms:
                raise UsageError(
                    f"{name}: expected any of {', '.join(self._terms)}, got {term[:80]!r}"
                    + suggestion(term, self._terms)
                )
        return {
            term: self.settings(self._terms[term], data, f"{term}.") for term, data in value.items()
        }


def _refusal(name: str, expected: str, value: Any) -> UsageError:
    return UsageError(f"{name}: expected {expected}, got {json.dumps(value)[:80]}")


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a stored configuration by the names that options have."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if not isinstance(value, Mapping):
            flat[key] = value
        elif key == "rewards":
            flat |= {key: list(value), **flatten(value)}
        else:
            flat |= {f"{key}.{name}": inner for name, inner in flatten(value).items()}
    return flat
