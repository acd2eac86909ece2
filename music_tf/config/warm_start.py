"""Warm start from another run: which of its parts a new run takes over."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from music_tf.config.agents import AgentConfig
from music_tf.config.names import suggestion
from music_tf.config.terms import TermConfig
from music_tf.errors import UsageError

AGENT_PARTS = ("actor", "critic", "targets")
"""Parts of the agent, which read normalised inputs."""


def parts_of(groups: Iterable[type[TermConfig] | type[AgentConfig]]) -> tuple[str, ...]:
    """Returns the parts that a run can take over: networks, targets, running statistics.

    `groups` are the settings of its reward terms and its agent.
    """
    learned = [network for group in groups for network in group.networks]
    return (*AGENT_PARTS, *learned, "normalizer")


class WarmStart(NamedTuple):
    """The warm start that a user asked for."""

    path: str
    """A run directory or a folder of weights, as typed."""
    parts: tuple[str, ...]
    epochs: int | None = None
    """Epochs of the published source, if not those of its recipe."""
    env_id: str = ""
    """Environment in which the recipe wants its source trained; empty: any."""
    best_of: int | None = None
    """Episodes of each of its skills, after which the best in the task is pinned."""
    same_skills: bool = False
    """Whether the run takes as many skills as the source has."""


def parse_parts(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Returns the parts of a list such as `actor,critic`, each once."""
    parts = tuple(dict.fromkeys(text.split(",")))
    for part in parts:
        if part not in known:
            raise UsageError(
                f"--parts: expected any of {','.join(known)}, got {part[:80]!r}"
                + suggestion(part, known)
            )
    return parts


def other_source(start: WarmStart, epochs: int | None, env_id: str | None) -> list[str]:
    """Returns a line for each way in which a source is not what the recipe expects.

    `epochs` and `env_id` are those of the source, None if it does not say.
    """
    lines = []
    if start.epochs not in (None, epochs):
        found = "an unknown number" if epochs is None else epochs
        wanted = f"published is a source of {start.epochs} epochs"
        lines.append(f"--init-from {start.path}: {wanted}, got {found}")
    if start.env_id and env_id not in (None, start.env_id):
        lines.append(
            f"--init-from {start.path}: expected a run on {start.env_id}, got one on {env_id}"
        )
    return lines
