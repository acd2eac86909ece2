"""Maps the actions of a policy, in [-1, 1], and goals to the types of an environment's spaces."""

from typing import Any

import gymnasium
import numpy as np

from music_tf.errors import UsageError
from music_tf.types import Array, all_finite


def action_bounds(env_id: str, environment: gymnasium.Env[Any, Any]) -> tuple[Array, Array]:
    """Returns the lowest and highest action [A] of an environment.

    Raises:
        UsageError: Actions are no vector with finite bounds.
    """
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
    return low.astype(np.float32), high.astype(np.float32)


def in_space(space: Any, actions: Array) -> np.ndarray:
    """Maps actions [..., A] in [-1, 1] to the bounds and the type of their space.

    They are scaled in single precision, rounded if the space has integers, and finally clipped to
    the bounds in its own type.
    """
    low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    scaled = np.clip(low + 0.5 * (actions + 1.0) * (high - low), low, high)
    if np.issubdtype(space.dtype, np.integer):  # single precision may round beyond their bounds
        scaled = np.rint(scaled)
        with np.errstate(invalid="ignore"):
            whole = scaled.astype(space.dtype)
        scaled = np.where(scaled >= high, space.high, np.where(scaled <= low, space.low, whole))
    inside: np.ndarray = np.clip(scaled.astype(space.dtype), space.low, space.high)
    return inside


def as_declared(goals: np.ndarray, kind: Any) -> np.ndarray:
    """Returns a copy of goals, as whole numbers or truth values if their space holds such."""
    kind = np.dtype(kind)
    if kind.kind not in "iub":
        return goals.copy()
    limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    whole: np.ndarray = np.clip(np.rint(goals), *limits).astype(kind)
    return whole


def is_unit(space: Any) -> bool:
    """Whether actions in [-1, 1] are taken as they are, without `in_space`."""
    unit = (space.low == -1.0).all() and (space.high == 1.0).all()
    return bool(unit and space.dtype == np.float32)
