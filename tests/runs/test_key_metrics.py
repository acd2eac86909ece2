"""What a run is told by follows from what it is paid for, and from what its world knows."""

from dataclasses import replace

import pytest

from music_tf import recipes
from music_tf.config.conditioning import ConditionConfig
from music_tf.config.fields import with_fields
from music_tf.config.key_metrics import KeyMetric
from music_tf.config.world import World
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import lookup
from music_tf.recipes.distance import DistanceConfig
from music_tf.runs.inspection import evaluate_run
from music_tf.runs.key_metrics import explanation, key_metrics, shortfalls, verdict, without_unpaid
from music_tf.runs.loaded_run import load_run
from music_tf.storage.metrics import METRICS
from music_tf.tools.report import write_report
from music_tf.training.evaluation import Comparison
from tests.kit.arm import ARM, DISC, TIP
from tests.kit.cases import cases
from tests.kit.sessions import command_of, run_session
from tests.kit.small import SAC, paying

PUSH = "FetchPush-v4"


def told(recipe, env_id=PUSH, goals=True, info=None, **changes):
    """Labels and metrics of what a recipe is told by, in their order."""
    config = with_fields(recipes.resolve(recipe, env_id=env_id), changes)
    info = info or lookup(env_id)
    found = key_metrics(config, info, goals)
    return {one.label: one for one in found}


@cases(
    ("recipe", "env_id", "goals", "labels"),
    ("ddpg_music", PUSH, True, ["co-motion", "I(dx; dy)", "pay", "bound"]),
    ("ddpg_music", "HandManipulateBlock-v1", True, ["I(dx; dy)", "pay", "bound"]),
    ("ddpg_joint_motion", PUSH, True, ["co-motion", "I(dx; dy)", "pay for joint_motion"]),
    ("ddpg_her", PUSH, True, ["success", "distance", "moved"]),
    (*("ddpg_her_fast", PUSH, True), ["success", "distance", "moved", "I(dx; dy)", "pay", "bound"]),
    ("sac", "Hopper-v5", False, ["return"]),
    ("sac_diayn", "Hopper-v5", False, ["accuracy"]),
    ("sac_diayn", PUSH, True, ["co-motion", "accuracy"]),
    ("sac_dads", "Ant-v5", False, ["skill reward"]),
    ("sac_metra", PUSH, True, ["co-motion", "aligned", "followed", "speed", "pay for distance"]),
    ("sac_place", PUSH, True, ["co-motion", "aligned", "speed", "pay for distance"]),
    ("sac_lsd", "Hopper-v5", False, ["aligned", "pay for distance"]),
    ("sac_disk", "music_tf/Square-v0", False, ["apart"]),
    ("sac_pearl", "music_tf/PointRobot-v0", False, ["prior", "after 2", "after 6"]),
    ("sac_disk_music", "FetchPickAndPlace-v4", True, ["apart"]),
)
def test_a_run_is_told_by_what_it_is_paid_for(recipe, env_id, goals, labels):
    found = told(recipe, env_id, goals)
    assert list(found) == labels
    assert {one.metric for one in found.values()} <= set(METRICS)
    assert {one.random for one in found.values()} - {""} <= set(METRICS)


@cases(
    ("row", "text"),
    (
        {"distance/resting": 1.0, "distance/followed": 0.2299},
        "the embedding has not learned: conditions are followed to 0.23, not above "
        "distance.rest_until 0.25; what acts is its initial copy of the place",
    ),
    ({"distance/resting": 0.975, "distance/followed": 0.2299}, ""),  # it began in this epoch
    ({"distance/resting": 0.0, "distance/followed": 0.2299}, ""),  # followed less well since
    ({"distance/followed": 0.2299}, ""),  # stored by an older version
)
def test_an_embedding_that_rested_to_the_end_is_named(row, text):
    assert shortfalls(recipes.resolve("sac_metra"), row) == [text] * bool(text)


@pytest.mark.thorough
def test_train_evaluate_and_report_say_that_an_embedding_has_not_learned(tmp_path, capsys):
    moving = DistanceConfig(columns=(3, 4), hidden_sizes=(), rest_until=0.99)
    sphere = ConditionConfig(kind="sphere", size=2)
    config = paying(replace(SAC, epochs=1), moving, condition=sphere, goals="zero")
    run_session(command_of(config, tmp_path, recipe="sac_metra", arguments=("sac_metra",)))
    evaluate_run(load_run(tmp_path), 1)
    write_report([tmp_path], tmp_path / "page.html")
    text = "not above distance.rest_until 0.99; what acts is its initial copy of the pl"
    page = (tmp_path / "page.html").read_text("utf-8")
    assert capsys.readouterr().out.count(text) + page.count(text) == 3


def test_continuous_skills_are_told_by_a_likelihood_without_chance():
    box = {"condition.kind": "box", "condition.size": 2, "skills": 1}
    found = told("sac_diayn", "Hopper-v5", goals=False, **box)
    assert [(one.metric, one.chance) for one in found.values()] == [
        ("skill/log_likelihood_heldout", None)
    ]


def test_metres_are_named_and_control_has_a_number_where_they_are_known_alone():
    known = told("ddpg_music")["co-motion"]
    assert (known.unit, known.scale) == ("m", "0.2 m is control")
    toy = told("ddpg_music", "music_tf/PointPush-v0")["co-motion"]
    assert (toy.unit, toy.scale) == ("", "path of the object with the gripper")


METRICS_OF = {
    **{"co-motion": "eval/object_comotion_m", "success": "eval/success_rate"},
    **{"return": "eval/return", "apart": "skill/hausdorff_mean", "after 6": "adapt/return_last"},
}


@cases(
    ("recipe", "name", "ours", "random", "said"),
    ("ddpg_music", "co-motion", 0.119, 0.002, "0.12 m (random 0.002): no control yet (0.2)"),
    ("ddpg_music", "co-motion", 0.2, 0.0, "0.20 m (random 0.000): control (0.2)"),
    ("ddpg_her", "success", 0.89, 0.09, "0.89 (random 0.090): not yet 0.9"),
    ("ddpg_her", "success", 0.9, 0.09, "0.90 (random 0.090): at least 0.9"),
    # 2.262 standard errors of 10: 22.62
    ("sac", "return", 23.0, 0.0, "23.00 (random 0.000): above random"),
    ("sac", "return", 22.0, 0.0, "22.00 (random 0.000): not distinguishable from random"),
    ("sac", "return", -23.0, 0.0, "-23.00 (random 0.000): below random"),
    ("sac_disk", "apart", 0.5, 0.3, "0.50 (random 0.30)"),
    ("sac_pearl", "after 6", 1.0, 0.3, "1.00 (random 0.30)"),
    ("sac_dads", "return", 1.0, 0.0, ""),
)
def test_the_end_is_judged_by_a_known_level_or_beside_random(recipe, name, ours, random, said):
    env_id = {"sac": "Hopper-v5", "sac_dads": "Ant-v5", "sac_pearl": "music_tf/PointRobot-v0"}
    found = list(told(recipe, env_id.get(recipe, PUSH), env_id.get(recipe) is None).values())
    rows = {"ours": {METRICS_OF[name]: ours}, "random": {METRICS_OF[name]: random}}
    compared = Comparison(rows, 100, "", {"eval/return": 10.0})
    assert verdict(found, compared) == [f"{name} {said}"] * bool(said)


def test_lines_say_what_to_follow_with_words_for_scale_and_units():
    recognised = told("sac_diayn", "Hopper-v5", goals=False, skills=4)["accuracy"]
    assert recognised.explained == "share of steps whose skill is recognised; chance is 0.25"
    pay = KeyMetric("a", "pay", random="b", scale="a step")
    motion = KeyMetric("c", "co-motion", "m", scale="0.2 m is control")
    path = KeyMetric("d", "path", "m", scale="of the object")
    assert explanation([pay, motion, path], "in brackets random actions") == [
        "the run learns if these rise; in brackets random actions:",
        "  pay        a step",
        "  co-motion  0.2 m is control",
        "  path       of the object, in m",
    ]
    assert explanation([]) == []


def test_a_table_leaves_out_a_return_that_nothing_pays_and_nobody_earns():
    rows = {
        name: {"eval/return": 0.0, "eval/length": 50.0, "eval/information": number}
        for name, number in (("ours", 0.9), ("random", 0.0))
    }
    music, task = recipes.resolve("ddpg_music"), recipes.resolve("ddpg")
    assert without_unpaid(rows, music) == {
        "ours": {"eval/information": 0.9},
        "random": {"eval/information": 0.0},
    }
    assert without_unpaid(rows, task) == rows  # it is what such a run is about
    earned = rows | {"ours": rows["ours"] | {"eval/return": -3.0}}
    assert without_unpaid(earned, music) == earned
    shorter = rows | {"ours": rows["ours"] | {"eval/length": 20.0}}
    assert without_unpaid(shorter, music)["ours"] == {"eval/length": 20.0, "eval/information": 0.9}


def test_the_arm_of_a_user_is_told_by_all_that_music_has():
    envs = LockstepEnvs(ARM, 1, world=World(agent=TIP, surrounding=DISC, object=DISC, gripper=TIP))
    assert (envs.info.object, envs.info.gripper, envs.info.unit) == (DISC, TIP, "")
    found = told("ddpg_music", ARM, goals=False, info=envs.info)
    assert list(found) == ["co-motion", "I(dx; dy)", "pay", "bound"]


def test_a_run_with_sparse_contexts_is_told_by_what_they_hold():
    sparse = {"agent.context_reward": "sparse_reward", "world.extras": ("sparse_reward",)}
    found = told("sac_pearl", "music_tf/PointRobot-v0", goals=False, **sparse)
    assert [one.metric for one in found.values()] == [
        "adapt/context_return_prior",
        "adapt/context_return_last",
    ]
    row = {"adapt/return_last": -9.0, "adapt/random_return": -21.0}
    dense = told("sac_pearl", "music_tf/PointRobot-v0", goals=False)
    assert dense["after 6"].shown(row) == "after 6 -9.00 (-21.00)"
