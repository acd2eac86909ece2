"""A fault of the user's code names the line of that code, and its traceback is in the log."""

import contextlib
import dataclasses
import json
import logging
import logging.config
import os
import signal
import sys
import types

import gymnasium
import pytest

from music_tf import errors
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import error_line, place_of
from music_tf.process import notices, signals
from music_tf.process.signals import as_guest, ending_at_once, stop_requested
from music_tf.runs import session
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.points import Point
from tests.kit.sessions import command_of, run_session
from tests.kit.small import BASE
from tests.kit.started import ALONE, ROOT, WITH_MPI4PY, ended

CONFIG = {"version": 1, "incremental": False}
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


BAD = """from dataclasses import replace
from typing import ClassVar

import tensorflow as tf
from tests.kit.guessing import Guess, GuessConfig, guessing

class BadConfig(GuessConfig):
    name: ClassVar[str] = "bad"
    term: ClassVar[str] = "bad:Bad"

class Bad(Guess):
    def reward(self, weights, batch, feed):
        return tf.matmul(batch.observation[0], batch.observation[0])

def recipe(preset, env_id):
    return replace(guessing(preset, env_id), rewards={"bad": BadConfig()})
"""


def told_by(tmp_path, exits, *words, how=ALONE):
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "exits": exits}
    return ended(*how, "-m", "music_tf", *words, **options)


@pytest.mark.thorough
@cases(
    ("words", "kwargs", "place"),
    (["check-env"], '{"spoiled": 1}', "RuntimeError: a cable snaps at counting.py:"),
    (["check-env"], '{"size": -1}', "ValueError: negative dimensions are not allowed at boxed.py:"),
    (["train", "sac", "--env-id"], '{"size": -1}', "dimensions are not allowed at boxed.py:"),
)
def test_the_line_of_an_environment_stands_in_the_first_lines(tmp_path, words, kwargs, place):
    done = told_by(tmp_path, 3, *words, COUNTING, "--env.kwargs", kwargs)
    said = done.stderr or done.stdout
    assert said.count(place) == 1
    assert "Traceback" not in said


@pytest.mark.distributed
def test_one_rank_tells_the_line_once(tmp_path):
    faulty = ["--env-id", COUNTING, "--env.kwargs", '{"size": -1}']
    done = told_by(tmp_path, 3, "train", "sac", "--workers", "2", *faulty, how=WITH_MPI4PY)
    assert done.stderr.count("negative dimensions are not allowed at boxed.py:") == 1


@pytest.mark.thorough
def test_a_bug_in_a_reward_of_the_users_shows_its_line_and_logs_the_traceback(tmp_path):
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    small = ["--env-id", "music_tf/PointPush-v0", "--epochs", "1", "--cycles", "1"]
    done = told_by(tmp_path, 1, "train", "bad:recipe", *small, "--run-dir", "run")
    first, second = done.stderr.splitlines()[-2:]
    assert first.startswith("music-tf: ValueError: Dimensions must be equal")
    assert first.endswith(" at bad.py:13 in reward")
    log = tmp_path / "run/logs/rank_0000.log"
    assert second == f"the whole traceback is in {log}"
    assert 'bad.py", line 13, in reward' in log.read_text()


class TakesOver(Point):
    """Sets a handler of Ctrl-C of its own, as a robot's library does when it connects."""

    handler, where = signal.default_int_handler, "make"

    def __init__(self):
        super().__init__()
        self.take_over("make")

    def reset(self, **options):
        self.take_over("reset")
        return super().reset(**options)

    def take_over(self, where):
        if where == self.where:
            signal.signal(signal.SIGINT, type(self).handler)


@pytest.mark.parametrize("where", ["make", "reset", "step"])
@pytest.mark.parametrize(
    "handler", [signal.default_int_handler, signal.SIG_IGN, staticmethod(lambda *given: None)]
)
def test_ctrl_c_is_heard_again_after_a_library_took_it_over(handler, where, monkeypatch, caplog):
    monkeypatch.setattr(TakesOver, "handler", handler)
    monkeypatch.setattr(TakesOver, "where", where)
    monkeypatch.setattr(signals, "_replaced", set())
    spec = gymnasium.envs.registration.EnvSpec("TakesOver-v0", TakesOver, max_episode_steps=9)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    before = signal.getsignal(signal.SIGINT)
    with as_guest():
        envs = LockstepEnvs("TakesOver-v0", 1)
        if where != "make":
            envs.reset([0], [0])
        if where == "step":  # seen when a cycle ends
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            assert not stop_requested()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop_requested()
        assert caplog.text.count("a library replaced the handler of SIGINT; ours is set") == 1
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.thorough
def test_a_signal_that_comes_when_all_is_saved_ends_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "compare", lambda *given: signal.raise_signal(signal.SIGTERM))
    command = command_of(dataclasses.replace(BASE, epochs=1), tmp_path / "run")
    with as_guest(), pytest.raises(KeyboardInterrupt):
        run_session(command)
    assert (tmp_path / "run/checkpoints/epoch_000001").exists()
    with as_guest(), ending_at_once(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGUSR1)
    with as_guest():
        signal.raise_signal(signal.SIGUSR1)
        assert stop_requested()


@pytest.mark.parametrize(
    "mute", [lambda: logging.disable(logging.CRITICAL), lambda: logging.config.dictConfig(CONFIG)]
)
def test_notices_are_heard_whatever_a_library_sets(mute, caplog):
    logger = logging.getLogger("music_tf.of a test")
    notices.keep_notices()
    with caplog.at_level(logging.INFO, "music_tf"):
        mute()
        try:
            logger.info("heard")
            logger.debug("too low")
        finally:
            logging.disable(logging.NOTSET)
    assert caplog.messages == ["heard"]
