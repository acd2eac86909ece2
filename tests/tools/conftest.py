"""Shares fixtures of the kit."""

from tests.kit.odd import odd
from tests.kit.points import points

__all__ = ["odd", "points"]
