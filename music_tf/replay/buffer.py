"""The episode store of one rank: a shard for each of its workers."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from music_tf.config.settings import ReplayConfig
from music_tf.randomness import stream
from music_tf.replay.priorities import draw_probabilities
from music_tf.replay.relabel import choose_goals
from music_tf.types import Array, EnvSpec, Episodes, IntArray, Transition

GoalReward = Callable[[Array, Array], Array]
"""Rewards [N] of achieved goals [N, G] under desired goals [N, G]."""
LEARNING = "replay/transitions"
"""Purpose of the batches that actor and critics learn from, the only ones drawn by priority."""


class Shard:
    """Episodes of one worker in preallocated arrays; memory is touched only where it is used."""

    def __init__(
        self, spec: EnvSpec, skills: int, config: ReplayConfig, columns: Sequence[int] = ()
    ) -> None:
        """Makes an empty shard.

        Args:
            spec: Sizes of the environment.
            skills: Size K of the skill vector.
            config: Capacity and overwrite rule.
            columns: Components of the observation that are also kept by themselves, for batches
                of whole trajectories that need no more.
        """
        steps = spec.max_episode_steps
        self._config = config
        self.capacity = max(1, config.capacity // steps)
        self.size = 0
        self._cursor = 0
        self._columns = np.array(columns, dtype=np.int64)
        states, count = steps + 1, self.capacity
        self.arrays: dict[str, np.ndarray] = {
            "observation": np.empty([count, states, spec.observation_dim], np.float32),
            "achieved_goal": np.empty([count, states, spec.goal_dim], np.float32),
            "desired_goal": np.empty([count, spec.goal_dim], np.float32),
            "action": np.empty([count, steps, spec.action_dim], np.float32),
            "reward": np.empty([count, steps], np.float32),
            "length": np.empty([count], np.int64),
            "terminated": np.empty([count], np.bool_),
            "lost": np.empty([count], np.bool_),
            "success": np.empty([count], np.bool_),
            "skill": np.empty([count, skills], np.float32),
            "task": np.empty([count], np.int64),
        }
        for name, size in spec.extras.items():
            self.arrays[f"extras/{name}"] = np.empty([count, states, size], np.float32)
        if config.priority != "uniform":
            self.arrays["priority"] = np.empty([count], np.float32)
        self.trajectories = np.empty([count, states, len(columns)], np.float32)

    def add(
        self, episodes: Episodes, generator: np.random.Generator, priority: Array | None = None
    ) -> IntArray:
        """Copies episodes into the store and returns their slots.

        Slots are filled in order. What no longer fits overwrites: with `random` uniformly chosen
        filled slots, with replacement, as in OpenAI Baselines' HER; with `oldest` a ring.

        Args:
            episodes: To store.
            generator: Chooses what is overwritten.
            priority: Of each episode, [E], where episodes are drawn by priority.
        """
        rows = _named(episodes)
        if priority is not None:
            rows["priority"] = priority
        slots = self._slots(len(episodes.length), generator)
        self.put(slots, rows)
        return slots

    def put(self, slots: IntArray, rows: Mapping[str, np.ndarray]) -> None:
        """Writes rows into given slots, as `add` and a restored checkpoint do."""
        for name, values in rows.items():
            self.arrays[name][slots] = values
        self.trajectories[slots] = rows["observation"][:, :, self._columns]

    def restore(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Starts from an empty store and repeats the additions that `saved` holds, in order."""
        self.size = self._cursor = 0
        for rows in saved:
            fields = dict(rows)
            slots = fields.pop("slots")
            self.size = int(fields.pop("size"))
            self._cursor = int(fields.pop("cursor"))
            self.put(slots, fields)

    def rows(self, slots: IntArray) -> dict[str, np.ndarray]:
        """Returns copies of the episodes in `slots` with all that `restore` needs."""
        fields = {name: values[slots] for name, values in self.arrays.items()}
        return fields | {
            "slots": slots,
            "size": np.array(self.size),
            "cursor": np.array(self._cursor),
        }

    def _slots(self, count: int, generator: np.random.Generator) -> IntArray:
        fresh = min(count, self.capacity - self.size)
        filled = np.arange(self.size, self.size + fresh)
        if self._config.overwrite == "oldest":
            overwritten = (self._cursor + np.arange(count - fresh)) % self.capacity
            self._cursor = (self._cursor + count - fresh) % self.capacity
        else:
            overwritten = generator.integers(max(1, self.size), size=count - fresh)
        self.size += fresh
        return np.concatenate([filled, overwritten]).astype(np.int64)


class ReplayBuffer:
    """The shards of this rank's workers, sampled alike: batches are [U, W, B, ...]."""

    def __init__(
        self,
        shards: Mapping[int, Shard],
        config: ReplayConfig,
        goal_reward: GoalReward | None,
        discount: float,
        seed: int,
    ) -> None:
        """Wraps shards.

        Args:
            shards: By worker index over all ranks.
            config: Batch size and relabelling.
            goal_reward: Recomputes the task reward under any goal; without, task rewards are zeros.
            discount: Gamma per environment step; it enters here and nowhere else.
            seed: Of the run.
        """
        self.shards = shards
        self._config = config
        self._goal_reward = goal_reward
        self._discount = discount
        self._seed = seed
        self._unsaved: dict[int, list[IntArray]] = {worker: [] for worker in shards}

    def add(
        self,
        episodes: Mapping[int, Episodes],
        cycle: int,
        priorities: Mapping[int, Array] | None = None,
    ) -> None:
        """Stores fresh episodes of each worker, with their priorities [E] if they have any."""
        for worker, shard in self.shards.items():
            generator = stream(self._seed, "replay/overwrite", worker, cycle)
            priority = priorities[worker] if priorities else None
            self._unsaved[worker].append(shard.add(episodes[worker], generator, priority))

    def sample_transitions(self, updates: int, cycle: int, purpose: str = LEARNING) -> Transition:
        """Draws relabelled minibatches for all updates of a cycle, [U, W, B, ...].

        Episodes are drawn with replacement, uniformly or, for `LEARNING`, by the rank of their
        priority if they have one, then times uniformly within the episode. Every task reward is
        recomputed under the goal that the transition ends up with.
        """
        shape = (updates, self._config.batch_size)
        batches = []
        for worker, shard in self.shards.items():
            generator = stream(self._seed, purpose, worker, cycle)
            if purpose == LEARNING and "priority" in shard.arrays:
                chances = draw_probabilities(shard.arrays["priority"][: shard.size])
                episode = generator.choice(shard.size, size=shape, p=chances)
            else:
                episode = generator.integers(shard.size, size=shape)
            batches.append(self._sample(shard.arrays, episode, generator))
        return Transition(*(np.stack(fields, axis=1) for fields in zip(*batches, strict=True)))

    def sample_fresh(self, episodes: Episodes, worker: int, cycle: int) -> Transition:
        """Draws as many transitions from fresh episodes as full ones have steps, [E * T, ...]."""
        count = episodes.action.shape[0] * episodes.action.shape[1]
        generator = stream(self._seed, "replay/fresh", worker, cycle)
        episode = generator.integers(len(episodes.length), size=count)
        return self._sample(_named(episodes), episode, generator)

    def sample_trajectories(self, updates: int, count: int, cycle: int) -> tuple[Array, IntArray]:
        """Draws whole trajectories of the kept columns with their lengths.

        Returns:
            Columns, shape [U, W, M, T + 1, D], and lengths in steps, shape [U, W, M].
        """
        columns, lengths = [], []
        for worker, shard in self.shards.items():
            generator = stream(self._seed, "replay/trajectories", worker, cycle)
            episode = generator.integers(shard.size, size=(updates, count))
            columns.append(shard.trajectories[episode])
            lengths.append(shard.arrays["length"][episode])
        return np.stack(columns, axis=1), np.stack(lengths, axis=1)

    def unsaved(self) -> dict[int, dict[str, np.ndarray]]:
        """Returns what was stored since `mark_saved`, by worker; empty where there is nothing."""
        rows = {}
        for worker, shard in self.shards.items():
            new = self._unsaved[worker]
            rows[worker] = shard.rows(np.unique(np.concatenate(new))) if new else {}
        return rows

    def everything(self) -> dict[int, dict[str, np.ndarray]]:
        """Returns all that is stored, by worker, as `unsaved` would if nothing were saved yet."""
        return {
            worker: shard.rows(np.arange(shard.size)) if shard.size else {}
            for worker, shard in self.shards.items()
        }

    def mark_saved(self) -> None:
        """Notes that what `unsaved` or `everything` returned is safe."""
        self._unsaved = {worker: [] for worker in self.shards}

    def _sample(
        self,
        arrays: Mapping[str, np.ndarray],
        episode: IntArray,
        generator: np.random.Generator,
    ) -> Transition:
        """Draws a step of each given episode, [...]."""
        shape = episode.shape
        states = arrays["observation"].shape[1]
        length = arrays["length"][episode]
        time = (generator.random(shape) * length).astype(np.int64)
        relabelled, chosen = choose_goals(time, length, self._config, generator)
        row = episode * states + time
        observation = _flat(arrays["observation"])
        achieved = _flat(arrays["achieved_goal"])
        desired = np.where(
            relabelled[..., None],
            achieved[episode * states + chosen],
            arrays["desired_goal"][episode],
        )
        next_achieved = achieved[row + 1]
        reward = np.zeros(shape, np.float32)
        if self._goal_reward is not None:
            goals = (-1, desired.shape[-1])
            reward[:] = self._goal_reward(
                next_achieved.reshape(goals), desired.reshape(goals)
            ).reshape(shape)
        last = time == length - 1
        lost = arrays["lost"][episode] & last
        over = (arrays["terminated"][episode] & last) | lost
        return Transition(
            observation=observation[row],
            achieved_goal=achieved[row],
            desired_goal=desired,
            action=_flat(arrays["action"])[episode * (states - 1) + time],
            reward=reward,
            discount=np.where(over, 0.0, self._discount).astype(np.float32),
            lost=lost,
            next_observation=observation[row + 1],
            next_achieved_goal=next_achieved,
            skill=arrays["skill"][episode],
            time=time,
            episode=episode,
        )


def all_transitions(episodes: Episodes) -> Transition:
    """Returns every step of whole episodes in its place, [E, T, ...]; padding stands after them.

    Rewards and goals are the episodes' own, and nothing is discounted.
    """
    count, steps = episodes.reward.shape
    wide = (count, steps)
    time = np.broadcast_to(np.arange(steps), wide)
    last = time == episodes.length[:, None] - 1
    return Transition(
        observation=episodes.observation[:, :-1],
        achieved_goal=episodes.achieved_goal[:, :-1],
        desired_goal=_repeated(episodes.desired_goal, steps),
        action=episodes.action,
        reward=episodes.reward,
        discount=np.ones(wide, np.float32),
        lost=episodes.lost[:, None] & last,
        next_observation=episodes.observation[:, 1:],
        next_achieved_goal=episodes.achieved_goal[:, 1:],
        skill=_repeated(episodes.skill, steps),
        time=time,
        episode=np.broadcast_to(np.arange(count)[:, None], wide),
    )


def _repeated(values: np.ndarray, steps: int) -> np.ndarray:
    """Returns what holds for an episode at each of its steps, [E, T, D]."""
    return np.repeat(values[:, None], steps, axis=1)


def _flat(values: np.ndarray) -> np.ndarray:
    """Joins the episode and time axes, without a copy."""
    return values.reshape(-1, values.shape[-1])


def _named(episodes: Episodes) -> dict[str, np.ndarray]:
    """Returns what is kept of episodes."""
    fields = episodes._asdict()
    del fields["seed"]
    extras = fields.pop("extras")
    return fields | {f"extras/{name}": values for name, values in extras.items()}
