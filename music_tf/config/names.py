"""Suggests the nearest valid name for a mistyped one, and knows those of environments.

Environments that come with us or gymnasium-robotics 1.4 are a list kept by hand, so that a mistyped
name is refused before anything heavy is loaded.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from itertools import product

from music_tf.errors import UsageError

FEW = 3
"""How many of several names a line usually shows."""
_SHORTLIST = 8
_CUTOFF = 0.5
_SHORTEST_START = 3

_REWARDS = ("", "Dense")
_TOUCH = ("", "_BooleanTouchSensors", "_ContinuousTouchSensors")
_MANIPULATED = (
    *("BlockRotateZ", "BlockRotateParallel", "BlockRotateXYZ", "Block"),
    *("EggRotate", "Egg", "PenRotate", "Pen"),
)
_MAZES = (
    "UMaze",
    *(
        f"{size}{variant}"
        for size, variant in product(("Open", "Medium", "Large"), ("", "_Diverse_G", "_Diverse_GR"))
    ),
)

TOYS = (
    "music_tf/PointPush-v0",
    "music_tf/PointPushTerminating-v0",
    "music_tf/PointReach-v0",
)
FETCH = tuple(
    f"Fetch{task}{reward}-v4"
    for task, reward in product(("Reach", "Push", "Slide", "PickAndPlace"), _REWARDS)
)
HAND = (
    *(f"HandReach{reward}-v3" for reward in _REWARDS),
    *(
        f"HandManipulate{thing}{touch}{reward}-v1"
        for thing, touch, reward in product(_MANIPULATED, _TOUCH, _REWARDS)
    ),
    *(
        f"HandManipulate{thing}Full{reward}-v1"
        for thing, reward in product(("Block", "Egg", "Pen"), _REWARDS)
    ),
)
POINT_MAZE = tuple(f"PointMaze_{maze}{reward}-v3" for maze, reward in product(_MAZES, _REWARDS))
ANT_MAZE = tuple(
    f"AntMaze_{maze}{reward}-v{version}"
    for maze, reward, version in product(_MAZES, _REWARDS, (3, 4, 5))
)
WITHOUT_GOALS = (
    *("Pendulum-v1", "MountainCarContinuous-v0", "LunarLanderContinuous-v3"),
    *("BipedalWalker-v3", "BipedalWalkerHardcore-v3"),
    *(
        f"{robot}-v{version}"
        for robot, version in product(
            (
                *("Hopper", "HalfCheetah", "Walker2d", "Ant", "Swimmer", "Humanoid", "Reacher"),
                *("HumanoidStandup", "InvertedPendulum", "InvertedDoublePendulum", "Pusher"),
            ),
            (5, 4),
        )
    ),
)
KNOWN = (*TOYS, *FETCH, *HAND, *POINT_MAZE, *ANT_MAZE, *WITHOUT_GOALS)

_OWN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:(?:[\w-]+/)?[\w.-]+")


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Returns the candidate that `name` most likely meant, or None if nothing is near.

    Candidates are shortlisted by similarity, then ordered by edits, letter case, and the
    version at their end, newest first.
    """
    names = list(dict.fromkeys(candidates))
    lowered = {candidate: candidate.lower() for candidate in names}
    wanted = name.lower()[:200]
    close = set(difflib.get_close_matches(wanted, lowered.values(), n=_SHORTLIST, cutoff=_CUTOFF))
    most = max(2, len(wanted) // 2 + 1)
    shortlist = [
        candidate
        for candidate in names
        if lowered[candidate] in close and edits(wanted, lowered[candidate]) <= most
    ]
    if not shortlist:
        return _completion(wanted, names)
    return min(
        shortlist,
        key=lambda candidate: (
            edits(wanted, lowered[candidate]),
            edits(name[:200], candidate),
            -_version(candidate),
        ),
    )


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Returns the line that proposes the nearest name, or an empty text."""
    found = nearest(name, candidates)
    return f"\ndid you mean {found}?" if found else ""


def few(names: Sequence[str], most: int = FEW) -> str:
    """Returns the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def names_a_module(env_id: str) -> bool:
    """Whether the id asks for a module to be imported first."""
    return ":" in env_id


def check_env_id(env_id: str) -> str:
    """Returns the id that a user typed, if it is one of ours or of the form `module:Id`.

    Raises:
        UsageError: Any other id, with the nearest known one.
    """
    if env_id in KNOWN or _OWN.fullmatch(env_id):
        return env_id
    short = {known.rpartition("/")[2]: known for known in KNOWN}  # without the namespace
    found = nearest(env_id, (*short, *KNOWN))
    hint = f"\ndid you mean {short.get(found, found)}?" if found else ""
    raise UsageError(
        f"--env-id: unknown environment {env_id[:80]!r}{hint}\n"
        "your own environment goes in as module:Id, for example --env-id my_package:MyTask-v0"
    )


def edits(first: str, second: str) -> int:
    """Counts insertions, deletions, replacements and swaps of neighbours between two texts."""
    before: list[int] = []
    above = list(range(len(second) + 1))
    for i, left in enumerate(first, start=1):
        row = [i]
        for j, right in enumerate(second, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == second[j - 2] and first[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, above = above, row
    return above[-1]


def _completion(start: str, names: list[str]) -> str | None:
    """Returns the shortest name that goes on from a long enough start."""
    longer = [name for name in names if name.lower().startswith(start)]
    return min(longer, key=len) if longer and len(start) >= _SHORTEST_START else None


def _version(name: str) -> int:
    found = re.search(r"-v(\d{1,4})$", name)
    return int(found.group(1)) if found else 0
