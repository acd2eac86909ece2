"""Descriptors of skills that are read from Gymnasium's MuJoCo robots."""

from typing import Any

import numpy as np

from music_tf.errors import UsageError
from music_tf.types import Floats

_FREE, _SLIDE = 0, 2
"""MuJoCo's types of a free joint and of a slide joint."""


def xy(environment: Any) -> Floats:
    """Returns x and y in metres of a robot that moves freely, such as Ant and Humanoid."""
    model = getattr(environment, "model", None)
    if model is None or not model.njnt or model.jnt_type[0] != _FREE:
        raise UsageError("expected a robot that moves freely, such as Ant-v5; or give columns")
    return np.array(environment.data.qpos[:2])


def plane(environment: Any) -> Floats:
    """Returns the position in metres of a robot in the plane to which it is held."""
    model = getattr(environment, "model", None)
    if model is not None and model.njnt > 1 and (model.jnt_type[:2] == _SLIDE).all():
        along = np.abs(model.jnt_axis[:2]).argmax(axis=-1).tolist()
        if along == [0, 1]:  # a swimmer, whose front swings from side to side
            masses = model.body_mass
            place: Floats = masses @ environment.data.xipos[:, :2] / masses.sum()
            return place
        if along == [0, 2]:  # x and z of a robot that runs along a line
            return np.array(environment.data.qpos[:2])
    elif model is not None and model.njnt and model.jnt_type[0] == _FREE:
        return xy(environment)
    raise UsageError(
        "expected a robot held to a line, a swimmer, or one that moves freely, such as "
        "HalfCheetah-v5; or give columns"
    )


def foot_contacts(environment: Any) -> Floats:
    """Returns 1 for each foot (`foot` in a geom's name, or else `ankle`) on the floor, else 0."""
    model = getattr(environment, "model", None)
    names = [] if model is None else [model.geom(number).name for number in range(model.ngeom)]
    feet = [n for n, name in enumerate(names) if "foot" in name]
    feet = feet or [n for n, name in enumerate(names) if "ankle" in name]
    if "floor" not in names or not feet:
        raise UsageError("expected a robot with feet and a floor, such as Ant-v5; or give columns")
    contacts = environment.data.contact
    pairs = np.stack([contacts.geom1, contacts.geom2], axis=-1)
    beside_floor = pairs[(pairs == names.index("floor")).any(axis=-1)]
    return np.isin(feet, beside_floor).astype(np.float64)
