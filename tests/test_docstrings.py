"""Whatever a name and its types do not say, a docstring does."""

import ast

from tests.kit.sources import ROOT

PACKAGE = ROOT / "music_tf"
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
CLASSES = {
    node.name: node
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
}
ARRAYS = ("Array", "Tensor", "NDArray", "ndarray", "Floats")
PROPERTIES = {"property", "cached_property", "functools.cached_property"}


def test_a_public_function_that_is_long_or_moves_arrays_is_documented_where_it_is_first_defined():
    missing = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path, tree in TREES.items()
        for owner, function in public_functions(tree)
        if not ast.get_docstring(function)
        and (len(function.body) > 1 or moves_arrays(function))
        and not is_property(function)
        and not inherits_docstring(owner, function.name)
    ]
    assert missing == []


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
    bases = [] if owner is None else [ast.unparse(base).split("[")[0] for base in owner.bases]
    known = [CLASSES[base.split(".")[-1]] for base in bases if base.split(".")[-1] in CLASSES]
    return any(
        any(getattr(node, "name", "") == name and ast.get_docstring(node) for node in base.body)
        or inherits_docstring(base, name)
        for base in known
    )
