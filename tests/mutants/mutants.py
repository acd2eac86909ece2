"""Breaks the code in some thirty places, one at a time, and sees whether a test notices.

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


FAULTS = {
    ("music_tf/losses/temporal_difference.py", "tests/losses/test_temporal_difference.py"): [
        ("target-sign", "target = reward + discount", "target = reward - discount"),
        (
            "target-clip",
            "tf.stop_gradient(tf.clip_by_value(target, bounds[0], bounds[1]))",
            "tf.stop_gradient(target)",
        ),
        (
            "critic-broadcast",
            "tf.square(_error(q, target, counted)), axis=-1",
            "tf.square(target[..., None] - q[..., None, :]), axis=[-2, -1]",
        ),
    ],
    ("music_tf/losses/policy.py", "tests/losses/test_policy_losses.py"): [
        (
            "entropy-stop-gradient",
            "tf.stop_gradient(tf.clip_by_value(-scale * log_density, clip[0], clip[1]))",
            "tf.clip_by_value(-scale * log_density, clip[0], clip[1])",
        ),
    ],
    ("music_tf/losses/mutual_information.py", "tests/losses/test_mutual_information.py"): [
        (
            "bound-mask",
            "tf.reduce_sum(valid * tf.exp(marginal_scores), axis=-1)",
            "tf.reduce_sum(tf.exp(marginal_scores), axis=-1)",
        ),
        (
            "coin-of-the-first-worker",
            "tf.where(swapped[:, None], crossed",
            "tf.where(swapped[:1, None], crossed",
        ),
    ],
    ("music_tf/agents/actor_critic.py", "tests/agents/test_ddpg.py"): [
        ("frozen-critic", "stopped(own) if frozen else own", "own"),
    ],
    ("music_tf/agents/sac.py", "tests/agents/test_sac.py"): [
        ("soft-target-sign", "next_q -= temperature", "next_q += temperature"),
    ],
    ("music_tf/intrinsic/skill.py", "tests/intrinsic/test_skill.py"): [
        (
            "skill-prior-sign",
            "tf.stop_gradient(likelihood + self._baseline)",
            "tf.stop_gradient(likelihood - self._baseline)",
        ),
    ],
    ("music_tf/intrinsic/music.py", "tests/intrinsic/test_music.py"): [
        (
            "music-stop-gradient",
            "return tf.stop_gradient(self.scaled_by(bound, feed))",
            "return self.scaled_by(bound, feed)",
        ),
        ("priority-mask", "np.where(taken, shown, 0.0).sum(axis=0)", "shown.sum(axis=0)"),
        ("permutation-of-the-last-state", "beyond = order > lengths", "beyond = order >= lengths"),
        ("network-flat-again", "tf.tanh(flat @ kernel + bias)", "tf.nn.relu(flat @ kernel + bias)"),
        (
            "one-scale-for-a-position",
            "scale[1][its] = np.sqrt(np.mean(scale[1][its] ** 2))",
            "scale[1][its] = np.mean(scale[1][its])",
        ),
    ],
    ("music_tf/intrinsic/base.py", "tests/intrinsic/test_mixing.py"): [
        (
            "shift-without-weight",
            "return weight * (paid + self.shift)",
            "return weight * paid + self.shift",
        ),
    ],
    ("music_tf/intrinsic/paid.py", "tests/intrinsic/test_paid.py"): [
        ("gain-before-its-measure", "/ max(total / weights, _FINEST)", "/ max(weights, _FINEST)"),
    ],
    ("music_tf/intrinsic/joint_motion.py", "tests/intrinsic/test_joint_motion.py"): [
        ("either-moves", "agent & surrounding, tf.float32", "agent | surrounding, tf.float32"),
    ],
    ("music_tf/losses/neighbours.py", "tests/losses/test_neighbours.py"): [
        ("one-neighbour-less", "return sorted_lists[k - 1][0]", "return sorted_lists[k - 2][0]"),
        ("unsorted-lists", "apart = whole // 2\n", "apart = whole // 4\n"),
    ],
    ("music_tf/intrinsic/incremental.py", "tests/intrinsic/test_incremental.py"): [
        (
            "newest-skill-missing",
            "earlier = self._past[: max(1, self.skill)]",
            "earlier = self._past[: max(1, self.skill - 1)]",
        ),
    ],
    ("music_tf/training/incremental.py", "tests/training/test_skill_sequence.py"): [
        ("frozen-not-kept", "snapshot = trainer.snapshot()\n", "snapshot = self._like\n"),
    ],
    ("music_tf/losses/distance.py", "tests/losses/test_distance_losses.py"): [
        ("slack-sign", "squared_distance - length", "squared_distance + length"),
        ("price-felt", "log_dual * tf.stop_gradient(felt)", "log_dual * price * felt"),
        ("skill-codes", "(condition - 1.0 / count) *", "condition *"),
    ],
    ("music_tf/losses/influence.py", "tests/losses/test_influence_losses.py"): [
        (
            "variational-half",
            "most - tf.reduce_logsumexp(-divergences(mean, variance), axis=-1)",
            "most + tf.reduce_logsumexp(-divergences(mean, variance), axis=-1)",
        ),
        ("negative-product", "variational + tf.maximum(product, 0.0)", "variational + product"),
        ("own-variance", "(own + apart) / other - 1.0", "(other + apart) / own - 1.0"),
    ],
    ("music_tf/intrinsic/influence.py", "tests/intrinsic/test_influence.py"): [
        (
            "unscaled-change",
            "return change * np.float32(self._config.change_scale)",
            "return change",
        ),
        (
            "explorer-rests",
            "not self._config.candidates and super().rests(epoch)",
            "super().rests(epoch)",
        ),
    ],
    ("music_tf/intrinsic/distance.py", "tests/intrinsic/test_distance.py"): [
        ("step-backwards", "return ends[1] - ends[0]\n", "return ends[0] - ends[1]\n"),
        (
            "density-feels-price",
            "mean, log_deviation = tf.stop_gradient(mean), tf.stop_gradient(log_deviation)",
            "del like",
        ),
    ],
    ("music_tf/runs/zero_shot.py", "tests/runs/test_zero_shot.py"): [
        (
            "shows-the-goal",
            "action = self.snapshot.act(observation, np.zeros_like(goal), condition, None)",
            "action = self.snapshot.act(observation, goal, condition, None)",
        ),
    ],
    ("music_tf/training/trainer.py", "tests/training/test_relabelling.py"): [
        ("nothing-relabelled", "where(chosen, noise[_FRESH], batch.skill)", "batch.skill"),
    ],
    ("music_tf/training/update.py", "tests/training/test_update.py"): [
        ("steps-go-on", "step.assign(0)", "step.assign(step)"),
        ("gate", "weight * gate", "weight"),
        ("polyak", "(1.0 - self._config.polyak) * (", "self._config.polyak * ("),
        (
            "adam-step-of-a-phase",
            "tf.cast(self._phase_steps[number].assign_add(1), tf.float32)",
            "tf.cast(self._phase_steps[number].assign_add(1) * 0 + self.step, tf.float32)",
        ),
        (
            "mean-over-workers",
            'self._config.gradient_reduce == "mean"',
            'self._config.gradient_reduce != "mean"',
        ),
        ("gradient-of-one-rank", "self._comm.sum_into(own, total)", "total[:] = own"),
    ],
    ("music_tf/training/collect.py", "tests/training/test_trainer.py"): [
        (
            "episode-cut",
            "np.where(lost, first, episodes.length)",
            "np.where(lost, first + 1, episodes.length)",
        ),
    ],
    ("music_tf/rollout.py", "tests/test_rollout.py"): [
        ("random-action-let-go", "replaced[step] |= goes_on", "replaced[step] |= False"),
    ],
    ("music_tf/replay/hindsight.py", "tests/replay/test_hindsight.py"): [
        ("relabelled-with-the-present", "time + 1 + offset", "time + offset"),
    ],
    ("music_tf/replay/buffer.py", "tests/replay/test_buffer.py"): [
        (
            "terminated-at-every-step",
            'terminated=episode["terminated"] & last',
            'terminated=episode["terminated"]',
        ),
        (
            "padding-is-drawn",
            "generator.random(shape) * length",
            "generator.random(shape) * self._steps.shape[1]",
        ),
    ],
    ("music_tf/training/device.py", "tests/training/test_device.py"): [
        (
            "own-goal-on-the-device",
            "chosen >= 0)[..., None], other, goal",
            "chosen > 99)[..., None], other, goal",
        ),
        (
            "first-copy-of-a-slot",
            "shard.on_write = self._written[-1].append",
            "shard.on_write = None",
        ),
        ("worker-on-the-device", "map(np.add, self._first[:, 0], slots)", "slots"),
    ],
    ("music_tf/normalizer.py", "tests/test_normalizer.py"): [
        ("prior-count", "self._totals[-1] = 1.0", "self._totals[-1] = 0.0"),
    ],
    ("music_tf/distributed.py", "tests/test_distributed.py"): [
        (
            "share-of-a-rank",
            "range(self.rank * share, (self.rank + 1) * share)",
            "range(self.rank, workers, self.size)",
        ),
    ],
    ("music_tf/randomness.py", "tests/test_randomness.py"): [
        ("purpose-of-a-seed", 'int.from_bytes(digest, "little")', "len(digest)"),
    ],
    ("music_tf/envs/columns.py", "tests/envs/test_columns.py"): [
        ("split-without-evidence", "tuple(why)) if why else None", "tuple(why))"),
    ],
    ("music_tf/envs/twins.py", "tests/envs/test_columns.py"): [
        ("opposite-of-an-action", "other[:HOLD] = -after[:HOLD]", "other[:HOLD] = after[:HOLD]"),
    ],
    ("music_tf/gate.py", "tests/storage/test_checkpoint.py"): [
        ("sync-of-a-checkpoint", "        os.fsync(file.fileno())\n", ""),
        (
            "digest",
            'hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256',
            "not entry.sha256",
        ),
    ],
    ("music_tf/files.py", "tests/test_files.py"): [
        ("sync-of-a-small-file", "            os.fsync(file.fileno())\n", ""),
    ],
    ("music_tf/storage/metrics.py", "tests/storage/test_metrics.py"): [
        ("columns-of-a-resume", "            replace_file(self._path, whole)\n", ""),
        (
            "columns-of-a-run",
            "        *(group.foreseen(config) for group in groups_of(config)),\n",
            "",
        ),
    ],
    ("music_tf/storage/lock.py", "tests/storage/test_run_directory.py"): [
        (
            "lock",
            "_flock(self._folder, fcntl.LOCK_EX, _LOCK_TRIES)",
            "_flock(self._folder, fcntl.LOCK_SH, _LOCK_TRIES)",
        ),
    ],
}
"""Name, what stands there and what takes its place, by file and by the tests to notice it."""
MUTANTS = [
    Mutant(name, file, old, new, first)
    for (file, first), faults in FAULTS.items()
    for name, old, new in faults
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
