"""Runs docs/quickstart.ipynb and stores the outputs of its cells: `python -m experiments.notebook`.

It needs no Jupyter. Cells share one namespace, and the value of a cell's last line is its output.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib.pyplot as plt

from music_tf.cli.exits import guarded, leave
from music_tf.errors import EXIT_DONE, EnvironmentFault

Output: TypeAlias = Mapping[str, Any]
"""An output of a cell, in the format of notebooks."""

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "quickstart.ipynb"
_WIDTH, _DOTS = "140", 72
"""Columns of a line, and dots per inch of a picture."""


def sources(notebook: Mapping[str, Any]) -> list[str]:
    """Returns the text of each cell of code."""
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def executed(cells: Sequence[str]) -> list[list[Output]]:
    """Runs cells in the current folder, one after the other, and returns the outputs of each."""
    names: dict[str, Any] = {}
    return [_shown(count, source, names) for count, source in enumerate(cells, 1)]


def _shown(count: int, source: str, names: dict[str, Any]) -> list[Output]:
    body, value = ast.parse(source), None
    last = body.body[-1]
    shows = isinstance(last, ast.Expr) and not source.rstrip().endswith(";")
    printed, warned = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(warned):
        if shows:
            body.body.pop()
        exec(compile(body, f"cell {count}", "exec"), names)
        if shows:
            value = eval(ast.unparse(last), names)
    if warned.getvalue():
        raise EnvironmentFault(f"{PAGE.name}: cell {count} warns: {warned.getvalue()[:500]}")
    outputs: list[Output] = []
    text = printed.getvalue().replace(f"{Path.cwd()}{os.sep}", "").replace(sys.executable, "python")
    if text:
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
    if value is not None:
        outputs.append(_result(count, value))
    return outputs + [_picture(number) for number in plt.get_fignums()]


def _result(count: int, value: Any) -> Output:
    data = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = _lines(value._repr_html_())
    return {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def _picture(number: int) -> Output:
    """Returns a figure as a picture, and closes it."""
    drawn = io.BytesIO()
    figure = plt.figure(number)
    figure.savefig(drawn, format="png", dpi=_DOTS)
    plt.close(figure)
    data = {"image/png": b64encode(drawn.getvalue()).decode()}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> int:
    """Runs the notebook in a temporary folder, writes it, and returns the exit code."""
    notebook = json.loads(PAGE.read_text(encoding="utf-8"))
    os.environ["COLUMNS"] = _WIDTH
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["MUSIC_TF_RUNS"] = "runs"
        shown = iter(executed(sources(notebook)))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = next(shown)
    PAGE.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
