import dataclasses
import hashlib
import math
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from music_tf.agents.base import Batch, Learner, Losses, Phase
from music_tf.config.agents import SacConfig, SacValueConfig
from music_tf.config.fields import with_fields
from music_tf.config.terms import TaskConfig
from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from music_tf.intrinsic.base import Mixing, RewardTerm
from music_tf.networks.parameters import Scalar
from music_tf.recipes.influence import InfluenceConfig
from music_tf.recipes.skills import DadsConfig, SkillConfig
from music_tf.training import feeds as feeds_module
from music_tf.training import update as update_module
from music_tf.training.adam import AdamState, adam_step
from music_tf.training.feeds import Batches, Schedules
from music_tf.training.update import Update, check_same_state
from music_tf.types import aligned
from tests.kit.cases import cases
from tests.kit.ranks import Beside, same
from tests.kit.small import (
    ALL,
    BASE,
    EVERYTHING,
    HER,
    MUSIC,
    NETWORK,
    SMALL_MUSIC,
    SOFT,
    paying,
    trainer_of,
)

STATE = {"a": np.zeros([2, 3], np.float32), "b": np.array([1.0, 2.0]), "step": np.int64(7)}


def prepared(config=BASE, **changes):
    """A trainer that has collected episodes, with the feed and schedules of its updates."""
    trainer = trainer_of(config, **changes)
    for _ in range(2):
        trainer.collect()
        trainer.counters.cycle += 1
    return trainer, Given(trainer.feed(), trainer.schedules())


class Given(NamedTuple):
    feed: Batches
    schedules: Schedules

    def change(self, **fields):  # the same with other transitions
        moved = self.feed.transitions._replace(**fields)
        return self._replace(feed=self.feed._replace(transitions=moved))


def run(trainer, given):
    return trainer.update.run(*given)


def update_of(trainer, learner, terms=None):  # an update like the trainer's with another learner
    terms = trainer.terms if terms is None else terms
    return Update(learner, terms, trainer.config.agent, 0.9, Communicator(), 2)


def slices(given, index):
    feed = tf.nest.map_structure(lambda values: values[index : index + 1], given.feed)
    return given._replace(feed=feed)


def by_hand(trainer, given):
    """Parameters after one update and the gradient, composed eagerly from their parts."""
    update, schedules = trainer.update, given.schedules
    now = tf.nest.map_structure(lambda values: tf.constant(values[0]), given.feed)
    moved, inputs = now.transitions, trainer.inputs.now
    flat = tf.constant(update.parameters.numpy())
    targets = update.targets_layout.split(tf.constant(update.targets.numpy()))
    observed = (moved.desired_goal.numpy(), moved.skill.numpy())
    with tf.GradientTape() as tape:
        tape.watch(flat)
        weights = update.layout.split(flat)
        reward, learned = 0.0, 0.0
        for term in trainer.terms:
            raw = term.reward(weights, moved, now.terms[term.name])
            low, high = term.mixing.clip
            clipped = tf.clip_by_value(term.mixing.scale * raw, low, high)
            reward += schedules.terms[term.name] * (clipped + term.mixing.shift)
            learned += tf.reduce_sum(term.loss(weights, now.terms[term.name])[0])
        batch = Batch(
            inputs=tf.constant(inputs(moved.observation.numpy(), *observed)),
            next_inputs=tf.constant(inputs(moved.next_observation.numpy(), *observed)),
            action=moved.action,
            reward=reward,
            discount=moved.discount,
            truncated=moved.truncated,
        )
        losses = update.learner.losses(weights, targets, batch, now.noise, schedules.entropy)
        total = (tf.reduce_sum(losses.total) + learned) / trainer.config.workers
    gradient = tape.gradient(total, flat)
    moved, rate = tf.Variable(flat), tf.constant(update.layout.learning_rates())
    adam_step(moved, gradient, AdamState.zeros(moved.numpy()), tf.constant(1.0), rate)
    return moved.numpy(), gradient.numpy()


@pytest.mark.parametrize("name", ALL)
def test_an_update_is_one_adam_step_along_the_mean_of_all_gradients(name):
    trainer, given = prepared(ALL[name], updates=1)
    expected, gradient = by_hand(trainer, given)
    metrics = run(trainer, given)
    np.testing.assert_allclose(trainer.update.parameters, expected, atol=2e-6)
    # Adam's first step hides the size of a gradient, its first moment does not
    np.testing.assert_allclose(
        trainer.update.moments[0].first,
        0.1 * gradient,
        rtol=1e-3,
        atol=1e-5 * np.abs(gradient).max(),
    )
    assert metrics["train/grad_norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
    assert int(trainer.update.step) == 1


@pytest.mark.thorough
def test_gradients_of_workers_are_summed_or_averaged():
    moments = {}
    for reduce in ("sum", "mean"):
        trainer, given = prepared(with_fields(MUSIC, {"agent.gradient_reduce": reduce}), updates=1)
        run(trainer, given)
        moments[reduce] = trainer.update.moments[0].first.numpy()
    np.testing.assert_allclose(moments["sum"], 2.0 * moments["mean"], rtol=1e-6)
    assert np.abs(moments["mean"]).max() > 0.0


@pytest.mark.thorough
def test_the_updates_of_a_cycle_are_taken_one_after_the_other_and_then_the_targets_move():
    trainer, given = prepared(EVERYTHING)
    other, _ = prepared(EVERYTHING)
    initial, each = other.update.targets.numpy(), []
    together = run(trainer, given)
    for index in range(3):
        other.update.targets.assign(initial)
        each.append(run(other, slices(given, index)))
    assert int(trainer.update.step) == int(other.update.step) == 3
    np.testing.assert_allclose(trainer.update.parameters, other.update.parameters, atol=2e-6)
    np.testing.assert_allclose(trainer.update.targets, other.update.targets, atol=1e-6)
    for name in set(together) - {"reward/skill_max"}:
        pick = min if name.endswith("_min") else max if name.endswith("_max") else np.mean
        expected = pick([metrics[name] for metrics in each])
        assert together[name] == pytest.approx(expected, rel=1e-3, abs=1e-5), name


@pytest.mark.thorough
def test_gradients_of_all_ranks_are_added_up():
    class Doubling(Beside):
        def sum_into(self, values, total):
            total[:] = 2.0 * values

    norms, moments = [], []
    for comm in (Communicator(), Beside(same), Doubling(same)):
        trainer, given = prepared(updates=1)
        trainer.update._comm = comm
        norms.append(run(trainer, given)["train/grad_norm"])
        moments.append(trainer.update.moments[0].first.numpy())
    # each rank logs the norm of the sum, so that two ranks log a half each
    assert norms[1:] == pytest.approx([0.5 * norms[0], norms[0]], rel=1e-4)
    np.testing.assert_allclose(moments[2], 2.0 * moments[1], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(("ranks", "signs"), [((), 3), ((same,), 5)])
def test_updates_report_progress_to_the_watchdog(monkeypatch, ranks, signs):
    heard = []
    trainer, given = prepared(updates=5)
    monkeypatch.setattr(update_module, "heartbeat", lambda: heard.append(1))
    monkeypatch.setattr(update_module, "HEARTBEAT_INTERVAL", 2)
    trainer.update._comm = Beside(*ranks)
    run(trainer, given)
    assert len(heard) == signs


def test_ranks_are_compared_every_hundred_updates():
    trainer, given = prepared(updates=1)
    trainer.update._comm = comm = Beside(same)
    trainer.update.step.assign(98)
    run(trainer, given)
    assert comm.asked == []
    run(trainer, given)
    assert [set(digests) for digests in comm.asked] == [set(trainer.update.layout.names)]


def digested(arrays):
    return {n: hashlib.blake2b(a.tobytes(), digest_size=16).hexdigest() for n, a in arrays.items()}


@cases(
    ("name", "other"),
    ("a", np.full([2, 3], -0.0, np.float32)),
    ("b", np.array([1.0, np.nextafter(2.0, 3.0)])),
    ("step", np.int64(8)),
)
def test_one_bit_of_difference_is_named_with_the_ranks(name, other):
    changed = digested({name: other})
    check_same_state(STATE, 7, Beside(lambda digests: digested(STATE)))
    ranks = Beside(lambda own: own | changed, same, lambda own: own | changed)
    with pytest.raises(NumbersFault) as raised:
        check_same_state(STATE, 7, ranks)
    text = f"differ after 7 updates: {name} on ranks [1, 3] is not what rank 0 holds"
    assert str(raised.value).endswith(text)


@cases(("every", "moves"), ("cycle", 4), ("update", 12), (2, 6), (5, 2))
def test_targets_approach_frozen_networks_geometrically(every, moves):
    frozen = {f"agent.{name}_learning_rate": 0.0 for name in ("actor", "critic")}
    trainer, given = prepared(with_fields(BASE, {"agent.polyak_every": every, **frozen}))
    update = trainer.update
    online = update.parameters.numpy()
    np.testing.assert_array_equal(update.targets, online[: update.targets_layout.size])
    update.targets.assign(online[: update.targets_layout.size] + 1.0)
    for _ in range(4):
        run(trainer, given)
    np.testing.assert_array_equal(update.parameters, online)
    gap = update.targets.numpy() - online[: update.targets_layout.size]
    np.testing.assert_allclose(gap, 0.95**moves, rtol=1e-4)


VALUE = dataclasses.replace(
    SOFT, agent=SacValueConfig(critics=2, learn_temperature=True, polyak_every="update", **NETWORK)
)


def first_gradients(config, order, rates):
    """First moments by network after one update, with some learning rates."""
    trainer, given = prepared(
        with_fields(config, {"agent.update_order": order, **rates}), updates=1
    )
    run(trainer, given)
    saved = trainer.update.shared()
    return {
        network.name: np.concatenate(
            [np.ravel(saved[f"adam_first/{name}"]) for name in network.weight_names]
        )
        for network in trainer.update.layout.networks
    }


@pytest.mark.thorough
@cases(
    ("config", "order", "of_critics", "of_actor"),
    (HER, "sequential", {"actor"}, {}),
    (SOFT, "sequential", {"actor"}, {}),
    (VALUE, "sequential", {"actor", "value"}, {}),
    (HER, "actor_first", {}, {}),  # whose next action is that of the target actor
    (SOFT, "actor_first", {}, {"critic_0", "critic_1"}),
    (VALUE, "actor_first", {"value"}, {"value"}),
    *((config, "simultaneous", {}, {}) for config in (HER, SOFT, VALUE)),
)
def test_an_update_in_order_sees_networks_that_have_moved_and_the_entropy_of_before(
    config, order, of_critics, of_actor
):
    for name, later in (("critic", of_critics), ("actor", of_actor)):
        rates = ({f"agent.{name}_learning_rate": rate} for rate in (0.1, 0.0))
        moving, still = (first_gradients(config, order, rate) for rate in rates)
        differ = {name for name in moving if not np.array_equal(moving[name], still[name])}
        assert differ == set(later)


@pytest.mark.thorough
@pytest.mark.parametrize("config", [HER, SOFT, VALUE], ids=["ddpg", "sac", "sac_value"])
def test_the_first_phase_of_a_sequential_update_is_that_of_a_simultaneous_one(config):
    found = []
    for order in ("simultaneous", "sequential"):
        trainer, given = prepared(with_fields(config, {"agent.update_order": order}), updates=1)
        metrics = run(trainer, given)
        found.append((trainer.update.shared(), metrics))
    (one, simultaneous), (other, sequential) = found
    for name in one:
        if name.startswith(("parameters/critic", "adam_first/critic")):
            np.testing.assert_allclose(other[name], one[name], rtol=1e-4, atol=1e-7)
    assert set(simultaneous) == set(sequential)  # each once, at the weights of the start
    for name in set(simultaneous) - {"train/grad_norm"}:
        assert sequential[name] == pytest.approx(simultaneous[name], rel=1e-4, abs=1e-6)


@cases(
    ("config", "late"),
    (HER, {"actor"}),
    (SOFT, {"actor", "log_temperature"}),
    (VALUE, {"actor", "log_temperature"}),
)
@pytest.mark.thorough
def test_actor_and_temperature_step_at_every_second_update_and_are_logged_then(config, late):
    paced = {"agent.update_order": "sequential", "agent.actor_every": 2}
    trainer, given = prepared(with_fields(config, paced))
    layout, seen = trainer.update.layout, []
    for index in range(2):
        before = layout.name_arrays(trainer.update.parameters.numpy())
        logged = run(trainer, slices(given, index))
        after = layout.name_arrays(trainer.update.parameters.numpy())
        moved = {name.partition("/")[0] for name in after if (after[name] != before[name]).any()}
        seen.append((moved, "train/actor_loss" in logged, "train/mean_q" in logged))
    networks = {name.partition("/")[0] for name in layout.names}
    assert seen == [(networks - late, False, True), (networks, True, True)]
    assert trainer.update.meta()["phase_steps"].count(1) == len(late)


def test_only_networks_with_targets_have_them():
    update = trainer_of(EVERYTHING).update
    assert update.targets_layout.names == [
        name for name in update.layout.names if name.startswith(("actor/", "critic_"))
    ]
    assert update.layout.names[: len(update.targets_layout.names)] == update.targets_layout.names


@pytest.mark.parametrize("name", ALL)
def test_every_weight_that_learns_moves(name):
    trainer, given = prepared(ALL[name])
    before = trainer.update.layout.name_arrays(trainer.update.parameters.numpy())
    run(trainer, given)
    after = trainer.update.layout.name_arrays(trainer.update.parameters.numpy())
    still = [key for key, values in after.items() if np.array_equal(values, before[key])]
    learns = getattr(ALL[name].agent, "learn_temperature", True)
    assert still == ([] if learns else ["log_temperature"])


class Spy(Learner):  # a learner that notes the batches it gets
    def __init__(self, learner):
        self.learner, self.batches = learner, []

    networks = property(lambda self: self.learner.networks)
    target_networks = property(lambda self: self.learner.target_networks)

    def draws(self, *arguments):
        return self.learner.draws(*arguments)

    def losses(self, weights, targets, batch, *rest):
        self.batches.append(batch)
        return self.learner.losses(weights, targets, batch, *rest)


@pytest.mark.thorough
def test_the_learner_gets_bounds_of_what_is_paid_now_where_they_are_asked_for():
    for clip in ("auto", "paid"):
        trainer, given = prepared(with_fields(HER, {"agent.return_clip": clip}), updates=1)
        spy = Spy(trainer.update.learner)
        update_of(trainer, spy).run(*given)
        assert (spy.batches[0].bounds is None) is (clip == "auto")


class Spoiled(Spy):  # a learner whose loss is not finite, while its gradient is
    def __init__(self, learner, bad):
        super().__init__(learner)
        self._bad = bad

    def losses(self, *arguments):
        losses = super().losses(*arguments)
        metrics = losses.metrics | {"train/critic_loss": losses.metrics["train/mean_q"] + self._bad}
        return losses._replace(metrics=metrics)


class TwoSteps(Spy):
    """Moves the number `a` towards 1 at every update, then `b` towards the new `a` at every second.

    With Adam the first steps are the learning rate in the direction of the goal.
    """

    networks = (Scalar("a", 0.0, 0.1), Scalar("b", 0.0, 0.01))
    target_networks = networks[:1]
    phases = property(
        lambda self: [Phase(self._first, ("a",)), Phase(self._second, ("b",), every=2, times=3)]
    )

    def _first(self, weights, *rest):
        (a,) = weights["a"]
        return Losses(0.5 * tf.square(a - 1.0) * tf.ones([1]), {"train/a": a * tf.ones([2])})

    def _second(self, weights, *rest):
        (a,), (b,) = weights["a"], weights["b"]
        return Losses(tf.square(b - a) * tf.ones([1]), {"train/seen": a * tf.ones([2])})


@pytest.mark.thorough
def test_phases_take_their_steps_one_after_the_other_each_when_it_is_due():
    trainer, given = prepared(updates=3)
    update = update_of(trainer, TwoSteps(None))
    first = update.run(*slices(given, 0))
    # only `a` has moved: the phase of `b` is due at updates 2, 4, ...
    np.testing.assert_allclose(update.parameters, [0.1, 0.0], atol=1e-5)
    assert "train/seen" not in first
    assert not update.moments[1].first.numpy().any()
    second = update.run(*slices(given, 1))
    assert first["train/a"] == 0.0
    assert second["train/a"] == pytest.approx(0.1, abs=1e-5)
    assert second["train/seen"] == pytest.approx(0.2, abs=1e-3)  # the `a` of this update
    # three steps of 0.01 by a count of their own, the later ones a little smaller
    np.testing.assert_allclose(update.parameters, [0.1996, 0.0299], atol=1e-4)
    assert update.meta() == {"updates": 2, "step_scale": 1.0, "phase_steps": [2, 3]}
    other = update_of(trainer, TwoSteps(None))
    scales = (0, 0.0, -0.5, 1.5, math.nan, 10**400, True, "1")  # never up or to nothing
    for name, bad in (
        *(("phase_steps", bad) for bad in ([2], [2, "3"], [2, -1], 5)),
        *(("step_scale", bad) for bad in scales),
    ):
        with pytest.raises(ValueError, match=f"{name}: not what a run saves"):
            other.load(update.shared(), update.meta() | {name: bad})
    other.load(update.shared(), update.meta())
    for each in (update, other):
        each.run(*slices(given, 2))
        each.run(*slices(given, 2))
    np.testing.assert_array_equal(other.parameters, update.parameters)
    assert other.meta()["phase_steps"] == [4, 6]


def test_a_phase_moves_networks_that_lie_side_by_side():
    class Apart(TwoSteps):
        networks = (*TwoSteps.networks, Scalar("c", 0.0, 0.1))
        phases = property(lambda self: [Phase(self._first, ("a", "c"))])

    with pytest.raises(ValueError, match=r"side by side, got \['a', 'c'\]"):
        update_of(trainer_of(), Apart(None), [])


def test_terms_may_come_in_any_order_whatever_the_pace_at_which_they_learn():
    often = InfluenceConfig(samples=4, hidden_sizes=(8,), times=10)
    found = [
        [network.name for network in trainer_of(paying(MUSIC, *terms)).update.layout.networks]
        for terms in ((often, SMALL_MUSIC), (SMALL_MUSIC, often))
    ]
    assert found[0] == found[1]
    assert found[0][-2:] == ["statistics", "influence_model"]


class Twice(RewardTerm):
    """Pays 1, learns a number at twice the pace, and counts only where the first action is > 0."""

    name = "twice"
    mixing = Mixing(1.0, (0.0, 1.0), 0.0, ((0.0, 1.0),))

    networks = (Scalar("number", 0.0, 0.1),)
    times = 2

    def __init__(self):
        pass

    def reward(self, weights, batch, feed):
        return tf.ones_like(batch.reward)

    def gate(self, batch):
        return tf.cast(batch.action[..., 0] > 0.0, tf.float32)

    def feed(self, replay, updates, cycle):
        return {"goal": np.repeat(np.arange(2.0 * updates, dtype=np.float32)[:, None], 2, axis=1)}

    def loss(self, weights, feed):
        (number,) = weights["number"]
        return tf.reduce_sum(tf.abs(number - feed["goal"])), {"twice/goal": feed["goal"]}


@pytest.mark.thorough
def test_a_term_may_learn_at_its_own_pace_and_count_for_some_transitions_alone():
    trainer, given = prepared(updates=2)
    update = update_of(trainer, trainer.update.learner, [Twice()])
    terms = {"twice": Twice().feed(None, 2, 0)}
    schedules = given.schedules._replace(terms={"twice": tf.constant(1.0)})
    metrics = update.run(given.feed._replace(terms=terms), schedules)
    counted = given.feed.transitions.action[..., 0] > 0.0
    assert metrics["reward/twice_mean"] == pytest.approx(counted.mean(), abs=1e-6)
    assert metrics["twice/goal"] == pytest.approx(2.0)  # (1 + 3) / 2 updates
    assert update.meta()["phase_steps"] == [2, 4]


@pytest.mark.parametrize("reward", [SkillConfig, DadsConfig])
@cases(
    ("gate", "paid"),
    ({}, [1.0, 1.0, 1.0]),
    ({"target": -math.inf, "margin": 1.0}, [1.0, 1.0, 1.0]),  # the plain sum
    ({"target": 10.0, "margin": 2.0}, [0.0, 1.0, 1.0]),  # at the bar it is open
    ({"target": 10.0, "margin": 2.0, "weight": ((0.0, 0.0), (9.0, 1.0))}, [0.0, 0.0, 0.0]),
)
@pytest.mark.usefixtures("eagerly")
def test_diversity_is_added_to_the_task_where_the_episode_returned_enough(reward, gate, paid):
    own = reward(hidden_sizes=(8,), clip=(-9.0, 9.0), shift=20.0, **gate)
    trainer, given = prepared(paying(BASE, TaskConfig(), own, skills=3), updates=1)
    returns = np.resize(np.float32([7.99, 8.0, 9.0]), given.feed.transitions.reward.shape)
    spy = Spy(trainer.update.learner)
    update_of(trainer, spy).run(*given.change(episode_return=returns))
    diversity = spy.batches[0].reward.numpy() - given.feed.transitions.reward[0]
    expected = np.resize(np.float32(paid), returns.shape)[0]
    np.testing.assert_array_equal(diversity > 5.0, expected > 0.0)
    np.testing.assert_array_equal(diversity[expected == 0.0], 0.0)


@pytest.fixture
def eagerly():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("eagerly")
def test_a_lost_object_pays_the_lowest_reward_for_ever():
    rewards = []
    for lost in (False, True):
        trainer, given = prepared(MUSIC, updates=1)
        flags = np.zeros_like(given.feed.transitions.lost)
        flags[0, 1, 3] = lost
        spy = Spy(trainer.update.learner)
        update_of(trainer, spy).run(*given.change(lost=flags))
        rewards.append(spy.batches[0].reward.numpy())
    # the lowest MUSIC reward is (0 - 1) * 1, and for ever after that is 0.9 / (1 - 0.9) * -1
    expected = np.zeros_like(rewards[0])
    expected[1, 3] = -9.0
    np.testing.assert_allclose(rewards[1] - rewards[0], expected, atol=1e-5)


def test_metrics_are_means_over_updates_and_workers_and_extremes_over_all():
    trainer, given = prepared(HER)
    shape = given.feed.transitions.reward.shape
    rewards = np.linspace(-1.0, 0.0, math.prod(shape), dtype=np.float32).reshape(shape)
    metrics = run(trainer, given.change(reward=rewards))
    assert metrics["reward/task_mean"] == pytest.approx(rewards.mean(), abs=1e-5)
    assert metrics["reward/task_square"] == pytest.approx(np.mean(rewards**2), rel=1e-5)
    assert (metrics["reward/task_min"], metrics["reward/task_max"]) == (-1.0, 0.0)


def spoil(trainer, given, place):
    """Puts a nan where it is said: into a weight, or into what an update is given."""
    if place == "trajectories":
        given.feed.terms["music"]["trajectories"][0, 0, 0, 0, 0] = np.nan
    elif place == "reward":
        given.feed.transitions.reward[1, 0, 0] = np.nan
    else:
        arrays = trainer.update.layout.name_arrays(trainer.update.parameters.numpy())
        arrays[place].flat[-1] = np.nan
        trainer.update.parameters.assign(trainer.update.layout.flatten(arrays))


@pytest.mark.thorough
@cases(
    ("config", "place", "found"),
    (EVERYTHING, "reward", "train/critic_loss"),
    (MUSIC, "trajectories", "music/bound"),
    (with_fields(MUSIC, {"music.train": False}), "statistics/score/bias", "reward/music_mean"),
    (  # behind a ReLU
        with_fields(MUSIC, {"music.train": False}),
        "statistics/agent/bias",
        "reward/music_mean|: statistics/agent/bias\n",
    ),
    ids=["reward", "trajectories", "bias", "bias behind a ReLU"],
)
def test_numbers_that_go_bad_are_reported_with_what_went_bad(config, place, found):
    trainer, given = prepared(config)
    spoil(trainer, given, place)
    with pytest.raises(NumbersFault, match=rf"(?s)non-finite.*({found}).*last checkpoint"):
        run(trainer, given)


class OtherRankBad(Beside):  # the way of the root where only another rank met a bad loss
    def any(self, flag):
        return True


def test_a_bad_number_on_another_rank_is_a_fault_here_too_and_says_where():
    trainer, given = prepared(updates=1)
    trainer.update._comm = OtherRankBad(lambda bad: ["train/critic_loss"])
    with pytest.raises(NumbersFault, match=r"on ranks \[1\]: train/critic_loss\n") as raised:
        run(trainer, given)
    assert "transitions.reward" in raised.value.evidence


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_is_a_fault_even_where_its_gradient_is(bad):
    trainer, given = prepared(updates=1)
    trainer.update = update_of(trainer, Spoiled(trainer.update.learner, bad))
    with pytest.raises(NumbersFault, match=r"on ranks \[0\]: train/critic_loss\n"):
        run(trainer, given)


@pytest.mark.thorough
def test_a_term_that_is_not_fed_changes_nothing_but_its_own_network():
    config = paying(BASE, TaskConfig(), SMALL_MUSIC)
    found, names = [], []
    for fed in (("task", "music"), ("task",)):
        trainer, given = prepared(config)
        terms = {name: given.feed.terms[name] for name in fed}
        weights = given.schedules.terms | {"music": tf.constant(0.0)}
        schedules = given.schedules._replace(terms=weights)
        metrics = run(trainer, Given(given.feed._replace(terms=terms), schedules))
        found.append(trainer.update.layout.name_arrays(trainer.update.parameters.numpy()))
        names.append({name for name in metrics if "music" in name})
    with_it, without = found
    for name in with_it:
        if name.startswith("statistics/"):
            assert (with_it[name] != without[name]).any(), name
        else:
            np.testing.assert_allclose(without[name], with_it[name], atol=1e-7, err_msg=name)
    assert {"music/bound", "reward/music_mean"} < names[0]
    assert names[1] == set()


def test_schedules_weigh_terms_and_entropy():
    schedule = ((0.0, 1.0), (10.0, 0.0))
    config = dataclasses.replace(
        with_fields(EVERYTHING, {"music.weight": schedule}),
        agent=SacConfig(entropy_weight=((0.0, 0.2), (4.0, 1.0)), **NETWORK),
    )
    trainer = trainer_of(config)
    trainer.counters.epoch = 2
    schedules = trainer.schedules()
    found = {name: float(weight) for name, weight in schedules.terms.items()}
    assert found == pytest.approx({"task": 1.0, "music": 0.8, "skill": 1.0})
    assert float(schedules.entropy) == pytest.approx(0.6)  # 0.2 + 0.8 * 2 / 4
    assert float(trainer_of(BASE).schedules().entropy) == 0.0


def test_what_is_large_and_aligned_is_shared_with_tensorflow_and_all_else_copied():
    large = aligned([300, 200])
    large[:] = 1.0
    shifted = np.empty(60_001, np.float32)[1:].reshape(300, 200)
    shifted[:] = 1.0
    small = aligned([10])
    small[:] = 1.0
    apart = aligned([300, 400])[:, :200]
    apart[:] = 1.0
    constant = aligned([300, 200])
    constant[:] = 1.0
    constant.flags.writeable = False
    arrays = [large, shifted, small, apart, constant]
    tensors = [feeds_module.as_tensor(array) for array in arrays]
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(tensor, array)
    for array in arrays[:-1]:
        array.flat[0] = 2.0
    assert [float(tf.reshape(tensor, [-1])[0]) for tensor in tensors] == [2.0, 1.0, 1.0, 1.0, 1.0]


def test_a_tensor_keeps_the_memory_that_it_shares():
    array = aligned([1000, 1000])
    array[:] = 3.0
    tensor = feeds_module.as_tensor(array)
    del array
    others = [np.full([1000, 1000], 5.0, np.float32) for _ in range(20)]
    assert (float(tf.reduce_max(tensor)), len(others)) == (3.0, 20)


def learner_arrays(shared, *kinds):  # what belongs to actor, critic and temperature, by name
    own = ("actor", "critic", "log_temperature")
    names = [f"{kind}/{one}" for kind in kinds for one in own]
    return {name: array for name, array in shared.items() if name.startswith(tuple(names))}


@pytest.mark.thorough
def test_a_learner_that_begins_anew_goes_on_as_one_that_has_those_weights():
    old, given = prepared(SOFT)
    fresh, _ = prepared(SOFT, seed=5)
    initial = fresh.update.parameters.numpy()
    old.update.run(*given)
    old.update.begin_anew(initial)
    np.testing.assert_array_equal(old.update.targets, fresh.update.targets)
    for update in (old.update, fresh.update):
        update.run(*given)
    np.testing.assert_equal(old.update.shared(), fresh.update.shared())
    assert old.update._run_updates.experimental_get_tracing_count() == 1
    assert (old.update.meta()["updates"], fresh.update.meta()["updates"]) == (6, 3)
    assert old.update.meta()["phase_steps"] == [3]
    assert "phase_steps" not in fresh.update.meta()


@pytest.mark.thorough
def test_what_terms_learn_stays_where_the_learner_begins_anew():
    trainer, given = prepared(EVERYTHING)
    trainer.update.run(*given)
    before = trainer.update.shared()
    other, _ = prepared(EVERYTHING, seed=5)
    own = trainer.update.layout.span([n.name for n in trainer.update.learner.networks])
    trainer.update.begin_anew(other.update.parameters.numpy()[own])
    after = trainer.update.shared()
    changed = learner_arrays(before, "parameters", "targets", "adam_first", "adam_second")
    for name, array in before.items():
        if name not in changed:
            np.testing.assert_array_equal(after[name], array, name)
    for name in learner_arrays(before, "adam_first", "adam_second"):
        assert not after[name].any(), name
    assert any(array.any() for name, array in before.items() if "adam_first/stat" in name)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [SacConfig, SacValueConfig])
def test_step_counts_of_a_learner_that_began_anew_survive_a_save(kind):
    order = "sequential" if kind is SacValueConfig else "simultaneous"
    config = dataclasses.replace(BASE, agent=kind(update_order=order, **NETWORK))
    trainer, given = prepared(config)
    trainer.update.run(*given)
    trainer.update.begin_anew(trainer.update.parameters.numpy())
    again, _ = prepared(config)
    again.update.load(trainer.update.shared(), trainer.update.meta())
    for each in (trainer, again):
        each.update.run(*given)
    np.testing.assert_equal(again.update.shared(), trainer.update.shared())


class Ahead(RewardTerm):
    """Pays the number `paid`, which learns towards 1; `model` learns towards 2 by itself."""

    name = "ahead"
    mixing = Mixing(1.0, (-9.0, 9.0), 0.0, ((0.0, 1.0),))
    networks = (Scalar("paid", 0.0, 0.1), Scalar("model", 0.0, 0.01))

    def __init__(self, steps_first=False, early=()):
        self.steps_first, self.early = steps_first, early

    def reward(self, weights, batch, feed):
        return weights["paid"][0] * tf.ones_like(batch.reward)

    def loss(self, weights, feed):
        (paid,), (model,) = weights["paid"], weights["model"]
        loss = tf.square(paid - 1.0) + tf.square(model - 2.0)
        return loss * tf.ones([2]), {"ahead/model": model * tf.ones([2])}


def ahead(trainer, given, **settings):  # an update with this term alone, and what it is given
    terms = {"ahead": {"none": np.zeros([len(given.feed.inputs), 2, 1], np.float32)}}
    schedules = given.schedules._replace(terms={"ahead": tf.constant(1.0)})
    update = update_of(trainer, trainer.update.learner, [Ahead(**settings)])
    return update, Given(given.feed._replace(terms=terms), schedules)


@pytest.mark.parametrize(("steps_first", "paid"), [(False, 0.0), (True, 0.1)])
def test_a_term_that_steps_first_pays_what_it_has_just_learned(steps_first, paid):
    trainer, given = prepared(updates=1)
    update, given = ahead(trainer, given, steps_first=steps_first)
    assert update.run(*given)["reward/ahead_mean"] == pytest.approx(paid, abs=1e-5)
    assert float(update.weights()["paid"][0]) == pytest.approx(0.1, abs=1e-5)
    assert float(update.weights()["model"][0]) == pytest.approx(0.01, abs=1e-5)


@pytest.mark.thorough
def test_what_learns_early_moves_alone_and_counts_its_own_steps():
    trainer, given = prepared(updates=3)
    update, given = ahead(trainer, given, early=("model",))
    assert update.learns_early
    assert not trainer.update.learns_early
    before, targets = update.shared(), update.targets.numpy()
    learned = update.run_parts([given.feed], given.schedules, early=True)
    assert set(learned) == {"ahead/model", "train/grad_norm"}
    assert learned["ahead/model"] == pytest.approx(0.01, abs=1e-4)  # 0, .01 and .02
    after = update.shared()
    moved = {name for name in before if (before[name] != after[name]).any()}
    kinds = ("adam_first", "adam_second", "parameters")
    assert moved == {f"{kind}/model" for kind in kinds}
    np.testing.assert_array_equal(update.targets, targets)
    assert update.meta() == {"updates": 0, "step_scale": 1.0, "phase_steps": [0, 3]}
    assert update.run(*given)["ahead/model"] == pytest.approx(0.04, abs=1e-3)
    assert update.meta()["phase_steps"] == [3, 6]


@pytest.mark.thorough
def test_early_steps_and_later_ones_are_those_of_one_network_that_learns_throughout():
    trainer, given = prepared(updates=2)
    (early, given), (whole, _) = (ahead(trainer, given, early=names) for names in (("model",), ()))
    early.run_parts([given.feed], given.schedules, early=True)
    early.run(*given)
    whole.run(*given)
    whole.run(*given)
    found, expected = (each.weights()["model"][0] for each in (early, whole))
    assert float(found) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.usefixtures("eagerly")
def test_a_time_limit_may_count_as_an_end():
    trainer, given = prepared(updates=1)
    spy = Spy(trainer.update.learner)
    flags = np.zeros_like(given.feed.transitions.truncated)
    flags[..., ::2] = True
    changed = given.change(truncated=flags)
    for truncated, left in (("bootstrap", 1.0), ("masked", 1.0), ("terminal", 0.0)):
        config = dataclasses.replace(trainer.config.agent, truncated=truncated)
        Update(spy, trainer.terms, config, 0.9, Communicator(), 2).run(*changed)
        seen = spy.batches[-1].discount.numpy()
        kept = given.feed.transitions.discount[0]
        np.testing.assert_allclose(seen[:, ::2], left * kept[:, ::2])
        np.testing.assert_array_equal(seen[:, 1::2], kept[:, 1::2])
