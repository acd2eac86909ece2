"""A fault of the user's code names the line of that code, and its traceback is in the log."""

import json
import os
import sys
import types

import pytest

from music_tf import errors
from music_tf.errors import error_line, place_of
from tests.kit.cases import cases
from tests.kit.started import ALONE, ROOT, WITH_MPI4PY, ended

ROBOT = """def read_sensors():
    return {}['right']

def step(read=read_sensors):
    return read()
"""


def code_in(file, text=ROBOT):
    module = types.ModuleType("module")
    exec(compile(text, file, "exec"), vars(module))
    return module


def raised_by(action):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        action()
    error = caught.value
    return error.with_traceback(error.__traceback__.tb_next.tb_next)  # without this file


SITE = f"{sys.prefix}/lib/python3/site-packages"


@cases(
    ("outer", "inner", "place"),
    ("/home/me/robot.py", "/home/me/sensors.py", "sensors.py:2 in read_sensors"),
    ("/home/me/robot.py", f"{SITE}/numpy/core.py", "robot.py:5 in step"),
    ("/home/me/robot.py", f"{SITE}/tensorflow/python/ops.py", "robot.py:5 in step"),
    ("/home/me/robot.py", f"{SITE}/gymnasium/core.py", "robot.py:5 in step"),
    ("/home/me/robot.py", f"{SITE}/a_library/arm.py", "robot.py:5 in step"),
    ("/home/me/robot.py", json.__file__, "robot.py:5 in step"),
    ("/home/me/robot.py", "<frozen importlib>", "robot.py:5 in step"),
    ("<ipython-input-3>", errors.__file__, "<ipython-input-3>:5 in step"),
    (f"{SITE}/gymnasium/core.py", f"{SITE}/a_library/arm.py", "arm.py:2 in read_sensors"),
    (errors.__file__, f"{SITE}/numpy/core.py", ""),
)
def test_the_innermost_line_of_the_users_own_code_is_named(outer, inner, place):
    read = code_in(inner).read_sensors
    error = raised_by(lambda: code_in(outer).step(read))
    assert place_of(error) == place
    assert error_line(error) == f"KeyError: 'right'{' at ' if place else ''}{place}"


DEEP = """import gymnasium
import numpy as np

class Deep(gymnasium.Env):
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,), np.float32)

    def __init__(self, place="step"):
        self.place = place
        self.fail("make")

    def reset(self, seed=None, options=None):
        self.fail("reset")
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.fail("step")
        return np.zeros(1, np.float32), 0.0, False, False, {}

    def fail(self, where):
        if where == self.place:
            raise KeyError("right")

gymnasium.register("Deep-v0", Deep, max_episode_steps=9)
"""
BAD = """from dataclasses import dataclass, replace
from typing import ClassVar

import tensorflow as tf
from music_tf.config.terms import TermConfig
from music_tf.config.values import Bounds
from music_tf.intrinsic.base import RewardTerm
from music_tf.recipes.music import ddpg_music

@dataclass(frozen=True, kw_only=True)
class BadConfig(TermConfig):
    name: ClassVar[str] = "bad"
    term: ClassVar[str] = "bad:Bad"
    clip: Bounds = (0.0, 1.0)

class Bad(RewardTerm):
    def reward(self, weights, batch, feed):
        return tf.matmul(batch.observation[0], batch.observation[0])

def recipe(preset, env_id):
    return replace(ddpg_music(preset, env_id), rewards={"bad": BadConfig()})
"""


def told_by(tmp_path, *words, how=ALONE):
    (tmp_path / "deep.py").write_text(DEEP, encoding="utf-8")
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    return ended(*how, "-m", "music_tf", *words, **options)


@cases(
    ("words", "code"),
    (["check-env", "deep:Deep-v0"], 3),
    (["check-env", "deep:Deep-v0", "--env.kwargs", '{"place": "make"}'], 3),
    (["train", "sac", "--env-id", "deep:Deep-v0", "--env.kwargs", '{"place": "reset"}'], 3),
)
def test_the_line_of_an_environment_stands_in_the_first_lines(tmp_path, words, code):
    done = told_by(tmp_path, *words)
    assert done.returncode == code, done.stderr
    said = done.stderr or done.stdout
    assert said.count("KeyError: 'right' at deep.py:22 in fail") == 1
    assert "Traceback" not in said


@pytest.mark.distributed
def test_one_rank_tells_the_line_once(tmp_path):
    place = ["--env.kwargs", '{"place": "reset"}']
    words = ["train", "sac", "--workers", "2", "--env-id", "deep:Deep-v0", *place]
    done = told_by(tmp_path, *words, how=WITH_MPI4PY)
    assert done.returncode == 3
    assert done.stderr.count("KeyError: 'right' at deep.py:22 in fail") == 1


def test_a_bug_in_a_reward_of_the_users_shows_its_line_and_logs_the_traceback(tmp_path):
    small = ["--env-id", "music_tf/PointPush-v0", "--epochs", "1", "--cycles", "1"]
    done = told_by(tmp_path, "train", "bad:recipe", *small, "--run-dir", "run")
    assert done.returncode == 1
    first, second = done.stderr.splitlines()[-2:]
    assert first.startswith("music-tf: ValueError: Dimensions must be equal")
    assert first.endswith(" at bad.py:18 in reward")
    log = tmp_path / "run/logs/rank_0000.log"
    assert second == f"the whole traceback is in {log}"
    assert 'bad.py", line 18, in reward' in log.read_text()
