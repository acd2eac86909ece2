"""Published settings, one a file: a docstring, CONFIG (preset `paper`) and LAPTOP.

A recipe may also define PER_ENVIRONMENT, settings by environment id and dotted field name that
hold under both presets, and LAPTOP_PER_ENVIRONMENT for that preset alone; and SOURCE, the earlier
run that it starts from, with LAPTOP_SOURCE in its place for that preset. A new file here is a new
recipe; nothing else lists them.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType

from music_tf.config.fields import with_fields
from music_tf.config.names import suggestion
from music_tf.config.settings import Config
from music_tf.config.start import Source
from music_tf.errors import UsageError

PRESETS = ("laptop", "paper")
DEFAULT_PRESET = "laptop"


def names() -> tuple[str, ...]:
    """Returns the recipes, in alphabetical order."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def describe(name: str) -> str:
    """Returns the first line of a recipe's documentation."""
    return (_load(name).__doc__ or "").strip().splitlines()[0]


def resolve(name: str, preset: str = DEFAULT_PRESET, env_id: str = "") -> Config:
    """Returns the configuration of a recipe for an environment, by default the recipe's own.

    Raises:
        UsageError: There is no such recipe or preset.
    """
    module = _load(name)
    if preset not in PRESETS:
        raise UsageError(
            f"--preset: expected one of {', '.join(PRESETS)}, got {preset[:80]!r}"
            f"{suggestion(preset, PRESETS)}"
        )
    config: Config = module.LAPTOP if preset == "laptop" else module.CONFIG
    chosen = env_id or config.env_id
    tables = ["PER_ENVIRONMENT"] + ["LAPTOP_PER_ENVIRONMENT"] * (preset == "laptop")
    fields: dict[str, object] = {"env_id": chosen}
    for table in tables:
        overrides: Mapping[str, Mapping[str, object]] = getattr(module, table, {})
        fields |= overrides.get(chosen, {})
    return with_fields(config, fields)


def source(name: str, preset: str = DEFAULT_PRESET) -> Source | None:
    """Returns the earlier run that a recipe cannot do without, if there is one."""
    module = _load(name)
    needed: Source | None = getattr(module, "SOURCE", None)
    return getattr(module, "LAPTOP_SOURCE", needed) if preset == "laptop" else needed


def _load(name: str) -> ModuleType:
    known = names()
    if name not in known:
        raise UsageError(
            f"RECIPE: expected one of the {len(known)} that music-tf recipes lists, "
            f"got {name[:80]!r}{suggestion(name, known)}"
        )
    return importlib.import_module(f"{__name__}.{name}")
