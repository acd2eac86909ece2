import dataclasses
import math

import numpy as np
import pytest

from music_tf.config.settings import ReplayConfig
from music_tf.replay.buffer import Shard
from music_tf.storage.restored import check_rows, sizes_of, success_rate, take_over
from music_tf.training.trainer import Counters, EpochLog, _Taken
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
    check_rows(rows(), shard())
    check_rows([], shard())


@pytest.mark.parametrize(
    ("saved", "says"),
    [
        (changed(0, slots=[0, CAPACITY]), "outside its capacity"),
        (changed(0, slots=[0, -1]), "outside its capacity"),
        (changed(0, slots=[0.0, 1.0]), "outside its capacity"),
        (changed(0, size=CAPACITY + 1), "outside its capacity"),
        (changed(0, size=[2]), "outside its capacity"),
        (changed(0, cursor=-1), "outside its capacity"),
        (changed(1, length=[1, 0, 5]), "length lies outside"),
        (changed(1, length=[1, STEPS + 1, 5]), "length lies outside"),
        (changed(1, reward=np.zeros((3, STEPS - 1), np.float32)), r"reward: expected .*\(3, 5\)"),
        (changed(1, reward=np.zeros((3, STEPS))), "reward: expected float32"),
        (changed(1, reward=np.full((3, STEPS), np.nan, np.float32)), "reward: expected finite"),
        (rows()[1:], "3 of 5 episodes are there"),
        ([{k: v for k, v in rows()[0].items() if k != "skill"}], "skill is missing"),
    ],
)
def test_rows_that_lie_elsewhere_or_are_no_numbers_are_refused(saved, says):
    with pytest.raises(ValueError, match=says):
        check_rows(saved, shard())


def test_sizes_are_those_of_a_full_run():
    sizes = sizes_of({"a": np.zeros((3, 5), np.float32)}, shard(), cycles=2)
    assert sizes.arrays == {"a": 60}
    assert sizes.rows["action"] == CAPACITY * STEPS * 3 * 4
    assert sizes.rows["slots"] == CAPACITY * 8
    assert sizes.meta > 2**20


def test_counters_and_logs_come_back():
    counters = Counters(epoch=3, cycle=10**9 + 6, env_steps=360, updates=12, elapsed_s=1.5)
    assert take_over(Counters(), dataclasses.asdict(counters), "counters") == counters
    log = EpochLog(1, [{"train/mean_q": -1.5}, {}], [(1, -2)], 1, 2, 60, 0.5)
    data = dataclasses.asdict(log) | {"cells": [[1, -2]]}
    assert take_over(EpochLog(), data, "log").totals == log.totals


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epoch", -1),
        ("epoch", 1.0),
        ("epoch", True),
        ("epoch", "3"),
        ("epoch", 2**70),
        ("elapsed_s", math.nan),
        ("elapsed_s", -1.0),
        ("elapsed_s", math.inf),
        ("elapsed_s", 10**400),
        ("more", 1),
    ],
)
def test_counters_that_no_run_reaches_are_refused_by_name(key, value):
    data = dataclasses.asdict(Counters()) | {key: value}
    with pytest.raises(ValueError, match="counters"):
        take_over(Counters(), data, "counters")
    for other in (None, [], {"epoch": 1}):
        with pytest.raises(ValueError, match="counters: expected epoch, cycle"):
            take_over(Counters(), other, "counters")


@pytest.mark.parametrize("scale", [0, 0.0, -0.5, 1.5, math.nan, 10**400, True, "1"])
def test_steps_are_never_scaled_up_or_to_nothing(scale):
    taken = take_over(_Taken(), {"updates": 4, "step_scale": 0.25}, "meta")
    assert taken == _Taken(4, 0.25)
    with pytest.raises(ValueError, match="step_scale"):
        take_over(_Taken(), {"updates": 4, "step_scale": scale}, "meta")


@pytest.mark.parametrize(
    "change",
    [
        {"totals": [{"a": 1.0}, {"b": 1.0}]},
        {"totals": [{"a": "1"}]},
        {"totals": [{"a": math.nan}]},
        {"totals": [[]]},
        {"totals": {}},
        {"cells": [[1]]},
        {"cells": [[1, 2.0]]},
        {"cells": ["ab"]},
    ],
)
def test_logs_that_no_run_writes_are_refused(change):
    with pytest.raises(ValueError, match="log"):
        take_over(EpochLog(), dataclasses.asdict(EpochLog()) | change, "log")


def test_a_success_rate_is_a_share_or_unknown():
    assert success_rate(None) is None
    assert success_rate(1) == 1.0
    for bad in (1.5, -0.1, math.nan, "1", True):
        with pytest.raises(ValueError, match="best_success_rate"):
            success_rate(bad)
