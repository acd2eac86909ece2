"""Tests of several cases."""

import pytest


def cases(names, *rows, **options):
    """Runs a test with each row: `pytest.mark.parametrize`, whose table lies a level deeper."""
    return pytest.mark.parametrize(names, rows, **options)
