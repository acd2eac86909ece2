"""Skill discrimination as reward (Eysenbach et al., 2019, arXiv:1802.06070)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.config.settings import SkillConfig
from music_tf.intrinsic.base import (
    Feed,
    Mixing,
    RewardTerm,
    TermContext,
    Weights,
    scale_variables,
)
from music_tf.losses.discriminator import skill_hits, skill_log_likelihood
from music_tf.networks.models import skill_discriminator
from music_tf.networks.parameters import Network
from music_tf.randomness import stream
from music_tf.replay.buffer import ReplayBuffer, all_transitions
from music_tf.types import Array, Episodes, Metrics, Transition


class Skill(RewardTerm):
    r"""Rewards surrounding states y from which the active skill z can be told.

    .. math:: r = \log q_\phi(z | y(o_{t+1})) - \log p(z)

    The prior p is uniform over K skills, so that the last part is log K; the entropy of the
    policy, the other half of the objective, belongs to the agent. Deviations of the MUSIC release
    from the paper, all options: the state before the action instead of the one after, no prior
    subtracted, clipped to [-1, 0].
    """

    def __init__(self, config: SkillConfig, context: TermContext) -> None:
        """Builds the discriminator, and measures its inputs if it is to see them normalised."""
        super().__init__(config, context)
        self._config = config
        seen = self._seen = context.descriptor()
        scale = context.measure(seen) if config.normalize_inputs else None
        self.scales = scale_variables("discriminator", scale)
        source = context.info.extras.get(seen.extra, "")
        components = [source] if seen.extra else list(seen.columns)
        self.inputs = {"discriminator": {"components": components, "state": config.state}}
        self._baseline = math.log(context.skills) if config.subtract_prior else 0.0
        lowest, highest = config.clip
        certain = config.scale * self._baseline  # no guess is worth more
        clip = lowest, max(lowest, min(highest, certain))
        self.mixing = Mixing(config.scale, clip, config.shift, config.weight)
        model = skill_discriminator(
            context.spec.extras.get(seen.extra, len(seen.columns)),
            context.skills,
            config.hidden_sizes,
            stream(context.seed, "initial weights/discriminator"),
        )
        rate = config.learning_rate if config.train else 0.0
        self.networks: Sequence[Network] = [Network("discriminator", model, rate)]

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Samples states with the skill that was active there."""
        if not self._config.train:
            return {}
        batch = replay.sample_transitions(updates, cycle, "skill/transitions")
        return {"state": self._state(batch), "skill": batch.skill}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns log q(z | s), with log K added where the prior is subtracted, [W, B]."""
        likelihood = skill_log_likelihood(self._logits(weights, self._state(batch)), batch.skill)
        return tf.stop_gradient(likelihood + self._baseline)

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Returns the cross-entropy between discriminator and active skill, [W]."""
        if not self._config.train:
            return tf.zeros([]), {}
        logits = self._logits(weights, feed["state"])
        likelihood = tf.reduce_mean(skill_log_likelihood(logits, feed["skill"]), axis=-1)
        accuracy = tf.reduce_mean(skill_hits(logits, feed["skill"]), axis=-1)
        return -likelihood, {"skill/log_likelihood": likelihood, "skill/accuracy": accuracy}

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        """Returns how well the discriminator names the skills of whole episodes."""
        steps = all_transitions(episodes)
        logits = self._logits(weights, self._state(steps))
        counted = np.arange(steps.reward.shape[1]) < episodes.length[:, None]
        values = {
            "skill/log_likelihood_heldout": skill_log_likelihood(logits, steps.skill),
            "skill/accuracy_heldout": skill_hits(logits, steps.skill),
        }
        found = {name: float(value.numpy()[counted].mean()) for name, value in values.items()}
        paid = values["skill/log_likelihood_heldout"].numpy() + math.log(logits.shape[-1])
        total = np.where(counted, paid, 0.0).sum(axis=1)
        return found | {"skill/diversity_return": float(total.mean())}

    def histograms(self, weights: Weights, episodes: Episodes) -> Mapping[str, Array]:
        """Returns how well each step tells its skill, and what the skills earn in the task."""
        steps, skill = all_transitions(episodes), episodes.skill.argmax(axis=-1)
        likelihood = skill_log_likelihood(self._logits(weights, self._state(steps)), steps.skill)
        counted = np.arange(steps.reward.shape[1]) < episodes.length[:, None]
        earned = episodes.reward.sum(axis=1)
        return {
            "skill/log_likelihood_heldout/steps": likelihood.numpy()[counted],
            **{f"eval/return/skill_{z}": earned[skill == z] for z in np.unique(skill).tolist()},
        }

    def _state(self, batch: Transition) -> Any:
        """Returns what the discriminator looks at, [..., D]."""
        return self._seen.of(batch, after=self._config.state == "next")

    def _logits(self, weights: Weights, state: tf.Tensor) -> tf.Tensor:
        """Returns l(s), shape [W, B, K], of states [W, B, columns]."""
        state = self.scaled("discriminator", state)
        rows = self.networks[0](weights["discriminator"], tf.reshape(state, [-1, state.shape[-1]]))
        return tf.reshape(rows, [*state.shape[:2], rows.shape[-1]])
