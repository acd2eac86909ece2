"""A run's configuration as JSON, which is trusted no more than any other file.

Reading checks every key and type, and never imports what a file names: the classes follow from
the recipe and the names of its rewards. A recipe or an environment in a module of the user's must
be typed again, or allowed with --allow-import.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin

from music_tf import recipes
from music_tf.config.fields import (
    Settings,
    describe_type,
    hints_of,
    is_optional,
    show_option,
    show_value,
    without_none,
)
from music_tf.config.names import names_a_module, suggestion
from music_tf.config.settings import Config
from music_tf.errors import UsageError
from music_tf.storage.files import links_and_devices, read_at_most

CONFIG_NAME = "config.json"
LATEST = "latest"
MAY_CHANGE_ON_RESUME = ("epochs", "max_minutes", "hang_after")
_SHOWN = 5
"""Settings that do not change what a run computes up to a given epoch."""
_LARGEST_FILE = 1_000_000
_ALWAYS_THERE = ("env_id", "seed", "workers", "agent", "rewards")
_INFINITIES = {"inf": float("inf"), "-inf": float("-inf")}


class StoredRun(NamedTuple):
    """What a run directory says about its run."""

    recipe: str
    preset: str
    arguments: tuple[str, ...]
    config: Config
    init_from: Mapping[str, Any] | None = None
    """Where the run took parts over from, and which: run, checkpoint, epoch, env_id, sha256, parts,
    and `before`, what had been taken by then; older versions wrote less."""
    missing: tuple[str, ...] = ()
    """Settings that an older version did not write; they have their general defaults."""

    @property
    def notice(self) -> str:
        """A line about what is missing, empty where nothing is."""
        if not self.missing:
            return ""
        text = f"{CONFIG_NAME} is of an older version, defaults for: {', '.join(self.missing)}"
        return text[:200]


def config_to_json(config: Config) -> dict[str, Any]:
    """Returns the configuration as JSON values; infinities are the texts "inf" and "-inf"."""
    tree: dict[str, Any] = _encode(config)
    return tree


def config_from_json(
    data: Mapping[str, Any], recipe: str, typed_env_id: str | None = None
) -> tuple[Config, tuple[str, ...]]:
    """Reads the configuration that `config_to_json` wrote for a run of `recipe`.

    Args:
        data: Parsed JSON; a setting that is missing has the default of its class.
        recipe: Decides which settings an agent has, and which rewards there are beside ours.
        typed_env_id: The id that the user typed, if any: `module:Id` is taken from nowhere else.

    Returns:
        The configuration, and the names of the settings that were missing.

    Raises:
        UsageError: A key is unknown, one that every version writes is missing, or a value has a
            wrong type or range.
    """
    if not recipes.is_trusted(recipe):
        raise UsageError(
            f"recipe: a file may not import a module, and it asks for {recipe[:80]!r}\n"
            "if that recipe is yours, add --allow-import"
        )
    reader = _Reader(recipe)
    for key in _ALWAYS_THERE:
        if key not in data:
            raise UsageError(f"{key}: missing")
    config: Config = reader.settings(Config, data)
    if names_a_module(config.env_id) and config.env_id != typed_env_id:
        raise UsageError(
            f"env_id: a file may not import a module, and it asks for {config.env_id[:80]!r}\n"
            f"if that environment is yours, add --allow-import or --env-id {config.env_id[:80]}"
        )
    return config, tuple(reader.missing)


def refuse_changes(stored: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuses to resume a run as another one; a setting that it lacks is newer, and may be any.

    Args:
        stored: What `run_to_json` wrote.
        asked: The same of the run as it shall go on.

    Raises:
        UsageError: More differs than `MAY_CHANGE_ON_RESUME`; each setting with both values.
    """
    before, after = (
        {"RECIPE": run.get("recipe"), "preset": run.get("preset"), **flatten(run["config"])}
        for run in (stored, asked)
    )
    changed = [
        name
        for name, value in before.items()
        if value != after.get(name) and name not in MAY_CHANGE_ON_RESUME
    ]
    if changed:
        lines = [
            f"{name if name == 'RECIPE' else show_option(name)}: "
            f"the run has {show_value(before[name])}, got {show_value(after.get(name))}"[:200]
            for name in changed[:_SHOWN]
        ]
        allowed = ", ".join(map(show_option, MAY_CHANGE_ON_RESUME))
        raise UsageError(
            f"--resume continues a run exactly, only {allowed} may change\n" + "\n".join(lines)
        )


def run_to_json(run: StoredRun) -> dict[str, Any]:
    """Returns what `read_run` needs; a run directory's file may hold more beside it."""
    return {
        "recipe": run.recipe,
        "preset": run.preset,
        "arguments": list(run.arguments),
        "config": config_to_json(run.config),
        "init_from": run.init_from,
    }


def runs_root() -> Path:
    """Returns the directory that holds all runs without a directory of their own."""
    return Path(os.environ.get("MUSIC_TF_RUNS") or "runs")


def named_run(text: str) -> Path | None:
    """Returns the run directory that a path or a name under the root means, such as `latest`."""
    for directory in (Path(text), runs_root() / text) if text else ():
        if os.path.isfile(directory / CONFIG_NAME):  # False where `is_file` raises: private folders
            return directory
    return None


def read_run(directory: Path, typed_env_id: str | None = None) -> StoredRun:
    """Reads the configuration of a run directory.

    Raises:
        UsageError: There is none, it is damaged, or the directory leads elsewhere.
    """
    path = directory / CONFIG_NAME
    data = _read_json(path)
    for odd in links_and_devices(directory):
        raise UsageError(
            f"{odd[:300]}: a run directory holds plain files and folders, this is a link or device"
        )
    for key, kind in {"recipe": str, "preset": str, "arguments": list, "config": dict}.items():
        if not isinstance(data.get(key), kind):
            raise UsageError(f"{path}: expected a {kind.__name__} under {key!r}")
    try:
        config, missing = config_from_json(data["config"], data["recipe"], typed_env_id)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    arguments = tuple(str(argument) for argument in data["arguments"])
    return StoredRun(data["recipe"], data["preset"], arguments, config, _start(data, path), missing)


def stored_env_id(directory: Path) -> str | None:
    """Returns the environment that a run directory names, for a user who trusts it.

    Raises:
        UsageError: There is no run.
    """
    with contextlib.suppress(AttributeError):
        env_id = _read_json(directory / CONFIG_NAME).get("config", {}).get("env_id")
        return env_id if isinstance(env_id, str) else None
    return None


def allow_recipe(directory: Path) -> None:
    """Imports the recipe that a run directory names, for a user who trusts it.

    Raises:
        UsageError: There is no run, or no such recipe.
    """
    recipe = _read_json(directory / CONFIG_NAME).get("recipe")
    if isinstance(recipe, str) and not recipes.is_trusted(recipe):
        recipes.import_own(recipe)


def stored_start(directory: Path) -> Mapping[str, Any] | None:
    """Returns where the run of a directory took parts over from; None where it began anew.

    Raises:
        UsageError: There is no run, or its record is damaged.
    """
    path = directory / CONFIG_NAME
    return _start(_read_json(path), path)


def _start(data: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    init_from = data.get("init_from")
    if not isinstance(init_from, dict | None):
        raise UsageError(f"{path}: expected an object or null under 'init_from'")
    return init_from


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = read_at_most(path, _LARGEST_FILE)
    except OSError as error:
        raise UsageError(
            f"{path.parent}: expected a run directory with a {CONFIG_NAME} ({error.strerror})"
        ) from error
    try:
        data = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not valid JSON: {str(error)[:120]}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path}: expected a JSON object")
    return data


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _encode(value: Any) -> Any:
    if isinstance(value, Settings):
        return {name: _encode(getattr(value, name)) for name in hints_of(type(value))}
    if isinstance(value, Mapping):
        return {name: _encode(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if isinstance(value, float) and value in _INFINITIES.values():
        return str(value)
    return value


class _Reader:
    """Turns JSON values into the settings of a recipe, and remembers what was missing."""

    def __init__(self, recipe: str) -> None:
        self.missing: list[str] = []
        self._agent = type(recipes.resolve(recipe).agent)
        self._terms = recipes.terms(recipe)

    def settings(self, kind: type[Any], data: Any, prefix: str = "") -> Any:
        """Returns settings; a missing one has the default of its class, not of the recipe.

        The default of a newer setting is what every run did before there was one.
        """
        if not isinstance(data, Mapping):
            _refuse(prefix.rstrip(".") or "config", "an object", data)
        hints = hints_of(kind)
        for key in data:
            if key not in hints:
                raise UsageError(
                    f"unknown setting {f'{prefix}{key}'[:80]!r}{suggestion(key, hints)}"
                )
        self.missing += [f"{prefix}{key}" for key in hints if key not in data]
        return kind(
            **{
                key: self._value(hint, data[key], f"{prefix}{key}")
                for key, hint in hints.items()
                if key in data
            }
        )

    def _value(self, hint: Any, value: Any, name: str) -> Any:
        inner = without_none(hint)
        if is_optional(hint) and value is None:
            return None
        if get_origin(inner) is Mapping:
            return self._rewards(value, name)
        if isinstance(inner, type) and issubclass(inner, Settings):
            return self.settings(self._agent if name == "agent" else inner, value, f"{name}.")
        if get_origin(inner) is tuple:
            return self._tuple(hint, get_args(inner), value, name)
        if get_origin(inner) is Literal:
            fits = isinstance(value, str) and value in get_args(inner)
        elif inner is float:
            value = _as_float(value)
            fits = isinstance(value, float)
        else:
            fits = type(value) is inner
        if not fits:
            _refuse(name, describe_type(hint), value)
        return value

    def _rewards(self, value: Any, name: str) -> dict[str, Any]:
        """Reads reward terms; their classes follow from their names, never from a path."""
        if not isinstance(value, Mapping):
            _refuse(name, "an object", value)
        for term in value:
            if term not in self._terms:
                known = ", ".join(self._terms)
                raise UsageError(
                    f"{name}: expected any of {known}, got {term[:80]!r}"
                    + suggestion(term, self._terms)
                )
        return {
            term: self.settings(self._terms[term], data, f"{term}.") for term, data in value.items()
        }

    def _tuple(self, hint: Any, members: tuple[Any, ...], value: Any, name: str) -> Any:
        count = len(value) if isinstance(value, list) else -1
        kinds = [members[0]] * count if Ellipsis in members else list(members)
        if len(kinds) != count:
            _refuse(name, describe_type(hint), value)
        return tuple(self._value(kind, item, name) for kind, item in zip(kinds, value, strict=True))


def _as_float(value: Any) -> Any:
    """Returns a float where the JSON value stands for one, else the value as it is."""
    if isinstance(value, str):
        return _INFINITIES.get(value, value)
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return value
    return value


def _refuse(name: str, expected: str, value: Any) -> NoReturn:
    raise UsageError(f"{name}: expected {expected}, got {json.dumps(value)[:80]}")


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a stored configuration by the names that options have."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if not isinstance(value, Mapping):
            flat[key] = value
        elif key == "rewards":
            flat[key] = list(value)
            flat |= flatten(value)
        else:
            flat |= {f"{key}.{name}": inner for name, inner in flatten(value).items()}
    return flat
