import os
from pathlib import Path

import pytest

from music_tf import recipes
from music_tf.config.settings import Config
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.reading.command import parse_train
from music_tf.storage.run_directory import (
    link_latest,
    missing_folders,
    new_directory,
    prepare_directory,
    remove_empty,
)
from music_tf.storage.run_paths import find_agent, find_run, find_source, place_of
from tests.kit.cases import cases
from tests.kit.saved_run import write_config


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


@cases(
    ("recipe", "env_id", "folder"),
    ("sac", "music_tf/PointPush-v0", "music_tf_PointPush-v0/sac"),
    ("tests.kit.guessing:guessing", "some.where:Task-v0", "Task-v0/tests.kit.guessing.guessing"),
)
def test_a_run_gets_a_place_of_its_own_without_a_colon(root, monkeypatch, recipe, env_id, folder):
    monkeypatch.setattr(recipes, "_TRUSTED", set())
    command = parse_train([recipe, "--seed", "3", "--env-id", env_id])
    first, second = new_directory(command), new_directory(command)
    assert first.parent == second.parent == root / folder
    assert first.name.startswith("seed3-")
    assert first != second
    assert first.is_dir()
    assert second.is_dir()


def test_a_file_about_one_run_goes_into_it_and_one_about_several_under_the_root(root, tmp_path):
    first, copy = root / "Task/first", tmp_path / "copies" / "seed0.csv"
    write_config(first, Config())
    assert place_of("curves.png", [first]) == first / "curves.png"
    assert place_of("curves.png", [first / "metrics.csv"]) == first / "curves.png"
    for runs in ([first, root / "Task/second"], [copy], [copy, first]):
        assert place_of("curves.png", runs) == root / "curves.png"


def begun(*words):  # the directory of a run that nothing has refused
    directory = prepare_directory(parse_train(list(words)))
    link_latest(directory)
    return directory


def test_latest_is_a_relative_link_to_the_newest_run_that_takes_no_run_along(root):
    first = begun("sac")
    second = begun("ddpg")
    link = root / "latest"
    assert not os.path.isabs(os.readlink(link))
    assert link.resolve() == second.resolve() != first.resolve()
    assert sorted(entry.name for entry in root.iterdir()) == ["FetchPush-v4", "latest"]
    first = begun("sac")
    resumed = begun("sac", "--run-dir", str(root / "latest"))
    (first / "config.json").touch()
    found = find_run("latest")
    begun("ddpg")
    assert found.resolve() == resumed.resolve() == first.resolve()
    newest = link.resolve()
    begun("ddpg", "--run-dir", str(root / "tune/FetchPush-v4_ddpg/trial_0000"))
    assert link.resolve() == newest


@pytest.mark.parametrize("text", ["latest", "Task/run"])
def test_a_run_to_resume_may_be_named_as_every_verb_names_it(root, text):
    write_config(root / "Task/run", parse_train(["sac", "--seed", "5"]).config, "sac")
    link_latest(root / "Task/run")
    command = parse_train(["--run-dir", text, "--resume"])
    assert (command.config.seed, prepare_directory(command)) == (5, root / "Task/run")


def test_a_new_run_does_not_go_into_the_latest_one(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_config(root / "Task/run", parse_train(["sac"]).config, "sac")
    link_latest(root / "Task/run")
    with pytest.raises(UsageError, match="already holds a run\nadd --resume"):
        prepare_directory(parse_train(["sac", "--run-dir", "latest"]))
    assert prepare_directory(parse_train(["sac", "--run-dir", "Task/run"])) == tmp_path / "Task/run"


def test_latest_does_not_leave_the_root_and_a_folder_of_that_name_is_left_alone(root, tmp_path):
    begun("sac", "--run-dir", str(tmp_path / "elsewhere"))
    assert not (root / "latest").exists()
    assert (tmp_path / "elsewhere").is_dir()
    (root / "latest" / "mine").mkdir(parents=True)
    begun("sac")
    assert (root / "latest" / "mine").is_dir()
    assert sorted(entry.name for entry in root.iterdir()) == ["FetchPush-v4", "latest"]


@pytest.mark.parametrize("place", ["file/run", "x" * 300, "a/" * 3000])
def test_a_place_that_the_system_refuses_is_a_fault_of_the_environment(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="RUN: expected a run directory"):
        find_run(place)
    with pytest.raises(UsageError, match=r"--init-from: expected a run"):
        find_source(place)
    with pytest.raises(EnvironmentFault, match=r"cannot be created or read \((File n|N)"):
        prepare_directory(parse_train(["sac", "--run-dir", str(tmp_path / place)]))


def test_runs_are_found_by_path_and_by_their_place_under_the_root(root, tmp_path):
    run = root / "Task" / "run"
    run.mkdir(parents=True)
    (run / "config.json").touch()
    link_latest(run)
    assert (find_run(str(run)), find_run("latest").resolve()) == (run, run.resolve())
    for text, told in ((str(tmp_path), "latest"), ("", "''")):
        with pytest.raises(UsageError, match=told):
            find_run(text)


def test_a_source_is_a_run_or_a_folder_of_weights(root, tmp_path):
    run = begun("sac")
    (run / "config.json").touch()
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "manifest.json").touch()
    assert find_source("latest") == find_source(str(run)) == run / "checkpoints"
    assert find_source(str(weights)) == weights
    for nothing in ("", str(tmp_path), "nowhere"):
        with pytest.raises(UsageError, match=r"--init-from: expected a run directory"):
            find_source(nothing)


def test_what_was_to_be_replaced_is_found_until_something_has_taken_its_place(tmp_path):
    for name in ("weights.replaced", "weights"):
        folder = tmp_path / name
        folder.mkdir()
        for file in ("manifest.json", "config.json"):
            (folder / file).touch()
        for find in (find_run, find_agent, find_source):
            assert find(str(tmp_path / "weights")) == folder


def test_weights_of_the_package_go_by_their_name_unless_a_path_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_source("push").joinpath("manifest.json").is_file()
    told = r"--init-from: .*got 'pusch'\n.*\nagents .*: ant, .*, reach_push\ndid you mean push"
    with pytest.raises(UsageError, match=told):
        find_source("pusch")
    (tmp_path / "push").mkdir()
    (tmp_path / "push/manifest.json").touch()
    assert find_source("push") == Path("push")


def test_folders_that_a_refused_run_has_made_can_be_taken_away_again(root, tmp_path):
    (tmp_path / "mine").mkdir()
    for words in (["sac"], ["sac", "--run-dir", str(tmp_path / "mine/a/b")]):
        command = parse_train(words)
        missing = missing_folders(command)
        remove_empty([prepare_directory(command), *missing])
        assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]
        assert not list((tmp_path / "mine").iterdir())
    kept = prepare_directory(parse_train(["sac"]))
    missing = missing_folders(parse_train(["ddpg"]))
    remove_empty([prepare_directory(parse_train(["ddpg"])), *missing])
    assert [entry.name for entry in (root / "FetchPush-v4").iterdir()] == ["sac"]
    assert kept.is_dir()
