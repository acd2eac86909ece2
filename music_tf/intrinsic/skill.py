"""Skill discrimination as reward (Eysenbach et al., 2019, arXiv:1802.06070)."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from music_tf.config.schema import SkillConfig
from music_tf.intrinsic.base import Feed, Mixing, Weights
from music_tf.losses.discriminator import skill_log_likelihood
from music_tf.networks.models import skill_discriminator
from music_tf.networks.parameters import Network
from music_tf.randomness import stream
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Transition


class Skill:
    r"""Rewards surrounding states from which the active skill can be told.

    .. math:: r = \log q_\phi(z | y(o_t))

    Deviations of the MUSIC release from the paper, all options: the state before the action
    instead of the one after, no prior subtracted, clipped to [-1, 0].
    """

    name = "skill"

    def __init__(self, config: SkillConfig, columns: Sequence[int], skills: int, seed: int) -> None:
        """Builds the discriminator.

        Args:
            config: Sizes, step size and variants.
            columns: Components of the observation that it looks at.
            skills: Number K of skills.
            seed: Of the run.
        """
        self._config = config
        self._columns = list(columns)
        self._baseline = math.log(skills) if config.subtract_prior else 0.0
        self.mixing = Mixing(config.scale, config.clip, config.shift, config.weight)
        model = skill_discriminator(
            len(self._columns),
            skills,
            config.hidden_sizes,
            stream(seed, "initial weights/discriminator"),
        )
        rate = config.learning_rate if config.train else 0.0
        self.networks: Sequence[Network] = [Network("discriminator", model, rate)]

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Samples states with the skill that was active there."""
        if not self._config.train:
            return {}
        batch = replay.sample_transitions(updates, cycle, "skill/transitions")
        observation = (
            batch.observation if self._config.state == "current" else batch.next_observation
        )
        return {"state": observation[..., self._columns], "skill": batch.skill}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns log q(z | s), with log K added where the prior is subtracted, [W, B]."""
        observation = (
            batch.observation if self._config.state == "current" else batch.next_observation
        )
        state = tf.gather(observation, self._columns, axis=-1)
        likelihood = skill_log_likelihood(self._logits(weights, state), batch.skill)
        return tf.stop_gradient(likelihood + self._baseline)

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Returns the cross-entropy between discriminator and active skill, [W]."""
        if not self._config.train:
            return tf.zeros([]), {}
        logits = self._logits(weights, feed["state"])
        likelihood = tf.reduce_mean(skill_log_likelihood(logits, feed["skill"]), axis=-1)
        hits = tf.equal(tf.argmax(logits, axis=-1), tf.argmax(feed["skill"], axis=-1))
        accuracy = tf.reduce_mean(tf.cast(hits, tf.float32), axis=-1)
        return -likelihood, {"skill/log_likelihood": likelihood, "skill/accuracy": accuracy}

    def _logits(self, weights: Weights, state: tf.Tensor) -> tf.Tensor:
        rows = self.networks[0](weights["discriminator"], tf.reshape(state, [-1, state.shape[-1]]))
        return tf.reshape(rows, [*state.shape[:2], rows.shape[-1]])
