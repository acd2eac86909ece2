"""Ids that a notebook's cell registers, which no other process knows."""

import functools
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import music_tf
from music_tf.cli import run_verb
from music_tf.config.names import check_env_id, is_local
from music_tf.envs.toys import UnitBox
from music_tf.envs.viewer import Viewer
from music_tf.reading.command import parse_train
from music_tf.runs import session
from tests.kit.cases import cases
from tests.kit.sessions import run_session

CELL = "Spot-v0"
SMALL = {"epochs": 1, "cycles": 2, "evaluation": {"episodes": 2}, "collect": {"random_steps": 50}}
SPOTS = """
import gymnasium
from tests.test_registered_here import Spot
gymnasium.register("Spot-v0", Spot, max_episode_steps=20)
"""


class Spot(UnitBox):
    """A class of the user's."""


@pytest.fixture(autouse=True)
def ids_are_forgotten():
    known = dict(gymnasium.registry)
    yield
    for env_id in gymnasium.registry.keys() - known.keys():
        del gymnasium.registry[env_id]


@pytest.mark.thorough
def test_an_id_of_a_cell_trains_is_measured_filmed_checked_and_moves_to_a_module(
    tmp_path, monkeypatch, capsys
):
    compare = session.compare
    monkeypatch.setattr(session, "compare", lambda *given: compare(*given[:2], 2))
    gymnasium.register(
        CELL, lambda render_mode=None: Spot(render_mode=render_mode), max_episode_steps=20
    )
    run = music_tf.train("sac_diayn", env_id=CELL, skills=2, run_dir=tmp_path / "run", **SMALL)
    assert ".play(), in this process" in capsys.readouterr().out.rpartition("play:")[2]
    assert {"ours", "random"} <= set(run.evaluate(episodes=2)["policies"])
    assert run.play(tmp_path / "film.gif", episodes=1).path.exists()  # with the learned reward
    assert run.policy().act(np.zeros(2), skill=0).shape == (2,)
    assert len(music_tf.load_run(run.path).resume(epochs=2).metrics["time/epoch"]) == 2
    assert run_verb(["check-env", CELL]) == 0
    del gymnasium.registry[CELL]  # as in another process
    evaluate = ["evaluate", str(run.path), "--episodes", "2"]
    with pytest.raises(music_tf.UsageError, match="a module: --env-id my_module:Spot-v0"):
        run_verb(evaluate)
    with pytest.raises(music_tf.UsageError, match="put it into a module"):
        parse_train(["sac", "--env-id", CELL])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "spots.py").write_text(SPOTS)
    moved = ["--env-id", f"spots:{CELL}"]
    assert run_verb([*evaluate, *moved]) == 0
    resumed = ["--run-dir", str(run.path), "--resume", "--epochs", "3", *moved]
    assert parse_train(resumed).config.env_id == f"spots:{CELL}"
    run_session(parse_train(resumed))


@cases(
    "maker",
    *(Spot, lambda: Spot(render_mode=None), functools.partial(Spot), f"{__name__}:Spot"),
    *(PendulumEnv, "gymnasium.envs.classic_control.pendulum:PendulumEnv"),
    ids=["class", "lambda", "partial", "name", "theirs", "their name"],
)
def test_whatever_makes_it_an_id_of_this_process_is_taken(maker):
    with pytest.raises(music_tf.UsageError, match="unknown environment 'Odder-v0'"):
        check_env_id("Odder-v0")
    gymnasium.register("Odder-v0", maker, max_episode_steps=20)
    assert is_local("Odder-v0")
    assert check_env_id("Odder-v0") == "Odder-v0"


@cases("env_id", "FetchPush-v1", "HalfCheetah-v3", "CartPole-v1", "phys2d/CartPole-v1")
def test_ids_that_packages_register_are_no_ids_of_this_process(env_id):
    assert not is_local(env_id)
    with pytest.raises(music_tf.UsageError):
        check_env_id(env_id)


@cases(
    ("option", "value", "line"),
    ("env_id", Spot, 'register("Spot-v0", Spot, max_episode_steps=200), then env_id="Spot-v0"'),
    ("env_id", Spot(), 'register("Spot-v0", Spot, max_'),
    ("env", Spot(), 'register("Spot-v0", Spot, max_'),
    ("env_id", lambda: Spot(render_mode=None), 'register("make-v0", make, max_'),
    ids=["class", "instance", "env", "lambda"],
)
def test_what_makes_an_environment_is_told_to_be_registered(option, value, line):
    with pytest.raises(music_tf.UsageError) as caught:
        music_tf.train("sac", **{option: value})
    assert line in str(caught.value)


def test_mujoco_is_not_drawn_beside_tensorflow_in_one_process(monkeypatch):
    maker = "gymnasium.envs.mujoco.reacher_v5:ReacherEnv"
    gymnasium.register("Odder-v0", maker, max_episode_steps=20)
    monkeypatch.setitem(sys.modules, "tensorflow", sys)
    made = gymnasium.make("Odder-v0")
    with pytest.raises(music_tf.EnvironmentFault, match="define it in a module"):
        Viewer("Odder-v0", None).render(made)
    made.close()
