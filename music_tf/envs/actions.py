"""Maps the actions of a policy, in [-1, 1], to those of an environment."""

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
    if not (all_finite(low) and all_finite(high)):
        raise UsageError(f"env_id: {env_id!r}: expected finite bounds of actions, got {space}")
    return low.astype(np.float32), high.astype(np.float32)


def in_space(space: Any, actions: Array) -> np.ndarray:
    """Maps actions [..., A] in [-1, 1] to the bounds and the type of their space.

    They are scaled in single precision, rounded if the space has integers, and finally clipped to
    the bounds in its own type.
    """
    low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    scaled = np.clip(low + 0.5 * (actions + 1.0) * (high - low), low, high)
    if np.issubdtype(space.dtype, np.integer):
        scaled = np.rint(scaled)
    inside: np.ndarray = np.clip(scaled.astype(space.dtype), space.low, space.high)
    return inside
