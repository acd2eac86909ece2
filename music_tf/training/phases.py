"""The phases of an update: which networks step together, and where they lie in the flat vector."""

from collections.abc import Sequence
from typing import NamedTuple

from music_tf.agents.base import Learner, Phase
from music_tf.intrinsic.base import RewardTerm
from music_tf.networks.parameters import Layout


class LaidPhase(NamedTuple):
    """A phase of the learner or of terms, with the part of the flat vector that it moves."""

    own: slice
    layout: Layout
    """Of the networks in that part."""
    learner: Phase | None
    terms: tuple[RewardTerm, ...]
    every: int
    times: int
    early: bool = False
    """Whether it learns also while nothing else does."""


class _Part(NamedTuple):
    """Networks of a term that step together."""

    term: RewardTerm
    names: tuple[str, ...]
    early: bool

    @property
    def alone(self) -> bool:
        """Whether they have a phase of their own, by what their term says."""
        rhythm = (self.term.every, self.term.times)
        return self.early or self.term.leads or rhythm != (1, 1)


def _parts(term: RewardTerm) -> list[_Part]:
    """Returns what a term learns, apart from what learns also while nothing else does."""
    names = [network.name for network in term.networks]
    chosen = {
        early: tuple(n for n in names if (n in term.early) is early) for early in (False, True)
    }
    return [_Part(term, its, early) for early, its in chosen.items() if its]


def phases_of(learner: Learner, terms: Sequence[RewardTerm], layout: Layout) -> list[LaidPhase]:
    """Lays the phases over the flat vector.

    Terms without a rhythm of their own join a learner that has one phase, and come after it
    otherwise; those that lead come before it.
    """

    def phase(learned: Phase | None, its_parts: Sequence[_Part]) -> LaidPhase:
        names = [name for part in its_parts for name in part.names]
        rhythm = learned or its_parts[0].term
        moved = [*(learned.networks if learned else ()), *names]
        inside = Layout(network for network in layout.networks if network.name in moved)
        own = layout.span(moved)
        its_terms = tuple(part.term for part in its_parts)
        early = any(part.early for part in its_parts)
        return LaidPhase(own, inside, learned, its_terms, rhythm.every, rhythm.times, early)

    parts = [part for term in terms for part in _parts(term)]
    leading = [part for part in parts if part.term.leads and not part.early]
    others = [part for part in parts if part not in leading]
    shared = [part for part in others if not part.alone and len(learner.phases) == 1]
    phases = [phase(learned, shared) for learned in learner.phases]
    if phases[0].every != 1:
        raise ValueError("the first phase of a learner is due at every update")
    before, after = (
        [phase(None, [part]) for part in some]
        for some in (leading, [part for part in others if part not in shared])
    )
    return [*before, *phases, *after]
