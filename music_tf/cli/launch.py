"""`music-tf launch -n N VERB ...`: runs a verb on N MPI ranks, of this machine or of several."""

import contextlib
import dataclasses
import functools
import importlib.util
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from music_tf.cli import VERBS, run_verb
from music_tf.cli.hosts import check_hosts, host_words, hosts_in, hosts_of, run_on
from music_tf.cli.job import Launch, run_job, with_cure
from music_tf.cli.restarts import run_with_restarts
from music_tf.config.fields import In
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_DONE, EnvironmentFault, Stopped, UsageError
from music_tf.process import launcher, mpirun
from music_tf.process.children import PIP_INSTALL
from music_tf.process.signals import stop_requested
from music_tf.reading.command import TrainCommand, parse_train, resume_line
from music_tf.reading.options import Options, asks_for_help, read
from music_tf.storage.run_directory import missing_folders, new_directory, remove_empty

CURE = f"install it in this environment: {PIP_INSTALL} 'music_tf[mpi]'"

_SHORT = re.compile("^-np?(?==|$)")
_VERSION_SECONDS = 60.0
_KILL_SECONDS = 10.0
_PASSES_ON_BARS = re.compile(r"\(Open MPI\) ([5-9]|\d\d)")
"""The version text of an mpirun that can pass on at once what has no end of a line."""
_DEAF_UNTIL_READY = ("sh", "-c", 'trap "" USR1; exec "$@"', "music-tf")
"""Starts a rank that ignores SIGUSR1 until it installs its handler."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LaunchOptions(Options):
    """Finds mpirun, sets it up, and runs the verb that follows on several ranks.

    Ctrl-C, SIGTERM and SIGUSR1 let the ranks save and stop (exit code 75, the run can be resumed);
    a second Ctrl-C ends them at once. More examples:

      music-tf launch -n 3 train ddpg_music --learners 1 --lag 1   # one rank learns, two act
      music-tf launch --hosts node1:8,node2:8 --restarts 3 train ddpg_music --workers 16
    """

    example: ClassVar[str] = "launch -n 2 train ddpg_her --env-id FetchPush-v4"

    ranks: Annotated[int | None, In(1, 4096)] = None
    """Number of ranks; -n is short for it. Unset: as many as the hosts take. 1: without MPI."""
    hosts: str = ""
    """Hosts and the ranks that each takes, as in a:8,b:8; start it on the first of them."""
    hostfile: Path | None = None
    """A file that lists them."""
    restarts: Annotated[int, In(0, 1000)] = 0
    """How often a job that lost a learner, a host or all its ranks is resumed on what is left;
    actors may be lost without."""


def main(arguments: list[str]) -> int:
    launch = _split(arguments)
    verb, train = launch.command[0], None
    if verb == "train" and not asks_for_help(launch.command):
        train = parse_train(launch.command[1:])
        launcher.check_topology(
            train.config.workers, launch.ranks, train.learners, train.device, train.resume
        )
    elif launch.restarts and verb != "train":
        raise UsageError(f"--restarts: expected train, which can be resumed, got {verb}")
    if launch.restarts and launch.ranks == 1:
        raise UsageError("--restarts: expected several ranks, got 1\nfor example: -n 2")
    if launch.ranks == 1 and not launch.hosts:
        return run_verb(launch.command)
    made: list[Path] = []
    if train is not None:
        made = missing_folders(train)
        if train.run_dir is None:
            _mpirun(launch._replace(hosts={}), os.environ)
            directory = new_directory(train)
            made.insert(0, directory)
            train = dataclasses.replace(train, run_dir=directory)
            launch = launch._replace(command=[*launch.command, "--run-dir", str(directory)])
        with contextlib.suppress(OSError):  # ranks report it
            os.makedirs(train.run_dir or Path(), exist_ok=True)
    code = None
    try:
        code = _run(launch, train) if train is None else run_with_restarts(launch, train, _run)
    finally:
        if code != EXIT_DONE:
            remove_empty(made)  # after a refusal, or an end before the first epoch
    return code


def _run(launch: Launch, train: TrainCommand | None) -> int:
    """Runs a job once; raises as `run_job`."""
    environment = {**os.environ, **mpirun.needed(os.environ)}
    environment[launcher.ASKED_VARIABLE] = str(launch.ranks)
    environment[launcher.LAUNCH_VARIABLE] = launch.options
    notes, again = None, ""
    if train is not None and train.run_dir is not None:
        directory = train.run_dir.absolute()
        notes = directory / f"{launcher.NOTES}{os.getpid()}_{time.time_ns()}.end"
        again = resume_line(train, directory, launch.options)
        environment[launcher.END_VARIABLE] = str(notes)
    start, version = _mpirun(launch, environment)
    library = mpirun.flavour(version)
    if sys.stdout.isatty() and _PASSES_ON_BARS.search(version):
        start[1:1] = ["--stream-buffering", "0"]  # else 2 kB at a time
        environment[launcher.TERMINAL_VARIABLE] = "1"
        environment["COLUMNS"] = str(shutil.get_terminal_size().columns)
    elastic = train is not None and train.learners > 0 and mpirun.survives_losses(library)
    ranks = [*(["--with-ft", "ulfm"] if elastic else []), *_DEAF_UNTIL_READY]
    command = [*start, *ranks, sys.executable, "-m", "music_tf", *launch.command]
    if stop_requested():
        raise Stopped(with_cure("stopped before the start", notes, again))
    with mpirun.own_sessions(os.environ) as sessions:
        kill = functools.partial(_kill, launch.hosts) if elastic else None
        return run_job(command, environment | sessions, notes, again, kill)


def _kill(hosts: Mapping[str, int], rank: str, process: str) -> None:
    """Kills the process of a rank, on another host by mpirun."""
    places = [host for host, slots in hosts.items() for _ in range(slots)]
    if places and places[int(rank)] != places[0]:
        run_on(places[int(rank)], ["kill", "-9", process], _KILL_SECONDS)
    else:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)


def _split(arguments: list[str]) -> Launch:
    """Reads the options before the verb; --help ends the process."""
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
    return Launch(shlex.join(words), ranks, hosts, options.restarts, command)


def _mpirun(launch: Launch, environment: Mapping[str, str]) -> tuple[list[str], str]:
    """Returns the start of the command line of a job, up to its program, and mpirun's version."""
    program = mpirun.find_mpirun()
    if program is None:
        raise EnvironmentFault(f"{launch.ranks} ranks need mpirun, and it was not found\n{CURE}")
    if importlib.util.find_spec("mpi4py") is None:
        raise EnvironmentFault(f"{launch.ranks} ranks need mpi4py, and it was not found\n{CURE}")
    answer = mpirun.ask_version(program, _VERSION_SECONDS)
    if answer.code is None:
        raise EnvironmentFault(f"{program} cannot be used: {answer.reason}\n{CURE}")
    library = mpirun.flavour(answer.output)
    if library != mpirun.OPEN_MPI and launch.restarts:
        raise UsageError(f"--restarts: needs the mpirun of Open MPI, got {library}\n{CURE}")
    if not launch.hosts:
        return mpirun.rank_words(program, library, launch.ranks), answer.output
    if library != mpirun.OPEN_MPI:
        raise EnvironmentFault(f"--hosts: needs the mpirun of Open MPI, got {library}\n{CURE}")
    check_hosts(program, launch.hosts, [sys.executable], environment)
    return [program, "-n", str(launch.ranks), *host_words(launch.hosts, environment)], answer.output
