"""The experience of one rank: a store of episodes for each of its workers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_tf.config.settings import ReplayConfig
from music_tf.randomness import stream
from music_tf.replay.hindsight import choose_goals, draw_probabilities
from music_tf.types import Array, BoolArray, EnvSpec, Episodes, IntArray, Transition

GoalReward = Callable[[Array, Array], Array]
"""Rewards [N] of achieved goals [N, G] under desired goals [N, G]."""
LEARNING = "replay/transitions"
"""Purpose of the batches that actor and critics learn from, the only ones drawn by priority."""


class Drawn(NamedTuple):
    """Packed rows of drawn steps, each of the shape [...] that was asked for."""

    state: np.ndarray  # before the action
    next_state: np.ndarray  # after it
    step: np.ndarray
    episode: np.ndarray
    desired_goal: Array  # [..., G], the episode's or another in hindsight
    last: BoolArray  # the last step of its episode
    episode_return: Array  # of all its episode


class Shard:
    """Episodes of one worker; memory is touched only where it is used.

    What is drawn together lies together: a packed row for each state, for each step and for each
    episode. Fetching a row costs about as much as fetching one number of it.
    """

    def __init__(
        self, spec: EnvSpec, skills: int, config: ReplayConfig, columns: Sequence[int] = ()
    ) -> None:
        """Makes an empty shard.

        Args:
            spec: Sizes of the environment.
            skills: Size K of the skill vector.
            config: Capacity, overwrite rule and relabelling.
            columns: Components of the observation that are also kept by themselves, for batches
                of whole trajectories that need no more.
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

        Args:
            episodes: To store.
            generator: Chooses what is overwritten.
            priority: Of each episode, [E], where episodes are drawn by priority.
        """
        rows = episodes.named()
        if priority is not None:
            rows["priority"] = priority
        slots = self._slots(len(episodes.length), generator)
        self._put(slots, rows)
        return slots

    def draw(
        self, shape: tuple[int, ...], generator: np.random.Generator, by_priority: bool = False
    ) -> Drawn:
        """Draws steps with replacement: an episode, then a step of it, then perhaps a new goal.

        Args:
            shape: How many.
            generator: Source of randomness.
            by_priority: Draws episodes by the rank of their priority, if they have one.
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
        return Drawn(
            state=states.take(first + time),
            next_state=states.take(first + time + 1),
            step=self._steps.ravel().take(slot * self._steps.shape[1] + time),
            episode=episode,
            desired_goal=goal,
            last=time == length - 1,
            episode_return=self._returns[slot],
        )

    def fresh(self, episodes: Episodes, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draws states with relabelled goals from episodes that need not be stored.

        Returns:
            As many as full episodes have steps: observations, shape [E * T, O], and goals,
            shape [E * T, G].
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

        Args:
            saved: Arrays of the names, types and shapes that `full_rows` has, or fewer rows.

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
        return fields | {
            "slots": slots,
            "size": np.array(self.size),
            "cursor": np.array(self._cursor),
        }

    def _put(self, slots: IntArray, rows: Mapping[str, np.ndarray]) -> None:
        """Writes rows into given slots, and what follows from them."""
        for name, array in self.arrays.items():
            array[slots] = rows[name]
        self.trajectories[slots] = rows["observation"][:, :, self.columns]
        self._returns[slots] = rows["reward"].sum(axis=1)

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
            config: Batch size.
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

        Episodes are drawn uniformly or, for `LEARNING`, by the rank of their priority if they have
        one. Every task reward is recomputed under the goal that the transition ends up with.
        """
        shape = (updates, self._config.batch_size)
        batches = [
            self._transition(
                shard.draw(shape, stream(self._seed, purpose, worker, cycle), purpose == LEARNING)
            )
            for worker, shard in self.shards.items()
        ]
        return Transition(*(_over_workers(fields) for fields in zip(*batches, strict=True)))

    def sample_fresh(self, episodes: Mapping[int, Episodes], cycle: int) -> tuple[Array, Array]:
        """Draws from each worker's fresh episodes what the normalisers see of them.

        Returns:
            Observations, shape [W, E * T, O], and relabelled goals, shape [W, E * T, G].
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
        """Draws whole trajectories of columns that shards keep, with their lengths.

        Args:
            updates: Number U of updates.
            count: Number M of trajectories for each.
            cycle: Which draws are taken.
            columns: Which of the kept ones, in which order; None for all as they are kept.

        Returns:
            Columns, shape [U, W, M, T + 1, D], and lengths in steps, shape [U, W, M].
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

    def _transition(self, drawn: Drawn) -> Transition:
        """Returns drawn rows with what they pay and how the future counts, [...].

        The goal that counts is the one achieved after the action, `next_state`: that is what the
        action led to. The one before it is the outcome of an earlier action.
        """
        shape, goals = drawn.last.shape, (-1, drawn.desired_goal.shape[-1])
        reward = np.zeros(shape, np.float32)
        if self._goal_reward is not None:
            achieved = np.ascontiguousarray(drawn.next_state["achieved_goal"]).reshape(goals)
            paid = self._goal_reward(achieved, drawn.desired_goal.reshape(goals))
            reward[:] = paid.reshape(shape)
        lost = drawn.episode["lost"] & drawn.last
        over = (drawn.episode["terminated"] & drawn.last) | lost
        discount = np.where(over, 0.0, self._discount).astype(np.float32)
        next_extras = _extras(drawn.next_state)
        if "discount" in next_extras:
            discount *= next_extras["discount"][..., 0]
        return Transition(
            observation=drawn.state["observation"],
            desired_goal=drawn.desired_goal,
            action=drawn.step["action"],
            reward=reward,
            discount=discount,
            lost=lost,
            next_observation=drawn.next_state["observation"],
            skill=drawn.episode["skill"],
            episode_return=drawn.episode_return,
            extras=_extras(drawn.state),
            next_extras=next_extras,
        )


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
