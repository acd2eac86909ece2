"""Soft actor-critic with a state value, as it was first published."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch, Losses, Noise
from music_tf.agents.soft import GaussianActorCritic
from music_tf.config.agents import SacValueConfig
from music_tf.distributions import SquashedSample
from music_tf.losses.policy import deterministic_policy_loss, entropy_loss
from music_tf.losses.temporal_difference import value_target
from music_tf.networks.models import critic
from music_tf.networks.parameters import Network, Scalar, Weights
from music_tf.types import Array


class SacValue(GaussianActorCritic):
    """SAC of January 2018 (arXiv:1801.01290): critics bootstrap from a target state value.

    `value_target` and the actor's loss use the same freshly drawn action of a state. Deviations
    from the paper: the policy is one reparameterised Gaussian, the temperature may be learned
    (arXiv:1812.05905), and losses of values are not halved, unless `critic_loss` is `half_mean`.
    """

    _config: SacValueConfig

    def make_others(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> None:
        model = critic(self._config, input_dim, seed)
        self._value = Network("value", model, self._config.value_learning_rate)

    @property
    def networks(self) -> Sequence[Network | Scalar]:
        return [self._actor, *self._critics, self._value, self._log_temperature]

    @property
    def target_networks(self) -> Sequence[Network]:
        return [self._value]

    @property
    def sequence(self) -> Sequence[tuple[str, ...]]:
        critics, *others = super().sequence
        return [critics, ("value",), *others]

    def draws(
        self, generators: Sequence[np.random.Generator], updates: int, batch_size: int
    ) -> dict[str, Array]:
        shape = (updates, batch_size, self._action_dim)
        noise = [generator.standard_normal(shape, np.float32) for generator in generators]
        return {"policy": np.stack(noise, axis=1)}

    def losses(
        self, weights: Weights, targets: Weights, batch: Batch, noise: Noise, entropy: tf.Tensor
    ) -> Losses:
        seen = batch.inputs if batch.critic_inputs is None else batch.critic_inputs
        temperature = tf.stop_gradient(tf.exp(weights["log_temperature"][0]))
        target = self.target(batch, self._state_value(targets, batch.next_inputs)[None])
        q = self.values(weights, seen, batch.action)
        td_loss = self.critic_loss(q, target, batch.truncated)
        drawn = self.sample(weights, batch.inputs, noise["policy"])
        action_value = self.values(weights, batch.inputs, drawn.action, frozen=True)
        soft_value = value_target(action_value, drawn.log_density, temperature)
        value = self._state_value(weights, batch.inputs)
        value_loss = self.squared_error(value[None], soft_value)
        policy_loss = self.policy_loss(tf.reduce_min(action_value, axis=0), drawn, temperature)
        tuning, tuned = self.tuned(weights, drawn.log_density, noise)
        metrics = {
            "train/critic_loss": td_loss,
            "train/value_loss": value_loss,
            "train/actor_loss": policy_loss,
            "train/mean_q": tf.reduce_mean(q, axis=[0, 2]),
            **tuned,
        }
        carried = {"log_density": drawn.log_density}
        return Losses(td_loss + value_loss + policy_loss + tuning, metrics, carried=carried)

    def policy_loss(
        self, lowest: tf.Tensor, drawn: SquashedSample, temperature: tf.Tensor
    ) -> tf.Tensor:
        """Returns the actor's loss [W] for drawn actions; `lowest` is their value [W, B]."""
        loss = deterministic_policy_loss(lowest, drawn.action, self._config.action_l2)
        return loss + entropy_loss(drawn.log_density, temperature)

    def _state_value(self, weights: Weights, inputs: tf.Tensor) -> tf.Tensor:
        """Returns V of inputs [W, B, I], shape [W, B]."""
        rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
        return tf.reshape(self._value(weights["value"], rows), inputs.shape[:2])
