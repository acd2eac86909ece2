"""Whether all ranks were started alike: the same command line, code and libraries."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from music_tf.config.stored import flatten
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.run_directory import versions

_PACKAGE = Path(__file__).resolve().parents[1]
_SHOWN = 5


def check_alike(record: Mapping[str, Any], resume: bool, comm: Communicator) -> None:
    """Compares what the ranks were started with; every rank must call it together.

    Args:
        record: What `config.json` shall say of the run.
        resume: Whether to continue the run that lies there.
        comm: The ranks.

    Raises:
        UsageError: Another command line on some rank; the text names settings and rank.
        EnvironmentFault: Another version of the code or of a library on some rank.
    """
    settings = {"--resume": resume, "recipe": record.get("recipe"), "preset": record.get("preset")}
    settings |= flatten(record.get("config") or {})
    found = comm.collect(({n: json.dumps(v) for n, v in settings.items()}, _software()))
    for rank, (its_settings, its_software) in enumerate(found):
        differing = list(_differences(found[0][0], its_settings, rank))
        if differing:
            raise UsageError(
                "\n".join(differing[:_SHOWN]) + "\nstart all ranks with the same command line"
            )
        differing = list(_differences(found[0][1], its_software, rank))
        if differing:
            raise EnvironmentFault(
                "\n".join(differing[:_SHOWN]) + "\ninstall the same on all machines of the job"
            )


def _differences(first: Mapping[str, Any], other: Mapping[str, Any], rank: int) -> Iterator[str]:
    for name in {**first, **other}:
        if first.get(name) != other.get(name):
            pair = f"rank 0 has {first.get(name)}, rank {rank} has {other.get(name)}"
            yield f"{name}: {pair}"[:200]


def _software() -> dict[str, str | None]:
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return {**versions(), "code of music_tf": digest.hexdigest()[:16]}
