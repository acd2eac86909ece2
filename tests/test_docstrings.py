"""What users call or extend is documented; so is what moves arrays in more than a few lines."""

import ast
import functools

from tests.kit.sources import ROOT

PACKAGE = ROOT / "music_tf"
OFFERED = (
    *("losses/", "api.py", "errors.py", "intrinsic/base.py", "agents/base.py", "config/world.py"),
    *("envs/switching.py", "runs/callbacks.py", "storage/loading.py"),
)
"""Losses, `music_tf.__all__`, and the extension points of docs/architecture.md."""
ARRAYS = ("Array", "Tensor", "NDArray", "ndarray", "Floats")
PROPERTIES = {"property", "cached_property", "functools.cached_property"}


@functools.cache
def trees():
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


@functools.cache
def classes():
    nodes = (node for tree in trees().values() for node in ast.walk(tree))
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def test_a_public_function_that_is_long_or_moves_arrays_is_documented_where_it_is_first_defined():
    missing = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path, tree in trees().items()
        for owner, function in public_functions(tree)
        if not ast.get_docstring(function)
        and needs_docstring(str(path.relative_to(PACKAGE)), function)
        and not is_property(function)
        and not inherits_docstring(owner, function.name)
    ]
    assert missing == []


def needs_docstring(file, function):
    if file.startswith(OFFERED):
        return len(function.body) > 1 or moves_arrays(function)
    return len(function.body) > 3 and moves_arrays(function)


def public_functions(tree):
    """Yields the functions of a module, and the methods of its classes with their class."""
    for owner in [None, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        if owner is None or not owner.name.startswith("_"):
            for node in (owner or tree).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    yield owner, node


def moves_arrays(function):
    hints = ast.unparse(function.args) + ast.unparse(function.returns or ast.Constant(""))
    return any(name in hints for name in ARRAYS)


def is_property(function):
    names = [ast.unparse(each) for each in function.decorator_list]
    return any(name in PROPERTIES or name.endswith(".setter") for name in names)


def inherits_docstring(owner, name):
    names = [] if owner is None else [ast.unparse(base).split("[")[0] for base in owner.bases]
    bases = [base.split(".")[-1] for base in names]
    known = [classes()[base] for base in bases if base in classes()]
    return any(
        any(getattr(node, "name", "") == name and ast.get_docstring(node) for node in base.body)
        or inherits_docstring(base, name)
        for base in known
    )
