"""Chains of jobs that are ended by force or on request, each continuing what the one before left.

A chain is compared at its end with a run that nobody disturbed: rows, weights, moments, counters.
"""

import dataclasses
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.kit import jobs
from tests.kit.hosts import Hosts

ALLOWED_S = 10.0
ALLOWED_ON_HOSTS_S = 25.0
"""Where a host that is silent has to be given up first."""
LEARNER = ("--learners", "1", "--lag", "1")
"""How a run on several hosts begins; `--learners` is no setting that it would keep."""


@dataclasses.dataclass
class Trial:
    """What became of one disturbed job."""

    moment_s: float
    code: int
    end_s: float
    epochs_lost: int
    survived: bool
    note: str = ""


def starting_seconds(path: Path, ranks: int) -> float:
    """Returns how long a job takes here and now from its command to the end of an epoch."""
    with jobs.Job(jobs.train(path, *jobs.ENDLESS), path, ranks=ranks) as job:
        job.wait_for_epoch(1)
        taken: float = time.monotonic() - job.started
        job.stop_after(1)
    return taken


def disturb(
    path: Path,
    ranks: int,
    moment_s: float,
    disturbance: Callable[[jobs.Job], None],
    *more: object,
    hosts: Hosts | None = None,
) -> Trial:
    """Starts a run or continues it, disturbs it after some time, and looks at what is left.

    On several hosts one rank learns and the others act, and the time counts from the end of its
    first epoch. Nothing may be left on any of them.

    It survives if it ends in time, with a code other than 0, without processes left over, and
    with a table that continues what was there before by whole epochs, of which at most the last
    is in no checkpoint.
    """
    before = jobs.rows_of(path)
    kept = saved_epoch(path)
    known = (path / "config.json").exists()
    words = (
        ["train", "--run-dir", str(path), "--resume"]
        if known
        else jobs.train(path, *jobs.ENDLESS, *more)
    )
    allowed_s = ALLOWED_S
    if hosts is not None:
        allowed_s = ALLOWED_ON_HOSTS_S
        words += LEARNER[:2] if known else LEARNER
    with jobs.Job(words, path, ranks=ranks, how=hosts or "launch") as job:
        start = job.started
        if hosts is not None:
            job.wait_for_epoch(len(before) + 1)
            start = time.monotonic()
        time.sleep(max(0.0, start + moment_s - time.monotonic()))
        disturbance(job)
        try:
            ended = job.end(limit=3 * allowed_s)
        except Exception as hang:
            return Trial(moment_s, -1, 3 * allowed_s, 0, False, repr(hang))
    rows = jobs.rows_of(path)
    epochs = [int(row["epoch"]) for row in rows]
    lost = len(epochs) - saved_epoch(path)
    wrong = {
        "code 0": ended.code == 0,
        "too slow": ended.seconds > allowed_s,
        "traceback": "Traceback" in ended.err,
        f"epochs {epochs}": epochs != list(range(1, len(epochs) + 1)),
        "earlier rows changed": rows[:kept] != before[:kept],
        f"{lost} epochs lost": not 0 <= lost <= 1,
    }
    faults = [text for text, is_so in wrong.items() if is_so]
    note = "; ".join(faults)
    if faults:
        note += "\n" + ended.err[-2000:]
    return Trial(moment_s, ended.code, ended.seconds, lost, not faults, note)


def kill_a_rank(generator: np.random.Generator) -> Callable[[jobs.Job], None]:
    """Kills one of the ranks that have started by then."""

    def strike(job: jobs.Job) -> None:
        jobs.until(job.rank_pids, "no rank starts")
        os.kill(int(generator.choice(job.rank_pids())), signal.SIGKILL)

    return strike


def kill_mpirun(job: jobs.Job) -> None:
    """Kills mpirun, which then cannot take its ranks along."""
    jobs.until(lambda: _mpirun_of(job), "mpirun does not start")
    os.kill(_mpirun_of(job)[0], signal.SIGKILL)


def kill_daemon(hosts: Hosts) -> Callable[[jobs.Job], None]:
    """Kills what mpirun has started on the second host to start ranks there."""

    def strike(job: jobs.Job) -> None:
        daemons = [pid for pid in hosts.pids(2) if "prted" in _program(pid)]
        assert daemons, f"no daemon of {job.path} on the second host"
        for pid in daemons:
            os.kill(pid, signal.SIGKILL)

    return strike


def cut_link(hosts: Hosts) -> Callable[[jobs.Job], None]:
    """Takes the second host off the network."""
    return lambda job: hosts.cut(2)


def kill_launcher(job: jobs.Job) -> None:
    os.kill(job.process.pid, signal.SIGKILL)


def ask_to_stop(number: int) -> Callable[[jobs.Job], None]:
    return lambda job: job.send(number)


def judge_stop(trial: Trial) -> Trial:
    """Judges a job that was asked to stop: it must have saved everything and say so."""
    if trial.code != jobs.STOPPED or trial.epochs_lost:
        wrong = f"code {trial.code}, {trial.epochs_lost} epochs lost\n{trial.note}"
        return dataclasses.replace(trial, survived=False, note=wrong)
    return trial


def finish_and_compare(
    path: Path, reference: Path, ranks: int, *more: object, hosts: Hosts | None = None
) -> None:
    """Lets a chain go on for two epochs, then compares it with an undisturbed run."""
    epochs = saved_epoch(path) + 2
    learner = LEARNER[:2] if hosts else ()
    jobs.resume(path, "--epochs", epochs, *learner, ranks=ranks, how=hosts or "launch")
    assert not list((path / "checkpoints").rglob("*.tmp-*"))
    # on a busy machine a chain is long, and so is what it is held to
    patience = jobs.LIMIT + epochs
    jobs.run(jobs.train(reference, "--epochs", epochs, *more), reference, patience, ranks=ranks)
    jobs.assert_same_run(path, reference)


def saved_epoch(path: Path) -> int:
    """Epochs done in the newest intact checkpoint; 0 without one."""
    if not list((path / "checkpoints").glob("epoch_??????*/manifest.json")):
        return 0
    return int(jobs.state_of(path)[1]["counters"]["epoch"])


def _mpirun_of(job: jobs.Job) -> list[int]:
    pids = jobs.processes_of(job.path)
    return [pid for pid in pids if _program(pid) == str(jobs.MPIRUN) or "prterun" in _program(pid)]


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]
    except OSError:
        return ""
