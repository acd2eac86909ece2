"""Shares fixtures of the kit."""

from tests.kit.odd import odd
from tests.kit.placed import placed

__all__ = ["odd", "placed"]
