"""The help of `music-tf train`: an overview on one screen, then a group of settings at a time."""

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping

import tyro

from music_tf import recipes
from music_tf.config.fields import Field, Settings, fields_of, groups_of, show_option, show_value
from music_tf.config.names import suggestion
from music_tf.config.settings import Config
from music_tf.config.terms import TermConfig
from music_tf.errors import UsageError
from music_tf.hints import notes_of
from music_tf.reading.options import described
from music_tf.recipes.releases import OTHER_PROGRAMS

ALL_OPTIONS = "all"
"""The word after `--help` that asks for every option."""
_WIDTH, _OPTION, _VALUE = 110, 19, 20
_EXAMPLES = """\
music-tf train RECIPE trains a recipe, on as many MPI ranks as music-tf launch -n N starts

  music-tf train ddpg_her --env-id FetchReach-v4 --epochs 10
  music-tf train ddpg_music --seed 1 --max-minutes 30 --music.learning-rate 3e-4
  music-tf train --run-dir runs/FetchPush-v4/ddpg_her/seed0-... --resume --epochs 100
"""


def overview(command: Settings) -> str:
    defaults: dict[str, set[str]] = {}
    for name in recipes.names():
        for field in fields_of(recipes.resolve(name)):
            defaults.setdefault(field.name, set()).add(show_value(field.value))
    differing = {name for name, values in defaults.items() if len(values) > 1}
    inner = {field.name.partition(".")[0] for field in fields_of(command) if "." in field.name}
    names = sorted(map(_typed, inner | {*recipes.terms()}))
    head = [_EXAMPLES, "recipes; music-tf recipes says what each of them does:"]
    head += [_wrapped(", ".join(recipes.names())), "options:"]
    rows = [_row(each, "by recipe" if each.name in differing else "") for each in _outer(command)]
    return _page([*head, *rows], [_wrapped(", ".join(names))], "RECIPE")


def overview_of(recipe: str, command: Settings, config: Config) -> str:
    head = [textwrap.fill(f"{recipe}: {recipes.describe(recipe)}", _WIDTH)]
    if config.start is not None:
        parts, agent = ", ".join(config.start.parts), config.start.agent
        begins = f"needs --init-from, a run of {config.start.recipe}"
        begins = f"starts from {agent} unless --init-from none" if agent else begins
        head.append(f"{begins}; takes over {parts}")
    groups = [
        f"  {_typed(group.name):{_OPTION}} {_first_sentence(inspect.getdoc(type(group)) or '')}"
        for group in groups_of(config)
        if any(True for _ in fields_of(group))
    ]
    head += ["", f"options, with the defaults of {recipe}:", *map(_row, _outer(command))]
    return _page(head, groups, recipe)


def about_group(name: str, config: Config, terms: Mapping[str, type[TermConfig]]) -> str:
    """Returns the settings of a group, also of a reward that `config` does not pay."""
    groups: dict[str, Settings] = {term: kind() for term, kind in terms.items()}
    groups |= {group.name: group for group in groups_of(config)}
    chosen = name.replace("-", "_")
    if chosen not in groups:
        raise UsageError(
            f"--help: expected one of {', '.join(map(_typed, groups))}, or {ALL_OPTIONS} "
            f"for every option; got {name[:80]!r}" + suggestion(name, groups)
        )
    lines = described(fields_of(groups[chosen]))
    return "\n".join([f"{name}: {inspect.getdoc(type(groups[chosen]))}", "", *lines, ""])


def all_options(fields: Iterable[Field]) -> str:
    by_origin: dict[bool, list[Field]] = {False: [], True: []}
    for field in fields:
        by_origin[field.name in OTHER_PROGRAMS].append(field)
    ours, theirs = map(described, by_origin.values())
    return "\n".join(["options:", *ours, "settings of other programs:", *theirs, ""])


def _outer(command: Settings) -> Iterator[Field]:
    for field in fields_of(command):
        if "." not in field.name and tyro.conf.Positional not in notes_of(field.hint):
            yield field


def _typed(group: str) -> str:
    return group.replace("_", "-")


def _row(field: Field, value: str = "") -> str:
    """Returns an option on one line: name, default, and the start of its documentation."""
    unset = field.value is None or field.value is False
    plain = "" if unset else show_value(field.value)
    left = f"  {show_option(field.name):{_OPTION}} {value or plain:{_VALUE}} "
    return left + _first_sentence(field.documentation, _WIDTH - len(left))


def _first_sentence(text: str, width: int = _WIDTH - _OPTION - 3) -> str:
    sentence = " ".join(text.split()).partition(". ")[0].removesuffix(".")
    return textwrap.shorten(sentence, width, placeholder=" ...")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _page(head: list[str], groups: list[str], recipe: str) -> str:
    start = f"music-tf train {recipe} --help"
    more = f"more: {start} GROUP explains a group, --help {ALL_OPTIONS} every option"
    if recipe == "RECIPE":
        more += f";\n      {start} shows the defaults of a recipe"
    return "\n".join([*head, "groups of settings:", *groups, more, ""])
