"""Evaluations between epochs: what they store, and that training does not notice them."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.config.settings import CollectConfig, ReplayConfig
from music_tf.errors import Stopped
from music_tf.runs.cycle_evaluations import EPISODES
from music_tf.training.evaluation import evaluation_conditions
from tests.kit.cases import cases
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import command_of, run_session, stop_asked
from tests.kit.small import HER, MUSIC

RUN = with_fields(replace(HER, epochs=2, cycles=3, updates=2), {"evaluation.every_cycles": 2})
BY_STEPS = replace(RUN, collect=CollectConfig(steps=25), replay=ReplayConfig(batch_size=8))


def run(path, config, **changes):
    run_session(command_of(with_fields(config, changes), path))
    return path


def between(path):
    with (path / "evaluations.csv").open(encoding="utf-8") as file:
        return [
            {k: v for k, v in row.items() if k != "time/elapsed_s"} for row in csv.DictReader(file)
        ]


@pytest.mark.thorough
@cases("config", RUN, BY_STEPS, replace(RUN, lag=1))
def test_they_change_no_number_of_training(tmp_path, config):
    measured = run(tmp_path / "measured", config)
    plain = run(tmp_path / "plain", config, **{"evaluation.every_cycles": None})
    assert rows_of(measured) == rows_of(plain)
    np.testing.assert_equal(*(load_weights(p / "checkpoints")[0] for p in (measured, plain)))
    assert not (plain / "evaluations.csv").exists()
    assert [row["cycle"] for row in between(measured)] == ["2", "4", "6"]


@pytest.mark.thorough
@pytest.mark.parametrize("looks", [2, 4, 5])
def test_a_stop_within_an_epoch_neither_loses_nor_doubles_one(tmp_path, looks):
    whole, parts = run(tmp_path / "whole", RUN), tmp_path / "parts"
    with pytest.raises(Stopped), stop_asked(looks):
        run(parts, RUN)
    (parts / "evaluations.csv").open("a", encoding="utf-8").write("6,9,9,9,9,\n")  # unsaved
    run_session(command_of(RUN, parts, resume=True))
    assert between(parts) == between(whole)


@pytest.mark.thorough
def test_without_goals_of_the_environment_the_return_alone_is_measured(tmp_path):
    zero = run(
        tmp_path / "run", with_fields(replace(MUSIC, epochs=1), {"evaluation.every_cycles": 1})
    )
    assert {(row["eval/success_rate"], row["eval/return"] != "") for row in between(zero)} == {
        ("", True)
    }


def test_each_has_episodes_of_its_own_and_other_seeds_have_others():
    def seeds(turn, config=RUN):
        return evaluation_conditions(range(EPISODES), config, 2, None, turn).seeds.tolist()

    each = [seeds(0), seeds(2), seeds(4), seeds(2, replace(RUN, seed=1))]
    assert len({seed for of_turn in each for seed in of_turn}) == 4 * EPISODES
    assert seeds(0) == seeds(0, replace(RUN, seed=1))  # those of epochs are the same for all
