"""Skill discrimination as reward (Eysenbach et al., 2019, arXiv:1802.06070)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.distributions import log_prior
from music_tf.hints import fits
from music_tf.intrinsic.base import Feed, InputSpec, TermContext, scale_variables
from music_tf.intrinsic.gated import GatedTerm
from music_tf.intrinsic.prior import LearnedPrior
from music_tf.intrinsic.running import RunningAverage
from music_tf.losses.discriminator import CONTINUOUS, skill_hits, skill_log_likelihood
from music_tf.losses.prior import effective_skills
from music_tf.networks.models import plain
from music_tf.networks.parameters import Network, Weights
from music_tf.randomness import stream
from music_tf.recipes.skills import SkillConfig
from music_tf.replay.buffer import ReplayBuffer, all_transitions
from music_tf.replay.rows import Store
from music_tf.types import Array, Episodes, Metrics, Transition


class Skill(GatedTerm):
    r"""Rewards states whose descriptor y reveals the active skill z.

    .. math:: r = \log q_\phi(z | y(o_{t+1})) - \log p(z)

    The prior p is uniform over K skills (the last part is then log K), learned, or the density of
    continuous conditions; for those, q is a density as well. Optional deviations are those of the
    MUSIC release: the state before the action, no prior, clipping to [-1, 0].
    """

    def __init__(self, config: SkillConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self._config = config
        self._skills = size = context.skills
        described = context.info.descriptor or context.spec.split
        self._blind = config.missing_descriptor == "zeros" and not described
        seen = self._seen = InputSpec((0, 0)) if self._blind else context.descriptor()
        if self._blind:
            self.notice = (
                "no descriptor of skills is known, so the discriminator sees two zeros; "
                "for example --world.descriptor 0 1, or --skill.missing-descriptor observation"
            )
        width = context.width(seen)
        normalized = config.normalize_inputs and not self._blind
        scale = context.measure(seen) if normalized else None
        state = config.trained_on or config.state
        inputs: dict[str, Any] = {"components": context.components(seen), "state": state}
        if self._blind:
            inputs |= {"components": [], "blind": True}
        self.inputs = {"discriminator": inputs}
        self.scales = scale_variables("discriminator", scale)
        self._kind = context.condition.kind
        self._density, outputs = "", size
        self._baseline = highest = 0.0
        if self._kind != "one_hot":
            usual = "von_mises_fisher" if self._kind == "sphere" else "gaussian"
            self._density, highest = config.posterior or usual, math.inf
            outputs = 2 * size if self._density == "gaussian" else size + 1
        elif config.subtract_prior:
            highest = self._baseline = math.log(size) - math.log1p(size * config.prior_offset)
        self._prior = LearnedPrior(size) if config.prior == "learned" else None
        self._running = RunningAverage()
        if self._prior is not None and config.subtract_prior:
            highest = math.inf  # a rare skill pays more than log K
        self._total = context.total
        self._rows: npt.NDArray[np.int64] | None = None
        """Fresh rows of each skill since replay was emptied by `forget`; None without that."""
        self.mixing = self.mixed_up_to(highest)
        seed = stream(context.seed, "initial weights/discriminator")
        model = plain(width, outputs, "logits", config.hidden_sizes, seed, config.initializer)
        rate = config.learning_rate if config.train else 0.0
        self.networks: Sequence[Network] = [Network("discriminator", model, rate)]

    def draws(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, Any]:
        fed: dict[str, Any] = self._prior_feed(updates, len(replay.shards))
        if self._rows is not None:
            fed["learns"] = np.full([updates, len(replay.shards)], not self._waits, np.float32)
        return {**super().draws(replay, updates, cycle), **fed}

    def looked_up(self, drawn: Mapping[str, Any], store: Store) -> Mapping[str, Any]:
        if not self._config.train:
            return drawn
        feed = dict(drawn)
        batch = store.transitions(feed.pop("picks"), paid=False)
        state = self._state(batch, self._config.trained_on or self._config.state)
        return {"state": state, "skill": batch.skill, **feed}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        outputs = self._outputs(weights, self._state(batch, self._config.state))
        likelihood = self._likelihood(outputs, batch.skill)
        if not self._config.subtract_prior:
            return tf.stop_gradient(likelihood)
        if self._prior is not None:
            log_prior_of = tf.reduce_sum(batch.skill * feed["log_prior"][:, None], axis=-1)
            return tf.stop_gradient(likelihood - log_prior_of)
        if self._density:
            return tf.stop_gradient(likelihood - log_prior(self._kind, batch.skill))
        return tf.stop_gradient(likelihood + self._baseline)

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        if not self._config.train:
            return tf.zeros([]), {}
        outputs = self._outputs(weights, feed["state"])
        each = self._likelihood(outputs, feed["skill"])
        likelihood = tf.reduce_mean(each, axis=-1)
        metrics = {"skill/log_likelihood": likelihood}
        if not self._density:
            hits = skill_hits(outputs, feed["skill"])
            metrics["skill/accuracy"] = tf.reduce_mean(hits, axis=-1)
        if self._prior is not None:
            metrics |= self._prior.measures(feed["skill"], each)
        learns = feed.get("learns")
        return -likelihood if learns is None else -likelihood * learns, metrics

    def observe(self, episodes: Mapping[int, Episodes], cycle: int) -> None:
        if self._rows is not None:
            fresh = [
                np.eye(self._skills, dtype=np.int64)[played.skill.argmax(axis=-1)].T @ played.length
                for played in episodes.values()
            ]
            self._rows += self._total(np.sum(fresh, axis=0))

    def forget(self) -> None:
        """Lets the discriminator rest: it would memorise few rows, and pay for any behaviour."""
        if self._config.resume_rows and not self._density:
            self._rows = np.zeros(self._skills, np.int64)

    def meta(self) -> dict[str, Any]:
        return {} if self._rows is None else {"fresh_rows": self._rows.tolist()}

    def load_meta(self, meta: Mapping[str, Any]) -> None:
        rows: Any = meta.get("fresh_rows")
        counts = fits(rows, list[int]) and len(rows) == self._skills and min(rows) >= 0
        if rows is not None and not counts:
            raise ValueError(f"{self.name}.fresh_rows: expected counts of {self._skills} skills")
        self._rows = None if rows is None else np.array(rows, np.int64)

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        if "skill/log_likelihood" not in learned:
            return {}
        more = {"skill/loss": -learned["skill/log_likelihood"]}
        running = self._running.follow(learned["skill/log_likelihood"], episodes)
        if running is not None:
            more["skill/log_likelihood_running"] = running
        if self._prior is not None:
            self._prior.follow(learned, updates)
            more["skill/effective"] = effective_skills(self._prior.chances)
        return more

    def prior(self) -> npt.NDArray[np.float64] | None:
        """Uniform while the discriminator waits, since a rare skill would not gather rows."""
        if self._prior is None:
            return None
        return np.full(self._skills, 1.0 / self._skills) if self._waits else self._prior.chances

    def steady_feed(self, workers: int) -> Feed:
        return {name: tf.constant(v[0]) for name, v in self._prior_feed(1, workers).items()}

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        steps = all_transitions(episodes)
        outputs = self._outputs(weights, self._state(steps, self._config.state))
        counted = episodes.step_mask
        likelihood = self._likelihood(outputs, steps.skill).numpy()
        metrics = {"skill/log_likelihood_heldout": float(likelihood[counted].mean())}
        if not self._density:
            hits = skill_hits(outputs, steps.skill).numpy()
            metrics["skill/accuracy_heldout"] = float(hits[counted].mean())
        paid = likelihood - self._log_prior(steps.skill).numpy()
        total = np.where(counted, paid, 0.0).sum(axis=1)
        return metrics | {"skill/diversity_return": float(total.mean())}

    def histograms(self, weights: Weights, episodes: Episodes) -> Mapping[str, Array]:
        steps = all_transitions(episodes)
        outputs = self._outputs(weights, self._state(steps, self._config.state))
        likelihood = self._likelihood(outputs, steps.skill).numpy()
        values = {"skill/log_likelihood_heldout/steps": likelihood[episodes.step_mask]}
        if self._density:
            return values
        skill, earned = episodes.skill.argmax(axis=-1), episodes.reward.sum(axis=1)
        each = {f"eval/return/skill_{z}": earned[skill == z] for z in np.unique(skill).tolist()}
        return values | each

    def shared(self) -> dict[str, np.ndarray]:
        kept = {} if self._prior is None else {f"scales/{self.name}": self._prior.means}
        return super().shared() | kept | {f"scales/{self.name}_running": self._running.state}

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        super().load(shared)
        name = f"scales/{self.name}"
        if self._prior is not None and name in shared:
            self._prior.means = np.array(shared[name])
        if f"{name}_running" in shared:
            self._running.state = np.array(shared[f"{name}_running"])

    @property
    def _waits(self) -> bool:
        """Whether a skill has too few fresh rows since `forget` for the discriminator to learn."""
        return self._rows is not None and bool(self._rows.min() < self._config.resume_rows)

    def _log_prior(self, skill: tf.Tensor) -> tf.Tensor:
        """Returns log p(z) of conditions, also if the reward does not subtract it."""
        chances = self.prior()
        if chances is not None:
            return tf.reduce_sum(skill * np.log(chances).astype(np.float32), axis=-1)
        if self._density:
            return log_prior(self._kind, skill)
        return tf.fill(skill.shape[:-1], -math.log(self._skills))

    def _prior_feed(self, *shape: int) -> dict[str, np.ndarray]:
        """Returns log p [..., K] for a feed, if the prior is learned and subtracted."""
        chances = self.prior()
        if chances is None or not self._config.subtract_prior:
            return {}
        logs = np.log(chances + self._config.prior_offset).astype(np.float32)
        return {"log_prior": np.broadcast_to(logs, (*shape, self._skills)).copy()}

    def _state(self, batch: Transition, which: str) -> Any:
        """Returns the inputs of the discriminator, [..., D]."""
        seen = self._seen.of(batch, after=which == "next")
        return seen * 0.0 if self._blind else seen

    def _likelihood(self, outputs: tf.Tensor, skill: tf.Tensor) -> tf.Tensor:
        """Returns log q(z | s) for outputs of the discriminator, [W, B]."""
        if self._density:
            return CONTINUOUS[self._density](outputs, skill)
        return skill_log_likelihood(outputs, skill)

    def _outputs(self, weights: Weights, state: tf.Tensor) -> tf.Tensor:
        """Returns logits or parameters of a density, [W, B, ...], for states [W, B, D]."""
        inputs = self.scaled("discriminator", state)
        return self.networks[0].rows(weights["discriminator"], inputs)
