"""Names for people: the nearest valid one to a mistyped one, and long lists cut short."""

import difflib
import re
from collections.abc import Iterable, Sequence

FEW = 3
"""How many of several names a line usually shows."""
_SHORTLIST = 8
_CUTOFF = 0.5
_SHORTEST_START = 3


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
