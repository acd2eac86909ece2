"""Checks that all ranks were started alike: command line, code, libraries and processors."""

import contextlib
import dataclasses
import hashlib
import json
import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.making import with_registered_world
from music_tf.envs.registry import check_split
from music_tf.errors import EXIT_DONE, EnvironmentFault, UsageError, fault_of
from music_tf.process.watchdog import longer_timeout
from music_tf.reading.command import TrainCommand
from music_tf.reading.stored import StoredRun, flatten, run_to_json
from music_tf.storage.provenance import versions
from music_tf.training.checks import try_environment

Result = TypeVar("Result")
PACKAGE = Path(__file__).resolve().parents[1]
CPUINFO = Path("/proc/cpuinfo")
_SHOWN = 5
_LONGEST = 20_000
_FLAGS = re.compile(r"^(?:flags|Features)\s*:(.*)$", re.MULTILINE)
_VECTORS = (
    *("sse", "ssse", "avx", "fma", "f16c", "amx"),
    *("asimd", "sve", "sme", "fphp", "bf16", "i8mm"),
)
"""Prefixes of the CPU flags of floating-point vector instructions, x86 and ARM."""
_LOGGER = logging.getLogger(__name__)


def agreed(
    command: TrainCommand, start: Mapping[str, Any] | None, comm: Communicator
) -> tuple[TrainCommand, dict[str, Any]]:
    """Checks that all ranks were started alike; every rank must call it together."""
    # Returns the command with registered facts of the environment, and the run's `config.json`.
    if not command.resume:
        command = dataclasses.replace(command, config=with_registered_world(command.config))
        check_split(command.config)
    run = StoredRun(command.recipe, command.preset, command.arguments, command.config, start)
    check_alike(run_to_json(run), command.resume, comm, command.learners)
    config = tried(command.config, comm)
    if not command.resume:
        command, run = dataclasses.replace(command, config=config), run._replace(config=config)
    return command, run_to_json(run)


@longer_timeout()
def tried(config: Config, comm: Communicator) -> Config:
    """Tries the environment on the root; returns `config` with bounds of rewards; collective."""

    def measured_bounds() -> tuple[float, float] | None:
        trial = try_environment(config)
        for text in trial.warnings:
            _LOGGER.warning("%s", text)
        return trial.reward_bounds

    bounds = comm.from_root(measured_bounds)
    if bounds is None:
        return config
    return dataclasses.replace(config, world=dataclasses.replace(config.world, reward=bounds))


def fail_together(action: Callable[[], Result], comm: Communicator) -> Result | None:
    """Runs `action` on every rank; if any rank fails, all ranks raise the first failure."""
    result, text, code = None, "", EXIT_DONE
    try:
        result = action()
    except (UsageError, EnvironmentFault) as fault:
        text, code = str(fault), fault.exit_code
    for fault_text, fault_code in comm.allgather((text, code)):
        if fault_code != EXIT_DONE:
            raise fault_of(fault_code)(fault_text)
    return result


def check_alike(
    record: Mapping[str, Any], resume: bool, comm: Communicator, learners: int = 0
) -> None:
    """Compares configuration and software of ranks; every rank must call it together."""
    # `record` is `config.json`; `learners` is how many of the ranks learn while the others act.
    settings = {"--resume": resume, "recipe": record.get("recipe"), "preset": record.get("preset")}
    settings |= {"--learners": learners} | flatten(record.get("config") or {})
    code = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        code.update(path.read_bytes())
    software = {**versions(), "code of music_tf": code.hexdigest()[:16]}
    answers = comm.allgather(({n: json.dumps(v) for n, v in settings.items()}, software))
    cures = (
        (UsageError, "start all ranks with the same command line"),
        (EnvironmentFault, "install the same on all machines of the job"),
    )
    for rank, answer in enumerate(answers):
        for (fault, cure), first, other in zip(cures, answers[0], answer, strict=True):
            differing = [
                f"{name}: rank 0 has {first.get(name)}, rank {rank} has {other.get(name)}"[:200]
                for name in {**first, **other}
                if first.get(name) != other.get(name)
            ]
            if differing:
                raise fault("\n".join([*differing[:_SHOWN], cure]))


def warn_of_processors(comm: Communicator) -> None:
    """Warns on the root if vector instructions of ranks differ, since they round differently."""
    text = ""
    with contextlib.suppress(OSError), CPUINFO.open(encoding="utf-8", errors="replace") as file:
        text = file.read(_LONGEST)
    first = _FLAGS.search(text)
    flags = [flag for flag in first[1].split() if flag.startswith(_VECTORS)] if first else []
    differences = describe_differences(comm.allgather(sorted(set(flags))))
    if differences and comm.is_root:
        _LOGGER.warning(
            "processors differ, so ranks may round differently and be found apart: %s", differences
        )


def describe_differences(flags: Sequence[Collection[str]]) -> str:
    """Describes the CPU flags that not all ranks have; ranks without any are left out."""
    groups: dict[frozenset[str], list[int]] = {}
    for rank, of_rank in enumerate(flags):
        if of_rank:
            groups.setdefault(frozenset(of_rank), []).append(rank)
    if len(groups) < 2:  # noqa: PLR2004
        return ""
    common = frozenset.intersection(*groups)
    return "; ".join(
        f"ranks {ranks} have {', '.join(sorted(group - common)) or 'none of these'}"
        for group, ranks in groups.items()
    )
