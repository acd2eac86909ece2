"""A blind straight shove, a baseline that shows why displacement alone is not control."""

from collections.abc import Sequence

import numpy as np

from music_tf.types import Array

_GAIN = 10.0
"""Action per metre of distance to the next point of the plan."""
_BEHIND = 0.10
"""Distance in metres behind the object where the gripper is lowered."""
_CLEARANCE = 0.06
"""Height in metres above the object at which the gripper travels there."""
_BEYOND = 1.0
"""Distance in metres beyond the object to which the shove aims."""
_ARRIVED = 0.03
"""Distance in metres within which a point of the plan counts as reached."""


class StraightShove:
    """Lowers the gripper behind the object and drives straight through its first position."""

    # One object serves a batch of episodes, of arms that a full action moves by a few centimetres.

    def __init__(
        self,
        gripper: Sequence[int] = (0, 1, 2),
        place: Sequence[int] = (3, 4, 5),
        angles: Array | None = None,  # [E] from the x axis; None: away from the gripper
        arm: Sequence[int] = (0, 1, 2),  # of an action, by x, y, z; others are -1, which closes it
    ) -> None:
        self._gripper, self._place, self._arm = list(gripper), list(place), list(arm)
        self._direction: Array | None = None
        if angles is not None:
            self._direction = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self._start: Array | None = None
        self._phase = np.zeros(0, np.int64)

    def __call__(self, observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        """Returns actions [E, A] for observations [E, O]: travel, lower, then shove."""
        del goal, skill
        gripper, place = observation[:, self._gripper], observation[:, self._place]
        if self._start is None or self._direction is None:
            self._start = place.copy()
            self._phase = np.zeros(len(place), np.int64)
            if self._direction is None:
                towards = place[:, :2] - gripper[:, :2]
                towards[~towards.any(axis=1)] = 1.0, 0.0  # any direction, if right below it
                self._direction = towards / np.linalg.norm(towards, axis=-1, keepdims=True)
        start, direction = self._start, self._direction
        distance = np.linalg.norm(self._target(start, direction) - gripper, axis=-1)
        self._phase += (distance < _ARRIVED) & (self._phase < 2)  # noqa: PLR2004
        move = _GAIN * (self._target(start, direction) - gripper)
        move = move / np.maximum(np.abs(move).max(axis=-1, keepdims=True), 1.0)
        action = np.full_like(noise, -1.0)
        action[:, self._arm] = move
        return action

    def _target(self, start: Array, direction: Array) -> Array:
        """Returns the next point of each plan: above and behind the object, behind it, beyond."""
        along = np.choose(self._phase, [-_BEHIND, -_BEHIND, _BEYOND])
        height = np.choose(self._phase, [_CLEARANCE, 0.0, 0.0])
        flat = start[:, :2] + along[:, None] * direction
        return np.concatenate([flat, start[:, 2:] + height[:, None]], axis=1).astype(np.float32)
