"""Causal action influence as a reward (Seitzer et al., 2021, arXiv:2106.03443)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.distributions import gaussian_log_density
from music_tf.errors import UsageError
from music_tf.intrinsic.base import Feed, InputSpec, TermContext, scale_variables
from music_tf.intrinsic.scaled import ScaledTerm
from music_tf.losses.influence import influence, variance_of
from music_tf.networks.influence import INFLUENCE_MODEL
from music_tf.networks.models import influence_model
from music_tf.networks.parameters import Network, Weights
from music_tf.randomness import stream
from music_tf.recipes.influence import InfluenceConfig
from music_tf.replay.buffer import ReplayBuffer, all_transitions
from music_tf.replay.rows import Store
from music_tf.types import Array, Episodes, Metrics, Transition

_MOVING = 1e-4
"""Smallest change of a column in a step that counts as motion, as in the authors' code (metres)."""
_TOGETHER = 64
"""Evaluation episodes that are measured at once, which bounds memory."""


class Influence(ScaledTerm):
    """Rewards states in which the action has a causal influence on the object's motion.

    Its reward is `influence` of K uniform random actions under a Gaussian model of the change of
    columns y in a step. One that moves by itself earns nothing. docs/music.md lists
    deviations from the authors' code.
    """

    def __init__(self, config: InfluenceConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self._config, self._seed = config, context.seed
        self._actions = context.spec.action_dim
        self.times = config.times
        self._moved = _columns(config, context)
        states = tuple(range(context.spec.observation_dim))
        self.scales = scale_variables(INFLUENCE_MODEL, context.measure(InputSpec(states)))
        inputs = {"components": list(self._moved), "change_scale": config.change_scale}
        self.inputs = {INFLUENCE_MODEL: inputs}
        model = influence_model(
            len(states) + self._actions,
            len(self._moved),
            config.hidden_sizes,
            stream(context.seed, f"initial weights/{INFLUENCE_MODEL}"),
        )
        self.networks: Sequence[Network] = [Network(INFLUENCE_MODEL, model, config.learning_rate)]

    def draws(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, Any]:
        drawn = [
            self._random_actions(stream(self._seed, "influence/actions", worker, cycle), updates)
            for worker in replay.shards
        ]
        picks = replay.pick(updates, cycle, "influence/transitions")
        gain = self.gain_feed(updates, len(drawn))
        return {"actions": np.stack(drawn, axis=1), "picks": picks, **gain}

    def looked_up(self, drawn: Mapping[str, Any], store: Store) -> Mapping[str, Any]:
        feed = dict(drawn)
        batch = store.transitions(feed.pop("picks"), paid=False)
        change = self._change(batch)
        return feed | {"state": batch.observation, "action": batch.action, "change": change}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        influences = self._influence(weights, batch.observation, feed["actions"])
        return tf.stop_gradient(self.scaled_by(influences, feed))

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        mean, variance = self._foretold(weights, feed["state"], feed["action"])
        density = gaussian_log_density(feed["change"], mean, 0.5 * tf.math.log(variance))
        loss = -tf.reduce_mean(density, axis=-1)
        return loss, {"influence/loss": loss}

    def rests(self, epoch: float) -> bool:
        return not self._config.candidates and super().rests(epoch)

    def steady_feed(self, workers: int) -> Feed:
        actions = self._random_actions(stream(0, "influence/actions"), 1)
        return {
            "actions": tf.constant(np.repeat(actions, workers, axis=0)),
            **super().steady_feed(workers),
        }

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        steps = all_transitions(episodes)
        actions = self.steady_feed(len(episodes.length))["actions"]
        parts = [slice(at, at + _TOGETHER) for at in range(0, len(actions), _TOGETHER)]
        influences = np.concatenate(
            [self._influence(weights, steps.observation[part], actions[part]) for part in parts]
        )
        valid = episodes.step_mask
        moving = np.abs(self._change(steps)).max(axis=-1) > _MOVING * self._config.change_scale
        masks = {
            "influence/heldout": valid,
            "influence/moving": valid & moving,
            "influence/resting": valid & ~moving,
        }
        return {name: float(influences[mask].mean()) for name, mask in masks.items() if mask.any()}

    def _influence(self, weights: Weights, states: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns C of states [W, B, O] for actions [W, K, A], shape [W, B]."""
        shape = [*states.shape[:2], actions.shape[1]]
        every = tf.broadcast_to(states[:, :, None], [*shape, states.shape[-1]])
        alike = tf.broadcast_to(actions[:, None], [*shape, self._actions])
        return influence(*self._foretold(weights, every, alike))

    def _foretold(
        self, weights: Weights, states: tf.Tensor, actions: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mean and variance of the scaled change after states and actions, [..., n]."""
        inputs = tf.concat([self.scaled(INFLUENCE_MODEL, states), actions], axis=-1)
        rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
        shape = [*inputs.shape[:-1], len(self._moved)]
        mean, outputs = self.networks[0](weights[INFLUENCE_MODEL], rows)
        variance = variance_of(tf.reshape(outputs, shape), self._config.variance_floor)
        return tf.reshape(mean, shape), variance

    def _change(self, batch: Transition) -> Any:
        """Returns the scaled change of the columns y in steps, [..., n]."""
        seen = InputSpec(self._moved)
        change = seen.of(batch, after=True) - seen.of(batch, after=False)
        return change * np.float32(self._config.change_scale)

    def _random_actions(self, generator: np.random.Generator, updates: int) -> Array:
        """Draws K actions that all states of a minibatch share, [U, K, A]."""
        shape = (updates, self._config.samples, self._actions)
        return generator.uniform(-1.0, 1.0, shape).astype(np.float32)


def _columns(config: InfluenceConfig, context: TermContext) -> tuple[int, ...]:
    context.check_columns("influence.columns", config.columns)
    columns = config.columns or context.info.object
    if columns is None and context.spec.split is None:
        last = context.spec.observation_dim - 1
        raise UsageError(
            f"influence: nothing says what actions may influence in {context.spec.env_id}, "
            f"expected columns of the observation, 0 to {last}\n"
            f"for example: --influence.columns {last}"
        )
    return columns or context.split().surrounding
