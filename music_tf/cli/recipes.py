"""`music-tf recipes`: a table on a terminal, one name a line elsewhere."""

import sys

from music_tf import recipes
from music_tf.cli.options import asks_for_help
from music_tf.config.tokens import split
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.process import launched_world_size

USAGE = """\
usage: music-tf recipes

Lists the recipes: a table on a terminal, one name a line where the output goes elsewhere.
music-tf train RECIPE --help shows every setting of one.
"""


def main(arguments: list[str]) -> int:
    """Lists the recipes and returns 0.

    Raises:
        UsageError: There are arguments.
    """
    if asks_for_help(arguments):
        sys.stdout.write(USAGE)
        return EXIT_DONE
    if split(tuple(arguments), {"help": 0}).positional:
        raise UsageError(f"recipes: expected no arguments, got {' '.join(arguments)[:80]!r}")
    if sys.stdout.isatty() and launched_world_size() == 1:  # mpirun fakes a terminal
        _show_table()
    else:
        sys.stdout.write("".join(f"{name}\n" for name in recipes.names()))
    return EXIT_DONE


def _show_table() -> None:
    from rich.console import Console  # noqa: PLC0415 - slow, and off a terminal not needed
    from rich.table import Table  # noqa: PLC0415

    table = Table("recipe", "what it does", "workers", "episodes per epoch", box=None)
    for name in recipes.names():
        presets = [recipes.resolve(name, preset) for preset in recipes.PRESETS]
        sizes = [config.workers * config.rollouts * config.cycles for config in presets]
        table.add_row(
            name,
            recipes.describe(name),
            ", ".join(str(config.workers) for config in presets),
            ", ".join(map(str, sizes)),
        )
    console = Console()
    console.print(table)
    console.print(f"numbers are for the presets {', '.join(recipes.PRESETS)}", style="dim")
