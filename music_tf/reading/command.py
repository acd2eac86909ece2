"""The command `music-tf train`, read from a command line or from a Python call."""

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from music_tf import recipes
from music_tf.config.agents import AgentConfig
from music_tf.config.conditioning import IncrementalConfig
from music_tf.config.fields import Field, In, Settings, fields_of, show_option, with_fields
from music_tf.config.names import ENV_ID, check_env_id, names_a_module, suggestion
from music_tf.config.settings import Config
from music_tf.config.warm_start import Source, WarmStart, parse_parts, parts_of
from music_tf.config.world import trust
from music_tf.errors import UsageError
from music_tf.hints import hints_of
from music_tf.reading.options import (
    REPEATED,
    Flag,
    Options,
    Terms,
    Typed,
    is_option,
    last_value,
    named_as_typed,
    read_value,
    split,
    words_taken,
)
from music_tf.reading.overview import ALL_OPTIONS, about_group, all_options, overview, overview_of
from music_tf.reading.stored import (
    LATEST,
    StoredRun,
    allowed_env_id,
    check_read_back,
    named_run,
    read_run,
    refuse_changes,
    run_to_json,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainCommand(Options):
    """What may follow `train`. Every setting of the recipe is an option too."""

    recipe: Annotated[str, tyro.conf.Positional] = ""
    """One that music-tf recipes lists, or module:function of yours."""
    preset: str = recipes.DEFAULT_PRESET
    """Sizes: laptop is for two cores, paper as published. Some recipes have more."""
    run_dir: Path | None = None
    """Folder of the run, by default runs/ENV/RECIPE/seedN-TIME. $MUSIC_TF_RUNS replaces runs/, and
    latest is the newest there."""
    resume: Flag = False
    """Continue the run in --run-dir. Only --epochs, --max-minutes and --hang-after may change, and
    --skills may grow where each is learned after the other."""
    without_replay: Flag = False
    """With --resume: leave the stored experience behind. `skill.resume_rows` says how long the
    discriminator then waits."""
    allow_import: Flag = False
    """With --resume: import your own modules that the run names. They hold its recipe, environment
    or functions; without it no file can import a module."""
    init_from: str | None = None
    """Start from the weights of a run, a folder or an agent. Of a run it is the latest checkpoint;
    none: from random weights, where a recipe has a default."""
    parts: str | None = None
    """What to load from there, as in actor,critic. Some recipes have defaults."""
    best_of: Annotated[int | None, In(1, 10**5)] = None
    """With --init-from: pin the skill that is best at the task. Each is tried in this many
    episodes, and the one with the highest return acts; some recipes have a default."""
    demonstrations: Annotated[tuple[str, ...], REPEATED] = ()
    """Episodes to learn from: .npz files or ids of Minari. Files are those of evaluate --out
    FILE.npz; for recipes with goals whose replay draws episodes."""
    learners: Annotated[int, In(0, 4096)] = 0
    """Ranks that learn, while others act; 0: all ranks do both. The first ones learn, the others
    need numpy alone. Results are those of as many equal ranks; --resume may change it."""
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Where networks learn: auto, cpu or gpu. auto: the first GPU that TensorFlow sees, for one
    learner with actors; else the CPU. Last bits differ between CPU and GPU, and between kinds of
    GPU."""
    track: Literal["wandb", "mlflow"] | None = None
    """Send settings, metrics and films to W&B or MLflow. Needs the package, see docs/python.md."""
    config: Config = dataclasses.field(default_factory=Config)
    arguments: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    """The command line as typed, after the verb."""
    start: WarmStart | None = dataclasses.field(default=None, compare=False)
    """The warm start of a new run, if any."""
    notice: str = dataclasses.field(default="", compare=False)
    """A line for the user about the resumed run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.without_replay and not self.resume:
            raise UsageError("--without-replay: expected with --resume; a new run has no replay")
        functions = self.config.agent.functions
        if self.learners and functions:
            raise UsageError(
                f"--learners: ranks that only act have no TensorFlow, which {functions[0]} needs\n"
                "leave --learners out, or take --agent.encoder mlp or gru"
            )

    @property
    def may_use_gpu(self) -> bool:
        return self.device == "gpu" or (self.device == "auto" and self.learners == 1)


def resume_line(command: TrainCommand, path: Path, launch: str = "") -> str:
    """Returns the line that resumes a run on the same ranks; `launch` are options of that verb."""
    start = f"music-tf launch {launch} train" if launch else f"music-tf train {command.recipe}"
    learners = f" --learners {command.learners}" if command.learners else ""
    device = "" if command.device == "auto" else f" --device {command.device}"
    track = f" --track {command.track}" if command.track else ""
    place = shlex.quote(str(path))
    return f"{start} --run-dir {place} --resume{learners}{device}{track}{allowing(command)}"


def allowing(command: TrainCommand) -> str:
    """Returns the option that a run needs to be opened again if it names the user's modules."""
    config = command.config
    named = any(map(names_a_module, (command.recipe, config.env_id)))
    return " --allow-import" if named or config.functions else ""


_OWN = [name for name in hints_of(TrainCommand) if name not in ("recipe", "config")]
_FROM_A_RUN = ("init_from", "parts", "best_of", "demonstrations")


def as_typed(options: Mapping[str, Any]) -> list[str]:
    """Returns options of `train` from Python, groups as dictionaries, as a command line."""
    words = []
    for name, value in options.items():
        settings = {name: value}
        if isinstance(value, Mapping):
            settings = {f"{name}.{inner}": setting for inner, setting in value.items()}
        for full, setting in settings.items():
            words += _words(full, setting)
    return words


def changes_as_typed(*groups: Settings) -> list[str]:
    """Returns the settings that differ from their defaults as words of a command line."""
    usual = {field.name: field.value for group in groups for field in fields_of(type(group)())}
    values = {field.name: field.value for group in groups for field in fields_of(group)}
    return as_typed({name: value for name, value in values.items() if value != usual[name]})


def _words(name: str, value: Any) -> list[str]:
    option = show_option(name)
    if name in ("env_id", "env") and not isinstance(value, str):
        check_env_id(value)
    if name in _OWN and words_taken(hints_of(TrainCommand)[name]) == 0:
        if not isinstance(value, bool):
            raise UsageError(f"{option}: expected True or False, got {value!r:.80}")
        return [option] if value else []
    several = value if isinstance(value, list | tuple) else [value]
    if name in _OWN and (value is None or not several):  # as if it was not typed
        return []
    if any(isinstance(item, Mapping) for item in several):
        value = _as_json(option, value)
    texts = list(_texts(value))
    if texts and is_option(texts[0]):
        return [f"{option}={texts[0]}", *texts[1:]]
    return [option, *texts]


def _as_json(option: str, value: Any) -> str:
    """Returns a nested value as JSON; numpy scalars become numbers."""

    def plain(inner: Any) -> Any:
        if getattr(inner, "shape", None) != ():
            raise TypeError
        return inner.item()

    try:
        return json.dumps(value, default=plain)
    except (TypeError, ValueError) as error:  # keys that are not strings, or a circular reference
        raise UsageError(f"{option}: expected what JSON can hold, got {value!r:.80}") from error


def _texts(value: Any) -> Iterator[str]:
    value = value.tolist() if hasattr(value, "tolist") else value  # numpy
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


def _kinds(kind: type[AgentConfig]) -> Iterator[type[AgentConfig]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _kinds(subclass)


def train_help(arguments: Sequence[str]) -> None:
    """Prints the help of `train`, with the defaults of what the line names, or of one group."""
    terms = recipes.terms(own_recipe := _own_recipe(arguments))
    chosen = next((word for word in arguments if word in (*recipes.names(), own_recipe)), "")
    config, preset = Config(), recipes.DEFAULT_PRESET
    if chosen:
        preset, env_id = last_value("preset", arguments) or preset, last_value("env_id", arguments)
        config = recipes.resolve(chosen, preset, check_env_id(env_id) if env_id else "")
    command = TrainCommand(recipe=chosen, preset=preset, config=config)
    topic = last_value("help", arguments)
    if topic == ALL_OPTIONS:
        text = all_options(_options(command, terms).values(), chosen)
    elif topic and not topic.startswith("-") and topic != chosen:
        text = about_group(topic, config, terms)
    else:
        text = overview_of(chosen, command, config) if chosen else overview(command)
    sys.stdout.write(text)


def parse_train(argv: Sequence[str]) -> TrainCommand:
    here = os.getcwd()  # importing the user's module may change it
    every = _options(TrainCommand(), recipes.terms(_own_recipe(argv)))
    agents = [kind() for kind in _kinds(AgentConfig)]
    every |= {field.name: field for agent in agents for field in fields_of(agent)}
    with named_as_typed(every):
        return _parsed(argv, here, every)


def _parsed(argv: Sequence[str], here: str, every: Mapping[str, Field]) -> TrainCommand:
    named = [fields_of(recipes.resolve(word)) for word in argv if word in recipes.names()]
    positional, typed = split(argv, every, [field.name for fields in named for field in fields])
    values: dict[str, Any] = {n: read_value(every[n], typed[n]) for n in _OWN if n in typed}
    files = [
        os.path.join(here, w) if w.endswith(".npz") else w for w in values.get("demonstrations", ())
    ]
    values["demonstrations"] = tuple(files)
    command = TrainCommand(arguments=tuple(argv), **values)
    if "run_dir" in typed:
        if not (text := typed["run_dir"][0]) or "\0" in text:
            raise UsageError(f"--run-dir: expected a directory, got {text[:80]!r}")
        place = named_run(text) if command.resume or text == LATEST else None
        command = dataclasses.replace(command, run_dir=Path(here, place or text))
    env_id = check_env_id(typed["env_id"][0]) if "env_id" in typed else ""
    stored = _stored_run(command, env_id) if command.resume else None
    recipe = _recipe(positional, stored, every)
    preset = stored.preset if stored and "preset" not in typed else command.preset
    default = stored.config if stored else recipes.resolve(recipe, preset, env_id)
    terms = recipes.terms(stored.recipe if stored else recipe)
    fields = _options(TrainCommand(config=default), terms)
    changes = {}
    for name in (name for name in typed if name not in _OWN):
        if name not in fields:
            shown = recipe if preset == recipes.DEFAULT_PRESET else f"{recipe} as {preset}"
            raise UsageError(f"{show_option(name)}: the recipe {shown} has no such setting")
        changes[name] = read_value(fields[name], typed[name])
    of_runs = [name for name in ("env.skills", *_FROM_A_RUN) if name in typed]
    began = split(stored.arguments, every)[1] if stored and of_runs else {}
    skills = changes.get("env.skills")
    if stored and skills and typed["env.skills"] == began.get("env.skills"):
        changes["env.skills"] = stored.config.env.skills
    elif skills:  # `latest` will mean another run later
        run = named_run(skills)
        changes["env.skills"] = skills if run is None else str(run.resolve())
    config = _changed(default, changes, terms)
    words = {word.rpartition("=")[2] for each in typed.values() for word in each}
    trust(words.intersection(config.functions))  # since the user typed them
    config.check_training(config)
    command = dataclasses.replace(command, recipe=recipe, preset=preset, config=config)
    if not stored:
        check_read_back(recipe, preset, config)
        start = _start(command, parts_of([type(config.agent), *terms.values()]), typed)
        if start is None or start.best_of is None:  # else the best one is pinned
            config = _with_all_skills_evaluated(config, changes)
        return dataclasses.replace(command, start=start, config=config)
    now = stored._replace(recipe=recipe, preset=preset, config=config)
    refuse_changes(run_to_json(stored), run_to_json(now))
    fixed = {*_FROM_A_RUN} - ({"demonstrations"} if command.without_replay else set())
    if any(typed[name] != began.get(name) for name in of_runs if name in fixed):
        raise UsageError(
            "--resume: the run has what it began with; "
            "leave out --init-from, --parts, --best-of and --demonstrations"
        )
    return dataclasses.replace(command, notice=stored.notice)


def _own_recipe(arguments: Sequence[str]) -> str:
    """Imports the user's recipe `module:function` on a command line and returns it, if any."""
    flags = ("--resume", "--allow-import", "--without-replay", "--help", "-h")
    for before, word in zip(("-h", *arguments), arguments, strict=False):
        named = ":" in word and "=" not in word and not (is_option(word) or ENV_ID.search(word))
        if named and (before[:1] != "-" or before.replace("_", "-") in flags):
            recipes.import_own(word)
            return word
    return ""


def _options(command: TrainCommand, terms: Terms) -> dict[str, Field]:
    """Returns every option of `train` by name, also of terms that the run lacks."""
    unpaid = [kind() for name, kind in terms.items() if name not in command.config.rewards]
    fields = {field.name: field for group in (command, *unpaid) for field in fields_of(group)}
    del fields["recipe"]
    paid: Any = tuple[Literal[tuple(terms)], ...]  # type: ignore[misc]
    return fields | {"rewards": fields["rewards"]._replace(hint=paid)}


def _stored_run(command: TrainCommand, env_id: str) -> StoredRun:
    if command.run_dir is None:
        raise UsageError("--resume: needs --run-dir DIR, the run to continue")
    if not command.allow_import:
        return read_run(command.run_dir, env_id or None)
    return read_run(command.run_dir, allowed_env_id(command.run_dir))


def _recipe(
    positional: Sequence[str], stored: StoredRun | None, options: Mapping[str, Field]
) -> str:
    for word in positional:
        if ENV_ID.search(word):
            raise UsageError(f"unexpected word {word[:80]!r}\ndid you mean --env-id {word[:80]}?")
    if not positional and stored:
        return stored.recipe
    if not positional:
        cure = "for example: music-tf train ddpg_her, or --resume for a run that has begun"
        text = "RECIPE: expected one right after train, music-tf recipes lists them"
        raise UsageError(f"{text}\n{cure}")
    recipe, *others = positional
    recipes.presets(recipe)
    if others:
        raise UsageError(
            f"unexpected word {others[0][:80]!r} after the recipe {recipe}"
            + suggestion(others[0], map(show_option, options))
        )
    return recipe


def _changed(config: Config, changes: Mapping[str, Any], terms: Terms) -> Config:
    """Returns a configuration with typed settings; an added term has its defaults."""
    paid = changes.get("rewards", tuple(config.rewards))
    if not paid or len(set(paid)) < len(paid):
        raise UsageError(
            f"--rewards: expected at least one of {', '.join(terms)}, each once, "
            f"got {' '.join(paid)[:80]!r}"
        )
    for name in changes:
        term = name.partition(".")[0]
        if term in terms and term not in paid:
            raise UsageError(
                f"{show_option(name)}: the run has no reward {term}\n"
                f"add it with --rewards {' '.join([*paid, term])}"
            )
    rewards = {term: config.rewards.get(term) or terms[term]() for term in paid}
    changed = with_fields(config, {**_epochs_of(config, changes), **changes, "rewards": rewards})
    for name in changes:
        for start, (has, needed) in _NEEDED.items():
            if name.startswith(start) and not has(changed):
                raise UsageError(f"{show_option(name)}: needs {needed}")
    return changed


def _with_all_skills_evaluated(config: Config, typed: Iterable[str]) -> Config:
    """Lets evaluations reach each of the typed skills, unless their episodes were typed too."""
    acting, names = len(config.acting_skills), set(typed)
    free = "skills" in names and "evaluation.episodes" not in names and not config.incremental.on
    if free and acting > config.evaluation.episodes:
        return with_fields(config, {"evaluation.episodes": acting})
    return config


_NEEDED: Mapping[str, tuple[Callable[[Config], Any], str]] = {
    "env.skill_": (
        lambda run: run.env.skills,
        "--env.skills RUN, the run whose skills actions choose",
    ),
    "tasks.": (
        lambda run: run.agent.inference,
        "an agent that infers which task it is in\nrecipes for it: sac_pearl",
    ),
    "incremental.": (
        lambda run: run.incremental.on,
        "skills that are learned one after the other\nrecipes for it: sac_disk",
    ),
}
"""By the start of names: what a run needs for these settings to have an effect."""


def _epochs_of(config: Config, changes: Mapping[str, Any]) -> dict[str, int]:
    """Returns the epochs of a run whose skills are learned one after the other; else nothing."""
    each = changes.get("incremental.epochs", config.incremental.epochs)
    skills = changes.get("skills", config.skills)
    if not each or skills < 1:  # less than 1 is refused later
        return {}
    return {"epochs": sum(IncrementalConfig(epochs=each).of_each(skills))}


def _start(command: TrainCommand, existing: Sequence[str], typed: Typed) -> WarmStart | None:
    if "replay.demonstration_share" in typed and not command.demonstrations:
        raise UsageError("--replay.demonstration-share: needs --demonstrations FILE.npz")
    source, pinned = command.config.start, command.config.pinned_skill
    agent = source.agent if source else ""
    by_default = bool(agent) and "init_from" not in typed
    path = agent if by_default else command.init_from
    if path is None:
        if command.parts is not None:
            raise UsageError("--parts: needs --init-from RUN, the run that they come from")
        if command.best_of is not None:
            raise UsageError("--best-of: needs --init-from RUN, the run whose skills are tried")
        if source is not None and not agent:
            raise _needs(command, source)
        return None
    if command.best_of is not None and pinned is not None:
        raise UsageError(f"--best-of: pinned_skill is {pinned}; leave one of the two out")
    source = source or Source("", ())
    return WarmStart(
        path,
        source.parts if command.parts is None else parse_parts(command.parts, existing),
        epochs=source.epochs,
        env_id=(source.env_id or command.config.env_id) if source.recipe else "",
        best_of=(command.best_of or source.best_of) if pinned is None else None,
        same_skills=source.same_skills and "skills" not in typed,
        by_default=by_default,
    )


def _needs(command: TrainCommand, source: Source) -> UsageError:
    env_id, preset = command.config.env_id, ""
    if command.preset not in ("", recipes.DEFAULT_PRESET):
        preset = f" --preset {command.preset}"
    more = f" --preset {source.preset}" if source.preset else preset
    more += "" if source.epochs is None else f" --epochs {source.epochs}"
    return UsageError(
        f"{command.recipe} starts from a run of {source.recipe}, of which it takes over "
        f"--parts {','.join(source.parts)}: --init-from RUN is missing\n"
        f"first: music-tf train {source.recipe} --env-id {source.env_id or env_id}{more}\n"
        f"then:  music-tf train {command.recipe} --env-id {env_id}{preset} --init-from latest"
    )
