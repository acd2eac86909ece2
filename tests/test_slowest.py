"""Tests are limited by CPU seconds: the slowest of all together, and each of every day."""

import csv
import re
import shutil
import sys
from pathlib import Path

import pytest

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


@pytest.fixture
def judged(tmp_path):  # the end of a process that runs these tests with some options
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough\n    slow\n")
    (tmp_path / "test_some.py").write_text(TESTS)

    def run(*options):
        program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1"]
        search = {"env": {**environment(""), "PYTHONPATH": str(ROOT)}, "cwd": tmp_path}
        return ended(*program, "--rootdir", ".", *options, "test_some.py", timeout=280, **search)

    return run


@pytest.mark.thorough
@pytest.mark.parametrize(("limit", "code"), [("100", 0), ("0.5", 1)])
def test_cpu_seconds_of_tests_and_their_jobs_are_stored_and_limited(limit, code, judged, tmp_path):
    done = judged("--slowest", "slowest.csv", "--slowest-limit", limit)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("expected at most 0.5: see slowest.csv" in done.stdout) == bool(code)
    rows = list(csv.DictReader((tmp_path / "slowest.csv").open()))
    names = ["waits_for_a_busy_job", "busy_itself", "at_rest"]
    assert [row["test"] for row in rows] == [f"test_some.py::test_{name}" for name in names]
    job, busy, rest = (float(row["cpu_seconds"]) for row in rows)
    assert job >= 0.5 > busy >= 0.2 > rest


@pytest.mark.thorough
@pytest.mark.parametrize("fails", [False, True])
def test_a_long_test_without_the_mark_is_named_and_fails_where_that_is_asked_for(fails, judged):
    done = judged("--everyday-limit", "0.2", *["--everyday-fails"] * fails)
    assert done.returncode == fails, done.stdout + done.stderr
    named = re.findall(r"(\w+) takes \d\.\d CPU seconds: mark it thorough", done.stdout)
    assert named == ["test_busy_itself"]


def test_what_runs_every_day_however_long_it_takes_is_there_and_has_no_mark():
    for place in ALWAYS.values():
        path, _, name = place.partition("::")
        text = (ROOT / "tests" / path).read_text()
        decorators = re.search(rf"((?:^@.*\n)*)^def {name}\(", text, re.MULTILINE)[1]
        assert not re.search("thorough|slow", decorators), place
