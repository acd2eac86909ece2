import io
import pathlib
import sys

import pytest
from rich.console import Console

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
from studying import board  # noqa: E402
from studying.plan import Condition, Study, Task, runs_of  # noqa: E402
from studying.pool import BLOCKED, DONE, FAILED, RUNNING, Pool  # noqa: E402

PUSH, REACH = "music_tf/PointPush-v0", "music_tf/PointReach-v0"
STUDY = Study(
    question="Which?",
    tasks=(Task(env_id=PUSH, seeds=(4, 7, 9), epochs=8), Task(env_id=REACH, seeds=(4,), epochs=8)),
    conditions=(
        Condition(name="music", recipe="ddpg_music", tasks=(PUSH,)),
        Condition(name="her", recipe="ddpg_her"),
    ),
)
HEADER = "epoch,time/env_steps,time/elapsed_s,eval/success_rate,eval/object_comotion_m\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """A study of four runs of `her` and three of `music`, of which one is at its third epoch."""
    monkeypatch.chdir(tmp_path)
    pool = Pool(runs_of("tiny", STUDY), ["true"], tmp_path / "results", 2)
    music, second, third = (run for run in pool.runs if run.condition == "music")
    pool.states |= {music.name: RUNNING, second.name: FAILED, third.name: BLOCKED}
    music.directory.mkdir(parents=True)
    rows = "1,100,60,,0.5\n2,200,120,,0.25\n3,300,150,,0.125\n"
    (music.directory / "metrics.csv").write_text(HEADER + rows)
    (her,) = (run for run in pool.runs if run.env_id == REACH)
    pool.states[her.name] = DONE
    return pool


def drawn(table):
    """Returns title and cells of a table, as they are shown."""
    out = io.StringIO()
    Console(file=out, width=200).print(table)
    title, *lines = out.getvalue().splitlines()
    cells = [[cell.strip() for cell in line.strip("┃│").split("│")] for line in lines]
    return title.strip(), [row for row in cells if len(row) == 4]


def test_the_table_has_a_row_for_each_condition_on_each_environment(pool):
    title, rows = drawn(board.table(pool))
    assert title == "tiny: 1 running, 3 waiting, 1 done, 1 failed, 1 not run"
    assert rows == [
        ["music", PUSH, "0/3", "4 running, epoch 3/8, 2.5 min, object_comotion_m 0.12"],
        ["", "", "", "7 failed"],
        ["", "", "", "9 not run"],
        ["her", PUSH, "0/3", ""],
        ["her", REACH, "1/1", ""],
    ]


def test_off_a_terminal_only_changes_are_told(pool):
    out = io.StringIO()
    with board.Board(pool, out) as shown:
        shown.show()
        music, her = pool.runs[:2]
        pool.states |= {music.name: DONE, her.name: RUNNING}
        shown.show()
        shown.show()
    assert out.getvalue().splitlines() == [
        f"done: {music.name}, epoch 3/8, 2.5 min, object_comotion_m 0.12",
        f"running: {her.name}",
    ]


def test_on_a_terminal_the_last_state_stays_on_the_screen(pool, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(board, "_REFRESH_SECONDS", 1e9)
    out = Terminal()
    with board.Board(pool, out) as shown:
        shown.show()
        pool.states[pool.runs[0].name] = DONE
        before = len(out.getvalue())
        shown.show()  # too early: nothing is drawn
        assert len(out.getvalue()) == before
    last = out.getvalue()[before:]
    assert "2 done, 3 waiting, 1 failed, 1 not run" in last
    assert "1/3" in last


def test_success_leads_where_a_run_knows_it(pool):
    music = pool.runs[0]
    (music.directory / "metrics.csv").write_text(f"{HEADER}1,100,60,0.75,0.5\n")
    _, rows = drawn(board.table(pool))
    assert rows[0][3] == "4 running, epoch 1/8, 1.0 min, success_rate 0.75"
