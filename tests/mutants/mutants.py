"""Breaks the code in the places of faults.txt, one at a time, and sees whether a test notices.

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
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: found {count} times in {self.file}:\n{self.old}")
        return text.replace(self.old, self.new)


def read_mutants(text):
    """Returns the mutants of `faults.txt`.

    A line at the margin names a file, and the tests that should notice its faults first. Each line
    below is a fault: its name, what stands there, and what takes its place; "\\n" ends a line.
    """
    mutants, file, first = [], "", ""
    for line in text.splitlines():
        if not line.startswith(" "):
            file, first = line.split()
            continue
        name, _, places = line.strip().replace("\\n", "\n").partition(": ")
        old, new = places.split(" ==> ")
        mutants.append(Mutant(name, file, old, new, first))
    return mutants


MUTANTS = read_mutants(pathlib.Path(__file__).with_name("faults.txt").read_text(encoding="utf-8"))


def copied(folder):
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
