"""Breaks the code in thirty places, one at a time, and sees whether a test notices.

    python tests/mutants/mutants.py [--only NAME ...] [--first] [--list]

Works on a copy of the working tree, whose tests must be green. Each mutant meets the tests that
should notice it first, and all others if they stay green. Exit code 1: more than one survives.
"""

import argparse
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "mutants.csv"
_MOST_SURVIVORS = 1
_RED = re.compile(r"^(?:FAILED|ERROR) (\S+?::[^\s\[]+)", re.MULTILINE)


class Mutant(NamedTuple):
    """A fault: what stands in a file, what takes its place, and which tests should notice first."""

    name: str
    file: str
    old: str
    new: str
    first: str

    def broken(self, text):
        """Returns the text of the file with the fault in it."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: found {count} times in {self.file}:\n{self.old}")
        return text.replace(self.old, self.new)


MUTANTS = [
    Mutant(
        "target-sign",
        "music_tf/losses/temporal_difference.py",
        "target = reward + discount",
        "target = reward - discount",
        "tests/losses/test_temporal_difference.py",
    ),
    Mutant(
        "target-clip",
        "music_tf/losses/temporal_difference.py",
        "tf.stop_gradient(tf.clip_by_value(target, bounds[0], bounds[1]))",
        "tf.stop_gradient(target)",
        "tests/losses/test_temporal_difference.py",
    ),
    Mutant(
        "critic-broadcast",
        "music_tf/losses/temporal_difference.py",
        "tf.square(target - q), axis=-1",
        "tf.square(target[..., None] - q[..., None, :]), axis=[-2, -1]",
        "tests/losses/test_temporal_difference.py",
    ),
    Mutant(
        "entropy-stop-gradient",
        "music_tf/losses/policy.py",
        "tf.stop_gradient(tf.clip_by_value(-scale * log_density, clip[0], clip[1]))",
        "tf.clip_by_value(-scale * log_density, clip[0], clip[1])",
        "tests/losses/test_policy_losses.py",
    ),
    Mutant(
        "bound-mask",
        "music_tf/losses/mutual_information.py",
        "tf.reduce_sum(valid * tf.exp(marginal_scores), axis=-1)",
        "tf.reduce_sum(tf.exp(marginal_scores), axis=-1)",
        "tests/losses/test_mutual_information.py",
    ),
    Mutant(
        "coin-of-the-first-worker",
        "music_tf/losses/mutual_information.py",
        "tf.where(swapped[:, None], crossed",
        "tf.where(swapped[:1, None], crossed",
        "tests/losses/test_mutual_information.py",
    ),
    Mutant(
        "frozen-critic",
        "music_tf/agents/critics.py",
        "stopped(own) if frozen else own",
        "own",
        "tests/agents/test_ddpg.py",
    ),
    Mutant(
        "soft-target-sign",
        "music_tf/agents/sac.py",
        "next_q -= temperature",
        "next_q += temperature",
        "tests/agents/test_sac.py",
    ),
    Mutant(
        "skill-prior-sign",
        "music_tf/intrinsic/skill.py",
        "tf.stop_gradient(likelihood + self._baseline)",
        "tf.stop_gradient(likelihood - self._baseline)",
        "tests/intrinsic/test_skill.py",
    ),
    Mutant(
        "music-stop-gradient",
        "music_tf/intrinsic/music.py",
        "return tf.stop_gradient(bound)",
        "return bound",
        "tests/intrinsic/test_music.py",
    ),
    Mutant(
        "priority-mask",
        "music_tf/intrinsic/music.py",
        "np.where(taken, shown, 0.0).sum(axis=0)",
        "shown.sum(axis=0)",
        "tests/intrinsic/test_music.py",
    ),
    Mutant(
        "permutation-of-the-last-state",
        "music_tf/intrinsic/music.py",
        "beyond = order > lengths",
        "beyond = order >= lengths",
        "tests/intrinsic/test_music.py",
    ),
    Mutant(
        "shift-without-weight",
        "music_tf/intrinsic/base.py",
        "return weight * (scaled + self.shift)",
        "return weight * scaled + self.shift",
        "tests/intrinsic/test_mixing.py",
    ),
    Mutant(
        "either-moves",
        "music_tf/intrinsic/joint_motion.py",
        "agent & surrounding, tf.float32",
        "agent | surrounding, tf.float32",
        "tests/intrinsic/test_joint_motion.py",
    ),
    Mutant(
        "gate",
        "music_tf/training/update.py",
        "weight * gate",
        "weight",
        "tests/training/test_update.py",
    ),
    Mutant(
        "polyak",
        "music_tf/training/update.py",
        "(1.0 - self._config.polyak) * (",
        "self._config.polyak * (",
        "tests/training/test_update.py",
    ),
    Mutant(
        "adam-step-of-a-phase",
        "music_tf/training/update.py",
        "tf.cast(self._phase_steps[number].assign_add(1), tf.float32)",
        "tf.cast(self._phase_steps[number].assign_add(1) * 0 + self.step, tf.float32)",
        "tests/training/test_update.py",
    ),
    Mutant(
        "mean-over-workers",
        "music_tf/training/update.py",
        'self._config.gradient_reduce == "mean"',
        'self._config.gradient_reduce != "mean"',
        "tests/training/test_update.py",
    ),
    Mutant(
        "gradient-of-one-rank",
        "music_tf/training/update.py",
        "self._comm.sum_into(own, total)",
        "total[:] = own",
        "tests/training/test_update.py",
    ),
    Mutant(
        "episode-cut",
        "music_tf/training/collect.py",
        "np.where(lost, first, episodes.length)",
        "np.where(lost, first + 1, episodes.length)",
        "tests/training/test_trainer.py",
    ),
    Mutant(
        "relabelled-with-the-present",
        "music_tf/replay/hindsight.py",
        "time + 1 + offset",
        "time + offset",
        "tests/replay/test_hindsight.py",
    ),
    Mutant(
        "terminated-at-every-step",
        "music_tf/replay/buffer.py",
        '(episode["terminated"] & last) | lost',
        'episode["terminated"] | lost',
        "tests/replay/test_buffer.py",
    ),
    Mutant(
        "padding-is-drawn",
        "music_tf/replay/buffer.py",
        "generator.random(shape) * length",
        "generator.random(shape) * self._steps.shape[1]",
        "tests/replay/test_buffer.py",
    ),
    Mutant(
        "prior-count",
        "music_tf/normalizer.py",
        "self._totals[-1] = 1.0",
        "self._totals[-1] = 0.0",
        "tests/test_normalizer.py",
    ),
    Mutant(
        "share-of-a-rank",
        "music_tf/distributed.py",
        "range(self.rank * share, (self.rank + 1) * share)",
        "range(self.rank, workers, self.size)",
        "tests/test_distributed.py",
    ),
    Mutant(
        "purpose-of-a-seed",
        "music_tf/randomness.py",
        'int.from_bytes(digest, "little")',
        "len(digest)",
        "tests/test_randomness.py",
    ),
    Mutant(
        "sync-of-a-checkpoint",
        "music_tf/storage/gate.py",
        "        os.fsync(file.fileno())\n",
        "",
        "tests/storage/test_checkpoint.py",
    ),
    Mutant(
        "sync-of-a-small-file",
        "music_tf/storage/files.py",
        "            os.fsync(file.fileno())\n",
        "",
        "tests/storage/test_files.py",
    ),
    Mutant(
        "digest",
        "music_tf/storage/gate.py",
        'hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256',
        "not entry.sha256",
        "tests/storage/test_checkpoint.py",
    ),
    Mutant(
        "lock",
        "music_tf/storage/lock.py",
        "_flock(self._folder, fcntl.LOCK_EX, _LOCK_TRIES)",
        "_flock(self._folder, fcntl.LOCK_SH, _LOCK_TRIES)",
        "tests/storage/test_run_directory.py",
    ),
]


def copied(folder):
    """Copies all files of the working tree that git does not ignore."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, found.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def noticed(folder, *words):
    """Returns the first test that is red in a copy, None where all are green."""
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    options += ["-o", "timeout_method=signal"]  # a test that hangs is red, and says its name
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return None
    if found := _RED.search(done.stdout):
        return found[1]
    raise RuntimeError(f"pytest ended with {done.returncode}\n{done.stdout}\n{done.stderr}")


def killer_of(mutant, folder, first_only):
    """Returns the test that notices a mutant, None if it survives, and after how many seconds.

    The copy is whole again afterwards.
    """
    start = time.monotonic()
    path = folder / mutant.file
    whole = path.read_text()
    path.write_text(mutant.broken(whole))
    others = ["-n", "2", "--ignore", mutant.first, "--ignore", "tests/mutants", "tests"]
    try:
        killer = noticed(folder, mutant.first)
        if killer is None and not first_only:
            killer = noticed(folder, *others)
    finally:
        path.write_text(whole)
    seconds = round(time.monotonic() - start)
    if killer and noticed(folder, killer):
        raise RuntimeError(f"{killer} is red without a mutant")
    return killer, seconds


def main():
    """Tries what the command line asks for, and returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = [mutant.name for mutant in MUTANTS]
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--first", action="store_true", help="only the tests to notice it first")
    parser.add_argument("--list", action="store_true", help="name all mutants and do nothing")
    asked = parser.parse_args()
    if asked.list:
        sys.stdout.writelines(f"{m.name:30} {m.file:40} {m.first}\n" for m in MUTANTS)
        return 0
    survivors = 0
    with tempfile.TemporaryDirectory() as name, open(TABLE, "w", newline="") as file:
        folder, table = pathlib.Path(name), csv.writer(file)
        copied(folder)
        table.writerow(["mutant", "file", "killed_by", "seconds"])
        for mutant in MUTANTS:
            if mutant.name not in asked.only:
                continue
            killer, seconds = killer_of(mutant, folder, asked.first)
            survivors += killer is None
            table.writerow([mutant.name, mutant.file, killer or "", seconds])
            file.flush()
            end = f"killed by {killer} in {seconds} s" if killer else f"SURVIVED in {seconds} s"
            sys.stdout.write(f"{mutant.name}: {end}\n")
            sys.stdout.flush()
    return 1 if survivors > _MOST_SURVIVORS else 0


if __name__ == "__main__":
    sys.exit(main())
