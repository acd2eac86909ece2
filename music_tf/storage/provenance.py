"""What a run was made with: versions, ranks, machine, commit."""

import datetime
import importlib.metadata
import platform
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from music_tf.distributed import Communicator
from music_tf.process import available_cores

_PACKAGES = (
    "music_tf",
    "tensorflow",
    "keras",
    "numpy",
    "mujoco",
    "gymnasium",
    "gymnasium-robotics",
    "mpi4py",
)
_COMMIT = re.compile(r"[0-9a-f]{40}")


def provenance(comm: Communicator, record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of `config.json` that nobody types, as JSON values."""
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
    """Returns the versions of Python and of what decides about a run's numbers."""
    return {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}


def commit(checkout: Path) -> str | None:
    """Returns the git commit that is checked out in a directory, None outside a checkout."""
    git = checkout / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head if _COMMIT.fullmatch(head) else None
        name = head.removeprefix("ref: ")
        if (git / name).is_file():
            return (git / name).read_text().strip()
        packed = (git / "packed-refs").read_text().splitlines()
    except OSError:
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)


def processor() -> str:
    """Returns the name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
