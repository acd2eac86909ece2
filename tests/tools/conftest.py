"""Shares fixtures of the kit."""

from tests.kit.odd import odd

__all__ = ["odd"]
