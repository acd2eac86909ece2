"""A blind straight shove for Fetch, a baseline that shows why displacement alone is not control."""

import numpy as np

from music_tf.types import Array

_GAIN = 10.0
"""Action per metre of distance to the next point of the plan."""
_BEHIND = 0.10
"""Metres behind the object where the gripper is lowered."""
_CLEARANCE = 0.06
"""Metres above the object at which the gripper travels there."""
_BEYOND = 1.0
"""Metres beyond the object to which the shove would go."""
_ARRIVED = 0.03
"""Metres within which a point of the plan counts as reached."""


class StraightShove:
    """Lowers the gripper behind the object and drives straight through where it first was.

    The plan is made from the first observation of an episode; what the object does afterwards
    is never looked at. Observations must have the Fetch layout: gripper in 0..2, object in 3..5.
    """

    def __init__(self) -> None:
        self._start: Array | None = None
        self._direction = np.zeros((0, 2), np.float32)
        self._phase = np.zeros(0, np.int64)

    def reset(self) -> None:
        """Starts new episodes: the next observations are their first states."""
        self._start = None

    def __call__(self, observation: Array) -> Array:
        """Actions [E, 4] for observations [E, O]: travel, lower, then full speed ahead."""
        gripper, place = observation[:, 0:3], observation[:, 3:6]
        if self._start is None:
            self._start = place.copy()
            towards = place[:, :2] - gripper[:, :2]
            self._direction = towards / np.linalg.norm(towards, axis=-1, keepdims=True)
            self._phase = np.zeros(len(place), np.int64)
        distance = np.linalg.norm(self._targets(self._start) - gripper, axis=-1)
        self._phase += (distance < _ARRIVED) & (self._phase < 2)  # noqa: PLR2004
        move = _GAIN * (self._targets(self._start) - gripper)
        move = move / np.maximum(np.abs(move).max(axis=-1, keepdims=True), 1.0)
        action = np.concatenate([move, -np.ones((len(move), 1))], axis=1)
        return action.astype(np.float32)

    def _targets(self, start: Array) -> Array:
        """Next point of each plan: above behind the object, down behind it, far beyond it."""
        along = np.choose(self._phase, [-_BEHIND, -_BEHIND, _BEYOND])
        height = np.choose(self._phase, [_CLEARANCE, 0.0, 0.0])
        flat = start[:, :2] + along[:, None] * self._direction
        return np.concatenate([flat, start[:, 2:] + height[:, None]], axis=1).astype(np.float32)
