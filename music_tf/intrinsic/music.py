"""Mutual information state intrinsic control (Zhao et al., 2021, arXiv:2103.08107)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.intrinsic.base import Feed, InputSpec, TermContext, scale_variables, share_deviation
from music_tf.intrinsic.scaled import ScaledTerm
from music_tf.losses.mutual_information import donsker_varadhan, pair_bound
from music_tf.networks.models import statistics_network
from music_tf.networks.parameters import Network, Weights
from music_tf.networks.two_layers import two_layers
from music_tf.randomness import stream
from music_tf.recipes.music import MusicConfig
from music_tf.replay.buffer import ReplayBuffer, all_transitions
from music_tf.replay.rows import Store
from music_tf.types import Array, Episodes, IntArray, Metrics, Transition


class Music(ScaledTerm):
    """Rewards transitions whose agent state and surrounding state have high mutual information.

    A statistics network T is fitted to a lower bound on the mutual information within whole
    trajectories. The reward is the same bound on the two states of a transition, `pair_bound`.
    States beyond the end of a shorter episode are left out of both averages. The settings hold
    optional deviations from the release.
    """

    def __init__(self, config: MusicConfig, context: TermContext) -> None:
        super().__init__(config, context, context.info.music_gain)
        split = context.split()
        self._config = config
        self._seed = context.seed
        self._agent_dim = len(split.agent)
        self._some_end_early = False
        self.columns = [*split.agent, *split.surrounding]
        scale = context.measure(InputSpec(tuple(self.columns))) if config.normalize_inputs else None
        if scale is not None:
            # a coordinate that random actions hardly change would count far more than the others
            for position in (context.info.gripper, context.info.object):
                its = np.isin(self.columns, position or ())
                if its.any():
                    share_deviation(scale[1], its)
        self.scales = scale_variables("statistics", scale)
        seen = {"agent": list(split.agent), "surrounding": list(split.surrounding)}
        # checkpoints of earlier versions have ReLU units and no entry for the activation
        units = {} if config.activation == "relu" else {"activation": config.activation}
        self.inputs = {"statistics": {**seen, **units}}
        sizes = self._agent_dim, len(split.surrounding), config.hidden_size
        seed = stream(context.seed, "initial weights/statistics")
        model = statistics_network(*sizes, seed, config.activation)
        rate = config.learning_rate if config.train else 0.0
        self.networks: Sequence[Network] = [Network("statistics", model, rate)]

    def draws(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, Any]:
        coins = [
            stream(self._seed, "music/coin", worker, cycle).integers(2, size=updates) == 1
            for worker in replay.shards
        ]
        swapped = np.stack(coins, axis=1)
        if self._config.pair_negatives == "swap":
            swapped = np.ones_like(swapped)
        drawn = {"swapped": swapped, **self.gain_feed(*swapped.shape)}
        if self._config.train:
            slots, lengths = replay.pick_trajectories(updates, self._config.trajectories, cycle)
            # never reset, so that at most two shapes are compiled
            self._some_end_early |= bool((lengths < replay.longest).any())
            orders = [
                self._permutations(
                    worker, cycle, lengths[:, index], replay.longest + 1, self._some_end_early
                )
                for index, worker in enumerate(replay.shards)
            ]
            drawn |= {"slots": slots, "lengths": lengths, "order": np.stack(orders, axis=1)}
        return drawn

    def looked_up(self, drawn: Mapping[str, Any], store: Store) -> Mapping[str, Any]:
        feed = dict(drawn)
        if self._config.train:
            feed["trajectories"] = store.trajectories(feed.pop("slots"), self.columns)
        return feed

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        bound = self._on_pairs(weights, batch.observation, batch.next_observation, feed["swapped"])
        return tf.stop_gradient(self.scaled_by(bound, feed))

    def priorities(self, weights: Weights, episodes: Episodes, worker: int, cycle: int) -> Array:
        # As in the release, the episodes of a worker share one random swap for each time step.
        states = np.swapaxes(episodes.observation, 0, 1)  # [T + 1, E, O]
        steps = len(states) - 1
        generator = stream(self._seed, "music/priority coin", worker, cycle)
        swapped = np.full(steps, True)
        if self._config.pair_negatives == "random":
            swapped = generator.integers(2, size=steps) == 1
        bound = self._on_pairs(weights, states[:-1], states[1:], tf.constant(swapped)).numpy()
        valid = np.arange(steps)[:, None] < episodes.length
        most = self.mixing.clip[1]  # from a scaled reward on that gets it, none gets more
        full = float(np.expm1(most)) if self.mixing.pay == "log" else most
        shown = np.clip(bound, 0.0, full / self.gain)
        return np.asarray(np.where(valid, shown, 0.0).sum(axis=0))

    def _on_pairs(
        self, weights: Weights, before: tf.Tensor, after: tf.Tensor, swapped: tf.Tensor
    ) -> tf.Tensor:
        """Returns the pair bound m of two states [W, B, O] each, shape [W, B]."""
        states = [tf.gather(observation, self.columns, axis=-1) for observation in (before, after)]
        agent = tf.stack([state[..., : self._agent_dim] for state in states])
        surrounding = tf.stack([state[..., self._agent_dim :] for state in states])
        scores = self._score(  # [agent state 2, surrounding state 2, W, B]
            weights["statistics"],
            tf.stack([agent, agent], axis=1),
            tf.stack([surrounding, surrounding]),
        )
        return pair_bound(scores, swapped, self._config.pair_negatives == "all_pairs")

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        if not self._config.train:
            return tf.zeros([]), {}
        bound = self._bound(weights, feed)
        return -bound, {"music/bound": bound}

    def steady_feed(self, workers: int) -> Feed:
        """Always swaps the negatives, because unswapped ones never pay more than 0."""
        return {"swapped": tf.fill([workers], True), **super().steady_feed(workers)}

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        observation, length = episodes.observation, episodes.length
        feed = {
            "trajectories": observation[None, :, :, self.columns],
            "lengths": length[None],
            "order": self._permutations(0, 0, length[None], observation.shape[1], True),
        }
        tensors = tf.nest.map_structure(tf.convert_to_tensor, feed)
        steps = tf.nest.map_structure(tf.convert_to_tensor, all_transitions(episodes))
        raw = self.reward(weights, steps, self.steady_feed(len(length)))
        paid = self.mixing(raw, tf.constant(1.0)).numpy()
        return {
            "music/bound_heldout": float(self._bound(weights, tensors)[0]),
            "music/paid_heldout": float(paid[episodes.step_mask].mean()),
        }

    def _bound(self, weights: Weights, feed: Feed) -> tf.Tensor:
        """Returns the mean bound over trajectories, in nats, [W]."""
        columns, order = feed["trajectories"], feed["order"]
        agent, surrounding = columns[..., : self._agent_dim], columns[..., self._agent_dim :]
        if order.shape[-2] == 1:  # one permutation for all trajectories of a worker
            shuffled = tf.gather(surrounding, order[:, 0], axis=-2, batch_dims=1)
        else:
            shuffled = tf.gather(surrounding, order, axis=-2, batch_dims=2)
        bounds = donsker_varadhan(  # [W, M]
            self._score(weights["statistics"], agent, surrounding),
            self._score(weights["statistics"], agent, shuffled),
            tf.cast(np.arange(columns.shape[-2]) <= feed["lengths"][..., None], columns.dtype),
        )
        return tf.reduce_mean(bounds, axis=-1)

    def _score(
        self, weights: list[tf.Tensor], agent: tf.Tensor, surrounding: tf.Tensor
    ) -> tf.Tensor:
        """Returns T(x, y), shape [...], of agent [..., X] beside surrounding [..., Y]."""
        agent_kernel, agent_bias, other_kernel, other_bias, score_kernel, score_bias = weights
        rows = self.scaled("statistics", tf.concat([agent, surrounding], axis=-1))
        # One product for both kernels of the first layer halves the memory traffic.
        kernel = tf.concat([agent_kernel, other_kernel], axis=0)
        flat = tf.reshape(rows, [-1, rows.shape[-1]])
        bias = agent_bias + other_bias
        if self._config.activation == "relu":
            score = two_layers(flat, kernel, bias, score_kernel)
        else:
            score = tf.tanh(flat @ kernel + bias) @ score_kernel
        return tf.reshape(tf.tanh(score + score_bias), rows.shape[:-1])

    def _permutations(
        self, worker: int, cycle: int, lengths: IntArray, states: int, some_end_early: bool
    ) -> npt.NDArray[np.int32]:
        """Draws uniform permutations of valid states, [U, M, N]; [U, 1, N] if all share one."""
        generator = stream(self._seed, "music/permutation", worker, cycle)
        updates, count = lengths.shape
        distinct = count if self._config.trajectory_negatives == "independent" else 1
        order = generator.permuted(
            np.broadcast_to(np.arange(states), (updates, distinct, states)), axis=-1
        )
        if some_end_early:
            # A uniform permutation is uniform on the first n states, too: one serves all lengths.
            order = np.broadcast_to(order, (updates, count, states))
            beyond = order > lengths[..., None]
            places = np.argsort(np.where(beyond, states + order, 0), axis=-1, kind="stable")
            order = np.take_along_axis(order, places, axis=-1)
        return order.astype(np.int32)
