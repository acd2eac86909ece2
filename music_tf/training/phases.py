"""The phases of an update: networks that step together, and their part of the flat vector."""

from collections.abc import Sequence
from typing import NamedTuple

from music_tf.agents.base import Learner, Phase
from music_tf.intrinsic.base import RewardTerm
from music_tf.networks.parameters import Layout, Network, Scalar


class LaidPhase(NamedTuple):
    """A phase of the learner or of terms, and the part of the flat vector that it updates."""

    own: slice
    layout: Layout
    learner: Phase | None
    terms: tuple[RewardTerm, ...]
    every: int
    times: int
    early: bool = False
    """Whether the phase also learns before the learner's first update."""


class _Part(NamedTuple):
    """Networks of a term that step together."""

    term: RewardTerm
    names: tuple[str, ...]
    early: bool

    @property
    def alone(self) -> bool:
        """Whether these networks need a phase of their own."""
        rhythm = (self.term.every, self.term.times)
        return self.early or self.term.steps_first or rhythm != (1, 1)


def _parts(term: RewardTerm) -> list[_Part]:
    """Splits the networks of a term into those that learn early and all others."""
    names = [network.name for network in term.networks]
    chosen = {
        early: tuple(n for n in names if (n in term.early) is early) for early in (False, True)
    }
    return [_Part(term, part, early) for early, part in chosen.items() if part]


def networks_of(learner: Learner, terms: Sequence[RewardTerm]) -> list[Network | Scalar]:
    """Returns the networks of terms; those that step together with the learner come first."""
    together = len(learner.phases) == 1
    parts = [part for term in terms for part in _parts(term)]
    shared = {name for part in parts if together and not part.alone for name in part.names}
    networks = [network for term in terms for network in term.networks]
    return sorted(networks, key=lambda network: network.name not in shared)


def phases_of(learner: Learner, terms: Sequence[RewardTerm], layout: Layout) -> list[LaidPhase]:
    """Returns the phases: early terms, the learner with terms of its rhythm, then all others."""

    def phase(learned: Phase | None, parts: Sequence[_Part]) -> LaidPhase:
        rhythm = learned or parts[0].term
        names = [*(learned.networks if learned else ()), *(n for part in parts for n in part.names)]
        inside = Layout(network for network in layout.networks if network.name in names)
        span, early = layout.span(names), any(part.early for part in parts)
        moved = tuple(part.term for part in parts)
        return LaidPhase(span, inside, learned, moved, rhythm.every, rhythm.times, early)

    parts = [part for term in terms for part in _parts(term)]
    leading = [part for part in parts if part.term.steps_first and not part.early]
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
