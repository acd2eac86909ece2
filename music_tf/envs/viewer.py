"""Images of environments, rendered without an effect on training."""

import sys
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.names import is_local, without_module
from music_tf.config.settings import EnvConfig
from music_tf.envs import simulator
from music_tf.envs.making import make_environment
from music_tf.envs.member import show_goal
from music_tf.errors import FROM_USERS, EnvironmentFault, UsageError, error_line
from music_tf.types import Array

_CAMERAS: dict[str, tuple[tuple[float, float, float], dict[str, float]]] = {
    "FetchSlide": ((1.35, 0.75, 0.4), {"distance": 1.9, "azimuth": 132.0, "elevation": -28.0}),
    "FetchPick": ((1.23, 0.66, 0.6), {"distance": 1.45, "azimuth": 155.0, "elevation": -25.0}),
    "Fetch": ((1.3, 0.75, 0.45), {"distance": 1.15, "azimuth": 140.0, "elevation": -32.0}),
}
"""Target and position of the camera, by prefix of the name; other environments keep their own."""

_SHADOW = 1024
"""Pixels per side of the shadow map. Without a graphics card, MuJoCo's 4096 and its multisampling
take three quarters of the time of a picture."""
_GLASS = 0.45
"""Opacity of the goal of Fetch, a ball as large as what counts as reached."""
_TRAILS, _DOT, _MOST_DOTS = ((0.1, 0.4, 0.2, 1.0), (1.0, 0.5, 0.0, 1.0)), 0.005, 300
"""Colours of a path and of a way on it, radius of their dots in metres, and most dots of each."""


def can_render(environment: gymnasium.Env[Any, Any]) -> bool:
    """Whether the environment has a method `render` of its own."""
    method: Any = environment.unwrapped.render
    return getattr(method, "__func__", None) is not gymnasium.Env.render


class WindowClosedError(Exception):
    """The window of mode `human` was closed."""


class Viewer:
    """Renders MuJoCo in a twin, since rendering moves the goal marker; others render themselves."""

    def __init__(self, env_id: str, settings: EnvConfig, mode: str = "rgb_array") -> None:
        self._env_id = env_id
        self._settings = settings
        self._mode = mode
        self._twin: Any = None

    def render(
        self, environment: gymnasium.Env[Any, Any], goal: Array | None = None, *trails: Array
    ) -> npt.NDArray[np.uint8]:
        """Returns an image [height, width, 3]; MuJoCo draws places [N, G] of path and way, too."""
        source: Any = environment.unwrapped
        if goal is not None:
            show_goal(source, goal.astype(np.float64))
        cure = "without a screen set MUJOCO_GL=egl, or MUJOCO_GL=osmesa, before starting"
        if simulator.model_and_data(source) is None:
            cure = 'let render() run with render_mode="rgb_array"'
        elif is_local(self._env_id) and "tensorflow" in sys.modules:
            place = f"define it in a module, and train module:{self._env_id}"
            raise self._fault("OpenGL may crash beside TensorFlow in one process", place)
        try:
            image = self._draw(source, trails)
        except FROM_USERS as error:
            raise self._fault(error_line(error), cure) from error
        if self._mode == "human":  # which draws into a window
            if self._twin is not None and _is_closed(self._twin.unwrapped.mujoco_renderer.viewer):
                raise WindowClosedError
            return np.zeros((1, 1, 3), np.uint8)
        if not isinstance(image, np.ndarray) or image.ndim != 3:  # noqa: PLR2004
            raise UsageError(
                f"{self._env_id}: render() gave {type(image).__name__}, expected an array "
                '[height, width, 3]\ncure: return one under render_mode="rgb_array"'
            )
        return image.astype(np.uint8, copy=False)

    def close(self) -> None:
        if self._twin is not None:
            self._twin.close()
            self._twin = None

    def _draw(self, source: Any, trails: Sequence[Array]) -> Any:
        if simulator.model_and_data(source) is None:
            source.render_mode = self._mode
            return source.render()
        import mujoco  # noqa: PLC0415  (toy environments are drawn without it)

        if self._twin is None:
            self._twin = make_environment(self._env_id, self._settings, render_mode=self._mode)
            quality = self._twin.unwrapped.model.vis.quality
            quality.shadowsize, quality.offsamples = min(quality.shadowsize, _SHADOW), 0
            _aim(self._env_id, self._twin.unwrapped)
            self._twin.reset(seed=0)
        twin = self._twin.unwrapped
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(source.model, kind))
        mujoco.mj_getState(source.model, source.data, state, kind)
        mujoco.mj_setState(twin.model, twin.data, state, kind)
        goal = getattr(source, "goal", None)
        if goal is not None:
            show_goal(twin, np.asarray(goal))
        mujoco.mj_forward(twin.model, twin.data)
        window = getattr(getattr(twin, "mujoco_renderer", None), "viewer", None)
        if window is not None:  # no context is current after another one was freed
            window.make_context_current()
        for colour, trail in zip(_TRAILS, trails, strict=False):
            for place in trail[:: 1 + len(trail) // _MOST_DOTS]:
                window, at = twin.mujoco_renderer._get_viewer(self._mode), np.append(place, [0, 0])
                window.add_marker(pos=at[:3], size=np.full(3, _DOT), rgba=np.array(colour))
        return twin.render()

    def _fault(self, reason: str, cure: str) -> EnvironmentFault:
        return EnvironmentFault(f"{self._env_id}: cannot draw images ({reason})\ncure: {cure}")


def _is_closed(viewer: Any) -> bool:
    """Whether a window was closed; hides its menu until H is pressed, and lets Escape close it."""
    import glfw  # noqa: PLC0415 - MuJoCo brings it

    def press(window: Any, key: int, *more: int) -> None:
        if key == glfw.KEY_ESCAPE:  # Gymnasium would free the window meanwhile, and crash
            glfw.set_window_should_close(window, True)
        else:
            viewer._key_callback(window, key, *more)

    if glfw.set_key_callback(viewer.window, press) == viewer._key_callback:
        viewer._hide_menu = True
    return bool(glfw.window_should_close(viewer.window))


def _aim(env_id: str, unwrapped: Any) -> None:
    """Shows hand, object and goal of known robots large enough; else the camera `track` follows."""
    name = without_module(env_id).rpartition("/")[2]
    for prefix, (place, angles) in _CAMERAS.items():
        if name.startswith(prefix) and hasattr(unwrapped, "mujoco_renderer"):
            unwrapped.mujoco_renderer.default_cam_config = {"lookat": np.array(place), **angles}
            model = unwrapped.model
            model.geom_rgba[model.body_mocapid[model.geom_bodyid] >= 0, 3] = 0.0
            for site in map(model.site, range(model.nsite)):
                if site.name.startswith("target"):  # else block and hand hide the goal
                    site.size[:], site.rgba[3] = unwrapped.distance_threshold, _GLASS
            return
    cameras = [unwrapped.model.camera(index).name for index in range(unwrapped.model.ncam)]
    if "track" in cameras and hasattr(unwrapped, "mujoco_renderer"):
        unwrapped.mujoco_renderer.camera_id = cameras.index("track")
