"""Skills where they must be found: told apart by what the policy moves directly."""

import csv

import pytest

from tests.kit.started import music_tf


@pytest.mark.slow
def test_skills_of_a_point_are_soon_told_apart_by_where_it_is(tmp_path):
    run = tmp_path / "run"
    words = ["--env-id", "music_tf/PointReach-v0", "--agent.hidden-sizes", "64", "64"]
    words += ["--seed", "0", "--threads", "1", "--epochs", "8"]
    code, _, errors = music_tf("train", "sac_diayn", *words, "--run-dir", str(run), seconds=280)
    assert code == 0, errors
    with (run / "metrics.csv").open(encoding="utf-8") as file:
        last = list(csv.DictReader(file))[-1]
    assert float(last["skill/accuracy_heldout"]) >= 0.8  # one in five by chance
