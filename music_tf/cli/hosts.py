"""Several hosts: reads the user's list, makes mpirun's options, and checks every host."""

import os
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from music_tf.errors import EnvironmentFault, UsageError
from music_tf.process.children import run_command
from music_tf.process.mpirun import find_mpirun, needed, own_sessions

_NAME, _SLOTS = "[A-Za-z0-9][A-Za-z0-9._-]{0,252}", "[1-9][0-9]{0,3}"
_WORD = re.compile(f"({_NAME})(?::({_SLOTS}))?")
_LINE = re.compile(rf"({_NAME})(?:\s+slots=({_SLOTS}))?(?:\s+max_slots={_SLOTS})?")
_MOST_LINES = 4096
_PROBE_SECONDS = 60.0
_FORWARDED = ("PYTHONPATH", "OMP_NUM_THREADS", "KERAS_BACKEND", "TF_", "MUSIC_TF_", "XLA_")
"""Prefixes of environment variables that ranks on other hosts need; ssh forwards none."""
KEEPALIVE = {"time": 5, "intvl": 2, "probes": 3}
"""TCP keepalive of mpirun in seconds: it notices a lost host after 11 s."""
_PROBE = (
    "import socket, music_tf; from music_tf.process.launcher import launched_rank; "
    "print('host', launched_rank(), socket.gethostname(), music_tf.__version__)"
)
_SAID = re.compile(r"^host (\d+) (\S+) (\S+)$", re.MULTILINE)
_LOST = re.compile(r"^ *Remote host: +(\S+)$", re.MULTILINE)
"""Line of Open MPI about a host on which it could start nothing."""


def hosts_of(text: str) -> dict[str, int]:
    """Returns the number of ranks of each host, from `a:8,b:8`."""
    example = "music-tf launch --hosts node1:8,node2:8 train ..."
    return _listed("--hosts", text.split(","), _WORD, example)


def hosts_in(path: Path) -> dict[str, int]:
    """Returns the same from a host file of Open MPI: a host per line, as in `node1 slots=8`."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            lines = [line.partition("#")[0] for line in file.readlines(2**20)[:_MOST_LINES]]
    except OSError as error:
        raise UsageError(f"--hostfile: {path} cannot be read: {error.strerror}") from error
    hosts = _listed("--hostfile", filter(str.strip, lines), _LINE, "node1 slots=8")
    if not hosts:
        raise UsageError(f"--hostfile: {path} lists no host\nfor example: node1 slots=8")
    return hosts


def _listed(
    option: str, texts: Iterable[str], pattern: re.Pattern[str], example: str
) -> dict[str, int]:
    hosts: dict[str, int] = {}
    for text in map(str.strip, texts):
        match = pattern.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{option}: expected a host and how many ranks it takes, got {text[:80]!r}\n"
                f"for example: {example}"
            )
        name, slots = match[1], int(match[2] or 1)
        if name in hosts:
            raise UsageError(
                f"{option}: {name} is listed twice, got {text[:80]!r}\n"
                f"list it once, with all its ranks, {hosts[name] + slots}"
            )
        hosts[name] = slots
    return hosts


def host_words(hosts: Mapping[str, int], environment: Mapping[str, str]) -> list[str]:
    """Returns Open MPI's options for hosts, and for the variables that their ranks get."""
    listed = ",".join(f"{name}:{slots}" for name, slots in hosts.items())
    words = ["--host", listed, "--map-by", "slot", "--bind-to", "none"]
    for name, value in KEEPALIVE.items():
        words += ["--prtemca", f"oob_tcp_keepalive_{name}", str(value)]
    for name in sorted(environment):
        if name.startswith(_FORWARDED):
            words += ["-x", name]
    return words


def run_on(host: str, command: Sequence[str], seconds: float) -> bool:
    """Runs a command on another host by mpirun; returns whether it succeeded."""
    environment = {**os.environ, **needed(os.environ)}
    with own_sessions(environment) as sessions:
        environment |= sessions
        words = [str(find_mpirun()), "-n", "1", *host_words({host: 1}, environment), *command]
        return run_command(words, seconds=seconds, environment=environment).ok


def check_hosts(
    mpirun: str, hosts: Mapping[str, int], python: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Starts a process on each host, which reports its name and version, before training."""
    words = host_words(dict.fromkeys(hosts, 1), environment)
    command = [mpirun, *words, "-n", str(len(hosts)), *python, "-c", _PROBE]
    probe = run_command(command, seconds=_PROBE_SECONDS, environment=environment)
    answers = {int(rank): (name, version) for rank, name, version in _SAID.findall(probe.output)}
    if not probe.ok or len(answers) != len(hosts):
        answer = f"{probe.output}\n{probe.errors}"
        named = [name for name in _LOST.findall(answer) if name in hosts]
        silent = [name for rank, name in enumerate(hosts) if rank not in answers]
        first = (named or silent or list(hosts))[0]
        raise EnvironmentFault(
            f"--hosts: no rank could be started on each of {', '.join(hosts)}: {probe.reason}\n"
            "each must be reached without a password and have the same Python: "
            f"ssh {first} {python[0]} -c 'import music_tf'"
        )
    _refuse_unlike(hosts, [answers[rank] for rank in range(len(hosts))])


def _refuse_unlike(hosts: Mapping[str, int], answers: Sequence[tuple[str, str]]) -> None:
    names = [name for name, _ in answers]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        alike = [host for host, name in zip(hosts, names, strict=True) if name == double]
        raise EnvironmentFault(
            f"--hosts: {', '.join(alike)} have the same host name, {double}, by which ranks decide "
            "whether they share memory\n"
            f"list the host once, as {alike[0]}:{sum(hosts[host] for host in alike)}, or give each "
            "host its own name: hostnamectl hostname NAME"
        )
    here = socket.gethostname()
    if names[0] != here:
        first = next(iter(hosts))
        raise EnvironmentFault(
            f"--hosts: expected to be started on the first host, {first}, which writes the run; "
            f"its name is {names[0]}, and that of this host {here}\n"
            f"start it on {first}, or list this host first"
        )
    if len({version for _, version in answers}) > 1:
        versions = ", ".join(f"{host} has {answers[at][1]}" for at, host in enumerate(hosts))
        raise EnvironmentFault(
            f"--hosts: expected one version of music_tf, got: {versions}\n"
            "install the same version on all hosts"
        )
