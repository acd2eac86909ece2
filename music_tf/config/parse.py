"""Reads the command line of `train`: recipe, preset, then any field of the configuration.

Loads neither TensorFlow, numpy nor MPI, so that a wrong command line is refused at once.
"""

import contextlib
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path

import tyro

from music_tf import recipes
from music_tf.config.command import Terms, options_of, rules
from music_tf.config.environments import check_env_id
from music_tf.config.fields import (
    Field,
    choices_of,
    describe_type,
    fields_of,
    is_optional,
    show_value,
    value_count,
)
from music_tf.config.names import suggestion
from music_tf.config.settings import AgentConfig, Config
from music_tf.config.start import Start, asked_start, missing_start, parts_of
from music_tf.config.stored import (
    MAY_CHANGE_ON_RESUME,
    StoredRun,
    allow_recipe,
    difference,
    read_run,
    stored_env_id,
)
from music_tf.config.tokens import Words, show_option, split
from music_tf.errors import UsageError

_OWN_OPTIONS = {
    "preset": 1,
    "run_dir": 1,
    "resume": 0,
    "allow_import": 0,
    "init_from": 1,
    "parts": 1,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """What the user asked `train` to do."""

    recipe: str
    preset: str
    config: Config
    run_dir: Path | None
    resume: bool
    arguments: tuple[str, ...]
    """The command line as typed, after the verb."""
    start: Start | None = None
    """The earlier run that a new one starts from, if any."""
    notice: str = ""
    """What to tell the user about the run that is continued."""


def parse_train(argv: Sequence[str]) -> TrainCommand:
    """Returns what a command line after `train` asks for.

    Raises:
        UsageError: Something on it is unknown, has a wrong type or is out of range.
    """
    arguments = tuple(argv)
    own = _own_recipe(arguments)
    words = split(arguments, _value_counts(own))
    resume = "resume" in words.options
    run_dir = _run_dir(words, resume)
    env_id = check_env_id(words.options["env_id"][0]) if "env_id" in words.options else ""
    stored = _stored(run_dir, words, env_id) if resume and run_dir else None
    recipe = _recipe(words.positional, stored)
    preset = _preset(words, stored)
    default = stored.config if stored else recipes.resolve(recipe, preset, env_id)
    config = _apply(default, words.options, recipe)
    if stored:
        _check_resumed(stored.config, config)
    return TrainCommand(
        recipe=recipe,
        preset=preset,
        config=config,
        run_dir=run_dir,
        resume=resume,
        arguments=arguments,
        start=_start(words, recipe, preset, config, stored),
        notice=stored.notice if stored else "",
    )


def _stored(run_dir: Path, words: Words, env_id: str) -> StoredRun:
    trusted = None
    if "allow_import" in words.options:
        trusted = stored_env_id(run_dir)
        allow_recipe(run_dir)
    return read_run(run_dir, trusted or env_id or None)


def _own_recipe(arguments: tuple[str, ...]) -> str:
    """Returns the recipe of the user's on a command line, whose module is imported from now on."""
    flags = ("--resume", "--allow-import", "--allow_import")
    for before, word in zip(("--resume", *arguments), arguments, strict=False):
        if ":" in word and not word.startswith("-") and (before[:1] != "-" or before in flags):
            recipes.import_own(word)
            return word
    return ""


def _all_fields(recipe: str) -> dict[str, Field]:
    """Returns every setting that any recipe has."""
    found: dict[str, Field] = {}
    for agent in AgentConfig.__subclasses__():
        found |= options_of(Config(agent=agent()), recipes.terms(recipe))
    return found


def _value_counts(recipe: str = "") -> dict[str, int | None]:
    fields = {name: value_count(field.hint) for name, field in _all_fields(recipe).items()}
    return {**_OWN_OPTIONS, **fields}


def _run_dir(words: Words, resume: bool) -> Path | None:
    if "run_dir" in words.options:
        (text,) = words.options["run_dir"]
        if not text or "\0" in text:
            raise UsageError(f"--run-dir: expected a directory, got {text[:80]!r}")
        return Path(text)
    if resume:
        raise UsageError("--resume: needs --run-dir DIR, the run to continue")
    return None


def _recipe(positional: tuple[str, ...], stored: StoredRun | None) -> str:
    if not positional and stored:
        return stored.recipe
    if not positional:
        raise UsageError(
            "RECIPE: expected one right after train, music-tf recipes lists them\n"
            "for example: music-tf train ddpg_her"
        )
    recipe, *others = positional
    recipes.resolve(recipe)
    if others:
        raise UsageError(
            f"unexpected word {others[0][:80]!r} after the recipe {recipe}"
            + suggestion(others[0], map(show_option, _value_counts()))
        )
    if stored and stored.recipe != recipe:
        raise UsageError(f"RECIPE: the run to resume is one of {stored.recipe}, got {recipe}")
    return recipe


def _preset(words: Words, stored: StoredRun | None) -> str:
    started_with = stored.preset if stored else recipes.DEFAULT_PRESET
    (preset,) = words.options.get("preset", (started_with,))
    if stored and preset != stored.preset:
        raise UsageError(f"--preset: the run to resume has {stored.preset}, got {preset[:80]!r}")
    return preset


def _start(
    words: Words, recipe: str, preset: str, config: Config, stored: StoredRun | None
) -> Start | None:
    """Returns what a new run starts from; a run to resume has taken it over already."""
    if stored:
        began = split(stored.arguments, _value_counts(recipe)).options
        for name in ("init_from", "parts"):
            if words.options.get(name, began.get(name)) != began.get(name):
                raise UsageError(
                    "--resume: the run has taken over its parts, leave out --init-from and --parts"
                )
        return None
    source = config.start
    start = asked_start(words, source, config.env_id, parts_of(recipes.terms(recipe).values()))
    if start is None and source is not None:
        options = "" if preset == recipes.DEFAULT_PRESET else f" --preset {preset}"
        raise missing_start(recipe, source, config.env_id, options)
    return start


def _apply(default: Config, options: dict[str, tuple[str, ...]], recipe: str) -> Config:
    """Returns the configuration with the typed fields set."""
    terms = recipes.terms(recipe)
    fields = options_of(default, terms)
    typed = {name: values for name, values in options.items() if name not in _OWN_OPTIONS}
    for name in typed:
        if name not in fields:
            raise UsageError(f"{show_option(name)}: the recipe {recipe} has no such setting")
    words = {name: _as_words(fields[name], values) for name, values in typed.items()}
    config = _tyro(default, terms, [word for option in words.values() for word in option])
    if config is None:
        for name, option in words.items():
            if _tyro(default, terms, option) is None:
                raise UsageError(_type_fault(fields[name], typed[name]))
        raise UsageError("the options do not fit together")
    for name in typed:
        term = name.partition(".")[0]
        if term in terms and term not in config.rewards:
            raise UsageError(
                f"{show_option(name)}: the run does not pay the reward {term}\n"
                f"add it with --rewards {' '.join([*config.rewards, term])}"
            )
    return config


def _tyro(default: Config, terms: Terms, words: list[str]) -> Config | None:
    """Returns the parsed configuration, or None where a value has a wrong type."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            parsed: Config = tyro.cli(
                type(default),
                default=default,
                args=words,
                console_outputs=False,
                config=(tyro.conf.FlagConversionOff,),
                registry=rules(terms),
            )
    except SystemExit:
        return None
    return parsed


def _as_words(field: Field, values: tuple[str, ...]) -> list[str]:
    """Returns an option as tyro reads it, with None, True and False in any letter case."""
    special: dict[str, str] = {}
    if is_optional(field.hint):
        special["none"] = "None"
    if field.hint is bool:
        special |= {"true": "True", "false": "False"}
    written = [special.get(value.lower(), value) for value in values]
    option = show_option(field.name)
    return [f"{option}={written[0]}"] if len(written) == 1 else [option, *written]


def _type_fault(field: Field, values: tuple[str, ...]) -> str:
    came = " ".join(values)[:80]
    option, expected = show_option(field.name), describe_type(field.hint)
    choices = choices_of(field.hint)
    wrong = [value for value in values if value not in choices]
    hint = suggestion(wrong[0], choices) if choices and wrong else ""
    return (
        f"{option}: expected {expected}, got {came!r}{hint}\n"
        f"{field.documentation[:300]} Now {show_value(field.value)}."
    )


def _check_resumed(stored: Config, asked: Config) -> None:
    changed = [name for name in difference(stored, asked) if name not in MAY_CHANGE_ON_RESUME]
    if not changed:
        return
    before = {field.name: field.value for field in fields_of(stored)}
    after = {field.name: field.value for field in fields_of(asked)}
    lines = [
        f"{show_option(name)}: the run has {show_value(before[name])}, "
        f"got {show_value(after[name])}"[:200]
        for name in changed[:5]
    ]
    allowed = ", ".join(map(show_option, MAY_CHANGE_ON_RESUME))
    raise UsageError(
        f"--resume continues a run exactly, only {allowed} may change\n" + "\n".join(lines)
    )
