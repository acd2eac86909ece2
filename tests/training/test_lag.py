"""Lag 1: what plays is one cycle older than what learns, wherever a run is cut or resumed."""

from dataclasses import replace

import numpy as np
import pytest

from music_tf import recipes
from music_tf.config.settings import CollectConfig, EvaluationConfig, ReplayConfig
from music_tf.networks.acting import arrays_of
from music_tf.recipes.influence import InfluenceConfig
from music_tf.training.parts import Lag
from tests.kit import small
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.small import HER, LEARNED_PRIOR, MUSIC, go_on, paying, trainer_of

pytestmark = pytest.mark.thorough

LATE = replace(HER, lag=1, cycles=3)
WITH_PRIOR = replace(LEARNED_PRIOR, lag=1, cycles=3)
EXPLORING = paying(
    MUSIC, InfluenceConfig(samples=4, candidates=4, hidden_sizes=(8,)), lag=1, cycles=3
)
STEPS = replace(
    recipes.resolve("sac", "laptop", COUNTING),
    lag=1,
    cycles=3,
    updates=2,
    agent=replace(recipes.resolve("sac", "laptop", COUNTING).agent, hidden_sizes=(8,)),
    collect=CollectConfig(steps=5, updates_per_step=0.4),
    replay=ReplayConfig(batch_size=8, capacity=100),
    evaluation=EvaluationConfig(episodes=2),
)


def watched(trainer):  # what a trainer orders and what it knows after each cycle, from now on
    ordered, after, order = [], [arrays_of(trainer.snapshot())], trainer.collector.order

    def noted(given):
        ordered.append((given.cycle, arrays_of(given.snapshot)))
        order(given)

    def on_cycle(done):
        del done
        after.append(arrays_of(trainer.snapshot()))
        return False

    trainer.collector.order = noted
    return ordered, after, on_cycle


@pytest.mark.parametrize("lag", [0, 1])
@cases("config", LATE, WITH_PRIOR, STEPS, ids=["goals", "prior", "steps"])
def test_a_cycle_acts_with_the_weights_after_the_last_one_or_after_the_one_before_it(config, lag):
    trainer = trainer_of(config, lag=lag)
    ordered, after, on_cycle = watched(trainer)
    for _ in range(2):
        trainer.run_epoch(on_cycle)
        assert trainer.collector.ordered is None  # environments are reset first
    assert [cycle for cycle, _ in ordered] == list(range(6))
    for cycle, (_, acting) in enumerate(ordered):
        np.testing.assert_equal(acting, after[max(0, cycle - lag)])  # after[c] precedes cycle c
    for name in after[0]:
        assert (after[1][name] != after[0][name]).any() or "goal" in name or "bias" in name
    assert any(name.startswith("lagged/") for name in trainer.shared()) == lag


@pytest.mark.parametrize("cycles", [1, 2, 3])
@cases("config", LATE, WITH_PRIOR, EXPLORING, ids=["goals", "prior", "exploring"])
def test_a_run_that_is_saved_after_any_cycle_goes_on_to_the_same_bits(config, cycles):
    straight, cut = trainer_of(config), trainer_of(config)
    for _ in range(2):
        straight.run_epoch(go_on)
    cut.run_epoch(lambda done: done == cycles)
    state = small.saved(cut)
    assert {name for name in state[0] if name.startswith("lagged/")} == {
        *(f"lagged/{name}" for name in cut.update.actor_weights()),
        "lagged/observation",
        "lagged/goal",
        *(["lagged/prior"] if config is WITH_PRIOR else ()),
        *(f"lagged/{name}" for name in cut.snapshot().explorer),
    }
    resumed = small.restored(config, state)
    while resumed.counters.epoch < 2:
        resumed.run_epoch(go_on)
    small.assert_same_state(straight, resumed)


@pytest.mark.parametrize("lag", [0, 1])
def test_skills_are_drawn_by_the_prior_that_is_as_old_as_the_weights(lag):
    trainer = trainer_of(WITH_PRIOR, lag=lag)
    _, after, on_cycle = watched(trainer)
    trainer.run_epoch(on_cycle)
    assert np.ptp(after[0]["prior"]) == 0.0
    assert np.ptp(after[2]["prior"]) > 0.0
    drawn_by = trainer.collector.sampler.prior
    expected = after[2 - lag]["prior"].astype(np.float64)
    np.testing.assert_array_equal(drawn_by, expected / expected.sum())


def test_a_trainer_that_goes_back_forgets_what_it_has_ordered():
    trainer = trainer_of(LATE)
    start, meta, _ = small.saved(trainer)
    trainer.run_epoch(lambda done: done == 1)
    assert trainer.collector.ordered.cycle == 1
    trainer.load(start, meta)
    assert trainer.collector.ordered is None
    np.testing.assert_equal(trainer.shared(), start)


def test_a_run_that_starts_from_another_acts_with_what_it_took_over():
    source, trainer = trainer_of(HER), trainer_of(LATE)
    source.run_epoch(go_on)
    trainer.start_from(source.shared())
    np.testing.assert_equal(arrays_of(trainer.part(Lag).snapshot), arrays_of(source.snapshot()))
