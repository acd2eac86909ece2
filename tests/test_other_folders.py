"""Code of the user's may leave the folder of the process; files go where they were asked for."""

import os
from pathlib import Path

import pytest

import music_tf
from music_tf.cli import run_verb
from music_tf.envs.toys import PointPush
from music_tf.runs import session
from tests.kit.cases import cases
from tests.kit.liberties import Wanders
from tests.kit.points import points
from tests.kit.saved_run import save_run
from tests.kit.sessions import uncompared
from tests.kit.small import OPTIONS
from tests.kit.started import python

__all__ = ["points"]
WANDERS = "tests.kit.liberties:Wanders-v0"


@pytest.fixture
def elsewhere(points, tmp_path, monkeypatch):
    """Where an environment goes; the process stands in another folder and asks for that of runs."""
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    other.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("MUSIC_TF_RUNS", "runs")
    monkeypatch.setattr(Wanders, "folder", str(other))
    monkeypatch.setattr(session, "compare", uncompared)
    return other


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"run_dir": "mine"}])
def test_a_run_lies_in_one_folder_and_without_a_name_is_the_latest(elsewhere, tmp_path, options):
    agent = {"hidden_sizes": (8,), "return_clip": "off"}
    words = {**OPTIONS, "env_id": WANDERS, "agent": agent, "epochs": 1, **options}
    path = music_tf.train("ddpg_her", **words).path
    assert os.getcwd() == str(elsewhere)
    assert {"config.json", "metrics.csv", "checkpoints", "summary.json"} <= set(os.listdir(path))
    assert not os.listdir(elsewhere)
    here = tmp_path / "here"
    if options:
        assert path == here / "mine"
    else:
        assert path.is_relative_to(here / "runs/Wanders-v0/ddpg_her")
        assert (here / "runs/latest").resolve() == path


@pytest.mark.thorough
@cases(
    ("words", "written"),
    (["evaluate", "--full"], ["mine/evaluation.json"]),
    (["evaluate", "--out", "mine.npz"], ["mine/evaluation.json", "mine.npz"]),
    (["skills"], ["mine/skills.json", "mine/videos/skills.png"]),
    (["play", "--out", "mine.gif"], ["mine.gif"]),
    (["play", "--strip", "mine.png"], ["mine.png"]),
    ids=str,
)
def test_outputs_are_written_where_asked(elsewhere, tmp_path, monkeypatch, capsys, words, written):
    save_run(Path("mine"), "sac_diayn", skills=2)
    reset = PointPush.reset

    def leave(self, **options):
        os.chdir(elsewhere)
        return reset(self, **options)

    monkeypatch.setattr(PointPush, "reset", leave)
    verb, *options = words
    count = [] if "--strip" in options else ["--episodes", "1"]
    assert run_verb([verb, "mine", *count, *options]) == 0
    assert os.getcwd() == str(elsewhere)
    shown = capsys.readouterr().out
    for name in written:
        assert (tmp_path / "here" / name).stat().st_size
        assert name in shown
        assert str(tmp_path) not in shown
    assert not os.listdir(elsewhere)


def test_the_package_is_found_from_the_folder_that_holds_a_checkout(tmp_path):
    (tmp_path / "music_tf" / "music_tf").mkdir(parents=True)  # a clone, seen as a namespace
    python("import music_tf; music_tf.load_policy", cwd=tmp_path, exits=0)
