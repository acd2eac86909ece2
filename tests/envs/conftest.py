"""Shares fixtures of the kit."""

from tests.kit.odd import odd
from tests.kit.placed import placed
from tests.kit.points import points

__all__ = ["odd", "placed", "points"]
