"""An episode before training finds what replay would pay wrongly."""

import dataclasses

import gymnasium
import numpy as np
import pytest

import music_tf
from music_tf.config.settings import EnvConfig
from music_tf.errors import EnvironmentFault
from music_tf.tools.check_env import check_environment
from music_tf.training import rehearsal
from music_tf.training.rehearsal import Rehearsal, rehearse
from tests.kit.points import STEPS, Point
from tests.kit.small import HER, MUSIC, OPTIONS

WRONG = {
    "Lists": "compute_reward reads from info what replay does not keep; kept of is_success, path: ",
    "Far": "goals such as (4999999.",
    "Moves": "the goal moves within the episode",
    "Lies": "step pays something else than compute_reward",
    "Rescaled": "around the environment are Rescaled",
    "Together": "compute_reward is wrong for many goals at once",
}


def rewards(env_id, settings=None):
    with Rehearsal(env_id, settings) as stage:
        return stage.rewards()


@pytest.mark.parametrize(("name", "cause"), WRONG.items())
def test_a_reward_that_replay_would_get_wrong_is_found_with_its_cause(points, name, cause):
    found = rewards(f"{name}-v0")
    assert cause in found.detail
    assert found.cure
    assert not found.rare


@pytest.mark.parametrize(
    "name", ["Point", "Sparse", "Ends", "Items", "Copies", "IsTrue", "Later", "AfterTouch"]
)
def test_a_reward_that_replay_gets_right_passes(points, name):
    assert rewards(f"{name}-v0") == (f"replay computes what {STEPS} steps paid", "", False)


def test_both_numbers_the_step_and_how_many_differ_are_said(points):
    found = rewards("Moves-v0").detail
    assert found.startswith(
        "step 11 paid -1.56666, and replay computes -1.36031 under the same goal (10 of 20 steps "
    )


@pytest.mark.parametrize(
    "env_id",
    [
        *("FetchPush-v4", "FetchReachDense-v4", "HandReach-v3", "HandManipulateBlockDense-v1"),
        *("PointMaze_UMaze-v3", "AntMaze_UMaze-v5", "HandManipulatePen-v1"),
    ],
)
def test_robots_pass(env_id):
    settings = EnvConfig(max_episode_steps=30)
    assert rewards(env_id, settings).detail == "replay computes what 30 steps paid"


class Rarely(Point):
    """Pays something else in one of two hundred steps."""

    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward - (self.steps == 7), *rest


@pytest.fixture
def rarely():
    gymnasium.register("Rarely-v0", Rarely, max_episode_steps=200)
    yield
    del gymnasium.registry["Rarely-v0"]


def test_what_differs_in_few_steps_is_told_and_refuses_nothing(rarely):
    (text,) = rehearse(dataclasses.replace(HER, env_id="Rarely-v0"))
    assert text.startswith("Rarely-v0: step 7 paid ")
    assert "(1 of 200 steps differ)" in text


def test_training_is_refused_before_anything_is_written(points, tmp_path):
    with pytest.raises(
        EnvironmentFault, match=r"(?s)points:Lies-v0: step 1 paid .*cure: .*check-env"
    ):
        music_tf.train(
            "ddpg_her",
            **{**OPTIONS, "env_id": "tests.kit.points:Lies-v0"},
            run_dir=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()


def test_check_env_says_the_same(points):
    found = {finding.name: finding for finding in check_environment("Moves-v0")}
    assert not found["reward"].ok
    assert found["reward"].detail == rewards("Moves-v0").detail


@pytest.mark.parametrize(
    "config",
    [MUSIC, dataclasses.replace(HER, goals="zero"), dataclasses.replace(HER, env_id="Pendulum-v1")],
    ids=["no task", "zero goals", "no goals"],
)
def test_nothing_is_compared_where_replay_recomputes_nothing(points, config):
    env_id = "Pendulum-v1" if config.env_id == "Pendulum-v1" else "Lies-v0"
    assert list(rehearse(dataclasses.replace(config, env_id=env_id))) == []


class Drawing(Point):
    """Draws from streams that all of numpy and Python share."""

    def reset(self, **options):
        found = super().reset(**options)
        self.place = np.random.uniform(-1, 1, 2)  # noqa: NPY002
        return self.seen(), found[1]


def test_the_random_streams_of_a_process_stay_as_they_were(monkeypatch):
    gymnasium.register("Drawing-v0", Drawing, max_episode_steps=STEPS)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert list(rehearse(dataclasses.replace(HER, env_id="Drawing-v0"))) == []
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    del gymnasium.registry["Drawing-v0"]


def test_what_breaks_is_left_to_training(points, monkeypatch):
    monkeypatch.setattr(points["Point-v0"], "step", lambda *_: 1 / 0)
    assert list(rehearse(dataclasses.replace(HER, env_id="Point-v0"))) == []


def test_a_long_episode_is_cut(points, monkeypatch):
    monkeypatch.setattr(rehearsal, "_LONGEST", 7)
    assert rewards("Point-v0").detail == "replay computes what 7 steps paid"
