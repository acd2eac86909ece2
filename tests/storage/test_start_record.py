import json
from pathlib import Path

import pytest

from music_tf.errors import UsageError
from music_tf.storage.checkpoint import StoredWeights
from music_tf.storage.warm_start import digest_of, parts_taken, record_of, start_line, taken_before
from tests.kit.cases import cases

OLD = {"run": "/a/run/checkpoints", "checkpoint": "epoch_000003", "sha256": "1", "parts": ["actor"]}
"""What a version wrote that counted nothing."""


def stored(meta):
    return StoredWeights(Path("/a/run/checkpoints/epoch_000007"), "12ab", (), {}, meta)


def record(meta):
    return record_of(Path("/a/run/checkpoints"), stored(meta), ("actor", "critic"))


def test_a_record_counts_the_source_and_what_that_one_started_from():
    counters = {"epoch": 7, "cycle": 70, "env_steps": 700, "elapsed_s": 70.5}
    meta = {"counters": counters, "env_id": "FetchPush-v4"}
    found = record({**meta, "before": {"time/env_steps": 300.0}})
    assert json.loads(json.dumps(found)) == {
        "run": "/a/run/checkpoints",
        "checkpoint": "epoch_000007",
        "epoch": 7,
        "env_id": "FetchPush-v4",
        "sha256": "12ab",
        "parts": ["actor", "critic"],
        "before": {"time/env_steps": 1000.0, "time/elapsed_s": 70.5},
    }
    assert taken_before(found, Path()) == found["before"]
    assert start_line(found) == "starts from /a/run, epoch 7: actor, critic"
    assert parts_taken(found) == ["actor", "critic"]


@cases(
    "meta",
    {},
    {"counters": 3},
    *({"counters": {"epoch": epoch}} for epoch in (None, True, -1, 2**70, float("nan"), [7])),
)
def test_weights_without_counters_count_as_zero_steps(meta):
    assert record(meta)["before"] == {}
    assert record(meta)["epoch"] is None
    assert start_line(record(meta)).startswith("starts from /a/run, checkpoint epoch_000007: ")


@cases(
    "meta",
    {"counters": {"env_steps": "many"}},
    {"counters": {"env_steps": float("nan")}},
    {"counters": {"elapsed_s": 10**400}},
    {"counters": {"env_steps": 1}, "before": [1]},
    {"counters": {"env_steps": 1}, "before": {"time/env_steps": None}},
)
def test_counters_that_are_no_numbers_are_refused(meta):
    with pytest.raises(UsageError, match="epoch_000007: expected numbers of steps and seconds"):
        record(meta)


def test_an_older_record_is_shown_counts_nothing_and_no_control_character_is_printed():
    assert start_line(OLD) == "starts from /a/run, checkpoint epoch_000003: actor"
    assert taken_before(OLD, Path()) == taken_before(None, Path()) == {}
    assert (parts_taken(OLD), digest_of(OLD)) == (["actor"], "1")
    assert (parts_taken(None), digest_of(None)) == ([], "")
    parts = [{}, "a\nb", "actor", *(1000 * ["$"])]
    line = start_line({"run": "\x1b[2J" + 1000 * "x", "epoch": True, "parts": parts})
    assert line.isprintable()
    assert line.endswith("xxx, checkpoint ?: ?, ?, actor" + 9 * ", ?")
    assert len(line) < 400
    assert digest_of({"sha256": [1]}) == ""
