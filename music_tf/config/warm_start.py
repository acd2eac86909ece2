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
    """Returns the parts that runs with these rewards and agent can take over."""
    learned = [network for group in groups for network in group.networks]
    return (*AGENT_PARTS, *learned, "normalizer")


class Source(NamedTuple):
    """The earlier run from which a recipe starts."""

    recipe: str
    parts: tuple[str, ...]  # loaded from it unless the user says otherwise
    env_id: str = ""  # in which it is trained; empty: that of the run itself
    epochs: int | None = None  # of the published source, if not those of its recipe
    preset: str = ""  # empty: that of the run itself
    best_of: int | None = None  # episodes of each of its skills; the best in the task is pinned
    same_skills: bool = False  # takes as many skills as it has, unless the user types a number
    agent: str = ""  # of the package, taken unless the user names another source, or `none`


class WarmStart(NamedTuple):
    """The warm start that a user asked for."""

    path: str  # a run directory or a folder of weights, as typed
    parts: tuple[str, ...]
    epochs: int | None = None  # as of `Source`
    env_id: str = ""  # in which the recipe wants its source trained; empty: any
    best_of: int | None = None
    same_skills: bool = False
    by_default: bool = False  # whether the recipe chose the source, an agent of the package


def parse_parts(text: str, existing: Sequence[str]) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(text.split(",")))
    for part in parts:
        if part not in existing:
            raise UsageError(
                f"--parts: expected any of {','.join(existing)}, got {part[:80]!r}"
                + suggestion(part, existing)
            )
    return parts


def other_source(start: WarmStart, epochs: int | None, env_id: str | None) -> list[str]:
    """Returns a line for each way in which a source is not what the recipe expects."""
    lines = []
    if start.epochs not in (None, epochs):
        trained = "an unknown number" if epochs is None else epochs
        wanted = f"published is a source of {start.epochs} epochs"
        lines.append(f"--init-from {start.path}: {wanted}, got {trained}")
    if start.env_id and env_id not in (None, start.env_id):
        lines.append(
            f"--init-from {start.path}: expected a run on {start.env_id}, got one on {env_id}"
        )
    return lines
