"""Nothing that we load can run code: the linter refuses it, and no file gets around the linter."""

import ast
import sys

from tests.kit.sources import ROOT, imported_packages
from tests.kit.started import ended

FOLDERS = ("music_tf", "experiments", "tests")
LOADERS = {"pickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "jsonpickle"}


def findings(source):
    ruff = [sys.executable, "-m", "ruff", "check", "--stdin-filename", "music_tf/new.py", "-"]
    return ended(*ruff, input=source).stdout


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


def test_no_file_gets_around_the_linter():
    assert LOADERS & imported_packages("def later():\n    import pickle  # noqa: TID251")
    assert allows_pickles("np.load(path, allow_pickle=flag)")
    assert not allows_pickles("np.load(path, allow_pickle=False)")
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    words = (*LOADERS, "allow_pickle")
    sources = {
        name: text
        for name, text in texts.items()
        if not text.isascii() or any(word in text for word in words)  # only these are parsed
    }
    assert [name for name, text in sources.items() if LOADERS & imported_packages(text)] == []
    # the battery of hostile files writes object arrays to see that they are refused
    pickling = [name for name, text in sources.items() if allows_pickles(text)]
    assert pickling == ["tests/hostile/test_hostile_files.py"]
