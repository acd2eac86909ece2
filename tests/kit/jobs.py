"""Real jobs of several ranks, started as a user would and watched from outside.

Those that are not `real` have a numpy learner and no TensorFlow: `tests/faults/stub.py`.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from music_tf.process.mpirun import own_sessions
from music_tf.storage.metrics import OF_ACTORS
from tests.kit.hosts import Hosts
from tests.kit.saved_run import CLOCKS, load_weights, rows_of
from tests.same.canonical import read_run

REPOSITORY = Path(__file__).resolve().parents[2]
STAND_IN = REPOSITORY / "tests/faults/stand_in"
MPIRUN = Path(sys.executable).parent / "mpirun"
VARIABLE = "MUSIC_TF_TEST_FAULT"
"""Holds the fault of a job as JSON, for `stub.Fault`."""
LIMIT = 60.0
"""Seconds after which a job counts as hanging, or four times as many for a real one."""
LEFT_S = 10.0
"""Seconds for which processes may outlive a job."""

DONE, BUG, USAGE, ENVIRONMENT, NUMBERS, STOPPED, HANGING = 0, 1, 2, 3, 4, 75, 86

TINY = """
train ddpg_her --env-id music_tf/PointPush-v0 --workers 4 --rollouts 1 --cycles 2 --updates 2
--replay.batch-size 8 --evaluation.episodes 4
"""
EPOCHS = 8
"""Of the run that others are compared with."""
ENDLESS = ("--epochs", "1000000")


def train(path, *more):  # the words that train for a few seconds; `more` wins
    return [*TINY.split(), *map(str, more), "--run-dir", str(path)]


def environment(fault=None, real=False):
    """What a job finds: the stand-in for TensorFlow and a fault, or everything `real`."""
    faults = {VARIABLE: json.dumps(fault)} if fault else {}
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY) if real else f"{STAND_IN}:{REPOSITORY}",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **faults,
    }


def mpirun(ranks, *program, limit=400, code=DONE):
    if not MPIRUN.exists():
        pytest.skip("no mpirun beside this Python")
    given = environment(real=True)
    options = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", "-n", str(ranks)]
    with own_sessions(given) as sessions:
        done = subprocess.run(
            [str(MPIRUN), *options, sys.executable, "-m", "mpi4py", *map(str, program)],
            env={**given, **sessions},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    assert done.returncode == code, done.stderr
    return done


@dataclasses.dataclass
class Ended:
    code: int
    out: str
    err: str
    seconds: float
    """From the call of `end` on."""


class Job:
    """A job of several ranks that leaves nothing behind when the `with` block ends."""

    def __init__(self, words, path, ranks=2, how="launch", fault=None, real=False):
        """Starts it: through `music-tf launch`, by `mpirun` alone, or as one plain process.

        Or `how` is `Hosts`, of which the first launches it: they have their own number of ranks.
        """
        self.path = Path(path)
        self.ranks = ranks
        self._hosts = how if isinstance(how, Hosts) else None
        self._limit = LIMIT * (4.0 if real else 2.0 if self._hosts else 1.0)
        music_tf = ["-m", "music_tf"]
        command = {
            "launch": [sys.executable, *music_tf, "launch", "-n", str(ranks)],
            "mpirun": [
                *(str(MPIRUN), "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"),
                *("-n", str(ranks), sys.executable, "-m", "mpi4py", *music_tf),
            ],
            "alone": [sys.executable, *music_tf],
        }
        if isinstance(how, tuple):  # options of `launch`
            command[how] = [*command["launch"], *how]
        if self._hosts:
            command[how] = how.launch(sys.executable, *music_tf)
        self._sessions = contextlib.ExitStack()
        given = environment(fault, real) | (self._hosts.variables if self._hosts else {})
        if how == "mpirun":
            given |= self._sessions.enter_context(own_sessions(given))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._files = [self.path.with_suffix(suffix) for suffix in (".out", ".err")]
        self.started = time.monotonic()
        with self._files[0].open("w") as out, self._files[1].open("w") as err:
            self.process = subprocess.Popen(
                [*command[how], *words],
                env=given,
                cwd=self.path.parent,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in {self.process.pid, *self.pids()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=LIMIT)
        self._sessions.close()

    def end(self, limit=None, code=None):
        """Waits for the end of the job and of all its processes; with any code, or with this."""
        start = time.monotonic()
        left_with = self.process.wait(timeout=limit or self._limit)
        left = self._limit if self._hosts else LEFT_S
        until(lambda: not self.pids(), f"processes of {self.path} live on", left)
        seconds = time.monotonic() - start
        out, err = (file.read_text(errors="replace") for file in self._files)
        assert code in (None, left_with), (left_with, err)
        return Ended(left_with, out, err, seconds)

    def stop_after(self, epoch, number=signal.SIGUSR1):
        """Asks it to stop once it has come to an epoch, and returns how it ended."""
        self.wait_for_epoch(epoch)
        self.send(number)
        return self.end(code=STOPPED)

    def pids(self):
        return processes_of(self.path) + (self._hosts.pids() if self._hosts else [])

    def rank_pids(self):
        """Process ids of the ranks that have started, in the order in which they did."""
        others = {"launch", "-n", "-c"}
        return [pid for pid, words in _commands(self.path) if not others & set(words)]

    def wait_for_ranks(self):
        until(lambda: len(self.rank_pids()) == self.ranks or self.over(), "the ranks do not start")
        return self.rank_pids()

    def wait_for_epoch(self, epoch):
        over = lambda: self.over() or len(rows_of(self.path)) >= epoch  # noqa: E731
        until(over, f"epoch {epoch} is not reached")

    def send(self, number):
        self.process.send_signal(number)

    def over(self):
        return self.process.poll() is not None


def until(condition, complaint, limit=3.0 * LIMIT):  # a busy machine takes long to start a job
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(complaint)
        time.sleep(0.01)


def _commands(path):  # process id and words of all living processes that work on a run
    for entry in sorted(Path("/proc").iterdir(), key=lambda entry: entry.name.zfill(9)):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_text(errors="replace").split("\0")
                state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
                if str(path) in words and state != "Z":
                    yield int(entry.name), words


def processes_of(path):
    return [pid for pid, _ in _commands(path)]


def run(words, path, limit=None, code=DONE, **how):
    with Job(words, path, **how) as job:
        return job.end(limit, code)


def resume(path, *more, **how):
    return run(["train", "--run-dir", str(path), "--resume", *map(str, more)], path, **how)


def state_of(path):  # weights, moments, normalisers and counters of the newest checkpoint
    arrays, meta = load_weights(Path(path) / "checkpoints")
    for clock in ("elapsed_s", "wall_s"):
        meta["counters"].pop(clock)
    meta["log"].pop("seconds")
    meta.pop("losses", None)
    return arrays, meta


def assert_same_run(one, other):  # bit by bit, but for what only actors say
    one_rows, other_rows = (rows_of(run, (*CLOCKS, *OF_ACTORS)) for run in (one, other))
    assert one_rows == other_rows
    (arrays, meta), (others, other_meta) = state_of(one), state_of(other)
    np.testing.assert_equal(arrays, others)
    assert meta == other_meta


def computed(path):  # all that a run has computed, without what only actors and clocks say
    own = {f"metrics/{name}" for name in OF_ACTORS}
    return {name: array for name, array in read_run(Path(path)).items() if name not in own}


def assert_same_bits(one, other):  # replay included
    one, other = computed(one), computed(other)
    assert one.keys() == other.keys()
    assert any(name.startswith("replay/worker_0003/") for name in one)
    for name, array in one.items():
        np.testing.assert_array_equal(other[name], array, err_msg=name)


def assert_a_stop_changes_no_bit(words, folder):
    """Trains on two ranks as `words(path)` says, straight and stopped after an epoch."""
    whole, cut = folder / "whole", folder / "cut"
    run(words(whole), whole, real=True)
    with Job(words(cut), cut, real=True) as job:
        job.stop_after(1)
    resume(cut, real=True)
    assert_same_run(whole, cut)


def assert_actors_change_no_bit(words, folder):
    """Trains as `words(path, *more)` says, on one rank and on a learner with an actor."""
    alone, acted = folder / "alone", folder / "acted"
    for path, ranks, more in ((alone, 1, ()), (acted, 2, ("--learners", "1"))):
        run(words(path, *more), path, ranks=ranks, real=True)
    assert_same_run(alone, acted)


def digests(path):
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(Path(path).rglob("*"))
        if file.is_file()
    }
