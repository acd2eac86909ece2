"""Finds out how MuJoCo can draw without a screen, before MuJoCo is loaded into this process.

MuJoCo reads MUJOCO_GL once, when it is imported, and a backend that cannot load breaks even
stepping; so each backend is tried in a process of its own.
"""

import os

from music_tf.process import Probe, run_python

BACKENDS = ("egl", "osmesa")
"""Values of MUJOCO_GL that need no screen, the faster first."""
DEBIAN_PACKAGES = {"egl": "libegl1 libgl1", "osmesa": "libosmesa6"}
"""What `apt-get install` needs for each backend; both draw on the CPU where there is no GPU."""

_DRAW_A_BALL = """
import mujoco
model = mujoco.MjModel.from_xml_string(
    '<mujoco><worldbody><light pos="0 0 3"/><geom type="sphere" size=".3"/></worldbody></mujoco>'
)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, 64, 64)
renderer.update_scene(data)
brightest = int(renderer.render().max())
renderer.close()
if brightest == 0:
    raise RuntimeError("the picture is black")
"""


def probe_backend(backend: str, seconds: float = 60.0) -> Probe:
    """Draws a small picture with MUJOCO_GL set to `backend`, in a process of its own."""
    return run_python(_DRAW_A_BALL, seconds=seconds, environment={"MUJOCO_GL": backend})


def candidates() -> tuple[str, ...]:
    """Returns the backends worth trying: the user's own MUJOCO_GL first, then `BACKENDS`."""
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    return tuple(dict.fromkeys(name for name in (chosen, *BACKENDS) if name))


def working_backend() -> str | None:
    """Returns the first value of MUJOCO_GL that draws here, or None where none does."""
    return next((name for name in candidates() if probe_backend(name).ok), None)
