"""Records what a run was made with: versions, commit, machine."""

import datetime
import importlib.metadata
import platform
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_tf.process.machine import available_cores

if TYPE_CHECKING:
    from music_tf.distributed import Communicator

_PACKAGES = ("tensorflow", "keras", "numpy", "mujoco", "gymnasium", "gymnasium-robotics", "mpi4py")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def provenance(comm: "Communicator", record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "versions": versions(),
        "mpi": comm.library,
        "ranks": comm.size,
        "workers": (record.get("config") or {}).get("workers"),
        "commit": commit(Path(__file__).resolve().parents[2]),
        "host": socket.gethostname(),
        "processor": processor(),
        "cores": available_cores(),
        "time": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def versions() -> dict[str, str | None]:
    """Returns the versions of Python and of the packages that affect a run's numbers."""
    versions_by_name: dict[str, str | None] = {
        "python": platform.python_version(),
        "music_tf": sys.modules["music_tf"].__version__,  # metadata may be of an earlier install
    }
    for package in _PACKAGES:
        try:
            versions_by_name[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions_by_name[package] = None
    return versions_by_name


def commit(checkout: Path) -> str | None:
    git = shared = checkout / ".git"
    try:
        if git.is_file():  # a worktree, whose branches are in the main checkout
            git = checkout / git.read_text().strip().removeprefix("gitdir: ")
            shared = git / (git / "commondir").read_text().strip()
        head = (git / "HEAD").read_text().strip()
        if head.startswith("ref: "):
            name = head.removeprefix("ref: ")
            if (shared / name).is_file():
                head = (shared / name).read_text().strip()
            else:
                packed = (shared / "packed-refs").read_text().splitlines()
                head = next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except (OSError, ValueError):
        return None
    return head if _COMMIT.fullmatch(head) else None


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
