import dataclasses

import numpy as np
import pytest

from music_tf.config.settings import ConditionConfig
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.networks.embedding import Embedding
from music_tf.runs.zero_shot import Places, Reaching, measure_zero_shot, places_of
from music_tf.training.evaluation import Evaluation
from tests.kit.episodes import make_episodes
from tests.kit.small import BASE

REACH = dataclasses.replace(
    BASE,
    env_id="music_tf/PointReach-v0",
    goals="zero",
    condition=ConditionConfig(kind="sphere", size=2),
)
TURNED = np.float32([[0.0, 30.0], [-30.0, 0.0]])
"""x and y, turned by a quarter and thirty times as long."""
PLANE = Embedding(
    [
        np.concatenate([np.eye(2), -np.eye(2)], axis=1).astype(np.float32),
        np.zeros(4, np.float32),
        np.concatenate([TURNED, -TURNED]),
        np.zeros(2, np.float32),
    ],
    None,
    (0, 1),
    "sphere",
)


class Follower:
    """Acts along its condition, and remembers which goals it was shown."""

    def __init__(self):
        self.goals = []

    def act(self, observation, goal, condition, noise):
        del observation, noise
        self.goals.append(goal)
        return (condition @ TURNED.T / 30.0).astype(np.float32)


@pytest.fixture
def evaluation():
    envs = LockstepEnvs(REACH.env_id, 4, REACH.env)
    yield Evaluation(envs, REACH, Communicator(alone=True))
    envs.close()


def test_an_embedding_leads_a_follower_to_goals_that_it_is_not_shown(evaluation):
    follower = Follower()
    found = measure_zero_shot(evaluation, follower, PLANE, "RUN", goals=24)
    assert found["ours"]["zero_shot/ever"] == 1.0
    assert found["ours"]["zero_shot/end_with_brake"] == 1.0
    assert found["ours"]["zero_shot/stop"] == 0.0  # it rests at goals by itself
    assert found["nothing"]["zero_shot/ever"] < 0.3
    assert found["random conditions"]["zero_shot/ever"] < 0.5
    assert not np.any(np.concatenate(follower.goals))
    # nothing but the start says where to go: the same follower without a way ends elsewhere
    assert found["random conditions"]["zero_shot/end"] < found["ours"]["zero_shot/end"]


def test_it_stops_within_its_distance_and_goes_on_beyond():
    places = Places(np.array([0, 1]), np.array([True, True]), np.array([0, 1]))
    policy = Reaching(Follower(), PLANE, places, stop=3.0)  # a tenth of a unit
    here = np.float32([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    goals = np.float32([[0.09, 0.0, 0.0], [0.11, 0.0, 0.0]])
    actions = policy(here, goals, None, None)
    np.testing.assert_allclose(actions, [[0.0, 0.0], [1.0, 0.0]], atol=1e-6)


def episodes_of(observation, achieved):
    return make_episodes(0, 1)._replace(observation=observation, achieved_goal=achieved)


def test_goals_say_columns_that_equal_the_achieved_goal_and_leave_what_else_is_seen():
    observation = np.random.default_rng(0).normal(size=(3, 6, 10)).astype(np.float32)
    played = episodes_of(observation, observation[..., [3, 4, 5]])
    places = places_of(PLANE._replace(columns=(7, 4)), played, "RUN")
    here, there = places.of(np.arange(10.0)[None], np.array([[0.3, 0.4, 0.5]]))
    np.testing.assert_array_equal(here, [[7.0, 4.0]])
    np.testing.assert_array_equal(there, [[7.0, 0.4]])
    with pytest.raises(UsageError, match=r"RUN: expected an embedding that sees what goals are"):
        places_of(PLANE._replace(columns=(7, 8)), played, "RUN")
