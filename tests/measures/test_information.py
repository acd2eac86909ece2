import math

import numpy as np
import pytest

from music_tf.measures.information import Information, mutual_information, paired_information
from tests.kit.cases import cases

COIN = np.repeat([0.0, 1.0], 200)[:, None]


def column(*values):
    return np.array(values, float)[:, None]


def test_four_pairs_by_hand():
    # The nearest neighbour is as far in x as in y, so nothing is nearer: n_x = n_y = 0.
    # I = psi(1) + psi(4) - 2 psi(1) = psi(4) - psi(1) = 1 + 1/2 + 1/3.
    line = column(0, 1, 3, 7)
    assert mutual_information(line, line, 1) == pytest.approx(11 / 6)
    # x 0 1 3 7 with y 0 5 1 6; distances in both: 0-1 5, 0-2 3, 0-3 7, 1-2 4, 1-3 6, 2-3 5.
    # sample 0: reach 3, nearer in x: 1 (of 1, 3, 7), in y: 1 (of 5, 1, 6): n = 1, 1
    # sample 1: reach 4, in x: 1, 2 -> 2 (of 1, 2, 6), in y: 1 (of 5, 4, 1): n = 2, 1
    # sample 2: reach 3, in x: 1 (of 3, 2, 4), in y: 1 (of 1, 4, 5): n = 1, 1
    # sample 3: reach 5, in x: 1 (of 7, 6, 4), in y: 1 (of 6, 1, 5): n = 1, 1
    # psi(n + 1) = psi(1) + H_n with H_1 = 1 and H_2 = 3/2, psi(4) = psi(1) + 11/6.
    # I = 11/6 - (1 + 1 + 3/2 + 1 + 1 + 1 + 1 + 1)/4 = 11/6 - 17/8.
    found = mutual_information(column(0, 1, 3, 7), column(0, 5, 1, 6), 1)
    assert found == pytest.approx(11 / 6 - 17 / 8)


def number_and_place():  # X of 0..4 and Y uniform in [X, X + 2]
    generator = np.random.default_rng(0)
    x = generator.integers(5, size=(2000, 1)).astype(float)
    return x, x + generator.uniform(0, 2, (2000, 1))


def rest_of_both():
    """Both rest together in half of the samples and move far, independently, in the other."""
    generator = np.random.default_rng(0)
    moves = np.repeat([0.0, 1.0], 500)[:, None]
    return [moves * generator.normal(9.0, 1.0, (1000, 2)) for _ in range(2)]


@cases(
    ("pair", "known", "tolerance"),
    ((COIN, COIN), math.log(2.0), 0.003),
    ((COIN, np.tile([0.0, 1.0], 200)[:, None]), 0.0, 0.01),
    (number_and_place(), math.log(5.0) - 0.8 * math.log(2.0), 0.06),
    (rest_of_both(), math.log(2.0), 0.06),
    ids=["equal coins", "two coins", "a number and a place around it", "a coin of rest"],
)
def test_ties_and_mixtures_have_the_information_that_is_known(pair, known, tolerance):
    assert mutual_information(*pair) == pytest.approx(known, abs=tolerance)


def test_too_few_samples_and_episodes_are_refused():
    for neighbours in (0, 4):
        with pytest.raises(ValueError, match="more than k"):
            mutual_information(column(0, 1, 2, 3), column(0, 1, 2, 3), neighbours)
    with pytest.raises(ValueError, match="two episodes"):
        paired_information(*(part[:1] for part in movements(0.0)[:3]), np.random.default_rng(0))
    with pytest.raises(ValueError, match="got 4 and 3"):
        mutual_information(column(0, 1, 2, 3), column(0, 1, 2), 1)


def movements(coupling, episodes=30, steps=20, seed=0):
    """Movements with a drift of each episode, common in time and coupled in the episode."""
    generator = np.random.default_rng(seed)
    common = generator.standard_normal((1, steps, 2))
    x = common + generator.standard_normal((episodes, steps, 2))
    y = common + coupling * (x - common) + generator.standard_normal((episodes, steps, 2))
    return x, y, np.full(episodes, steps), generator


def test_what_belongs_together_stands_out_from_a_null_that_holds_what_all_episodes_share():
    found = paired_information(*movements(0.0))
    assert found.nats > 0.1
    assert found.nats == pytest.approx(found.null.mean(), abs=4 * found.null.std())
    assert found.chance > 0.05
    found = paired_information(*movements(2.0))
    assert found.nats > found.null.max() + 0.5
    assert found.chance == pytest.approx(1 / 21)


def test_the_null_is_near_zero_without_anything_common_and_no_episode_its_own_partner():
    x, _, length, generator = movements(0.0)
    y = generator.standard_normal(x.shape)
    found = paired_information(x - x.mean(axis=0), y, length, generator)
    assert found.null.mean() == pytest.approx(0.0, abs=0.05)
    assert len(found.null) == 20
    # With two episodes the null can only be the other one's: equal numbers fall apart.
    x = np.random.default_rng(0).standard_normal((2, 50, 1))
    found = paired_information(x, x, np.array([50, 50]), np.random.default_rng(1), 3)
    assert found.nats > 2.0
    assert found.null.max() < 0.5


def test_steps_after_the_end_do_not_count_and_equal_lengths_have_one_estimate():
    x, y, length, _ = movements(1.0, episodes=12)
    length = length - np.arange(12)
    spoiled = y.copy()
    spoiled[np.arange(20) >= length[:, None]] = 99.0
    first = paired_information(x, y, length, np.random.default_rng(0))
    second = paired_information(x, spoiled, length, np.random.default_rng(0))
    np.testing.assert_array_equal(first.null, second.null)
    assert first.nats == second.nats
    x, y, length, generator = movements(1.0, episodes=12)
    found = paired_information(x, y, length, generator)
    assert len(found.same) == 1
    assert found.nats == pytest.approx(mutual_information(x.reshape(-1, 2), y.reshape(-1, 2)))


def test_a_null_is_compared_with_the_estimate_from_the_same_steps():
    # Independent movements, large in late steps: what that tells is common to all episodes. Few
    # episodes are long, so their late steps seldom have a partner, and the null alone loses them.
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((30, 40, 1)) for _ in range(2))
    x[:, 20:] *= 100.0
    y[:, 20:] *= 100.0
    found = paired_information(x, y, np.where(np.arange(30) % 5, 20, 40), np.random.default_rng(1))
    assert len(found.same) == len(found.null) == 20
    assert found.nats == pytest.approx(found.null.mean(), abs=0.05)
    assert found.chance > 0.05


@pytest.mark.parametrize(("episodes", "pairings"), [(4, 20), (3, 0)])
def test_pairings_with_too_few_steps_are_left_out(episodes, pairings):
    # Whoever is paired, they share their first steps alone; three neighbours need four of them.
    x, y, _, generator = movements(1.0, episodes)
    found = paired_information(x, y, np.array([20, 1, 1, 1])[:episodes], generator)
    assert len(found.same) == len(found.null) == pairings


def test_chance_counts_pairings_that_give_as_much():
    null = np.array([0.1, 0.3, 0.4])
    assert Information(np.array([0.3]), null).chance == 0.75
    assert Information(np.array([0.2, 0.2, 0.5]), null).chance == 0.5
