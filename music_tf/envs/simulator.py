"""MuJoCo's warnings, which otherwise go to a file in the user's folder."""

import functools

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


def clear_state(unwrapped: object) -> None:
    """Forgets what an episode leaves behind in the simulator, warm start and controls included.

    Args:
        unwrapped: Environment; left alone if it has no MuJoCo `model` and `data`.
    """
    model, data = getattr(unwrapped, "model", None), getattr(unwrapped, "data", None)
    if type(data).__name__ == "MjData":
        import mujoco  # noqa: PLC0415

        mujoco.mj_resetData(model, data)
