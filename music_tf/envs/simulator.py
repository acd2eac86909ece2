"""MuJoCo: what it warns of, what an episode leaves behind, and arrays of its models."""

import functools
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

_PLAIN = 4096
"""Bytes of Python objects; the toys were seen to take 6 kB, Fetch tasks 1.5 MB beside tables."""
_warnings: list[str] = []


@functools.cache
def catch_warnings() -> None:
    """Collects MuJoCo's warnings in memory instead of `MUJOCO_LOG.TXT`; does so once."""
    import mujoco  # noqa: PLC0415  (toy environments run without it)

    mujoco.set_mju_user_warning(_warnings.append)


def take_warnings() -> list[str]:
    """Hands out the warnings that came since the last call; MuJoCo gives one per kind and reset."""
    if not _warnings:
        return []
    taken = _warnings.copy()
    _warnings.clear()
    return taken


def bytes_of(environment: gymnasium.Env[Any, Any]) -> int:
    """Returns the bytes that one copy of an environment takes at least, MuJoCo's included."""
    unwrapped: Any = environment.unwrapped
    tables = [getattr(unwrapped, name, None) for name in ("model", "data")]
    return _PLAIN + sum(int(getattr(table, "nbuffer", 0)) for table in tables)


def clear_state(unwrapped: object) -> None:
    """Forgets what an episode leaves in MuJoCo, if it runs on it: warm start, controls and all."""
    model, data = getattr(unwrapped, "model", None), getattr(unwrapped, "data", None)
    if type(data).__name__ == "MjData":
        import mujoco  # noqa: PLC0415

        mujoco.mj_resetData(model, data)


class Defaults:
    """Arrays of a MuJoCo model as they are when it is handed over, to the last bit."""

    def __init__(self, model: Any, names: Iterable[str]) -> None:
        """Copies the arrays of these names, in this order."""
        self._model = model
        self.arrays: dict[str, npt.NDArray[np.float64]] = {
            name: getattr(model, name).copy() for name in names
        }

    def restore(self) -> None:
        """Writes them back. What follows from them is as before after `settle`."""
        for name, values in self.arrays.items():
            getattr(self._model, name)[:] = values


def settle(model: Any, data: Any) -> None:
    """Computes anew what follows from the masses and places of a model. Reset before any step."""
    import mujoco  # noqa: PLC0415  (toys are changed without it)

    mujoco.mj_setConst(model, data)
