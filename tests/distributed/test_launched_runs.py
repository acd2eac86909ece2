import csv
import json

import numpy as np
import pytest

from tests.kit.cases import cases
from tests.kit.jobs import USAGE, Job, assert_same_run, resume, rows_of, run
from tests.kit.saved_run import load_weights

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

WORDS = """
--env-id music_tf/PointPush-v0 --cycles 4 --updates 3 --workers 2 --rollouts 1
--agent.hidden-sizes 16 16 --replay.batch-size 16 --evaluation.episodes 4 --evaluation.every 12
"""


def train(path, recipe, *more):
    """The words of a small run; that of MUSIC has 12 epochs unless `more` says otherwise."""
    words = ["train", recipe, *WORDS.split(), "--epochs", "1", *map(str, more)]
    return [*words, "--run-dir", str(path)]


def music(path):
    return train(path, "ddpg_music", "--epochs", 12, "--music.trajectories", 8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("launched") / "run"
    return path, run(music(path), path, real=True).out


def test_a_launched_run_leaves_everything(whole):
    path, out = whole
    config = json.loads((path / "config.json").read_text())
    assert (config["recipe"], config["config"]["workers"]) == ("ddpg_music", 2)
    rows = rows_of(path)
    assert [row["epoch"] for row in rows] == [str(epoch) for epoch in range(1, 13)]
    # 12 epochs of 4 cycles: 2 workers, one episode of 30 steps each, 3 updates
    assert (rows[-1]["time/env_steps"], rows[-1]["time/updates"]) == ("2880", "144")
    assert len(list(path.glob("events.out.tfevents.*"))) == 1
    assert (path / "checkpoints/epoch_000012/manifest.json").is_file()
    shards = {entry.name for entry in (path / "checkpoints/replay").iterdir()}
    assert shards == {"worker_0000", "worker_0001"}
    summary = json.loads((path / "summary.json").read_text())
    assert (summary["ranks"], summary["epochs"], summary["env_steps"]) == (2, 12, 2880)
    assert "music/bound_heldout" in summary["metrics"]
    assert {entry.name for entry in (path / "logs").iterdir()} >= {"rank_0000.log", "rank_0001.log"}
    assert out.count("2 processes on ") == 1


def test_a_run_that_sigusr1_stopped_ends_bit_equal_to_one_that_went_through(whole, tmp_path):
    path = tmp_path / "run"
    with Job(music(path), path, real=True) as job:
        ended = job.stop_after(2)
    assert ended.err.count("stopped and saved after") == 1
    assert "Traceback" not in ended.err
    assert 2 <= len(rows_of(path)) < 12
    assert not (path / "summary.json").exists()
    resume(path, real=True)
    assert_same_run(path, whole[0])
    arrays = load_weights(path / "checkpoints")[0]
    assert any(name.startswith("adam_second/statistics/") for name in arrays)


def test_two_ranks_start_from_a_run_of_two_ranks(whole, tmp_path):
    path, source = tmp_path / "run", whole[0]
    run(train(path, "ddpg_music_finetune_her", "--init-from", source), path, real=True)
    before, _ = load_weights(source / "checkpoints")
    first, _ = load_weights(path / "checkpoints/epoch_000000")
    taken = [n for n in first if n.startswith(("parameters/", "targets/", "normalizer/observ"))]
    # actor and two critics of three layers, their targets, the running statistics
    assert len(taken) == 2 * 3 * 6 + 1
    for name in taken:
        np.testing.assert_array_equal(first[name], before[name], err_msg=name)
    # equal on both ranks too: each epoch compares their parameters bit by bit
    assert json.loads((path / "summary.json").read_text())["updates"] == 12


def test_two_ranks_have_as_many_skills_as_the_run_that_they_start_from(tmp_path):
    words = "--env-id music_tf/UnitBox-v0 --cycles 1 --collect.steps 60 --updates 1 --epochs 1"
    words += " --agent.hidden-sizes 8 8 --evaluation.episodes 3"
    for path, recipe, more in (
        (tmp_path / "skills", "sac_diayn", "--workers 1 --skills 3 --collect.random-steps 10"),
        (tmp_path / "tuned", "sac_diayn_finetune", f"--workers 2 --init-from {tmp_path}/skills"),
    ):
        options = [*words.split(), *more.split(), "--run-dir", str(path)]
        how = "alone" if recipe == "sac_diayn" else "launch"
        run(["train", recipe, *options], path, how=how, real=True)
        assert json.loads((path / "config.json").read_text())["config"]["skills"] == 3
    before, _ = load_weights(tmp_path / "skills/checkpoints")
    first, _ = load_weights(path / "checkpoints/epoch_000000")
    name = "parameters/actor/hidden_0/kernel"
    np.testing.assert_array_equal(first[name], before[name])
    # equal on both ranks too: each epoch compares their parameters bit by bit
    assert json.loads((path / "summary.json").read_text())["updates"] > 0


@cases(
    ("recipe", "more", "text"),
    (
        "ddpg_her",
        ["--agent.hidden-sizes", 8, 8, "--init-from", "SOURCE", "--parts", "actor"],
        "--parts actor: actor/",
    ),
    (
        "ddpg_music_reward",
        ["--music.trajectories", 8, "--init-from", "NOWHERE"],
        "--init-from: expected a run directory",
    ),
    ("ddpg_music", ["--workers", 3], "expected a multiple of the 2 ranks, got 3"),
    ids=["what does not fit", "no source", "workers that ranks cannot share"],
)
def test_what_is_refused_is_said_once_and_nothing_is_written(whole, tmp_path, recipe, more, text):
    path, places = tmp_path / "run", {"SOURCE": whole[0], "NOWHERE": tmp_path}
    words = train(path, recipe, *(places.get(w, w) for w in more))
    ended = run(words, path, code=USAGE, real=True)
    assert ended.err.count(text) == 1
    assert "Traceback" not in ended.err
    assert not path.exists()


def test_two_ranks_change_the_world_as_one_does(tmp_path):
    changes = '[{"set": {"wall": true}}, {"at": {"steps": 30}, "set": {"wall": false}}]'
    words = "--env-id music_tf/Square-v0 --skills 2 --workers 2 --cycles 2 --epochs 3 --updates 1"
    words += " --collect.steps 10 --collect.random-steps 60 --agent.hidden-sizes 8 8"
    words += " --skill.hidden-sizes 8 --evaluation.episodes 2 --evaluation.world-episodes 2"
    tables = []
    for how in ("alone", "launch"):
        path = tmp_path / how
        line = ["train", "sac_diayn", *words.split(), "--env.changes", changes]
        run([*line, "--run-dir", str(path)], path, how=how, real=True)
        with (path / "worlds.csv").open() as file:
            tables.append([{n: float(v or 0) for n, v in r.items()} for r in csv.DictReader(file)])
    alone, launched = tables
    stages = [(row["epoch"], row["stage"], row["next_stage"], row["world"]) for row in alone]
    assert stages == [(1, 0, 1, w) for w in (0, 0, 1, 1)] + [(3, 1, 1, w) for w in (0, 0, 1, 1)]
    for one, other in zip(alone, launched, strict=True):
        np.testing.assert_allclose(list(other.values()), list(one.values()), atol=1e-3)
