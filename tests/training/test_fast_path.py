"""Training is the same to the last bit with and without the fast path of the Fetch tasks."""

import dataclasses

import pytest

from music_tf.envs import fetch
from music_tf.envs.fetch import FetchMember
from music_tf.envs.member import PlainMember
from tests.kit.small import ALL, TIMES, assert_same_state, go_on, trainer_of


def trained(config):
    """Returns the trainer after an epoch, and its metrics without times."""
    trainer = trainer_of(config)
    metrics = trainer.run_epoch(go_on)
    return trainer, {name: value for name, value in metrics.items() if name not in TIMES}


def members(trainer):
    return {type(member) for member in trainer.envs._members}


@pytest.mark.parametrize("name", ["everything", "music"])  # the environment's goals, zero goals
def test_a_run_learns_the_same_without_the_fast_path(name, monkeypatch):
    small = {"env_id": "FetchPush-v4", "workers": 1, "cycles": 3, "lost_object": "absorb"}
    config = dataclasses.replace(ALL[name], **small)
    fast, found = trained(config)
    monkeypatch.setattr(fetch, "is_fetch", lambda environment: False)
    plain, expected = trained(config)
    assert (members(fast), members(plain)) == ({FetchMember}, {PlainMember})
    assert found == expected
    assert {"eval/object_moved_rate", "music/bound_heldout", "train/critic_loss"} <= set(found)
    assert_same_state(plain, fast)
