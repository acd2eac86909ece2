"""The texts of `train --help` and `train RECIPE --help`."""

from collections.abc import Sequence

from music_tf import recipes
from music_tf.config.command import options_of
from music_tf.config.fields import describe_type, show_value
from music_tf.config.tokens import show_option

_USAGE = "usage: music-tf train RECIPE [options] [--any.config.field VALUE ...]"

_OPTIONS = """\
options:
  --env-id ID          environment, as music-tf check-env takes it; default FetchPush-v4, of recipes
                       with skills FetchPickAndPlace-v4; your own goes in as module:Id
  --preset NAME        laptop (default, for two cores) or paper (the published sizes)
  --seed N             every random stream derives from it; default 0
  --epochs N           epochs to train
  --max-minutes M      stop after the epoch in which M minutes of training have passed in all,
                       those before a --resume included
  --workers W          units of data and randomness; a multiple of the MPI ranks
  --run-dir DIR        where the run goes; default runs/ENV/RECIPE/seedN-TIME
                       ($MUSIC_TF_RUNS replaces runs/, and runs/latest points at the newest)
  --init-from RUN      start from the latest checkpoint of another run, or from a folder of weights
  --parts A,B,...      what to take over from it: any of actor, critic, targets, statistics,
                       discriminator, normalizer; some recipes know theirs
  --resume             continue the run in --run-dir; only --epochs, --max-minutes and
                       --hang-after may change
  --allow-import       with --resume: import the module of your own environment that the run
                       names; without it a file makes nothing be imported

any field of the configuration is an option too, for example --agent.polyak 0.9
or --agent.hidden-sizes 128 128; music-tf train RECIPE --help lists them all;
an unset value is None, inf is a number

examples:
  music-tf train ddpg_her --env-id FetchReach-v4 --epochs 10
  music-tf train ddpg_music --seed 1 --max-minutes 30 --music.learning-rate 3e-4
  music-tf train --run-dir runs/FetchPush-v4/ddpg_her/seed0-... --resume --epochs 100
  music-tf launch -n 2 train ddpg_her       (on two MPI ranks)
"""


def train_help(argv: Sequence[str]) -> str:
    """Returns the help for a recipe if the command line starts with one, else for `train`."""
    known = recipes.names()
    chosen = next((word for word in argv if word in known), None)
    return recipe_help(chosen) if chosen else _general_help()


def recipe_help(name: str) -> str:
    """Returns every setting of a recipe with its default under the default preset."""
    lines = [
        f"usage: music-tf train {name} [options] [--any.config.field VALUE ...]",
        "",
        f"{name}: {recipes.describe(name)}",
        *_start(name),
        "",
        "options: --preset, --run-dir, --init-from, --parts, --resume (see music-tf train --help),",
        f"and each of these, with its default under the preset {recipes.DEFAULT_PRESET}",
    ]
    for field in options_of(recipes.resolve(name), recipes.terms(name)).values():
        lines += [
            "",
            f"  {show_option(field.name)}  {show_value(field.value)}",
            f"      {describe_type(field.hint).capitalize()}. {field.documentation}",
        ]
    return "\n".join(lines) + "\n"


def _start(name: str) -> list[str]:
    """Returns the line that says what a recipe starts from, if it needs an earlier run."""
    source = recipes.source(name)
    if source is None:
        return []
    return [f"needs --init-from, a run of {source.recipe}; takes over {', '.join(source.parts)}"]


def _general_help() -> str:
    names = recipes.names()
    width = max(map(len, names))
    listed = [f"  {name:{width}}  {recipes.describe(name)}" for name in names]
    return "\n".join([_USAGE, "", "recipes:", *listed, "", _OPTIONS])
