import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.fields import with_fields
from music_tf.config.terms import TaskConfig
from music_tf.errors import UsageError
from music_tf.recipes.controls import RandomRewardConfig
from music_tf.recipes.distance import DistanceConfig
from music_tf.recipes.music import MusicConfig
from music_tf.replay.buffer import all_transitions
from music_tf.runs.learned_rewards import LearnedRewards
from music_tf.runs.loaded_run import learned_arrays
from tests.kit.cases import cases
from tests.kit.small import BASE, EVERYTHING, MUSIC, paying, trainer_of
from tests.training.test_evaluation import carries


def learned(trainer, change=()):  # the rewards of a trainer by themselves, at its weights
    arrays = learned_arrays(trainer.shared(), trainer.evaluation.config.rewards)
    return LearnedRewards(trainer.evaluation, arrays | dict(change))


def rests(observation, goal, skill, noise):  # touches nothing
    return np.zeros([len(observation), 3], np.float32)


def test_music_pays_along_an_episode_what_it_pays_in_training_with_swapped_negatives():
    trainer = trainer_of(paying(MUSIC, MusicConfig(trajectories=8, gain=20.0)))
    played = trainer.evaluation.play(carries, 3)
    (trace,) = learned(trainer).traces(played)
    assert (trace.name, trace.lowest, trace.highest) == ("music", -1.0, 0.0)
    assert trace.values.shape == played.reward.shape
    (term,) = trainer.terms
    batch = tf.nest.map_structure(tf.convert_to_tensor, all_transitions(played))
    raw = term.reward(trainer.update.weights(), batch, {"swapped": tf.fill([3], True)})
    np.testing.assert_array_equal(trace.values, np.clip(20.0 * raw, 0.0, 1.0) - 1.0)
    assert trace.values.max() > -0.99


def test_every_learned_reward_has_a_trace_at_full_weight_and_resting_is_paid_the_least():
    half = with_fields(EVERYTHING, {"skill.weight": ((0.0, 0.5),)})
    full, weighted = trainer_of(EVERYTHING), trainer_of(half)
    played = full.evaluation.play(rests, 3)
    traces = learned(full).traces(played)
    assert [trace.name for trace in traces] == ["music", "skill"]  # the task's is not learned
    np.testing.assert_allclose(traces[0].values, -1.0, atol=1e-3)
    assert -1.0 <= traces[1].values.min() < traces[1].values.max() <= 0.0
    np.testing.assert_array_equal(learned(weighted).traces(played)[1].values, traces[1].values)


def test_networks_of_rewards_are_there_with_their_automatic_gains_or_not_at_all():
    config = paying(BASE, MusicConfig(gain="auto", pay="log", clip=(0.0, 4.0)))
    arrays = trainer_of(config).shared()
    assert "parameters/statistics/agent/kernel" in learned_arrays(arrays, config.rewards)
    for exported in ("/actor/", "/"):  # without the gain, scales/music
        some = {n: a for n, a in arrays.items() if exported in n and n != "scales/music"}
        assert learned_arrays(some, config.rewards) == {}
    for reward in (TaskConfig(), RandomRewardConfig(gain="auto")):  # which learn nothing
        config = paying(BASE, reward)
        assert learned_arrays(trainer_of(config).shared(), config.rewards) == {}


@cases(
    ("settings", "networks"),
    ({"train": False}, {"phi", "dual"}),
    ({"distance": "density"}, {"phi", "dual", "change_mean", "change_deviation"}),
    ({"constraint": "spectral"}, {"phi"}),
)
def test_distances_are_measured_with_the_networks_that_their_settings_build(settings, networks):
    config = with_fields(BASE, {"condition.kind": "sphere", "condition.size": 2})
    reward = DistanceConfig(columns=(3, 4), **settings)
    trainer = trainer_of(paying(config, reward))
    assert set(reward.built) == networks == {each.name for each in trainer.terms[0].networks}
    played = trainer.evaluation.play(carries, 4)
    found = learned(trainer).heldout(played, trainer.counters.epoch)
    weights = trainer.update.weights()
    assert found == trainer.evaluation.heldout(trainer.active_terms(), weights, played)
    assert {"distance/moved", "distance/units_0", "distance/units_1"} <= set(found)


@pytest.mark.parametrize("lost_object", ["continue", "absorb"])
def test_heldout_measures_are_those_of_training(lost_object):
    trainer = trainer_of(EVERYTHING, lost_object=lost_object)
    played = trainer.evaluation.play(carries, 4)
    found = learned(trainer).heldout(played, trainer.counters.epoch)
    weights = trainer.update.weights()
    assert found == trainer.evaluation.heldout(trainer.active_terms(), weights, played)
    assert {"music/bound_heldout", "skill/accuracy_heldout"} <= set(found)


def test_only_terms_that_still_count_are_measured():
    trainer = trainer_of(with_fields(EVERYTHING, {"skill.weight": ((0.0, 1.0), (2.0, 0.0))}))
    played = trainer.evaluation.play(rests, 2)
    assert "skill/accuracy_heldout" in learned(trainer).heldout(played, 1)
    assert set(learned(trainer).heldout(played, 3)) == {"music/bound_heldout", "music/paid_heldout"}


def test_a_weight_by_level_counts_by_the_level_of_its_checkpoint():
    switched = {"skill.weight_by": "moved", "skill.weight": ((0.2, 1.0), (0.5, 0.0))}
    trainer = trainer_of(with_fields(EVERYTHING, switched))
    played = trainer.evaluation.play(rests, 2)
    for level, measured in ((0.4, True), (0.5, False)):
        trainer.levels.now["skill"] = level
        assert ("skill/accuracy_heldout" in learned(trainer).heldout(played, 9)) == measured
    arrays = learned_arrays(trainer.shared(), trainer.evaluation.config.rewards)
    exported = {name: each for name, each in arrays.items() if not name.startswith("level/")}
    rewards = LearnedRewards(trainer.evaluation, exported)
    assert "skill/accuracy_heldout" in rewards.heldout(played, 9)


@cases(
    ("change", "text"),
    ({"parameters/ghost/kernel": np.zeros(2)}, "ghost/kernel: no such weight in this run"),
    ({"parameters/statistics/score/bias": np.zeros(2)}, "statistics/score/bias: expected"),
)
def test_weights_that_do_not_fit_are_named(change, text):
    trainer = trainer_of(MUSIC)
    with pytest.raises(UsageError, match=rf"does not fit config\.json\n{text}"):
        learned(trainer, change)
