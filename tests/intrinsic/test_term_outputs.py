"""What a term answers is refused by its name where it is not what was asked for."""

import re

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

    def reward(self, *given):
        return self.answer

    gate = measures = loss = priorities = heldout = prior = draws = reward


EPISODES = make_episodes(0, 3)
REWARD = "reward height: expected float32 (1, 32), got"
LOSS = "loss of height: expected"
PRIORITIES = "priorities of height: expected 3 finite numbers, got"
HELDOUT = "heldout of height: expected numbers by name, got"
PRIOR = "prior of height: expected 3 probabilities that sum to 1, got"
ASKED = {
    "reward": lambda term: reward_of(term, {}, BATCH, {}),
    "gate": lambda term: gate_of(term, BATCH),
    "loss": lambda term: loss_of(term, {}, {}, 2),
    "measures": lambda term: measures_of(term, PAID, BATCH, {}),
    "priorities": lambda term: priorities_of(term, {}, EPISODES, 0, 0),
    "heldout": lambda term: heldout_of(term, {}, EPISODES),
    "prior": lambda term: prior_of(term, 3),
    "feed": lambda term: term.feed(None, 2, 0),
}


@cases(
    ("what", "answer", "says"),
    ("reward", PAID[..., None], f"{REWARD} float32 (1, 32, 1)"),
    ("reward", PAID[0], f"{REWARD} float32 (32,)"),
    ("reward", tf.cast(PAID, tf.float64), f"{REWARD} float64 (1, 32)"),
    ("reward", np.ones((32, 1)), f"{REWARD} float64 (32, 1)"),
    ("reward", PAID > 0.0, f"{REWARD} bool (1, 32)"),
    ("reward", None, f"{REWARD} None"),
    ("reward", 1.0, f"{REWARD} 1.0"),
    ("gate", PAID[0], "gate of height: expected float32 (1, 32), got float32 (32,)"),
    ("loss", tf.zeros([]), f"{LOSS} (loss, metrics), got <tf.Tensor"),
    ("loss", (tf.zeros([2, 32]), {}), f"{LOSS} float32 () or (2,), got float32 (2, 32)"),
    ("loss", (tf.zeros([2]), None), "metrics of height: expected them by name, got None"),
    ("loss", (tf.zeros([2]), {"top": tf.zeros([])}), "top of height: expected float32 (2,), got"),
    ("measures", {"high": PAID}, "high of height: expected float32 (1,), got float32 (1, 32)"),
    ("priorities", None, f"{PRIORITIES} None"),
    ("priorities", [1.0], f"{PRIORITIES} shape (1,)"),
    ("priorities", [1.0, np.nan, 2.0], f"{PRIORITIES} non-finite"),
    ("priorities", [[1.0, 2.0, 3.0]], f"{PRIORITIES} shape (1, 3)"),
    ("heldout", None, f"{HELDOUT} None"),
    ("heldout", 3.0, f"{HELDOUT} 3.0"),
    ("heldout", {"high": None}, f"{HELDOUT} {{'high': None}}"),
    ("heldout", {"high": np.zeros(2)}, f"{HELDOUT} {{'high': array"),
    ("prior", [0.5, 0.5], f"{PRIOR} shape (2,)"),
    ("prior", [0.5, 0.4, 0.2], f"{PRIOR} [0.5, 0.4, 0.2]"),
    ("prior", [1.5, -0.5, 0.0], f"{PRIOR} [1.5, -0.5, 0.0]"),
    ("prior", [np.nan, 0.5, 0.5], f"{PRIOR} non-finite"),
    ("prior", "even", f"{PRIOR} "),
    ("feed", None, "feed of height: expected arrays by name, got None"),
)
def test_what_does_not_fit_is_refused_with_what_was_expected(what, answer, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        ASKED[what](Height(answer))


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
