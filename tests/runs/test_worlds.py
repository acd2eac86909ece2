"""The forgetting table: what skills do in each stage of a changing world."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from music_tf import load_run, recipes
from music_tf.cli import run_verb
from music_tf.cli.exits import guarded
from music_tf.config.changes import LEARNED, NOW
from music_tf.config.fields import with_fields
from music_tf.config.settings import CollectConfig, EvaluationConfig, ReplayConfig
from music_tf.config.world import World
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import Stopped
from music_tf.runs import loaded_run
from music_tf.runs.worlds import acting_now, measure_worlds
from music_tf.storage.worlds import COLUMNS, WorldsTable, read_worlds
from music_tf.training.evaluation import Evaluation
from tests.kit.saved_run import load_weights
from tests.kit.sessions import command_of, run_session, stop_asked
from tests.kit.sources import ROOT
from tests.runs.test_comparison import opposite

pytestmark = pytest.mark.thorough

SQUARE = "music_tf/Square-v0"
OPENS = json.dumps([{"set": {"wall": True}}, {"at": {"steps": 50}}])
"""In the middle of the second epoch of 40 steps, so for the third."""
SKILLS = recipes.resolve("sac_diayn", "laptop", SQUARE)
CONFIG = with_fields(
    dataclasses.replace(
        SKILLS,
        skills=2,
        epochs=3,
        cycles=2,
        workers=2,
        rollouts=2,
        updates=2,
        agent=dataclasses.replace(SKILLS.agent, hidden_sizes=(8,)),
        collect=CollectConfig(steps=5, updates_per_step=0.2),
        replay=ReplayConfig(batch_size=8, capacity=1000),
        evaluation=EvaluationConfig(episodes=2, world_episodes=3),
    ),
    {"env.changes": OPENS, "skill.hidden_sizes": (8,)},
)


def rows_of(path):
    with (path / "worlds.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(path, resume=False, **changes):
    config = dataclasses.replace(CONFIG, **changes)
    recipe = "sac_diayn" if config.skills > 1 else "sac"
    run_session(command_of(config, path, resume, recipe=recipe))
    return (path / "worlds.csv").read_bytes()


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    path = tmp_path_factory.mktemp("straight") / "run"
    return path, run(path)


def measured(config, policy, worlds):
    envs = LockstepEnvs(SQUARE, 2, config.env, world=config.world)
    evaluation = Evaluation(envs, config, Communicator(alone=True))
    return measure_worlds(evaluation, acting_now(config, policy, 1), worlds)


def test_each_skill_has_a_row_for_each_world_with_where_it_ends_there():
    rows = measured(CONFIG, opposite, range(2))
    assert [(row["world"], row["skill"], row["learned_in"], row["episodes"]) for row in rows] == [
        *((0, 0, 1, 3), (0, 1, 1, 3), (1, 0, 1, 3), (1, 1, 1, 3))
    ]
    ends = [(row["end_0"], row["end_1"]) for row in rows]
    assert ends == [(0.0, 10.0), (-10.0, -10.0), (10.0, 10.0), (-10.0, -10.0)]
    assert {(row["return"], row["length"], row["spread"]) for row in rows} == {(0.0, 10.0, 0.0)}
    to_the_start = np.hypot(10, 10)  # which every skill leaves, behind the wall or not
    np.testing.assert_allclose([row["hausdorff"] for row in rows], to_the_start)


def test_one_policy_has_no_number_and_many_columns_no_ends():
    config = dataclasses.replace(CONFIG, rewards=recipes.resolve("sac", "laptop", SQUARE).rewards)
    (row,) = measured(dataclasses.replace(config, skills=1), opposite, [1])
    assert "skill" not in row
    assert "hausdorff" not in row
    assert row["end_0"] == 10.0
    rows = measured(dataclasses.replace(config, world=World(descriptor=four)), opposite, [0])
    assert [("end_0" in r, r["hausdorff"], r["length"]) for r in rows] == [(False, 0.0, 10.0)] * 2


def four(environment):  # a descriptor of four numbers
    del environment
    return np.zeros(4)


def test_a_run_writes_them_when_its_world_changes_and_at_its_end(straight):
    rows = rows_of(straight[0])
    assert list(rows[0]) == list(COLUMNS)
    where = [
        tuple(row[name] for name in ("epoch", "env_steps", "stage", "next_stage", "world", "skill"))
        for row in rows
    ]
    each = [(world, skill) for world in "01" for skill in "01"]
    assert where == [
        *(("2", "80", "0", "1", *one) for one in each),
        *(("3", "120", "1", "1", *one) for one in each),
    ]
    assert [row["learned_in"] for row in rows] == ["0"] * 4 + ["1"] * 4
    assert all(float(row["end_0"]) <= 0.0 for row in rows if row["world"] == "0")
    assert [float(row["moved"]) for row in rows[:4]] == [0.0] * 4
    for now, first in zip(rows[4:], rows[:4], strict=True):
        apart = [float(now[name]) - float(first[name]) for name in ("end_0", "end_1")]
        assert float(now["moved"]) == pytest.approx(np.hypot(*apart))
    assert any(float(row["moved"]) > 0.0 for row in rows[4:])


def test_a_change_at_the_very_end_is_measured_once_and_a_run_may_go_on(straight, tmp_path):
    run(tmp_path / "run", epochs=2)
    found = [(r["stage"], r["next_stage"], r["learned_in"]) for r in rows_of(tmp_path / "run")]
    assert found == [("0", "1", "0")] * 4  # two skills in two worlds
    assert run(tmp_path / "run", resume=True) == straight[1]


@pytest.mark.parametrize("looks", [5, 7])
def test_it_is_the_same_to_the_byte_after_a_stop_around_a_change(looks, straight, tmp_path):
    with stop_asked(looks), pytest.raises(Stopped):
        run(tmp_path / "run")
    assert run(tmp_path / "run", resume=True) == straight[1]


def test_a_world_that_stays_as_it_is_has_no_table_and_no_stages(tmp_path, capsys):
    path = tmp_path / "run"
    with pytest.raises(FileNotFoundError):
        run(path, epochs=1, env=dataclasses.replace(CONFIG.env, changes="[]"))
    assert guarded(lambda: run_verb(["evaluate", str(path), "--stage", "0"])) == 2
    assert "--stage: the world of this run never changes" in capsys.readouterr().err


def test_a_full_disk_costs_a_warning_and_no_row(tmp_path, monkeypatch):
    told, row = [], {"epoch": 1, "stage": 0, "next_stage": 1, "world": 0, "end_0": 1.5}
    table = WorldsTable(tmp_path, lambda *given: told.append(given[0]))

    def full(path, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("music_tf.storage.worlds.replace_file", full)
        table.add([row])
    assert told == ["worlds"]
    table.add([row | {"epoch": 2, "end_0": 4.5}])
    assert [(one["epoch"], one["moved"]) for one in rows_of(tmp_path)] == [
        ("1", "0.0"),
        ("2", "3.0"),
    ]


def test_rows_that_are_cut_off_or_of_later_epochs_are_measured_again(tmp_path):
    table = WorldsTable(tmp_path, print)
    row = {"stage": 0, "next_stage": 1, "world": 0}
    table.add([row | {"epoch": epoch} for epoch in (1, 2, 3)])
    path = tmp_path / "worlds.csv"
    path.write_bytes(path.read_bytes() + b"1,x" + 15 * b"," + b"\n1" + 16 * b"," + b"\n1,20,0")
    assert [row["epoch"] for row in read_worlds(tmp_path)] == [1.0, 2.0, 3.0]
    again = WorldsTable(tmp_path, print)
    again.resume(2)
    assert [one["epoch"] for one in rows_of(tmp_path)] == ["1", "2"]
    again.add([row | {"epoch": 4}])
    assert [one["epoch"] for one in rows_of(tmp_path)] == ["1", "2", "4"]


def test_a_run_is_looked_at_in_the_stage_that_it_has_come_to_or_in_another(straight, capsys):
    run, found = straight[0], {}
    for words in ((), ("--stage", "0"), ("--stage", "1")):
        assert run_verb(["skills", str(run), "--episodes", "2", *words]) == 0
        name = "_".join(("skills", *(word.strip("-") for word in words)))
        found[words] = json.loads((run / f"{name}.json").read_text())
    now, first, second = found.values()
    assert [one["stage"] for one in (now, first, second)] == [1, 0, 1]
    assert now["each"] == second["each"]
    assert all(row["end"][0] <= 0.0 for row in first["each"])
    assert "in stage 0 of its world" in capsys.readouterr().out
    behind = load_run(run).evaluate(episodes=2, stage=0)
    assert (behind["stage"], behind["skills_where_learned"]) == (0, [])
    assert (run / "evaluation_stage_0.json").exists()
    assert run_verb(["play", str(run), "--out", str(run / "a.gif"), "--stage", "0"]) == 0


def test_what_is_measured_changes_no_training(straight, tmp_path):
    more = dataclasses.replace(CONFIG.evaluation, world_episodes=1)
    assert run(tmp_path / "run", evaluation=more) != straight[1]
    found, expected = (load_weights(p / "checkpoints")[0] for p in (tmp_path / "run", straight[0]))
    np.testing.assert_equal(found, expected)


@pytest.mark.parametrize("stage", ["2", "-1", "first"])
def test_a_stage_that_a_run_does_not_have_is_refused(straight, stage, capsys):
    words = ["skills", str(straight[0]), f"--stage={stage}"]
    assert guarded(lambda: run_verb(words)) == 2
    assert f"expected now, learned or a stage from 0 to 1, got '{stage}'" in capsys.readouterr().err


def test_every_column_is_explained_where_changing_worlds_are():
    page = (ROOT / "docs/environments.md").read_text()
    assert [name for name in COLUMNS if f"`{name}`" not in page] == []


# --- skills that rest once they are learned, in the worlds that they were learned in -------------

OPENS_FOR_A_SKILL = json.dumps([{"set": {"wall": True}}, {"at": {"skill": 1}}])
ONE_BY_ONE = with_fields(
    recipes.resolve("sac_disk"),
    {
        **{"skills": 2, "epochs": 2, "incremental.epochs": (1,), "incremental.collected": 2},
        **{"cycles": 2, "updates": 2, "collect.steps": 20, "agent.hidden_sizes": (8,)},
        **{"replay.batch_size": 16, "replay.capacity": 300, "disk.rows": 32},
        **{"disk.own_episodes": 3, "evaluation.episodes": 2, "env.changes": OPENS_FOR_A_SKILL},
    },
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):  # a run of two skills, and one that stopped between them
    folder = tmp_path_factory.mktemp("runs")
    for name, config in (
        ("whole", ONE_BY_ONE),
        ("half", with_fields(ONE_BY_ONE, {"max_minutes": 1e-9})),
    ):
        run_session(command_of(config, folder / name, recipe="sac_disk"))
    return folder


def right(observation, goal, skill, noise):
    del observation, goal, skill
    return np.ones_like(noise)


def test_each_skill_stays_in_the_table_as_it_was_and_says_where_it_was_learned(runs):
    rows = rows_of(runs / "whole")
    where = [tuple(row[n] for n in ("epoch", "world", "skill", "learned_in")) for row in rows]
    assert where == [
        *(("1", "0", "0", "0"), ("1", "1", "0", "0")),
        *(("2", world, *skill) for world in "01" for skill in (("0", "0"), ("1", "1"))),
    ]
    assert [row["moved"] for row in rows if row["skill"] == "0"] == ["0.0"] * 4


def test_skills_are_played_in_worlds_they_learned_in_and_between_two_in_the_next(runs):
    found = {}
    for stage in (LEARNED, NOW, "0"):
        loaded = loaded_run.load_run(runs / "whole", stage=stage)
        each = [loaded.evaluation.play(right, 2, skill) for skill in range(2)]
        found[stage] = [float(played.observation[0, -1, 0]) for played in each]
        assert loaded.evaluation.play(right, 4).observation[:, -1, 0].tolist() == found[stage] * 2
        loaded.envs.close()
    assert found == {LEARNED: [0.0, 10.0], NOW: [10.0, 10.0], "0": [0.0, 0.0]}
    loaded = loaded_run.load_run(runs / "half")
    assert (loaded.saved.skills, loaded.saved.worlds, loaded.evaluation.world) == (1, (0,), 1)
    loaded.envs.close()


def test_evaluate_measures_skills_in_the_world_as_it_is_and_where_they_were_learned(runs, capsys):
    run = runs / "whole"
    assert run_verb(["evaluate", str(run), "--episodes", "2"]) == 0
    assert "of each skill where it was learned" in " ".join(capsys.readouterr().out.split())
    found = json.loads((run / "evaluation.json").read_text())
    assert found["stage"] == 1
    assert [len(found[name]) for name in ("skills", "skills_where_learned")] == [2, 2]
    assert run_verb(["evaluate", str(run), "--episodes", "2", "--stage", "1"]) == 0
    assert json.loads((run / "evaluation_stage_1.json").read_text())["skills_where_learned"] == []
