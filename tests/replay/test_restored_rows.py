import numpy as np
import pytest

from music_tf.config.settings import ReplayConfig
from music_tf.replay.buffer import Shard
from tests.kit.episodes import SPEC, STEPS, make_episodes

CAPACITY = 6


def shard():
    return Shard(SPEC, 1, ReplayConfig(capacity=CAPACITY * STEPS))


def rows():
    """What two saves of 2 and 3 episodes wrote."""
    full = shard()
    saved = []
    for first, count in ((0, 2), (2, 3)):
        slots = full.add(make_episodes(first, count), np.random.default_rng(0))
        saved.append(full.rows(slots))
    return saved


def changed(number, **fields):
    saved = rows()
    saved[number] |= {name: np.asarray(value) for name, value in fields.items()}
    return saved


def test_rows_that_a_run_saved_fit():
    shard().check_rows(rows())
    shard().check_rows([])


@pytest.mark.parametrize(
    ("saved", "says"),
    [
        (changed(0, slots=[0, CAPACITY]), "outside its capacity"),
        (changed(0, slots=[0, -1]), "outside its capacity"),
        (changed(0, size=CAPACITY + 1), "outside its capacity"),
        (changed(0, cursor=-1), "outside its capacity"),
        (changed(1, length=[1, 0, 5]), "length lies outside"),
        (changed(1, length=[1, STEPS + 1, 5]), "length lies outside"),
        (changed(1, slots=[2, 3]), "not as many rows as slots"),
        (rows()[1:], "3 of 5 episodes are there"),
    ],
)
def test_rows_that_lie_elsewhere_are_refused(saved, says):
    with pytest.raises(ValueError, match=says):
        shard().check_rows(saved)


def test_a_full_shard_says_what_rows_look_like():
    full, (first, _) = shard().full_rows(), rows()
    assert set(full) == set(first)
    for name, array in first.items():
        assert full[name].dtype == array.dtype
        assert full[name].shape[1:] == array.shape[1:]
    assert len(full["slots"]) == CAPACITY
