"""Distance to earlier skills, minus distance to the skill's own past (DISk, arXiv:2203.11176)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.config.world import STRIDE, TIME
from music_tf.errors import UsageError
from music_tf.intrinsic.base import Feed, InputSpec, RewardTerm, TermContext
from music_tf.losses.neighbours import FAR, kth_nearest, kth_nearest_in_time
from music_tf.networks.parameters import Weights
from music_tf.randomness import stream
from music_tf.recipes.disk import DiskConfig
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Array, Episodes, IntArray, Metrics, Transition

DISTANCES = ("past", "own")
"""To earlier skills, and to the skill's own recent past."""
PAST = "disk/past"
"""How the names of saved arrays begin that hold a row for each skill."""
_KEPT = {"pooled": 2_000, "equal": 20_000}
"""Number of stored steps of each earlier skill."""
_LARGEST_TABLE = 2**18
"""Largest number of values in an update's table of rows by time step."""
_COMPARED = 256
"""Number of steps of each skill that `frontier` compares."""
_HORIZON = 2_500
"""Time constant of running means, in updates."""
_LEAST = 1e-6
"""The smallest unit of a distance: strides of a slow robot are below a millimetre."""


class Rows(NamedTuple):
    """Descriptors of steps, and their time steps in the episodes."""

    places: Array  # [N, D]
    times: IntArray  # [N]


class Incremental(RewardTerm):
    r"""Pays the current skill for being far from earlier skills and near its own recent past.

    .. math:: r = \hat\beta \, D_k(\sigma', \text{past})
        - \hat\alpha \, h(t) \, D_k(\sigma', \text{own})

    D_k is the distance to the k-th nearest descriptor (arXiv:2203.11176); with fewer than k, the
    first counts as 1 and the second as 0. Deviations from the authors' code: the past includes the
    newest of the earlier skills, and h(t) rises from -1 to 1, so that a skill is paid for spreading
    first and for consistency later.
    """

    def __init__(self, config: DiskConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self._config, self._seed = config, context.seed
        self._longest = context.spec.max_episode_steps
        self._skills = context.skills
        self.place = context.descriptor()
        """The descriptor of skills, from which the compared numbers are derived."""
        sources = {source: name for name, source in context.info.extras.items()}
        self._time = sources.get(TIME, "")
        strides = [name for source, name in sources.items() if STRIDE.fullmatch(source)]
        self._seen = InputSpec((), strides[0]) if config.descriptor == "stride" else self.place
        size = context.width(self.place)
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
        """The skill that is learned now."""
        self.progress = 0.0
        """Share of the current skill's training that is done, in [0, 1)."""
        self.counts_updates = config.balance == "released"
        """Whether that share is of updates per step of the skill, as in the authors' code."""
        self._past = [self._nothing] * context.skills
        self._played: dict[int, Rows] = {}
        """All collected steps by skill, since the run was started or resumed."""
        self._own: dict[int, Rows] = {}
        self._averages = {name: _Average() for name in DISTANCES}
        self._distances: dict[str, tuple[tf.Tensor, tf.Tensor]] = {}
        """Distances from `reward` for `measures`, and a mask of those with k rows."""

    def remember(self, skill: int, episodes: Episodes) -> None:
        """Replaces the stored steps of a skill by a sample of episodes, equal on all ranks."""
        self._played[skill] = self._rows(episodes)
        self.remember_again(skill)

    def remember_again(self, skill: int) -> None:
        """Draws a new sample of the episodes that `remember` got last for this skill."""
        rows, most = self._played[skill], _KEPT[self._config.timesteps]
        count = len(rows.times)
        if count > most:
            generator = stream(self._seed, "disk/remembered", skill, self.skill)
            chosen = np.sort(generator.permutation(count)[:most])
            rows = Rows(rows.places[chosen], rows.times[chosen])
        self._past[skill] = rows

    def short_of(self, collected: int) -> str:
        """Returns a message if a distance has fewer than k rows at first, else ""."""
        config = self._config
        steps = 1 if config.timesteps == "equal" else self._longest
        sides = (collected, "the past of one skill", 1), (config.own_episodes, "the own past", 0)
        for episodes, kind, value in sides:
            if (rows := episodes * steps) < config.k:
                return (
                    f"disk.k is {config.k}, and {kind} has {rows} rows to compare with at most: "
                    f"while there are fewer than {config.k}, the distance counts as {value}"
                )
        return ""

    def begin_skill(self, skill: int) -> None:
        self.skill, self.progress, self._own = skill, 0.0, {}
        for average in self._averages.values():
            average.begin_anew()

    def frontier(self) -> int:
        """Returns the earlier skill with the largest mean distance to all others."""
        earlier = [rows.places for rows in self._past[: self.skill]]
        samples = [places[:: max(1, len(places) // _COMPARED)] for places in earlier]

        def distance(skill: int) -> float:
            others = np.concatenate(samples[:skill] + samples[skill + 1 :])
            nearest = kth_nearest(tf.constant(samples[skill][None]), tf.constant(others[None]), 1)
            return float(tf.reduce_mean(nearest))

        return max(range(len(earlier)), key=distance) if len(earlier) > 1 else 0

    def prior(self) -> npt.NDArray[np.float64]:
        return np.asarray(np.eye(self._skills)[self.skill])

    def observe(self, episodes: Mapping[int, Episodes], cycle: int) -> None:
        most = self._config.own_episodes * self._longest
        for worker, played in episodes.items():
            older, newer = self._own.get(worker, self._nothing), self._rows(played)
            places = np.concatenate([older.places, newer.places])[-most:]
            self._own[worker] = Rows(places, np.concatenate([older.times, newer.times])[-most:])

    def forget(self) -> None:
        self._own = {}

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        earlier = self._past[: max(1, self.skill)]
        past = Rows(*(np.concatenate(parts) for parts in zip(*earlier, strict=True)))
        drawn: dict[str, list[np.ndarray]] = {name: [] for name in DISTANCES}
        for worker in replay.shards:
            generator = stream(self._seed, "disk/rows", worker, cycle)
            sides = past, self._own.get(worker, self._nothing)
            for name, rows in zip(DISTANCES, sides, strict=True):
                drawn[name].append(self._drawn(rows, updates, generator))
        stacked = {name: np.stack(arrays, axis=1) for name, arrays in drawn.items()}
        shape = (updates, len(replay.shards))
        weights = zip(("beta", "alpha"), self._weights(), strict=True)
        return stacked | {name: np.full(shape, value, np.float32) for name, value in weights}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        query = self._seen.of(batch, after=True)
        if self._config.descriptor == "velocity":
            query -= self._seen.of(batch, after=False)
        self._distances = {}
        for name, missing in zip(DISTANCES, (1.0, 0.0), strict=True):
            if self._config.timesteps == "equal":
                time = tf.cast(batch.extras[self._time][..., 0], tf.int32)
                distance = kth_nearest_in_time(query, feed[name], time, self._config.k)
            else:
                distance = kth_nearest(query, feed[name], self._config.k)
            complete = distance < 0.5 * FAR
            self._distances[name] = tf.where(complete, distance, missing), complete
        (past, _), (recent, _) = self._distances.values()
        return feed["beta"][:, None] * past - feed["alpha"][:, None] * recent

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        metrics = {}
        for name, (distance, complete) in self._distances.items():
            counted = tf.cast(complete, tf.float32)
            metrics[f"disk/{name}"] = tf.reduce_mean(distance * counted, axis=-1)
            metrics[f"disk/{name}_known"] = tf.reduce_mean(counted, axis=-1)
        return metrics

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        for name, average in self._averages.items():
            total, share = (learned.pop(f"disk/{name}{end}", 0.0) for end in ("", "_known"))
            if share > 0.0:
                learned[f"disk/{name}"] = total / share
                average.follow(total / share, updates)
        beta, alpha = self._weights()
        return {"disk/skill": float(self.skill), "disk/beta": beta, "disk/alpha": alpha}

    def shared(self) -> dict[str, np.ndarray]:
        most = _KEPT[self._config.timesteps]
        places = np.zeros([self._skills, most, self._nothing.places.shape[1]], np.float32)
        times = np.zeros([self._skills, most], np.int64)
        counts = np.array([len(rows.times) for rows in self._past])
        for skill, rows in enumerate(self._past):
            places[skill, : counts[skill]], times[skill, : counts[skill]] = rows
        return {
            **super().shared(),
            "disk/skill": np.array(self.skill),
            PAST: places,
            f"{PAST}_times": times,
            f"{PAST}_counts": counts,
            "disk/averages": np.stack([average.state for average in self._averages.values()]),
        }

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        super().load(shared)
        if "disk/skill" not in shared:
            return
        counts, places = shared[f"{PAST}_counts"], shared[PAST]
        skill = int(shared["disk/skill"])
        if not 0 <= skill < self._skills or (counts < 0).any() or (counts > places.shape[1]).any():
            raise ValueError(f"{PAST}_counts: not what a run saves")
        for number, count in enumerate(counts.tolist()):
            times = shared[f"{PAST}_times"][number, :count]
            self._past[number] = Rows(places[number, :count], times)
        self.skill = skill
        for average, state in zip(self._averages.values(), shared["disk/averages"], strict=True):
            average.state = state.copy()

    def of_worker(self, worker: int) -> dict[str, np.ndarray]:
        places, times = self._own.get(worker, self._nothing)
        return {"own": places, "own_times": times}

    def load_worker(self, worker: int, kept: Mapping[str, np.ndarray]) -> None:
        if kept:
            self._own[worker] = Rows(kept["own"], kept["own_times"])

    def _rows(self, episodes: Episodes) -> Rows:
        """Returns descriptor and time of every step; times are 0 without such an extra."""
        steps = episodes.step_mask
        values = self._seen.along(episodes)
        after = values[:, 1:]
        if self._config.descriptor == "velocity":
            after = after - values[:, :-1]
        times = np.zeros(int(steps.sum()), np.int64)
        if self._time:
            times = episodes.extras[self._time][:, :-1, 0][steps].astype(np.int64)
        return Rows(after[steps], times)

    def _drawn(self, rows: Rows, updates: int, generator: np.random.Generator) -> np.ndarray:
        """Returns N rows, [U, N, D], or N a time step, [U, T, N, D]; missing ones are `FAR`."""
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
        """Returns the weights of the distances to earlier skills and to the recent past."""
        config = self._config
        (past, recent), (beta, alpha) = self._averages.values(), (config.beta, config.alpha)
        if config.balance == "running":
            beta, alpha = beta / past.running, alpha / recent.running
        elif config.balance == "previous" and self.skill:
            beta, alpha = beta / past.before, alpha / recent.before
        elif config.balance == "released" and self.skill:
            beta, alpha = 1.0 / (beta * past.before), -1.0 / (alpha * recent.before)
        if config.schedule and len(self._past[0].times):
            alpha *= math.tanh(4.0 * (2.0 * self.progress - 1.0))
        return beta, alpha


class _Average:
    """Mean of a distance: running mean over updates, and mean over the previous skill."""

    def __init__(self) -> None:
        self.state: npt.NDArray[np.float64] = np.zeros(6)
        """Running mean, and 1 if it has begun; sum and number of updates of this skill; mean over
        the previous skill, and 1 if there is one."""

    def follow(self, value: float, updates: int) -> None:
        running, begun, total, count, before, had = self.state
        kept = begun * (1.0 - 1.0 / _HORIZON) ** updates
        running = kept * running + (1.0 - kept) * value
        if not count and not had:  # no previous skill has measured this distance
            before = value
        total, count = total + updates * value, count + updates
        self.state = np.array([running, 1.0, total, count, before, had])

    def begin_anew(self) -> None:
        """Stores the mean over this skill for the next one."""
        *_, total, count, before, had = self.state
        if count:
            before, had = total / count, 1.0
        self.state = np.array([0.0, 0.0, 0.0, 0.0, before, had])

    @property
    def running(self) -> float:
        """Running mean; 1 before the first update."""
        running, begun = self.state[:2].tolist()
        return max(running, _LEAST) if begun else 1.0

    @property
    def before(self) -> float:
        """Mean over the previous skill, or in the first updates of this one; else 1."""
        count, before, had = self.state[3:].tolist()
        return max(before, _LEAST) if had or count else 1.0
