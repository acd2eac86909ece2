"""What JSON of a checkpoint may hold; arrays are in `test_checkpoint.py`."""

import dataclasses
import math

import numpy as np
import pytest

from music_tf.gate import MisfitError, check_fit, expected_of, restore_fields, success_rate
from music_tf.training.counters import Counters, EpochLog
from tests.kit.cases import cases


@cases(
    ("kind", "change"),
    *((Counters, {"epoch": wrong}) for wrong in (-1, 1.0, True, "3", 2**70)),
    *((Counters, {"elapsed_s": wrong}) for wrong in (math.nan, -1.0, math.inf, 10**400)),
    (Counters, {"more": 1}),
    *((EpochLog, {"totals": wrong}) for wrong in ([{"a": "1"}], [{"a": math.nan}], [[]], {})),
    *((EpochLog, {"cells": wrong}) for wrong in ([[1]], [[1, 2.0]], ["ab"])),
)
def test_counts_and_logs_that_no_run_writes_are_refused_by_name(kind, change):
    with pytest.raises(ValueError, match="what it holds"):
        restore_fields(kind(), dataclasses.asdict(kind()) | change, "what it holds")


def test_counters_have_all_their_names():
    for other in (None, [], {"epoch": 1}):
        with pytest.raises(ValueError, match="counters: expected epoch, cycle"):
            restore_fields(Counters(), other, "counters")


def test_a_success_rate_is_a_share_or_unknown():
    assert success_rate(None) is None
    assert success_rate(1) == 1.0
    for bad in (1.5, -0.1, math.nan, "1", True):
        with pytest.raises(ValueError, match="best_success_rate"):
            success_rate(bad)


def test_a_buffer_that_grows_may_have_any_length_and_no_other_shape():
    expected = expected_of({"seen": np.zeros((0, 3), np.float32), "count": np.array(0)}, free=True)
    found = {"seen": np.zeros((7, 3), np.float32), "count": np.array(7)}
    check_fit(expected_of(found), expected, rows=True)
    found["seen"] = np.zeros((7, 2), np.float32)
    with pytest.raises(MisfitError, match=r"seen: expected .*, found float32 \(7, 2\)"):
        check_fit(expected_of(found), expected, rows=True)
