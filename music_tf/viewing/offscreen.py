"""Settles how MuJoCo draws in this process, which must happen before MuJoCo is loaded."""

import os

from music_tf.envs.registry import is_known
from music_tf.errors import EnvironmentFault
from music_tf.viewing.gl import DEBIAN_PACKAGES, working_backend

_DRAW_THEMSELVES = "music_tf/"


def prepare_drawing(env_id: str) -> None:
    """Sets MUJOCO_GL to a value that draws here, where an environment may need it.

    Raises:
        EnvironmentFault: The environment is one of MuJoCo's, no OpenGL library loads without a
            screen, and there is none.
    """
    name = env_id.rpartition(":")[2]
    if name.startswith(_DRAW_THEMSELVES):
        return
    backend = working_backend() or ("glfw" if _has_screen() else None)
    if backend is not None:
        os.environ["MUJOCO_GL"] = backend
    elif is_known(name):
        raise EnvironmentFault(
            f"{name}: no picture can be drawn here: there is no screen, and neither EGL nor "
            "OSMesa loads\n"
            "cure, as root on Debian or Ubuntu, one of:\n"
            + "\n".join(
                f"  apt-get install {packages}   (MUJOCO_GL={backend})"
                for backend, packages in DEBIAN_PACKAGES.items()
            )
            + "\ntraining and evaluate need no picture; music-tf doctor checks again"
        )


def _has_screen() -> bool:
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
