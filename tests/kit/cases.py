"""Tests of several cases."""

import functools
import inspect

import pytest


def cases(names, *rows, **options):
    """Runs a test once for each row, as `pytest.mark.parametrize` does for a list of rows."""
    return pytest.mark.parametrize(names, rows, **options)


def every(names, rows):
    """Runs a test for all rows, as one item; a failure notes its row.

    For long lists that the code makes, such as all recipes: an item each would take longer to
    collect than to run.
    """
    names = [names] if isinstance(names, str) else names
    rows = [row if len(names) > 1 else (row,) for row in rows]

    def looped(test):
        signature = inspect.signature(test)
        fixtures = [each for name, each in signature.parameters.items() if name not in names]

        @functools.wraps(test)
        def run(**given):
            assert rows
            for row in rows:
                try:
                    test(**given, **dict(zip(names, row, strict=True)))
                except BaseException as failure:
                    failure.add_note(f"for {', '.join(map(str, row))}")
                    raise

        run.__signature__ = signature.replace(parameters=fixtures)
        return run

    return looped
