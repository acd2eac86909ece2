"""The experience of one rank: a store of episodes for each of its workers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.settings import ReplayConfig
from music_tf.randomness import stream
from music_tf.replay.hindsight import choose_goals, draw_probabilities
from music_tf.types import Array, EnvSpec, Episodes, IntArray, Transition

GoalReward = Callable[[Array, Array], Array]
"""Rewards [N] of achieved goals [N, G] under desired goals [N, G]."""
LEARNING = "replay/transitions"
"""Purpose of the batches that actor and critics learn from, the only ones drawn by priority."""


class Shard:
    """Episodes of one worker; memory is touched only where it is used.

    What is drawn together lies together: a packed row for each state, for each step and for each
    episode. Fetching a row costs about as much as fetching one number of it.
    """

    def __init__(
        self, spec: EnvSpec, skills: int, config: ReplayConfig, columns: Sequence[int] = ()
    ) -> None:
        """Makes an empty shard for skills of size K.

        `columns` of the observation are also kept by themselves, for batches of whole
        trajectories that need no more.
        """
        steps = spec.max_episode_steps
        count = self.capacity = max(1, config.capacity // steps)
        self.size = 0
        self._cursor = 0
        self._config = config
        self.columns = np.array(columns, dtype=np.int64)
        state = {"observation": spec.observation_dim, "achieved_goal": spec.goal_dim}
        extras = {f"extras/{name}": size for name, size in spec.extras.items()}
        episode = {"desired_goal": spec.goal_dim, "skill": skills}
        numbers = ["priority"] if config.priority != "uniform" else []
        self._states = np.empty([count, steps + 1], _row(**state, **extras))
        self._steps = np.empty([count, steps], _row("reward", action=spec.action_dim))
        self._episodes = np.empty(
            [count],
            [
                ("length", np.int64),
                *_row(*numbers, **episode),
                *((name, np.bool_) for name in ("terminated", "lost", "success")),
            ],
        )
        self.arrays: dict[str, np.ndarray] = {
            name: block[name]
            for block in (self._states, self._steps, self._episodes)
            for name in block.dtype.names or ()
        }
        """Views of the packed rows by name; together all that has to be saved."""
        self.trajectories = np.empty([count, steps + 1, len(columns)], np.float32)
        self._returns = np.empty([count], np.float32)
        blocks = (self._states, self._steps, self._episodes, self.trajectories, self._returns)
        self.bytes = sum(block.nbytes for block in blocks)
        """What it takes once it is full."""

    def add(
        self, episodes: Episodes, generator: np.random.Generator, priority: Array | None = None
    ) -> IntArray:
        """Copies episodes into the store and returns their slots.

        Slots are filled in order. What no longer fits overwrites: with `random` uniformly chosen
        filled slots, with replacement, as in OpenAI Baselines' HER; with `oldest` a ring.

        Where episodes are drawn by priority, each comes with its own, [E].
        """
        rows = episodes.named()
        if priority is not None:
            rows["priority"] = priority
        count = len(episodes.length)
        fresh = min(count, self.capacity - self.size)
        filled = np.arange(self.size, self.size + fresh)
        if self._config.overwrite == "oldest":
            overwritten = (self._cursor + np.arange(count - fresh)) % self.capacity
            self._cursor = (self._cursor + count - fresh) % self.capacity
        else:
            overwritten = generator.integers(max(1, self.size), size=count - fresh)
        self.size += fresh
        slots = np.concatenate([filled, overwritten]).astype(np.int64)
        self._put(slots, rows)
        return slots

    def draw(
        self,
        shape: tuple[int, ...],
        generator: np.random.Generator,
        discount: float,
        goal_reward: GoalReward | None,
        by_priority: bool = False,
    ) -> Transition:
        """Draws steps with replacement: an episode, then a step of it, then perhaps a new goal.

        The goal that counts is the one achieved after the action: that is what the action led to.
        The one before it is the outcome of an earlier action. With `by_priority`, episodes are
        drawn by the rank of their priority, if they have one.
        """
        if by_priority and "priority" in self.arrays:
            chances = draw_probabilities(self.arrays["priority"][: self.size])
            slot = generator.choice(self.size, size=shape, p=chances)
        else:
            slot = generator.integers(self.size, size=shape)
        episode = self._episodes.take(slot)
        length = episode["length"]
        time = (generator.random(shape) * length).astype(np.int64)
        relabelled, chosen = choose_goals(time, length, self._config, generator)
        states, first = self._states.ravel(), slot * self._states.shape[1]
        goal = episode["desired_goal"].copy()
        goal[relabelled] = states["achieved_goal"][(first + chosen)[relabelled]]
        state, after = states.take(first + time), states.take(first + time + 1)
        reward = np.zeros(shape, np.float32)
        if goal_reward is not None:
            goals = (-1, goal.shape[-1])
            achieved = np.ascontiguousarray(after["achieved_goal"]).reshape(goals)
            reward[:] = goal_reward(achieved, goal.reshape(goals)).reshape(shape)
        last = time == length - 1
        lost = episode["lost"] & last
        over = (episode["terminated"] & last) | lost
        discounts = np.where(over, 0.0, discount).astype(np.float32)
        next_extras = _extras(after)
        if "discount" in next_extras:
            discounts *= next_extras["discount"][..., 0]
        return Transition(
            observation=state["observation"],
            desired_goal=goal,
            action=self._steps.ravel().take(slot * self._steps.shape[1] + time)["action"],
            reward=reward,
            discount=discounts,
            lost=lost,
            next_observation=after["observation"],
            skill=episode["skill"],
            episode_return=self._returns[slot],
            extras=_extras(state),
            next_extras=next_extras,
        )

    def fresh(self, episodes: Episodes, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draws states with relabelled goals from episodes that need not be stored.

        As many as full episodes have steps: observations [E * T, O] and goals [E * T, G].
        """
        count = episodes.reward.size
        episode = generator.integers(len(episodes.length), size=count)
        length = episodes.length[episode]
        time = (generator.random(count) * length).astype(np.int64)
        relabelled, chosen = choose_goals(time, length, self._config, generator)
        goal = episodes.desired_goal[episode]
        goal[relabelled] = episodes.achieved_goal[episode, chosen][relabelled]
        return episodes.observation[episode, time], goal

    def full_rows(self) -> dict[str, np.ndarray]:
        """Returns what a save of all slots holds, for names, types and shapes."""
        slots = np.broadcast_to(np.int64(0), self.capacity)
        return {**self.arrays, "slots": slots, "size": np.array(0), "cursor": np.array(0)}

    def check_rows(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Checks rows in order of saving, before any of them is restored.

        They have the names, types and shapes of `full_rows`, or fewer rows.

        Raises:
            ValueError: They lie outside the shard, or leave some of it unset.
        """
        filled: set[int] = set()
        size = 0
        for rows in saved:
            slots, size, cursor = rows["slots"], int(rows["size"]), int(rows["cursor"])
            inside = 0 <= size <= self.capacity and 0 <= cursor < self.capacity
            if not inside or not ((slots >= 0) & (slots < size)).all():
                raise ValueError("replay: slots, size or cursor lie outside its capacity")
            if any(len(rows[name]) != len(slots) for name in self.arrays):
                raise ValueError("replay: not as many rows as slots")
            lengths = rows["length"]
            if not ((lengths >= 1) & (lengths <= self._steps.shape[1])).all():
                raise ValueError("replay: length lies outside an episode")
            filled.update(slots.tolist())
        if len(filled) != size:
            raise ValueError(f"replay: {len(filled)} of {size} episodes are there")

    def restore(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Starts from an empty store and repeats the additions that `saved` holds, in order."""
        self.size = self._cursor = 0
        for rows in saved:
            self.size, self._cursor = int(rows["size"]), int(rows["cursor"])
            self._put(rows["slots"], rows)

    def rows(self, slots: IntArray) -> dict[str, np.ndarray]:
        """Returns copies of the episodes in `slots` with all that `restore` needs."""
        fields = {name: values[slots] for name, values in self.arrays.items()}
        size, cursor = np.array(self.size), np.array(self._cursor)
        return {**fields, "slots": slots, "size": size, "cursor": cursor}

    def _put(self, slots: IntArray, rows: Mapping[str, np.ndarray]) -> None:
        """Writes rows into given slots, and what follows from them."""
        for name, array in self.arrays.items():
            array[slots] = rows[name]
        self.trajectories[slots] = rows["observation"][:, :, self.columns]
        self._returns[slots] = rows["reward"].sum(axis=1)


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
        """Wraps shards, by worker index over all ranks.

        `goal_reward` recomputes the task reward under any goal; without it task rewards are
        zeros. `discount`, gamma per environment step, enters here and nowhere else.
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

        Episodes are drawn uniformly or, for `LEARNING`, by the rank of their priority if they have
        one. Every task reward is recomputed under the goal that the transition ends up with.
        """
        shape = (updates, self._config.batch_size)
        batches = [
            shard.draw(
                shape,
                stream(self._seed, purpose, worker, cycle),
                self._discount,
                self._goal_reward,
                purpose == LEARNING,
            )
            for worker, shard in self.shards.items()
        ]
        return Transition(*(_over_workers(fields) for fields in zip(*batches, strict=True)))

    def sample_fresh(self, episodes: Mapping[int, Episodes], cycle: int) -> tuple[Array, Array]:
        """Draws from each worker's fresh episodes what the normalisers see of them.

        Observations [W, E * T, O] and relabelled goals [W, E * T, G].
        """
        drawn = [
            self.shards[worker].fresh(own, stream(self._seed, "replay/fresh", worker, cycle))
            for worker, own in episodes.items()
        ]
        observations, goals = zip(*drawn, strict=True)
        return np.stack(observations), np.stack(goals)

    def sample_trajectories(
        self, updates: int, count: int, cycle: int, columns: Sequence[int] | None = None
    ) -> tuple[Array, IntArray]:
        """Draws M = `count` whole trajectories an update, of columns that shards keep.

        `columns` says which of these, in which order; None takes all as they are kept. Returns
        them, [U, W, M, T + 1, D], with the lengths in steps, [U, W, M].
        """
        shards = list(self.shards.values())
        sizes = shards[0].trajectories.shape[1:]
        found = np.empty([updates, len(shards), count, *sizes], np.float32)
        lengths = np.empty([updates, len(shards), count], np.int64)
        for index, (worker, shard) in enumerate(self.shards.items()):
            generator = stream(self._seed, "replay/trajectories", worker, cycle)
            slots = generator.integers(shard.size, size=(updates, count))
            lengths[:, index] = shard.arrays["length"][slots]
            for update, own in enumerate(slots):  # into their place: half the time of a copy more
                shard.trajectories.take(own, axis=0, out=found[update, index], mode="clip")
        kept = list(shards[0].columns)
        if columns is not None and list(columns) != kept:  # other terms keep columns too
            found = found[..., [kept.index(column) for column in columns]]
        return found, lengths

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


def all_transitions(episodes: Episodes) -> Transition:
    """Returns every step of whole episodes in its place, [E, T, ...]; padding stands after them.

    Rewards and goals are the episodes' own, and nothing is discounted.
    """
    count, steps = episodes.reward.shape

    def repeated(values: np.ndarray) -> np.ndarray:
        """What holds for an episode, at each of its steps."""
        return np.repeat(values[:, None], steps, axis=1)

    return Transition(
        observation=episodes.observation[:, :-1],
        desired_goal=repeated(episodes.desired_goal),
        action=episodes.action,
        reward=episodes.reward,
        discount=np.ones([count, steps], np.float32),
        lost=episodes.lost[:, None] & (np.arange(steps) == episodes.length[:, None] - 1),
        next_observation=episodes.observation[:, 1:],
        skill=repeated(episodes.skill),
        episode_return=repeated(episodes.reward.sum(axis=1)),
        extras={name: values[:, :-1] for name, values in episodes.extras.items()},
        next_extras={name: values[:, 1:] for name, values in episodes.extras.items()},
    )


def _row(*numbers: str, **vectors: int) -> list[Any]:
    """Returns the layout of a packed row: vectors of these sizes, then single numbers."""
    packed = [(name, np.float32, (size,)) for name, size in vectors.items()]
    return [*packed, *((name, np.float32) for name in numbers)]


def _extras(state: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the extras in rows of states, by their own names."""
    prefix = "extras/"
    names = [name for name in state.dtype.names or () if name.startswith(prefix)]
    return {name.removeprefix(prefix): state[name] for name in names}


def _over_workers(parts: Sequence[Any]) -> Any:
    """Stacks what each worker drew, [U, W, ...]; extras by name."""
    if isinstance(parts[0], dict):
        return {name: _over_workers([part[name] for part in parts]) for name in parts[0]}
    return np.stack(parts, axis=1)
