"""Runs through the command line that have to learn something."""

import contextlib
import json

import numpy as np

from music_tf.runs.loaded_run import load_run
from tests.kit.saved_run import rows_of
from tests.kit.started import music_tf


def trained(run, recipe, words):  # the rows of metrics of a run of one thread
    options = [*words.split(), "--seed", "0", "--threads", "1", "--run-dir", str(run)]
    code, _, errors = music_tf("train", recipe, *options, seconds=280)
    assert code == 0, errors
    return rows_of(run)


def test_the_fast_recipe_reaches_goals_within_three_epochs(tmp_path):
    rows = trained(tmp_path / "run", "ddpg_her_fast", "--env-id FetchReach-v4 --epochs 3")
    rates = [float(row["eval/success_rate"]) for row in rows]
    assert len(rates) == 3
    assert rates[-1] >= 0.9
    policies = json.loads((tmp_path / "run/summary.json").read_text())["evaluation"]
    assert policies["ours"]["eval/success_rate"] >= 0.9
    assert policies["random"]["eval/success_rate"] <= 0.1  # what is reached by chance


def test_skills_of_a_point_are_soon_told_apart_by_where_it_is(tmp_path):
    words = "--env-id music_tf/PointReach-v0 --agent.hidden-sizes 64 64 --epochs 8"
    last = trained(tmp_path / "run", "sac_diayn", words)[-1]
    assert float(last["skill/accuracy_heldout"]) >= 0.8  # one in five by chance


def test_skills_are_soon_predictable_from_how_a_point_moves_where_no_wall_is_met(tmp_path):
    words = "--skills 4 --dads.omit 2 --env.max-episode-steps 5 --epochs 12"
    last = trained(tmp_path / "run", "sac_dads", f"--env-id music_tf/UnitBox-v0 {words}")[-1]
    assert float(last["dads/reward_heldout"]) >= 0.8  # 0 by chance, at most log 4 = 1.39


BOX = "--env-id music_tf/UnitBox-v0"
"""Lines of its tests are those of docs/results.md, which three seeds of three hold."""


def told_apart(run, recipe, words):  # the last held-out log q and what else was found in the box
    last = trained(run, recipe, f"{BOX} {words}")[-1]
    return float(last["skill/log_likelihood_heldout"]), last


def test_four_skills_in_a_box_are_told_apart_in_every_step(tmp_path):
    log_q, last = told_apart(tmp_path / "run", "sac_diayn", "--skills 4 --epochs 20")
    assert log_q >= -0.35  # -1.386 by chance
    assert float(last["skill/accuracy_heldout"]) >= 0.85
    assert float(last["skill/diversity_return"]) >= 52.0  # at most 50 log 4 = 69.3


def test_ten_skills_in_a_box_are_told_apart(tmp_path):
    log_q, _ = told_apart(tmp_path / "run", "sac_diayn", "--skills 10 --epochs 40")
    assert log_q >= -1.1  # -2.303 by chance


def test_skills_solve_a_task_in_ways_of_their_own(tmp_path):
    gate = "--skill.target 4 --skill.margin 0.5"
    log_q, _ = told_apart(tmp_path / "run", "sac_smerl", f"--skills 4 {gate} --epochs 20")
    assert log_q >= -0.9
    loaded = load_run(tmp_path / "run")
    with contextlib.closing(loaded.envs):
        each = [loaded.evaluation.play(loaded.policy, 10, skill).reward for skill in range(4)]
    returns = np.sort([rewards.sum(axis=1).mean() for rewards in each])
    assert returns[1] >= 3.5  # three skills of four, of at most 5
