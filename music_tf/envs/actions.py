"""Bounds of the actions of an environment, and goals in the type of their space."""

from typing import Any

import gymnasium
import numpy as np

from music_tf.errors import UsageError
from music_tf.types import all_finite


def action_bounds(env_id: str, environment: gymnasium.Env[Any, Any]) -> tuple[Any, Any]:
    """Returns the lowest and highest action [A] of an environment, in their type."""
    space = environment.action_space
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or low.ndim != 1:
        spec = environment.spec
        continuous = f"{spec.name}Continuous-v{spec.version}" if spec else ""
        near = f"; did you mean {continuous!r}?" if continuous in gymnasium.registry else ""
        raise UsageError(f"env_id: {env_id!r}: expected a Box of actions [A], got {space}{near}")
    with np.errstate(over="ignore", invalid="ignore"):
        span = high.astype(np.float32) - low.astype(np.float32)
    if not all_finite(span):  # as of bounds that are the largest floats
        raise UsageError(f"env_id: {env_id!r}: expected finite bounds of actions, got {space}")
    return low, high


def as_declared(goals: np.ndarray, kind: Any) -> np.ndarray:
    """Returns a copy of goals, as whole numbers or truth values if their space holds such."""
    kind = np.dtype(kind)
    if kind.kind not in "iub":
        return goals.copy()
    limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    whole: np.ndarray = np.clip(np.rint(goals), *limits).astype(kind)
    return whole
