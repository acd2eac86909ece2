"""How useful are skills when a joint breaks? `python -m experiments.broken_joints SKILLS PLAIN`.

SKILLS and PLAIN are quoted patterns of runs on one environment with a joint that can be broken.
Every skill of a run in SKILLS plays the same episodes with each joint broken in turn. The skill
with the highest return in the first half of the episodes is scored on the second half. The runs in
PLAIN, without skills, are scored on the same second half. Each cell is a mean over seeds with its
95 % interval (Student's t). The results are stored in `experiments/results/broken_joints.json`.

    runs=runs/studies/skills_smerl
    python -m experiments.broken_joints "$runs/smerl/*/seed*" "$runs/sac/*/seed*"
"""

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.intervals import difference, mean
from experiments.stored import RESULTS
from experiments.study_table import markdown
from music_tf.cli.exits import guarded, leave
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.files import replace_file
from music_tf.runs.loaded import load_run
from music_tf.tools.pool import code_version
from music_tf.types import Array


def returns_of(run: Path, joint: int | None, episodes: int) -> Array:
    """Returns the return of each skill of a run in each episode with a joint broken, [K, E]."""
    elsewhere = "" if joint is None else json.dumps({"broken_joint": joint})
    loaded = load_run(run, elsewhere=elsewhere)
    with contextlib.closing(loaded.envs):
        found = [
            loaded.evaluation.play(loaded.policy, episodes, skill).reward.sum(axis=1)
            for skill in loaded.config.acting_skills
        ]
    return np.array(found)


def best_return(returns: Array) -> float:
    """Returns the mean return in the second half of episodes of the best skill in the first."""
    half = returns.shape[1] // 2
    best = int(np.argmax(returns[:, :half].mean(axis=1)))
    return float(returns[best, half:].mean())


def runs_in(pattern: str) -> list[Path]:
    """Returns the runs that a pattern names, sorted.

    Raises:
        UsageError: There are none.
    """
    found = sorted(path for path in Path().glob(pattern) if (path / "config.json").exists())
    if not found:
        raise UsageError(f"{pattern[:200]}: names no run; a pattern is relative to this folder")
    return found


def measured(
    skilled: Sequence[Path], plain: Sequence[Path], joints: Iterable[int | None], episodes: int
) -> dict[str, dict[str, list[float]]]:
    """Returns the returns of the runs of both sides, by broken joint."""
    return {
        "none" if joint is None else str(joint): {
            side: [best_return(returns_of(run, joint, episodes)) for run in runs]
            for side, runs in (("skills", skilled), ("plain", plain))
        }
        for joint in joints
    }


def table(returns: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Returns a row for each joint: both sides, and their difference."""
    rows = [
        [joint, mean(sides["skills"]), mean(sides["plain"]), difference(*sides.values())]
        for joint, sides in returns.items()
    ]
    return markdown(["broken joint", "best skill", "without skills", "difference"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, and stores its numbers."""
    summary, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("skills", help="pattern of runs with skills")
    parser.add_argument("plain", help="pattern of runs without skills")
    parser.add_argument("--joints", type=int, nargs="+", default=range(6))
    parser.add_argument("--episodes", type=int, default=20, help="of each skill and joint, even")
    parser.add_argument("--out", type=Path, default=RESULTS / "broken_joints.json")
    given = parser.parse_args(arguments)
    if given.episodes < 2 or given.episodes % 2:  # noqa: PLR2004 - two halves
        raise UsageError(f"--episodes: expected an even number from 2 on, got {given.episodes}")
    skilled, plain = runs_in(given.skills), runs_in(given.plain)
    words = shlex.join(sys.argv[1:] if arguments is None else arguments)
    returns = measured(skilled, plain, [None, *given.joints], given.episodes)
    found = {
        "command": f"python -m experiments.broken_joints {words}",
        "code": code_version(),
        "returns": returns,
    }
    replace_file(given.out, (json.dumps(found, indent=1) + "\n").encode())
    sys.stdout.write(table(returns) + "\n")
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
