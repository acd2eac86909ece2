import dataclasses

import pytest

from music_tf.errors import UsageError
from music_tf.process import machine
from music_tf.training import memory
from tests.kit.small import BASE, trainer_of

FETCH = dataclasses.replace(BASE, env_id="FetchPush-v4")


@pytest.fixture
def free(monkeypatch):
    """Says how many MB this machine still has."""

    def has(megabytes):
        monkeypatch.setattr(memory, "available_memory", lambda: megabytes * 2.0**20)

    return has


def refusal(config=BASE, **changes):
    with pytest.raises(UsageError) as refused:
        trainer_of(config, **changes)
    lines = str(refused.value).splitlines()
    assert len(lines) == 3
    return lines


@pytest.mark.parametrize("changes", [{"workers": 512}, {"rollouts": 512}])
def test_more_environments_than_memory_holds_are_refused_before_they_are_made(free, changes):
    free(4000)
    needed, environments, _ = refusal(FETCH, epochs=1, **changes)
    assert "which has 3.9 GiB free" in needed
    assert environments.startswith("environments 8.")
    assert f"--workers (now {changes.get('workers', 2)})" in environments
    assert f"--rollouts (now {changes.get('rollouts', 2)})" in environments


def test_as_many_as_memory_holds_are_made_and_replay_counts_as_far_as_it_fills(free):
    free(40)
    assert len(trainer_of(FETCH, epochs=1).envs) == 4
    replay = dataclasses.replace(BASE.replay, capacity=10**7)
    free(10)
    trainer_of(epochs=1, replay=replay)
    trainer_of(epochs=10**6)  # 3000 transitions a worker
    trainer_of(epochs=10**6, max_minutes=1.0, replay=replay)
    assert "(now 10000000) or --epochs (now 1000000)" in refusal(epochs=10**6, replay=replay)[2]


def test_ranks_of_one_host_share_its_memory(monkeypatch):
    def allgather(value):
        others = [["elsewhere", 50, 50, 99.0], ["elsewhere", 0, 1, 101.0]]
        return [value, *others] if isinstance(value, list) else [value]

    monkeypatch.setattr("music_tf.distributed.Communicator.allgather", lambda _, n: allgather(n))
    assert "on elsewhere, which has" in refusal(epochs=1)[0]


def test_what_is_free_is_known_here_or_nothing_is_refused(monkeypatch, tmp_path):
    assert 0.0 < machine.available_memory() <= float("inf")
    monkeypatch.setattr(machine, "Path", lambda text: tmp_path / "nowhere")
    assert machine.available_memory() == float("inf")
