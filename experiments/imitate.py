"""Imitation from states alone: `python experiments/imitate.py EXPERT RUN`.

Every skill of EXPERT plays some episodes, of which RUN sees nothing but the states. It takes the
skill that most likely passed through them (`nearest_skill`) and plays the same episode. Printed is
the share of episodes that end within a quarter of a unit of the expert's end. Below stand that
share for the skill whose end is nearest, which is the most there can be, and for a random one.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from music_tf.cli.exits import guarded, leave
from music_tf.errors import EXIT_DONE
from music_tf.runs.loaded import LoadedRun, load_run
from music_tf.storage.run_directory import find_run
from music_tf.types import Array, IntArray

NEAR = 0.25


def episodes_of(loaded: LoadedRun, episodes: int) -> list[Array]:
    """Returns the observations of each skill on the same episodes, [E, T + 1, O] each."""
    return [
        loaded.evaluation.play(loaded.policy, episodes, skill).observation
        for skill in loaded.config.acting_skills
    ]


def shares(shown: Array, own: Array, chosen: IntArray) -> tuple[float, float, float]:
    """Returns how many episodes end near: by the chosen skill, the nearest, and a random one.

    Args:
        shown: Ends of each skill of the expert in each episode, [K, E, O].
        own: Ends of each skill that may imitate it, in the same episodes, [L, E, O].
        chosen: The skill that imitates each of the expert's episodes, [K, E].
    """
    apart = np.linalg.norm(shown[:, None] - own[None], axis=-1)  # [K, L, E]
    near = apart <= NEAR
    by_chosen = np.take_along_axis(near, chosen[:, None], axis=1)
    return float(by_chosen.mean()), float(near.any(axis=1).mean()), float(near.mean())


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the share of episodes whose end is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("expert")
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=10, help="of each skill of the expert")
    given = parser.parse_args(arguments)
    expert, run = (load_run(find_run(text)) for text in (given.expert, given.run))
    shown, own = (np.stack(episodes_of(one, given.episodes)) for one in (expert, run))
    chosen = np.array(
        [[run.saved.nearest_skill(states[1:]) for states in episodes] for episodes in shown]
    )
    by_chosen, by_nearest, by_random = shares(shown[:, :, -1], own[:, :, -1], chosen)
    sys.stdout.write(
        f"ends within {NEAR} of the expert's: {by_chosen:.3f}\n"
        f"by the skill that ends nearest: {by_nearest:.3f}\n"
        f"by a random skill: {by_random:.3f}\n"
    )
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
