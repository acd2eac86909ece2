"""Behaviour metrics: the motion of the object in episodes, measured without any task.

All functions take observations [E, T + 1, O] and ignore states after an episode's length. A
position has 3, 2 or 1 coordinates. Lengths below are in metres if positions are, else in the
environment's own unit. Whether a gripper is near is checked only where a support is known, whose
positions are in metres.
"""

import math

import numpy as np

from music_tf.envs.registry import EnvironmentInfo, Support
from music_tf.types import Array, BoolArray, IntArray, Metrics, kept_steps

MOVED = 0.05
"""Smallest displacement of an object that counts as moved."""
_MOVED_SHARE = 0.1
NEAR = 0.10
"""Largest distance of gripper and object, in metres, at which they can travel together."""
HELD = 0.05
"""Largest distance of gripper and raised object, in metres, that counts as held."""
LIFTED = 0.05
"""Smallest height above its rest height, in metres, at which an object counts as lifted."""
LIFTED_STEPS = 10
"""Number of steps that an object must be lifted in an episode."""
CELL = 0.05
"""Side of the square cells of coverage, in metres."""
LARGE_CELL = 0.1
"""Side of the cells of `coverage/object_cells`."""
_SECTORS = 8
TOUCHED = 0.001
"""Smallest motion of an object in a step, in metres, that counts as a touch of a near gripper."""
_ARROWS = "→↗↑↖←↙↓↘"


def behaviour_metrics(
    observation: Array, length: IntArray, info: EnvironmentInfo
) -> dict[str, Array]:
    """Metrics of each episode, arrays [E], which `storage.metrics` explains with `eval/`."""
    if info.object is None:
        return {}
    place = _places(observation, info.object)  # [E, T + 1, D]
    displacement = np.linalg.norm(_ways(place, length), axis=-1)
    metrics = {"object_displacement_m": displacement, "object_moved": displacement > MOVED}
    if info.support is not None:
        kept = _on_support(place, info.support) | _held(observation, place, info)
        metrics["object_on_support"] = kept[np.arange(len(length)), length]
    if info.gripper is not None:
        gripper = _places(observation, info.gripper)
        path = _path_together(gripper, place, length, info)
        metrics["object_comotion_m"] = metrics.get("object_on_support", 1.0) * path
        if info.support is not None:
            raised = place[..., 2] - info.support.rest_height > LIFTED
            close = np.linalg.norm(gripper - place, axis=-1) <= HELD
            lifted = raised & close & _valid_states(place, length)
            metrics["object_lift"] = np.sum(lifted[:, 1:], axis=1) >= LIFTED_STEPS
    return {name: values.astype(np.float32) for name, values in metrics.items()}


def ways_to_goals(achieved: Array, desired: Array) -> dict[str, float]:
    """Metrics of achieved goals [E, T + 1, G] and desired ones [E, G], before any success."""
    left = np.linalg.norm(achieved[:, [0, -1]] - desired[:, None].astype(np.float64), axis=-1)
    ways = np.linalg.norm(achieved - achieved[:, :1].astype(np.float64), axis=-1).max(axis=1)
    return {
        "eval/goal_distance": float(left[:, 1].mean()),
        "eval/goal_moved_rate": float((ways > _MOVED_SHARE * left[:, 0].mean()).mean()),
    }


def shifts(observation: Array, length: IntArray, info: EnvironmentInfo) -> Array | None:
    """Returns the displacement vector of the object in each episode, [E, D]; None without one."""
    return None if info.object is None else _ways(_places(observation, info.object), length)


def rotation(observation: Array, length: IntArray, info: EnvironmentInfo) -> Array | None:
    """Angle between the object's first and last orientation, [E], 0 to pi; None if unknown."""
    if info.orientation is None:
        return None
    turned = observation[..., list(info.orientation)].astype(np.float64)
    turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
    first, last = turned[:, 0], turned[np.arange(len(length)), length]
    # q and -q are the same orientation
    angle: Array = 2.0 * np.arccos(np.minimum(1.0, np.abs(np.sum(first * last, axis=-1))))
    return angle


def direction(x: float, y: float) -> str:
    """Returns an arrow and the angle from the x axis of a displacement over 5 cm, else "-"."""
    if math.hypot(x, y) <= MOVED:
        return "-"
    degrees = round(math.degrees(math.atan2(y, x))) % 360
    return f"{_ARROWS[round(degrees / 45) % _SECTORS]} {degrees}°"


def visited_cells(
    observation: Array, length: IntArray, info: EnvironmentInfo
) -> set[tuple[int, int]]:
    """Returns the 5 cm cells that the object visited, on its support if there is one."""
    if info.object is None:
        return set()
    place = _places(observation, info.object)
    counted = _valid_states(place, length)
    if info.support is not None:
        counted &= _on_support(place, info.support)
    cells = np.unique(np.floor(in_plane(place[counted]) / CELL).astype(np.int64), axis=0)
    return {(x, y) for x, y in cells.tolist()}


def coverage(observation: Array, length: IntArray, info: EnvironmentInfo) -> Metrics:
    """Returns how widely the object was moved without losing it, by metric name."""
    if info.object is None:
        return {}
    place, last = _places(observation, info.object), (np.arange(len(length)), length)
    valid = _valid_states(place, length)
    high = over = np.ones(valid.shape, np.bool_)
    if info.support is not None:
        high = place[..., 2] > info.support.rest_height - info.support.tolerance
        over = (_above(place, info.support) & high) | _held(observation, place, info)
    kept = high[last]
    ways = _ways(place, length)
    brought = over[last] & (np.linalg.norm(ways, axis=-1) > MOVED)
    moves = in_plane((place - place[:, :1])[over & valid & kept[:, None]])
    visited, ways = in_plane(place[valid]).astype(np.float64), in_plane(ways)
    angles = np.arctan2(ways[brought, 1], ways[brought, 0])
    sectors = np.floor(angles * _SECTORS / (2.0 * np.pi)).astype(np.int64) % _SECTORS
    counts = np.bincount(sectors, minlength=_SECTORS)
    shares = counts[counts > 0] / max(1, len(sectors))
    entropy = (shares * np.log(1.0 / shares)).sum()
    metrics = {
        "coverage/kept_rate": float(kept.mean()),
        "coverage/moved_and_kept_rate": float(brought.mean()),
        "coverage/displacement_cells": float(len(np.unique(np.rint(moves / CELL), axis=0))),
        "coverage/direction_entropy": float(entropy / np.log(_SECTORS)),
        "coverage/object_cells": float(len(np.unique(np.floor(visited / LARGE_CELL), axis=0))),
    }
    if info.support is None:
        del metrics["coverage/kept_rate"], metrics["coverage/moved_and_kept_rate"]
    if len(info.object) == 1:
        del metrics["coverage/direction_entropy"]
    return metrics


def support_cells(support: Support) -> int:
    """Returns the number of 5 cm cells that intersect the surface of a support."""
    low, high = np.array(support.low) / CELL, np.array(support.high) / CELL
    sides = np.ceil(np.round(high, 6)) - np.floor(np.round(low, 6))
    return int(sides.prod())


def first_contact(observation: Array, length: IntArray, info: EnvironmentInfo) -> IntArray:
    """First step, from 1 on, in which the gripper touches the object, or `length + 1`, [E]."""
    if info.object is None or info.gripper is None:
        return length + 1
    place, gripper = _places(observation, info.object), _places(observation, info.gripper)
    moved = np.linalg.norm(np.diff(place, axis=1), axis=-1) > TOUCHED
    near = _near_throughout(gripper, place, info)
    touched = moved & near & _valid_states(place, length)[:, 1:]
    return np.where(touched.any(axis=1), touched.argmax(axis=1) + 1, length + 1)


def summarize(observation: Array, length: IntArray, info: EnvironmentInfo) -> Metrics:
    """Returns means over episodes, and coverage, by metric name."""
    rates = ("object_moved", "object_on_support", "object_lift")
    metrics = {
        f"eval/{name}_rate" if name in rates else f"eval/{name}": float(np.mean(values))
        for name, values in behaviour_metrics(observation, length, info).items()
    }
    if info.object is not None:
        metrics["eval/object_coverage"] = float(len(visited_cells(observation, length, info)))
    return metrics


def support_lost_at(observation: Array, length: IntArray, info: EnvironmentInfo) -> IntArray:
    """First state with the object below its support or beside it unheld, or `length + 1`, [E]."""
    if info.object is None or info.support is None:
        return length + 1
    place = _places(observation, info.object)
    below = place[..., 2] < info.support.rest_height - info.support.tolerance
    beside = ~_above(place, info.support) & ~_held(observation, place, info)
    lost = (below | beside) & _valid_states(place, length)
    return np.where(lost.any(axis=1), lost.argmax(axis=1), length + 1)


def in_plane(place: Array) -> Array:
    """Returns x and y of positions [..., D], with y = 0 on a line."""
    flat: Array = place[..., :2]
    return flat if flat.shape[-1] > 1 else np.concatenate([flat, np.zeros_like(flat)], axis=-1)


def _path_together(gripper: Array, place: Array, length: IntArray, info: EnvironmentInfo) -> Array:
    """Returns the path of the object in steps in which it moves with the gripper, [E]."""
    gripper_step, object_step = np.diff(gripper, axis=1), np.diff(place, axis=1)
    gripper_path = np.linalg.norm(gripper_step, axis=-1)  # [E, T]
    object_path = np.linalg.norm(object_step, axis=-1)
    differ = np.linalg.norm(object_step - gripper_step, axis=-1)
    together = differ <= np.maximum(gripper_path, object_path) / 2.0
    near = _near_throughout(gripper, place, info)
    counted = together & near & _valid_states(place, length)[:, 1:]
    path: Array = np.sum(object_path * counted, axis=1)
    return path


def _ways(place: Array, length: IntArray) -> Array:
    return place[np.arange(len(length)), length] - place[:, 0]


def _places(observation: Array, indices: tuple[int, ...]) -> Array:
    return observation[..., list(indices)]


def _valid_states(place: Array, length: IntArray) -> BoolArray:
    return kept_steps(length + 1, place.shape[1])


def _above(place: Array, support: Support) -> BoolArray:
    inside = (place[..., :2] >= support.low) & (place[..., :2] <= support.high)
    return np.logical_and(inside[..., 0], inside[..., 1])


def _on_support(place: Array, support: Support) -> BoolArray:
    at_rest = np.abs(place[..., 2] - support.rest_height) <= support.tolerance
    on_support: BoolArray = _above(place, support) & at_rest
    return on_support


def _held(observation: Array, place: Array, info: EnvironmentInfo) -> BoolArray:
    """Whether the object is raised and the gripper close to it; false without a gripper."""
    if info.gripper is None or info.support is None:
        return np.zeros(place.shape[:-1], np.bool_)
    gripper = _places(observation, info.gripper)
    raised = place[..., 2] > info.support.rest_height + info.support.tolerance
    held: BoolArray = raised & (np.linalg.norm(gripper - place, axis=-1) <= HELD)
    return held


def _near_throughout(gripper: Array, place: Array, info: EnvironmentInfo) -> BoolArray:
    """Whether the gripper is near before and after each step, [E, T]; always without a support."""
    if info.support is None:
        return np.ones((len(place), place.shape[1] - 1), np.bool_)
    near = np.linalg.norm(gripper - place, axis=-1) <= NEAR  # [E, T + 1]
    throughout: BoolArray = near[:, :-1] & near[:, 1:]
    return throughout
