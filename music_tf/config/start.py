"""Starting from another run: which of its parts a new run takes over."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from music_tf.config.names import suggestion
from music_tf.config.settings import TERMS, Source, TermConfig
from music_tf.errors import UsageError


def parts_of(terms: Iterable[type[TermConfig]]) -> tuple[str, ...]:
    """Returns what a run can take over: networks by name, their copies, running statistics."""
    learned = [network for term in terms for network in term.networks]
    return ("actor", "critic", "targets", *learned, "normalizer")


PARTS = parts_of(TERMS)
"""Parts of runs that are paid our own rewards alone."""


class Start(NamedTuple):
    """What the user asked a run to start from."""

    path: str
    """A run directory or a folder of weights, as typed."""
    parts: tuple[str, ...]
    epochs: int | None = None
    """How many the published source has, where they are not those of its recipe."""
    env_id: str = ""
    """Where the recipe wants its source trained; empty where it says nothing."""


def asked_start(
    path: str | None,
    parts: str | None,
    source: Source | None,
    env_id: str,
    known: Sequence[str] = PARTS,
) -> Start | None:
    """Returns what a command line says about the start, None where it says nothing.

    Args:
        path: What follows --init-from.
        parts: What follows --parts.
        source: What the recipe needs, if anything.
        env_id: The environment of the run.
        known: Parts that there are.

    Raises:
        UsageError: Parts are unknown, or one of the options lacks the other.
    """
    if path is None:
        if parts is not None:
            raise UsageError("--parts: needs --init-from RUN, the run that they come from")
        return None
    if parts is not None:
        chosen = parse_parts(parts, known)
    elif source is not None:
        chosen = source.parts
    else:
        raise UsageError(
            f"--init-from: say which parts to take over, any of {','.join(known)}\n"
            "for example: --parts actor,normalizer"
        )
    if source is None:
        return Start(path, chosen)
    return Start(path, chosen, source.epochs, source.env_id or env_id)


def parse_parts(text: str, known: Sequence[str] = PARTS) -> tuple[str, ...]:
    """Returns the parts of a list such as `actor,critic`, each once.

    Raises:
        UsageError: One of them is unknown, or there is none.
    """
    parts = tuple(dict.fromkeys(text.split(",")))
    for part in parts:
        if part not in known:
            raise UsageError(
                f"--parts: expected any of {','.join(known)}, got {part[:80]!r}"
                + suggestion(part, known)
            )
    return parts


def missing_start(recipe: str, source: Source, env_id: str, options: str) -> UsageError:
    """Returns the fault of a recipe that was started without the run that it needs.

    Args:
        recipe: Its name.
        source: What it needs.
        env_id: The environment of the run.
        options: What else both commands need, each option with a space in front.
    """
    trained_on = source.env_id or env_id
    epochs = "" if source.epochs is None else f" --epochs {source.epochs}"
    return UsageError(
        f"{recipe} starts from a run of {source.recipe}: --init-from RUN is missing\n"
        f"first: music-tf train {source.recipe} --env-id {trained_on}{options}{epochs}\n"
        f"then:  music-tf train {recipe} --env-id {env_id}{options} --init-from latest\n"
        f"it takes over --parts {','.join(source.parts)}, unless you type others"
    )


def other_source(start: Start, epochs: int | None, env_id: str | None) -> list[str]:
    """Returns what to tell the user of a source that is not what the recipe expects.

    Args:
        start: What the user asked for.
        epochs: Of the source; None where it does not say.
        env_id: Where the source was trained; None where it does not say.

    Returns:
        A line each; none where there is nothing to tell.
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
