"""Skills that move far in a learned embedding: LSD, CSD and METRA."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.errors import UsageError
from music_tf.intrinsic.base import Feed, InputSpec, TermContext, scale_variables, share_deviation
from music_tf.intrinsic.gated import GatedTerm
from music_tf.intrinsic.speed import AUTO, Speed
from music_tf.losses.distance import (
    approach_reward,
    controllability_log_weights,
    direction,
    embedding_loss,
    gaussian_loss,
    inner_product_reward,
    slack,
    squared_controllability_distance,
    velocity_reward,
)
from music_tf.networks.models import plain
from music_tf.networks.parameters import Network, Scalar, Weights
from music_tf.randomness import stream
from music_tf.recipes.distance import DistanceConfig
from music_tf.replay.buffer import ReplayBuffer
from music_tf.replay.rows import Picks, Store
from music_tf.types import Array, BoolArray, Episodes, Metrics, Transition

_LARGEST_LOG_DEVIATION = math.log(1e6)
_PROBE = 0.1
"""Change of a column, in its units, to measure how far the embedding moves."""
_SHOWN_COLUMNS = 3
_NO_LENGTH = 1e-9
"""Least of a length that is divided by."""
_UNEVEN = math.log(2.0)
"""Logarithm of the ratio of two deviations beyond which coordinates of an object share one."""
_SQUARINGS = 12
"""Of a matrix whose eigenvalues are squared singular values. A singular value that is smaller by a
thousandth then weighs 3e-4 of the largest."""
_RESTING = "scales/distance_resting"
"""Name in checkpoints of the flag that the embedding does not learn yet."""


class Distance(GatedTerm):
    r"""Rewards the displacement of an embedding phi in the direction of the condition z.

    .. math:: r = (\phi(s') - \phi(s))^T z, \quad
        \max_\phi E[r] \text{ such that } \lVert \phi(s') - \phi(s) \rVert \le d(s, s')

    In METRA (arXiv:2310.08887) d = 1, in CSD (arXiv:2302.05103) d is large for changes that a
    density model finds unlikely, and in LSD (arXiv:2202.00914) kernels of phi have spectral norm 1,
    so that d is the distance of its inputs. Released code bounds the mean of the squared components
    in place of their sum (`distance.norm`), which makes steps sqrt(D) times as long.
    """

    def __init__(self, config: DistanceConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self._config = config
        self._one_hot = context.condition.kind == "one_hot"
        seen = self._seen = _columns(config, "columns", context) or context.descriptor()
        width = context.width(seen)
        config.check_directions(width, context.skills)
        self.inputs: dict[str, dict[str, Any]] = {
            "phi": {"components": context.components(seen), "constraint": config.constraint}
        }
        scale = _scale(seen, context)
        if (of_hand := _unit_of_hand(seen, scale[1], context)) is not None:
            scale[1][:] = of_hand
            self.notice = (
                "random actions never move what skills are to move, so its unit is that of the "
                f"robot's hand, {of_hand:.3g}"
            )
        self.scales = scale_variables("phi", scale if config.normalize_inputs else None)
        self._speed = None if config.speed == math.inf else Speed(config.speed, context.total)
        if config.speed == AUTO:
            later = "distance.speed auto: read off the episodes before learning begins"
            self.notice = "; ".join(filter(None, (self.notice, later)))
        self._hand = list(context.info.gripper or ())
        self._deviation = scale[1]
        """Of each input under random actions, also where inputs are not scaled."""
        self.mixing = self.mixed_up_to(math.inf)._replace(lost=config.lost_pays)
        rate = config.learning_rate if config.train else 0.0

        def network(name: str, inputs: int, outputs: int) -> Network:
            seed = stream(context.seed, f"initial weights/{name}")
            # Of several objects no turn mixes the places.
            turn = config.initializer if context.condition.groups == 1 else "identity"
            model = plain(inputs, outputs, "point", config.hidden_sizes, seed, turn)
            return Network(name, model, rate)

        self._phi = network("phi", width, context.skills)
        networks: list[Network | Scalar] = [self._phi]
        if self._config.priced:
            dual = math.log(max(config.dual_start, config.lambda_floor))
            dual_rate = config.dual_learning_rate if config.train else 0.0
            networks.append(Scalar("dual", dual, dual_rate))
        self._modelled: InputSpec | None = None
        if config.has_density:
            modelled = self._modelled = _columns(config, "modelled", context) or seen
            _check_changing(modelled, context)
            size = context.width(modelled)
            unit = context.measure(modelled) if config.normalize_inputs else None
            self.scales = {**self.scales, **scale_variables("change_mean", unit)}
            self._change_mean = network("change_mean", size, size)
            self._change_deviation = network("change_deviation", size, size)
            networks += [self._change_mean, self._change_deviation]
            of_changes = {"components": context.components(modelled)}
            self.inputs |= {"change_mean": of_changes, "change_deviation": of_changes}
        self.networks = networks
        self._resting = tf.Variable(1.0, trainable=False) if config.rests_at_first else None
        self.steps_first = config.update_order == "first"
        self.early = ("change_mean", "change_deviation") if config.density_early else ()
        self.fulfilled = self._fulfilled if config.reach < math.inf else None

    def looked_up(self, drawn: Mapping[str, Any], store: Store) -> Mapping[str, Any]:
        if not self._config.train:
            return drawn
        batch = store.transitions(drawn["picks"], paid=False)
        fed = {"condition": batch.skill, **self._ends("seen", self._seen, batch)}
        if self._modelled is not None:
            fed |= self._ends("modelled", self._modelled, batch)
        return fed

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        ends = self._ends("seen", self._seen, batch)
        if self._config.reach < math.inf:
            before, after = (self._from_mean(weights, end) for end in ends.values())
            place = self._config.reach * batch.skill
            return tf.stop_gradient(approach_reward(before, after, place))
        step = self._step(weights, ends["seen"], ends["seen_after"])
        towards = direction(batch.skill, self._one_hot)
        if self._speed is None:
            return tf.stop_gradient(inner_product_reward(step, towards))
        # The speed is one of the inputs; a learned embedding stretches them more and more.
        before, after = (self.scaled("phi", tf.convert_to_tensor(end)) for end in ends.values())
        moved, stretched = (
            tf.reduce_sum(tf.norm(way, axis=-1), axis=-1, keepdims=True) + _NO_LENGTH
            for way in (after - before, step)
        )
        speed = self._speed.value * stretched / moved
        return tf.stop_gradient(velocity_reward(step, towards, speed))

    def _from_mean(self, weights: Weights, seen: Any) -> tf.Tensor:
        """Returns phi(s) - phi(mean under random actions), [..., D], for inputs [..., n]."""
        return self._step(weights, tf.zeros_like(seen) + self.scales["phi"][0], seen)

    def _fulfilled(self, weights: Weights, replay: ReplayBuffer, picks: Picks) -> Array:
        """Returns the conditions that name the places where the picked episodes ended."""
        last = np.full_like(picks.time, replay.longest - 1)  # ends are repeated
        ends = replay.transitions(picks._replace(time=last), paid=False)
        places = self._from_mean(weights, self._seen.of(ends, after=True)).numpy()
        return np.asarray(places / np.float32(self._config.reach))

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        if not self._config.train:
            return tf.zeros([]), {}
        step = self._step(weights, feed["seen"], feed["seen_after"])
        towards = direction(feed["condition"], self._one_hot)
        reward = inner_product_reward(step, towards)
        if not self._config.priced:
            losses, metrics = self._once_followed(-reward, reward, step, towards)
            return tf.reduce_mean(losses, axis=-1), metrics
        squared_distance, model_loss, metrics = self._allowed(weights, feed, reward)
        left = slack(step, squared_distance, self._config.norm == "mean", self._config.slack)
        log_dual, floor = weights["dual"][0], self._config.lambda_floor
        log_floor = math.log(floor) if floor else -math.inf
        learned = embedding_loss(reward, left, log_dual, log_floor)
        losses, followed = self._once_followed(learned, reward, step, towards)
        return tf.reduce_mean(losses + model_loss, axis=-1), metrics | followed | {
            "distance/dual": tf.exp(tf.maximum(log_dual, log_floor)) * tf.ones(reward.shape[:1]),
            "distance/slack": tf.reduce_mean(left, axis=-1),
            "distance/violated": tf.reduce_mean(tf.cast(left < 0.0, tf.float32), axis=-1),
        }

    def _once_followed(
        self, losses: tf.Tensor, reward: tf.Tensor, step: tf.Tensor, towards: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Returns losses [W, B], 0 while the embedding rests, and the cosine that ends this."""
        if self._resting is None:
            return losses, {}
        lengths = tf.norm(step, axis=-1) * tf.norm(towards, axis=-1)
        followed = tf.reduce_sum(reward, axis=-1) / (tf.reduce_sum(lengths, axis=-1) + _NO_LENGTH)
        return (1.0 - self._resting) * losses, {"distance/followed": tf.stop_gradient(followed)}

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        """Starts to train a resting embedding once the policy follows conditions well enough."""
        if self._resting is not None:
            if learned.get("distance/followed", -1.0) > self._config.rest_until:
                self._resting.assign(0.0)
            learned["distance/resting"] = float(self._resting.numpy())
        return {} if self._speed is None else {"distance/speed": self._speed.settle()}

    def observe(self, episodes: Mapping[int, Episodes], cycle: int) -> None:
        if self._speed is None or self._speed.known:
            return
        lengths, moved = [], []
        for played in episodes.values():
            places = self._seen.along(played)
            moved.append((self._moved(places[:, :1], places) & played.state_mask).any(axis=1))
            ways = [np.diff(self.scaled("phi", tf.constant(places)).numpy(), axis=1)]
            if self._hand:  # an object can go as fast as the hand that moves it
                unit = np.sqrt(np.mean(self._deviation**2)) if self.scales else 1.0
                ways.append(np.diff(played.observation[..., self._hand], axis=1) / unit)
            fastest = np.max([np.linalg.norm(way, axis=-1) for way in ways], axis=0)
            lengths.append(fastest[played.step_mask])
        self._speed.see(np.concatenate(lengths), np.concatenate(moved))

    def shared(self) -> dict[str, np.ndarray]:
        resting = {} if self._resting is None else {_RESTING: np.asarray(self._resting.numpy())}
        speed = {} if self._speed is None else self._speed.shared()
        return super().shared() | resting | speed

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        super().load(shared)
        if self._speed is not None:
            self._speed.load(shared)
        if self._resting is not None and _RESTING in shared:
            self._resting.assign(shared[_RESTING])

    def meta(self) -> dict[str, Any]:
        return {} if self._speed is None else self._speed.meta()

    def load_meta(self, meta: Mapping[str, Any]) -> None:
        if self._speed is not None:
            self._speed.load_meta(meta)

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        """Returns how well episodes follow their condition, and how far columns move phi."""
        places = self._seen.along(episodes)
        first, last = places[:, 0], places[np.arange(len(places)), episodes.length]
        moved = self._moved(first, last)
        way = self._step(weights, first[None], last[None]).numpy()[0]
        towards = direction(tf.constant(episodes.skill), self._one_hot).numpy()
        if self._config.reach < math.inf:
            place = self._from_mean(weights, first[None]).numpy()[0]
            towards = self._config.reach * towards - place
        lengths = np.linalg.norm(way, axis=-1) * np.linalg.norm(towards, axis=-1)
        cosines = (way * towards).sum(axis=-1) / np.maximum(lengths, _NO_LENGTH)
        metrics = {"distance/moved": float(moved.mean())}
        if moved.any():  # the slower an object is to be, the less does its direction matter
            speeds = None if self._speed is None else np.linalg.norm(towards[moved], axis=-1)
            metrics["distance/aligned"] = float(np.average(cosines[moved], weights=speeds))
        probes = _PROBE * np.eye(first.shape[-1], dtype=np.float32)
        for column, probe in enumerate(probes[:_SHOWN_COLUMNS]):
            step = self._step(weights, first[None], first[None] + probe).numpy()
            length = np.linalg.norm(step, axis=-1).mean() / _PROBE
            metrics[f"distance/units_{column}"] = float(length)
        return metrics

    def _moved(self, before: Array, after: Array) -> BoolArray:
        """Returns whether any input changed by more than its deviation, [...]."""
        scaled = self.scales.get("phi")  # perhaps of the run that the embedding was taken from
        deviation = self._deviation if scaled is None else scaled.numpy()[1]
        return np.asarray((np.abs(after - before) > deviation).any(axis=-1))

    def _allowed(
        self, weights: Weights, feed: Feed, like: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
        """Returns squared distances and losses of the density model [W, B], metrics [W]."""
        nothing = tf.zeros_like(like)
        if self._modelled is None:
            if self._config.distance == "one":
                return tf.ones_like(like), nothing, {}
            ends = [self.scaled("phi", feed[name]) for name in ("seen", "seen_after")]
            return tf.reduce_mean(tf.square(ends[1] - ends[0]), axis=-1), nothing, {}
        before, after = (
            self.scaled("change_mean", feed[name]) for name in ("modelled", "modelled_after")
        )
        mean = self._change_mean.rows(weights["change_mean"], before)
        log_deviation = tf.clip_by_value(
            self._change_deviation.rows(weights["change_deviation"], before),
            math.log(self._config.sigma_floor),
            _LARGEST_LOG_DEVIATION,
        )
        change, released = after - before, self._config.density_loss == "released"
        model_loss = gaussian_loss(mean, log_deviation, change, released)
        mean, log_deviation = tf.stop_gradient(mean), tf.stop_gradient(log_deviation)
        log_weights = controllability_log_weights(log_deviation)
        spread = tf.reduce_max(log_weights, axis=-1) - tf.reduce_min(log_weights, axis=-1)
        metrics = {"distance/weight_spread": tf.reduce_mean(spread, axis=-1)}
        return squared_controllability_distance(mean, log_deviation, change), model_loss, metrics

    def _step(self, weights: Weights, before: Any, after: Any) -> tf.Tensor:
        """Returns phi(s') - phi(s), [..., D], for inputs [..., n]."""
        kernels = weights["phi"]
        if not self._config.priced:
            kernels = [_of_spectral_norm_one(each) for each in kernels]
        ends = [
            self._phi.rows(kernels, self.scaled("phi", tf.convert_to_tensor(seen)))
            for seen in (before, after)
        ]
        return ends[1] - ends[0]

    @staticmethod
    def _ends(name: str, seen: InputSpec, batch: Transition) -> dict[str, Any]:
        """Returns inputs before and after steps, under their names in a feed."""
        return {name: seen.of(batch, after=False), f"{name}_after": seen.of(batch, after=True)}


def _columns(config: DistanceConfig, field: str, context: TermContext) -> InputSpec | None:
    columns: tuple[int, ...] = getattr(config, field)
    context.check_columns(f"distance.{field}", columns)
    return InputSpec(columns) if columns else None


def _scale(seen: InputSpec, context: TermContext) -> tuple[Array, Array]:
    """Returns mean and deviation of inputs under random actions, [n] each."""
    mean, deviation = context.measure(seen)
    place = np.isin(seen.columns, context.info.object or ())
    # One that random actions hardly change, as the height of a block, would count far more.
    if place.any() and np.ptp(np.log(deviation[place])) > _UNEVEN:
        share_deviation(deviation, place)
    return mean, deviation


def _unit_of_hand(seen: InputSpec, deviation: Array, context: TermContext) -> float | None:
    """Returns the deviation of the hand's columns, if random actions move these but no input."""
    split = context.spec.split
    hand = context.info.gripper or (split.agent if split else ())
    is_apart = hand and not set(hand) & set(seen.columns)
    if not is_apart or np.ptp(deviation) or not context.constant(seen).all():
        return None
    deviation_of_hand = context.measure(InputSpec(tuple(hand)))[1]
    return float(np.sqrt(np.mean(deviation_of_hand**2)))


def _check_changing(modelled: InputSpec, context: TermContext) -> None:
    if not context.constant(modelled).all():
        return
    everything = InputSpec(tuple(range(context.spec.observation_dim)))
    changing = np.flatnonzero(~context.constant(everything))
    raise UsageError(
        "distance.modelled: expected columns of which some change, got "
        f"{list(modelled.columns) or modelled.extra}, constant in all states of random play\n"
        f"those that change: --distance.modelled {' '.join(map(str, changing))}"
    )


def _of_spectral_norm_one(weight: tf.Tensor) -> tf.Tensor:
    """Returns a kernel divided by its largest singular value, u^T W v; a bias is unchanged.

    Singular vectors u and v are constants for the gradient (Miyato et al., 2018, arXiv:1802.05957).
    In place of a power iteration with state, W^T W is squared often enough that all its columns
    point along v: products suit a GPU, where XLA decomposes matrices element by element.
    """
    if weight.shape.rank != 2:  # noqa: PLR2004
        return weight
    fixed = tf.stop_gradient(weight)
    power = tf.matmul(fixed, fixed, transpose_a=True)
    for _ in range(_SQUARINGS):
        power /= tf.reduce_max(tf.abs(power)) + _NO_LENGTH
        power = tf.matmul(power, power)
    right = tf.gather(power, tf.argmax(tf.linalg.diag_part(power)), axis=1)
    right /= tf.norm(right) + _NO_LENGTH
    left = tf.linalg.matvec(fixed, right)
    left /= tf.norm(left) + _NO_LENGTH
    return weight / tf.einsum("i,ij,j->", left, weight, right)
