"""What a page about runs could show too if the reader ran a command first."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from music_tf.tools.page import Html, join, tag
from music_tf.tools.recorded import Recorded


def missing(runs: Sequence[Recorded]) -> Html:
    """Returns one line with the parts that commands would add, nothing where there are none.

    It is about all the runs together. Nothing can be added to a run without a checkpoint.
    """
    runs = [run for run in runs if run.has_checkpoint]
    not_filmed = [run for run in runs if not run.films]
    not_evaluated = [run for run in runs if _not_evaluated(run)]
    not_judged = [run for run in runs if "control" not in run.evaluation]
    tables = dict.fromkeys(table for run in not_evaluated for table in _not_evaluated(run))
    evaluation, control = " and ".join(tables), "measures of control"
    if evaluation and [run.path for run in not_evaluated] == [run.path for run in not_judged]:
        not_evaluated, control = [], f"{evaluation} and, with --full, {control}"
    parts = [
        _part("films", "play", not_filmed),
        _part(evaluation, "evaluate", not_evaluated),
        _part(control, "evaluate --full", not_judged),
    ]
    said = Html("; ").join(part for part in parts if part)
    return tag("p", "Not here yet: ", Html(said), class_="quiet missing") if said else Html("")


def _not_evaluated(run: Recorded) -> list[str]:
    """Returns the tables that `evaluate` would add."""
    several = len(run.stored.config.acting_skills) > 1
    wanted = {
        "a comparison with simple policies": not run.measured().policies,
        "a table of skills": several and not run.skills(),
    }
    return [table for table, wants in wanted.items() if wants]


def _part(adds: str, verb: str, runs: Sequence[Recorded]) -> Html:
    """Returns what some runs lack and the command that adds it, nothing without such runs."""
    if not runs:
        return Html("")
    of = f" of {len(runs)} runs" if len(runs) > 1 else ""
    return join(f"{adds}{of} (", tag("code", _command(verb, runs)), ")")


def _command(verb: str, runs: Sequence[Recorded]) -> str:
    """Returns a command as the reader types it; for several runs RUN stands for each of them."""
    name, *options = verb.split()
    if len(runs) > 1:
        return " ".join(["music-tf", name, "RUN", *options])
    env_id = runs[0].stored.config.env_id
    module = ["--env-id", env_id] if ":" in env_id else []
    return shlex.join(["music-tf", name, _typed(runs[0].path), *options, *module])


def _typed(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
