from types import SimpleNamespace

import numpy as np
import pytest

from music_tf.config.names import CONVEYOR
from music_tf.config.settings import EnvConfig
from music_tf.envs import viewer
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.errors import EnvironmentFault, UsageError
from tests.kit.cases import cases


def twin_and_source(monkeypatch, env_id):
    """The environment that draws, which does not here, and one that is drawn."""
    twin, source = make_environment(env_id), make_environment(env_id).unwrapped
    monkeypatch.setattr(viewer, "make_environment", lambda *_args, **_options: twin)
    monkeypatch.setattr(twin.unwrapped, "render", lambda: np.zeros((4, 4, 3), np.uint8))
    source.reset(seed=3)
    return twin, source


@pytest.mark.parametrize("env_id", ["FetchPush-v4", CONVEYOR])
def test_drawing_copies_state_and_goal_and_leaves_the_simulator_alone(monkeypatch, env_id):
    twin, source = twin_and_source(monkeypatch, env_id)
    for _ in range(5):
        source.step(np.full(4, 0.5, np.float32))
    before = [array.copy() for array in (source.data.qpos, source.data.qacc_warmstart)]
    assert viewer.Viewer(env_id, EnvConfig()).render(source).shape == (4, 4, 3)
    assert twin.unwrapped.mujoco_renderer.default_cam_config["distance"] == 1.15  # near the block
    goal = twin.unwrapped.model.site("target0")  # a glass ball of what counts as reached
    assert (*goal.size, goal.rgba[3]) == pytest.approx((0.05, 0.05, 0.05, 0.45))
    np.testing.assert_array_equal(twin.unwrapped.data.qpos, before[0])
    np.testing.assert_array_equal(twin.unwrapped.goal, source.goal)
    np.testing.assert_array_equal(source.data.qpos, before[0])
    np.testing.assert_array_equal(source.data.qacc_warmstart, before[1])


def test_a_path_and_a_way_are_drawn_as_dots_and_another_goal_than_its_own(monkeypatch):
    (twin, source), dots = twin_and_source(monkeypatch, "FetchPush-v4"), []
    window = SimpleNamespace(add_marker=lambda **dot: dots.append(dot))
    monkeypatch.setattr(twin.unwrapped.mujoco_renderer, "_get_viewer", lambda mode: window)
    path, way = np.full([1000, 3], 0.25, np.float32), np.float32([[1.0, 2.0]])
    viewer.Viewer("FetchPush-v4", EnvConfig()).render(source, path[0], path, way)
    np.testing.assert_array_equal(twin.unwrapped.goal, [0.25] * 3)
    places = [dot["pos"].tolist() for dot in dots]
    assert places == [[0.25] * 3] * 250 + [[1.0, 2.0, 0.0]]  # a few hundred, in any plane
    assert not np.array_equal(dots[0]["rgba"], dots[-1]["rgba"])


def test_a_window_hides_its_menu_once_and_is_closed_by_escape(monkeypatch):
    (twin, source), closed, pressed = twin_and_source(monkeypatch, "FetchPush-v4"), [], []
    keys = [None]
    monkeypatch.setattr("glfw.window_should_close", lambda window: bool(closed))
    monkeypatch.setattr("glfw.set_window_should_close", lambda *given: closed.append(given))
    monkeypatch.setattr("glfw.set_key_callback", lambda _, call: (keys.append(call), keys[-2])[1])
    window = SimpleNamespace(window=7, make_context_current=lambda: None, _hide_menu=False)
    window._key_callback = keys[0] = lambda *given: pressed.append(given)
    monkeypatch.setattr(twin.unwrapped.mujoco_renderer, "viewer", window)
    shown = viewer.Viewer("FetchPush-v4", EnvConfig(), "human")
    assert shown.render(source).shape == (1, 1, 3)
    assert window._hide_menu
    window._hide_menu = False  # as H does
    keys[-1](7, 72, 0, 1, 0)
    shown.render(source)
    assert (window._hide_menu, pressed) == (False, [(7, 72, 0, 1, 0)])
    keys[-1](7, 256, 0, 1, 0)  # Escape
    assert (closed, len(pressed)) == ([(7, True)], 1)
    with pytest.raises(viewer.WindowClosedError):
        shown.render(source)


def test_a_missing_display_is_a_fault_with_a_cure(monkeypatch):
    def fail(*_args, **_options):
        raise RuntimeError("no OpenGL context")

    envs = LockstepEnvs("FetchReach-v4", 1)
    envs.reset([0], [0])
    monkeypatch.setattr(viewer, "make_environment", fail)
    with pytest.raises(EnvironmentFault, match=r"no OpenGL context.*\ncure: .*MUJOCO_GL=egl"):
        envs.render(0)


@cases(
    ("render", "kind", "said"),
    (lambda: None, UsageError, r"render.. gave NoneType.*\ncure: return one under render_mode"),
    (lambda: 1 / 0, EnvironmentFault, r"ZeroDivisionError.*\ncure: let render.. run with render"),
    ids=["nothing", "exception"],
)
def test_an_environment_that_draws_itself_wrongly_is_told_of_it(monkeypatch, render, kind, said):
    envs = LockstepEnvs("music_tf/PointReach-v0", 1)
    monkeypatch.setattr(envs._members[0].environment.unwrapped, "render", render)
    with pytest.raises(kind, match=said):
        envs.render(0)
