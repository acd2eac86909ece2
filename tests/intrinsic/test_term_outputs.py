"""What a term answers is refused by its name where it is not what was asked for."""

import numpy as np
import pytest
import tensorflow as tf

from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.intrinsic.base import Mixing, RewardTerm
from music_tf.intrinsic.term_outputs import (
    check_feed,
    gate_of,
    heldout_of,
    loss_of,
    measures_of,
    prior_of,
    priorities_of,
    reward_of,
)
from music_tf.training.update import Update
from tests.kit.cases import cases
from tests.kit.episodes import make_episodes
from tests.kit.small import BASE, trainer_of
from tests.kit.terms import made_transition

BATCH = made_transition(reward=tf.zeros([1, 32]))
PAID = tf.ones([1, 32])


class Height(RewardTerm):  # answers whatever it is told to
    name = "height"
    mixing = Mixing(1.0, (0.0, 1.0), 0.0, ((0.0, 1.0),))

    def __init__(self, answer):
        self.answer = answer

    def reward(self, weights, batch, feed):
        return self.answer

    def gate(self, batch):
        return self.answer

    def measures(self, reward, batch, feed):
        return self.answer

    def loss(self, weights, feed):
        return self.answer

    def priorities(self, weights, episodes, worker, cycle):
        return self.answer

    def heldout(self, weights, episodes):
        return self.answer

    def prior(self):
        return self.answer

    def draws(self, replay, updates, cycle):
        return self.answer


@cases(
    ("answer", "came"),
    (PAID[..., None], "float32 (1, 32, 1)"),
    (PAID[0], "float32 (32,)"),
    (tf.cast(PAID, tf.float64), "float64 (1, 32)"),
    (np.ones((32, 1)), "float64 (32, 1)"),
    (PAID > 0.0, "bool (1, 32)"),
    (None, "None"),
    (1.0, "1.0"),
)
@pytest.mark.parametrize("ask", [reward_of, gate_of])
def test_a_reward_or_gate_that_does_not_fit_is_refused_with_both_shapes(ask, answer, came):
    given = ({}, BATCH, {}) if ask is reward_of else (BATCH,)
    if ask is gate_of and answer is None:  # all count
        assert gate_of(Height(None), BATCH) is None
        return
    what = "reward height" if ask is reward_of else "gate of height"
    with pytest.raises(UsageError) as caught:
        ask(Height(answer), *given)
    assert str(caught.value) == f"{what}: expected float32 (1, 32), got {came}"


def test_a_right_answer_is_handed_on_as_it_is():
    assert reward_of(Height(PAID), {}, BATCH, {}) is PAID
    loss, metrics = loss_of(Height((tf.zeros([]), {"height/top": tf.ones([1])})), {}, {}, 1)
    assert (loss.shape, list(metrics)) == ([], ["height/top"])
    assert heldout_of(Height({"height/top": np.float32(2.0)}), {}, None) == {"height/top": 2.0}


def test_a_shape_that_nobody_knows_or_the_one_of_several_that_fits_is_asserted():
    @tf.function
    def paid(rows):
        found = tf.numpy_function(lambda values: values, [rows], tf.float32)
        return reward_of(Height(found), {}, BATCH, {})

    np.testing.assert_array_equal(paid(PAID), PAID)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1,32\]"):
        paid(PAID[..., None])

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def lost(values):
        return loss_of(Height((values, {})), {}, {}, 2)[0]

    np.testing.assert_array_equal(lost(tf.ones([2])), [1.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\]"):
        lost(tf.ones([3]))


@cases(
    ("answer", "says"),
    (tf.zeros([]), r"loss of height: expected \(loss, metrics\), got <tf.Tensor"),
    (
        (tf.zeros([2, 32]), {}),
        r"loss of height: expected float32 \(\) or \(2,\), got float32 \(2, 32\)",
    ),
    ((tf.zeros([2]), None), "metrics of height: expected them by name, got None"),
    (
        (tf.zeros([2]), {"top": tf.zeros([])}),
        r"top of height: expected float32 \(2,\), got .* \(\)",
    ),
)
def test_a_loss_is_one_number_or_one_a_worker_with_metrics_of_each(answer, says):
    with pytest.raises(UsageError, match=says):
        loss_of(Height(answer), {}, {}, 2)


def test_what_a_minibatch_shows_is_one_number_a_worker():
    with pytest.raises(
        UsageError, match=r"high of height: expected float32 \(1,\), got .* \(1, 32\)"
    ):
        measures_of(Height({"high": PAID}), PAID, BATCH, {})


@pytest.mark.parametrize("answer", [None, [1.0], [1.0, np.nan, 2.0], [[1.0, 2.0, 3.0]]])
def test_priorities_are_one_finite_number_an_episode(answer):
    with pytest.raises(UsageError, match="priorities of height: expected 3 finite numbers, got"):
        priorities_of(Height(answer), {}, make_episodes(0, 3), 0, 0)


@pytest.mark.parametrize("answer", [None, 3.0, {"high": None}, {"high": np.zeros(2)}])
def test_what_a_term_says_of_an_evaluation_is_numbers_by_name(answer):
    with pytest.raises(UsageError, match="heldout of height: expected numbers by name, got"):
        heldout_of(Height(answer), {}, None)


@cases(
    ("feed", "came"),
    (np.zeros([3, 2]), r"shape \(3, 2\)"),
    (np.float32(1), r"shape \(\)"),
    (None, r"shape \(\)"),
)
def test_a_feed_has_a_row_for_each_update(feed, came):
    check_feed("height", {"drawn": np.zeros([4, 2])}, 4)
    says = f"feed drawn of height: expected 4 rows, one an update, got {came}"
    with pytest.raises(UsageError, match=says):
        check_feed("height", {"drawn": feed}, 4)


def test_an_update_refuses_a_reward_that_would_be_broadcast():
    trainer = trainer_of(BASE)
    trainer.collect()
    term = Height({})  # of which measures has nothing to show
    term.reward = lambda weights, batch, feed: batch.reward[..., None]
    term.gate = lambda batch: None
    update = Update(trainer.update.learner, [term], BASE.agent, 0.9, Communicator(), 2)
    feed, schedules = trainer.feed()._replace(terms={"height": {}}), trainer.schedules()
    schedules = schedules._replace(terms={"height": tf.constant(1.0)})
    with pytest.raises(UsageError) as caught:
        update.run(feed, schedules)
    assert str(caught.value) == "reward height: expected float32 (2, 32), got float32 (2, 32, 1)"


@cases(
    ("answer", "came"),
    ([0.5, 0.5], r"shape \(2,\)"),
    ([0.5, 0.4, 0.2], r"\[0.5, 0.4, 0.2\]"),
    ([1.5, -0.5, 0.0], r"\[1.5, -0.5, 0.0\]"),
    ([np.nan, 0.5, 0.5], "non-finite"),
    ("even", "even"),
)
def test_a_prior_is_one_chance_for_each_condition(answer, came):
    text = f"prior of height: expected 3 probabilities that sum to 1, got .*{came}"
    with pytest.raises(UsageError, match=text):
        prior_of(Height(answer), 3)
    assert prior_of(Height(None), 3) is None
    np.testing.assert_array_equal(prior_of(Height([0.5, 0.25, 0.25]), 3), [0.5, 0.25, 0.25])


def test_a_feed_is_arrays_by_name():
    with pytest.raises(UsageError, match="feed of height: expected arrays by name, got None"):
        Height(None).feed(None, 2, 0)
    assert Height({}).feed(None, 2, 0) == {}
