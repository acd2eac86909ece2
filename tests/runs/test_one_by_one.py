"""Runs of skills one after the other: cut and continued through their files, and looked at."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import music_tf
from music_tf.cli import run_verb
from music_tf.config.fields import with_fields
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.reading.stored import read_run
from music_tf.runs.callbacks import CallbackFailed
from music_tf.storage.worlds import read_worlds
from tests.kit.cases import cases
from tests.kit.jobs import assert_same_run, rows_of
from tests.kit.one_by_one import TINY
from tests.kit.saved_run import write_config
from tests.kit.sessions import run_session

OPTIONS = """
--skills 2 --incremental.epochs 2 --incremental.collected 2 --cycles 2 --updates 5
--collect.steps 20 --agent.hidden-sizes 8 8 --replay.batch-size 16 --disk.rows 32
--evaluation.episodes 2
"""
"""Two skills of two epochs, each of 40 steps and 20 updates."""


def train(path, *more, until=None):  # a run, perhaps ended after an epoch by a callback
    def end(row):
        if row["time/epoch"] == until:
            raise KeyError("enough")

    words = ["sac_disk", *OPTIONS.split(), *more, "--run-dir", str(path)]
    if "--resume" in more:
        words = [*more, "--run-dir", str(path)]
    command = parse_train(words)
    if until is None:
        return run_session(command)
    with pytest.raises(CallbackFailed):
        run_session(command, callbacks=[SimpleNamespace(on_epoch=end)])
    return None


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    train(path, "--incremental.replay", "purge")
    return path


def test_a_run_that_was_ended_within_and_between_skills_comes_to_the_same_bits(whole, tmp_path):
    train(tmp_path / "run", "--incremental.replay", "purge", until=1)
    train(tmp_path / "run", "--resume", until=2)
    train(tmp_path / "run", "--resume", until=3)
    train(tmp_path / "run", "--resume")
    assert_same_run(whole, tmp_path / "run")


def test_a_table_says_which_skill_was_learned_and_how_far_all_lie_apart(whole):
    rows = rows_of(whole, ())
    assert [float(row["disk/skill"]) for row in rows] == [0, 0, 1, 1]
    assert [bool(row["skill/hausdorff_mean"]) for row in rows] == [False, False, False, True]
    assert set(json.loads((whole / "summary.json").read_text())["evaluation"]) == {"ours", "random"}


@pytest.mark.thorough
def test_a_run_is_looked_at_in_episodes_as_long_as_those_of_its_evaluation(tmp_path):
    path = tmp_path / "run"
    train(path, "--evaluation.length", "15")
    summary = json.loads((path / "summary.json").read_text())
    assert {row["eval/length"] for row in summary["evaluation"].values()} == {15.0}
    assert run_verb(["skills", str(path), "--episodes", "2"]) == 0
    assert [row["length"] for row in json.loads((path / "skills.json").read_text())["each"]] == [
        *(15.0, 15.0)
    ]


@pytest.mark.thorough
def test_a_policy_has_the_skills_that_are_learned_by_now(tmp_path):
    path = tmp_path / "run"
    train(path, until=1)
    with pytest.raises(UsageError, match=r"no skill is learned yet.* with epoch 2, .* of epoch 1"):
        music_tf.load_policy(path)
    train(path, "--resume", until=3)
    play = ["play", str(path), "--episodes", "1", "--out", str(path / "a.gif")]
    assert run_verb(play) == 0
    with pytest.raises(UsageError, match="--skill: expected 0: this run has one skill; got 1"):
        run_verb([*play, "--skill", "1"])
    policy = music_tf.load_policy(path)
    assert policy.skills == 1
    first = policy.act([1.0, 2.0])
    train(path, "--resume")
    policy = music_tf.load_policy(path)
    assert policy.skills == 2
    np.testing.assert_array_equal(policy.act([1.0, 2.0], skill=0), first)
    assert not np.array_equal(policy.act([1.0, 2.0], skill=1), first)
    np.testing.assert_allclose(policy.act([[1.0, 2.0]] * 2, skill=[1, 0])[1], first, rtol=1e-5)
    with pytest.raises(ValueError, match=r"this run has 2, expected 0\.\.1, got 2"):
        policy.act([1.0, 2.0], skill=2)


@pytest.mark.thorough
def test_a_stage_that_the_world_cannot_do_leaves_a_run_as_it_was_to_go_on_with_another(
    whole, tmp_path
):
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    record = (path / "config.json").read_bytes()
    opens = '[{}, {"at": {"skill": 2}, "set": {"WALL": true}}]'
    with pytest.raises(UsageError, match="did you mean wall"):
        train(path, "--resume", "--skills", "3", "--env.changes", opens.replace("WALL", "wal"))
    assert (path / "config.json").read_bytes() == record
    train(path, "--resume", "--skills", "3", "--env.changes", opens.replace("WALL", "wall"))
    assert music_tf.load_policy(path).worlds == (0, 0, 1)
    change = [row for row in read_worlds(path) if (row["stage"], row["next_stage"]) == (0, 1)]
    assert [(row["epoch"], row["skill"], row["world"]) for row in change] == [
        (4, 0, 0),
        (4, 1, 0),
        (4, 0, 1),
        (4, 1, 1),
    ]


@cases(
    ("more", "said"),
    (["--skills", "1"], "--skills: the run has 2, got 1"),
    (["--incremental.epochs", "3"], "--incremental.epochs: the run has 2, got 3"),
    (["--epochs", "6"], "expected those of all skills together, 4, got 6"),
    (
        ["--skills", "3", "--env.changes", '[{}, {"at": {"skill": 1}, "set": {"wall": true}}]'],
        "--env.changes: the run has",
    ),
)
def test_what_was_learned_cannot_be_changed_afterwards(whole, more, said):
    with pytest.raises(UsageError) as told:
        parse_train(["--resume", "--run-dir", str(whole), *more])
    assert said in str(told.value)


def test_a_stage_of_the_world_may_be_added_for_a_skill_that_is_added(whole):
    changes = '[{}, {"at": {"skill": 2}, "set": {"wall": true}}]'
    words = ["--resume", "--run-dir", str(whole), "--skills", "3"]
    command = parse_train([*words, "--incremental.epochs", "2", "2", "5", "--env.changes", "[]"])
    assert (command.config.epochs, command.config.incremental.epochs) == (9, (2, 2, 5))
    assert json.loads((whole / "config.json").read_text())["config"]["env"]["changes"] == "[]"
    assert parse_train([*words, "--env.changes", changes]).config.env.changes == changes


def test_a_later_skill_that_disk_would_not_pay_is_refused_with_weights_that_fit():
    def rewards(words):
        return parse_train(words.split()).config.rewards

    words = "sac_disk_music --incremental.epochs 6 2 2 2 2"
    with pytest.raises(UsageError) as told:
        rewards(words)
    text, _, cure = str(told.value).partition("\nfor example: ")
    assert text.endswith("got 0 in epochs 6 to 7, all of skill 1")
    assert cure == "--music.weight 0 0.25 5 0.25 6 0.075 --disk.weight 0 0 5 0 6 1"
    assert rewards(f"{words} {cure}")["disk"].weight == ((0.0, 0.0), (5.0, 0.0), (6.0, 1.0))
    with pytest.raises(UsageError, match=r"\nfor example: --disk.weight 0 0 1 1$"):
        rewards("sac_disk --incremental.epochs 1 --disk.weight 0 0")
    assert rewards("sac_disk --skills 2 --disk.weight 0 0 6 0 8 1")  # epoch 7 pays skill 1


def test_a_run_that_an_earlier_version_trained_so_is_read_but_not_resumed(tmp_path):
    config = with_fields(TINY, {"disk.weight": ((0.0, 1.0), (1.0, 1.0), (2.0, 0.0))})
    write_config(tmp_path, config, "sac_disk")
    assert read_run(tmp_path).config == config
    with pytest.raises(UsageError, match=r"disk\.weight: expected a weight in"):
        parse_train(["--resume", "--run-dir", str(tmp_path)])


def test_epochs_follow_from_those_of_the_skills_which_one_by_one_must_be_said():
    def asked(*words):
        config = parse_train(["sac_disk", *words]).config
        return config.skills, config.epochs

    assert (asked(), asked("--skills", "6")) == ((4, 16), (6, 24))
    assert asked("--incremental.epochs", "3") == (4, 12)
    assert asked("--skills", "2", "--incremental.epochs", "3", "5") == (2, 8)


@pytest.mark.thorough
def test_verbs_show_each_skill(whole, capsys):
    assert run_verb(["evaluate", str(whole), "--episodes", "4"]) == 0
    shown = capsys.readouterr().out
    assert "skill 0" in shown
    assert "nearest skill" in shown
    found = json.loads((whole / "evaluation.json").read_text())
    apart = found["policies"]["ours"]["skill/hausdorff_min"]
    for row in found["skills"]:  # two, whose episodes are all alike
        assert row["nearest"] == pytest.approx(apart)
        assert row["spread"] == 0.0
    assert run_verb(["skills", str(whole), "--episodes", "2"]) == 0
    assert "no skill is best by the task's own reward: all earn 0.0" in capsys.readouterr().out
