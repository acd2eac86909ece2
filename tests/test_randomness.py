import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from music_tf.randomness import reset_seeds, stream
from tests.kit.cases import cases

BASE = {"seed": 3, "purpose": "coin", "worker": 2, "counter": 5}


def draw(**changes):
    return stream(**(BASE | changes)).integers(2**63, size=8)


def test_the_same_names_give_the_same_numbers_whatever_was_drawn_before():
    first = draw()
    stream(**BASE).normal(size=100)
    np.testing.assert_array_equal(draw(), first)


@cases("change", {"seed": 4}, {"purpose": "coin "}, {"worker": 3}, {"counter": 6})
def test_any_difference_gives_other_numbers(change):
    assert not set(draw(**change)) & set(draw())


def test_neither_swapped_nor_neighbouring_workers_and_counters_share_numbers():
    assert not set(draw(worker=5, counter=2)) & set(draw())
    here = stream(1, "noise", 0, 0).integers(2**63, size=100_000)
    for worker, counter in ((0, 1), (1, 0)):
        there = stream(1, "noise", worker, counter).integers(2**63, size=100_000)
        assert not set(here.tolist()) & set(there.tolist())


@given(st.integers(0, 2**32 - 1), st.integers(0, 4095), st.integers(0, 10**9))
def test_every_allowed_seed_worker_and_counter_has_a_stream(seed, worker, counter):
    assert 0.0 <= stream(seed, "any", worker, counter).random() < 1.0


def test_reset_seeds_fit_31_bits():
    seeds = reset_seeds(stream(0, "resets"), 1000)
    assert seeds.min() >= 0
    assert 2**30 < seeds.max() < 2**31
    assert len(set(seeds.tolist())) == 1000
