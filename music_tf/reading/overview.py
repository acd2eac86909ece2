"""The help of `music-tf train`: an overview on one screen, then a group of settings at a time."""

import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping

import tyro

from music_tf import recipes
from music_tf.config.fields import Field, Settings, fields_of, groups_of, show_option
from music_tf.config.names import suggestion
from music_tf.config.settings import Config
from music_tf.config.terms import TermConfig
from music_tf.errors import UsageError
from music_tf.hints import notes_of
from music_tf.reading.options import described, shown_default
from music_tf.recipes.releases import OTHER_PROGRAMS

ALL_OPTIONS = "all"
"""The word after `--help` that asks for every option."""
_WIDTH, _OPTION = 110, 19
_TITLES: Mapping[str, tuple[str, ...]] = {
    "usual options": ("env_id", "seed", "epochs", "max_minutes", "preset", "run_dir", "resume"),
    "start from what was learned": ("init_from", "parts", "best_of", "demonstrations"),
    "continue or follow a run": ("allow_import", "without_replay", "track"),
    "processes and machine": ("learners", "lag", "workers", "threads", "device", "hang_after"),
    "what is learned, and how much": (),
}
"""Options of `train` by title; the last one has the rest."""
_EXAMPLES = """\
music-tf train RECIPE trains a recipe, on as many MPI ranks as music-tf launch -n N starts

  music-tf train ddpg_music
  music-tf train ddpg_her --env-id FetchReach-v4 --epochs 10 --seed 1
  music-tf train --run-dir latest --resume --epochs 100

RECIPE: one of those that music-tf recipes lists, or module:function of yours
"""


def overview(command: Settings) -> str:
    every = [recipes.resolve(name) for name in recipes.names()]
    inner = {field.name.partition(".")[0] for field in fields_of(command) if "." in field.name}
    names = ", ".join(sorted(map(_typed, inner | {*recipes.terms()})))
    wrapped = textwrap.fill(names, _WIDTH, initial_indent="  ", subsequent_indent="  ")

    def default(field: Field) -> str:
        differs = len({repr(getattr(config, field.name, None)) for config in every}) > 1
        return "recipe" if differs else shown_default(field)

    return _page([_EXAMPLES, *_rows(command, default)], [wrapped], "RECIPE")


def overview_of(recipe: str, command: Settings, config: Config) -> str:
    head = [textwrap.fill(f"{recipe}: {recipes.describe(recipe)}", _WIDTH)]
    if config.start is not None:
        parts, agent = ", ".join(config.start.parts), config.start.agent
        begins = f"needs --init-from, a run of {config.start.recipe}"
        begins = f"starts from the agent {agent} unless --init-from none" if agent else begins
        head.append(f"{begins}; takes over {parts}")
    groups = []
    for group in groups_of(config):
        if any(True for _ in fields_of(group)):
            first, _, _ = " ".join((type(group).__doc__ or "").split()).partition(". ")
            groups.append(f"  {_typed(group.name):{_OPTION}} {first.removesuffix('.')}")
    head += ["", f"Defaults of {recipe} are in brackets.", "", *_rows(command, shown_default)]
    return _page(head, groups, recipe)


def about_group(name: str, config: Config, terms: Mapping[str, type[TermConfig]]) -> str:
    """Returns the settings of a group, also of a reward that `config` lacks."""
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


def all_options(fields: Collection[Field], recipe: str) -> str:
    ours = described(field for field in fields if field.name not in OTHER_PROGRAMS)
    theirs = described(field for field in fields if field.name in OTHER_PROGRAMS)
    title = f"All options of `train {recipe or 'RECIPE'}` and their defaults:"
    return "\n".join([title, *ours, "settings of other programs:", *theirs, ""])


def _rows(command: Settings, default: Callable[[Field], str]) -> Iterator[str]:
    """Yields options by title: name, short meaning, and default in brackets, if any."""
    left = {
        field.name: field
        for field in fields_of(command)
        if "." not in field.name and tyro.conf.Positional not in notes_of(field.hint)
    }
    for title, names in _TITLES.items():
        yield f"{title}:"
        for field in [left.pop(name) for name in names or tuple(left)]:
            value = f" ({shown})" if (shown := default(field)) else ""
            yield f"  {show_option(field.name):{_OPTION}} {field.short}{value}"


def _typed(group: str) -> str:
    return group.replace("_", "-")


def _page(head: list[str], groups: list[str], recipe: str) -> str:
    start = f"music-tf train {recipe} --help"
    more = f"more: {start} GROUP explains a group, --help {ALL_OPTIONS} every option"
    if recipe == "RECIPE":
        more += f";\n      {start} shows the defaults of a recipe"
    return "\n".join([*head, "groups of settings:", *groups, more, ""])
