"""An environment that nobody knows is described by its user, in numbers and names alone."""

import dataclasses
import json

import numpy as np
import pytest

from music_tf.cli import run_verb
from music_tf.config import world as worlds
from music_tf.config.world import World, register_world
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.measures.behaviour import summarize
from music_tf.reading.command import as_typed, parse_train
from music_tf.rollout import Conditions, play
from music_tf.runs.inspection import measure
from music_tf.runs.loaded_run import load_run
from tests.kit.arm import ARM
from tests.kit.cases import cases
from tests.kit.drawn import sample_transitions
from tests.kit.saved_run import rows_of
from tests.kit.sessions import run_session
from tests.kit.small import EVERYTHING, HER, OPTIONS, PUSH, go_on, trainer_of
from tests.kit.tidying import COLUMNS, TIDYING, TYPED

SMALL = ("--epochs", "1", *as_typed(OPTIONS | {"env_id": TIDYING}))
OBJECT_METRICS = {
    f"eval/object_{name}"
    for name in ("moved_rate", "displacement_m", "on_support_rate", "comotion_m", "coverage")
}
DISC = "tests.kit.tidying:disc"
TOLD = {
    *("eval/information", "eval/information_random", "music/paid_heldout", "music/paid_random"),
    *("music/bound_heldout", "music/bound_random"),
}


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(worlds, "_REGISTERED", {})
    monkeypatch.setattr(worlds, "_TRUSTED", set())


def shove(point, disc):
    """The policy that goes for the disc."""

    def act(observation, goal, skill, noise):
        towards = observation[:, disc] - observation[:, point]
        return np.concatenate([5.0 * towards, np.zeros_like(towards[:, :1])], axis=1)

    return act


def behaviour(env_id, policy, world=None):
    envs = LockstepEnvs(env_id, 6, world=world)
    played = play(envs, policy, Conditions(np.arange(6), None, np.ones([6, 1], np.float32)), None)
    return summarize(played.observation, played.length, envs.info)


def test_object_metrics_need_nothing_but_numbers_of_columns():
    known = behaviour(PUSH, shove([0, 1], [3, 4]))
    assert set(known) >= OBJECT_METRICS
    assert known["eval/object_moved_rate"] > 0.5
    policy = shove([5, 6], [2, 3])
    assert (behaviour(TIDYING, policy, World(**COLUMNS)), behaviour(TIDYING, policy)) == (known, {})
    register_world("Tidying-v0", World(**COLUMNS))
    assert behaviour(TIDYING, policy) == known


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["typed", "registered"])
def test_a_run_shows_them_and_another_process_knows_them(how, tmp_path, monkeypatch):
    if how == "registered":
        register_world("Tidying-v0", World(**COLUMNS))
    run = tmp_path / "run"
    words = TYPED if how == "typed" else []
    run_session(parse_train(["ddpg_music", *SMALL, "--run-dir", str(run), *words]))
    (row,) = rows_of(run)
    assert all(row[name] for name in OBJECT_METRICS)
    assert row["rollout/object_coverage"]
    assert float(row["music/bound"]) != 0.0
    stored = json.loads((run / "config.json").read_text())["config"]["world"]
    assert {name: tuple(own) for name, own in stored.items() if own} == COLUMNS
    monkeypatch.setattr(worlds, "_REGISTERED", {})
    loaded = load_run(run, TIDYING)
    assert set(measure(loaded, 2)["policies"]["ours"]) >= OBJECT_METRICS
    assert (loaded.envs.info.object, loaded.envs.info.support.high) == ((2, 3, 4), (1.0, 1.0))


@pytest.mark.thorough
@cases(
    "columns",
    *("", "--world.object 6 7 --world.gripper 4 5", "--world.object 6 --world.gripper 4"),
    ids=["split alone", "plane", "line"],
)
def test_an_arm_of_a_user_is_measured_and_drawn(columns, tmp_path):
    columns = columns.split()
    words = ["ddpg_music", *SMALL, "--world.agent", "4", "5", "--world.surrounding", "6", "7"]
    words[words.index(TIDYING)] = ARM
    run = tmp_path / "run"
    run_session(parse_train([*words, *columns, "--run-dir", str(run)]))
    (row,) = rows_of(run)
    assert all(row[name] for name in TOLD)
    wanted = {"rollout/object_coverage", *OBJECT_METRICS} - {"eval/object_on_support_rate"}
    assert {name for name in row if "object" in name} == (wanted if columns else set())
    assert run_verb(["evaluate", str(run), "--episodes", "3", "--full", "--allow-import"]) == 0
    found = json.loads((run / "evaluation.json").read_text())
    assert {"eval/information", "music/paid_heldout", "music/bound_heldout"} <= set(
        found["policies"]["random"]
    )
    assert set(found["coverage"].get("ours", {})) == {
        f"coverage/{name}"
        for name in ("displacement_cells", "object_cells", "direction_entropy")
        if columns and (name != "direction_entropy" or "7" in columns[:3])
    }
    assert bool(list(run.glob("videos/paths_*.png"))) == bool(columns)
    for verb in (["report"], ["play", "--episodes", "1"]):
        out = str(tmp_path / ("film.gif" if "play" in verb else "page.html"))
        assert run_verb([*verb, str(run), "--out", out, "--allow-import"]) == 0


@pytest.mark.thorough
def test_four_ways_to_name_the_disc_tell_skills_apart_alike():
    skill = dataclasses.replace(EVERYTHING.rewards["skill"], normalize_inputs=True)
    rewards = {**EVERYTHING.rewards, "skill": skill}

    def trained(descriptor):
        world = World(**COLUMNS, descriptor=descriptor)
        worlds.trust(world.functions())
        trainer = trainer_of(EVERYTHING, env_id=TIDYING, rewards=rewards, world=world)
        metrics = trainer.run_epoch(go_on)
        scale = trainer.shared()["scales/discriminator"]
        return trainer.weights(), scale, metrics["skill/accuracy_heldout"]

    first = trained(())  # the surroundings
    for descriptor in ((2, 3, 4), "achieved_goal", DISC):
        np.testing.assert_equal(trained(descriptor), first)
    weights, *_ = trained("observation")
    assert weights["parameters/discriminator/hidden_0/kernel"].shape == (8, 8)


def test_a_reward_that_reads_info_has_it_under_other_goals_too():
    trainer = trainer_of(HER, env_id=TIDYING, world=World(**COLUMNS))
    trainer.run_epoch(go_on)
    assert dict(trainer.envs.spec.extras) == {"weight": 1}
    batch = sample_transitions(trainer.replay, 20, 0)
    weight = batch.next_extras["weight"][..., 0]
    assert len(np.unique(weight)) > 20  # 1 + the step, as `info` said
    assert set(np.unique(batch.reward + weight).tolist()) > {0.0}  # met goals pay 0
    np.testing.assert_array_equal((batch.reward + weight)[batch.reward < 0], 0.0)
    assert (batch.reward == 0).any()


@cases(
    ("world", "parts"),
    ({"agent": (0, 8), "surrounding": (1,)}, ["world.agent", "0..7", "(0, 8)"]),
    ({"agent": (0,), "surrounding": (-1,)}, ["world.surrounding", "0..7", "(-1,)"]),
    ({"object": (6, 7, 8)}, ["world.object", "0..7"]),
    ({"gripper": (6, 7, 8)}, ["world.gripper", "0..7"]),
    ({"arm": (0, 1, 3)}, ["world.arm", "numbers of an action in 0..2", "(0, 1, 3)"]),
    ({"descriptor": (8,)}, ["world.descriptor", "0..7"]),
    ({"support": COLUMNS["support"]}, ["world.support", "world.object"]),
    (
        {"object": (2, 3), "support": COLUMNS["support"]},
        ["world.support", "has a height", "columns of x, y and z, got (2, 3)"],
    ),
    (
        {"object": (2, 3), "gripper": (5, 6, 7)},
        ["world.gripper", "as many columns as world.object has (2, 3)", "got (5, 6, 7)"],
    ),
    ({"descriptor": "tests.kit.tidying:pair"}, ["world.descriptor", "one axis", "(2, 2)"]),
    ({"descriptor": "tests.kit.tidying:broken"}, ["tidying:broken fails", "'sensors'"]),
    ({"extras": ("at=tests.kit.tidying:pair",)}, ["world.extras", "tidying:pair", "(2, 2)"]),
    ({"extras": ("colour",)}, ["world.extras", "info['colour']", "got str"]),
    ({"extras": ("wieght",)}, ["world.extras", "is_success, weight, colour", "mean weight?"]),
    ({"extras": (f"weight={DISC}",)}, ["rewards read info['weight']", "expected another name"]),
    ids=str,
)
def test_a_world_that_does_not_fit_is_refused(world, parts):
    given = World(**world)
    worlds.trust(given.functions())
    with pytest.raises(UsageError) as caught:
        LockstepEnvs(TIDYING, 1, world=given)
    assert [part for part in parts if part not in str(caught.value)] == []
    assert len(str(caught.value).splitlines()) <= 10


def test_the_achieved_goal_needs_goals():
    with pytest.raises(UsageError, match="achieved_goal needs goals, and Pendulum-v1 has none"):
        LockstepEnvs("Pendulum-v1", 1, world=World(descriptor="achieved_goal"))
