"""Nothing that we load can run code: the linter refuses it, and no file gets around the linter."""

import ast
import subprocess
import sys

import pytest

from tests.kit.sources import ROOT, imported_packages

SOURCES = sorted(
    path
    for folder in ("music_tf", "experiments", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
LOADERS = {"pickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "jsonpickle"}


def findings(source):
    ruff = [sys.executable, "-m", "ruff", "check", "--stdin-filename", "music_tf/new.py", "-"]
    done = subprocess.run(
        ruff, input=source, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


def test_the_linter_refuses_every_loader_that_can_run_code():
    lines = [
        *(f"import {name}" for name in sorted(LOADERS)),
        "from pickle import loads",
        "from keras.models import load_model",
        "from keras.saving import load_model as load",
        "from tensorflow import saved_model",
    ]
    found = findings("\n".join(lines) + "\n")
    for number in range(1, len(lines) + 1):
        assert f"music_tf/new.py:{number}:" in found, lines[number - 1]
    assert found.count("TID251") == len(lines)
    assert "TID251" not in findings("import json\n")


def allows_pickles(source):
    return any(
        keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_gets_around_the_linter(path):
    source = path.read_text(encoding="utf-8")
    assert not LOADERS & imported_packages(source)
    # the battery of hostile files writes object arrays to see that they are refused
    assert not allows_pickles(source) or path.name == "test_hostile_files.py"


def test_what_gets_around_the_linter_is_found():
    assert LOADERS & imported_packages("def later():\n    import pickle  # noqa: TID251")
    assert allows_pickles("np.load(path, allow_pickle=True)")
    assert allows_pickles("np.load(path, allow_pickle=flag)")
    assert not allows_pickles("np.load(path, allow_pickle=False)")
