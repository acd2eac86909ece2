"""Compares the numbers of the working tree with those of a commit, bit by bit, on this machine.

    python tests/same/same.py COMMIT [--only NAME ...] [--ranks N ...] [--kept DIR]

Exit code 1: something differs. What the commit computed is kept in `.same/` and used again; with
`--kept` several checkouts share it.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import pathlib
import platform
import shutil
import subprocess
import sys
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OWN = ROOT / ".same"
sys.path.insert(0, str(ROOT))

from tests.same import canonical  # noqa: E402 - after the path
from tests.same.configurations import CONFIGURATIONS, RENAMED_OPTIONS  # noqa: E402
from tests.same.jobs import run_job  # noqa: E402

WAYS = ("straight", "resumed")
_SHOWN = 8
_PACKAGES = ("tensorflow", "keras", "numpy", "mujoco", "gymnasium-robotics", "mpi4py")


class Side(NamedTuple):
    """One of the two packages that are compared."""

    package: pathlib.Path  # the folder that holds music_tf
    results: pathlib.Path
    renamed: dict[str, str]  # its own names of options

    def folder(self, ranks):
        return self.results / f"{ranks}_ranks"

    def run_dir(self, ranks, name, way):
        return self.folder(ranks) / f"{name}-{digest(name)}.{way}"


def digest(name):
    """Returns what tells a configuration from an earlier one of its name."""
    configuration = CONFIGURATIONS[name]
    source = digest(configuration.source) if configuration.source else ""
    return hashlib.sha256(repr((configuration.words, source)).encode()).hexdigest()[:8]


def machine():
    """Returns what decides how numbers are rounded, beside the code."""
    cpu = pathlib.Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    model = [line for line in lines if line.startswith(("model name", "flags"))][:2]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    text = repr((platform.platform(), sys.version, model, versions))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@contextlib.contextmanager
def alone(folder):
    """Waits until nobody else writes in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def checked_out(name, kept):
    commit = git("rev-parse", "--verify", f"{name}^{{commit}}")
    tree = kept / commit[:12] / "tree"
    if not (tree / "music_tf").is_dir():
        git("worktree", "prune")
        git("worktree", "add", "--force", "--detach", str(tree), commit)
    return commit, tree


def with_sources(names):
    wanted = {}
    for name in names:
        source = CONFIGURATIONS[name].source
        wanted |= dict.fromkeys([*(with_sources([source]) if source else []), name])
    return list(wanted)


def commands(side, ranks, name, way):
    configuration = CONFIGURATIONS[name]
    where = ["--run-dir", str(side.run_dir(ranks, name, way))]
    if configuration.source:
        where += ["--init-from", str(side.run_dir(ranks, configuration.source, "straight"))]
    if way == "straight":
        found = [[*configuration.train(2), *where]]
    else:
        again = ["train", "--resume", *configuration.until(2), *where[:2]]
        found = [[*configuration.train(1), *where], again]
    return [[side.renamed.get(word, word) for word in command] for command in found]


def codes_of(side, ranks, name, way):
    run = side.run_dir(ranks, name, way)
    path = run.with_name(f"{run.name}.json")
    return json.loads(path.read_text()) if path.exists() else None


def compute(side, ranks, names):
    """Runs what a side lacks, in one job."""
    folder = side.folder(ranks)
    folder.mkdir(parents=True, exist_ok=True)
    steps = []
    for name in names:
        for way in WAYS:
            run = side.run_dir(ranks, name, way)
            codes = codes_of(side, ranks, name, way)
            if codes is None or any(codes):
                shutil.rmtree(run, ignore_errors=True)
                run.with_name(f"{run.name}.json").unlink(missing_ok=True)
                steps.append({"name": run.name, "commands": commands(side, ranks, name, way)})
    if steps:
        run_job(side.package, steps, folder, ranks)


def compute_alone(side, ranks, names):
    with alone(side.results.parent):
        compute(side, ranks, names)


def compared(sides, ranks, name, way):
    """Returns whether one run is the same on both sides, and a text that says it."""
    title = f"{name} {ranks} rank{'s' if ranks > 1 else ''} {way}"
    found = []
    for side in sides:
        codes = codes_of(side, ranks, name, way)
        if codes is None or any(codes):
            run = side.run_dir(ranks, name, way)
            logs = sorted(run.parent.glob(f"{run.name}.*.err")) or [run.parent / "job.log"]
            said = logs[-1].read_text(errors="replace")[-1500:] if logs[-1].exists() else ""
            return False, f"FAILED {title}: exit codes {codes} of {side.package}\n{said}"
        found.append(canonical.read_run(side.run_dir(ranks, name, way)))
    one, other = found
    names = dict.fromkeys([*one, *other])
    differing = {
        name: text
        for name in names
        if (text := canonical.difference(one.get(name), other.get(name))) is not None
    }
    columns = [name for name in one if name.startswith("metrics/")]
    if differing:
        first = [f"  {name}: {text}" for name, text in list(differing.items())[:_SHOWN]]
        return False, "\n".join([f"DIFFERENT {title}: {len(differing)} of {len(names)}", *first])
    rows = len(one[columns[0]])
    arrays = len(one) - len(columns)
    return True, f"same {title}: {arrays} arrays, {rows} rows x {len(columns)} columns"


def compare_runs(against, names, all_ranks, kept):
    """Prints a line for each run and returns whether all are the same."""
    with alone(kept):
        commit, tree = checked_out(against, kept)
    fixed = Side(tree, kept / commit[:12] / machine(), {})
    working = Side(ROOT, OWN / "working", dict(RENAMED_OPTIONS))
    for ranks in all_ranks:
        shutil.rmtree(working.folder(ranks), ignore_errors=True)
    needed = with_sources(names)
    alike = True
    for ranks in all_ranks:
        with concurrent.futures.ThreadPoolExecutor(2 if ranks == 1 else 1) as pool:
            jobs = [
                pool.submit(compute_alone, fixed, ranks, needed),
                pool.submit(compute, working, ranks, needed),
            ]
        for job in jobs:
            job.result()
        for name in names:
            for way in WAYS:
                equal, text = compared((fixed, working), ranks, name, way)
                alike = alike and equal
                sys.stdout.write(f"{text}\n")
                sys.stdout.flush()
    return alike


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("commit", help="what the working tree is compared with")
    names = list(CONFIGURATIONS)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=names, choices=names)
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2], choices=[1, 2])
    parser.add_argument("--kept", type=lambda text: pathlib.Path(text).absolute(), default=OWN)
    asked = parser.parse_args()
    with alone(OWN / "working"):
        alike = compare_runs(asked.commit, asked.only, asked.ranks, asked.kept)
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
