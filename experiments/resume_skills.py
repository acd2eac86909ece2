"""What a stopped run of `sac_diayn` loses with its replay: `python experiments/resume_skills.py`.

Four skills in the toy box for ten thousand steps, then two thousand more: with the replay; without
it, the discriminator at rest until each skill has 500 fresh steps; without it and without that
rest, which shows how the loss collapses where few episodes are learned by heart. An epoch has 500
steps and as many updates. The table shows the discriminator's mean loss in an epoch, and after a
slash the loss on the evaluation episodes that follow. The replay holds episodes of older policies,
which are harder to tell apart, so a loss falls without it; learned by heart is what falls below the
loss on evaluation episodes. The runs lie in `runs/resume_skills`; four minutes a seed on one core.
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

import music_tf
from music_tf.cli.exits import guarded, leave
from music_tf.errors import EXIT_DONE

BEFORE, AFTER = 20, 4
"""Epochs."""
WAYS = {"with replay": (500, False), "guarded": (500, True), "unguarded": (0, True)}
"""Fresh steps of each skill before the discriminator learns on, and whether replay is left."""


def losses(folder: Path, seed: int, way: str) -> list[list[float]]:
    """Returns means of the last epochs before a stop, then of each epoch after it.

    Each has the loss on the replay and that on evaluation episodes, in nats.
    """
    rows, without_replay = WAYS[way]
    begun, run = folder / f"seed{seed}_{rows}", folder / f"seed{seed}_{way.replace(' ', '_')}"
    if not begun.exists():
        music_tf.train(
            "sac_diayn",
            run_dir=begun,
            env_id="music_tf/UnitBox-v0",
            skills=4,
            seed=seed,
            epochs=BEFORE,
            cycles=10,
            threads=1,
            skill={"resume_rows": rows},
        )
    shutil.copytree(begun, run, dirs_exist_ok=True)
    options: dict[str, Any] = {"without_replay": True} if without_replay else {}
    resumed = music_tf.load_run(run).resume(epochs=BEFORE + AFTER, **options)
    seen = resumed.metrics
    both = np.stack([seen["skill/loss"], -seen["skill/log_likelihood_heldout"]], axis=1)
    return [both[BEFORE - AFTER : BEFORE].mean(axis=0).tolist(), *both[BEFORE:].tolist()]


def main() -> int:
    """Prints a row for each seed and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[240, 241, 242])
    parser.add_argument("--folder", type=Path, default=Path("runs/resume_skills"))
    given = parser.parse_args()
    head = ["seed", "way", "before", *(f"epoch {number + 1}" for number in range(AFTER))]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for seed in given.seeds:
        for way in WAYS:
            found = losses(given.folder, seed, way)
            cells = [str(seed), way, *(f"{loss:.3f} / {heldout:.3f}" for loss, heldout in found)]
            lines.append("| " + " | ".join(cells) + " |")
    sys.stdout.write("\n".join([*lines, ""]))
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
