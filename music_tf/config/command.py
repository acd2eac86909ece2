"""Command lines: what a verb's dataclass says of its options is read, explained and refused here.

tyro converts values and writes the help. A wrong command line is told in our own words: what was
expected, what came, and the nearest valid name.
"""

import contextlib
import dataclasses
import functools
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from music_tf import recipes
from music_tf.config.fields import (
    Field,
    Settings,
    choices_of,
    describe_range,
    describe_type,
    documentation,
    fields_of,
    hints_of,
    is_optional,
    show_option,
    show_value,
    value_count,
)
from music_tf.config.names import check_env_id, nearest, suggestion
from music_tf.config.settings import AgentConfig, Config, TermConfig
from music_tf.config.start import Start, asked_start, missing_start, parts_of
from music_tf.config.stored import (
    LATEST,
    StoredRun,
    allow_recipe,
    named_run,
    read_run,
    refuse_changes,
    run_to_json,
    stored_env_id,
)
from music_tf.errors import UsageError

Verb = TypeVar("Verb", bound="Options")
Terms = Mapping[str, type[TermConfig]]

_RENAMED = {
    "music.agent": "world.agent",
    "music.surrounding": "world.surrounding",
    "skill.components": "world.descriptor",
}
POSITIONAL = get_args(tyro.conf.Positional[str])[1]
"""Marks a field that is a word by its place, without a name in front."""
_SWITCHES = (tyro.conf.FlagCreatePairsOff,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """What may follow a verb; a subclass has a field for each option, positional ones first."""

    @classmethod
    def shown(cls, name: str) -> str:
        """Returns an option as it is typed."""
        return show_option(name)


class Words(NamedTuple):
    """A command line taken apart; option names as in the configuration, with underscores."""

    positional: tuple[str, ...]
    options: dict[str, tuple[str, ...]]


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the user wants to read about a verb instead of running it."""
    return "--help" in arguments or "-h" in arguments


def read(kind: type[Verb], verb: str, arguments: Sequence[str], example: str) -> Verb:
    """Returns the options of a verb; `--help` writes what they are, and ends the process.

    Args:
        kind: Says which options there are. One positional field is a word, or several words.
        verb: Its name.
        arguments: What was typed after it.
        example: A right command line after `music-tf`.

    Raises:
        UsageError: An option is unknown, or a value is missing or of another kind.
    """
    if asks_for_help(arguments):
        explain(kind, verb)
    fields = {
        name: Field(name, hint, None, documentation(kind).get(name, ""))
        for name, hint in hints_of(kind).items()
    }
    (place,) = [
        name for name, field in fields.items() if POSITIONAL in get_args(field.hint)[1:]
    ] or [""]
    options = {name: field for name, field in fields.items() if name != place}
    counts = {n: 0 if f.hint is bool else value_count(f.hint) for n, f in options.items()}
    words = split(arguments, counts)
    several = bool(place) and value_count(fields[place].hint) is None
    if not several and len(words.positional) != bool(place):
        expected = f"{place.upper()}: expected one" if place else f"{verb}: expected no arguments"
        raise UsageError(
            f"{expected}, got {' '.join(words.positional)[:80]!r}\nfor example: music-tf {example}"
        )
    found: Verb = _converted(kind, options, words)
    return found


def explain(kind: type[Any], verb: str, default: Any = None, terms: Terms | None = None) -> None:
    """Writes what the options of a verb are, and ends the process."""
    given = {} if default is None else {"default": default}
    tyro.cli(
        kind,
        prog=f"music-tf {verb}",
        args=["--help"],
        config=_SWITCHES,
        registry=_rules(terms or {}),
        **given,
    )


def split(arguments: Sequence[str], counts: Mapping[str, int | None]) -> Words:
    """Splits a command line; `--name V`, `--name=V`, and `-` or `_` in names are the same.

    Args:
        arguments: The words of the command line.
        counts: How many values each option takes; None for any number.

    Raises:
        UsageError: An option is unknown or lacks values.
    """
    positional: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not _is_option(word):
            positional.append(word)
            continue
        written, equals, value = word.partition("=")
        name = written[2:].replace("-", "_")
        if not written.startswith("--") or name not in counts:
            raise _unknown(written, counts)
        values = [value] if equals else []
        wanted = counts[name]
        while rest and not _is_option(rest[0]) and (wanted is None or len(values) < wanted):
            values.append(rest.pop(0))
        if wanted == 0 and values:
            raise UsageError(f"{show_option(name)}: takes no value")
        if wanted is not None and len(values) != wanted:
            expected = "a value" if wanted == 1 else f"{wanted} values"
            raise UsageError(
                f"{show_option(name)}: expected {expected}, got {len(values) or 'none'}"
            )
        options[name] = tuple(values)
    return Words(tuple(positional), options)


def _unknown(written: str, known: Iterable[str]) -> UsageError:
    """Returns the fault of an unknown option, with the nearest known one."""
    name = written.lstrip("-").replace("-", "_")
    fault = f"unknown option {written[:80]!r}"
    if name in _RENAMED:
        return UsageError(f"{fault}\nit is called {show_option(_RENAMED[name])} now")
    inside = [option for option in known if option.endswith(f".{name}")] if name else []
    if inside:
        return UsageError(f"{fault}\ndid you mean {' or '.join(map(show_option, inside))}?")
    found = nearest(name, known)
    cure = f"did you mean {show_option(found)}?" if found else "--help lists the valid ones"
    return UsageError(f"{fault}\n{cure}")


def _is_option(word: str) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def _converted(
    kind: type[Any],
    fields: Mapping[str, Field],
    words: Words,
    default: Any = None,
    terms: Terms | None = None,
) -> Any:
    """Returns what tyro makes of words, or says which option has a value of another kind."""
    parse = functools.partial(_tyro, kind, words.positional, default, terms or {})
    typed = {name: _as_typed(fields[name], given) for name, given in words.options.items()}
    found = parse([word for option in typed.values() for word in option])
    if found is not None:
        return found
    for name, option in typed.items():
        if parse(option) is None:
            raise _wrong_value(fields[name], words.options[name])
    raise UsageError("the options do not fit together")


def _tyro(
    kind: type[Any], positional: Sequence[str], default: Any, terms: Terms, words: list[str]
) -> Any:
    """Returns the parsed command line, or None where a value has a wrong type."""
    given = {} if default is None else {"default": default}
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return tyro.cli(
                kind,
                args=[*positional, *words],
                console_outputs=False,
                config=_SWITCHES,
                registry=_rules(terms),
                **given,
            )
    except SystemExit:
        return None


def _as_typed(field: Field, values: Sequence[str]) -> list[str]:
    """Returns an option as tyro reads it, with None, True and False in any letter case."""
    special: dict[str, str] = {}
    if is_optional(field.hint):
        special["none"] = "None"
    if field.hint is bool:
        special |= {"true": "True", "false": "False"}
    written = [special.get(value.lower(), value) for value in values]
    option = show_option(field.name)
    return [f"{option}={written[0]}"] if len(written) == 1 else [option, *written]


def _wrong_value(field: Field, values: Sequence[str]) -> UsageError:
    choices = choices_of(field.hint)
    wrong = [value for value in values if value not in choices]
    hint = suggestion(wrong[0], choices) if choices and wrong else ""
    return UsageError(
        f"{show_option(field.name)}: expected {describe_type(field.hint)}, "
        f"got {' '.join(values)[:80]!r}{hint}\n{field.documentation[:300]}"
        + ("" if field.value is None else f" Now {show_value(field.value)}.")
    )


def _rules(terms: Terms) -> ConstructorRegistry:
    """Returns what tyro has to know of settings: their texts and ranges, and the reward terms.

    `--rewards` picks among the terms, each of which has its options. One that the configuration
    does not pay starts from its own defaults.
    """
    registry = ConstructorRegistry()

    @registry.struct_rule
    def settings(info: StructTypeInfo) -> StructConstructorSpec | None:
        default = info.default if isinstance(info.default, Settings) else None
        kind: Any = info.type if default is None else type(default)
        if not (isinstance(kind, type) and issubclass(kind, Settings)):
            return None
        texts, fields = documentation(kind), []
        for name, hint in hints_of(kind).items():
            value = _default_of(kind, name) if default is None else getattr(default, name)
            text = " ".join(filter(None, (texts.get(name, ""), describe_range(hint))))
            if isinstance(value, Mapping):
                fields.append(StructFieldSpec(name, _names(terms), tuple(value), text))
                fields += [
                    StructFieldSpec(term, member, value.get(term, member()))
                    for term, member in terms.items()
                ]
                continue
            if hint is bool and not issubclass(kind, Options):
                hint = Annotated[bool, tyro.conf.FlagConversionOff]  # noqa: PLW2901
            fields.append(StructFieldSpec(name, hint, value, text))
        if isinstance(default, Config):
            return StructConstructorSpec(
                functools.partial(_with_rewards, default, terms), tuple(fields)
            )
        return StructConstructorSpec(kind, tuple(fields))

    return registry


def _default_of(kind: Any, name: str) -> Any:
    field = kind.__dataclass_fields__[name]
    return tyro.MISSING if field.default is dataclasses.MISSING else field.default


def _names(terms: Terms) -> Any:
    """Returns the type of `--rewards`."""
    return tuple[Literal[tuple(terms)], ...]  # type: ignore[misc]


def _with_rewards(
    default: Config, terms: Terms, /, *, rewards: Sequence[str], **values: Any
) -> Config:
    """Returns the configuration with those of the parsed terms that are to be paid."""
    found = {term: values.pop(term) for term in terms}
    if not rewards or len(set(rewards)) < len(rewards):
        raise UsageError(
            f"--rewards: expected at least one of {', '.join(terms)}, each once, "
            f"got {' '.join(rewards)[:80]!r}"
        )
    return dataclasses.replace(default, rewards={term: found[term] for term in rewards}, **values)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train(Options):
    """What may follow `train`. Every setting of the recipe is an option too."""

    recipe: Annotated[str, POSITIONAL, tyro.conf.arg(metavar="RECIPE")] = ""
    """One that music-tf recipes lists, or module:function of yours."""
    preset: str = recipes.DEFAULT_PRESET
    """Sizes: laptop is for two cores, paper as published; some recipes have more."""
    run_dir: Path | None = None
    """Where the run goes; default runs/ENV/RECIPE/seedN-TIME. $MUSIC_TF_RUNS replaces runs/, and
    latest is the newest there."""
    resume: bool = False
    """Continue the run in --run-dir; only --epochs, --max-minutes and --hang-after may change."""
    allow_import: bool = False
    """With --resume: import the modules of your own recipe and environment that the run names;
    without it a file makes nothing be imported."""
    init_from: str | None = None
    """Start from the latest checkpoint of another run, or from a folder of weights."""
    parts: str | None = None
    """What to take over from it, as in actor,critic; some recipes know theirs."""
    config: Annotated[Config, tyro.conf.arg(name="")] = dataclasses.field(default_factory=Config)


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


def train_help(arguments: Sequence[str]) -> None:
    """Explains `train`, with the defaults of a recipe where one is named, and ends the process."""
    own = _own_recipe(arguments)
    chosen = next((word for word in arguments if word in (*recipes.names(), own)), "")
    terms = recipes.terms(own)
    config = recipes.resolve(chosen) if chosen else Config()
    if not chosen:
        names = recipes.names()
        width = max(map(len, names))
        listed = [f"  {name:{width}}  {recipes.describe(name)}" for name in names]
        sys.stdout.write("\n".join([*_HEAD, *listed, "", ""]))
    else:
        sys.stdout.write(f"{chosen}: {recipes.describe(chosen)}\n")
        if config.start is not None:
            parts = ", ".join(config.start.parts)
            sys.stdout.write(
                f"needs --init-from, a run of {config.start.recipe}; takes over {parts}\n"
            )
        sys.stdout.write("\n")
    explain(Train, f"train {chosen or 'RECIPE'}", Train(recipe=chosen, config=config), terms)


_HEAD = (
    "trains a recipe, on as many MPI ranks as music-tf launch -n N starts",
    "",
    "  music-tf train ddpg_her --env-id FetchReach-v4 --epochs 10",
    "  music-tf train ddpg_music --seed 1 --max-minutes 30 --music.learning-rate 3e-4",
    "  music-tf train --run-dir runs/FetchPush-v4/ddpg_her/seed0-... --resume --epochs 100",
    "",
    "below are the general defaults; music-tf train RECIPE --help shows those of a recipe:",
)


def parse_train(argv: Sequence[str]) -> TrainCommand:
    """Returns what a command line after `train` asks for.

    Raises:
        UsageError: Something on it is unknown, has a wrong type or is out of range.
    """
    own = _own_recipe(argv)
    every = _every_option(recipes.terms(own))
    words = split(argv, {name: _count_of_train(field) for name, field in every.items()})
    given = words.options
    if "run_dir" in given and (not given["run_dir"][0] or "\0" in given["run_dir"][0]):
        raise UsageError(f"--run-dir: expected a directory, got {given['run_dir'][0][:80]!r}")
    run_dir = _run_dir(given)
    stored = _stored_run(given, run_dir) if "resume" in given else None
    recipe = _recipe(words.positional, stored, every)
    preset = given.get("preset", (stored.preset if stored else recipes.DEFAULT_PRESET,))[0]
    env_id = check_env_id(given["env_id"][0]) if "env_id" in given else ""
    default = stored.config if stored else recipes.resolve(recipe, preset, env_id)
    terms = recipes.terms(stored.recipe if stored else recipe)
    fields = _options_of(default, terms)
    for name in given:
        if name not in fields:
            raise UsageError(f"{show_option(name)}: the recipe {recipe} has no such setting")
    read: Train = _converted(
        Train, fields, words, Train(recipe=recipe, preset=preset, config=default), terms
    )
    _refuse_unpaid(given, read.config, terms)
    if stored:
        asked = stored._replace(recipe=recipe, preset=preset, config=read.config)
        refuse_changes(run_to_json(stored), run_to_json(asked))
    return TrainCommand(
        recipe=recipe,
        preset=preset,
        config=read.config,
        run_dir=run_dir,
        resume=read.resume,
        arguments=tuple(argv),
        start=_start(read, stored, terms),
        notice=stored.notice if stored else "",
    )


def _own_recipe(arguments: Sequence[str]) -> str:
    """Returns the recipe of the user's on a command line, whose module is imported from now on."""
    flags = ("--resume", "--allow-import", "--allow_import", "--help", "-h")
    for before, word in zip(("-h", *arguments), arguments, strict=False):
        if ":" in word and not word.startswith("-") and (before[:1] != "-" or before in flags):
            recipes.import_own(word)
            return word
    return ""


def _options_of(config: Config, terms: Terms) -> dict[str, Field]:
    """Returns every option of `train` by its name, those of terms that are not paid as well."""
    texts = documentation(Train)
    own = {name: Field(name, hint, None, texts[name]) for name, hint in _OWN.items()}
    fields = own | {field.name: field for field in fields_of(config)}
    for name, kind in terms.items():
        if name not in config.rewards:
            fields |= {field.name: field for field in fields_of(kind(), f"{name}.")}
    return fields | {"rewards": fields["rewards"]._replace(hint=_names(terms))}


_OWN = {name: hint for name, hint in hints_of(Train).items() if name not in ("recipe", "config")}


def _every_option(terms: Terms) -> dict[str, Field]:
    """Returns every option that any recipe has, whatever its agent."""
    found: dict[str, Field] = {}
    for agent in AgentConfig.__subclasses__():
        found |= _options_of(Config(agent=agent()), terms)
    return found


def _count_of_train(field: Field) -> int | None:
    return 0 if field.name in ("resume", "allow_import") else value_count(field.hint)


def _run_dir(given: Mapping[str, tuple[str, ...]]) -> Path | None:
    """Returns the directory typed; one to resume, and `latest`, may also lie under the root."""
    if "run_dir" not in given:
        return None
    text = given["run_dir"][0]
    there = named_run(text) if "resume" in given or text == LATEST else None
    return there or Path(text)


def _stored_run(given: Mapping[str, tuple[str, ...]], run_dir: Path | None) -> StoredRun:
    """Returns the run to resume."""
    if run_dir is None:
        raise UsageError("--resume: needs --run-dir DIR, the run to continue")
    typed = check_env_id(given["env_id"][0]) if "env_id" in given else None
    if "allow_import" in given:
        allow_recipe(run_dir)
        typed = stored_env_id(run_dir)
    return read_run(run_dir, typed)


def _recipe(
    positional: Sequence[str], stored: StoredRun | None, options: Mapping[str, Field]
) -> str:
    if not positional and stored:
        return stored.recipe
    if not positional:
        raise UsageError(
            "RECIPE: expected one right after train, music-tf recipes lists them\n"
            "for example: music-tf train ddpg_her"
        )
    recipe, *others = positional
    recipes.presets(recipe)
    if others:
        raise UsageError(
            f"unexpected word {others[0][:80]!r} after the recipe {recipe}"
            + suggestion(others[0], map(show_option, options))
        )
    return recipe


def _refuse_unpaid(given: Iterable[str], config: Config, terms: Terms) -> None:
    for name in given:
        term = name.partition(".")[0]
        if term in terms and term not in config.rewards:
            raise UsageError(
                f"{show_option(name)}: the run does not pay the reward {term}\n"
                f"add it with --rewards {' '.join([*config.rewards, term])}"
            )


def _start(read: Train, stored: StoredRun | None, terms: Terms) -> Start | None:
    """Returns what a new run starts from; a run to resume has taken it over already."""
    if stored:
        counts = {name: _count_of_train(field) for name, field in _every_option(terms).items()}
        began = split(stored.arguments, counts).options
        for name, typed in (("init_from", read.init_from), ("parts", read.parts)):
            if typed is not None and (typed,) != began.get(name):
                raise UsageError(
                    "--resume: the run has taken over its parts, leave out --init-from and --parts"
                )
        return None
    source = read.config.start
    known = parts_of(terms.values())
    start = asked_start(read.init_from, read.parts, source, read.config.env_id, known)
    if start is None and source is not None:
        more = "" if read.preset == recipes.DEFAULT_PRESET else f" --preset {read.preset}"
        raise missing_start(read.recipe, source, read.config.env_id, more)
    return start
