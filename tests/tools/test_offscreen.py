import os
import subprocess
import sys

import numpy as np
import pytest

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EnvironmentFault
from music_tf.tools import offscreen
from music_tf.tools.offscreen import drawing_variables, paint
from music_tf.tools.painter import Take

TOY = "music_tf/PointPush-v0"


def take(lengths=(1, 2)):
    """Episodes in which the toy moves right, the first one over after a step."""
    envs = LockstepEnvs(TOY, len(lengths))
    everyone = list(range(len(lengths)))
    states = [envs.reset(everyone, everyone).observation]
    action = np.tile(np.float32([1.0, 0.0, -1.0]), (len(lengths), max(lengths), 1))
    for step in range(max(lengths)):
        active = [index for index in everyone if lengths[index] > step]
        states.append(states[-1].copy())
        states[-1][active] = envs.step(action[active, step], active).observation
    return Take(
        np.arange(len(lengths)),
        np.zeros((0, 3), np.float32),
        action,
        np.array(lengths),
        np.stack(states, axis=1),
    )


@pytest.fixture
def no_opengl(monkeypatch):
    monkeypatch.setattr(offscreen, "working_backend", lambda: None)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def test_pictures_are_those_of_the_same_states(monkeypatch):
    wanted = take()
    drawn = list(paint(TOY, wanted, {}))
    envs = LockstepEnvs(TOY, 2)
    envs.reset([0, 1], [0, 1])
    np.testing.assert_array_equal(drawn[0], [envs.render(0), envs.render(1)])
    envs.step(wanted.action[:, 0], [0, 1])
    np.testing.assert_array_equal(drawn[1], [envs.render(0), envs.render(1)])
    assert len(drawn) == 3
    envs.step(wanted.action[1:, 1], [1])
    np.testing.assert_array_equal(drawn[2][0], drawn[1][0])  # over, and so stands still
    np.testing.assert_array_equal(drawn[2][1], envs.render(1))


def test_the_goal_that_was_played_is_the_one_that_is_drawn():
    goals = np.float32([[0.9, 0.9, 0.0], [0.9, 0.9, 0.0]])
    ((shown, _), *_) = paint(TOY, take()._replace(goals=goals), {})
    ((own, _), *_) = paint(TOY, take(), {})
    # (0.9 + 1.5) / 3 of 96 pixels is column 76, and row 19 from above
    assert tuple(shown[19, 76]) == (80, 200, 80)
    assert tuple(own[19, 76]) != (80, 200, 80)


def test_an_environment_that_does_not_repeat_itself_is_not_filmed():
    wanted = take()
    wanted.observation[1, 1, 0] += 0.01
    with pytest.raises(EnvironmentFault, match="do not lead to the same states at step 1"):
        list(paint(TOY, wanted, {}))


def test_a_fault_of_the_painter_is_told_in_its_own_words():
    with pytest.raises(EnvironmentFault, match=r"(?s)drawing failed.*mean 'music_tf/PointPush"):
        list(paint("music_tf/PointPusch-v0", take(), {}))


def test_a_painter_that_dies_is_a_fault_that_says_of_what(monkeypatch, tmp_path):
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -SEGV $$\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    with pytest.raises(EnvironmentFault, match="the drawing process died of SIGSEGV"):
        list(paint(TOY, take(), {}))


def test_who_stops_looking_leaves_no_process_and_no_file(monkeypatch, tmp_path):
    started = []
    popen = subprocess.Popen

    def remember(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    pictures = paint(TOY, take((400,)), {})
    next(pictures)
    pictures.close()
    assert started[0].poll() is not None
    assert list(tmp_path.iterdir()) == []


def test_the_painter_loads_no_tensorflow():
    # Mesa and TensorFlow in one process crash, because each brings an LLVM.
    code = "import sys, music_tf.tools.painter; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("no_opengl")
def test_without_opengl_and_screen_the_packages_are_named():
    with pytest.raises(EnvironmentFault) as fault:
        drawing_variables("FetchPush-v4")
    text = str(fault.value)
    assert text.startswith("FetchPush-v4: nothing can be drawn here")
    assert "apt-get install libegl1 libgl1   (egl)" in text
    assert "apt-get install libosmesa6   (osmesa)" in text
    assert len(text.splitlines()) <= 10


@pytest.mark.usefixtures("no_opengl")
def test_a_screen_will_do(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    assert drawing_variables("FetchPush-v4") == {"MUJOCO_GL": "glfw"}


@pytest.mark.usefixtures("no_opengl")
@pytest.mark.parametrize("env_id", [TOY, "mine:Own-v0"])
def test_what_may_not_need_opengl_is_tried_without(env_id):
    assert drawing_variables(env_id) == {}


def test_the_backend_that_draws_is_chosen_for_the_painter_alone(monkeypatch):
    monkeypatch.setattr(offscreen, "working_backend", lambda: "osmesa")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    assert drawing_variables("FetchPush-v4") == {"MUJOCO_GL": "osmesa"}
    assert "MUJOCO_GL" not in os.environ
