"""The replay buffer of one rank, with a store for each of its workers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.settings import Config, ReplayConfig
from music_tf.errors import UsageError
from music_tf.randomness import stream
from music_tf.replay.hindsight import (
    REACHING,
    choose_goals,
    draw_probabilities,
    places,
    relabel_probability,
)
from music_tf.replay.ring import StepRing
from music_tf.replay.rows import OWN, REACHES, Drawn, GoalEnd, GoalReward, Picks, packed, transition
from music_tf.replay.tasks import TaskStore
from music_tf.replay.watch import RewardWatch
from music_tf.types import EXTRAS, Array, EnvSpec, Episodes, IntArray, Transition, aligned, offsets

LEARNING = "replay/transitions"
"""Random stream of the minibatches of actor and critics, the only ones drawn by priority."""


class Shard:
    """Whole episodes of one worker in packed rows, which are read as fast as a single number."""

    def __init__(
        self, spec: EnvSpec, skills: int, config: ReplayConfig, columns: Sequence[int] = ()
    ) -> None:
        """Conditions are of size K = `skills`; `columns` are stored apart, for `trajectories`."""
        steps = spec.max_episode_steps
        self.reach = spec.reach
        self.longest = steps
        """Maximum number of steps T of a trajectory."""
        count = self.capacity = max(1, config.capacity // steps)
        self.size = 0
        self.kept = 0
        """Demonstrations, which fill the first slots and are never overwritten."""
        self._cursor = 0
        self._unsaved: list[IntArray] = []
        self._config = config
        self.columns = np.array(columns, dtype=np.int64)
        state = {"observation": spec.observation_dim, "achieved_goal": spec.goal_dim}
        extras = {f"{EXTRAS}{name}": size for name, size in spec.extras.items()}
        numbers = ["priority"] if config.ranked else []
        self._states = np.empty([count, steps + 1], packed(**state, **extras))
        self._steps = np.empty([count, steps], packed("reward", action=spec.action_dim))
        self._episodes = np.empty(
            [count],
            [
                ("length", np.int64),
                *packed(*numbers, desired_goal=spec.goal_dim, skill=skills),
                *((name, np.bool_) for name in ("terminated", "lost", "success")),
            ],
        )
        self.arrays: dict[str, np.ndarray] = {
            name: block[name]
            for block in (self._states, self._steps, self._episodes)
            for name in block.dtype.names or ()
        }
        """Views of the packed rows by name; a checkpoint holds exactly these."""
        self.tracks = np.empty([count, steps + 1, len(columns)], np.float32)
        self._returns = np.empty([count], np.float32)
        blocks = (self._states, self._steps, self._episodes, self.tracks, self._returns)
        self.bytes = sum(block.nbytes for block in blocks)
        self.on_write: Callable[[IntArray], None] = lambda slots: None
        """Callback with the slots that have been written."""

    def add(
        self, episodes: Episodes, generator: np.random.Generator, priority: Array | None = None
    ) -> IntArray:
        """Copies episodes, with priorities [E] if there are any, and returns their slots."""
        rows = episodes.named()
        if priority is not None:
            rows["priority"] = priority
        count = len(episodes.length)
        fresh = min(count, self.capacity - self.size)
        filled = np.arange(self.size, self.size + fresh)
        played, room = max(1, self.size - self.kept), self.capacity - self.kept
        if self._config.overwrite == "oldest":
            overwritten = (self._cursor + np.arange(count - fresh)) % room
            self._cursor = (self._cursor + count - fresh) % room
        else:
            # with replacement, as in OpenAI Baselines' HER
            overwritten = generator.integers(played, size=count - fresh)
        self.size += fresh
        slots = np.concatenate([filled, self.kept + overwritten]).astype(np.int64)
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
        """Copies `columns` of the episodes in `slots` [U, M] into `out` [U, M, T + 1, D]."""
        for rows, of_update in zip(out, slots, strict=True):  # `take` into `out` halves the time
            self.tracks.take(of_update, axis=0, out=rows, mode="clip")

    def pick(
        self, shape: tuple[int, ...], generator: np.random.Generator, by_priority: bool = False
    ) -> Picks:
        """Draws an episode, a step of it, and perhaps another goal, with replacement."""
        kept = self.kept
        if by_priority and "priority" in self.arrays:
            chances = draw_probabilities(self.arrays["priority"][kept : self.size])
            slot = kept + generator.choice(self.size - kept, size=shape, p=chances)
        else:
            slot = generator.integers(kept, self.size, size=shape)
        if kept:
            demonstrated = generator.random(shape) < self._config.demonstration_share
            slot = np.where(demonstrated, generator.integers(kept, size=shape), slot)
        length = self.arrays["length"][slot]
        time = (generator.random(shape) * length).astype(np.int64)
        relabelled, chosen = choose_goals(time, length, self._config, generator)
        if kept:  # zeros stand for a goal that is not known
            relabelled |= (slot < kept) & ~self.arrays["desired_goal"][slot].any(axis=-1)
        goal = np.where(relabelled, chosen, OWN)
        if self.reach is not None:
            goal = np.where(generator.random(shape) < REACHING, REACHES - goal, goal)
        return Picks(slot, time, goal)

    def look_up(self, picks: Picks) -> Drawn:
        """Returns the picked steps, with their own or relabelled goals."""
        slot, time, chosen = picks
        reaches = chosen < OWN
        chosen = np.where(reaches, REACHES - chosen, chosen)
        relabelled = chosen >= 0
        episode = self._episodes.take(slot)
        states, first = self._states.ravel(), slot * self._states.shape[1]
        goal = episode["desired_goal"].copy()
        goal[relabelled] = states["achieved_goal"][(first + chosen)[relabelled]]
        state, after = states.take(first + time), states.take(first + time + 1)
        step = self._steps.ravel().take(slot * self._steps.shape[1] + time)
        reward = step["reward"]
        if self.reach is not None:
            later = states["observation"][first + np.maximum(chosen, 0)]
            place = places(self.reach, relabelled, (state["observation"], later))
            goal = self.reach.goals(goal, place, reaches)
            of_hand = self.reach.reward(after["observation"], place)
            reward = np.where(reaches, of_hand, reward)
        last = time == episode["length"] - 1
        return Drawn(
            state,
            after,
            action=step["action"],
            reward=reward,
            goal=goal,
            as_taken=picks.goal == OWN,
            reaches=reaches,
            skill=episode["skill"],
            episode_return=self._returns[slot],
            terminated=episode["terminated"] & last,
            truncated=last & ~(episode["terminated"] | episode["lost"]),  # episodes are whole
            lost=episode["lost"] & last,
        )

    def fresh(self, episodes: Episodes, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draws observations [E * T, O] and relabelled goals [E * T, G], or `offsets`."""
        count = episodes.reward.size
        episode = generator.integers(len(episodes.length), size=count)
        length = episodes.length[episode]
        time = (generator.random(count) * length).astype(np.int64)
        relabelled, chosen = choose_goals(time, length, self._config, generator)
        goal = episodes.desired_goal[episode]
        goal[relabelled] = episodes.achieved_goal[episode, chosen][relabelled]
        observation = episodes.observation[episode, time]
        if self.reach is not None:
            seen = observation, episodes.observation[episode, chosen]
            place = places(self.reach, relabelled, seen)
            goal = offsets(self.reach.columns, observation, goal, place)
        return observation, goal

    def full_rows(self) -> dict[str, np.ndarray]:
        """Returns the arrays of a save of all slots, for their names, types and shapes."""
        slots = np.broadcast_to(np.int64(0), self.capacity)
        return {**self.arrays, "slots": slots, "size": np.array(0), "cursor": np.array(0)}

    def check_rows(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Checks saved rows, in the order of saves; a ValueError if they are outside or missing."""
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
        if len(filled) != (count := max(size, self.kept)):
            raise ValueError(f"replay: {len(filled)} of {count} episodes are there")

    def restore(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Empties the store, and adds the saved rows in order."""
        self.size = self._cursor = 0
        self._unsaved = []
        for rows in saved:
            self.size, self._cursor = int(rows["size"]), int(rows["cursor"])
            self._put(rows["slots"], rows)

    def purge(self, generator: np.random.Generator) -> None:
        """Drops a random half of the episodes."""
        kept = np.sort(generator.permutation(self.size)[: self.size // 2])
        rows = self.rows(kept) | {"slots": np.arange(len(kept)), "size": np.array(len(kept))}
        self.restore([rows | {"cursor": np.array(0)}])

    def unsaved(self) -> dict[str, np.ndarray]:
        """Returns the rows that were added since `mark_saved`; empty without any."""
        return self.rows(np.unique(np.concatenate(self._unsaved))) if self._unsaved else {}

    def everything(self) -> dict[str, np.ndarray]:
        return self.rows(np.arange(self.size)) if self.size else {}

    def mark_saved(self) -> None:
        self._unsaved = []

    def rows(self, slots: IntArray) -> dict[str, np.ndarray]:
        """Returns copies of the episodes in `slots`, for `restore`."""
        fields = {name: values[slots] for name, values in self.arrays.items()}
        size, cursor = np.array(self.size), np.array(self._cursor)
        return {**fields, "slots": slots, "size": size, "cursor": cursor}

    def numbers(self, slots: IntArray) -> tuple[Array, Array, Array]:
        """Packed rows as float32 for `DeviceReplay`: states, steps (see `layout`), episodes."""
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
        """Columns of states and steps in `numbers`, by name."""
        places: dict[str, slice] = {}
        for block in (self._states, self._steps):
            start = 0
            for name in block.dtype.names or ():
                size = block.dtype[name].itemsize // 4
                places[name] = slice(start, start + size)
                start += size
        return places

    def _put(self, slots: IntArray, rows: Mapping[str, np.ndarray]) -> None:
        """Writes rows into slots, and updates tracks and returns."""
        for name, array in self.arrays.items():
            array[slots] = rows[name]
        self.tracks[slots] = rows["observation"][:, :, self.columns]
        self._returns[slots] = rows["reward"].sum(axis=1)
        self.on_write(slots)


class ReplayBuffer:
    """The stores of this rank's workers; minibatches are [U, W, B, ...]."""

    def __init__(
        self,
        shards: Mapping[int, Shard | StepRing | TaskStore],  # by index of the worker in all ranks
        config: ReplayConfig,
        goal_reward: GoalReward | None,  # the task reward under any goal; None: it is zero
        discount: float,  # gamma per environment step, which is applied in replay alone
        seed: int,
        goal_end: GoalEnd | None = None,  # where episodes end under others; None: where they ended
    ) -> None:
        self.shards = shards
        self.longest = next(iter(shards.values())).longest
        self.batch_size = config.batch_size
        self._config = config
        self.goal_reward, self.goal_end = goal_reward, goal_end
        self.watch: RewardWatch | None = None
        """Compares recomputed rewards with those of steps; None without a task reward."""
        self.discount = discount
        self._seed = seed
        self.demonstrations = 0
        self.shrunk = False
        """Whether rows were dropped that files still hold: the next save has to write all rows."""

    def add(
        self,
        episodes: Mapping[int, Episodes],
        cycle: int,
        priorities: Mapping[int, Array] | None = None,
    ) -> None:
        """Stores fresh episodes of each worker, with their priorities [E] if they have any."""
        for worker, shard in self.shards.items():
            generator = stream(self._seed, "replay/overwrite", worker, cycle)
            shard.add(episodes[worker], generator, priorities[worker] if priorities else None)

    def keep(self, demonstrations: int, workers: int) -> None:
        """Never overwrites the first episodes: worker w has every W-th demonstration from w on."""
        self.demonstrations = demonstrations
        for worker, shard in self.shards.items():
            if isinstance(shard, Shard):
                shard.kept = len(range(worker, demonstrations, workers))

    def pick(self, updates: int, cycle: int, purpose: str = LEARNING) -> Picks:
        """Draws steps and goals for all updates of a cycle, [U, W, B]; `LEARNING` by priority."""
        shape = (updates, self._config.batch_size)
        drawn = [
            shard.pick(
                shape, stream(self._seed, purpose, worker, cycle), by_priority=purpose == LEARNING
            )
            for worker, shard in self.shards.items()
        ]
        return Picks(*(np.stack(parts, axis=1) for parts in zip(*drawn, strict=True)))

    def transitions(self, picks: Picks, *, paid: bool = True) -> Transition:
        """Returns the picked transitions, [U, W, B, ...]; only `paid` ones have rewards."""
        goal_reward, batches = self.goal_reward if paid else None, []
        for index, shard in enumerate(self.shards.values()):
            drawn = shard.look_up(Picks(*(part[:, index] for part in picks)))
            batch = transition(drawn, self.discount, goal_reward, self.goal_end)
            if paid and self.watch is not None:
                self.watch.see(drawn, batch.reward)
            batches.append(batch)
        return Transition(*(_over_workers(fields) for fields in zip(*batches, strict=True)))

    def sample_contexts(self, updates: int, rows: int, cycle: int) -> Transition:
        """Draws N = `rows` steps of the latest visit to each task of `pick`, [U, W, m, N]."""
        drawn = []
        for worker, shard in self.shards.items():
            if not isinstance(shard, TaskStore):
                raise ValueError("sample_contexts: expected replay that keeps tasks apart")
            tasks = shard.draw_tasks(updates, stream(self._seed, LEARNING, worker, cycle))
            generator = stream(self._seed, "replay/contexts", worker, cycle)
            drawn.append(transition(shard.context(tasks, rows, generator), self.discount, None))
        return Transition(*(_over_workers(fields) for fields in zip(*drawn, strict=True)))

    def sample_fresh(self, episodes: Mapping[int, Episodes], cycle: int) -> tuple[Array, Array]:
        """Draws observations and goals for normalisers, [W, E * T, ...] or [1, N, ...]."""
        drawn = [
            self.shards[worker].fresh(fresh, stream(self._seed, "replay/fresh", worker, cycle))
            for worker, fresh in episodes.items()
        ]
        observations, goals = zip(*drawn, strict=True)
        if len({len(rows) for rows in observations}) > 1:
            return np.concatenate(observations)[None], np.concatenate(goals)[None]
        return np.stack(observations), np.stack(goals)

    def pick_trajectories(self, updates: int, count: int, cycle: int) -> tuple[IntArray, IntArray]:
        """Draws M = `count` trajectories for each update; returns slots and lengths, [U, W, M]."""
        drawn = [
            shard.pick_trajectories(
                (updates, count), stream(self._seed, "replay/trajectories", worker, cycle)
            )
            for worker, shard in self.shards.items()
        ]
        slots, lengths = (np.stack(parts, axis=1) for parts in zip(*drawn, strict=True))
        return slots, lengths

    def trajectories(self, slots: IntArray, columns: Sequence[int] | None = None) -> Array:
        """Returns the trajectories in `slots` [U, W, M], shape [U, W, M, T + 1, D]."""
        kept = list(next(iter(self.shards.values())).columns)
        tracks = aligned([*slots.shape, self.longest + 1, len(kept)])
        for index, shard in enumerate(self.shards.values()):
            shard.trajectories(slots[:, index], tracks[:, index])
        if columns is not None and list(columns) != kept:  # several terms store columns
            tracks = tracks[..., [kept.index(column) for column in columns]]
        return tracks

    def unsaved(self) -> dict[int, dict[str, np.ndarray]]:
        return {worker: shard.unsaved() for worker, shard in self.shards.items()}

    def everything(self) -> dict[int, dict[str, np.ndarray]]:
        return {worker: shard.everything() for worker, shard in self.shards.items()}

    def mark_saved(self) -> None:
        for shard in self.shards.values():
            shard.mark_saved()
        self.shrunk = False

    def forget(self) -> None:
        self.keep(0, 1)
        for shard in self.shards.values():
            shard.restore([])
        self.shrunk = True

    def purge(self, counter: int) -> None:
        for worker, shard in self.shards.items():
            shard.purge(stream(self._seed, "replay/purge", worker, counter))
        self.shrunk = True


def keeps_steps(config: Config, spec: EnvSpec) -> bool:
    """Whether replay keeps steps, and not the episodes that they are from."""
    draw = config.replay.draw or ("episodes" if spec.goal_dim else "steps")
    return draw == "steps" or config.collect.steps is not None


def empty_store(
    config: Config, spec: EnvSpec, columns: Sequence[int] = (), worker: int = 0
) -> Shard | StepRing | TaskStore:
    """Returns an empty store for a worker: of episodes, of steps, or of steps by task."""
    replay, collect = config.replay, config.collect
    if not keeps_steps(config, spec) and (spec.goal_dim or not replay.reach):
        return Shard(spec, config.condition_size, replay, columns)
    relabelled = relabel_probability(replay) > 0.0
    option = "--replay.reach" if replay.reach else "--env-id"
    if (relabelled or replay.reach) and not spec.goal_dim:
        raise UsageError(
            f"{option}: hindsight needs goals, and {spec.env_id!r} has none\n"
            "recipes for it: sac, ddpg"
        )
    whole = {
        "replay.draw episodes": replay.draw == "episodes",
        "replay.overwrite random": replay.overwrite == "random",
        "replay.relabel_k": relabelled,
        "replay.reach": replay.reach > 0.0,
        "replay.priority": replay.ranked,
        "distance.reach": getattr(config.rewards.get("distance"), "reach", np.inf) < np.inf,
    }
    cause = "collect.steps" if collect.steps is not None else "replay.draw steps"
    for name, is_set in whole.items():
        if is_set:
            raise UsageError(f"{cause}: {name} needs whole episodes; leave one of the two out")
    longest = min(collect.steps or spec.max_episode_steps, spec.max_episode_steps)
    if config.agent.inference is not None:
        return TaskStore(spec, config, worker, columns)
    return StepRing(spec, config.condition_size, replay, columns, longest)


def all_transitions(episodes: Episodes) -> Transition:
    """Returns every step of episodes as a transition, [E, T, ...], with padding at the end."""
    count, steps = episodes.reward.shape
    last = np.arange(steps) == episodes.length[:, None] - 1

    def repeated(values: np.ndarray) -> np.ndarray:
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
    """Stacks the arrays of all workers, [U, W, ...]; extras by name."""
    if isinstance(parts[0], dict):
        return {name: _over_workers([part[name] for part in parts]) for name in parts[0]}
    first = parts[0]
    shape = [len(first), len(parts), *first.shape[1:]]
    return np.stack(parts, axis=1, out=aligned(shape, first.dtype))
