"""Parts of an HTML page that loads nothing, runs no script, and escapes all text it is given."""

import base64
import html
import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

_POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
_WITHOUT_END = ("img", "meta")
_SMALL, _LARGE, _HUGE, _LARGEST = 1e-3, 1e4, 1e15, 1e300


class Html(str):
    """Markup; any other text is escaped where it enters a page."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str | bool) -> Html:
    """Returns an element.

    Args:
        name: Of the element.
        children: Markup, or text, which is escaped.
        attributes: True stands for one without a value; `class_` is written class.
    """
    written = "".join(
        f" {key.rstrip('_')}" + ("" if value is True else f'="{html.escape(str(value))}"')
        for key, value in attributes.items()
        if value is not False
    )
    end = "" if name in _WITHOUT_END else f"</{name}>"
    return Html(f"<{name}{written}>{join(*children)}{end}")


def join(*children: str) -> Html:
    """Returns markup and escaped text one after the other."""
    parts = [child if isinstance(child, Html) else html.escape(child) for child in children]
    return Html("".join(parts))


def document(title: str, *body: str) -> bytes:
    """Returns a whole page in UTF-8; its style is part of it."""
    style = importlib.resources.files(__package__).joinpath("report.css").read_text("utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style)),
    )
    page = f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"
    return page.encode("utf-8", "replace")


def data_uri(media_type: str, content: bytes) -> str:
    """Returns an address that holds the content itself."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def folded(summary: str, *children: str, **attributes: str | bool) -> Html:
    """Returns what shows its summary alone until the reader opens it."""
    return tag("details", tag("summary", summary), *children, **attributes)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> Html:
    """Returns a table that scrolls sideways where it has no room.

    Args:
        head: A title for each column.
        rows: What stands in each cell; an element th or td is a cell already.
        kind: Its class in the style sheet, `numbers` or `texts`.
    """
    titles = tag("tr", *(_cell("th", entry) for entry in head))
    lines = [tag("tr", *(_cell("td", entry) for entry in row)) for row in rows]
    content = tag("thead", titles), tag("tbody", *lines)
    return tag("div", tag("table", *content, class_=kind), class_="scroll")


def bars(names: Mapping[str, str], rows: Mapping[str, Mapping[str, Any]], first: str) -> Html:
    """Returns a table of numbers, each with a bar that compares it to its column.

    Args:
        names: Meaning of each column by name, such as `eval/success_rate`, in order.
        rows: Numbers by name for each label; what is no number stays blank.
        first: What the labels are.
    """
    shown = [name for name in names if any(is_number(row.get(name)) for row in rows.values())]
    head = [
        tag("th", name.rpartition("/")[2].replace("_", " "), title=f"{name}: {names[name]}")
        for name in shown
    ]
    columns = [_bars_of([row.get(name) for row in rows.values()]) for name in shown]
    body = [
        [tag("th", label, scope="row"), *cells]
        for label, *cells in zip(rows, *columns, strict=True)
    ]
    return table([first, *head], body, "numbers")


def number(value: Any) -> str:
    """Returns a number for people to read, and a dash for what is none."""
    return _written([value])[0]


def is_number(value: Any) -> TypeGuard[float]:
    """Tells whether a value from JSON is a number of a size that can be shown."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and -_LARGEST < value < _LARGEST


def _cell(name: str, entry: str) -> Html:
    is_cell = isinstance(entry, Html) and entry.startswith(("<th", "<td"))
    return Html(entry) if is_cell else tag(name, entry)


def _written(values: Sequence[Any]) -> list[str]:
    """Returns the numbers of a column with as many digits as they need together."""
    known = [value for value in values if is_number(value)]
    most = max(map(abs, known), default=0.0)
    form = ".3f" if _SMALL <= most < _LARGE else ".3g"
    if most < _HUGE and all(value == int(value) for value in known):
        form = ",.0f"
    return [format(value, form) if is_number(value) else "-" for value in values]


def _bars_of(values: Sequence[Any]) -> list[Html]:
    """Returns the cells of a column of numbers."""
    most = max(value for value in values if is_number(value))
    shares = [value / most if is_number(value) and most > 0.0 else 0.0 for value in values]
    return [
        tag("td", tag("span", text), style=f"--share:{100.0 * max(0.0, share):.0f}%")
        for text, share in zip(_written(values), shares, strict=True)
    ]
