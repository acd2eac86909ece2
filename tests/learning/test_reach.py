"""Runs through the command line that have to learn something."""

import csv
import json

import pytest

from tests.kit.started import music_tf


@pytest.mark.slow
def test_the_fast_recipe_reaches_goals_within_three_epochs(tmp_path):
    run = tmp_path / "run"
    words = ["--env-id", "FetchReach-v4", "--seed", "0", "--threads", "1", "--epochs", "3"]
    code, _, errors = music_tf("train", "ddpg_her_fast", *words, "--run-dir", str(run), seconds=280)
    assert code == 0, errors
    with (run / "metrics.csv").open(encoding="utf-8") as file:
        rates = [float(row["eval/success_rate"]) for row in csv.DictReader(file)]
    assert len(rates) == 3
    assert rates[-1] >= 0.9
    policies = json.loads((run / "summary.json").read_text())["evaluation"]
    assert policies["ours"]["eval/success_rate"] >= 0.9
    assert policies["random"]["eval/success_rate"] <= 0.1  # what is reached by chance
