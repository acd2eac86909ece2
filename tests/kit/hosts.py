"""Hosts made of network namespaces on this machine, as root: what `hosts.sh` does, for tests."""

import os
import subprocess
from pathlib import Path
from typing import Self

SCRIPT = Path(__file__).with_suffix(".sh")


class Hosts:
    """Two hosts while the `with` block lasts; `OSError` where none can be made."""

    RANKS = 3
    """A learner and an actor on the first, an actor on the second."""

    def __init__(self) -> None:
        self._tag = {"HOSTS_TAG": f"t{os.getpid() % 100000}x"}
        self.listed: tuple[str, ...] = ("--hosts", "node1:2,node2:1")
        self.variables = {
            **self._tag,
            "PRTE_MCA_plm_ssh_agent": f"{SCRIPT} agent",
            "PRTE_MCA_prte_tmpdir_base": "/var/tmp",
            "OMPI_MCA_btl_tcp_if_include": "10.77.0.0/24",
        }

    def __enter__(self) -> Self:
        made = self._script("up", 2)
        if made.returncode:
            self._script("down")
            raise OSError(f"no hosts can be made of namespaces: {made.stderr.strip()[:100]}")
        return self

    def __exit__(self, *_: object) -> None:
        self._script("down")

    def launch(self, *program: str) -> list[str]:
        """Returns a program with `launch` behind it, as the first host runs it for all ranks."""
        return [str(SCRIPT), "on", "1", *program, "launch", *self.listed]

    def cut(self, host: int) -> None:
        self._script("cut", host)

    def mend(self, host: int) -> None:
        self._script("mend", host)

    def pids(self, *hosts: int) -> list[int]:
        said = [self._script("pids", host).stdout.split() for host in hosts or (1, 2)]
        return [int(pid) for own in said for pid in own]

    def _script(self, *words: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [SCRIPT, *map(str, words)],
            env={**os.environ, **self._tag},
            capture_output=True,
            text=True,
            check=False,
        )
