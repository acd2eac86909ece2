import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from music_tf.config.conditioning import ConditionConfig
from music_tf.config.fields import with_fields
from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.training.evaluation import Evaluation, evaluation_conditions, wilson_interval
from tests.kit.cases import cases
from tests.kit.small import BASE, HER, MUSIC, PUSH

TWO = Config(skills=2)
GAUSSIAN = ConditionConfig(kind="gaussian", size=4)


class Rank(Communicator):
    """One of several ranks, on its own: it reduces nothing and is told what the root shared."""

    def __init__(self, rank, size, shared=None):
        super().__init__()
        self.rank, self.size, self.shared, self.calls = rank, size, shared, []

    def sum_in_place(self, values):
        self.calls.append(np.array(values))
        return values

    def broadcast_object(self, value):
        self.shared = value if self.is_root else self.shared
        return self.shared


def act(observation, goal, skill, noise):
    return np.tanh(observation[:, :3] - goal + skill.sum(axis=1, keepdims=True)).astype(np.float32)


def play(episodes, count, comm=None):
    """The arrays of episodes that are played in `count` environments."""
    evaluation = Evaluation(LockstepEnvs(PUSH, count), BASE, comm or Communicator())
    return evaluation.play(act, episodes).named()


def test_an_episode_is_fixed_by_its_index_whatever_is_asked_for_beside_it():
    few, many = (
        evaluation_conditions(range(3), TWO, 3),
        evaluation_conditions(range(2, 9), TWO, 3),
    )
    assert few.seeds[2] == many.seeds[0]
    np.testing.assert_array_equal(few.skills[2], many.skills[0])
    assert len(set(evaluation_conditions(range(200), TWO, 3).seeds.tolist())) == 200
    of_another_run = evaluation_conditions(range(3), dataclasses.replace(TWO, seed=7), 3)
    np.testing.assert_array_equal(of_another_run.seeds, few.seeds)  # so of no training episode


def test_skills_take_turns_or_one_is_pinned_and_continuous_ones_are_fixed_by_index():
    turns = evaluation_conditions(range(7), Config(skills=3), 3).skills
    np.testing.assert_array_equal(turns.argmax(axis=1), [0, 1, 2, 0, 1, 2, 0])
    asked = evaluation_conditions(range(4), Config(skills=3, pinned_skill=1), 3, skill=2).skills
    np.testing.assert_array_equal(asked, np.eye(3)[[2] * 4])
    pinned = evaluation_conditions(range(4), Config(skills=3, pinned_skill=1), 3).skills
    np.testing.assert_array_equal(pinned, np.eye(3)[[1] * 4])
    ours, theirs = (
        evaluation_conditions(indices, Config(seed=seed, condition=GAUSSIAN), 3).skills
        for indices, seed in ((range(40), 0), ([7, 39], 1))
    )
    np.testing.assert_array_equal(ours[[7, 39]], theirs)
    assert (ours.shape, len(np.unique(ours))) == ((40, 4), 160)


def test_goals_are_zero_or_the_environments_own():
    assert evaluation_conditions(range(2), Config(), 3).goals is None
    hidden = evaluation_conditions(range(2), Config(goals="zero"), 3)
    np.testing.assert_array_equal(hidden.goals, np.zeros([2, 3]))


@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_the_number_of_environments_does_not_change_the_episodes(count):
    found = play(5, count)
    np.testing.assert_equal(found, play(5, 5))
    assert len(found["observation"]) == 5


@cases(("ranks", "episodes"), (2, 5), (3, 5), (3, 2))  # the last rank of the last has none
def test_each_episode_is_played_on_exactly_one_rank(ranks, episodes):
    root = Rank(0, ranks)
    parts = [play(episodes, 2, root)]
    comms = [Rank(rank, ranks, root.shared) for rank in range(1, ranks)]
    parts += [play(episodes, 2, comm) for comm in comms]
    for name, expected in play(episodes, 2).items():
        summed = sum(np.asarray(part[name], np.float64) for part in parts)
        np.testing.assert_array_equal(summed, expected, err_msg=name)
    assert len({len(comm.calls) for comm in (root, *comms)}) == 1


@cases(
    ("successes", "episodes", "low", "high"),
    # centre (0.5 + 3.84146 / 200) / (1 + 3.84146 / 100) = 0.5,
    # half width 1.959964 sqrt(0.0025 + 3.84146 / 40000) / 1.0384146 = 0.0961685
    (50, 100, 0.4038315, 0.5961685),
    # 0 of 10: low 0, high (z^2 / 20 + z sqrt(z^2 / 400)) / (1 + z^2 / 10)
    #        = (z^2 / 10) / (1 + z^2 / 10) = 0.384146 / 1.384146 = 0.2775328
    (0, 10, 0.0, 0.2775328),
    (10, 10, 0.7224672, 1.0),
    (0, 0, 0.0, 1.0),
)
def test_the_wilson_interval_by_hand(successes, episodes, low, high):
    assert wilson_interval(successes, episodes) == pytest.approx((low, high), abs=1e-6)


def test_the_error_of_a_difference_is_that_of_ten_parts_of_the_same_episodes(monkeypatch):
    evaluation = Evaluation(LockstepEnvs(PUSH, 4), BASE, Communicator())
    ours, random = evaluation.play(act, 20), evaluation.play(lambda *given: 0 * given[-1], 20)

    def measured(self, played):  # the mean start of two episodes, which each policy plays
        value = float(played.action[:, 0, 0].mean())
        return {"both": value} | ({"ours": 1.0} if value else {})

    monkeypatch.setattr(Evaluation, "metrics_of", measured)
    pairs = ours.action[:, 0, 0].reshape(10, 2).mean(axis=1) - 0.0
    expected = {"both": pytest.approx(pairs.std(ddof=1) / np.sqrt(10), rel=1e-5)}
    assert evaluation.errors(ours, random) == expected
    assert evaluation.errors(ours.rows(0, 9), random.rows(0, 9)) == {}  # too few to say


def carries(observation, goal, skill, noise):
    """Goes to the disc, takes hold of it and carries it in circles."""
    away = observation[:, 3:5] - observation[:, :2]
    far = np.linalg.norm(away, axis=1, keepdims=True) > 0.12
    round_about = np.stack([-observation[:, 1], observation[:, 0]], axis=1)
    moves = np.where(far, np.clip(away / 0.1, -1, 1), np.clip(3 * round_about, -1, 1))
    return np.concatenate([moves, np.where(far, -1.0, 1.0)], axis=1).astype(np.float32)


def test_moves_of_a_carrier_share_information_measured_where_rewards_are_about_them():
    evaluation = Evaluation(LockstepEnvs(PUSH, 4), MUSIC, Communicator())
    evaluation = evaluation._replace(config=with_fields(MUSIC, {"evaluation.episodes": 12}))
    ours = evaluation.metrics_of(evaluation.play(carries, 12))["eval/information"]
    random = evaluation.metrics_of(evaluation.random())["eval/information"]
    assert ours > 0.4
    assert abs(random) < 0.2
    assert ours == evaluation.behaviour(evaluation.play(carries, 12))["eval/information"]
    one = evaluation.behaviour(evaluation.play(carries, 1))
    assert "eval/information" not in one  # which needs another episode to be compared with
    evaluation = Evaluation(LockstepEnvs(PUSH, 4), HER, Communicator())
    assert "eval/information" not in evaluation.behaviour(evaluation.play(carries, 3))


def test_random_actions_are_few_and_those_of_the_last_table():
    config = with_fields(MUSIC, {"evaluation.episodes": 60})
    evaluation = Evaluation(LockstepEnvs(PUSH, 4), config, Communicator())
    played = evaluation.random()
    assert len(played.length) == 40
    assert (played.seed == evaluation.play(carries, 40).seed).all()


def test_goals_of_the_environment_have_distances_and_a_return_where_rewards_are_dense():
    evaluation = Evaluation(LockstepEnvs(PUSH, 2), HER, Communicator())
    played = evaluation.play(carries, 2)
    sparse = evaluation.behaviour(played)
    assert {"eval/success_rate", "eval/goal_distance", "eval/goal_moved_rate"} <= set(sparse)
    assert "eval/return" not in sparse
    dense = evaluation.behaviour(played._replace(reward=played.reward * np.float32(0.5)))
    assert dense["eval/return"] == played.reward.sum(axis=1).mean() / 2
    unpaid = Evaluation(LockstepEnvs(PUSH, 2), MUSIC, Communicator()).behaviour(played)
    assert not {"eval/goal_distance", "eval/goal_moved_rate", "eval/return"} & set(unpaid)


def test_networks_are_judged_on_steps_until_the_object_is_lost_as_they_learn(monkeypatch):
    config = dataclasses.replace(MUSIC, lost_object="absorb")
    evaluation = Evaluation(LockstepEnvs(PUSH, 2), config, Communicator())
    played, judged = evaluation.play(carries, 2), []
    cut = played._replace(length=played.length - 1)
    monkeypatch.setattr("music_tf.training.evaluation.cut_where_lost", lambda *_: cut)
    term = SimpleNamespace(heldout=lambda weights, episodes: judged.append(episodes) or {})
    assert evaluation.heldout([term], {}, played) == {}
    np.testing.assert_array_equal(judged[0].length, cut.length)
