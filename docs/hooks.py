"""What `make docs` adds to MkDocs.

Pages that lie outside docs/: files of the repository's root, files that pages link to, and all
settings. Equations become MathML, and options in running text do not break.
"""

import html
import inspect
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.structure.files import File, InclusionLevel

from music_tf import recipes
from music_tf.config.fields import fields_of, show_option, show_value
from music_tf.config.settings import Config
from music_tf.recipes.releases import OTHER_PROGRAMS

ROOT = Path(__file__).parents[1]
FROM_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CITATION.cff": "CITATION.cff",
}
"""Files of the root, and the pages that show them."""
SETTINGS = "settings.md"
BOOST = {
    **dict.fromkeys(("first_run", "your_robot"), 12.0),
    **dict.fromkeys(("recipes", "viewing", "python", "environments", "scale", "extend"), 6.0),
    **dict.fromkeys(("music", "skills", "goals", "pearl"), 4.0),
    "index": 2.0,
    **dict.fromkeys(("settings", "metrics"), 0.01),
    **dict.fromkeys(("reference", "results"), 0.001),
}
"""Weights of hits in the search by page; 1 for others."""
NOT_SEARCHED = ("contributing.md", "changelog.md", "experiments/", "tests/", "music_tf/")
SHORT = 30
"""Characters of code in running text up to which it stays on a line; else its words do."""
_DOWNLOADED = re.compile(r'(<a href="[^"]+\.(?:bib|cff|ipynb)")>(.*?)</a>')
_ENDED = re.compile(r"(<math(?:(?!</math>).)*</math>)([.,:;)]+)", re.DOTALL)
"""An equation in running text, and the punctuation that must not leave it."""
_LINK = re.compile(r'(\]\(|(?:src|href)=")([^)"\s:#]+)(?=[)"#])')
_APART = "settings-of-other-programs"


class _Equations(Preprocessor):
    """Turns `.. math::` of a docstring into an equation of its page."""

    def run(self, lines: list[str]) -> list[str]:
        equation = re.compile(r"^\.\. math:: (.*(?:\n +\S.*)*)", re.MULTILINE)
        return equation.sub(r"$$\n\1\n$$", "\n".join(lines)).split("\n")


class _Docstrings(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (a name of Markdown's)
        md.preprocessors.register(_Equations(md), "equations", 100)


def on_config(config: Any) -> Any:
    """Adds equations of docstrings to what is read as Markdown."""
    config.markdown_extensions.append(_Docstrings())
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the page of settings, the files of the root, and files that pages link to."""
    files.append(File.generated(config, SETTINGS, content=settings_page()))
    waiting = [
        *FROM_ROOT,
        *(f"docs/{file.src_uri}" for file in files if file.is_documentation_page()),
    ]
    seen = {*waiting}
    for source in waiting:  # grows by what its pages link to
        path = ROOT / source
        if not path.is_file():  # such as the page of settings
            continue
        text = path.read_text(encoding="utf-8")
        if source.endswith(".md"):
            linked = {_target(source, link) for _, link in _LINK.findall(text)} - seen
            new = sorted(name for name in linked if name and not name.startswith("docs/"))
            waiting += new
            seen.update(new)
        elif source not in FROM_ROOT:
            text = f"# `{source}`\n\n```{path.suffix[1:]}\n{text}\n```\n"
        if not source.startswith("docs/"):
            level = InclusionLevel.INCLUDED if source in FROM_ROOT else InclusionLevel.NOT_IN_NAV
            files.append(File.generated(config, _page(source), content=text, inclusion=level))
    return files


def _target(source: str, link: str) -> str:
    """Returns the file of the repository that a page links to; nothing where there is none."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return path if not path.startswith("..") and (ROOT / path).is_file() else ""


def _page(source: str) -> str:
    """Returns the page of a file of the repository."""
    if source in FROM_ROOT:
        return FROM_ROOT[source]
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    return source if source.endswith(".md") else f"{source}.md"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links between files of the repository into links between pages, and weighs a page."""
    here = page.file.src_uri
    page.meta["search"] = {
        "boost": BOOST.get(here.removesuffix(".md"), 1.0),
        "exclude": here.startswith(NOT_SEARCHED),
    }
    source = {page: name for name, page in FROM_ROOT.items()}.get(here, f"docs/{here}")
    if not (ROOT / source).is_file():
        source = here

    def moved(link: re.Match[str]) -> str:
        target = _target(source, link[2])
        to = posixpath.relpath(_page(target), posixpath.dirname(here) or ".") if target else link[2]
        return f"{link[1]}{to}"

    return _LINK.sub(moved, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Sets equations, opens pictures at a click, keeps words of code whole, marks downloads."""
    content = re.sub(
        r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', _set, content, flags=re.DOTALL
    )
    content = re.sub(r'(?<!>)(<img [^>]*src="([^"]+)"[^>]*>)', r'<a href="\2">\1</a>', content)
    content = _ENDED.sub(r'<span class="whole">\1\2</span>', content)
    content = _DOWNLOADED.sub(r"\1 download>\2</a> (download)", content)
    content = content.replace(" ± ", "\u00a0±\u00a0")
    return re.sub(r"(?<!</span>)<code>([^<]*[- ][^<]*)</code>", _whole, content)


def _set(equation: re.Match[str]) -> str:
    block = equation[2] == "["
    mathml = convert(html.unescape(equation[3]).strip(), display="block" if block else "inline")
    mathml = mathml.replace("<mo>&#x02016;", '<mo stretchy="false">&#x02016;')  # of equal height
    indicator = r'<mn mathvariant="(?:bold|double-struck)">1'
    mathml = re.sub(indicator, "<mn>&#x1D7D9;", mathml)
    mathml = re.sub(r"(<mi>(?:log|exp)</mi>)(?=<m(?!o))", r'\1<mspace width="0.17em"/>', mathml)
    return f'<div class="equation">{mathml}</div>' if block else str(mathml)


def _whole(code: re.Match[str]) -> str:
    """Keeps short code on a line; in longer code options with their values, or else words."""
    parts = [code[1]] if len(code[1]) <= SHORT else re.split(r" (?=--)", code[1])
    if len(parts) == 1 and len(code[1]) > SHORT:
        parts = code[1].split(" ")
    whole = [f'<span class="whole">{part}</span>' for part in parts]
    return f"<code>{' '.join(whole)}</code>"


def settings_page() -> str:
    """Returns every setting of a run, each method's apart, with its meaning, range and default."""
    parts = [
        "# Options",
        "Every option of `music-tf train`, with the default of its dataclass. Recipes and presets "
        "change defaults: `music-tf train RECIPE --help GROUP` shows theirs.",
        f"Those that only the code of other authors sets [stand apart](#{_APART}).",
        "## Of every run",
    ]
    groups: dict[str, list[Any]] = {}
    for field in fields_of(Config()):
        groups.setdefault(field.name.rpartition(".")[0].partition(".")[0], []).append(field)
    for name, fields in groups.items():
        parts += [*([f"### {name}"] if name else []), *_table(fields)]
    parts += [
        "## Of learners",
    ]
    for agent in sorted(recipes.agents(), key=lambda kind: kind.__name__):
        parts += [
            f"### `{agent.__name__}`",
            inspect.getdoc(agent) or "",
            *_table(fields_of(agent())),
        ]
    parts.append("## Of rewards")
    for name, term in sorted(recipes.terms().items()):
        parts += [f"### `{name}`", inspect.getdoc(term) or "", *_table(fields_of(term()))]
    kinds = (Config, *recipes.agents(), *recipes.terms().values())
    every = {field.name: field for kind in kinds for field in fields_of(kind())}
    parts += ["## Settings of other programs", *_table(every.values(), apart=True)]
    return "\n\n".join(parts) + "\n"


def _table(fields: Iterable[Any], *, apart: bool = False) -> Iterator[str]:
    rows = []
    for field in (field for field in fields if (field.name in OTHER_PROGRAMS) is apart):
        option, meaning = show_option(field.name), field.meaning.replace("|", "\\|")
        rows.append(f"| `{option}` | `{show_value(field.value)}` | {meaning} |")
    if rows:
        yield "\n".join(["| option | default | meaning |", "|---|---|---|", *rows])
