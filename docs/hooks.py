"""Pages of the site that lie outside docs/: files of the repository's root, and all settings."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from music_tf import recipes
from music_tf.config.fields import Settings, fields_of, show_option, show_value
from music_tf.config.settings import Config
from music_tf.recipes.releases import OTHER_PROGRAMS

ROOT = Path(__file__).parents[1]
FROM_ROOT = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "CITATION.cff": "CITATION.cff",
}
"""Pages of the site by the files that they show."""
SETTINGS = "settings.md"
_APART = "settings-of-other-programs"


def on_files(files: Any, config: Any) -> Any:
    """Adds the files of the root, and the page of settings."""
    pages = {SETTINGS: settings_page()}
    for page, source in FROM_ROOT.items():
        pages[page] = (ROOT / source).read_text(encoding="utf-8")
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links between the root and docs/ into links between pages of the site.

    Stored results and tests have no page there: their links become paths in the repository.
    """
    for shown, source in FROM_ROOT.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(source)}", f"]({shown}", markdown)
    stored = r"\[([^]]*)\]\((?:\.\./)*((?:experiments|tests)/[^)]*)\)"
    markdown = re.sub(stored, r"\1 (`\2`)", markdown)
    return markdown.replace("](docs/", "](").replace("](../README.md", "](index.md")


def on_page_content(html: str, **_: Any) -> str:
    """Shows equations of docstrings as they are written there."""
    return re.sub(r"<p>\.\. math:: (.*?)</p>", r"<pre>\1</pre>", html, flags=re.DOTALL)


def settings_page() -> str:
    """Returns every setting of a run, each method's apart, with its meaning, range and default."""
    parts = [
        "# Settings",
        "Every option of `music-tf train`, with the default of its dataclass. Recipes and presets "
        "change defaults: `music-tf train RECIPE --help GROUP` shows theirs.",
        f"Those that only the code of other authors sets [stand apart](#{_APART}).",
        "## Run",
        *_table(Config()),
        "## Learners",
    ]
    for agent in sorted(recipes.agents(), key=lambda kind: kind.__name__):
        parts += [f"### `{agent.__name__}`", inspect.getdoc(agent) or "", *_table(agent())]
    parts.append("## Rewards")
    for name, term in sorted(recipes.terms().items()):
        parts += [f"### `{name}`", inspect.getdoc(term) or "", *_table(term())]
    groups = [Config(), *(kind() for kind in (*recipes.agents(), *recipes.terms().values()))]
    parts += ["## Settings of other programs", *_table(*groups, apart=True)]
    return "\n\n".join(parts) + "\n"


def _table(*groups: Settings, apart: bool = False) -> Iterator[str]:
    every = {field.name: field for group in groups for field in fields_of(group)}
    rows = []
    for field in (field for field in every.values() if (field.name in OTHER_PROGRAMS) is apart):
        option, meaning = show_option(field.name), field.meaning.replace("|", "\\|")
        rows.append(f"| `{option}` | `{show_value(field.value)}` | {meaning} |")
    if rows:
        yield "\n".join(["| option | default | meaning |", "|---|---|---|", *rows])
