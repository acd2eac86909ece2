import dataclasses
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from music_tf.cli import run_verb
from music_tf.cli.exits import guarded
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.results import read_result
from music_tf.tools import study_runner
from music_tf.tools.study import StudyRun, load_study, runs_of
from tests.experiments import stand_in
from tests.kit.cases import cases, every
from tests.kit.sources import ROOT

ENV = "music_tf/PointPush-v0"
TINY = """
from music_tf.tools.study import Condition, Picture, Study, Task

STUDY = Study(
    question="Does it run?",
    role="looked at",
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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder where the runs of TINY were trained, those of seed 13 in vain; to be read only."""
    folder = tmp_path_factory.mktemp("finished")
    write(folder, seeds="(13, 4)")
    return folder, *run_study(folder, jobs=3)


@pytest.fixture
def going(folder):  # a study whose first run has come to a checkpoint and has long to go
    write(folder)
    process = start(folder, epochs=10**6)
    wait_for((place(folder, "music") / "checkpoints/epoch_000001").exists, process)
    yield process
    finish(process, signal.SIGKILL)


def write(folder, seeds="(4,)", change=("", "")):
    path = folder / "tiny.py"
    path.write_text(TINY.format(seeds=seeds).replace(*change))
    return path


def run_study(folder, **options):
    """Returns the exit code and output of a study of stand-ins, in a process of its own."""
    return finish(start(folder, **options))


def start(folder, jobs=1, minutes="inf", epochs=2):
    return subprocess.Popen(
        [*stand_in.TRAINER, "study", str(folder / "tiny.py"), str(jobs), str(minutes)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "MUSIC_TF_RUNS": str(folder / "runs"),
            "STAND_IN_EPOCHS": str(epochs),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, *signals):
    """Returns the exit code and output of a study after it was sent these signals."""
    try:
        for number in signals:
            process.send_signal(number)
            time.sleep(0.05)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, output


def place(folder, condition, seed=4):
    return folder / f"runs/studies/tiny/{condition}/music_tf_PointPush-v0/seed{seed}"


def starts(folder, condition, seed=4):  # the command lines that a run was started with, and when
    lines = (place(folder, condition, seed) / "words.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def stored(folder, condition, seed=4):
    name = f"{condition}_music_tf_PointPush-v0_seed{seed}.csv"
    return folder / "experiments/results/tiny" / name


def wait_for(condition, process=None):
    deadline = time.monotonic() + 60
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_result_says_how_it_came_about(finished):
    folder = finished[0]
    result = read_result(stored(folder, "music"))
    assert result.command == f"{MUSIC} --threads 1"
    assert result.made_with.startswith("commit ")
    assert "tensorflow 2.0, mujoco 3.0, gymnasium-robotics 1.0" in result.made_with
    assert re.search(r", \d+ cores? of .*, one of them used", result.made_with)
    assert result.details["final_100_episodes"] == {"ours": {"eval/success_rate": 0.5}}
    assert result.details["control"] == {"ours": {"control/coverage": 0.25}}
    (row,) = result.details["worlds"]
    assert (row["epoch"], row["return"], row["end_0"], "skill" in row) == (2.0, 1.5, 3.0, False)
    assert result.details["evaluations"] == "cycle,time/env_steps\n6,2400\n"
    assert result.details["skills"] == []
    # Two epochs of a tenth of a second and an interpreter's start
    assert 0.2 < result.details["wall_s"] < 60.0
    metrics = (place(folder, "music") / "metrics.csv").read_text()
    assert stored(folder, "music").read_text().endswith(f"}}\n{metrics}")


def test_a_run_starts_from_the_same_seed_of_another_and_counts_its_steps(finished):
    folder = finished[0]
    (first,), (second,) = starts(folder, "music"), starts(folder, "her")
    source = second.index("--init-from") + 1
    assert second[source] == str(place(folder, "music"))
    assert second[-2] - first[-2] >= 2 * stand_in.EPOCH_SECONDS  # not before the other has ended
    result = read_result(stored(folder, "her"))
    assert result.command.endswith(
        "--init-from runs/studies/tiny/music/music_tf_PointPush-v0/seed4 --parts actor"
    )
    assert result.details["before"] == {"time/env_steps": 200.0, "time/elapsed_s": 120.0}
    assert result.columns["time/env_steps"].tolist() == [100.0, 200.0]
    assert result.in_all("time/env_steps").tolist() == [300.0, 400.0]


def test_a_failing_run_is_shown_and_stops_no_other(finished):
    folder, code, output = finished
    assert code == 3
    assert "music_music_tf_PointPush-v0_seed13: exit code 4" in output
    assert "music_music_tf_PointPush-v0_seed13: numbers went bad" in output
    assert sorted(output.splitlines()[-1].removeprefix("tiny: ").split(", ")) == [
        "1 failed",
        "1 not run",
        "2 done",
    ]
    assert stored(folder, "her").exists()
    assert not place(folder, "her", 13).exists()
    assert not stored(folder, "music", 13).exists()


def test_what_is_done_is_not_run_again_and_what_is_lost_is(folder, finished):
    shutil.copytree(finished[0], folder, dirs_exist_ok=True)
    write(folder)
    assert run_study(folder)[0] == 0
    assert len(starts(folder, "music")) == len(starts(folder, "her")) == 1
    # A start that was not noted counts nothing, that from an agent outside of the study counts
    before = {"time/env_steps": 160000.0}
    for name, noted in (("her", None), ("music", {"before": before})):
        config = place(folder, name) / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"init_from": noted}))
        stored(folder, name).unlink()
    assert run_study(folder)[0] == 0
    assert "before" not in read_result(stored(folder, "her")).details
    assert read_result(stored(folder, "music")).details["before"] == before
    # A lost run is trained again where another starts from it
    before = stored(folder, "music").read_text()
    stored(folder, "her").unlink()
    shutil.rmtree(folder / "runs")
    assert run_study(folder)[0] == 0
    assert len(starts(folder, "music")) == 1
    assert stored(folder, "music").read_text() == before
    assert stored(folder, "her").exists()
    write(folder, change=("False", "True"))
    with pytest.raises(UsageError, match=r"(?s)holds the result of another command.*remove the f"):
        run_here(folder)


def test_a_run_that_cannot_be_judged_is_not_stored_and_judged_next_time(folder, monkeypatch):
    write(folder)
    monkeypatch.setenv("STAND_IN_FAILS", "1")
    code, output = run_study(folder)
    assert code == 3
    assert "music_music_tf_PointPush-v0_seed4: exit code 2" in output
    assert not stored(folder, "music").exists()
    monkeypatch.delenv("STAND_IN_FAILS")
    code, output = run_study(folder)
    assert (code, "2 done" in output) == (0, True)
    assert read_result(stored(folder, "music")).columns["epoch"].tolist() == [1.0, 2.0]


@cases(
    ("arguments", "allowed"),
    (("ddpg_her", "--env-id", "panda_gym:PandaPush-v3"), False),
    (("mine:ddpg_mine", "--env-id", ENV), True),
    (("ddpg_her", "--world.descriptor", "mine:see"), True),
)
def test_a_module_that_the_study_names_may_be_imported_by_what_judges(arguments, allowed):
    run = StudyRun(study="tiny", condition="her", env_id=ENV, seed=4, arguments=arguments)
    words = run.evaluate_words()
    assert words == ["evaluate", words[1], "--env-id", ENV, "--full", *["--allow-import"] * allowed]


def test_runs_go_side_by_side_with_a_thread_each(folder):
    write(folder, seeds="(1, 2)")
    process = start(folder, jobs=2, epochs=30)
    wait_for(lambda: all(place(folder, "music", n).exists() for n in (1, 2)), process)
    assert not place(folder, "her", 1).exists()
    assert finish(process, signal.SIGINT)[0] == 75
    for seed in (1, 2):
        (words,) = starts(folder, "music", seed)
        assert words[-1] == "1"  # OMP_NUM_THREADS
        assert words[words.index("--threads") + 1] == "1"


def test_ctrl_c_saves_and_the_same_command_goes_on(folder, going):
    metrics = place(folder, "music") / "metrics.csv"
    code, output = finish(going, signal.SIGINT)
    assert (code, "1 stopped" in output) == (75, True)
    assert not stored(folder, "music").exists()
    done = len(metrics.read_text().splitlines()) - 1
    assert done >= 1
    assert run_study(folder, epochs=done + 1)[0] == 0
    first, second = starts(folder, "music")
    assert "--resume" not in first
    assert second[-3] == "--resume"
    assert second[:-3] == first[:-2]  # all else, without times and threads, is the same
    assert read_result(stored(folder, "music")).columns["epoch"].size == done + 1


def test_runs_save_where_their_runner_is_killed(folder, going):
    going.kill()
    ended = place(folder, "music") / "ended"
    wait_for(ended.exists)
    assert ended.read_text() == "75"


def test_a_second_ctrl_c_ends_everything_at_once(folder, going):
    assert finish(going, signal.SIGINT, signal.SIGTERM, signal.SIGINT)[0] == 75
    assert not (place(folder, "music") / "summary.json").exists()


def test_two_runners_do_not_share_a_study(folder, going):
    with pytest.raises(UsageError, match="another runner"):
        run_here(folder)
    assert finish(going, signal.SIGUSR1)[0] == 75


def test_a_run_without_a_checkpoint_begins_anew(folder):
    write(folder)
    place(folder, "music").mkdir(parents=True)
    (place(folder, "music") / "config.json").write_text("{}")
    (place(folder, "music") / "metrics.csv").write_text("left over")
    assert run_study(folder)[0] == 0
    assert "left over" not in stored(folder, "music").read_text()


def run_here(folder, minutes=math.inf):  # runs a study of stand-ins in this process
    everything = (stand_in.RESULTS, 1, minutes, stand_in.TRAINER)
    return study_runner.train_missing(folder / "tiny.py", *everything)


def test_the_first_seeds_of_all_conditions_come_first(folder):
    path = write(folder, seeds="(7, 2)")
    names = [(run.condition, run.seed) for run in runs_of("tiny", load_study(path))]
    assert names == [("music", 7), ("her", 7), ("music", 2), ("her", 2)]
    ablation = path.read_text().replace('start_from="music", parts="actor"', "seeds=(2,)")
    path.write_text(ablation)
    names = [(run.condition, run.seed) for run in runs_of("tiny", load_study(path))]
    assert names == [("music", 7), ("her", 2), ("music", 2)]


def test_a_plan_shows_states_and_commands_and_starts_nothing(folder, capsys):
    path = str(write(folder))
    assert run_verb(["study", path, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{MUSIC} --threads 1 --run-dir {place(folder, 'music')}"
    assert f"--init-from {place(folder, 'music')} --parts actor" in lines[1]
    assert run_verb(["study", path, "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("waiting  music_")
    assert sorted(entry.name for entry in folder.iterdir()) == ["tiny.py"]
    (place(folder, "music") / "checkpoints/epoch_000001").mkdir(parents=True)
    assert run_verb(["study", path, "--list"]) == 0
    states = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert states == ["stopped", "waiting"]


@cases(
    ("change", "expected"),
    (("ddpg_her", "ddpg_hre"), "did you mean ddpg_her?"),
    (("--music.train", "--music.trian"), "did you mean --music.train?"),
    (('start_from="music"', 'start_from="musik"'), "did you mean music?"),
    (('"ddpg_music", ', '"ddpg_music", seeds=(4,), '), f"run of music on {ENV} with seed 13"),
    (("arguments=", "argumnets="), "unexpected keyword argument 'argumnets'"),
    (('name="her"', 'name="music"'), "conditions: expected one or more, each once, got"),
    (('name="her"', 'name="h-r"'), "Condition h-r: name: expected letters, digits and _"),
    (('name="music", ', 'name="music", start_from="her", '), "expected no circle"),
    (("STUDY = ", "STUDIO = "), "to define STUDY"),
    (("from music_tf.tools.study", "from music_tf.tools.studi"), "ModuleNotFoundError"),
    (("(13, 4)", "(4, 4)"), "each once"),
    (("epochs=2", "epochs=2, minutes=0"), "--max-minutes: expected a number above 0, got 0"),
    (("looked at", "seen"), "expected Literal['tuning', 'reported', 'looked at'], got 'seen'"),
    (("--music.train False", "--seed 200"), "are those of the task, got --seed 200"),
    (('parts="actor"', "epochs={'Push': 25}"), "Condition her: tasks: there is no 'Push'"),
    (("epochs=2", "level={'eval/sucess_rate': 1}"), "did you mean eval/success_rate?"),
    (('"Does it run?"', "'?', beside=('music',)"), "expected STUDY/CONDITION, as in"),
    (('"Does it run?"', "'?', shown=dict.fromkeys('abcd', 'x')"), "at most 3 metrics, got 4"),
    (
        ('"Does it run?"', "'?', pictures=(Picture(name='p', metrics=[], conditions=['musik']),)"),
        "Picture p: conditions: there is no 'musik'\ndid you mean mus",
    ),
    (('"Does it run?"', "'?', by_hand='make train'"), "not made by `music-tf study`: make"),
    (('parts="actor"', "arguments='--x \"1'"), "with its quotes closed"),
)
def test_a_wrong_study_is_refused_before_anything_starts(folder, capsys, change, expected):
    path = write(folder, seeds="(13, 4)", change=change)
    assert guarded(lambda: run_verb(["study", str(path)])) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert len(message.splitlines()) <= 10
    assert sorted(entry.name for entry in folder.iterdir()) == ["tiny.py"]


@cases(("role", "seeds"), ("tuning", "(100, 119)"), ("reported", "(5, 99, 120, 200)"))
def test_each_role_has_seeds_of_its_own(folder, role, seeds):
    path = write(folder, seeds=seeds, change=("looked at", role))
    planned = load_study(path)
    assert {run.seed for run in runs_of("tiny", planned)} == set(planned.tasks[0].seeds)
    for wrong in (99, 120) if role == "tuning" else (0, 4, 100, 119):
        path = write(folder, seeds=f"({wrong},)", change=("looked at", role))
        with pytest.raises(UsageError, match=rf"'{role}' has .*100 to 119.*; got \[{wrong}\]"):
            load_study(path)


def test_a_reported_study_keeps_the_budget_that_it_was_begun_with(folder):
    for role in ("looked at", "reported"):
        write(folder, seeds="(200,)", change=("looked at", role))
        assert run_here(folder, minutes=0.0) == 75  # begun, and nothing trained yet
        held = folder / "runs/studies/tiny" / study_runner.BUDGETS
        assert held.exists() == (role == "reported")
    made = {"study": "tiny", "env_id": ENV, "seed": 4, "arguments": ("ddpg_her",)}
    run, other = (StudyRun(condition=name, epochs=2, **made) for name in ("her", "new"))
    for runs in ([run], [run], [run, other]):  # a condition that is new has no budget yet
        study_runner.hold_budgets(runs, folder)
    for change in ({"epochs": 3}, {"minutes": 5.0}):
        with pytest.raises(UsageError, match=r"her_.*keeps the budget"):
            study_runner.hold_budgets([dataclasses.replace(run, **change)], folder)
    notes = folder / study_runner.BUDGETS
    for damaged in (b"", b"{", b"3", b'{"music": NaN}'):
        notes.write_bytes(damaged)
        with pytest.raises(EnvironmentFault, match=f"{notes}: expected budgets by condition"):
            study_runner.hold_budgets([run], folder)


def test_a_changed_tree_is_recorded(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "music_tf").mkdir()
    (tmp_path / "music_tf/code.py").write_text("1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    monkeypatch.setattr(study_runner, "_CHECKOUT", tmp_path)
    clean = study_runner.code_version()
    assert len(clean) == len("commit ") + 40
    (tmp_path / "experiments/results").mkdir(parents=True)
    (tmp_path / "experiments/results/new.csv").write_text("a result changes no code")
    assert study_runner.code_version() == clean
    (tmp_path / "music_tf/code.py").write_text("2")
    assert study_runner.code_version() == f"{clean} with uncommitted changes"


@every("path", sorted((ROOT / "experiments/studies").glob("*.py")))
def test_a_study_of_ours_is_one_that_can_be_run(path):
    planned = load_study(path)
    listed = [*planned.tasks, *(one for one in planned.conditions if one.seeds)]
    few = any(len(each.seeds) < 3 for each in listed)
    assert few == ("fewer than three seeds" in " ".join(path.read_text().split()))
    if planned.by_hand:
        with pytest.raises(UsageError, match="not made by `music-tf study`"):
            runs_of(path.stem, planned)
        return
    runs = runs_of(path.stem, planned)
    names = [run.name for run in runs]
    assert len(set(names)) == len(names)
    for number, run in enumerate(runs):
        assert run.source is None or run.source.name in names[:number]
    done = [run for run in runs if run.result(ROOT / "experiments/results").exists()]
    assert done or f"studies/{path.name}" in (ROOT / "experiments/results/README.md").read_text()
    for run in done:  # a result of another command would be refused
        assert read_result(run.result(ROOT / "experiments/results")).command == run.command


def test_a_real_study_trains_stores_and_starts_from_its_own_run(folder, monkeypatch):
    small = "--workers 2 --cycles 2 --rollouts 1 --updates 2 --evaluation.episodes 2"
    text = TINY.format(seeds="(4,)").replace("epochs=2", "epochs=1")
    text = text.replace("--music.train False", small)
    text = text.replace('parts="actor"', f'parts="actor,normalizer", arguments="{small}"')
    path = folder / "tiny.py"
    path.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert run_verb(["study", str(path), "--jobs", "2"]) == 0
    assert run_verb(["study", str(path)]) == 0
    music, her = (read_result(stored(folder, name)) for name in ("music", "her"))
    steps = music.columns["time/env_steps"][-1]
    assert steps == 2 * 2 * 30  # workers, cycles, and steps of an episode
    assert her.details["before"]["time/env_steps"] == steps
    assert np.isfinite(her.columns["eval/success_rate"]).all()
    assert set(her.details["final_100_episodes"]) >= {"ours", "random"}
    assert her.details["wall_s"] > her.columns["time/elapsed_s"][-1]
    assert "tensorflow 2." in her.made_with
    record_of_her = json.loads((place(folder, "her") / "config.json").read_text())
    assert record_of_her["config"]["threads"] == 1
    assert record_of_her["init_from"]["before"] == her.details["before"]
