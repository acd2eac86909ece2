"""Applies the stages of a changing world to an environment, between two episodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.changes import EVERY, OPTION, Stage
from music_tf.config.names import few, suggestion
from music_tf.envs import simulator
from music_tf.errors import FROM_USERS, UsageError, error_line

_KINDS = {
    "mass": ("body", ("body_mass", "body_inertia")),
    "friction": ("geom", ("geom_friction",)),
    "damping": ("joint", ("dof_damping",)),
    "gear": ("actuator", ("actuator_gear",)),
    "place": ("body", ("body_pos",)),
}
"""For each change: the kind of element it names and the arrays of MuJoCo's model it writes."""
_COUNTS = {"body": "nbody", "geom": "ngeom", "joint": "njnt", "actuator": "nu"}
_FREE = 0
"""MuJoCo's type of a free joint."""
_JOINTS = (0, 1)
"""MuJoCo's types of actuators that move a joint."""


class Changes:
    """The stages of one environment, each relative to the values when this object is made."""

    def __init__(self, environment: gymnasium.Env[Any, Any], stages: Sequence[Stage]) -> None:
        """Stores the defaults of all that the stages change, and checks that it exists."""
        self._env_id = "the environment" if environment.spec is None else environment.spec.id
        self._unwrapped: Any = environment.unwrapped
        model = getattr(self._unwrapped, "model", None)
        self._model: Any = model if type(model).__name__ == "MjModel" else None
        self._stages = stages
        self._applied: int | None = None
        for number, stage in enumerate(stages):
            self._check_attributes(number, stage)
            for kind in _quantities_of(stage):
                if self._model is None:
                    self._refuse(number, kind, "is no MuJoCo task: only attributes can be set")
                if kind == "gravity" and not self._model.opt.gravity.any():
                    self._refuse(number, kind, "is 0 by default: no factor changes that")
            for kind, factors in stage.factors.items():
                self._check_factors(number, kind, factors)
            self._check_places(number, stage)
        kinds = {kind for stage in stages for kind in _quantities_of(stage)}
        arrays = {name for kind in kinds for name in _KINDS.get(kind, ("", ()))[1]}
        self._defaults = simulator.Defaults(self._model, sorted(arrays))
        self._gravity = self._model.opt.gravity.copy() if "gravity" in kinds else None
        attributes = (name for stage in stages for name in stage.attributes)
        self._attributes = {name: getattr(self._unwrapped, name) for name in attributes}
        self._untouched = self._expected = self._numbers()

    def apply(self, number: int) -> None:
        """Changes the world to that of a stage; reset the environment before the next step."""
        if number == self._applied:
            return
        stage, model = self._stages[number], self._model
        self._defaults.restore()
        for name, default in self._attributes.items():
            setattr(self._unwrapped, name, stage.attributes.get(name, default))
        for kind, factors in stage.factors.items():
            for name in _KINDS[kind][1]:
                columns = getattr(model, name).T  # a view, [N] or [D, N]
                columns *= self._rows(kind, factors)
        for body, place in stage.place.items():
            model.body_pos[model.body(body).id] = place
        if self._gravity is not None:
            model.opt.gravity[:] = stage.gravity * self._gravity
        if model is not None:
            simulator.settle(model, self._unwrapped.data)
        self._applied, self._expected = number, self._numbers()

    def check(self) -> None:
        """Refuses a reset that made another model, or overwrote what the stage has changed."""
        number = self._applied or 0
        if self._model is not None and self._unwrapped.model is not self._model:
            cure = "build it once, in the constructor"
            self._refuse(number, "reset", f"builds its model anew, without what stages set: {cure}")
        for name, value in self._numbers().items():
            expected = self._expected[name]
            if np.any((value != expected) & (expected != self._untouched[name])):
                self._refuse(number, name, "reset overwrites what the stage sets: leave it alone")

    def _numbers(self) -> Mapping[str, Any]:
        numbers = {name: getattr(self._model, name).copy() for name in self._defaults.arrays}
        if self._gravity is not None:
            numbers["gravity"] = self._model.opt.gravity.copy()
        return numbers | {name: getattr(self._unwrapped, name) for name in self._attributes}

    def _rows(self, kind: str, factors: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Returns the factor of each row of the arrays of a kind, [N]."""
        thing = _KINDS[kind][0]
        every = factors.get(EVERY, 1.0)
        named = [factors.get(name, every) if name else every for name in self._names(thing)]
        each = np.array(named, np.float64)
        return np.asarray(each[self._model.dof_jntid]) if thing == "joint" else each

    def _names(self, thing: str) -> list[str]:
        """Returns all names of a kind; an unnamed actuator has that of its joint."""
        model, named = self._model, getattr(self._model, thing)
        names = [named(number).name for number in range(getattr(model, _COUNTS[thing]))]
        if thing != "actuator":
            return names
        joints = zip(names, model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)
        return [
            name or (model.joint(joint).name if kind in _JOINTS else "")
            for name, kind, joint in joints
        ]

    def _check_factors(self, number: int, kind: str, factors: Mapping[str, float]) -> None:
        thing, arrays = _KINDS[kind]
        for name in factors:
            self._check_name(number, kind, thing, name, (*self._names(thing), EVERY))
            chosen = self._rows(kind, {EVERY: 0.0, name: 1.0}) if name != EVERY else 1.0
            if not (getattr(self._model, arrays[0]).T * chosen).any():
                self._refuse(number, f"{kind}: {name}", "is 0 by default: no factor changes that")

    def _check_places(self, number: int, stage: Stage) -> None:
        for name in stage.place:
            self._check_name(number, "place", "body", name, self._names("body")[1:])
            body = self._model.body(name)
            joints = range(int(body.jntadr[0]), int(body.jntadr[0] + body.jntnum[0]))
            if int(body.parentid[0]) != 0:
                other = self._model.body(int(body.parentid[0])).name
                self._refuse(number, f"place: {name}", f"is a part of {other}, not of the world")
            if any(self._model.jnt_type[joint] == _FREE for joint in joints):
                text = "moves freely, so each episode places it by itself"
                self._refuse(number, f"place: {name}", text)

    def _check_attributes(self, number: int, stage: Stage) -> None:
        attributes = getattr(self._unwrapped, "changeable", ())
        attributes = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        for name, value in stage.attributes.items():
            self._check_name(number, "set", "changeable attribute", name, attributes)
            default = getattr(self._unwrapped, name)
            kinds = (int, float) if type(default) is float else (type(default),)
            if type(value) not in kinds:
                text = f"expected a value such as {default!r:.80}, got {value!r:.80}"
                self._refuse(number, f"set: {name}", text)
            try:
                setattr(self._unwrapped, name, value)
            except FROM_USERS as error:
                self._refuse(number, f"set: {name}", error_line(error))
            setattr(self._unwrapped, name, default)

    def _check_name(
        self, number: int, where: str, thing: str, name: str, names: Sequence[str]
    ) -> None:
        named = [each for each in names if each]
        if name not in named:
            has = f"it has {few(named)}" if named else "it has none with a name"
            text = f"there is no {thing} {name[:80]!r}, {has}{suggestion(name, named)}"
            self._refuse(number, where, text)

    def _refuse(self, number: int, where: str, text: str) -> NoReturn:
        raise UsageError(f"{OPTION}: stage {number}: {where}: {self._env_id}: {text}")


def _quantities_of(stage: Stage) -> Iterator[str]:
    yield from stage.factors
    if stage.place:
        yield "place"
    if stage.gravity != 1.0:
        yield "gravity"
