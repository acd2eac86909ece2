"""One update of everything that learns: rewards, losses, one reduction, one Adam step."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch, Learner
from music_tf.config.settings import AgentConfig
from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from music_tf.intrinsic.base import RewardTerm
from music_tf.networks.parameters import Layout, compiled
from music_tf.process import heartbeat, longer_timeout
from music_tf.training.adam import AdamState, adam_step
from music_tf.training.agreement import check_same_state
from music_tf.types import Array, Metrics, Transition

DESYNC_INTERVAL = 100
"""Updates between bitwise comparisons of the parameters of all ranks, at the end of a cycle."""
NOTE_INTERVAL = 10
"""Updates between two signs of life of a rank by itself; a sign leaves the compiled loop."""


class Feed(NamedTuple):
    """All that the updates of one cycle need; arrays are [U, W, ...]."""

    transitions: Transition
    inputs: Array  # [U, W, B, I], normalised, of the states before the actions
    next_inputs: Array  # [U, W, B, I]
    terms: Mapping[str, Mapping[str, np.ndarray]]
    noise: Mapping[str, Array]


class Schedules(NamedTuple):
    """Scheduled weights at present, as tensors so that a new value does not retrace."""

    terms: Mapping[str, tf.Tensor]
    entropy: tf.Tensor


_Loop: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]


class Update:
    """Parameters, targets and moments of a run, and the compiled step that changes them.

    All updates of a cycle are one compiled loop, in which several ranks meet once per update: to
    add up the flat gradient.
    """

    def __init__(
        self,
        learner: Learner,
        terms: Sequence[RewardTerm],
        config: AgentConfig,
        discount: float,
        comm: Communicator,
        workers: int,
    ) -> None:
        """Lays out all networks in one vector and makes it equal on all ranks.

        Args:
            learner: Actor and critics.
            terms: Rewards, in the order in which they are summed.
            config: Polyak averaging and the reduction of gradients.
            discount: Gamma, for what a lost object pays for ever after.
            comm: The ranks.
            workers: Number of workers over all ranks.
        """
        self._learner = learner
        self._terms = terms
        self._config = config
        self._horizon = discount / (1.0 - discount)
        self._comm = comm
        self._workers = workers
        self.layout = Layout(
            [*learner.networks, *(network for term in terms for network in term.networks)]
        )
        self.targets_layout = Layout(learner.target_networks)
        initial = comm.broadcast(self.layout.initial())
        self.parameters = tf.Variable(initial)
        self.targets = tf.Variable(initial[: self.targets_layout.size])
        self.moments = AdamState.zeros(initial)
        self.step = tf.Variable(0, dtype=tf.int64)
        self._learning_rate = tf.Variable(self.layout.learning_rates())
        self.step_scale = 1.0
        self._names: dict[frozenset[str], list[str]] = {}
        self._run_updates = compiled(self._updates)
        self._move_targets = compiled(self._polyak)

    def run(self, feed: Feed, schedules: Schedules) -> Metrics:
        """Takes all updates of a cycle; every rank must call it together.

        Only the reward terms in `feed.terms` are computed and learn; the others rest.

        Returns:
            Means over updates and local workers by metric name, summed shares of all workers:
            adding the results of all ranks gives the means over everything. Names ending in
            `_min` and `_max` are extremes over what this rank saw.

        Raises:
            NumbersFault: A reward, loss, gradient or weight of any rank is not finite, or ranks
                hold different parameters.
        """
        tensors = tf.nest.map_structure(tf.convert_to_tensor, feed)
        updates = len(feed.transitions.reward)
        compiles = frozenset(feed.terms) not in self._names
        with longer_timeout() if compiles else contextlib.nullcontext():
            sums, lows, highs = self._run_updates(tensors, schedules)
        if self._config.polyak_every == "cycle":
            self._move_targets()
        done = int(self.step.numpy())
        if done // DESYNC_INTERVAL > (done - updates) // DESYNC_INTERVAL:
            self.check_equal()
        names = self._names[frozenset(feed.terms)]
        values = dict(zip(names, np.asarray(sums) / updates, strict=True))
        self._check_finite(values, feed)
        for name, low, high in zip(feed.terms, np.asarray(lows), np.asarray(highs), strict=True):
            values[f"reward/{name}_min"], values[f"reward/{name}_max"] = low, high
        return {name: float(value) for name, value in values.items()}

    def check_equal(self) -> None:
        """Compares parameters bit by bit over ranks; every rank must call it together.

        Raises:
            NumbersFault: They differ; the text names the first differing weight and the ranks.
        """
        arrays = self.layout.name_arrays(self.parameters.numpy())
        check_same_state(arrays, int(self.step.numpy()), self._comm)

    def _check_finite(self, values: Mapping[str, float], feed: Feed) -> None:
        """Raises on all ranks alike where any of them met a number that is not finite."""
        bad = [name for name, value in values.items() if not np.isfinite(value)]
        bad = bad or self._bad_weights()
        if not self._comm.any(bool(bad)):
            return
        found = self._comm.collect(bad)
        names = dict.fromkeys(name for names in found for name in names)
        ranks = [rank for rank, names in enumerate(found) if names]
        raise NumbersFault(
            f"non-finite numbers within the {int(self.step.numpy())} updates so far, on ranks "
            f"{ranks}: {', '.join(names)}\n"
            "the last checkpoint is intact; smaller learning rates may help",
            _named_arrays(feed),
        )

    def _bad_weights(self) -> list[str]:
        """Returns the weights that are not finite: a ReLU of NaN is 0 on some processors."""
        if np.isfinite(tf.reduce_sum(self.parameters).numpy()):
            return []
        arrays = self.layout.name_arrays(self.parameters.numpy())
        return [name for name, array in arrays.items() if not np.isfinite(array).all()]

    def scale_steps(self, scale: float) -> None:
        """Makes every Adam step this share of what the configuration says."""
        self.step_scale = scale
        self._learning_rate.assign(np.float32(scale) * self.layout.learning_rates())

    def weights(self) -> dict[str, list[tf.Tensor]]:
        """Returns the weights of every network as they are now, by network."""
        return self.layout.split(tf.convert_to_tensor(self.parameters))

    def actor_weights(self) -> list[Array]:
        """Returns a copy of the actor's weights as they are now, for acting."""
        actor = self._learner.networks[0]
        flat = self.parameters[: actor.size].numpy()
        return Layout([actor]).split_arrays(flat)[actor.name]

    def _updates(self, feed: Feed, schedules: Schedules) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Takes all updates; returns summed metric shares and each term's extremes."""
        updates = feed.transitions.reward.shape[0]

        def body(index: tf.Tensor, sums: tf.Tensor, low: tf.Tensor, high: tf.Tensor) -> _Loop:
            gradient, values, lowest, highest = self._gradient(feed, index, schedules)
            norm = self._apply(self._summed_over_ranks(gradient, index))
            sums += tf.concat([values, [norm / self._comm.size]], axis=0)
            return index + 1, sums, tf.minimum(low, lowest), tf.maximum(high, highest)

        count = len(feed.terms)
        self._gradient(feed, tf.constant(0), schedules)  # names the metrics; pruned
        start = (
            tf.constant(0),
            tf.zeros([len(self._names[frozenset(feed.terms)])]),
            tf.fill([count], np.float32(np.inf)),
            tf.fill([count], np.float32(-np.inf)),
        )
        _, sums, low, high = tf.while_loop(
            lambda index, *_: index < updates, body, start, parallel_iterations=1
        )
        return sums, low, high

    def _gradient(
        self, feed: Feed, index: tf.Tensor, schedules: Schedules
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the flat gradient [P], metric shares, and each term's extremes, of one update."""
        now: Feed = tf.nest.map_structure(lambda values: values[index], feed)
        flat = tf.convert_to_tensor(self.parameters)
        targets = self.targets_layout.split(tf.convert_to_tensor(self.targets))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(flat)
            weights = self.layout.split(flat)
            rewards = self._rewards(weights, now, schedules)
            total_reward = tf.add_n([*rewards.values(), self._aftermath(now, schedules)])
            batch = Batch(
                inputs=now.inputs,
                next_inputs=now.next_inputs,
                action=now.transitions.action,
                reward=total_reward,
                discount=now.transitions.discount,
            )
            losses = self._learner.losses(weights, targets, batch, now.noise, schedules.entropy)
            total, metrics = tf.reduce_sum(losses.total), dict(losses.metrics)
            for term in self._fed(now):
                loss, learned = term.loss(weights, now.terms[term.name])
                total += tf.reduce_sum(loss)
                metrics |= learned
        gradient = tape.gradient(total, flat)
        if self._config.gradient_reduce == "mean":
            gradient /= self._workers
        for name, reward in rewards.items():
            metrics[f"reward/{name}_mean"] = tf.reduce_mean(reward, axis=-1)
            metrics[f"reward/{name}_square"] = tf.reduce_mean(tf.square(reward), axis=-1)
        self._names[frozenset(feed.terms)] = [*metrics, "train/grad_norm"]
        shares = tf.stack([tf.reduce_sum(value) for value in metrics.values()]) / self._workers
        lows = tf.stack([tf.reduce_min(reward) for reward in rewards.values()])
        highs = tf.stack([tf.reduce_max(reward) for reward in rewards.values()])
        return gradient, shares, lows, highs

    def _rewards(
        self, weights: Mapping[str, list[tf.Tensor]], now: Feed, schedules: Schedules
    ) -> dict[str, tf.Tensor]:
        """Returns each term as it enters the sum: w * (clip(c * r, lo, hi) + shift), [W, B]."""
        return {
            term.name: term.mixing(
                term.reward(weights, now.transitions, now.terms[term.name]),
                schedules.terms[term.name],
            )
            for term in self._fed(now)
        }

    def _fed(self, feed: Feed) -> list[RewardTerm]:
        """Returns the terms that take part, in the order in which they are summed."""
        return [term for term in self._terms if term.name in feed.terms]

    def _aftermath(self, now: Feed, schedules: Schedules) -> tf.Tensor:
        r"""Returns what follows a lost object, [W, B]: each term's lowest reward, for ever.

        .. math:: \frac{\gamma}{1 - \gamma} \sum_i w_i (lo_i + shift_i)

        A term of negative weight is lowest where it is paid most.
        """
        lowest = [term.mixing.lowest(schedules.terms[term.name]) for term in self._fed(now)]
        return tf.where(now.transitions.lost, self._horizon * tf.add_n(lowest), 0.0)

    def _summed_over_ranks(self, gradient: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        """Adds up the flat gradient of all ranks and notes progress, within the compiled loop."""
        if self._comm.size == 1:
            tf.cond(index % NOTE_INTERVAL == 0, _note_progress, lambda: True)
            return gradient

        def reduce(own: Array) -> Array:
            total = np.empty_like(own)
            self._comm.sum_into(own, total)
            heartbeat()
            return total

        return tf.ensure_shape(tf.numpy_function(reduce, [gradient], tf.float32), gradient.shape)

    def _apply(self, gradient: tf.Tensor) -> tf.Tensor:
        """Takes one Adam step and returns the norm of the reduced gradient."""
        step = self.step.assign_add(1)
        adam_step(
            self.parameters,
            gradient,
            self.moments,
            tf.cast(step, tf.float32),
            self._learning_rate,
        )
        if self._config.polyak_every == "update":
            self._polyak()
        return tf.norm(gradient)

    def _polyak(self) -> None:
        """Moves the targets: theta' <- theta' + (1 - p)(theta - theta')."""
        online = self.parameters[: self.targets_layout.size]
        self.targets.assign_add((1.0 - self._config.polyak) * (online - self.targets))


def _note_progress() -> tf.Tensor:
    """Tells the watchdog from within a compiled loop that it gets on."""

    def note() -> np.bool_:
        heartbeat()
        return np.True_

    return tf.numpy_function(note, [], tf.bool)


def _named_arrays(feed: Feed) -> dict[str, np.ndarray]:
    """Returns all that the updates of a cycle were given, by name."""
    named = {f"transitions.{name}": array for name, array in feed.transitions._asdict().items()}
    for group in ("extras", "next_extras"):
        extras = named.pop(f"transitions.{group}")
        named |= {f"transitions.{group}.{name}": array for name, array in extras.items()}
    named |= {"inputs": feed.inputs, "next_inputs": feed.next_inputs, **feed.noise}
    for term, arrays in feed.terms.items():
        named |= {f"{term}.{name}": array for name, array in arrays.items()}
    return named
