"""What users call or extend is documented, and what losses compute."""

import ast

from tests.kit.sources import ROOT

PACKAGE = ROOT / "music_tf"
OFFERED = (
    *("losses/", "api.py", "errors.py", "intrinsic/base.py", "agents/base.py", "config/world.py"),
    *("envs/switching.py", "runs/callbacks.py", "storage/loading.py"),
)
"""Losses, `music_tf.__all__`, and the extension points of docs/extend.md."""
ARRAYS = ("Array", "Tensor", "NDArray", "ndarray", "Floats")
PROPERTIES = {"property", "cached_property", "functools.cached_property"}


def test_a_public_function_that_is_long_or_moves_arrays_is_documented():
    missing = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)).startswith(OFFERED)
        for function in public_functions(ast.parse(path.read_text(encoding="utf-8")))
        if not ast.get_docstring(function)
        and (len(function.body) > 1 or moves_arrays(function))
        and not is_property(function)
    ]
    assert missing == []


def public_functions(tree):
    for owner in [None, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        if owner is None or not owner.name.startswith("_"):
            for node in (owner or tree).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    yield node


def moves_arrays(function):
    hints = ast.unparse(function.args) + ast.unparse(function.returns or ast.Constant(""))
    return any(name in hints for name in ARRAYS)


def is_property(function):
    names = [ast.unparse(each) for each in function.decorator_list]
    return any(name in PROPERTIES or name.endswith(".setter") for name in names)
