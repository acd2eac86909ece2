import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf import recipes
from music_tf.config.fields import with_fields
from music_tf.config.terms import TaskConfig
from music_tf.errors import UsageError
from music_tf.intrinsic.influence import Influence
from music_tf.losses.influence import influence_of_actions
from music_tf.networks.influence import influences
from music_tf.networks.parameters import Layout
from music_tf.recipes.influence import InfluenceConfig, ddpg_cai
from music_tf.replay.buffer import all_transitions
from music_tf.rollout import Candidates
from music_tf.types import SplitSpec
from tests.kit import terms
from tests.kit.episodes import SPEC, STEPS, make_episodes
from tests.kit.small import MUSIC, paying, trainer_of

NEAR, PLACE, NOISE = 1, 2, 3
"""Columns: whether the robot is near, where the object is, and what moves by itself."""
RUN = paying(MUSIC, InfluenceConfig(samples=4, hidden_sizes=(8,)))


def influence_term(scale=None, columns=(PLACE,), change_scale=1.0, **config):
    kind = type("Scaled", (InfluenceConfig,), {"change_scale": change_scale})
    small = {"samples": 8, "hidden_sizes": (32, 32), "learning_rate": 3e-3}
    settings = kind(columns=columns, **{**small, **config})
    return Influence(settings, terms.context(scale=scale)._replace(spec=SPEC))


def pushed(count, seed=0):
    """Episodes in which the first action moves the object, in those in which the robot is near.

    What moves by itself does so all the time.
    """
    generator = np.random.default_rng(seed)
    states = np.zeros([count, STEPS + 1, SPEC.observation_dim], np.float32)
    near = np.arange(count) % 2 == 0
    states[..., NEAR] = near[:, None]
    action = generator.uniform(-1.0, 1.0, (count, STEPS, SPEC.action_dim)).astype(np.float32)
    moves = np.where(near[:, None], action[..., 0], 0.0)
    moves = moves + generator.normal(0.0, 0.05, moves.shape)
    states[:, 1:, PLACE] = moves.cumsum(axis=1)
    states[:, 1:, NOISE] = generator.normal(0.0, 1.0, (count, STEPS)).cumsum(axis=1)
    return make_episodes(0, count)._replace(observation=states, action=action)


def states_of(episodes, count=8):  # the first states of some episodes, [1, B]
    return terms.made_transition(observation=tf.constant(episodes.observation[None, :count, 0]))


@pytest.fixture(scope="module", params=[PLACE, NOISE], ids=["object", "noise"])
def learned(request):
    """A term that looks at the object, or at what moves by itself, its weights, and its losses."""
    term = influence_term(columns=(request.param,))
    return request.param, term, *terms.train(term, terms.filled_replay(pushed(256)), 500)


@pytest.mark.thorough
def test_actions_have_influence_where_they_move_the_object_and_nowhere_else(learned):
    column, term, weights, losses = learned
    episodes = pushed(64, seed=1)
    feed = terms.first_update(term.feed(terms.filled_replay(episodes), 1, 0))
    batch = states_of(episodes, 64)
    near, far = term.reward(weights, batch, feed).numpy().reshape(-1, 2).T
    assert far.mean() < 0.15
    if column == NOISE:  # all actions foretell the same
        assert near.mean() < 0.15
        return
    # the action has a deviation of .58 and the noise of .05: about log(.58 / .05) = 2.4 nats are
    # there to know, of which 8 actions show at most log 8 = 2.1
    assert near.mean() > 1.2
    assert losses[-50:].mean() < losses[:50].mean() - 1.0
    assert terms.gradient_of_reward(term, batch, feed) is None


def test_an_evaluation_tells_steps_that_move_the_object_from_those_that_do_not(learned):
    column, term, weights, _ = learned
    played = pushed(80, seed=2)  # more than are measured at once
    played.length[:4] = 3
    played.observation[1::2, :, column] = 0.0
    found = term.heldout(weights, played)
    steps = all_transitions(played)
    actions = term.steady_feed(80)["actions"]
    paid = term.reward(
        weights, terms.made_transition(observation=steps.observation), {"actions": actions}
    )
    taken = np.arange(STEPS) < played.length[:, None]
    assert found["influence/heldout"] == pytest.approx(paid.numpy()[taken].mean(), rel=1e-5)
    for name, rows in (("moving", slice(0, None, 2)), ("resting", slice(1, None, 2))):
        mean = paid.numpy()[rows][taken[rows]].mean()
        assert found[f"influence/{name}"] == pytest.approx(mean, rel=1e-5)
    played.observation[:] = 0.0
    assert "influence/moving" not in term.heldout(weights, played)


def test_the_loss_is_minus_the_log_density_of_the_scaled_change():
    term, replay = influence_term(change_scale=50.0), terms.filled_replay(pushed(8))
    feed, weights = terms.first_update(term.feed(replay, 1, 0)), terms.weights_of(term, seed=2)
    batch = replay.transitions(term.draws(replay, 1, 0)["picks"])
    change = 50.0 * (batch.next_observation - batch.observation)[0, 0, :, PLACE]
    rows = np.concatenate([batch.observation[0, 0], batch.action[0, 0]], axis=-1)
    *hidden, mean_kernel, mean_bias, kernel, bias = (w.numpy() for w in weights["influence_model"])
    for layer in range(2):
        rows = np.tanh(rows @ hidden[2 * layer] + hidden[2 * layer + 1])
    mean, outputs = rows @ mean_kernel + mean_bias, rows @ kernel + bias
    variance = np.clip(np.logaddexp(outputs + math.log(math.e - 1.0), 0.0) + 1e-8, 1e-8, 200.0)
    squares = (change - mean[:, 0]) ** 2 / variance[:, 0]
    expected = 0.5 * (squares + np.log(variance[:, 0]) + math.log(2.0 * math.pi))
    loss, metrics = term.loss(weights, feed)
    assert float(loss[0]) == pytest.approx(expected.mean(), rel=1e-4)
    assert float(metrics["influence/loss"][0]) == float(loss[0])


def test_each_state_meets_all_actions_of_its_minibatch_and_each_update_others():
    term, replay = influence_term(times=3), terms.filled_replay(pushed(8))
    feed = term.feed(replay, 3, 0)
    assert (term.times, feed["actions"].shape) == (3, (3, 1, 8, SPEC.action_dim))
    assert len(np.unique(feed["actions"])) == feed["actions"].size
    assert np.abs(feed["actions"]).max() <= 1.0
    again, later = (term.feed(replay, 3, cycle)["actions"] for cycle in (0, 1))
    np.testing.assert_array_equal(feed["actions"], again)
    assert (feed["actions"] != later).all()
    weights, batch = terms.weights_of(term, seed=1), states_of(pushed(8))
    some = terms.first_update(feed)
    alone = [
        term.reward(
            weights, terms.made_transition(observation=batch.observation[:, i : i + 1]), some
        )
        for i in range(8)
    ]
    np.testing.assert_allclose(term.reward(weights, batch, some), np.concatenate(alone, 1), 1e-4)


def test_it_looks_at_the_object_else_at_the_surroundings_and_compares_no_choices():
    config = InfluenceConfig(hidden_sizes=(4,))
    split = SplitSpec(agent=(0, 1), surrounding=(5, 6))
    of_object = Influence(config, terms.context(split, object=(7, 8, 9)))
    assert of_object.inputs["influence_model"]["components"] == [7, 8, 9]
    assert Influence(config, terms.context(split)).inputs["influence_model"]["components"] == [5, 6]
    with pytest.raises(UsageError, match=r"expected columns .*\n.*--influence.columns 24"):
        Influence(config, terms.context())
    with pytest.raises(UsageError, match=r"influence.columns: .* 0 to 3, got 25\nnearest: 3"):
        influence_term(columns=(25,))


def test_the_gradient_of_two_workers_is_the_mean_of_theirs():
    term = influence_term()
    feed = terms.first_update(term.feed(terms.filled_replay(pushed(64)), 1, 0))
    halves = {n: tf.reshape(part, [2, 32, -1]) for n, part in feed.items() if n != "actions"}
    gradients = [terms.gradient_of_loss(term, fed) for fed in (feed, halves)]
    np.testing.assert_allclose(*gradients, atol=1e-5)


@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_numpy_and_tensorflow_agree_on_which_action_decides_most(floor):
    centre, unit = np.full(4, 0.5, np.float32), np.full(4, 2.0, np.float32)
    term = influence_term(
        scale=(centre, unit), columns=(PLACE, NOISE), sigma_floor=floor, change_scale=2.0
    )
    layout = Layout(term.networks)
    flat = np.random.default_rng(0).normal(size=layout.size).astype(np.float32)
    arrays = layout.name_arrays(flat) | {"scales/influence_model": np.stack([centre, unit])}
    generator = np.random.default_rng(1)
    states = generator.normal(size=(5, 4)).astype(np.float32)
    actions = generator.uniform(-1.0, 1.0, (5, 6, 3)).astype(np.float32)
    alike = tf.repeat(states[:, None], 6, axis=1)
    foretold = term._foretold(layout.split(tf.constant(flat)), alike, tf.constant(actions))
    expected = influence_of_actions(*foretold)
    found = influences(arrays, states, actions, **term._config.scorer_arguments)
    assert term._config.scorer_arguments == {"floor": (2.0 * floor) ** 2}
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.thorough
def test_a_run_learns_the_model_beside_the_agent():
    trainer = trainer_of(with_fields(RUN, {"influence.times": 2}))
    before = trainer.shared()
    trainer.run_cycle()
    moved = [name for name, array in trainer.shared().items() if (array != before[name]).any()]
    networks = {name.split("/")[1] for name in moved if name.startswith("parameters/")}
    assert networks >= {"actor", "influence_model"}
    (metrics,) = trainer.log.totals
    assert 0.0 <= metrics["reward/influence_mean"] <= math.log(4.0)
    assert np.isfinite(metrics["influence/loss"])
    trainer.envs.close()


def test_presets_are_the_agent_of_music_and_the_sizes_of_the_authors():
    laptop, music = ddpg_cai("laptop"), recipes.resolve("ddpg_music")
    assert with_fields(laptop, {}) == paying(music, laptop.rewards["influence"])
    paper = ddpg_cai("paper")
    assert paper.epochs * paper.cycles * paper.workers * paper.rollouts == 5000
    assert paper.rewards["influence"].hidden_sizes == (256,) * 4
    assert (paper.goals, paper.replay.relabel_k) == ("environment", 0)
    beside = recipes.resolve("ddpg_cai_her")
    assert list(beside.rewards) == ["task", "influence"]
    assert beside.rewards["influence"].clip == (0.0, 2.0)
    assert beside.rewards["influence"].weight == ((0.0, 0.2),)


def test_exploration_takes_the_random_action_that_decides_most():
    trainer = trainer_of(with_fields(RUN, {"influence.candidates": 6}))
    trainer.run_cycle()
    collector, snapshot = trainer.collector, trainer.snapshot()
    assert set(snapshot.explorer) == {
        *(f"explorer/{name}" for name in trainer.update.arrays_of(trainer.terms[0].networks)),
        "explorer/scales/influence_model",
    }
    generators = [np.random.default_rng(seed) for seed in (1, 2)]
    drawn = collector._candidates(trainer.config.explorer, snapshot, generators)
    states = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)
    wanted = np.array([True, False, True, True])
    found = drawn.best(states, 7, wanted)
    known = {name.removeprefix("explorer/"): a for name, a in snapshot.explorer.items()}
    scores = influences(known, states, drawn.actions[7])
    chosen = drawn.actions[7][np.arange(4), scores.round(3).argmax(axis=1)]
    np.testing.assert_array_equal(found, np.where(wanted[:, None], chosen, 0.0))
    trainer.envs.close()


def test_actions_that_are_as_good_up_to_rounding_leave_the_first():
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (1, 2, 3, 2)).astype(np.float32)
    scores = np.float32([[0.5, 0.5003, 0.4], [0.1, 0.2, 0.9]])
    tried = Candidates(actions, lambda states, given: scores, rows=2)
    found = tried.best(np.zeros([2, 1]), 0, np.array([True, True]))
    np.testing.assert_array_equal(found, actions[0][[0, 1], [0, 2]])


@pytest.mark.thorough
def test_what_explores_learns_on_where_it_pays_nothing():
    beside = paying(RUN, TaskConfig(), RUN.rewards["influence"], goals="environment")
    unpaid = with_fields(beside, {"influence.weight": ((0.0, 0.0),)})
    exploring = trainer_of(with_fields(unpaid, {"influence.candidates": 6}))
    resting = trainer_of(unpaid)
    for trainer in (exploring, resting):
        trainer.run_cycle()
    assert [term.name for term in exploring.active_terms()] == ["task", "influence"]
    assert [term.name for term in resting.active_terms()] == ["task"]
    assert exploring.log.totals[0]["reward/influence_max"] == 0.0
    assert "influence/loss" in exploring.log.totals[0]
    played = [
        next(iter(t.replay.shards.values())).arrays["action"][:2] for t in (exploring, resting)
    ]
    assert 0.1 < (played[0] != played[1]).any(axis=-1).mean() < 1.0
    for trainer in (exploring, resting):
        trainer.envs.close()
