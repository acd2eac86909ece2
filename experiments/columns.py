"""Writes the lists of docs/metrics.md from the code: `python -m experiments.columns`.

It replaces the text between `<!-- columns: NAME -->` and `<!-- /columns -->`, where NAME is
`metrics` for the columns of metrics.csv, or a part of `JUDGED`. `make results` does so, too.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from music_tf import recipes
from music_tf.cli.exits import guarded, leave
from music_tf.config.names import suggestion
from music_tf.config.terms import ENTROPY, reward_metrics
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.storage.metrics import JUDGED, SECTIONS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "metrics.md"
_BLOCK = re.compile(r"(<!-- columns: (.+) -->\n)(?s:.*?)(<!-- /columns -->)")


def filled(text: str) -> str:
    """Returns a page with the lists that its markers name.

    Raises:
        UsageError: A marker names no list.
    """
    lists = {"metrics": _sections(), **{name: _list(part) for name, part in JUDGED.items()}}

    def fill(block: re.Match[str]) -> str:
        head, name, tail = block.groups()
        if name not in lists:
            raise UsageError(f"columns: no list {name}{suggestion(name, lists)}")
        return f"{head}{lists[name]}\n{tail}"

    return _BLOCK.sub(fill, text)


def _sections() -> str:
    """Returns a list for each section; metrics that every reward has are listed once."""
    alike = {name for term in (*recipes.terms(), ENTROPY) for name in reward_metrics(term)}
    shown = {
        title: {name: meaning for name, meaning in metrics.items() if name not in alike}
        for title, metrics in SECTIONS.items()
    }
    shown["each reward NAME that counts, and of the entropy"] = reward_metrics("NAME")
    shown = {title: metrics for title, metrics in shown.items() if metrics}
    return "\n\n".join(f"**Of {title}**\n\n{_list(part)}" for title, part in shown.items())


def _list(metrics: Mapping[str, str]) -> str:
    return "\n".join(f"- `{name}`: {meaning}" for name, meaning in metrics.items())


def main() -> int:
    """Writes the page if it has changed, and returns the exit code.

    Raises:
        UsageError: A marker names no list.
    """
    text = PAGE.read_text(encoding="utf-8")
    if (current := filled(text)) != text:
        PAGE.write_text(current, encoding="utf-8")
        sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
