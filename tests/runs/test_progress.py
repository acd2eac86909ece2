import importlib.machinery
import io
import os
import re
import sys
import types

import pytest

from music_tf.config.key_metrics import KeyMetric
from music_tf.runs import progress
from music_tf.runs.progress import Progress
from tests.kit.cases import cases

SUCCESS = KeyMetric("eval/success_rate", "success")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def nobody_launched_us(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "NO_COLOR", "MUSIC_TF_TERMINAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def progress_of(metrics, **options):
    bar = Progress(**options)
    bar.key_metrics = metrics
    return bar


def shown(file, **options):
    bar = progress_of([SUCCESS], file=file, **options)
    bar.banner(["train [ddpg_her]"])
    bar.start(5, 2)
    bar.cycle(1, 10, 250)
    bar.epoch({"time/env_steps": 300.0, "time/fps": 41.7, "eval/success_rate": 0.25})
    bar.epoch({"time/env_steps": 400.0, "time/fps": 40.0, "eval/success_rate": None})
    bar.stop()
    bar.stop()
    return file.getvalue()


class Full(Terminal):
    def write(self, text):
        raise OSError(28, "No space left on device")

    def flush(self):
        self.write("")


@pytest.mark.parametrize("terminal", [False, True])
def test_output_that_nobody_takes_is_dropped(terminal, monkeypatch):
    monkeypatch.setattr(Full, "isatty", lambda self: terminal)
    assert shown(Full()) == ""
    Progress(file=Full()).policies({"ours": {"a": 1.0}}, "behaviour")


def test_off_a_terminal_each_epoch_is_one_line(monkeypatch):
    times = iter([0.0, 0.0, 60.0, 125.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    assert shown(io.StringIO()).splitlines() == [
        "train [ddpg_her]",
        "epoch 3/5  steps 300  success 0.25  left 2:00  elapsed 1:00  fps 42",
        "epoch 4/5  steps 400  left 1:02  elapsed 2:05  fps 40",
    ]


MUSIC = [
    KeyMetric("eval/object_comotion_m", "co-motion", "m"),
    KeyMetric("eval/information", "I(dx; dy)", random="eval/information_random"),
    KeyMetric("music/paid_heldout", "pay", random="music/paid_random"),
    KeyMetric("music/bound_heldout", "bound", random="music/bound_random"),
]
"""What says whether MUSIC learns, with what an epoch of it came to."""
TOLD = dict(zip([one.metric for one in MUSIC], (0.214, 1.149, 1.027, 0.016), strict=True)) | dict(
    zip([one.random for one in MUSIC[1:]], (-0.009, 0.074, 0.0), strict=True)
)


@cases(
    ("width", "told"),
    (30, "co-motion 0.21"),
    (60, "co-motion 0.21  I(dx; dy) 1.15 (-0.01)  left ?"),
    (95, "co-motion 0.21  I(dx; dy) 1.15 (-0.01)  pay 1.03 (0.07)  bound 0.016 (0.00)"),
    (
        progress._PLAIN_WIDTH,
        "steps 96,000  co-motion 0.21  I(dx; dy) 1.15 (-0.01)  pay 1.03 (0.07)  "
        "bound 0.016 (0.00)  left ?  fps 99",
    ),
    (
        160,
        "steps 96,000  co-motion 0.21  I(dx; dy) 1.15 (-0.01)  pay 1.03 (0.07)  "
        "bound 0.016 (0.00)  left ?  elapsed 0:00  fps 99",
    ),
)
def test_a_line_holds_what_tells_most_and_is_no_wider_than_the_terminal(width, told, monkeypatch):
    def nowhere(_):
        raise OSError("no terminal")

    monkeypatch.setattr(os, "get_terminal_size", nowhere)
    monkeypatch.setenv("COLUMNS", "" if width == progress._PLAIN_WIDTH else str(width))
    file = io.StringIO()
    bar = progress_of(MUSIC, file=file)
    bar.start(60, 12)
    bar.go_back(11)
    bar.epoch({"time/env_steps": 96000.0, "time/fps": 99.0, **TOLD})
    assert file.getvalue() == f"epoch 12/60  {told}\n"
    assert len(file.getvalue()) <= width


def test_a_bar_stays_on_one_line_of_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    file = Terminal()
    bar = progress_of(MUSIC, file=file)
    bar.start(60, 11)
    bar.epoch({"time/env_steps": 96000.0, "time/fps": 99.0, **TOLD})
    bar.cycle(3, 20, 100000)
    bar.stop()
    bars = [one for one in re.split(r"[\n\r]|\x1b\[[0-9;?]*[A-Za-z]", file.getvalue()) if one]
    assert "cycle 3/20  co-motion 0.21" in "".join(bars)
    assert "pay" not in "".join(bars).rpartition("cycle")[2]  # there is no room beside the bar


@cases(("seconds", "left"), (200.0, "3:00"), (3600.0, "4:00"), (30.0, "0:00"))
def test_what_is_left_ends_with_the_time_of_the_run(monkeypatch, seconds, left):
    times = iter([0.0, 0.0, 60.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    file = io.StringIO()
    bar = progress_of([], file=file)
    bar.start(5, 0, seconds)
    bar.epoch({})
    assert f"left {left}  " in file.getvalue()
    assert progress.as_clock(3754.0) == "1:02:34"


@cases(
    ("row", "told"),
    ({"skill/accuracy": 0.5, "skill/accuracy_heldout": 0.25}, "accuracy 0.25 (chance 0.1)"),
    ({"skill/accuracy": 0.5}, "accuracy 0.50 in training"),
    ({"reward/task_mean": -0.0001}, "reward/task_mean 0.000 in training"),
    ({}, ""),
)
def test_without_an_evaluation_the_value_of_training_is_shown(row, told):
    accuracy = KeyMetric("skill/accuracy_heldout", "accuracy", chance=0.1, trained="skill/accuracy")
    reward = KeyMetric("eval/return", "return", trained="reward/task_mean")
    assert "".join(key.shown(row) for key in (accuracy, reward)) == told


def test_on_a_terminal_a_bar_shows_cycles_below_lines_of_epochs_and_may_have_no_colour(monkeypatch):
    text = shown(Terminal())
    assert "\x1b[" in text
    assert "cycle 1/10  steps 250" in text
    assert "epoch 3/5  steps 300  success 0.25  left" in text
    assert "epoch 4/5  steps 400  left" in text
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any(code in shown(Terminal()) for code in ("\x1b[3", "\x1b[9"))


@cases(
    ("variables", "bar"),
    ({"TERM": "dumb"}, False),
    ({"OMPI_COMM_WORLD_SIZE": "2"}, False),
    ({"OMPI_COMM_WORLD_SIZE": "2", "MUSIC_TF_TERMINAL": "1"}, True),
)
def test_a_dumb_terminal_or_a_launcher_gets_plain_lines_unless_it_asks(monkeypatch, variables, bar):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    text = shown(Terminal())
    assert ("\x1b[" in text) == bar
    assert ("cycle 1/10" in text) == bar
    assert "epoch 3/5" in text


@pytest.mark.parametrize("file", [Terminal(), io.StringIO()])
def test_other_ranks_show_nothing(file):
    assert shown(file, shown=False) == ""


def test_the_table_sets_policies_side_by_side_and_leaves_the_unknown_blank():
    file = io.StringIO()
    rows = {
        "ours": {"eval/object_comotion_m": 0.4567},
        "random": {"eval/object_comotion_m": 0.01, "eval/success_rate": -0.0004},
        "scripted": {"eval/success_rate": 1.0},
    }
    Progress(file=file).policies(rows, "behaviour")
    lines = [[c.strip() for c in line.split("│")[1:-1]] for line in file.getvalue().split("\n")]
    assert ["eval/object_comotion_m", "0.457", "0.010", ""] in lines
    assert ["eval/success_rate", "", "0.000", "1.000"] in lines
    assert "scripted" in file.getvalue()


class Output:  # stands in for the widget that ipywidgets has of this name
    def __enter__(self):
        return self

    def __exit__(self, *fault):
        pass

    def clear_output(self, wait):
        pass


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_shows_a_bar_if_it_has_widgets_else_a_line_an_epoch(widgets, monkeypatch):
    said = []
    modules = {name: types.ModuleType(name) for name in ("IPython", "IPython.display")}
    modules["IPython.display"].display = said.append
    modules["ipywidgets"] = types.ModuleType("ipywidgets") if widgets else None
    if widgets:
        modules["ipywidgets"].Output = Output
        modules["ipywidgets"].__spec__ = importlib.machinery.ModuleSpec("ipywidgets", None)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert shown(io.StringIO()) == ""
    assert [type(one) for one in said].count(Output) == widgets
    text = "".join(one.text for one in said if not isinstance(one, Output))
    assert text.startswith("train [ddpg_her]\n")
    assert ("epoch 3/5  steps 300  success 0.25" in text) is not widgets
    assert ("cycle 1/10  steps 250" in text) is widgets


def test_beside_a_heading_the_leading_metric_stays():
    out = io.StringIO()
    bar = progress_of([KeyMetric("skill/hausdorff_mean", "apart")], file=out)
    bar.start(4, 0)
    for epoch, value in ((1, None), (2, 9.5), (3, None)):
        bar.heading = f"skill {epoch} of 3"
        bar.epoch({"time/env_steps": 100.0 * epoch, "skill/hausdorff_mean": value})
    lines = out.getvalue().splitlines()
    assert ["apart 9.50" in line for line in lines] == [False, True, True]
    assert lines[2].startswith("epoch 3/4  skill 3 of 3  steps 300  apart 9.50  ")
