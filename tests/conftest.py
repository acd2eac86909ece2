import collections
import csv
import importlib
import os
import signal
import sys

import pytest
from hypothesis import settings

from music_tf import recipes
from music_tf.process import signals
from tests.kit.everyday import ALWAYS, FOLDERS

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
settings.register_profile("music_tf", deadline=None, derandomize=True, database=None)
settings.load_profile("music_tf")
_COUNT = 15
_TOLD, _SPENT = pytest.StashKey(), pytest.StashKey()


@pytest.fixture(autouse=True)
def runs_go_to_a_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSIC_TF_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("MUSIC_TF_ALLOW_IMPORT", raising=False)


@pytest.fixture(autouse=True)
def signals_keep_their_handlers():
    """Puts back what an entry point called within a test has set."""
    before = {number: signal.getsignal(number) for number in signals._SIGNALS}
    yield
    signals._handlers.clear()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def own_modules(tmp_path, monkeypatch):
    """Writes modules of a user's, texts by name, which can be imported until the test ends."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(recipes, "_TRUSTED", set())
    names = []

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        names.extend(texts)

    yield write
    for name in names:
        sys.modules.pop(name, None)


def pytest_addoption(parser):
    group = parser.getgroup("slowest")
    group.addoption("--slowest", metavar="FILE", help="store the 15 slowest tests, by CPU seconds")
    group.addoption("--slowest-limit", metavar="SECONDS", type=float, help="of all 15 together")
    words = "name tests without the mark thorough that take more CPU seconds"
    group.addoption("--everyday-limit", metavar="SECONDS", type=float, help=words)
    group.addoption("--everyday-fails", action="store_true", help="fail where there are any")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the tests of whole folders, and those of several ranks."""
    for item in items:
        mark = FOLDERS.get(item.path.parent.name, "thorough")
        whole = item.path.parent.name in FOLDERS or item.get_closest_marker("distributed")
        if whole and not _id(item).startswith(tuple(ALWAYS.values())):
            item.add_marker(mark)


def pytest_collection_finish(session):
    """Loads what is loaded late, so that no test counts as slow for being the first to need it."""
    if session.items and session.config.getoption("everyday_limit"):
        importlib.import_module("tensorflow_probability")


def _id(item):  # from the folder of this file on
    return item.nodeid.removeprefix("tests/")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Adds the CPU seconds of the process and of the jobs that it has waited for.

    Unlike those of a clock they are nearly the same on a busy machine.
    """
    report = yield
    marked = item.get_closest_marker("thorough") or item.get_closest_marker("slow")
    report.everyday = not marked and not _id(item).startswith(tuple(ALWAYS.values()))
    now = sum(os.times()[:4])
    report.cpu_seconds = now - item.session.stash.get(_SPENT, now)
    item.session.stash[_SPENT] = now
    return report


def pytest_sessionfinish(session):
    config, spent, everyday = session.config, collections.Counter(), collections.Counter()
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    for report in (each for many in reporter.stats.values() for each in many):
        if hasattr(report, "cpu_seconds"):
            spent[report.nodeid] += report.cpu_seconds
            counts = report.everyday and report.when == "call"  # the first pays for a fixture
            everyday[report.nodeid] += report.cpu_seconds * counts
    told, failed = [], False
    if name := config.getoption("slowest"):
        slowest = spent.most_common(_COUNT)
        with open(config.rootpath / name, "w", newline="") as file:
            rows = [(f"{seconds:.1f}", test) for test, seconds in slowest]
            csv.writer(file, lineterminator="\n").writerows([("cpu_seconds", "test"), *rows])
        total, limit = sum(seconds for _, seconds in slowest), config.getoption("slowest_limit")
        told.append(f"the {len(slowest)} slowest tests take {total:.1f} CPU seconds")
        if limit is not None and total > limit:
            told.append(f"expected at most {limit:g}: see {name}")
            failed = True
    if limit := config.getoption("everyday_limit"):
        told.append(f"all tests take {sum(spent.values()):.0f} CPU seconds")
        long = [(test, seconds) for test, seconds in everyday.most_common() if seconds > limit]
        told += [
            f"{test} takes {seconds:.1f} CPU seconds: mark it thorough" for test, seconds in long
        ]
        failed |= bool(long) and config.getoption("everyday_fails")
    if failed:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
    config.stash[_TOLD] = told


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash.get(_TOLD, ()):
        terminalreporter.write_line(line)
