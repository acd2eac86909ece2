from tests.kit.points import points

__all__ = ["points"]
