"""Recipes: functions of preset and environment that return a `Config`.

Every public function `(preset, env_id)` of a module in this folder is a recipe. `music-tf recipes`
prints the first line of its docstring, at most 52 letters. The default of `env_id` is its
environment, and the type of `preset` lists its presets. The settings of a reward term are a
subclass of `TermConfig` beside its recipe. A module of your own may hold all of these; its recipes
are called `module:function`. The modules here import the standard library alone.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Literal, TypeAlias

from music_tf.config import agents as own_agents
from music_tf.config import terms as own_terms
from music_tf.config import world
from music_tf.config.agents import AgentConfig
from music_tf.config.names import ROBOTICS, suggestion
from music_tf.config.settings import Config
from music_tf.config.terms import TermConfig
from music_tf.errors import FROM_USERS, MusicError, UsageError, error_line
from music_tf.hints import choices_of, hints_of
from music_tf.process.tensorflow_start import without_chatter

Preset: TypeAlias = Literal["laptop", "paper"]
PRESETS = choices_of(Preset)
DEFAULT_PRESET = "laptop"

Recipe: TypeAlias = Callable[..., Config]

_TRUSTED: set[str] = set()


def names() -> tuple[str, ...]:
    return tuple(sorted(_recipes(_modules())))


def describe(name: str, whole: bool = False) -> str:
    """Returns the first line of a recipe's docstring, or the whole text."""
    text = inspect.getdoc(_find(name)) or ""
    return text if whole else text.partition("\n")[0]


def presets(name: str) -> tuple[str, ...]:
    """Returns the presets of a recipe, the default one first."""
    return choices_of(hints_of(_find(name)).get("preset")) or PRESETS


def resolve(name: str, preset: str = DEFAULT_PRESET, env_id: str = "") -> Config:
    """Returns the configuration of a recipe; `env_id` defaults to the recipe's environment."""
    recipe, valid = _find(name), presets(name)
    if preset not in valid:
        raise UsageError(
            f"--preset: expected one of {', '.join(valid)}, got {preset[:80]!r}"
            f"{suggestion(preset, valid)}"
        )
    usual = inspect.signature(recipe).parameters["env_id"].default
    plain = env_id.removeprefix("gymnasium_robotics:")  # recipes have ids without a module
    env_id = plain if plain in ROBOTICS else env_id
    try:
        config = recipe(preset, env_id or (usual if isinstance(usual, str) else Config.env_id))
    except FROM_USERS as error:
        if isinstance(error, MusicError) or ":" not in name:
            raise
        raise UsageError(f"{name}: the recipe fails: {error_line(error)}") from error
    if not isinstance(config, Config):
        raise UsageError(f"{name}: expected a recipe that returns a Config, got {config!r:.80}")
    return config


def terms(recipe: str = "") -> dict[str, type[TermConfig]]:
    """Returns the settings of reward terms by name: ours, and those of the user's recipe module."""
    by_name: dict[str, type[TermConfig]] = {}
    of_user = [importlib.import_module(recipe.partition(":")[0])] if ":" in recipe else []
    for module in (own_terms, *_modules(), *of_user):
        for kind in vars(module).values():
            if not (isinstance(kind, type) and issubclass(kind, TermConfig)):
                continue
            if not hasattr(kind, "term"):  # an abstract base class
                continue
            if kind.name == own_terms.ENTROPY or by_name.setdefault(kind.name, kind) is not kind:
                raise UsageError(f"{module.__name__}: there is a reward {kind.name!r} already")
    return by_name


def agents() -> list[type[AgentConfig]]:
    modules = (own_agents, *_modules())
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    ours = (kind for kind in kinds if issubclass(kind, AgentConfig) and hasattr(kind, "learner"))
    return list(dict.fromkeys(ours))


def import_own(name: str) -> None:
    """Imports the module of a recipe that the user typed or trusts; never one named by a file."""
    with without_chatter():  # of TensorFlow, which a reward imports
        _find(name)
    _TRUSTED.add(name)


def is_trusted(name: str) -> bool:
    """Whether a stored run may use this recipe: it is ours, or the user names or allows it."""
    return ":" not in name or name in _TRUSTED or world.allowed_in_shell(name)


def _modules() -> list[ModuleType]:
    listed = [module.name for module in pkgutil.iter_modules(__path__)]
    listed.sort(key=lambda name: (name != "music", name))  # the order of tables and pages
    return [importlib.import_module(f"{__name__}.{name}") for name in listed]


def _recipes(modules: Iterable[ModuleType]) -> dict[str, Recipe]:
    """Returns the public functions of preset and environment that modules define."""
    return {
        name: function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and list(inspect.signature(function).parameters) == ["preset", "env_id"]
    }


def _find(name: str) -> Recipe:
    module, colon, function = name.partition(":")
    if not colon:
        by_name, function = _recipes(_modules()), name
        where = f"one of the {len(by_name)} that music-tf recipes lists"
    else:
        by_name = _recipes([world.import_own(module, "RECIPE")])
        where = f"one of {len(by_name)} that {module[:80]} defines"
    if function not in by_name:
        raise UsageError(
            f"RECIPE: expected {where}, got {function[:80]!r}{suggestion(function, by_name)}"
        )
    return by_name[function]
