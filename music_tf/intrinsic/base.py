"""The interface of reward terms, and how the rewards of several terms are mixed."""

import abc
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.config.conditioning import ConditionConfig
from music_tf.config.terms import TermConfig
from music_tf.config.values import Schedule
from music_tf.envs.registry import EnvironmentInfo, descriptor_of, no_split
from music_tf.errors import UsageError
from music_tf.networks.parameters import Network, Scalar, Weights
from music_tf.replay.buffer import ReplayBuffer
from music_tf.replay.rows import Picks, Store
from music_tf.types import Array, BoolArray, EnvSpec, Episodes, Metrics, SplitSpec, Transition

Pay: TypeAlias = Literal["clip", "log"]
Feed: TypeAlias = Mapping[str, tf.Tensor]
"""Samples and random draws that a term needs for one update, each [W, ...]."""


class TermContext(NamedTuple):
    """What a term gets to know of its run, beside its own settings."""

    spec: EnvSpec
    info: EnvironmentInfo
    """What the package knows of the environment."""
    seed: int
    skills: int
    """Number K of skills."""
    measure: Callable[["InputSpec"], tuple[Array, Array]]
    """Plays random actions, and returns mean and deviation of a network's inputs, each [D]; they
    depend on the seed alone."""
    constant: Callable[["InputSpec"], BoolArray]
    """Plays the same actions, and returns which inputs are equal in all states, [D]."""
    condition: ConditionConfig = ConditionConfig()
    """The condition of the policy."""
    total: Callable[[np.ndarray], np.ndarray] = np.asarray
    """Sums an array over the ranks; a collective call."""

    def split(self) -> SplitSpec:
        """Returns the columns of robot and surroundings; refuses an unknown split."""
        if self.spec.split is None:
            raise no_split(self.spec.env_id, self.info)
        return self.spec.split

    def descriptor(self) -> "InputSpec":
        """Returns the descriptor of skills: `world.descriptor`, by default the surroundings."""
        return InputSpec(*descriptor_of(self.info, self.spec))

    def check_columns(self, setting: str, columns: Sequence[int]) -> None:
        """Refuses columns of a setting that the observation does not have."""
        last = self.spec.observation_dim - 1
        for column in columns:
            if column > last:
                raise UsageError(
                    f"{setting}: expected columns of the observation, 0 to {last}, got {column}\n"
                    f"nearest: {last}"
                )

    def width(self, seen: "InputSpec") -> int:
        """Returns the number of inputs."""
        return self.spec.extras.get(seen.extra, len(seen.columns))

    def components(self, seen: "InputSpec") -> list[Any]:
        """Returns inputs as a checkpoint stores them: columns, or the source of an extra."""
        return [self.info.extras.get(seen.extra, "")] if seen.extra else list(seen.columns)


class InputSpec(NamedTuple):
    """The inputs of a network: columns of the observation, or an extra."""

    columns: tuple[int, ...]
    extra: str = ""
    """Name of the extra that replaces the columns."""

    def of(self, batch: Transition, after: bool) -> Any:
        """Returns the inputs in the states before or after a step, [..., D]; arrays or tensors."""
        if self.extra:
            return (batch.next_extras if after else batch.extras)[self.extra]
        observation = batch.next_observation if after else batch.observation
        if isinstance(observation, np.ndarray):
            return observation[..., list(self.columns)]
        return tf.gather(observation, list(self.columns), axis=-1)

    def along(self, episodes: Episodes) -> Array:
        """Returns the inputs in every state of episodes, [E, T + 1, D]."""
        if self.extra:
            return episodes.extras[self.extra]
        return episodes.observation[..., list(self.columns)]


class Mixing(NamedTuple):
    """How a term enters the sum of rewards: w * (pay(c * r) + shift); 0 for c = 0."""

    scale: float
    clip: tuple[float, float]
    shift: float
    weight: Schedule
    pay: Pay = "clip"
    lost: float | None = None
    """Pay, before the weight, of each step after the object is lost; None: the lowest pay."""

    def __call__(self, reward: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        if self.scale == 0.0:
            return tf.zeros_like(reward)
        paid = paid_for(self.scale * reward, self.pay, self.clip)
        return weight * (paid + self.shift)

    def at(self, epoch: float | None) -> "Mixing":
        """Returns the same with the weight of an epoch or level in all; itself without one."""
        if epoch is None:
            return self
        return self._replace(weight=((0.0, schedule_value(self.weight, epoch)),))

    def retired(self, epoch: float) -> bool:
        """Whether the term pays nothing from this epoch or level on, and need not be computed."""
        if self.scale == 0.0:
            return True
        later = (value for point, value in self.weight if point >= epoch)
        return schedule_value(self.weight, epoch) == 0.0 and not any(later)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest value before the weight."""
        low, high = self.clip
        return (low + self.shift, high + self.shift) if self.scale else (0.0, 0.0)

    def lowest(self, weight: tf.Tensor) -> tf.Tensor:
        """Returns the value of each step after the object is lost: the lowest one, or `lost`."""
        if self.lost is not None:
            return weight * (self.lost if self.scale else 0.0)
        low, high = self.range
        if all(value >= 0.0 for _, value in self.weight):
            return weight * low
        return tf.minimum(weight * low, weight * high)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value of the term in any epoch."""
        if self.scale == 0.0:
            return 0.0, 0.0
        weights = [value for _, value in self.weight]
        ends = [
            weight * (clip + self.shift) if weight else 0.0
            for weight in (min(weights), max(weights))
            for clip in self.clip
        ]
        if self.lost is not None:
            ends += [min(weights) * self.lost, max(weights) * self.lost]
        return min(ends), max(ends)


def paid_for(scaled: tf.Tensor, pay: Pay, clip: tuple[float, float]) -> tf.Tensor:
    r"""Returns the pay of a scaled reward r = c m, in one of two forms that never decrease in r.

    .. math:: \operatorname{clip}(r, lo, hi) \quad \text{or} \quad
        \operatorname{clip}(\operatorname{sign}(r) \log(1 + |r|), lo, hi)
    """
    if pay == "log":
        scaled = tf.sign(scaled) * tf.math.log1p(tf.abs(scaled))
    return tf.clip_by_value(scaled, clip[0], clip[1])


class RewardTerm(abc.ABC):
    """A reward computed from transitions, with its networks and its state.

    A term holds no weights: each call gets those of its networks. The gradient of its loss is
    computed, reduced and applied together with those of the learner. A term without networks
    defines `reward` alone; all other methods are optional. Arrays of episodes are read-only,
    because several terms share them.
    """

    name: str
    """Prefix of its metrics, `reward/NAME_mean` and so on."""
    mixing: Mixing
    """How it enters the sum: by default w * (clip(r) + shift), without a factor."""
    networks: Sequence[Network | Scalar] = ()
    """Networks that it trains."""
    every: int = 1
    """Its networks learn at every n-th update."""
    times: int = 1
    """Steps of its networks at such an update, each on its own feed."""
    steps_first: bool = False
    """Whether its networks step before actor and critics, which then get the updated reward."""
    early: Sequence[str] = ()
    """Names of networks that also learn before the learner's first update, in separate phases."""
    notice: str = ""
    """Message for the user before the run begins, or an empty string."""
    columns: Sequence[int] = ()
    """Columns of the observation that replay also stores separately, for whole trajectories."""
    inputs: Mapping[str, Any] = MappingProxyType({})
    """Inputs of each network as JSON values. Weights can be shared between terms only if these are
    equal."""
    fulfilled: Callable[[Weights, ReplayBuffer, Picks], Array] | None = None
    """Maps picks of replay to conditions that were met there, for `condition.relabel`, [..., K]."""
    scales: Mapping[str, tf.Variable] = MappingProxyType({})
    """Mean and deviation that normalise a network's inputs, [2, inputs]; fixed before training,
    and stored with the weights."""

    def __init__(self, config: TermConfig, context: TermContext) -> None:
        """Takes the settings; a subclass that learns builds its networks here."""
        self.name = config.name
        self.mixing = Mixing(1.0, config.clip, config.shift, config.weight)

    def scaled(self, network: str, inputs: tf.Tensor) -> tf.Tensor:
        """Returns a network's inputs [..., inputs], normalised if `scales` has the network."""
        scale = self.scales.get(network)
        return inputs if scale is None else (inputs - scale[0]) / scale[1]

    @abc.abstractmethod
    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns the raw reward of each transition, float32 [W, B], without gradient.

        The compiled update calls it for each minibatch of replay, with the weights of that moment.
        Then weight * (clip(reward, *clip) + shift), by the term's settings, enters the sum that the
        learner gets. Evaluations call it for whole episodes, [E, T]. For example a block's height:

            return batch.next_observation[..., 5] - 0.42  # columns 3 to 5: its place in metres

        Args:
            weights: Of all networks, by name, for `Network.rows`; then `tf.stop_gradient`.
            batch: Observations [W, B, O] before and after the action, not normalised, in the
                environment's units; actions [W, B, A] in [-1, 1]; the task's reward [W, B] under
                the goal [W, B, G], which may be relabelled; skills [W, B, K]; extras by name.
            feed: What `feed` returned for this update, each [W, ...].
        """

    def rests(self, epoch: float) -> bool:
        """Whether the term is neither computed nor trained from this epoch or level on."""
        return self.mixing.retired(epoch)

    def gate(self, batch: Transition) -> tf.Tensor | None:
        """Returns a factor on the weight for each transition, [W, B]; None stands for 1."""
        return None

    @property
    def gated(self) -> bool:
        """Whether `gate` returns factors, from 0 to 1."""
        return type(self).gate is not RewardTerm.gate

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Samples and draws the feed of all updates of a cycle, each [U * times, W, ...].

        A term that samples replay overrides `draws` and `looked_up` instead, so that the look-up
        can happen on a GPU.

        Raises:
            UsageError: `looked_up` does not return arrays by name.
        """
        arrays: Any = self.looked_up(self.draws(replay, updates, cycle), replay)
        if not isinstance(arrays, Mapping):
            raise UsageError(f"feed of {self.name}: expected arrays by name, got {arrays!r:.80}")
        return dict(arrays)

    def draws(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, Any]:
        """Draws random numbers and indices for `looked_up`, each [U * times, W, ...]."""
        return {}

    def looked_up(self, drawn: Mapping[str, Any], store: Store) -> Mapping[str, Any]:
        """Returns the feed for the draws: arrays of all updates of a cycle, or tensors of one."""
        return drawn

    @property
    def feeds_itself(self) -> bool:
        """Whether the term overrides `feed` in place of `draws` and `looked_up`."""
        return type(self).feed is not RewardTerm.feed

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        """Returns metrics of a minibatch and its raw rewards [W, B], each [W]."""
        return {}

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Returns loss and metrics of each worker, each [W]; a scalar 0 if nothing learns."""
        return tf.zeros([]), {}

    def steady_feed(self, workers: int) -> Feed:
        """Returns a feed for `reward` without random draws that change, each [W]."""
        return {}

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        """Returns metrics of the term's networks on episodes that they were not trained on."""
        return {}

    def histograms(self, weights: Weights, episodes: Episodes) -> Mapping[str, Array]:
        """Returns values to show as histograms of an evaluation, by tag."""
        return {}

    def pictures(self, weights: Weights, episodes: Episodes) -> Mapping[str, np.ndarray]:
        """Returns pictures of an evaluation, each [height, width, 3] of bytes, by tag."""
        return {}

    def priorities(self, weights: Weights, episodes: Episodes, worker: int, cycle: int) -> Array:
        """Returns the replay priorities of a worker's fresh episodes, [E].

        Called if `replay.priority` names this term, whose settings then say that it `ranks`.

        Raises:
            NotImplementedError: This term knows no priorities.
        """
        raise NotImplementedError(f"{self.name} knows no priorities")

    def prior(self) -> npt.NDArray[np.float64] | None:
        """Returns the probability of each one-hot condition in rollouts, [K]; None: uniform."""
        return None

    def observe(self, episodes: Mapping[int, Episodes], cycle: int) -> None:
        """Called in each cycle with its new episodes, after replay got them and before updates.

        All ranks that learn call it, so it may sum over them (`TermContext.total`). What it counts
        belongs in `meta`, `shared` or `of_worker`, or a resumed run lacks it. For example:

            steps = sum(int(played.length.sum()) for played in episodes.values())

        Args:
            episodes: Those of each worker of this rank, as read-only arrays such as `observation`
                [E, T + 1, O], in the environment's units; an action lies in [-1, 1].
            cycle: Number of the cycle, which keys random streams.
        """
        del episodes, cycle

    def forget(self) -> None:  # noqa: B027 - optional
        """Called on `--resume --without-replay`, after `load_meta`: drop what episodes taught."""

    def meta(self) -> dict[str, Any]:
        """Returns counts for a checkpoint, equal on all ranks, as JSON values."""
        return {}

    def load_meta(self, meta: Mapping[str, Any]) -> None:
        """Restores what `meta` of an earlier run returned; empty for older checkpoints.

        Raises:
            ValueError: No run saves such counts.
        """
        del meta

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        """Callback with the metrics of some updates, equal on all ranks; returns more metrics.

        Args:
            learned: Means by name; a term may remove entries that should not be logged.
            updates: Number of these updates.
            episodes: Number of training episodes so far, over all ranks.
        """
        return {}

    def shared(self) -> dict[str, np.ndarray]:
        """Returns the state beside the weights, equal on all ranks, by name."""
        return {f"scales/{name}": scale.numpy() for name, scale in self.scales.items()}

    def of_worker(self, worker: int) -> dict[str, np.ndarray]:
        """Returns the state for a worker of this rank, by name."""
        return {}

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        """Restores what `shared` of an earlier run returned."""
        for name, scale in self.scales.items():
            if f"scales/{name}" in shared:
                scale.assign(shared[f"scales/{name}"])

    def load_worker(self, worker: int, kept: Mapping[str, np.ndarray]) -> None:
        """Restores what `of_worker` of an earlier run returned."""
        del worker, kept


def as_floats(flags: Any) -> Any:
    return flags.astype(np.float32) if isinstance(flags, np.ndarray) else tf.cast(flags, tf.float32)


def scale_variables(network: str, scale: tuple[Array, Array] | None) -> dict[str, tf.Variable]:
    """Returns `RewardTerm.scales` of a network; empty without a scale."""
    if scale is None:
        return {}
    return {network: tf.Variable(np.stack(scale), trainable=False, dtype=tf.float32)}


def share_deviation(deviation: Array, columns: BoolArray) -> None:
    """Sets the deviations of some columns to their root mean square, in place."""
    deviation[columns] = np.sqrt(np.mean(deviation[columns] ** 2))


def schedule_value(schedule: Schedule, epoch: float) -> float:
    """Interpolates a schedule in the epoch or level; it is constant before and after its ends."""
    epochs, values = zip(*schedule, strict=True)
    return float(np.interp(epoch, epochs, values))
