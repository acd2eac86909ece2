"""The experience of one rank: a store of episodes for each of its workers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.settings import Config, ReplayConfig
from music_tf.errors import UsageError
from music_tf.randomness import stream
from music_tf.replay.hindsight import choose_goals, draw_probabilities
from music_tf.replay.ring import StepRing
from music_tf.replay.rows import Drawn, GoalEnd, GoalReward, Picks, packed, rests_of, transition
from music_tf.replay.tasks import TaskStore
from music_tf.replay.watch import RewardWatch
from music_tf.types import Array, EnvSpec, Episodes, IntArray, Transition, aligned

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
        """Makes an empty shard for conditions of size K.

        `columns` of the observation are also kept by themselves, for batches of whole
        trajectories that need no more.
        """
        steps = spec.max_episode_steps
        self.longest = steps
        """Most steps T of a trajectory."""
        count = self.capacity = max(1, config.capacity // steps)
        self.size = 0
        self._cursor = 0
        self._unsaved: list[IntArray] = []
        self._config = config
        self.columns = np.array(columns, dtype=np.int64)
        state = {"observation": spec.observation_dim, "achieved_goal": spec.goal_dim}
        extras = {f"extras/{name}": size for name, size in spec.extras.items()}
        episode = {"desired_goal": spec.goal_dim, "skill": skills}
        numbers = ["priority"] if config.priority != "uniform" else []
        self._states = np.empty([count, steps + 1], packed(**state, **extras))
        self._steps = np.empty([count, steps], packed("reward", action=spec.action_dim))
        self._episodes = np.empty(
            [count],
            [
                ("length", np.int64),
                *packed(*numbers, **episode),
                *((name, np.bool_) for name in ("terminated", "lost", "success")),
            ],
        )
        self.arrays: dict[str, np.ndarray] = {
            name: block[name]
            for block in (self._states, self._steps, self._episodes)
            for name in block.dtype.names or ()
        }
        """Views of the packed rows by name; together all that has to be saved."""
        self.tracks = np.empty([count, steps + 1, len(columns)], np.float32)
        self._returns = np.empty([count], np.float32)
        blocks = (self._states, self._steps, self._episodes, self.tracks, self._returns)
        self.bytes = sum(block.nbytes for block in blocks)
        """What it takes once it is full."""
        self.on_write: Callable[[IntArray], None] | None = None
        """Hears which slots have been written."""

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
        self._unsaved.append(slots)
        return slots

    def pick_trajectories(
        self, shape: tuple[int, ...], generator: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Draws episodes; returns their slots [U, M] and lengths [U, M]."""
        slots = generator.integers(self.size, size=shape)
        return slots, self.arrays["length"][slots]

    def trajectories(self, slots: IntArray, out: Array) -> None:
        """Copies kept columns of the episodes in slots [U, M] into [U, M, T + 1, D]."""
        for found, own in zip(out, slots, strict=True):  # half the time of a copy more
            self.tracks.take(own, axis=0, out=found, mode="clip")

    def pick(
        self, shape: tuple[int, ...], generator: np.random.Generator, by_priority: bool = False
    ) -> Picks:
        """Draws steps with replacement: an episode, then a step of it, then perhaps a new goal.

        With `by_priority`, episodes are drawn by the rank of their priority, if they have one.
        """
        if by_priority and "priority" in self.arrays:
            chances = draw_probabilities(self.arrays["priority"][: self.size])
            slot = generator.choice(self.size, size=shape, p=chances)
        else:
            slot = generator.integers(self.size, size=shape)
        length = self.arrays["length"][slot]
        time = (generator.random(shape) * length).astype(np.int64)
        relabelled, chosen = choose_goals(time, length, self._config, generator)
        return Picks(slot, time, np.where(relabelled, chosen, -1))

    def look_up(self, picks: Picks) -> Drawn:
        """Returns the steps that have been picked, under the goals that count."""
        slot, time, chosen = picks
        relabelled = chosen >= 0
        episode = self._episodes.take(slot)
        states, first = self._states.ravel(), slot * self._states.shape[1]
        goal = episode["desired_goal"].copy()
        achieved = (first + chosen)[relabelled]
        goal[relabelled] = states["achieved_goal"][achieved]
        state, after = states.take(first + time), states.take(first + time + 1)
        step = self._steps.ravel().take(slot * self._steps.shape[1] + time)
        last = time == episode["length"] - 1
        achieved_rest, rest = rests_of(states)
        rest = rest[first + time]
        rest[relabelled] = achieved_rest[achieved]
        return Drawn(
            state,
            after,
            action=step["action"],
            reward=step["reward"],
            goal=goal,
            own=~relabelled,
            skill=episode["skill"],
            episode_return=self._returns[slot],
            terminated=episode["terminated"] & last,
            truncated=last & ~(episode["terminated"] | episode["lost"]),  # whole episodes end so
            lost=episode["lost"] & last,
            goal_rest=rest,
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
        self._unsaved = []
        for rows in saved:
            self.size, self._cursor = int(rows["size"]), int(rows["cursor"])
            self._put(rows["slots"], rows)

    def purge(self, generator: np.random.Generator) -> None:
        """Forgets a random half of the episodes."""
        kept = np.sort(generator.permutation(self.size)[: self.size // 2])
        rows = self.rows(kept) | {"slots": np.arange(len(kept)), "size": np.array(len(kept))}
        self.restore([rows | {"cursor": np.array(0)}])

    def unsaved(self) -> dict[str, np.ndarray]:
        """Returns what came since `mark_saved`; empty where nothing did."""
        return self.rows(np.unique(np.concatenate(self._unsaved))) if self._unsaved else {}

    def everything(self) -> dict[str, np.ndarray]:
        """Returns all that is stored, as `unsaved` would if nothing were saved yet."""
        return self.rows(np.arange(self.size)) if self.size else {}

    def mark_saved(self) -> None:
        """Notes that what `unsaved` or `everything` returned is safe."""
        self._unsaved = []

    def rows(self, slots: IntArray) -> dict[str, np.ndarray]:
        """Returns copies of the episodes in `slots` with all that `restore` needs."""
        fields = {name: values[slots] for name, values in self.arrays.items()}
        size, cursor = np.array(self.size), np.array(self._cursor)
        return {**fields, "slots": slots, "size": size, "cursor": cursor}

    def numbers(self, slots: IntArray) -> tuple[Array, Array, Array]:
        """Returns copies of packed rows as plain numbers, for another place to look them up.

        States [N, T + 1, S] and steps [N, T, A + 1] as `layout` has them; of episodes [N, E] goal,
        skill, return, `terminated`, `lost` and length.
        """
        states, steps = (
            rows[slots].view(np.float32).reshape(len(slots), rows.shape[1], rows.itemsize // 4)
            for rows in (self._states, self._steps)
        )
        episodes = self._episodes[slots]
        each = [self._returns[slots], *(episodes[n] for n in ("terminated", "lost", "length"))]
        alone = np.stack(each, axis=-1).astype(np.float32)
        parts = [episodes["desired_goal"], episodes["skill"], alone]
        return states, steps, np.concatenate(parts, axis=-1)

    @property
    def layout(self) -> dict[str, slice]:
        """Where what states and steps hold lies in their plain numbers, by name."""
        places: dict[str, slice] = {}
        for block in (self._states, self._steps):
            start = 0
            for name in block.dtype.names or ():
                size = block.dtype[name].itemsize // 4
                places[name] = slice(start, start + size)
                start += size
        return places

    def _put(self, slots: IntArray, rows: Mapping[str, np.ndarray]) -> None:
        """Writes rows into given slots, and what follows from them."""
        for name, array in self.arrays.items():
            array[slots] = rows[name]
        self.tracks[slots] = rows["observation"][:, :, self.columns]
        self._returns[slots] = rows["reward"].sum(axis=1)
        if self.on_write is not None:
            self.on_write(slots)


class ReplayBuffer:
    """The shards of this rank's workers, sampled alike: batches are [U, W, B, ...].

    What is drawn, and looking it up, are two steps: the second may happen elsewhere.
    """

    def __init__(
        self,
        shards: Mapping[int, Shard | StepRing | TaskStore],
        config: ReplayConfig,
        goal_reward: GoalReward | None,
        discount: float,
        seed: int,
        goal_end: GoalEnd | None = None,
    ) -> None:
        """Wraps shards, by worker index over all ranks.

        `goal_reward` recomputes the task reward under any goal; without it task rewards are
        zeros. `goal_end` says where an episode ends under another goal; without it, where it
        ended. `discount`, gamma per environment step, enters here and nowhere else.
        """
        self.shards = shards
        self.batch_size = config.batch_size
        self._config = config
        self.goal_reward, self.goal_end = goal_reward, goal_end
        self.watch: RewardWatch | None = None
        """Compares rewards that are recomputed, where steps are paid under the goals that count."""
        self.discount = discount
        self._seed = seed
        self.shrunk = False
        """Whether something was forgotten that files still hold: the next save writes all rows."""

    @property
    def longest(self) -> int:
        """Most steps T of a trajectory."""
        return next(iter(self.shards.values())).longest

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
            shard.add(episodes[worker], generator, priority)

    def sample_transitions(self, updates: int, cycle: int, purpose: str = LEARNING) -> Transition:
        """Draws relabelled minibatches for all updates of a cycle, [U, W, B, ...].

        Every task reward is recomputed under the goal that the transition ends up with.
        """
        return self.transitions(self.pick(updates, cycle, purpose))

    def pick(self, updates: int, cycle: int, purpose: str = LEARNING) -> Picks:
        """Draws which steps all updates of a cycle see, and under which goals, [U, W, B].

        Episodes are drawn uniformly or, for `LEARNING`, by the rank of their priority if they have
        one.
        """
        shape = (updates, self._config.batch_size)
        drawn = [
            shard.pick(
                shape, stream(self._seed, purpose, worker, cycle), by_priority=purpose == LEARNING
            )
            for worker, shard in self.shards.items()
        ]
        return Picks(*(np.stack(parts, axis=1) for parts in zip(*drawn, strict=True)))

    def transitions(self, picks: Picks) -> Transition:
        """Returns the transitions that have been picked, [U, W, B, ...]."""
        batches = []
        for index, shard in enumerate(self.shards.values()):
            drawn = shard.look_up(Picks(*(part[:, index] for part in picks)))
            batch = transition(drawn, self.discount, self.goal_reward, self.goal_end)
            if self.watch is not None:
                self.watch.see(drawn, batch.reward)
            batches.append(batch)
        return Transition(*(_over_workers(fields) for fields in zip(*batches, strict=True)))

    def sample_contexts(self, updates: int, rows: int, cycle: int) -> Transition:
        """Draws N = `rows` steps of the latest visit to each task of each update.

        The tasks are those of `sample_transitions` in the same cycle, in their order: [U, W, m, N].

        Raises:
            ValueError: Tasks are not kept apart.
        """
        found = []
        for worker, shard in self.shards.items():
            if not isinstance(shard, TaskStore):
                raise ValueError("sample_contexts: expected replay that keeps tasks apart")
            tasks = shard.draw_tasks(updates, stream(self._seed, LEARNING, worker, cycle))
            generator = stream(self._seed, "replay/contexts", worker, cycle)
            found.append(transition(shard.context(tasks, rows, generator), self.discount, None))
        return Transition(*(_over_workers(fields) for fields in zip(*found, strict=True)))

    def sample_fresh(self, episodes: Mapping[int, Episodes], cycle: int) -> tuple[Array, Array]:
        """Draws from each worker's fresh episodes what the normalisers see of them.

        Observations [W, E * T, O] and relabelled goals [W, E * T, G]; all in one row, [1, N, O]
        and [1, N, G], where workers saw different numbers of steps.
        """
        drawn = [
            self.shards[worker].fresh(own, stream(self._seed, "replay/fresh", worker, cycle))
            for worker, own in episodes.items()
        ]
        observations, goals = zip(*drawn, strict=True)
        if len({len(rows) for rows in observations}) > 1:
            return np.concatenate(observations)[None], np.concatenate(goals)[None]
        return np.stack(observations), np.stack(goals)

    def sample_trajectories(
        self, updates: int, count: int, cycle: int, columns: Sequence[int] | None = None
    ) -> tuple[Array, IntArray]:
        """Draws M = `count` whole trajectories an update, of columns that shards keep.

        `columns` says which of these, in which order; None takes all as they are kept. Returns
        them, [U, W, M, T + 1, D], with the lengths in steps, [U, W, M].
        """
        slots, lengths = self.pick_trajectories(updates, count, cycle)
        return self.trajectories(slots, columns), lengths

    def pick_trajectories(self, updates: int, count: int, cycle: int) -> tuple[IntArray, IntArray]:
        """Draws M = `count` whole trajectories an update: slots and lengths, each [U, W, M]."""
        drawn = [
            shard.pick_trajectories(
                (updates, count), stream(self._seed, "replay/trajectories", worker, cycle)
            )
            for worker, shard in self.shards.items()
        ]
        slots, lengths = (np.stack(parts, axis=1) for parts in zip(*drawn, strict=True))
        return slots, lengths

    def trajectories(self, slots: IntArray, columns: Sequence[int] | None = None) -> Array:
        """Returns the trajectories in slots [U, W, M], [U, W, M, T + 1, D]."""
        kept = list(next(iter(self.shards.values())).columns)
        found = aligned([*slots.shape, self.longest + 1, len(kept)])
        for index, shard in enumerate(self.shards.values()):
            shard.trajectories(slots[:, index], found[:, index])
        if columns is not None and list(columns) != kept:  # other terms keep columns too
            found = found[..., [kept.index(column) for column in columns]]
        return found

    def unsaved(self) -> dict[int, dict[str, np.ndarray]]:
        """Returns what was stored since `mark_saved`, by worker; empty where there is nothing."""
        return {worker: shard.unsaved() for worker, shard in self.shards.items()}

    def everything(self) -> dict[int, dict[str, np.ndarray]]:
        """Returns all that is stored, by worker, as `unsaved` would if nothing were saved yet."""
        return {worker: shard.everything() for worker, shard in self.shards.items()}

    def mark_saved(self) -> None:
        """Notes that what `unsaved` or `everything` returned is safe."""
        for shard in self.shards.values():
            shard.mark_saved()
        self.shrunk = False

    def forget(self) -> None:
        """Goes on without all that is stored."""
        for shard in self.shards.values():
            shard.restore([])
        self.shrunk = True

    def purge(self, counter: int) -> None:
        """Goes on with a random half of what each worker has; `counter` says which."""
        for worker, shard in self.shards.items():
            shard.purge(stream(self._seed, "replay/purge", worker, counter))
        self.shrunk = True


def empty_store(
    config: Config, spec: EnvSpec, columns: Sequence[int] = (), worker: int = 0
) -> Shard | StepRing | TaskStore:
    """Returns the experience of a worker that has none yet: of episodes, or a ring of steps.

    Where there are several tasks, it is a ring for each task of the worker.

    Raises:
        UsageError: Settings that need whole episodes where steps are drawn.
    """
    replay, collect = config.replay, config.collect
    steps = replay.draw == "steps" or (replay.draw is None and not spec.goal_dim)
    if not steps and collect.steps is None:
        return Shard(spec, config.condition_size, replay, columns)
    relabelled = replay.relabel_k > 0 and replay.strategy != "none"
    if relabelled and not spec.goal_dim:
        raise UsageError(
            f"env_id: replay.relabel_k needs goals, and {spec.env_id!r} has none\n"
            "recipes for it: sac, ddpg"
        )
    whole = {
        "replay.draw episodes": replay.draw == "episodes",
        "replay.overwrite random": replay.overwrite == "random",
        "replay.relabel_k": relabelled,
        "replay.priority": replay.priority != "uniform",
    }
    cause = "collect.steps" if collect.steps is not None else "replay.draw steps"
    for name, asked in whole.items():
        if asked:
            raise UsageError(f"{cause}: {name} needs whole episodes; leave one of the two out")
    longest = min(collect.steps or spec.max_episode_steps, spec.max_episode_steps)
    if config.agent.inference is not None:
        return TaskStore(spec, config, worker, columns)
    return StepRing(spec, config.condition_size, replay, columns, longest)


def all_transitions(episodes: Episodes) -> Transition:
    """Returns every step of whole episodes in its place, [E, T, ...]; padding stands after them.

    Rewards and goals are the episodes' own, and nothing is discounted.
    """
    count, steps = episodes.reward.shape
    last = np.arange(steps) == episodes.length[:, None] - 1

    def repeated(values: np.ndarray) -> np.ndarray:
        """What holds for an episode, at each of its steps."""
        return np.repeat(values[:, None], steps, axis=1)

    return Transition(
        observation=episodes.observation[:, :-1],
        desired_goal=repeated(episodes.desired_goal),
        action=episodes.action,
        reward=episodes.reward,
        discount=np.ones([count, steps], np.float32),
        truncated=episodes.truncated[:, None] & last,
        lost=episodes.lost[:, None] & last,
        next_observation=episodes.observation[:, 1:],
        skill=repeated(episodes.skill),
        episode_return=repeated(episodes.reward.sum(axis=1)),
        extras={name: values[:, :-1] for name, values in episodes.extras.items()},
        next_extras={name: values[:, 1:] for name, values in episodes.extras.items()},
    )


def _over_workers(parts: Sequence[Any]) -> Any:
    """Stacks what each worker drew, [U, W, ...]; extras by name."""
    if isinstance(parts[0], dict):
        return {name: _over_workers([part[name] for part in parts]) for name in parts[0]}
    first = parts[0]
    shape = [len(first), len(parts), *first.shape[1:]]
    return np.stack(parts, axis=1, out=aligned(shape, first.dtype))
