"""`music-tf launch -n N VERB ...`: runs a verb on N MPI ranks of this machine."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from music_tf import process
from music_tf.cli import VERBS, run_verb
from music_tf.cli.mpirun import ask_version, find_mpirun, flavour, needed, own_sessions, rank_words
from music_tf.config.command import asks_for_help, parse_train
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_DONE, EXIT_STOPPED, EnvironmentFault, Stopped, UsageError
from music_tf.process import ASKED_VARIABLE, check_topology, death_follower
from music_tf.storage.run_directory import missing_folders, new_directory, remove_empty

USAGE = """\
usage: music-tf launch -n N VERB ...

Finds mpirun, sets it up, and runs a verb on N ranks of this machine; with -n 1 without MPI.
Ctrl-C, SIGTERM and SIGUSR1 let the ranks save and stop (exit code 75, the run can be resumed);
a second Ctrl-C ends them at once.

examples:
  music-tf launch -n 2 train ddpg_her --env-id FetchPush-v4
  music-tf launch -n 2 train --run-dir DIR --resume
  music-tf launch -n 3 train ddpg_music --learners 1 --lag 1   # one rank learns, two act
"""
CURE = "install it with: pip install 'music_tf[mpi]'"

_RANK_OPTIONS = ("-n", "-np", "--ranks")
_MOST_RANKS = 4096
_START_SECONDS = 1.0
_REPEAT_SECONDS = 1.0
_POLL_SECONDS = 0.1
_VERSION_SECONDS = 60.0
_GRACE_SECONDS = 1.0
_DEAF_UNTIL_READY = ("sh", "-c", 'trap "" USR1; exec "$@"', "music-tf")
"""Starts a rank so that SIGUSR1 does not end it before it has installed its handler."""


def main(arguments: list[str]) -> int:
    """Runs the verb and returns the exit code of the job.

    Raises:
        UsageError: The command line is wrong.
        EnvironmentFault: There is no MPI to run it with.
        Stopped: A signal came before there was anything to stop.
    """
    ranks, command = _split(arguments)
    if not command:
        sys.stdout.write(USAGE)
        return EXIT_DONE
    made: list[Path] = []
    if command[0] == "train" and not asks_for_help(command):
        command, made = _check_train(command, ranks)
    if ranks == 1:
        return run_verb(command)
    command = [*_mpirun(ranks), *command]
    if process.stop_requested():
        raise Stopped("stopped before the start")
    more = {**needed(os.environ), ASKED_VARIABLE: str(ranks)}
    with own_sessions(os.environ) as sessions:
        code = run_job(command, {**os.environ, **more, **sessions})
    if code != EXIT_DONE:
        remove_empty(made)  # where it was refused, or ended before it had begun
    return code


def run_job(command: list[str], environment: Mapping[str, str]) -> int:
    """Runs an mpirun and returns its exit code, or 128 + N where signal N ended it.

    It has a process group of its own, so that Ctrl-C does not reach it directly. A signal goes to
    the ranks as SIGUSR1, which asks them to save and stop, again every second until the job ends:
    while it starts, mpirun and ranks miss signals. A second Ctrl-C ends the job at once, with 75.
    """
    process.install_signal_handlers()
    ask_at = time.monotonic() + _START_SECONDS
    job = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,
        preexec_fn=death_follower(),  # noqa: PLW1509 - no threads here
    )
    try:
        while True:
            if process.stop_requested() and time.monotonic() > ask_at:
                job.send_signal(signal.SIGUSR1)
                ask_at = time.monotonic() + _REPEAT_SECONDS
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = job.wait(timeout=_POLL_SECONDS)
                return code if code >= 0 else 128 - code
    except KeyboardInterrupt:
        job.terminate()  # ranks follow their mpirun
        try:
            job.wait(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
        return EXIT_STOPPED


def _split(arguments: list[str]) -> tuple[int, list[str]]:
    """Returns the number of ranks and the verb with its arguments, empty to show the help."""
    ranks = ""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option in ("-h", "--help"):
            return 1, []
        if option not in _RANK_OPTIONS:
            raise UsageError(f"unknown option {option[:80]!r}{suggestion(option, _RANK_OPTIONS)}")
        ranks = value if equals else (rest.pop(0) if rest else "")
    if not ranks:
        raise UsageError("launch: expected -n N\nfor example: music-tf launch -n 2 train ddpg_her")
    few = ranks.isascii() and ranks.isdigit() and len(ranks) <= len(str(_MOST_RANKS))
    number = int(ranks) if few else 0
    if not 1 <= number <= _MOST_RANKS:
        raise UsageError(
            f"--ranks: expected a whole number in 1..{_MOST_RANKS}, got {ranks[:80]!r}"
        )
    known = [verb for verb in VERBS if verb != "launch"]
    verb = rest[0] if rest else ""
    if verb not in known:
        raise UsageError(
            f"launch: expected one of {', '.join(known)}, got {verb[:80]!r}"
            + suggestion(verb, known)
        )
    return number, rest


def _check_train(command: list[str], ranks: int) -> tuple[list[str], list[Path]]:
    """Refuses what the ranks would; returns the words with a run directory, and new folders."""
    train = parse_train(command[1:])
    check_topology(train.config.workers, ranks, train.learners, train.device)
    if train.run_dir is None and ranks > 1:
        _mpirun(ranks)
        missing = missing_folders(train)
        directory = new_directory(train)
        return [*command, "--run-dir", str(directory)], [directory, *missing]
    return command, []


def _mpirun(ranks: int) -> list[str]:
    """Returns the words that start this interpreter's package on several ranks."""
    mpirun = find_mpirun()
    if mpirun is None:
        raise EnvironmentFault(f"{ranks} ranks need mpirun, and it was not found\n{CURE}")
    if importlib.util.find_spec("mpi4py") is None:
        raise EnvironmentFault(f"{ranks} ranks need mpi4py, and it was not found\n{CURE}")
    answer = ask_version(mpirun, _VERSION_SECONDS)
    if answer.code is None:
        raise EnvironmentFault(f"{mpirun} cannot be used: {answer.reason}\n{CURE}")
    package = [*_DEAF_UNTIL_READY, sys.executable, "-m", "music_tf"]
    return [*rank_words(mpirun, flavour(answer.output), ranks), *package]
