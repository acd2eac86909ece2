"""Looking at a run whose trainer is at work leaves it alone; `test_report.py` says so of pages."""

import sys

import pytest

from music_tf.cli import run_verb
from music_tf.errors import UsageError
from music_tf.storage.lock import RunLock, refuse_if_in_use
from tests.kit.jobs import ENDLESS, Job, environment, rows_of, train
from tests.kit.saved_run import save_run
from tests.kit.started import ended


def contents(paths):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in paths}


def test_plotting_and_playing_a_run_still_going_changes_none_of_its_files(tmp_path, monkeypatch):
    for variable in ("OMP_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"):  # play would leave them set
        monkeypatch.setenv(variable, "1")
    run = tmp_path / "run"
    save_run(run)
    (run / "metrics.csv").write_text("epoch,time/env_steps,eval/success_rate\n1,100,0.5\n2,2")
    lock = RunLock(run)
    files = [run, *run.rglob("*")]
    before = contents(files)
    picture, film = tmp_path / "curves.png", tmp_path / "film.gif"
    assert run_verb(["plot", str(run), "--out", str(picture)]) == 0
    assert run_verb(["play", str(run), "--episodes", "1", "--out", str(film)]) == 0
    assert picture.stat().st_size > 3000
    assert film.stat().st_size > 3000
    assert ({run, *run.rglob("*")}, contents(files)) == (set(files), before)
    with pytest.raises(UsageError):
        refuse_if_in_use(run)  # the trainer still holds it
    lock.release()


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_run_that_saves_again_and_again_can_be_looked_at_meanwhile(tmp_path):
    path = tmp_path / "run"
    picture, page = tmp_path / "curves.png", tmp_path / "report.html"
    with Job(train(path, *ENDLESS), path, how="alone", real=True) as job:
        job.wait_for_epoch(2)
        for words in (
            ("plot", path, "--out", picture),
            ("report", path, "--out", page),
            ("play", path, "--episodes", "1"),
        ):
            program = (sys.executable, "-m", "music_tf", *words)
            ended(*program, env=environment(real=True), timeout=120, exits=0)
        job.stop_after(len(rows_of(path)) + 2)
    for file in (picture, page, path / "videos/policy.mp4"):
        assert file.stat().st_size > 3000
    assert [int(row["epoch"]) for row in rows_of(path)] == list(range(1, len(rows_of(path)) + 1))
