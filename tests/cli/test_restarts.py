"""Which ends of a job are followed by another one, and by how many."""

from dataclasses import replace

import pytest

from music_tf.cli import restarts
from music_tf.cli.job import Launch
from music_tf.errors import Hanging, Stopped
from music_tf.reading.command import parse_train
from tests.kit.cases import cases

LOST = Hanging("rank 0 on here was lost; to resume:\n...")


def launched(tmp_path, ends, allowed, typed=(), **meant):
    """Restarts a job that ends as listed: an exit code or a fault, and the epoch saved by then."""
    words = ["ddpg_her", "--run-dir", str(tmp_path), "--workers", "4"]
    ran, left = [], list(ends)

    def run(launch, train):
        ran.append(launch)
        end, epoch = left.pop(0)
        if epoch:
            (tmp_path / f"checkpoints/epoch_{epoch:06d}").mkdir(parents=True, exist_ok=True)
            (tmp_path / "config.json").touch()
            (tmp_path / "metrics.csv").write_text("epoch\n" + "1\n" * (epoch + 1))
        if isinstance(end, Exception):
            raise end
        return end

    job = Launch("-n 4", 4, {}, allowed, ["train", *words, *typed])
    try:
        code = restarts.run_with_restarts(job, replace(parse_train(words), **meant), run)
    except Hanging as fault:
        code = fault.exit_code
    return code, ran


@cases(
    ("allowed", "ends", "code", "count"),
    (0, [(LOST, 1)], 86, 1),
    (1, [(LOST, 1), (0, 2)], 0, 2),
    (1, [(LOST, 0), (0, 2)], 0, 2),  # nothing was saved before the first loss
    (1, [(86, 1), (86, 2)], 86, 2),
    (2, [(LOST, 1), (LOST, 1), (0, 2)], 86, 2),  # no further epoch: counts twice
    (3, [(LOST, 1), (LOST, 1), (0, 2)], 0, 3),
    (1, [(139, 1), (0, 2)], 0, 2),  # a signal that nobody asked for
    *((9, [(code, 1)], code, 1) for code in (0, 1, 2, 3, 4, 75)),
)
def test_a_lost_job_is_resumed_as_often_as_allowed(tmp_path, allowed, ends, code, count):
    assert (ended := launched(tmp_path, ends, allowed))[0] == code
    assert len(ended[1]) == count


def test_a_restart_resumes_and_tells_what_was_lost(tmp_path, capsys):
    _, ran = launched(tmp_path, [(LOST, 2), (0, 3)], 1, track="wandb")
    told = "music-tf: rank 0 on here was lost; goes on after epoch 2 on 4 ranks; epochs repeated: 1"
    assert capsys.readouterr().err == f"{told}, restarts left: 0\n"
    assert ran[1].command[-5:] == ["--run-dir", str(tmp_path), "--resume", "--track", "wandb"]


def test_replay_that_was_left_behind_once_is_not_again(tmp_path, capsys):
    """What is typed stays until the resumed run has saved an epoch of its own."""
    launched(tmp_path, [(0, 1)], 0)
    typed, meant = ("--resume", "--without-replay"), {"resume": True, "without_replay": True}
    _, ran = launched(tmp_path, [(LOST, 0), (LOST, 2), (0, 3)], 3, typed, **meant)
    assert ["--without-replay" in launch.command for launch in ran] == [True, True, False]


def test_a_job_goes_on_with_the_hosts_that_answer_on_as_many_ranks_as_fit(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(restarts, "run_on", lambda host, *_: asked.append(host) or host != "b")
    words = ["ddpg_her", "--run-dir", str(tmp_path), "--workers", "6"]
    hosts = {"a": 2, "b": 2, "c": 2}
    job = Launch("--hosts a:2,b:2,c:2", 6, hosts, 3, ["train", *words])
    left = restarts._on_what_is_left(job, parse_train(words), begun=True)
    assert sorted(asked) == ["b", "c"]  # a is this one
    assert (left.hosts, left.ranks) == ({"a": 2, "c": 2}, 3)  # six workers on four ranks do not fit
    assert left.options == "-n 3 --restarts 3 --hosts a:2,c:2"


def test_a_stop_between_two_jobs_is_heeded(tmp_path, monkeypatch):
    monkeypatch.setattr(restarts, "stop_requested", lambda: True)
    with pytest.raises(Stopped, match="to resume from the last checkpoint:\nmusic-tf launch -n 4"):
        launched(tmp_path, [(LOST, 1), (0, 2)], 1)
