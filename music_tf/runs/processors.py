"""Whether all ranks compute with the same vector instructions: others round differently."""

import logging
from collections.abc import Collection, Sequence

from music_tf.distributed import Communicator

_LOGGER = logging.getLogger(__name__)
_CPUINFO = "/proc/cpuinfo"
_LONGEST = 20_000
_VECTORS = (
    *("sse", "ssse", "avx", "fma", "f16c", "amx"),
    *("asimd", "sve", "sme", "fphp", "bf16", "i8mm"),
)
"""How the flags of instructions that compute with floating-point numbers begin, x86 and ARM."""


def warn_of_differences(comm: Communicator) -> None:
    """Warns on the root where ranks differ in what their processors can do; call it on all."""
    try:
        with open(_CPUINFO, encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST)
    except OSError:
        text = ""
    found = describe_differences(comm.collect(sorted(vector_flags(text))))
    if found and comm.is_root:
        _LOGGER.warning(
            "processors differ, so ranks may round differently and be found apart: %s", found
        )


def vector_flags(cpuinfo: str) -> frozenset[str]:
    """Returns the vector instructions of the first processor in the text of /proc/cpuinfo."""
    for line in cpuinfo.splitlines():
        name, _, flags = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(flag for flag in flags.split() if flag.startswith(_VECTORS))
    return frozenset()


def describe_differences(flags: Sequence[Collection[str]]) -> str:
    """Says how ranks differ from the first, empty where they do not.

    Args:
        flags: Of each rank; a rank that knows none is left out.
    """
    known = {rank: frozenset(own) for rank, own in enumerate(flags) if own}
    groups: dict[frozenset[str], list[int]] = {}
    for rank, own in known.items():
        groups.setdefault(own, []).append(rank)
    first, *others = groups.items() if groups else [(frozenset[str](), [0])]
    return "; ".join(
        f"ranks {ranks}"
        + _listed(" lack ", first[0] - own)
        + _listed(" have ", own - first[0])
        + f" unlike ranks {first[1]}"
        for own, ranks in others
    )


def _listed(verb: str, flags: Collection[str]) -> str:
    return f"{verb}{', '.join(sorted(flags))}" if flags else ""
