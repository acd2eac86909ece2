"""Tests are limited by CPU seconds: the slowest of all together, and each of every day."""

import csv
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.kit.cases import cases
from tests.kit.everyday import ALWAYS
from tests.kit.started import ROOT, ended, environment

TESTS = """
import subprocess, sys, time
import pytest

BUSY = "import time\\nwhile time.process_time() < 0.5: pass"

def test_at_rest():
    time.sleep(1.0)

def test_busy_itself():
    end = time.process_time() + 0.25
    while time.process_time() < end: pass

@pytest.mark.thorough
def test_waits_for_a_busy_job():
    subprocess.run([sys.executable, "-c", BUSY])
"""


@pytest.mark.thorough
@cases(("limit", "fails", "code"), ("100", [], 0), ("0.5", [], 1), ("100", ["--everyday-fails"], 1))
def test_cpu_seconds_of_tests_and_their_jobs_are_stored_and_limited(limit, fails, code, tmp_path):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough\n    slow\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1"]
    words += ["--rootdir", ".", "--slowest", "slowest.csv", "--slowest-limit", limit]
    words += ["--everyday-limit", "0.2", *fails, "test_some.py"]
    search = {**environment(""), "PYTHONPATH": str(ROOT)}
    done = ended(*words, timeout=280, env=search, cwd=tmp_path, exits=code)
    assert ("expected at most 0.5: see slowest.csv" in done.stdout) == (limit == "0.5")
    rows = list(csv.DictReader((tmp_path / "slowest.csv").open()))
    names = ["waits_for_a_busy_job", "busy_itself", "at_rest"]
    assert [row["test"] for row in rows] == [f"test_some.py::test_{name}" for name in names]
    job, busy, rest = (float(row["cpu_seconds"]) for row in rows)
    assert job >= 0.5 > busy >= 0.2 > rest
    named = re.findall(r"(\w+) takes \d\.\d CPU seconds: mark it thorough", done.stdout)
    assert named == ["test_busy_itself"]  # the other one has the mark


def test_what_runs_every_day_however_long_it_takes_is_there_and_has_no_mark():
    for place in ALWAYS.values():
        path, _, name = place.partition("::")
        text = (ROOT / "tests" / path).read_text()
        decorators = re.search(rf"((?:^@.*\n)*)^def {name}\(", text, re.MULTILINE)[1]
        assert not re.search("thorough|slow", decorators), place
