"""What the text of a module imports."""

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).parents[2]


@functools.cache
def imported_modules(source):  # names every module that `source` imports, also inside functions
    modules = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the stage"
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
    return modules


def imported_packages(source):  # names the outermost packages of these
    return {name.split(".")[0] for name in imported_modules(source)}
