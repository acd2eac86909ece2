import math

import numpy as np
import pytest

from music_tf.config.settings import ReplayConfig
from music_tf.replay.hindsight import choose_goals, relabel_probability
from tests.kit.cases import cases

COUNT = 50_000


def choose(time, length, count=COUNT, **config):
    generator = np.random.default_rng(0)
    times, lengths = np.full(count, time), np.full(count, length)
    return choose_goals(times, lengths, ReplayConfig(**config), generator)


@cases(
    ("config", "probability"),
    ({"relabel_k": 4.0}, 0.8),
    ({"relabel_k": 4.0, "strategy": "final"}, 0.8),
    ({"relabel_k": 1.0}, 0.5),
    ({"relabel_k": 0.0}, 0.0),
    ({"relabel_k": 4.0, "strategy": "none"}, 0.0),
)
def test_k_relabels_k_of_k_plus_one(config, probability):
    assert relabel_probability(ReplayConfig(**config)) == pytest.approx(probability)
    relabelled, _ = choose(3, 10, **config)
    # five standard deviations of a binomial
    margin = 5.0 * math.sqrt(probability * (1.0 - probability) / COUNT)
    assert abs(relabelled.mean() - probability) <= margin


@pytest.mark.parametrize(("time", "length"), [(0, 10), (3, 10), (7, 10), (2, 4)])
def test_future_goals_are_uniform_on_the_states_after_the_step(time, length):
    _, chosen = choose(time, length, relabel_k=4.0)
    counts = np.bincount(chosen, minlength=length + 1)
    assert counts.sum() == counts[time + 1 : length + 1].sum() == COUNT
    expected = COUNT / (length - time)
    # the 0.9999 quantile of chi-square with up to 9 degrees of freedom is below 33.8
    assert np.sum((counts[time + 1 :] - expected) ** 2) / expected < 33.8


def test_the_strategy_does_not_change_what_is_drawn_after_it():
    after = []
    for strategy in ("future", "final", "none"):
        generator = np.random.default_rng(0)
        config = ReplayConfig(strategy=strategy, relabel_k=4.0)
        choose_goals(np.zeros(5, np.int64), np.full(5, 9), config, generator)
        after.append(generator.random())
    assert len(set(after)) == 1
