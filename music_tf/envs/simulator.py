"""MuJoCo: its warnings, the state that an episode leaves, and arrays of its models."""

import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.errors import EnvironmentFault
from music_tf.process.children import PIP_INSTALL

_PLAIN = 4096
"""Least bytes of Python objects; measured were 6 kB for toys, 1.5 MB for Fetch tasks."""
_HINGE = "<mujoco><worldbody><body><joint name='0'/><geom size='1'/></body></worldbody></mujoco>"
_WRONG = "4.0.0"
_warnings: list[str] = []


def catch_warnings() -> None:
    """Collects MuJoCo's warnings in memory instead of `MUJOCO_LOG.TXT`, if it is imported."""
    if "mujoco" in sys.modules:
        sys.modules["mujoco"].set_mju_user_warning(_warnings.append)


def take_warnings() -> list[str]:
    """Returns the warnings since the last call; MuJoCo gives one per kind and reset."""
    texts = _warnings.copy()
    _warnings.clear()
    return texts


def mend_joints() -> None:
    """Makes types of joints integers for gymnasium-robotics if it fails on a hinge.

    Version 1.4.2 asks for `joint_type in (mjJNT_HINGE, mjJNT_SLIDE)`; from MuJoCo 3.12 on, members
    of an enumeration differ from integers of numpy on their right. Only its `mujoco_utils` changes.
    """
    utils: Any = sys.modules.get("gymnasium_robotics.utils.mujoco_utils")
    if utils is None:
        return
    mujoco = utils.mujoco
    model = mujoco.MjModel.from_xml_string(_HINGE)
    try:
        utils.get_joint_qpos(model, mujoco.MjData(model), "0")
    except AssertionError:
        kinds = {name: int(kind) for name, kind in mujoco.mjtJoint.__members__.items()}
        utils.mujoco = SimpleNamespace(**vars(mujoco) | {"mjtJoint": SimpleNamespace(**kinds)})


def refuse_wrong(environment: gymnasium.Env[Any, Any]) -> None:
    """Refuses an environment of a MuJoCo that computes wrongly."""
    if model_and_data(environment.unwrapped) and sys.modules["mujoco"].__version__ == _WRONG:
        raise EnvironmentFault(
            f"expected another MuJoCo than {_WRONG}, whose Newton solver has a wrong Hessian\n"
            f"cure, in this environment: {PIP_INSTALL} 'mujoco>=3.3,!={_WRONG},<5'"
        )


def bytes_of(environment: gymnasium.Env[Any, Any]) -> int:
    """Returns the least bytes of one copy of an environment, with those of MuJoCo."""
    unwrapped: Any = environment.unwrapped
    tables = [getattr(unwrapped, name, None) for name in ("model", "data")]
    return _PLAIN + sum(int(getattr(table, "nbuffer", 0)) for table in tables)


class Counts:
    """How often the simulator of an environment has warned, read from its data."""

    def __init__(self, unwrapped: object) -> None:
        self._data: Any = (model_and_data(unwrapped) or (None, None))[1]
        self._now: Any = np.zeros(0) if self._data is None else self._data.warning.number  # a view
        self._before = self._now.tobytes()

    def new(self) -> list[str]:
        """Returns the texts of kinds that were counted since the last call."""
        if self._now.tobytes() == self._before:
            return []
        import mujoco  # noqa: PLC0415

        more = self._now > np.frombuffer(self._before, self._now.dtype)
        self._before = self._now.tobytes()
        last = self._data.warning.lastinfo
        return [mujoco.mju_warningText(int(kind), int(last[kind])) for kind in np.flatnonzero(more)]


class Beginning:
    """The state of MuJoCo in which an environment was made, which may place bodies once."""

    def __init__(self, unwrapped: object) -> None:
        """Takes an environment that was neither reset nor stepped."""
        self._unwrapped = unwrapped
        self._state: npt.NDArray[np.float64] | None = None
        if simulated := model_and_data(unwrapped):
            import mujoco  # noqa: PLC0415

            self._state = np.empty(mujoco.mj_stateSize(simulated[0], _own_state()))
            mujoco.mj_getState(*simulated, self._state, _own_state())

    def restore(self) -> None:
        """Returns to it from what an episode leaves, such as its warm start and controls."""
        if simulated := model_and_data(self._unwrapped):
            import mujoco  # noqa: PLC0415

            mujoco.mj_resetData(*simulated)
            state = self._state
            if state is not None and len(state) == mujoco.mj_stateSize(simulated[0], _own_state()):
                mujoco.mj_setState(*simulated, state, _own_state())


def model_and_data(unwrapped: object) -> tuple[Any, Any] | None:
    """Returns the model and the data of MuJoCo that an environment has, if any."""
    model, data = getattr(unwrapped, "model", None), getattr(unwrapped, "data", None)
    return (model, data) if type(data).__name__ == "MjData" else None


def _own_state() -> int:
    """Returns MuJoCo's mask of a whole state without its warm start."""
    import mujoco  # noqa: PLC0415

    kinds = mujoco.mjtState
    return int(kinds.mjSTATE_INTEGRATION) & ~int(kinds.mjSTATE_WARMSTART)


class Defaults:
    """Copies of arrays of a MuJoCo model, by name in this order."""

    def __init__(self, model: Any, names: Iterable[str]) -> None:
        self._model = model
        self.arrays: dict[str, npt.NDArray[np.float64]] = {
            name: getattr(model, name).copy() for name in names
        }

    def restore(self) -> None:
        """Writes the copies back; `settle` then updates what depends on them."""
        for name, values in self.arrays.items():
            getattr(self._model, name)[:] = values


def settle(model: Any, data: Any) -> None:
    """Updates what depends on masses and places of a model; reset before the next step."""
    import mujoco  # noqa: PLC0415  (toys are changed without it)

    welds = model.eq_type == int(mujoco.mjtEq.mjEQ_WELD)
    before = model.eq_data[welds]
    mujoco.mj_setConst(model, data)
    model.eq_data[welds] = before  # MuJoCo 3.17 derives anew the poses that an environment has set
