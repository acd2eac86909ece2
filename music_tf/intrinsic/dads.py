"""Skills with predictable consequences (Sharma et al., 2020, arXiv:1907.01657)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from music_tf.conditions import continuous_conditions
from music_tf.distributions import mixture_log_density
from music_tf.errors import UsageError
from music_tf.intrinsic.base import Feed, TermContext, as_floats, scale_variables
from music_tf.intrinsic.gated import GatedTerm
from music_tf.losses.skill_dynamics import skill_dynamics_reward
from music_tf.networks.models import plain
from music_tf.networks.parameters import Network, Weights
from music_tf.randomness import stream
from music_tf.recipes.skills import DadsConfig
from music_tf.replay.buffer import ReplayBuffer, all_transitions
from music_tf.replay.rows import Store
from music_tf.types import Array, Episodes, Floats, Metrics, Transition

_VARIANCES = 1e-6, 1e6
_NORMALIZED = 5.0


class RunningMoments(NamedTuple):
    """Mean and sum of squared deviations of all rows so far, with a prior of one unit variance."""

    mean: Floats  # [D]
    squares: Floats  # [D], initially 1
    steps: Floats  # []

    @property
    def deviation(self) -> Floats:
        """Standard deviation, [D]; the variance is clipped to [1e-6, 1e6]."""
        return np.sqrt(np.clip(self.squares / (self.steps + 1.0), *_VARIANCES))


class Dads(GatedTerm):
    """Rewards changes that the active skill predicts and other skills do not.

    Its reward is `skill_dynamics_reward` of the log-densities of the change under each of K skills.
    For continuous conditions, z and L random conditions replace the skills, as in the paper.
    Deviation from the public JAX code: the last step of an episode uses the true next state.
    """

    def __init__(self, config: DadsConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self._config, self._skills, self._total = config, context.skills, context.total
        self._seed, self._condition = context.seed, context.condition
        self._continuous = context.condition.kind != "one_hot"
        seen = self._seen = context.descriptor()
        self._width = width = context.width(seen)
        omit = self._omit = width if config.omit == "all" else config.omit
        if omit > width:
            raise UsageError(
                f"dads.omit: expected at most the {width} numbers of the descriptor, got {omit}\n"
                f"nearest: --dads.omit {width}"
            )
        scale = context.measure(seen) if config.normalize_inputs and omit < width else None
        if scale is not None:
            scale = scale[0][omit:], scale[1][omit:]
        self.scales = scale_variables("dynamics", scale)
        self.inputs = {"dynamics": {"components": context.components(seen), "omit": omit}}
        compared = config.samples + 1 if self._continuous else context.skills
        self.mixing = self.mixed_up_to(math.log(compared))
        self._moments = RunningMoments(np.zeros(width), np.ones(width), np.zeros([]))
        sizes = width - omit + context.skills, config.components * (1 + width)
        seed = stream(context.seed, "initial weights/dynamics")
        model = plain(*sizes, "mixture", config.hidden_sizes, seed, config.initializer)
        rate = config.learning_rate if config.train else 0.0
        self.networks: Sequence[Network] = [Network("dynamics", model, rate)]

    def draws(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, Any]:
        fed: dict[str, Any] = self._moments_feed(updates, len(replay.shards))
        if self._continuous:
            drawn = [
                self._others(stream(self._seed, "dads/others", worker, cycle), updates)
                for worker in replay.shards
            ]
            fed["others"] = np.stack(drawn, axis=1)
        return {**super().draws(replay, updates, cycle), **fed}

    def looked_up(self, drawn: Mapping[str, Any], store: Store) -> Mapping[str, Any]:
        if not self._config.train:
            return drawn
        feed = dict(drawn)
        batch = store.transitions(feed.pop("picks"), paid=False)
        before, after = (self._seen.of(batch, after=last) for last in (False, True))
        return {
            "before": before,
            "change": after - before,
            "skill": batch.skill,
            "counted": as_floats((batch.discount > 0.0) | (store.discount == 0.0)),
            **feed,
        }

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        before, after = (self._seen.of(batch, after=last) for last in (False, True))
        change = self._normalized(after - before, feed)[..., None, :]
        if self._continuous:  # the active condition, then random ones of this minibatch
            shape = [*before.shape[:2], self._config.samples + 1]
            others = feed["others"][:, None]
            others = tf.broadcast_to(others, [*shape[:2], *others.shape[2:]])
            every = tf.concat([batch.skill[..., None, :], others], axis=2)
            active = tf.broadcast_to(tf.one_hot(0, shape[-1]), shape)
        else:
            shape, active = [*before.shape[:2], self._skills], batch.skill
            every = tf.broadcast_to(tf.eye(self._skills), [*shape, self._skills])
        alike = tf.broadcast_to(before[..., None, :], [*shape, self._width])
        densities = self._log_density(weights, alike, every, change)
        return tf.stop_gradient(skill_dynamics_reward(densities, active))

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        if not self._config.train:
            return tf.zeros([]), {}
        change = self._normalized(feed["change"], feed)
        density = self._log_density(weights, feed["before"], feed["skill"], change)
        likelihood = tf.reduce_mean(density * feed["counted"], axis=-1)
        return -likelihood, {"dads/log_density": likelihood}

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        moments = {
            "dads/target_mean": float(self._moments.mean.mean()),
            "dads/target_std": float(self._moments.deviation.mean()),
        }
        if "dads/log_density" not in learned:
            return moments
        return {"dads/loss": -learned["dads/log_density"], **moments}

    def observe(self, episodes: Mapping[int, Episodes], cycle: int) -> None:
        rows = [
            np.diff(self._seen.along(played), axis=1)[played.step_mask]
            for played in episodes.values()
        ]
        self._count(np.concatenate(rows).astype(np.float64))

    def steady_feed(self, workers: int) -> Feed:
        feed = {name: tf.constant(v[0]) for name, v in self._moments_feed(1, workers).items()}
        if self._continuous:
            fixed = self._others(stream(0, "dads/others"), 1)
            feed["others"] = tf.constant(np.repeat(fixed, workers, axis=0))
        return feed

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        steps = tf.nest.map_structure(tf.convert_to_tensor, all_transitions(episodes))
        rewards = self.reward(weights, steps, self.steady_feed(len(episodes.length))).numpy()
        return {"dads/reward_heldout": float(rewards[episodes.step_mask].mean())}

    def shared(self) -> dict[str, np.ndarray]:
        flat = np.concatenate([np.ravel(part) for part in self._moments])
        return super().shared() | {f"scales/{self.name}": flat}

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        super().load(shared)
        if f"scales/{self.name}" in shared:
            mean, squares, steps = np.split(
                np.array(shared[f"scales/{self.name}"]), [self._width, 2 * self._width]
            )
            self._moments = RunningMoments(mean, squares, steps[0])

    def _others(self, generator: np.random.Generator, updates: int) -> Array:
        """Draws random conditions to compare with, [U, L, K]."""
        count, size = self._config.samples, self._skills
        drawn = continuous_conditions(self._condition, generator, updates * count)
        return drawn.reshape(updates, count, size)

    def _count(self, rows: Floats) -> None:
        """Adds the rows [N, D] of all ranks to the moments; a collective call."""
        mean, squares, steps = self._moments
        more = self._total(np.array([float(len(rows)), *(rows - mean).sum(axis=0)]))
        steps = steps + more[0]
        moved = mean + more[1:] / np.maximum(steps, 1.0)
        squares = squares + self._total(((rows - moved) * (rows - mean)).sum(axis=0))
        self._moments = RunningMoments(moved, squares, steps)

    def _moments_feed(self, *shape: int) -> dict[str, np.ndarray]:
        """Returns mean and deviation of changes for a feed, each [..., D]."""
        if not self._config.normalize_target:
            return {}
        moments = {"mean": self._moments.mean, "deviation": self._moments.deviation}
        return {
            name: np.broadcast_to(values.astype(np.float32), (*shape, self._width)).copy()
            for name, values in moments.items()
        }

    def _normalized(self, change: tf.Tensor, feed: Feed) -> tf.Tensor:
        """Returns changes [W, B, D], normalised by the moments and clipped to [-5, 5]."""
        if not self._config.normalize_target:
            return change
        scaled = (change - feed["mean"][:, None]) / feed["deviation"][:, None]
        return tf.clip_by_value(scaled, -_NORMALIZED, _NORMALIZED)

    def _log_density(
        self, weights: Weights, before: tf.Tensor, skill: tf.Tensor, change: tf.Tensor
    ) -> tf.Tensor:
        """Returns log q(change | before, skill) of tensors [..., D], [..., K] and [..., D]."""
        described = self.scaled("dynamics", before[..., self._omit :])
        inputs = tf.concat([described, skill], axis=-1)
        outputs = self.networks[0].rows(weights["dynamics"], inputs)
        count, width = self._config.components, self._width
        shape = [*inputs.shape[:-1], count, width]
        logits, means = outputs[..., :count], outputs[..., count:]
        return mixture_log_density(change, logits, tf.reshape(means, shape), tf.zeros(shape))
