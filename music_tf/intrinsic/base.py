"""What a reward term is, and how terms are mixed."""

import abc
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.config.settings import ConditionConfig
from music_tf.config.terms import TermConfig
from music_tf.config.values import Schedule
from music_tf.envs.registry import EnvironmentInfo, descriptor_of, no_split
from music_tf.networks.parameters import Network, Scalar
from music_tf.replay.buffer import ReplayBuffer
from music_tf.replay.rows import Store
from music_tf.types import Array, BoolArray, EnvSpec, Episodes, Metrics, SplitSpec, Transition

Weights: TypeAlias = Mapping[str, list[tf.Tensor]]
Pay: TypeAlias = Literal["clip", "log"]
Feed: TypeAlias = Mapping[str, tf.Tensor]
"""What a term asked for, one update of it: samples and random draws, each [W, ...]."""


class TermContext(NamedTuple):
    """What a term may know of the run that it is built for, beside its own settings."""

    spec: EnvSpec
    info: EnvironmentInfo
    """What the package knows of the environment."""
    seed: int
    skills: int
    """Number K of skills."""
    measure: Callable[["Seen"], tuple[Array, Array]]
    """Plays random actions for the centre and unit of what is seen of states; each [D]. They are
    the same in every run of a seed."""
    constant: Callable[["Seen"], BoolArray]
    """Plays the same for which numbers of what is seen are alike in all states, [D]."""
    condition: ConditionConfig = ConditionConfig()
    """What the policy is conditioned on."""
    total: Callable[[np.ndarray], np.ndarray] = np.asarray
    """Adds up an array over the ranks; every rank must call it together."""

    def split(self) -> SplitSpec:
        """Returns which components are the robot's and which its surroundings'.

        Raises:
            UsageError: Nobody says.
        """
        if self.spec.split is None:
            raise no_split(self.spec.env_id, self.info)
        return self.spec.split

    def descriptor(self) -> "Seen":
        """Returns what skills are told apart by: as the world says, else the surroundings."""
        return Seen(*descriptor_of(self.info, self.spec))

    def width(self, seen: "Seen") -> int:
        """Returns how many numbers are seen of a state."""
        return self.spec.extras.get(seen.extra, len(seen.columns))

    def components(self, seen: "Seen") -> list[Any]:
        """Returns what is seen, as a checkpoint says it: columns, or what an extra is from."""
        return [self.info.extras.get(seen.extra, "")] if seen.extra else list(seen.columns)


class Seen(NamedTuple):
    """What a network looks at: columns of the observation, or an extra."""

    columns: tuple[int, ...]
    extra: str = ""
    """Name of the extra that stands in place of columns."""

    def of(self, batch: Transition, after: bool) -> Any:
        """Returns it for the states before or after a step, [..., D]; numpy stays numpy."""
        if self.extra:
            return (batch.next_extras if after else batch.extras)[self.extra]
        observation = batch.next_observation if after else batch.observation
        if isinstance(observation, np.ndarray):
            return observation[..., list(self.columns)]
        return tf.gather(observation, list(self.columns), axis=-1)

    def along(self, episodes: Episodes) -> Array:
        """Returns it for every state of episodes, [E, T + 1, D]."""
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
    """What a step after a lost object pays before it is weighted; None: the least there is."""

    def __call__(self, reward: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        """Returns the mixed term for raw rewards and the schedule's present weight."""
        if self.scale == 0.0:
            return tf.zeros_like(reward)
        paid = paid_for(self.scale * reward, self.pay, self.clip)
        return weight * (paid + self.shift)

    def retired(self, epoch: float) -> bool:
        """Whether the term pays nothing from this epoch on: it need not be computed."""
        if self.scale == 0.0:
            return True
        later = (value for point, value in self.weight if point >= epoch)
        return schedule_value(self.weight, epoch) == 0.0 and not any(later)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest value before it is weighted."""
        low, high = self.clip
        return (low + self.shift, high + self.shift) if self.scale else (0.0, 0.0)

    @property
    def full(self) -> float:
        """Least scaled reward c r that is paid the most there is."""
        most = self.clip[1]
        return float(np.expm1(most)) if self.pay == "log" else most

    def lowest(self, weight: tf.Tensor) -> tf.Tensor:
        """Returns what a lost object pays under the schedule's present weight: the lowest value.

        Or its own, where the lowest would say too much: a way that is not gone on costs nothing.
        """
        if self.lost is not None:
            return weight * (self.lost if self.scale else 0.0)
        low, high = self.range
        if all(value >= 0.0 for _, value in self.weight):
            return weight * low
        return tf.minimum(weight * low, weight * high)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value that the term can take at any time."""
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
    r"""Returns what a scaled reward r = c m is paid; both never fall where it rises.

    .. math:: \operatorname{clip}(r, lo, hi) \quad \text{or} \quad
        \operatorname{clip}(\operatorname{sign}(r) \log(1 + |r|), lo, hi)

    Args:
        scaled: Raw rewards times their gain, of any shape.
        pay: `clip` for the first, `log` for the second.
        clip: Lowest and highest pay.
    """
    if pay == "log":
        scaled = tf.sign(scaled) * tf.math.log1p(tf.abs(scaled))
    return tf.clip_by_value(scaled, clip[0], clip[1])


class RewardTerm(abc.ABC):
    """A reward computed from transitions, with whatever it has to learn or to keep for that.

    A term holds no weights: it gets those of its networks with every call. The gradient of its loss
    is taken, reduced and applied together with everybody else's. One that learns nothing says its
    reward and nothing else; all else is optional. Episodes that a term is given cannot be written:
    others read the same arrays.
    """

    name: str
    """Prefix of its metrics, `reward/NAME_mean` and so on."""
    mixing: Mixing
    """How it enters the sum: by default w * (clip(r) + shift), without a factor."""
    networks: Sequence[Network | Scalar] = ()
    """What it learns; empty for a term that is only computed."""
    every: int = 1
    """Its networks learn at every n-th update."""
    times: int = 1
    """Steps that its networks take at such an update, each on a feed of its own."""
    leads: bool = False
    """Whether its networks step before actor and critics, which then see the reward after that."""
    early: Sequence[str] = ()
    """Names of networks that learn also while nothing else does, each step apart from the rest."""
    notice: str = ""
    """What to tell the user of it before the run begins, if anything."""
    columns: Sequence[int] = ()
    """Components of the observation that replay keeps by themselves, for whole trajectories."""
    inputs: Mapping[str, Any] = MappingProxyType({})
    """What each network looks at, as JSON values: two that differ here do not understand each
    other's weights."""
    scales: Mapping[str, tf.Variable] = MappingProxyType({})
    """Centre and unit of a network's inputs, [2, inputs], where they are scaled: measured before
    training and no part of the gradient, they belong to its weights."""

    def __init__(self, config: TermConfig, context: TermContext) -> None:
        """Takes its settings, and what it needs of the run; a term that learns builds networks."""
        del context
        self.name = config.name
        self.mixing = Mixing(1.0, config.clip, config.shift, config.weight)

    def scaled(self, network: str, inputs: tf.Tensor) -> tf.Tensor:
        """Returns a network's inputs [..., inputs] in units of its scale; raw without one."""
        scale = self.scales.get(network)
        return inputs if scale is None else (inputs - scale[0]) / scale[1]

    @abc.abstractmethod
    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns the raw reward of each transition, shape [W, B], without gradient."""

    def rests(self, epoch: float) -> bool:
        """Whether it need not be computed and learns no more from this epoch on."""
        return self.mixing.retired(epoch)

    def gate(self, batch: Transition) -> tf.Tensor | None:
        """Returns a factor on its weight for each transition, [W, B]; None where all count."""
        return None

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Samples and draws what all updates of a cycle need, each [U * times, W, ...].

        A term that samples replay says it in two steps instead, `draws` and `looked_up`: the second
        may then happen on a device.
        """
        return dict(self.looked_up(self.draws(replay, updates, cycle), replay))

    def draws(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, Any]:
        """Draws random numbers, and picks what `looked_up` looks up, each [U * times, W, ...]."""
        return {}

    def looked_up(self, drawn: Mapping[str, Any], store: Store) -> Mapping[str, Any]:
        """Returns the feed that draws stand for.

        Of all updates of a cycle in numpy, or of one update, [W, ...], in tensors.
        """
        return drawn

    @property
    def feeds_itself(self) -> bool:
        """Whether it has a `feed` of its own in place of the two steps."""
        return type(self).feed is not RewardTerm.feed

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        """Returns what to log of a minibatch and its raw rewards [W, B], each [W]."""
        return {}

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Returns one loss and the metrics of each worker, each [W]; zero where nothing learns."""
        return tf.zeros([]), {}

    def steady_feed(self, workers: int) -> Feed:
        """Returns what `reward` needs where nothing may be left to chance, each [W]."""
        return {}

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        """Returns what the term's networks make of episodes that they never learned from."""
        return {}

    def histograms(self, weights: Weights, episodes: Episodes) -> Mapping[str, Array]:
        """Returns values to show as histograms of an evaluation, by tag."""
        return {}

    def pictures(self, weights: Weights, episodes: Episodes) -> Mapping[str, np.ndarray]:
        """Returns pictures of an evaluation, each [height, width, 3] of bytes, by tag."""
        return {}

    def priorities(self, weights: Weights, episodes: Episodes, worker: int, cycle: int) -> Array:
        """Returns how much fresh episodes of a worker count when replay draws, [E].

        Raises:
            NotImplementedError: This term knows no priorities.
        """
        raise NotImplementedError(f"{self.name} knows no priorities")

    def prior(self) -> npt.NDArray[np.float64] | None:
        """Returns how often each one-hot condition shall act from now on, [K]; None: alike."""
        return None

    def observe(self, episodes: Mapping[int, Episodes], cycle: int) -> None:
        """Sees the fresh episodes of each worker of this rank, to keep what it needs of them."""
        del episodes, cycle

    def forget(self) -> None:  # noqa: B027 - what nobody has to hear
        """Hears that replay is empty although the run goes on, before anything fresh is seen."""

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        """Sees the means of what some updates logged, equal on all ranks; returns more to log.

        Args:
            learned: The means by name; what is not to be logged may be taken out.
            updates: How many these were.
            episodes: How many training episodes have ended so far, over all ranks.
        """
        del learned, updates, episodes
        return {}

    def shared(self) -> dict[str, np.ndarray]:
        """Returns what it keeps beside its weights, the same on all ranks, by explicit names."""
        return {f"scales/{name}": scale.numpy() for name, scale in self.scales.items()}

    def of_worker(self, worker: int) -> dict[str, np.ndarray]:
        """Returns what it keeps for a worker of this rank, by explicit names."""
        return {}

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        """Takes over what `shared` of an earlier run returned."""
        for name, scale in self.scales.items():
            if f"scales/{name}" in shared:
                scale.assign(shared[f"scales/{name}"])

    def load_worker(self, worker: int, kept: Mapping[str, np.ndarray]) -> None:
        """Takes over what `of_worker` of an earlier run returned for this worker."""
        del worker, kept


def as_floats(flags: Any) -> Any:
    """Returns 1 where a flag is set, else 0; numpy stays numpy."""
    return flags.astype(np.float32) if isinstance(flags, np.ndarray) else tf.cast(flags, tf.float32)


def scale_variables(network: str, scale: tuple[Array, Array] | None) -> dict[str, tf.Variable]:
    """Returns `RewardTerm.scales` of a network; empty where its inputs are raw."""
    if scale is None:
        return {}
    return {network: tf.Variable(np.stack(scale), trainable=False, dtype=tf.float32)}


def schedule_value(schedule: Schedule, epoch: float) -> float:
    """Interpolates a schedule linearly in the epoch; its ends hold outside.

    The MUSIC release raises an error beyond the last point instead.
    """
    epochs, values = zip(*schedule, strict=True)
    return float(np.interp(epoch, epochs, values))
