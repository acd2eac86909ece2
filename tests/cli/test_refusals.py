"""What cannot be done with a run is refused once, with exit code 2, and nothing is written."""

import os
import pathlib

import pytest

from music_tf.cli import run_verb
from music_tf.cli.exits import guarded
from music_tf.envs import lockstep
from tests.kit.saved_run import save_run
from tests.kit.small import PUSH
from tests.kit.started import music_tf

REACH = "FetchReach-v4"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of three skills without a reward network, one directory below where commands run."""
    monkeypatch.chdir(tmp_path)
    save_run(tmp_path / "run", skills=3)
    text = "time/epoch,time/env_steps,eval/success_rate\n1,100,0.5\n"
    (tmp_path / "run/metrics.csv").write_text(text)
    (tmp_path / "empty").mkdir()
    return tmp_path


def everything(folder):
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in sorted(pathlib.Path(folder).rglob("*"))
    }


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("play", "run", "--skill", "3"), "--skill: expected 0..2, or all; got 3"),
        (("play", "run", "--skill", "0,7"), "--skill: expected 0..2, or all; got 7"),
        (("plot", "run", "--metric", "eval/sucess_rate"), "did you mean eval/success_rate?"),
        (("plot", "empty"), "empty"),
        (("report", "empty"), "empty"),
        (("evaluate", "run", "--episodes", "two"), "--episodes"),
    ],
)
def test_a_verb_refuses_what_a_run_does_not_have(run, words, text, capsys):
    before = everything(run)
    assert guarded(lambda: run_verb(list(words))) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("music-tf: ")
    assert text in errors
    assert len(errors.splitlines()) <= 4
    assert everything(run) == before


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (("ddpg", "--parts", "statistics"), ["--parts statistics", "has none; its parts are"]),
        (
            ("ddpg", "--env-id", REACH, "--parts", "actor"),
            ["action: trained with 3 numbers, now 4", "/run/checkpoints: "],
        ),
        (
            ("ddpg", "--env-id", PUSH, "--agent.hidden-sizes", "9", "9", "--parts", "actor"),
            ["--parts actor: actor/", "expected float32 (", "found float32 ("],
        ),
    ],
)
def test_a_start_from_what_does_not_fit_is_refused(run, words, texts):
    before = everything(run)
    source = os.fspath(run / "run")
    code, output, errors = music_tf("train", *words, "--init-from", source)
    assert (code, output) == (2, "")
    assert errors.startswith("music-tf: ")
    assert [text for text in texts if text not in errors] == []
    assert len(errors.splitlines()) <= 4
    assert everything(run) == before
    assert not pathlib.Path(os.environ["MUSIC_TF_RUNS"]).exists()


def test_ctrl_c_while_environments_are_made_ends_with_75(run, monkeypatch, capsys):
    def interrupted(env_id, settings):
        raise KeyboardInterrupt

    before = everything(run)
    monkeypatch.setattr(lockstep, "make_environment", interrupted)
    assert guarded(lambda: run_verb(["evaluate", "run"])) == 75
    assert guarded(lambda: run_verb(["play", "run", "--out", "film.gif"])) == 75
    assert "Traceback" not in capsys.readouterr().err
    assert everything(run) == before
