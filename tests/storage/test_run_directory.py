import errno
import fcntl
import json
import logging
import math
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import music_tf
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.files import read_json
from music_tf.storage import run_directory
from music_tf.storage.lock import LOCK_NAME, RunLock, refuse_if_in_use
from music_tf.storage.provenance import commit
from music_tf.storage.run_directory import open_run, refuse_too_many, write_json
from tests.kit.cases import cases
from tests.kit.started import ended

RECORD = {
    "recipe": "ddpg_her",
    "preset": "laptop",
    "arguments": ["ddpg_her", "--epochs", "3"],
    "config": {"epochs": 3, "max_minutes": "inf", "workers": 2, "agent": {"discount": 0.9}},
}
RELEASED = Path(__file__).parent / "released"
"""A small run of `ddpg_music` for each release from which stored files may be different."""


def changed(**settings):
    return {**RECORD, "config": {**RECORD["config"], **settings}}


def open_and_close(path, record=RECORD, resume=False):
    run = open_run(path, record, resume, Communicator())
    run.keep_record()
    run.close()


def contents(path):
    return {p: p.is_file() and p.read_bytes() for p in [path, *path.rglob("*")]}


def test_a_new_run_gets_its_folders_record_and_log(tmp_path):
    path = tmp_path / "a" / "run"
    run = open_run(path, RECORD, False, Communicator())
    logging.getLogger("music_tf.training").info("hello")
    run.write_summary({"eval/success_rate": 0.5})
    run.close()
    logging.getLogger("music_tf.training").info("after")
    record = json.loads((path / "config.json").read_bytes())
    assert {key: record[key] for key in RECORD} == RECORD
    assert (record["ranks"], record["workers"]) == (1, 2)
    assert record["host"] == socket.gethostname()
    assert record["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(record["versions"][name] for name in ("tensorflow", "keras", "numpy", "mujoco"))
    assert json.loads((path / "summary.json").read_bytes()) == {"eval/success_rate": 0.5}
    log = (path / "logs/rank_0000.log").read_text()
    assert "hello" in log
    assert "after" not in log
    assert {p.name for p in path.iterdir()} == {
        *("checkpoints", "videos", "logs", "config.json", "summary.json")
    }


def test_numbers_that_are_not_finite_are_null_in_results(tmp_path):
    told = {"ours": {"heldout": math.nan, "return": 2.0}, "each": [math.inf, (-math.inf, 1)]}
    write_json(tmp_path / "evaluation.json", told, tmp_path)
    written = {"ours": {"heldout": None, "return": 2.0}, "each": [None, [None, 1]]}
    assert read_json(tmp_path / "evaluation.json", 1000) == written


@pytest.mark.parametrize(("resume", "jump"), [(False, 0), (True, 0), (True, 86400), (True, -86400)])
def test_a_directory_in_use_is_refused_with_process_and_host(tmp_path, monkeypatch, resume, jump):
    run = open_run(tmp_path, RECORD, False, Communicator())
    before, now = contents(tmp_path), time.time()
    monkeypatch.setattr(time, "time", lambda: now + jump)
    with pytest.raises(UsageError, match=rf"process {os.getpid()} on host {socket.gethostname()}"):
        open_and_close(tmp_path, resume=resume)
    assert contents(tmp_path) == before
    run.close()
    open_and_close(tmp_path, resume=True)


def lock_of(pid, **changes):
    return json.dumps({"pid": pid, "host": socket.gethostname(), **changes})


@pytest.fixture
def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


HOLD = """
import sys
from pathlib import Path
from music_tf.storage.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_the_kernel_gives_back_what_a_killed_process_held(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    for taken in (RunLock, refuse_if_in_use):
        with pytest.raises(UsageError, match=f"process {holder.pid} on host"):
            taken(tmp_path)
    (tmp_path / LOCK_NAME).unlink()  # whatever somebody removes
    with pytest.raises(UsageError, match="in use by another job"):
        RunLock(tmp_path)
    holder.kill()
    holder.communicate()
    refuse_if_in_use(tmp_path)
    RunLock(tmp_path).release()


def test_where_there_is_no_flock_the_file_decides(tmp_path, monkeypatch, caplog, dead_process):
    def unsupported(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    lock = RunLock(tmp_path)
    assert "no flock here" in caplog.text
    for taken in (RunLock, refuse_if_in_use):
        with pytest.raises(UsageError, match=f"process {os.getpid()} on host"):
            taken(tmp_path)
    lock.release()
    (tmp_path / LOCK_NAME).write_text(lock_of(dead_process))
    RunLock(tmp_path).release()
    assert not (tmp_path / LOCK_NAME).exists()


def test_reading_a_run_takes_no_lock(tmp_path):
    looking = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    refuse_if_in_use(tmp_path)
    threading.Timer(0.05, os.close, [looking]).start()
    RunLock(tmp_path).release()


def test_a_job_that_slurm_queued_again_takes_over_from_its_node_that_died(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")  # without a count of restarts at first
    run = open_run(tmp_path, RECORD, False, Communicator())
    lock = json.loads((tmp_path / LOCK_NAME).read_bytes())
    run.close()
    (tmp_path / LOCK_NAME).write_text(json.dumps({**lock, "host": "elsewhere"}))
    for job in ("7", "8"):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        with pytest.raises(UsageError, match=r"in use by process .* on host elsewhere"):
            open_and_close(tmp_path, resume=True)
        monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    open_and_close(tmp_path, resume=True)
    assert not (tmp_path / LOCK_NAME).exists()


def test_a_directory_that_holds_something_else_is_left_untouched(tmp_path):
    run = tmp_path / "run"
    open_and_close(run)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    before = contents(tmp_path)
    for path, text in (
        (run, "--resume"),
        (tmp_path / "papers", "empty"),
        (tmp_path / "file", "file"),
    ):
        with pytest.raises(UsageError, match=text):
            open_and_close(path)
    assert contents(tmp_path) == before


def test_what_a_killed_start_or_run_leaves_does_not_block_the_next(tmp_path, dead_process):
    for name in ("checkpoints", "logs"):
        (tmp_path / name).mkdir()
    (tmp_path / LOCK_NAME).write_text(lock_of(dead_process))
    open_and_close(tmp_path)
    assert (tmp_path / "config.json").exists()
    before = contents(tmp_path).keys()
    for name in ("config.json", "metrics.csv", "summary.json", "lock.json"):
        (tmp_path / f"{name}.tmp-4711").write_text("{")
    (tmp_path / "mine.tmp-1").write_text("x")
    open_and_close(tmp_path, resume=True)
    assert contents(tmp_path).keys() == {*before, tmp_path / "mine.tmp-1"}


def test_a_resume_needs_a_run_that_is_no_folder_of_weights(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UsageError, match="expected a run to resume"):
            open_and_close(path, resume=True)
    assert not list(tmp_path.iterdir())
    for name in ("config.json", "manifest.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UsageError, match=r"found a folder of weights\n.* --init-from"):
        open_and_close(tmp_path, resume=True)


def test_a_resume_may_change_epochs_and_what_is_newer_and_nothing_else(tmp_path):
    open_and_close(tmp_path)
    before = contents(tmp_path)
    for record in (changed(workers=4), {**RECORD, "recipe": "sac"}):
        with pytest.raises(UsageError, match=r"(RECIPE|--workers): the run has .*, got"):
            open_and_close(tmp_path, record, resume=True)
    assert contents(tmp_path) == before
    settings = {"epochs": 9, "max_minutes": 5, "hang_after": 300.0}
    open_and_close(tmp_path, changed(**settings), resume=True)
    record = json.loads((tmp_path / "config.json").read_bytes())
    assert record["config"] == {**RECORD["config"], **settings}
    assert [resume["ranks"] for resume in record["resumes"]] == [1]


LOCKS = (lock_of(1, host="elsewhere"), "", "[]", "{", "[" * 9000, "9" * 9000, " " * 10**6)
RECORDS = (
    *("{", '{"config": 3}', json.dumps(RECORD | {"resumes": 7})),
    json.dumps(RECORD | {"ranks": math.inf}).replace("Infinity", "1e999"),
)


@cases(
    ("name", "content", "told"),
    *((LOCK_NAME, content, r"in use.*\n.*lock\.json") for content in LOCKS),
    *(("config.json", content, r"config\.json: damaged") for content in RECORDS),
    ids=lambda value: repr(value[-12:]),
)
def test_a_lock_that_cannot_be_judged_and_a_damaged_record_are_respected(
    tmp_path, name, content, told
):
    open_and_close(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=told):
        open_and_close(tmp_path, resume=True)
    assert (tmp_path / name).read_text() == content


def test_a_disk_that_fails_ends_the_start_and_costs_a_summary(tmp_path, monkeypatch, caplog):
    def refuse(path, data):
        raise OSError(30, "Read-only file system")

    run = open_run(tmp_path, RECORD, False, Communicator())
    monkeypatch.setattr(run_directory, "replace_file", refuse)
    run.write_summary({})
    run.close()
    assert "summary not written: [Errno 30] Read-only file system" in caplog.text
    with pytest.raises(EnvironmentFault, match="Read-only"):
        open_and_close(tmp_path / "run")
    assert not (tmp_path / "run" / LOCK_NAME).exists()


def test_evidence_is_not_replaced_by_a_fault_that_has_none(tmp_path):
    directory = open_run(tmp_path / "run", RECORD, False, Communicator())
    directory.write_evidence({"reward": np.array([1.0, np.nan])})
    directory.write_evidence({})
    (path,) = (tmp_path / "run/logs").glob("*.bad_numbers.npz")
    np.testing.assert_array_equal(np.load(path, allow_pickle=False)["reward"], [1.0, np.nan])
    directory.close()


def test_the_commit_is_read_from_head_a_branch_or_packed_ones_also_of_a_worktree(tmp_path):
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@here"]
    main, tree = tmp_path / "main", tmp_path / "tree"
    assert commit(main) is None
    for words in (
        ["init", "-q", str(main)],
        ["-C", str(main), "commit", "-q", "--allow-empty", "-m", "first"],
        ["-C", str(main), "worktree", "add", "-q", "-b", "other", str(tree)],
        ["-C", str(main), "pack-refs", "--all"],
        ["-C", str(tree), "commit", "-q", "--allow-empty", "-m", "second"],
        ["-C", str(tree), "checkout", "-q", "--detach"],
    ):
        subprocess.run([*git, *words], check=True, timeout=60)
        for checkout in (main, tree) if tree.exists() else ():
            told = ended("git", "-C", checkout, "rev-parse", "HEAD", exits=0).stdout
            assert commit(checkout) == told.strip()


def test_tasks_that_the_record_has_no_room_for_are_refused_with_how_many_it_has(monkeypatch):
    tasks = {"train": [[0.5]] * 100}  # 19 bytes each, and 35 around them
    monkeypatch.setattr(run_directory, "_ROOM_FOR_TASKS", 1935)
    refuse_too_many(tasks)
    monkeypatch.setattr(run_directory, "_ROOM_FOR_TASKS", 1934)
    with pytest.raises(UsageError, match=r"expected at most 99 tasks .* got 101"):
        refuse_too_many({"train": [[0.5]] * 100, "test": [[0.5]]})


@pytest.mark.thorough
@pytest.mark.parametrize("release", [path.name for path in RELEASED.iterdir()])
def test_a_run_of_a_release_acts_as_then_and_goes_on(release, tmp_path):
    run = music_tf.load_run(shutil.copytree(RELEASED / release, tmp_path / "run"))
    acted = json.loads((run.path / "acted.json").read_text())  # kept beside the run, by hand
    np.testing.assert_allclose(run.policy().act(acted["observation"]), acted["action"], atol=1e-4)
    columns, metrics = set(run.metrics), run.resume(epochs=2).metrics
    assert (metrics["time/epoch"].tolist(), columns - set(metrics)) == ([1.0, 2.0], set())
