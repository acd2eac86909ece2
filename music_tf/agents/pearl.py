"""PEARL: soft actor-critic conditioned on a latent that an encoder infers from a context."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch, Losses, Noise
from music_tf.agents.sac_value import SacValue
from music_tf.config.agents import MLP, RECURRENT
from music_tf.distributions import SquashedSample
from music_tf.losses import posterior
from music_tf.networks.acting import NetworkInputs
from music_tf.networks.belief import Steps, context_rows
from music_tf.networks.models import plain, recurrent_encoder
from music_tf.networks.own_encoder import own_encoder
from music_tf.networks.parameters import Network, Scalar, Weights
from music_tf.recipes.pearl import PearlConfig
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Array

_OF_CRITICS = ("train/critic_loss", "train/mean_q")
"""Metrics of `SacValue` that the first of several phases logs."""


class Pearl(SacValue):
    r"""SAC with a state value on latents z ~ q(z | c) of contexts c (arXiv:1903.08254).

    .. math:: L_q = \sum_{i, b} \frac{1}{B} (Q_i(s_b, a_b, z) - y_b)^2
        + \lambda \sum_\tau KL(q(z | c_\tau) || N(0, 1)), \quad y = r + \gamma \bar V(s', z)

    Only the critics' loss and the KL divergence train the encoder; actor and state value get z
    without gradient. As in the authors' code z is inferred once in an update, the divergence is a
    sum over the tasks of an update while the critics' loss is a mean over their steps, critics are
    twins, and the actor has penalties on mean, log-deviation and sample before squashing.
    """

    _config: PearlConfig

    def make_others(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> None:
        super().make_others(input_dim, action_dim, seed)
        inference, rate = self._config.inference, self._config.encoder_learning_rate
        row_dim = inference.row_dim(input_dim - inference.latent, action_dim)
        layers = (inference.sizes, seed, self._config.initializer)
        if inference.encoder == MLP:
            model = plain(row_dim, inference.outputs, "factor", *layers)
            self._encoder = Network("encoder", model, rate)
        elif inference.encoder in RECURRENT:
            model = recurrent_encoder(inference.encoder, row_dim, inference.outputs, *layers)
            self._encoder = Network("encoder", model, rate)
        else:
            self._encoder = own_encoder(inference, row_dim, int(seed.integers(2**31)), rate)

    @property
    def networks(self) -> Sequence[Network | Scalar]:
        return [self._actor, *self._critics, self._encoder, self._value, self._log_temperature]

    @property
    def encoder(self) -> Network:
        return self._encoder

    @property
    def sequence(self) -> Sequence[tuple[str, ...]]:
        critics, *others = super().sequence
        return [(*critics, self._encoder.name), *others]

    def draws(
        self, generators: Sequence[np.random.Generator], updates: int, batch_size: int
    ) -> dict[str, Array]:
        noise = super().draws(generators, updates, batch_size)
        latents = self._config.meta_batch * self._config.inference.beliefs
        shape = (updates, latents, self._config.latent_size)
        drawn = [generator.standard_normal(shape, np.float32) for generator in generators]
        return noise | {"belief": np.stack(drawn, axis=1)}

    def feed(
        self, replay: ReplayBuffer, inputs: NetworkInputs, updates: int, cycle: int
    ) -> dict[str, Array]:
        """Returns a context for each task of each update, [U, W, m, N, C]."""
        drawn = replay.sample_contexts(updates, self._config.context_rows, cycle)
        steps = Steps(*(getattr(drawn, name) for name in Steps._fields))
        return {"context": context_rows(self._config.inference, inputs, steps)}

    def losses(
        self, weights: Weights, targets: Weights, batch: Batch, noise: Noise, entropy: tf.Tensor
    ) -> Losses:
        """As `Learner.losses`; the steps of a task are adjacent in the batch.

        The first phase infers latents [W, m, L] from the noise's `context` [W, m, N, C] and
        `belief` [W, >= m, L], and passes them to later phases as `latent`.
        """
        config = self._config
        later = "latent" in noise
        if later:
            latent, divergence = noise["latent"], tf.zeros(noise["latent"].shape[:2])
        else:
            latent, divergence = self.infer(weights, noise["context"], noise["belief"])
        rows = tf.repeat(latent, batch.inputs.shape[1] // latent.shape[1], axis=1)
        still, observed = tf.stop_gradient(rows), batch.inputs.shape[-1] - config.latent_size
        now, after = (part[..., :observed] for part in (batch.inputs, batch.next_inputs))
        seen = batch._replace(
            inputs=tf.concat([now, still], axis=-1),
            next_inputs=tf.concat([after, still], axis=-1),
            critic_inputs=tf.concat([now, rows], axis=-1),
        )
        losses = super().losses(weights, targets, seen, noise, entropy)
        # gradients are averaged over workers, but the divergence is a sum over all their tasks
        pull = config.kl_weight * config.meta_batch * tf.reduce_mean(divergence, axis=-1)
        at_once = config.update_order == "simultaneous"
        logged = losses.metrics if later or at_once else _OF_CRITICS
        metrics = {
            **{name: losses.metrics[name] for name in logged},
            "pearl/kl": tf.reduce_mean(divergence, axis=-1),
            "pearl/latent_mean": tf.reduce_mean(latent, axis=[1, 2]),
            "pearl/latent_square": tf.reduce_mean(tf.square(latent), axis=[1, 2]),
        }
        carried = {**losses.carried, "latent": latent}
        return Losses(total=losses.total + pull, metrics=metrics, carried=carried)

    def infer(
        self, weights: Weights, context: tf.Tensor, noise: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns latents [W, m, L] of contexts [W, m, N, C], and divergences in nats [W, m]."""
        outputs = self._encoded(weights[self._encoder.name], context)
        if self._config.deterministic_latent:
            return tf.reduce_mean(outputs, axis=-2), tf.zeros(outputs.shape[:2])
        if self._config.inference.full:
            shape = [*outputs.shape[:2], -1, self._config.latent_size + 1]
            observed = tf.reshape(outputs, shape)
            mean, root = posterior.product_of_observations(observed[..., :-1], observed[..., -1])
            drawn = posterior.drawn_from_root(mean, root, noise[:, : outputs.shape[1]])
            return drawn, posterior.kl_of_root(mean, root)
        mean, variance = posterior.product_of_gaussians(*tf.split(outputs, 2, axis=-1))
        drawn = mean + tf.sqrt(variance) * noise[:, : outputs.shape[1]]
        return drawn, posterior.kl_to_prior(mean, variance)

    def _encoded(self, weights: list[tf.Tensor], context: tf.Tensor) -> tf.Tensor:
        """Returns outputs [W, m, M, outputs] of the encoder for M parts of each context."""
        encoder = self._config.encoder
        if encoder == MLP:
            return self._encoder.rows(weights, context)
        runs = tf.reshape(context, [-1, *context.shape[2:]])
        if encoder not in RECURRENT:
            outputs = self._encoder(weights, runs)
            return tf.reshape(outputs, [*context.shape[:2], *outputs.shape[1:]])
        state = tf.zeros([runs.shape[0], self._config.encoder_sizes[-1]])
        beliefs = []
        for part in tf.split(runs, self._config.inference.beliefs, axis=1):
            belief, state = self._encoder(weights, part, tf.stop_gradient(state))
            beliefs.append(belief)
        outputs = tf.stack(beliefs, axis=1)
        return tf.reshape(outputs, [context.shape[0], -1, 1, outputs.shape[-1]])

    def policy_loss(
        self, lowest: tf.Tensor, drawn: SquashedSample, temperature: tf.Tensor
    ) -> tf.Tensor:
        config = self._config
        loss = super().policy_loss(lowest, drawn, temperature)
        loss += config.mean_l2 * tf.reduce_mean(tf.square(drawn.mean), axis=[1, 2])
        loss += config.log_deviation_l2 * tf.reduce_mean(tf.square(drawn.log_deviation), [1, 2])
        raw = tf.reduce_mean(tf.reduce_sum(tf.square(drawn.raw), axis=-1), axis=-1)
        return loss + config.raw_action_l2 * raw
