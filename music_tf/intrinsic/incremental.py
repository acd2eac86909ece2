"""Being far from earlier skills and near one's own recent past (DISk, arXiv:2203.11176)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.config.world import STRIDE, TIME
from music_tf.errors import UsageError
from music_tf.intrinsic.base import Feed, RewardTerm, Seen, TermContext, Weights
from music_tf.losses.neighbours import FAR, kth_nearest, kth_nearest_in_time
from music_tf.randomness import stream
from music_tf.recipes.disk import DiskConfig
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Array, Episodes, IntArray, Metrics, Transition

DISTANCES = ("past", "own")
"""To earlier skills, and to the skill's own recent past."""
_KEPT = {"pooled": 2_000, "equal": 20_000}
"""Steps of each earlier skill that are remembered."""
_LARGEST_TABLE = 2**18
"""Numbers in a table of rows of each time of an episode, of which each update gets one."""
_COMPARED = 256
"""Steps of a skill by which the one is found that goes furthest."""
_HORIZON = 2_500
"""Updates that running means look back."""
_LEAST = 1e-6
"""The smallest unit of a distance: strides of a slow robot are below a millimetre."""


class Rows(NamedTuple):
    """Descriptors of steps, and at what time of their episodes they were."""

    places: Array  # [N, D]
    times: IntArray  # [N]


class Incremental(RewardTerm):
    r"""Pays the current skill for being far from earlier ones and near its own recent past.

    .. math:: r = \hat\beta \, D_k(\sigma', \text{past})
        - \hat\alpha \, T(t) \, D_k(\sigma', \text{own})

    D_k is the distance to the k-th nearest descriptor, so nothing has to be learned (Shafiullah and
    Pinto, 2022, arXiv:2203.11176). Where fewer than k are there, the first distance counts as 1 and
    the second as 0. Both weights are in units of mean distances, of the current skill unless the
    settings say otherwise. Deviations from the authors' code: the newest of the earlier skills is
    among them, and T(t) goes from spreading to repeating.
    """

    def __init__(self, config: DiskConfig, context: TermContext) -> None:
        """Takes its settings, and what the world calls the descriptor.

        Raises:
            UsageError: Equal timesteps of so many steps that a table of them is too large.
        """
        super().__init__(config, context)
        self._config, self._seed = config, context.seed
        self._longest = context.spec.max_episode_steps
        self._skills = context.skills
        self.place = context.descriptor()
        """What skills are told apart by, whatever of it is compared."""
        sources = {source: name for name, source in context.info.extras.items()}
        self._time = sources.get(TIME, "")
        strides = [name for source, name in sources.items() if STRIDE.fullmatch(source)]
        self._seen = Seen((), strides[0]) if config.descriptor == "stride" else self.place
        size = context.spec.extras.get(self.place.extra, len(self.place.columns))
        table = self._longest * config.rows * size
        if config.timesteps == "equal" and table > _LARGEST_TABLE:
            fits = max(config.k, config.rows * _LARGEST_TABLE // table)
            raise UsageError(
                f"disk.timesteps: equal needs a table of {self._longest} steps of an episode x "
                f"{config.rows} rows x {size} numbers = {table}, expected at most "
                f"{_LARGEST_TABLE}\nnearest: --disk.rows {fits}, or shorter episodes "
                "(--env.max-episode-steps), or --disk.timesteps pooled"
            )
        self._nothing = Rows(np.zeros([0, size], np.float32), np.zeros(0, np.int64))
        self.skill = 0
        """The one that is learned now."""
        self.progress = 0.0
        """How far it has come, in [0, 1)."""
        self._past = [self._nothing] * context.skills
        self._played: dict[int, Rows] = {}
        """All that skills were played since the run was started or resumed, by skill."""
        self._own: dict[int, Rows] = {}
        self._averages = {name: _Average() for name in DISTANCES}
        self._found: dict[str, tuple[tf.Tensor, tf.Tensor]] = {}
        """What `reward` has computed, for `measures`: distances, and where there are any."""

    def remember(self, skill: int, episodes: Episodes) -> None:
        """Notes where an earlier skill goes, in place of what was known of it; equal on all ranks.

        What is remembered of very many steps is drawn among them.
        """
        self._played[skill] = self._rows(episodes)
        self.remember_again(skill)

    def remember_again(self, skill: int) -> None:
        """Notes the same, as if the skill had been played again and had gone the same way."""
        found, most = self._played[skill], _KEPT[self._config.timesteps]
        count = len(found.times)
        if count > most:
            generator = stream(self._seed, "disk/remembered", skill, self.skill)
            chosen = np.sort(generator.permutation(count)[:most])
            found = Rows(found.places[chosen], found.times[chosen])
        self._past[skill] = found

    def short_of(self, collected: int) -> str:
        """Says which distance has fewer than k rows at first; nothing where both have enough.

        `collected` are the episodes that are played of an earlier skill.
        """
        config = self._config
        steps = 1 if config.timesteps == "equal" else self._longest
        for episodes, kind, value in (
            (collected, "the past of one skill", 1),
            (config.own_episodes, "the own past", 0),
        ):
            if (rows := episodes * steps) < config.k:
                return (
                    f"disk.k is {config.k}, and {kind} has {rows} rows to compare with at most: "
                    f"while there are fewer than {config.k}, the distance counts as {value}"
                )
        return ""

    def begin_skill(self, skill: int) -> None:
        """Goes on with another skill, which has no past of its own yet."""
        self.skill, self.progress, self._own = skill, 0.0, {}
        for average in self._averages.values():
            average.begin_anew()

    def frontier(self) -> int:
        """Returns which earlier skill is nearest to where none goes: furthest from all others."""
        earlier = [rows.places for rows in self._past[: self.skill]]
        some = [own[:: max(1, len(own) // _COMPARED)] for own in earlier]

        def apart(skill: int) -> float:
            others = np.concatenate([one for number, one in enumerate(some) if number != skill])
            found = kth_nearest(tf.constant(some[skill][None]), tf.constant(others[None]), 1)
            return float(tf.reduce_mean(found))

        return max(range(len(earlier)), key=apart) if len(earlier) > 1 else 0

    def prior(self) -> npt.NDArray[np.float64]:
        """Returns that the current skill alone acts, [K]."""
        chances: npt.NDArray[np.float64] = np.eye(self._skills)[self.skill]
        return chances

    def observe(self, episodes: Mapping[int, Episodes], cycle: int) -> None:
        """Appends fresh steps to each worker's own past, of which the oldest are let go."""
        del cycle
        most = self._config.own_episodes * self._longest
        for worker, own in episodes.items():
            self._own[worker] = _joined(self._own.get(worker, self._nothing), self._rows(own), most)

    def forget(self) -> None:
        """Lets go of the own past, which belongs to the replay that is left behind."""
        self._own = {}

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Draws what updates compare with, and says the weights of both distances."""
        earlier = self._past[: max(1, self.skill)]
        past = Rows(*(np.concatenate(parts) for parts in zip(*earlier, strict=True)))
        drawn: dict[str, list[np.ndarray]] = {name: [] for name in DISTANCES}
        for worker in replay.shards:
            generator = stream(self._seed, "disk/rows", worker, cycle)
            for name, rows in zip(
                DISTANCES, (past, self._own.get(worker, self._nothing)), strict=True
            ):
                drawn[name].append(self._drawn(rows, updates, generator))
        found = {name: np.stack(arrays, axis=1) for name, arrays in drawn.items()}
        shape = (updates, len(replay.shards))
        weights = zip(("beta", "alpha"), self._weights(), strict=True)
        return found | {name: np.full(shape, value, np.float32) for name, value in weights}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns the weighted difference of both distances, [W, B]."""
        query = self._seen.of(batch, after=True)
        if self._config.descriptor == "velocity":
            query -= self._seen.of(batch, after=False)
        self._found = {}
        for name, missing in zip(DISTANCES, (1.0, 0.0), strict=True):
            if self._config.timesteps == "equal":
                time = tf.cast(batch.extras[self._time][..., 0], tf.int32)
                distance = kth_nearest_in_time(query, feed[name], time, self._config.k)
            else:
                distance = kth_nearest(query, feed[name], self._config.k)
            there = distance < 0.5 * FAR
            self._found[name] = tf.where(there, distance, missing), there
        (past, _), (own, _) = self._found.values()
        return feed["beta"][:, None] * past - feed["alpha"][:, None] * own

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        """Returns sums for the mean of either distance, as `reward` has found it, [W]."""
        del reward, batch, feed
        found = {}
        for name, (distance, there) in self._found.items():
            known = tf.cast(there, tf.float32)
            found[f"disk/{name}"] = tf.reduce_mean(distance * known, axis=-1)
            found[f"disk/{name}_known"] = tf.reduce_mean(known, axis=-1)
        return found

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        """Follows the means of both distances; says them where there were any, and the weights."""
        del episodes
        for name, average in self._averages.items():
            total, known = (learned.pop(f"disk/{name}{end}", 0.0) for end in ("", "_known"))
            if known > 0.0:
                learned[f"disk/{name}"] = total / known
                average.follow(total / known, updates)
        beta, alpha = self._weights()
        return {"disk/skill": float(self.skill), "disk/beta": beta, "disk/alpha": alpha}

    def shared(self) -> dict[str, np.ndarray]:
        """Returns the skill, where earlier ones go, and what is known of both distances."""
        most = _KEPT[self._config.timesteps]
        size = self._nothing.places.shape[1]
        places = np.zeros([self._skills, most, size], np.float32)
        times = np.zeros([self._skills, most], np.int64)
        counts = np.array([len(rows.times) for rows in self._past])
        for skill, rows in enumerate(self._past):
            places[skill, : counts[skill]], times[skill, : counts[skill]] = rows
        return {
            **super().shared(),
            "disk/skill": np.array(self.skill),
            "disk/past": places,
            "disk/past_times": times,
            "disk/past_counts": counts,
            "disk/averages": np.stack([one.state for one in self._averages.values()]),
        }

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        """Takes over what `shared` of an earlier run returned.

        Raises:
            ValueError: It counts more than it holds.
        """
        super().load(shared)
        if "disk/skill" not in shared:
            return
        counts, places = shared["disk/past_counts"], shared["disk/past"]
        skill = int(shared["disk/skill"])
        if not 0 <= skill < self._skills or (counts < 0).any() or (counts > places.shape[1]).any():
            raise ValueError("disk/past_counts: not what a run saves")
        for number, count in enumerate(counts.tolist()):
            times = shared["disk/past_times"][number, :count]
            self._past[number] = Rows(places[number, :count], times)
        self.skill = skill
        for average, state in zip(self._averages.values(), shared["disk/averages"], strict=True):
            average.state = state.copy()

    def of_worker(self, worker: int) -> dict[str, np.ndarray]:
        """Returns the own past of a worker."""
        places, times = self._own.get(worker, self._nothing)
        return {"own": places, "own_times": times}

    def load_worker(self, worker: int, kept: Mapping[str, np.ndarray]) -> None:
        if kept:
            self._own[worker] = Rows(kept["own"], kept["own_times"])

    def _rows(self, episodes: Episodes) -> Rows:
        """Returns the descriptor of every step, and its time, zeros where no time is kept."""
        steps = np.arange(episodes.action.shape[1]) < episodes.length[:, None]
        values = self._seen.along(episodes)
        after = values[:, 1:]
        if self._config.descriptor == "velocity":
            after = after - values[:, :-1]
        times = np.zeros(int(steps.sum()), np.int64)
        if self._time:
            times = episodes.extras[self._time][:, :-1, 0][steps].astype(np.int64)
        return Rows(after[steps], times)

    def _drawn(self, rows: Rows, updates: int, generator: np.random.Generator) -> np.ndarray:
        """Returns rows for each update, [U, N, D], or [U, T, N, D] of each time; the rest is far.

        Of more than N some are drawn, with replacement unless times are equal.
        """
        count, size = self._config.rows, rows.places.shape[1]
        if self._config.timesteps == "equal":
            table = np.full([self._longest, count, size], FAR, np.float32)
            order = np.lexsort((generator.random(len(rows.times)), rows.times))
            times = rows.times[order]
            number = np.arange(len(times)) - np.searchsorted(times, times)
            kept = number < count
            table[times[kept], number[kept]] = rows.places[order[kept]]
            return np.broadcast_to(table, [updates, *table.shape])
        if len(rows.times) > count:
            return rows.places[generator.integers(len(rows.times), size=(updates, count))]
        padded = np.full([updates, count, size], FAR, np.float32)
        padded[:, : len(rows.times)] = rows.places
        return padded

    def _weights(self) -> tuple[float, float]:
        """Returns the factors on the distance to the past, and on that to the own past."""
        config = self._config
        (past, own), (beta, alpha) = self._averages.values(), (config.beta, config.alpha)
        if config.balance == "released" and self.skill:
            beta, alpha = 1.0 / (beta * past.previous), -1.0 / (alpha * own.previous)
        elif config.balance in ("running", "previous"):
            running = config.balance == "running"
            first = not self.skill
            beta /= past.running if running else past.before(first)
            alpha /= own.running if running else own.before(first)
        if config.schedule and len(self._past[0].times):
            alpha *= math.tanh(4.0 * (2.0 * self.progress - 1.0))
        return beta, alpha


def _joined(one: Rows, other: Rows, most: int) -> Rows:
    """Returns both, one after the other, of which the last count."""
    places = np.concatenate([one.places, other.places])[-most:]
    return Rows(places, np.concatenate([one.times, other.times])[-most:])


class _Average:
    """What is known of the mean of a distance: in the last updates, and over the skill before."""

    def __init__(self) -> None:
        self.state: npt.NDArray[np.float64] = np.zeros(6)
        """Running mean and 1 once there is one; sum and number of updates of this skill; mean of
        the skill before and 1 if there is one."""

    def follow(self, value: float, updates: int) -> None:
        """Takes the mean over some updates."""
        running, known, total, count, before, had = self.state
        kept = known * (1.0 - 1.0 / _HORIZON) ** updates
        running = kept * running + (1.0 - kept) * value
        if not count and not had:  # what the first skill could not measure
            before = value
        total, count = total + updates * value, count + updates
        self.state = np.array([running, 1.0, total, count, before, had])

    def begin_anew(self) -> None:
        """Notes what this skill had, for the next one."""
        *_, total, count, before, had = self.state
        if count:
            before, had = total / count, 1.0
        self.state = np.array([0.0, 0.0, 0.0, 0.0, before, had])

    @property
    def running(self) -> float:
        """Mean over the last updates; 1 before the first."""
        running, known = self.state[:2].tolist()
        return max(running, _LEAST) if known else 1.0

    def before(self, first: bool) -> float:
        """Mean over the skill before, or of the first updates of this one; 1 for the `first`."""
        count, before, had = self.state[3:].tolist()
        return max(before, _LEAST) if (had or count) and not first else 1.0

    @property
    def previous(self) -> float:
        """The same for any skill but the first."""
        return self.before(first=False)
