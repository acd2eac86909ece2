"""What becomes of a job by what its ranks note, and by what mpirun does."""

import os
import platform

import pytest

from music_tf.cli import job
from music_tf.errors import Hanging
from music_tf.process.launcher import ABORT, ENDED, KILL, LEARNS
from tests.kit.cases import cases

NONE = 2**22 + 1
"""A process that no Linux has."""


def watched(killed=None):
    return job._Watch(os.getpid(), None if killed is None else lambda *rank: killed.append(rank))


@cases(
    ("notes", "code", "is_elastic", "end"),
    ({}, None, True, None),
    ({}, 0, False, "a rank or a host was lost: mpirun ended before the first rank"),
    ({}, 137, False, r"a process was killed \(memory\?\)"),
    ({}, -15, False, 143),
    ({ABORT: ["3 "]}, None, True, 3),
    ({ABORT: ["86 rank 0 on here was lost"]}, None, True, "rank 0 on here was lost"),
    ({ABORT: ["86 "]}, 0, True, "a rank hung"),
    ({ENDED: ["75"]}, None, True, None),
    ({ENDED: ["75"]}, 137, True, 75),  # that of a rank that was lost before
    ({ENDED: ["0"]}, 4, False, 4),
)
def test_a_job_ends_as_it_noted_or_as_mpirun_did(notes, code, is_elastic, end):
    watch = watched([] if is_elastic else None)
    if isinstance(end, str):
        with pytest.raises(Hanging, match=f"^{end}$"):
            watch.ended(code, notes)
    else:
        assert watch.ended(code, notes) == end


@cases(
    ("learner", "more", "is_lost"),
    ("gone", {}, True),
    ("gone", {ENDED: ["0"]}, False),
    ("here", {}, False),
    ("far", {}, False),
)
def test_a_learner_that_is_gone_for_a_second_ends_the_job(learner, more, is_lost):
    here = f"{os.getpid()} {platform.node()}"
    places = {"here": here, "gone": f"{NONE} {platform.node()}", "far": f"{NONE} another_host"}
    watch, notes = watched([]), {LEARNS: [here, places[learner]], **more}
    for _ in range(job._MISSING):
        assert watch.ended(None, notes) is None
    if is_lost:
        with pytest.raises(Hanging, match="a learner was lost"):
            watch.ended(None, notes)
    assert is_lost or watch.ended(None, notes) is None


def test_a_rank_that_hangs_is_killed_once_and_one_lost_at_the_start_is_noticed(monkeypatch):
    watch = watched(killed := [])
    children = ["11", "12"]
    monkeypatch.setattr(job, "_children", lambda process: children)
    for _ in range(2):
        assert watch.ended(None, {KILL: ["2 77"]}) is None
    assert killed == [("2", "77")]
    children.pop()
    assert watch.ended(None, {ENDED: ["3"]}) is None  # it is no loss
    for _ in range(job._MISSING):
        assert watch.ended(None, {}) is None
    with pytest.raises(Hanging, match="a rank was lost at the start"):
        watch.ended(None, {})
