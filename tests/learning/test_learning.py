"""Runs through the command line that have to learn something."""

import json

import pytest

from tests.kit.saved_run import rows_of
from tests.kit.started import music_tf

pytestmark = pytest.mark.slow


def trained(run, recipe, words):
    """The rows of metrics of a run of one thread."""
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


def test_skills_are_soon_foretold_by_how_a_point_moves_where_no_wall_is_met(tmp_path):
    words = "--skills 4 --dads.omit 2 --env.max-episode-steps 5 --epochs 12"
    last = trained(tmp_path / "run", "sac_dads", f"--env-id music_tf/UnitBox-v0 {words}")[-1]
    assert float(last["dads/reward_heldout"]) >= 0.8  # 0 by chance, at most log 4 = 1.39
