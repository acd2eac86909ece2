import numpy as np

from music_tf.randomness import reset_seeds, stream

BASE = {"seed": 3, "purpose": "coin", "worker": 2, "counter": 5}


def draw(**changes):
    return stream(**(BASE | changes)).integers(2**63, size=8)


def test_the_same_names_alone_give_the_same_numbers_whatever_was_drawn_before():
    first = draw()
    stream(**BASE).normal(size=100)
    np.testing.assert_array_equal(draw(), first)
    for change in ({"seed": 4}, {"purpose": "coin "}, {"worker": 3}, {"counter": 6}):
        assert not set(draw(**change)) & set(first)


def test_neither_swapped_nor_neighbouring_workers_and_counters_share_numbers():
    assert not set(draw(worker=5, counter=2)) & set(draw())
    largest = {"seed": 2**32 - 1, "worker": 4095, "counter": 10**9}
    assert not set(draw(**largest)) & set(draw())
    here = stream(1, "noise", 0, 0).integers(2**63, size=100_000)
    for worker, counter in ((0, 1), (1, 0)):
        there = stream(1, "noise", worker, counter).integers(2**63, size=100_000)
        assert not set(here.tolist()) & set(there.tolist())


def test_reset_seeds_fit_31_bits():
    seeds = reset_seeds(stream(0, "resets"), 1000)
    assert seeds.min() >= 0
    assert 2**30 < seeds.max() < 2**31
    assert len(set(seeds.tolist())) == 1000
