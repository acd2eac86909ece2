"""The slowest tests are stored, and what they take together is limited."""

import csv
import shutil
import sys
from pathlib import Path

import pytest

from tests.kit.started import ended

TESTS = """
import subprocess, sys, time

BUSY = "import time\\nwhile time.process_time() < 0.5: pass"

def test_at_rest():
    time.sleep(1.0)

def test_busy_itself():
    end = time.process_time() + 0.25
    while time.process_time() < end: pass

def test_waits_for_a_busy_job():
    subprocess.run([sys.executable, "-c", BUSY])
"""


@pytest.mark.parametrize(("limit", "code"), [("100", 0), ("0.5", 1)])
def test_cpu_seconds_of_tests_and_their_jobs_are_stored_and_limited(limit, code, tmp_path):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    words = ["-n", "1", "--rootdir", ".", "--slowest", "slowest.csv", "--slowest-limit", limit]
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    done = ended(*program, "test_some.py", cwd=tmp_path, timeout=280)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("expected at most 0.5: see slowest.csv" in done.stdout) == bool(code)
    rows = list(csv.DictReader((tmp_path / "slowest.csv").open()))
    names = ["waits_for_a_busy_job", "busy_itself", "at_rest"]
    assert [row["test"] for row in rows] == [f"test_some.py::test_{name}" for name in names]
    job, busy, rest = (float(row["cpu_seconds"]) for row in rows)
    assert job >= 0.5 > busy >= 0.2 > rest
