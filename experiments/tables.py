"""Tables and pictures from the stored results alone, and lists of metrics: `make results`.

A study in experiments/studies names the metrics of its table. In README.md and docs/**/*.md this
program replaces the text between

    <!-- results: STUDY -->
    <!-- /results -->

by a table of that study (for several names: of all of them, with the columns of the first), between

    <!-- value: STUDY/CONDITION_TASK METRIC -->
    <!-- /value -->

by the mean of a metric over seeds (with `least` after METRIC and the least of them, with `random`
by that of random actions), and between `<!-- columns: NAME -->` and `<!-- /columns -->` by the list
of that name. Rows of a single seed, all measures of each seed and the docstring of the study go to
experiments/results/STUDY/README.md. Pictures of studies are drawn again if their data have
changed. `--check` only lists the differences (exit code 1).
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from experiments.columns import list_of
from experiments.stored import RESULTS, ROOT
from experiments.study_pictures import IMAGES, draw, outdated_pictures
from experiments.study_readme import readme
from experiments.study_table import table_of, value_of
from music_tf.cli.exits import guarded, leave
from music_tf.errors import EXIT_BUG, EXIT_DONE, UsageError

_TABLE = re.compile(r"(<!-- results: ([\w ]+) -->\n).*?(<!-- /results -->)", re.DOTALL)
_LIST = re.compile(r"(<!-- columns: ([\w ]+) -->\n).*?(<!-- /columns -->)", re.DOTALL)
_VALUE = re.compile(
    r"(<!-- value: (\w+)/(\S+) (\S+)(?: (least|random))? -->)[^`\n]*?(<!-- /value -->)"
)


def filled(text: str, page: Path, results: Path = RESULTS) -> str:
    """Returns a page with the tables, lists and values that its markers name."""
    made_by: dict[re.Pattern[str], Callable[..., str]] = {
        _TABLE: lambda names: f"{table_of(names.split(), page, results)}\n",
        _LIST: lambda name: f"{list_of(name)}\n",
        _VALUE: partial(value_of, results=results),
    }
    for marker, make in made_by.items():
        text = marker.sub(partial(_made, page, make), text)
    return text


def _made(page: Path, make: Callable[..., str], marker: re.Match[str]) -> str:
    """Returns a marker with what is made of the words between its first and its last group."""
    head, *words, tail = marker.groups()
    try:
        return f"{head}{make(*words)}{tail}"
    except UsageError as fault:
        line = marker.string.count("\n", 0, marker.start()) + 1
        row = marker.string.splitlines()[line - 1].strip()[:100]
        raise UsageError(f"{page.name}, line {line}, {row!r}: {fault}") from fault


def pages() -> list[Path]:
    """Returns the pages that may hold tables."""
    index = [RESULTS / "README.md"] if (RESULTS / "README.md").exists() else []
    return [ROOT / "README.md", *index, *sorted((ROOT / "docs").rglob("*.md"))]


def studies_in(results: Path) -> list[str]:
    """Returns the studies with stored results."""
    return sorted({path.parent.name for path in results.glob("*/*_seed*.csv")})


def outdated() -> dict[Path, str]:
    """Returns the outdated pages with their new text."""
    wanted = {RESULTS / name / "README.md": readme(name) for name in studies_in(RESULTS)}
    wanted |= {page: filled(page.read_text(encoding="utf-8"), page) for page in pages()}
    return {
        page: text
        for page, text in wanted.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes what has changed, or only lists it, and returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    options = parser.parse_args(arguments)
    changed, drawn = outdated(), outdated_pictures()
    for path in [*changed, *(IMAGES / name for name in drawn)]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    if options.check:
        return EXIT_BUG if changed or drawn else EXIT_DONE
    for page, text in changed.items():
        page.write_text(text, encoding="utf-8")
    draw(drawn)
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
