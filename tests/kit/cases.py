"""Tests of several cases."""

import pytest


def cases(names, *rows, **options):
    """Runs a test once for each row, as `pytest.mark.parametrize` does for a list of rows."""
    return pytest.mark.parametrize(names, rows, **options)
