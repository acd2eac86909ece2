"""Where an episode is over at its goal, it is over at the goal of hindsight too."""

import gymnasium
import numpy as np
import pytest

from music_tf.config.settings import EnvConfig, ReplayConfig
from music_tf.envs.endings import never_ends
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.errors import EnvironmentFault
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.rollout import Conditions, play
from tests.kit.cases import cases
from tests.kit.small import HER, trainer_of

GAMMA = 0.98


def replayed(env_id, goal_end=True, **config):
    """A batch of ten episodes of random actions, the picks behind it, and who made it."""
    envs = LockstepEnvs(env_id, 1)
    settings = ReplayConfig(relabel_k=4.0, batch_size=3000, **config)
    shard, random = Shard(envs.spec, 1, settings), np.random.default_rng(0)

    def act(*_):
        return random.uniform(-1, 1, (1, 2)).astype(np.float32)

    for seed in range(10):
        conditions = Conditions(np.array([seed]), None, np.ones((1, 1), np.float32))
        shard.add(play(envs, act, conditions, None), random)
    ends = envs.goal_terminated if goal_end and envs.ends_at_goals else None
    replay = ReplayBuffer({0: shard}, settings, envs.goal_reward, GAMMA, 0, ends)
    picks = replay.pick(1, 0)
    return replay.transitions(picks), picks, shard


@pytest.mark.parametrize("name", ["Ends", "EndsOneByOne"])
def test_nothing_follows_a_goal_of_hindsight_that_was_met(points, name):
    batch, picks, shard = replayed(f"{name}-v0")
    other = picks.goal >= 0
    met = batch.reward == 1.0
    assert (met & other).sum() > 1000
    assert not batch.discount[met].any()
    assert not batch.truncated[met].any()
    last = picks.time == shard.arrays["length"][picks.slot] - 1
    ended = last & shard.arrays["terminated"][picks.slot]
    np.testing.assert_array_equal(batch.discount == 0.0, met | ended)


def test_without_an_answer_of_the_environment_such_goals_are_bootstrapped(points):
    batch, picks, _ = replayed("EndsSilently-v0")
    assert ((batch.reward == 1.0) & (batch.discount > 0.0) & (picks.goal >= 0)).sum() > 1000


@cases(
    ("env_id", "kwargs", "ends"),
    ("PointMaze_UMaze-v3", "{}", False),
    ("PointMaze_UMaze-v3", '{"continuing_task": false}', True),
    ("FetchReach-v4", "{}", False),
    ("HandReach-v3", "{}", False),
    ("music_tf/PointReach-v0", "{}", False),
    ("music_tf/PointPushTerminating-v0", "{}", True),
)
def test_it_is_asked_only_where_it_can_say_yes(env_id, kwargs, ends):
    envs = LockstepEnvs(env_id, 1, EnvConfig(kwargs=kwargs))
    assert envs.ends_at_goals == ends
    if ends:  # wherever the reward says that a goal is met
        assert envs.distance_reward().ends
    envs.close()


def test_robots_that_never_end_are_those_of_their_package_unchanged(monkeypatch):
    robot = make_environment("FetchReach-v4")
    gymnasium.register("Mine-v0", robot.spec.entry_point, order_enforce=False)
    ids = ("FetchReach-v4", "Mine-v0", "PointMaze_UMaze-v3", "music_tf/PointReach-v0")
    assert [never_ends(make_environment(env_id)) for env_id in ids] == [True, *3 * [False]]
    monkeypatch.setattr(type(robot.unwrapped), "step", lambda *_: None)
    assert not never_ends(robot)


def test_a_static_method_is_asked_and_none_where_success_ends_no_episode(points, monkeypatch):
    kind = type(LockstepEnvs("Ends-v0", 1).environment.unwrapped)
    monkeypatch.setattr(kind, "compute_terminated", staticmethod(lambda a, d, info: True))
    assert LockstepEnvs("Ends-v0", 1).ends_at_goals
    assert not LockstepEnvs("Ends-v0", 1, EnvConfig(success_ends=False)).ends_at_goals


def test_an_answer_that_fails_says_whose_it_is(points, monkeypatch):
    monkeypatch.setattr(points["Ends-v0"], "compute_terminated", lambda *_: [True, False])
    envs = LockstepEnvs("Ends-v0", 1)
    with pytest.raises(EnvironmentFault, match=r"Ends-v0: compute_terminated of goals \(3, 2\)"):
        envs.goal_terminated(*np.zeros((2, 3, 2), np.float32))


@pytest.mark.parametrize(("relabel_k", "asked"), [(4.0, True), (0.0, False)])
def test_training_asks_it_in_hindsight_alone(points, relabel_k, asked):
    trainer = trainer_of(HER, env_id="Ends-v0", replay=ReplayConfig(relabel_k=relabel_k))
    assert (trainer.replay.goal_end is not None) == asked
