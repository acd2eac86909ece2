import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from music_tf.cli import run_verb
from music_tf.cli.exits import guarded
from music_tf.envs.toys import EPISODE_STEPS
from music_tf.storage.lock import RunLock
from music_tf.storage.results import read_result
from music_tf.tools import curves, study
from music_tf.tools.study import (
    BLOCKED,
    DONE,
    FAILED,
    RUNNING,
    Condition,
    Pool,
    Study,
    Task,
    load_study,
    runs_of,
)
from tests.experiments import stand_in

ROOT = pathlib.Path(__file__).parents[2]
STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
ENV = "music_tf/PointPush-v0"
TINY = """
from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does it run?",
    tasks=(Task(env_id="music_tf/PointPush-v0", seeds={seeds}, epochs=2),),
    conditions=(
        Condition(name="her", recipe="ddpg_her", start_from="music", parts="actor"),
        Condition(name="music", recipe="ddpg_music", arguments="--music.train False"),
    ),
)
"""
MUSIC = f"music-tf train ddpg_music --env-id {ENV} --seed 4 --epochs 2 --music.train False"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def keeps_handlers():
    """A study in this very process leaves the handlers of signals behind."""
    handlers = {number: signal.getsignal(number) for number in STOP}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def main(words):
    return run_verb(["study", *words])


def write(folder, text):
    path = folder / "tiny.py"
    path.write_text(text)
    return path


def run_study(folder, *words, epochs=2):
    """Returns the exit code and output of a study of stand-ins, in a process of its own."""
    return finish(start(folder, *words, epochs=epochs))


def start(folder, *words, epochs):
    return subprocess.Popen(
        [sys.executable, stand_in.__file__, "study", str(folder / "tiny.py"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "STAND_IN_EPOCHS": str(epochs)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process):
    try:
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, output


def place(folder, condition, seed):
    return folder / f"runs/studies/tiny/{condition}/music_tf_PointPush-v0/seed{seed}"


def starts(folder, condition, seed):
    """Returns the command lines that a run was started with, and when."""
    lines = (place(folder, condition, seed) / "words.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def stored(folder, condition, seed):
    name = f"{condition}_music_tf_PointPush-v0_seed{seed}.csv"
    return folder / "experiments/results/tiny" / name


def wait_for(condition, process):
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_result_says_how_it_came_about(folder):
    write(folder, TINY.format(seeds="(4,)"))
    code, output = run_study(folder)
    assert code == 0, output
    result = read_result(stored(folder, "music", 4))
    assert result.command == f"{MUSIC} --threads 1"
    assert result.made_with.startswith("commit ")
    assert "tensorflow 2.0, mujoco 3.0, gymnasium-robotics 1.0" in result.made_with
    assert "cores of" in result.made_with
    assert result.details["final_100_episodes"] == {"ours": {"eval/success_rate": 0.5}}
    assert result.details["control"] == {"ours": {"control/coverage": 0.25}}
    assert result.details["skills"] == []
    # Two epochs of a tenth of a second and an interpreter's start
    assert 0.2 < result.details["wall_s"] < 60.0
    metrics = (place(folder, "music", 4) / "metrics.csv").read_text()
    assert stored(folder, "music", 4).read_text().endswith(f"}}\n{metrics}")


def test_a_run_starts_from_the_same_seed_of_another_and_counts_its_steps(folder):
    write(folder, TINY.format(seeds="(4,)"))
    assert run_study(folder, "--jobs", "3")[0] == 0
    (first,), (second,) = starts(folder, "music", 4), starts(folder, "her", 4)
    source = second.index("--init-from") + 1
    assert second[source] == str(place(folder, "music", 4))
    assert second[-2] - first[-2] >= 2 * stand_in.EPOCH_SECONDS  # not before the other has ended
    result = read_result(stored(folder, "her", 4))
    assert result.command.endswith(
        "--init-from runs/studies/tiny/music/music_tf_PointPush-v0/seed4 --parts actor"
    )
    assert result.details["before"] == {"time/env_steps": 200.0, "time/elapsed_s": 120.0}
    assert result.columns["time/env_steps"].tolist() == [100.0, 200.0]
    assert result.in_all("time/env_steps").tolist() == [300.0, 400.0]


def test_a_start_that_was_not_noted_counts_nothing(folder):
    write(folder, TINY.format(seeds="(4,)"))
    assert run_study(folder)[0] == 0
    config = place(folder, "her", 4) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"init_from": None}))
    stored(folder, "her", 4).unlink()
    assert run_study(folder)[0] == 0
    assert read_result(stored(folder, "her", 4)).details["before"] == {}


def test_a_run_that_cannot_be_judged_is_not_stored_and_judged_next_time(folder, monkeypatch):
    write(folder, TINY.format(seeds="(4,)"))
    monkeypatch.setenv("STAND_IN_JUDGES", "never")
    code, output = run_study(folder)
    assert code == 3
    assert "music_music_tf_PointPush-v0_seed4: exit code 2" in output
    assert not stored(folder, "music", 4).exists()
    monkeypatch.delenv("STAND_IN_JUDGES")
    code, output = run_study(folder)
    assert (code, "2 done" in output) == (0, True)
    assert read_result(stored(folder, "music", 4)).columns["epoch"].tolist() == [1.0, 2.0]


def test_runs_go_side_by_side_with_a_thread_each(folder):
    write(folder, TINY.format(seeds="(1, 2)"))
    process = start(folder, "--jobs", "2", epochs=30)
    wait_for(lambda: all(place(folder, "music", n).exists() for n in (1, 2)), process)
    assert not place(folder, "her", 1).exists()
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 75
    for seed in (1, 2):
        (words,) = starts(folder, "music", seed)
        assert words[-1] == "1"  # OMP_NUM_THREADS
        assert words[words.index("--threads") + 1] == "1"


def test_what_is_done_is_not_run_again(folder):
    write(folder, TINY.format(seeds="(4,)"))
    assert run_study(folder)[0] == 0
    code, output = run_study(folder)
    assert (code, "2 done" in output) == (0, True)
    assert len(starts(folder, "music", 4)) == len(starts(folder, "her", 4)) == 1


def test_ctrl_c_saves_and_the_same_command_goes_on(folder):
    write(folder, TINY.format(seeds="(4,)"))
    process = start(folder, epochs=40)
    metrics = place(folder, "music", 4) / "metrics.csv"
    wait_for(lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 1, process)
    process.send_signal(signal.SIGINT)
    code, output = finish(process)
    assert (code, "1 stopped" in output) == (75, True)
    assert not stored(folder, "music", 4).exists()
    done = len(metrics.read_text().splitlines()) - 1
    assert 1 <= done < 40
    assert run_study(folder, epochs=done + 1)[0] == 0
    first, second = starts(folder, "music", 4)
    assert "--resume" not in first
    assert second[-3] == "--resume"
    assert second[:-3] == first[:-2]  # all else, without times and threads, is the same
    assert read_result(stored(folder, "music", 4)).columns["epoch"].size == done + 1


def test_a_list_tells_stopped_from_waiting(folder, capsys):
    path = write(folder, TINY.format(seeds="(4,)"))
    (place(folder, "music", 4) / "checkpoints/epoch_000001").mkdir(parents=True)
    assert main([str(path), "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "stopped",
        "waiting",
    ]


def test_runs_save_where_their_runner_is_killed(folder):
    write(folder, TINY.format(seeds="(4,)"))
    process = start(folder, epochs=10**6)
    run = place(folder, "music", 4)
    wait_for((run / "checkpoints/epoch_000001").exists, process)
    process.kill()
    deadline = time.monotonic() + 60
    while not (run / "ended").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (run / "ended").read_text() == "75"
    finish(process)


def test_the_end_of_the_time_allowed_saves_too(folder):
    write(folder, TINY.format(seeds="(4,)"))
    code, output = run_study(folder, "--max-minutes", "0.02", epochs=100)
    assert (code, "1 stopped" in output) == (75, True)
    assert (place(folder, "music", 4) / "checkpoints/epoch_000001").exists()


def test_a_stop_while_a_run_is_judged_is_no_failure(folder, monkeypatch):
    write(folder, TINY.format(seeds="(4,)"))
    monkeypatch.setenv("STAND_IN_JUDGES", "60")
    process = start(folder, epochs=2)
    wait_for((place(folder, "music", 4) / "summary.json").exists, process)
    process.send_signal(signal.SIGTERM)
    code, output = finish(process)
    assert (code, "1 stopped" in output) == (75, True)
    assert not stored(folder, "music", 4).exists()
    monkeypatch.delenv("STAND_IN_JUDGES")
    assert run_study(folder)[0] == 0
    assert stored(folder, "music", 4).exists()


def test_a_second_ctrl_c_ends_everything_at_once(folder):
    write(folder, TINY.format(seeds="(4,)"))
    process = start(folder, epochs=10**6)
    wait_for(lambda: place(folder, "music", 4).exists(), process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 75
    summary = place(folder, "music", 4) / "summary.json"
    assert not summary.exists()


def test_a_failing_run_is_shown_and_stops_no_other(folder):
    write(folder, TINY.format(seeds="(13, 4)"))
    code, output = run_study(folder)
    assert code == 3
    assert "music_music_tf_PointPush-v0_seed13: exit code 4" in output
    assert "music_music_tf_PointPush-v0_seed13: numbers went bad" in output
    assert "2 not run" not in output
    assert "1 failed, 1 not run" in output or "1 not run, 1 failed" in output
    assert stored(folder, "her", 4).exists()
    assert not place(folder, "her", 13).exists()
    assert not stored(folder, "music", 13).exists()


def test_a_run_without_a_checkpoint_begins_anew(folder):
    write(folder, TINY.format(seeds="(4,)"))
    place(folder, "music", 4).mkdir(parents=True)
    (place(folder, "music", 4) / "config.json").write_text("{}")
    (place(folder, "music", 4) / "metrics.csv").write_text("left over")
    assert run_study(folder)[0] == 0
    assert "left over" not in stored(folder, "music", 4).read_text()


def test_a_lost_run_is_trained_again_where_another_starts_from_it(folder):
    write(folder, TINY.format(seeds="(4,)"))
    assert run_study(folder)[0] == 0
    before = stored(folder, "music", 4).read_text()
    stored(folder, "her", 4).unlink()
    shutil.rmtree(folder / "runs")
    assert run_study(folder)[0] == 0
    assert len(starts(folder, "music", 4)) == 1
    assert stored(folder, "music", 4).read_text() == before
    assert stored(folder, "her", 4).exists()


def test_the_result_of_another_command_is_refused(folder):
    write(folder, TINY.format(seeds="(4,)"))
    assert run_study(folder)[0] == 0
    write(folder, TINY.format(seeds="(4,)").replace("False", "True"))
    code, output = run_study(folder)
    assert code == 2
    assert "holds the result of another command" in output
    assert "remove the file" in output


def test_two_runners_do_not_share_a_study(folder):
    write(folder, TINY.format(seeds="(4,)"))
    process = start(folder, epochs=10**6)
    wait_for(lambda: place(folder, "music", 4).exists(), process)
    code, output = run_study(folder)
    process.send_signal(signal.SIGUSR1)
    assert (code, "another runner" in output) == (2, True)
    assert finish(process)[0] == 75


@pytest.mark.usefixtures("keeps_handlers")
def test_what_another_runner_did_before_the_lock_was_free_is_not_done_again(folder, monkeypatch):
    path = write(folder, TINY.format(seeds="(4,)"))

    class AfterAnother(RunLock):
        def __init__(self, place):
            assert run_study(folder)[0] == 0
            super().__init__(place)

    monkeypatch.setattr(study, "RunLock", AfterAnother)
    monkeypatch.setattr(study, "TRAINER", [sys.executable, stand_in.__file__])
    assert main([str(path)]) == 0
    assert len(starts(folder, "music", 4)) == len(starts(folder, "her", 4)) == 1


def test_the_first_seeds_of_all_conditions_come_first(folder):
    path = write(folder, TINY.format(seeds="(7, 2)"))
    names = [(run.condition, run.seed) for run in runs_of("tiny", load_study(path))]
    assert names == [("music", 7), ("her", 7), ("music", 2), ("her", 2)]


def test_a_dry_run_shows_commands_and_starts_nothing(folder, capsys):
    path = write(folder, TINY.format(seeds="(4,)"))
    assert main([str(path), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{MUSIC} --threads 1 --run-dir {place(folder, 'music', 4)}"
    assert f"--init-from {place(folder, 'music', 4)} --parts actor" in lines[1]
    assert main([str(path), "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("waiting  music_")
    assert sorted(entry.name for entry in folder.iterdir()) == ["tiny.py"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("ddpg_her", "ddpg_hre"), "did you mean ddpg_her?"),
        (("PointPush-v0", "PointPsh-v0"), "did you mean music_tf/PointPush-v0?"),
        (("--music.train", "--music.trian"), "did you mean --music.train?"),
        (('start_from="music"', 'start_from="musik"'), "did you mean music?"),
        (("arguments=", "argumnets="), "did you mean arguments?"),
        (('name="her"', 'name="music"'), "music stands there twice"),
        (('name="music", ', 'name="music", start_from="her", '), "leads back"),
        (("STUDY = ", "STUDIO = "), "to define STUDY"),
        (("from music_tf.tools.study", "from music_tf.tools.studi"), "ModuleNotFoundError"),
        (("(4,)", "(4, 4)"), "each once"),
        (("(4,)", "(-1,)"), "seed: expected"),
        (("epochs=2", "epochs=0"), "epochs: expected a whole number in [1, 1000000000], got 0"),
        (("epochs=2", "epochs=2, minutes=0"), "max_minutes: expected a number above 0, got 0"),
        (("epochs=2", "epochs=2.5"), "epochs: expected a whole number or None, got 2.5"),
        (("epochs=2", "minutes='6'"), f"Task {ENV}: minutes: expected a number or None, got '6'"),
        (("(4,)", "5"), "expected whole numbers, as in range(5) or (0, 1, 2), got 5"),
        (("(4,)", "(True,)"), "seeds: expected whole numbers, as in range(5)"),
        (("(4,)", "'45'"), "got '45'"),
        ((f'"{ENV}"', "None"), "Task: env_id: expected a text, got None"),
        (
            ("epochs=2),)", "epochs=2))"),
            "expected a tuple or list, as in (Task(...),) with its comma, got Task",
        ),
        (('"Does it run?"', "3"), "Study: question: expected a text, got 3"),
        (('parts="actor"', "parts=None"), "Condition her: parts: expected a text, got None"),
        (('parts="actor"', "epochs=25"), "as in {'FetchPush-v4': 25}, got 25"),
        (('parts="actor"', "epochs={1: 25}"), "as in {'FetchPush-v4': 25}, got {1: 25}"),
        (('parts="actor"', f"tasks='{ENV}'"), "as in ('FetchPush-v4',) with its comma"),
        (('parts="actor"', "arguments='--x \"1'"), "with its quotes closed"),
        (
            ('parts="actor"', "arguments=['--x', '1']"),
            "Condition her: arguments: expected a text, got ['--x'",
        ),
        (('recipe="ddpg_her"', "recipe=3"), "Condition her: recipe: expected a text, got 3"),
    ],
)
def test_a_wrong_study_is_refused_before_anything_starts(folder, capsys, change, expected):
    path = write(folder, TINY.format(seeds="(4,)").replace(*change))
    assert guarded(lambda: main([str(path)])) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert len(message.splitlines()) <= 10
    assert sorted(entry.name for entry in folder.iterdir()) == ["tiny.py"]


def test_a_single_condition_needs_its_comma(folder, capsys):
    path = write(folder, TINY.format(seeds="(4,)"))
    text = path.read_text()
    start = text.index("    conditions=(")
    one = '    conditions=(Condition(name="music", recipe="ddpg_music")),\n)\n'
    path.write_text(text[:start] + one)
    assert guarded(lambda: main([str(path)])) == 2
    message = capsys.readouterr().err
    assert (
        "conditions: expected a tuple or list, as in (Condition(...),) with its comma, got Condi"
        in message
    )


def test_a_study_that_does_not_exist_gets_the_nearest(folder, capsys):
    path = write(folder, TINY.format(seeds="(4,)"))
    assert guarded(lambda: main([str(path.with_name("tini.py"))])) == 2
    assert f"did you mean {path}?" in capsys.readouterr().err


def test_a_changed_tree_is_recorded(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "music_tf").mkdir()
    (tmp_path / "music_tf/code.py").write_text("1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    monkeypatch.setattr(study, "_CHECKOUT", tmp_path)
    clean = study.code_version()
    assert len(clean) == len("commit ") + 40
    (tmp_path / "experiments/results").mkdir(parents=True)
    (tmp_path / "experiments/results/new.csv").write_text("a result changes no code")
    assert study.code_version() == clean
    (tmp_path / "music_tf/code.py").write_text("2")
    assert study.code_version() == f"{clean} with uncommitted changes"


@pytest.mark.parametrize("path", sorted((ROOT / "experiments/studies").glob("*.py")), ids=str)
def test_a_study_of_ours_is_one_that_can_be_run(path):
    planned = load_study(path)
    runs = runs_of(path.stem, planned)
    names = [run.name for run in runs]
    assert len(set(names)) == len(names)
    for number, run in enumerate(runs):
        assert run.source is None or run.source.name in names[:number]
    assert all(len(task.seeds) >= 3 for task in planned.tasks)


@pytest.mark.usefixtures("keeps_handlers")
def test_a_real_study_trains_stores_and_starts_from_its_own_run(folder, monkeypatch):
    small = "--workers 2 --cycles 2 --rollouts 1 --updates 2 --evaluation.episodes 2"
    text = TINY.format(seeds="(4,)").replace("epochs=2", "epochs=1")
    text = text.replace("--music.train False", small)
    text = text.replace('parts="actor"', f'parts="actor,normalizer", arguments="{small}"')
    path = write(folder, text)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert main([str(path), "--jobs", "2"]) == 0
    assert main([str(path)]) == 0
    music, her = (read_result(stored(folder, name, 4)) for name in ("music", "her"))
    steps = music.columns["time/env_steps"][-1]
    assert steps == 2 * 2 * EPISODE_STEPS  # workers and cycles
    assert her.details["before"]["time/env_steps"] == steps
    assert np.isfinite(her.columns["eval/success_rate"]).all()
    assert set(her.details["final_100_episodes"]) >= {"ours", "random"}
    assert her.details["wall_s"] > her.columns["time/elapsed_s"][-1]
    assert "tensorflow 2." in her.made_with
    record_of_her = json.loads((place(folder, "her", 4) / "config.json").read_text())
    assert record_of_her["config"]["threads"] == 1
    assert record_of_her["init_from"]["before"] == her.details["before"]


def test_the_copy_of_a_condition_is_drawn_as_a_line_of_its_own(folder):
    write(folder, TINY.format(seeds="(4,)"))
    assert run_study(folder)[0] == 0
    drawn = [curves.load(stored(folder, name, 4)) for name in ("music", "her")]
    assert [run.group for run in drawn] == [
        "music_music_tf_PointPush-v0",
        "her_music_tf_PointPush-v0",
    ]
    assert drawn[1].columns["time/env_steps"].tolist() == [300.0, 400.0]  # with those of music


REACH = "music_tf/PointReach-v0"
SHOWN = Study(
    question="Which?",
    tasks=(Task(env_id=ENV, seeds=(4, 7, 9), epochs=8), Task(env_id=REACH, seeds=(4,), epochs=8)),
    conditions=(
        Condition(name="music", recipe="ddpg_music", tasks=(ENV,)),
        Condition(name="her", recipe="ddpg_her"),
    ),
)
HEADER = "epoch,time/env_steps,time/elapsed_s,eval/success_rate,eval/object_comotion_m\n"


@pytest.fixture
def pool(folder):
    """A study of four runs of `her` and three of `music`, of which one is at its third epoch."""
    pool = Pool(runs_of("tiny", SHOWN), folder / "results")
    going, second, third = (run for run in pool.runs if run.condition == "music")
    pool.states |= {going.name: RUNNING, second.name: FAILED, third.name: BLOCKED}
    going.directory.mkdir(parents=True)
    rows = "1,100,60,,0.5\n2,200,120,,0.25\n3,300,150,,0.125\n"
    (going.directory / "metrics.csv").write_text(HEADER + rows)
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
    title, rows = drawn(study.table(pool))
    assert title == "tiny: 1 running, 3 waiting, 1 done, 1 failed, 1 not run"
    assert rows == [
        ["music", ENV, "0/3", "4 running, epoch 3/8, 2.5 min, object_comotion_m 0.12"],
        ["", "", "", "7 failed"],
        ["", "", "", "9 not run"],
        ["her", ENV, "0/3", ""],
        ["her", REACH, "1/1", ""],
    ]


def test_off_a_terminal_only_changes_are_told(pool):
    out = io.StringIO()
    with study.board(pool, Console(file=out)) as show:
        show()
        music, her = pool.runs[:2]
        pool.states |= {music.name: DONE, her.name: RUNNING}
        show()
        show()
    assert out.getvalue().splitlines() == [
        f"done: {music.name}, epoch 3/8, 2.5 min, object_comotion_m 0.12",
        f"running: {her.name}",
    ]


def test_on_a_terminal_the_last_state_stays_on_the_screen(pool):
    out = io.StringIO()
    with study.board(pool, Console(file=out, force_terminal=True, width=150)) as show:
        show()
        pool.states[pool.runs[0].name] = DONE
        before = len(out.getvalue())
    last = out.getvalue()[before:]
    assert "2 done, 3 waiting, 1 failed, 1 not run" in last
    assert "1/3" in last


def test_success_leads_where_a_run_knows_it(pool):
    music = pool.runs[0]
    (music.directory / "metrics.csv").write_text(f"{HEADER}1,100,60,0.75,0.5\n")
    _, rows = drawn(study.table(pool))
    assert rows[0][3] == "4 running, epoch 1/8, 1.0 min, success_rate 0.75"
