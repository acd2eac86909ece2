"""Small readers that the verbs share for their command lines."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from music_tf.config.environments import check_env_id
from music_tf.config.names import few
from music_tf.config.stored import stored_env_id
from music_tf.config.tokens import Words, show_option
from music_tf.errors import UsageError


def asks_for_help(arguments: list[str]) -> bool:
    """Whether the user wants to read about a verb instead of running it."""
    return "--help" in arguments or "-h" in arguments


def one_word(words: Words, name: str, example: str) -> str:
    """Returns the only positional word of a command line.

    Raises:
        UsageError: There is none, or there are several.
    """
    if len(words.positional) != 1:
        came = " ".join(words.positional)[:80]
        raise UsageError(f"{name}: expected one, got {came!r}\nfor example: music-tf {example}")
    return words.positional[0]


def several_runs(
    words: Words, verb: str, find: Callable[[str], Path]
) -> tuple[list[Path], list[str]]:
    """Returns the runs of a command line, and the files and folders on it that are none.

    Args:
        words: The command line.
        verb: For the example of a right one.
        find: Returns where a run lies.

    Raises:
        UsageError: No run is there, or there is nothing at all where a word points.
    """
    if not words.positional:
        raise UsageError(
            f"RUN: expected one or more runs, got none\nfor example: music-tf {verb} latest"
        )
    runs: list[Path] = []
    others: dict[str, UsageError] = {}
    for text in words.positional:
        try:
            runs.append(find(text))
        except UsageError as fault:
            if not os.path.exists(text):
                raise
            others[text] = fault
    if not runs:
        raise next(iter(others.values()))
    return runs, list(others)


def say_left_out(reason: str, runs: list[str]) -> None:
    """Names on standard error what a verb leaves out, where there is anything."""
    if runs:
        sys.stderr.write(f"music-tf: left out, {reason}: {few(runs)}\n")


def whole_number(words: Words, name: str, default: int, highest: int = 10**6) -> int:
    """Returns an option's number, in 1..highest.

    Raises:
        UsageError: It is something else.
    """
    (text,) = words.options.get(name, (str(default),))
    is_short = len(text) <= len(str(highest))
    number = int(text) if is_short and text.isascii() and text.isdigit() else 0
    if not 1 <= number <= highest:
        raise UsageError(
            f"{show_option(name)}: expected a whole number in 1..{highest}, got {text[:80]!r}"
        )
    return number


def typed_env_id(words: Words, run: Path) -> str | None:
    """Returns the environment that the user typed, or with --allow-import the one of the run.

    Raises:
        UsageError: It is unknown.
    """
    if "allow_import" in words.options:
        return stored_env_id(run)
    return check_env_id(words.options["env_id"][0]) if "env_id" in words.options else None
