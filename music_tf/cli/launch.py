"""`music-tf launch -n N VERB ...`: runs a verb on N MPI ranks, of this machine or of several."""

import contextlib
import dataclasses
import importlib.util
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar

from music_tf.cli import VERBS, run_verb
from music_tf.cli.hosts import check_hosts, host_words, hosts_in, hosts_of
from music_tf.config.fields import In
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_DONE, EXIT_STOPPED, EnvironmentFault, Hanging, Stopped, UsageError
from music_tf.process.children import PIP_INSTALL, death_follower
from music_tf.process.launcher import ASKED_VARIABLE, END_VARIABLE, LAUNCH_VARIABLE, check_topology
from music_tf.process.mpirun import (
    OPEN_MPI,
    ask_version,
    find_mpirun,
    flavour,
    needed,
    own_sessions,
    rank_words,
)
from music_tf.process.signals import install_signal_handlers, stop_requested
from music_tf.reading.command import parse_train, resume_line
from music_tf.reading.options import Options, asks_for_help, read
from music_tf.storage.run_directory import (
    ended_at_once,
    missing_folders,
    new_directory,
    remove_empty,
)

USAGE = """\
usage: music-tf launch -n N VERB ...
       music-tf launch --hosts a:8,b:8 VERB ...

Finds mpirun, sets it up, and runs a verb on N ranks of this machine; with -n 1 without MPI. With
--hosts, or --hostfile FILE, on hosts with room for so many; start it on the first of them.
Ctrl-C, SIGTERM and SIGUSR1 let the ranks save and stop (exit code 75, the run can be resumed);
a second Ctrl-C ends them at once.

examples:
  music-tf launch -n 2 train ddpg_her --env-id FetchPush-v4
  music-tf launch -n 2 train --run-dir DIR --resume
  music-tf launch -n 3 train ddpg_music --learners 1 --lag 1   # one rank learns, two act
  music-tf launch --hosts node1:8,node2:8 train ddpg_music --workers 16
"""
CURE = f"install it in this environment: {PIP_INSTALL} 'music_tf[mpi]'"

_SHORT = re.compile("^-np?(?==|$)")
_START_SECONDS = 1.0
_REPEAT_SECONDS = 1.0
_POLL_SECONDS = 0.1
_VERSION_SECONDS = 60.0
_GRACE_SECONDS = 1.0
_KILLED = (128 + signal.SIGKILL, signal.SIGKILL)
"""Exit codes of mpirun, of Open MPI and of MPICH, after a rank was killed."""
_END_SECONDS = 20.0
_DEAF_UNTIL_READY = ("sh", "-c", 'trap "" USR1; exec "$@"', "music-tf")
"""Starts a rank that ignores SIGUSR1 until it installs its handler."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LaunchOptions(Options):
    """Where the ranks of a job run."""

    example: ClassVar[str] = "launch -n 2 train ddpg_her"

    ranks: Annotated[int | None, In(1, 4096)] = None
    """Number of ranks; -n is short for it. Unset: as many as the hosts take."""
    hosts: str = ""
    """Hosts and the ranks that each takes, as in a:8,b:8."""
    hostfile: Path | None = None
    """A file that lists them."""


def main(arguments: list[str]) -> int:
    ranks, hosts, command = _split(arguments)
    if not command:
        sys.stdout.write(USAGE)
        return EXIT_DONE
    options = shlex.join(arguments[: len(arguments) - len(command)])
    made: list[Path] = []
    proof, again = None, ""
    if command[0] == "train" and not asks_for_help(command):
        command, made, proof, again = _check_train(command, ranks, options)
    if ranks == 1 and not hosts:
        return run_verb(command)
    marks = {ASKED_VARIABLE: str(ranks), LAUNCH_VARIABLE: options}
    marks |= {END_VARIABLE: str(proof)} if proof is not None else {}
    environment = {**os.environ, **needed(os.environ), **marks}
    code = None
    try:
        start = _mpirun(ranks, hosts, environment)
        if stop_requested():
            raise Stopped("stopped before the start")
        with own_sessions(os.environ) as sessions:
            code = run_job([*start, *command], {**environment, **sessions}, proof, again)
    finally:
        if code != EXIT_DONE:
            remove_empty(made)  # after a refusal, or an end before the first epoch
    return code


def run_job(
    command: list[str], environment: Mapping[str, str], proof: Path | None = None, again: str = ""
) -> int:
    """Runs an mpirun and returns its exit code, or 128 + N if signal N ended it."""
    install_signal_handlers()
    ask_at, end = time.monotonic() + _START_SECONDS, math.inf
    job = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C does not reach it directly
        preexec_fn=death_follower(),  # noqa: PLW1509 - no threads here
    )
    try:
        while True:
            if stop_requested() and time.monotonic() > ask_at:
                job.send_signal(signal.SIGUSR1)
                ask_at = time.monotonic() + _REPEAT_SECONDS  # ranks that are starting miss it
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = job.wait(timeout=_POLL_SECONDS)
                if code == EXIT_DONE and proof is not None and not proof.exists():
                    raise Hanging(
                        "a host was lost: mpirun ended, and the first rank had not; to resume:\n"
                        + again
                    )
                if code in _KILLED:
                    cure = f" To resume:\n{again}" if again else ""
                    raise Hanging(f"a process was killed: memory?{cure}")
                return code if code >= 0 else 128 - code
            if proof is not None and proof.exists():
                end = min(end, time.monotonic() + _END_SECONDS)
            if proof is not None and time.monotonic() > end:
                _stop(job)
                return int(proof.read_text(encoding="ascii"))
    except KeyboardInterrupt:
        _stop(job)
        if proof is None:
            return EXIT_STOPPED
        raise ended_at_once(proof.parent, again) from None
    finally:
        if proof is not None:
            proof.unlink(missing_ok=True)


def _stop(job: "subprocess.Popen[bytes]") -> None:
    job.terminate()
    try:
        job.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()


def _split(arguments: list[str]) -> tuple[int, dict[str, int], list[str]]:
    """Returns number of ranks, hosts, and the verb with its arguments; no verb to show the help."""
    count = 0
    while arguments[count:] and arguments[count].startswith("-"):
        option, equals, _ = arguments[count].partition("=")
        if option in ("--learners", "--lag"):
            raise UsageError(
                f"{option}: expected after train, got before it\n"
                f"for example: music-tf launch -n 3 train ddpg_music {option} 1"
            )
        count += 1 if equals else 2
    words, command = arguments[:count], arguments[count:]
    if asks_for_help(words):
        return 1, {}, []
    options = read(LaunchOptions, "launch", [_SHORT.sub("--ranks", word) for word in words])
    if options.hosts and options.hostfile:
        raise UsageError("launch: expected --hosts or --hostfile, got both")
    hosts = hosts_of(options.hosts) if options.hosts else {}
    hosts = hosts_in(options.hostfile) if options.hostfile else hosts
    slots = sum(hosts.values())
    ranks = options.ranks or slots
    if not ranks:
        raise UsageError("launch: expected -n N\nfor example: music-tf launch -n 2 train ddpg_her")
    if hosts and ranks > slots:
        raise UsageError(
            f"--ranks: expected at most {slots}, the ranks that the hosts take, got {ranks}\n"
            f"for example: --hosts {next(iter(hosts))}:{ranks}"
        )
    verbs = [verb for verb in VERBS if verb != "launch"]
    verb = command[0] if command else ""
    if verb not in verbs:
        raise UsageError(
            f"launch: expected one of {', '.join(verbs)}, got {verb[:80]!r}"
            + suggestion(verb, verbs)
        )
    return ranks, hosts, command


def _check_train(
    command: list[str], ranks: int, options: str
) -> tuple[list[str], list[Path], Path | None, str]:
    """Refuses what ranks would; returns command, new folders, file of the end, how to resume."""
    train = parse_train(command[1:])
    check_topology(train.config.workers, ranks, train.learners, train.device, train.resume)
    if ranks == 1:
        return command, [], None, ""
    proof = f"launch_{os.getpid()}_{time.time_ns()}.end"
    if train.run_dir is None:
        _mpirun(ranks)
        missing = missing_folders(train)
        directory = new_directory(train)
        words, made = [*command, "--run-dir", str(directory)], [directory, *missing]
    else:
        directory, words, made = train.run_dir.absolute(), command, []
    return words, made, directory / proof, resume_line(train, directory, options)


def _mpirun(
    ranks: int,
    hosts: Mapping[str, int] = MappingProxyType({}),
    environment: Mapping[str, str] = os.environ,
) -> list[str]:
    """Returns the start of the command line that runs music_tf on several ranks."""
    mpirun = find_mpirun()
    if mpirun is None:
        raise EnvironmentFault(f"{ranks} ranks need mpirun, and it was not found\n{CURE}")
    if importlib.util.find_spec("mpi4py") is None:
        raise EnvironmentFault(f"{ranks} ranks need mpi4py, and it was not found\n{CURE}")
    answer = ask_version(mpirun, _VERSION_SECONDS)
    if answer.code is None:
        raise EnvironmentFault(f"{mpirun} cannot be used: {answer.reason}\n{CURE}")
    library, python = flavour(answer.output), [sys.executable, "-m", "music_tf"]
    package = [*_DEAF_UNTIL_READY, *python]
    if not hosts:
        return [*rank_words(mpirun, library, ranks), *package]
    if library != OPEN_MPI:
        raise EnvironmentFault(f"--hosts: needs the mpirun of Open MPI, got {library}\n{CURE}")
    check_hosts(mpirun, hosts, [sys.executable], environment)
    return [mpirun, "-n", str(ranks), *host_words(hosts, environment), *package]
