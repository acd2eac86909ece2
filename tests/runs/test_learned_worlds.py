"""Skills that rest once they are learned, looked at in the worlds that they were learned in."""

import csv
import json

import numpy as np
import pytest

from music_tf.cli import run_verb
from music_tf.cli.exits import guarded
from music_tf.config.changes import LEARNED, NOW
from music_tf.config.fields import with_fields
from music_tf.recipes import resolve
from music_tf.runs.loaded_run import load_run
from tests.kit.sessions import command_of, run_session

pytestmark = pytest.mark.thorough

OPENS = json.dumps([{"set": {"wall": True}}, {"at": {"skill": 1}}])
CONFIG = with_fields(
    resolve("sac_disk"),
    {
        **{"skills": 2, "epochs": 2, "incremental.epochs": (1,), "incremental.collected": 2},
        **{"cycles": 2, "updates": 2, "collect.steps": 20, "agent.hidden_sizes": (8,)},
        **{"replay.batch_size": 16, "replay.capacity": 300, "disk.rows": 32},
        **{"disk.own_episodes": 3, "evaluation.episodes": 2, "env.changes": OPENS},
    },
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):  # a run of two skills, and one that stopped between them
    folder = tmp_path_factory.mktemp("runs")
    for name, config in (("whole", CONFIG), ("half", with_fields(CONFIG, {"max_minutes": 1e-9}))):
        run_session(command_of(config, folder / name, recipe="sac_disk"))
    return folder


def table(path):
    with (path / "worlds.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def right(observation, goal, skill, noise):
    del observation, goal, skill
    return np.ones_like(noise)


def test_each_skill_stays_in_the_table_as_it_was_and_says_where_it_was_learned(runs):
    rows = table(runs / "whole")
    where = [tuple(row[n] for n in ("epoch", "world", "skill", "learned_in")) for row in rows]
    assert where == [
        *(("1", "0", "0", "0"), ("1", "1", "0", "0")),
        *(("2", world, *skill) for world in "01" for skill in (("0", "0"), ("1", "1"))),
    ]
    assert [row["moved"] for row in rows if row["skill"] == "0"] == ["0.0"] * 4


def test_skills_are_played_in_worlds_they_learned_in_and_between_two_in_the_next(runs):
    found = {}
    for stage in (LEARNED, NOW, "0"):
        loaded = load_run(runs / "whole", stage=stage)
        each = [loaded.evaluation.play(right, 2, skill) for skill in range(2)]
        found[stage] = [float(played.observation[0, -1, 0]) for played in each]
        assert loaded.evaluation.play(right, 4).observation[:, -1, 0].tolist() == found[stage] * 2
        loaded.envs.close()
    assert found == {LEARNED: [0.0, 10.0], NOW: [10.0, 10.0], "0": [0.0, 0.0]}
    loaded = load_run(runs / "half")
    assert (loaded.saved.skills, loaded.saved.worlds, loaded.evaluation.world) == (1, (0,), 1)
    loaded.envs.close()


def test_skills_and_films_take_learned_now_and_numbers(runs, capsys):
    run = runs / "whole"
    assert run_verb(["skills", str(run), "--episodes", "1", "--stage", "learned"]) == 0
    assert json.loads((run / "skills_stage_learned.json").read_text())["stage"] == [0, 1]
    assert "where each skill was learned" in capsys.readouterr().out
    assert run_verb(["play", str(run), "--episodes", "1", "--out", str(run / "a.gif")]) == 0


def test_evaluate_measures_skills_in_the_world_as_it_is_and_where_they_were_learned(runs, capsys):
    run = runs / "whole"
    assert run_verb(["evaluate", str(run), "--episodes", "2"]) == 0
    assert "of each skill where it was learned" in " ".join(capsys.readouterr().out.split())
    found = json.loads((run / "evaluation.json").read_text())
    assert found["stage"] == 1
    assert [len(found[name]) for name in ("skills", "skills_where_learned")] == [2, 2]
    assert run_verb(["evaluate", str(run), "--episodes", "2", "--stage", "1"]) == 0
    assert json.loads((run / "evaluation_stage_1.json").read_text())["skills_where_learned"] == []


def test_worlds_that_do_not_fit_the_stages_of_a_run_are_refused(runs, capsys):
    path = runs / "half"
    config = json.loads((path / "config.json").read_text())
    config["config"]["env"]["changes"] = "[]"
    (path / "config.json").write_text(json.dumps(config))
    assert guarded(lambda: run_verb(["skills", str(path), "--stage", "0"])) == 2
    assert "--stage: the world of this run never changes" in capsys.readouterr().err
