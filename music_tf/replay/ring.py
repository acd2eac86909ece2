"""A ring of steps: what one worker remembers of tasks whose episodes end when they end."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.settings import ReplayConfig
from music_tf.replay.rows import Drawn, Picks, packed, rests_of
from music_tf.types import Array, EnvSpec, Episodes, IntArray

_FEWEST_PARTS = 1024


class StepRing:
    """The latest steps of one worker, each drawn alike; the oldest give way.

    Episodes may come in parts, such as the steps of one cycle. States lie in a row of cells, one
    packed row each. So a part of L steps takes L + 1 of them, however long episodes may be. A table
    says where each part begins.
    """

    def __init__(
        self,
        spec: EnvSpec,
        skills: int,
        config: ReplayConfig,
        columns: Sequence[int] = (),
        longest: int = 1,
        of_visits: bool = False,
    ) -> None:
        """Makes an empty ring for conditions of size K.

        `columns` of the observation are those of whole trajectories, which have up to `longest`
        steps, the most that a part may have. `of_visits` notes of parts in which visit they were
        played, and whether they are context.
        """
        self.capacity = max(config.capacity, longest + 1)
        self.columns = np.array(columns, dtype=np.int64)
        self.longest = longest
        """Most steps T of a trajectory."""
        extras = {f"extras/{name}": size for name, size in spec.extras.items()}
        state = {"observation": spec.observation_dim, "achieved_goal": spec.goal_dim, **extras}
        self._cells = np.empty([self.capacity], packed("reward", **state, action=spec.action_dim))
        part = {"desired_goal": spec.goal_dim, "skill": skills}
        kinds: list[Any] = [
            *((name, np.int64) for name in ("start", "first", "length")),
            ("episode", np.int64),
            *packed("episode_return", **part),
            *((name, np.bool_) for name in ("terminated", "truncated")),
            ("seed", np.int64),
            *([("visit", np.int64), ("context", np.bool_)] if of_visits else []),
        ]
        self._parts = np.empty([_FEWEST_PARTS], kinds)
        self.of_cells = self._cells.dtype.names or ()
        """Names of the arrays that have a row for each state."""
        names = self._parts.dtype.names or ()
        own = ("start", "first", "episode")  # where a part lies is not saved
        self.of_parts = tuple(name for name in names if name not in own)
        """Names of the arrays that have a row for each part."""
        self._returns = np.empty([_FEWEST_PARTS], np.float32)
        """Return of each episode so far."""
        self._episodes = 0
        self._latest: dict[int, int] = {}
        """Episodes whose parts came last, by seed: the next parts may go on with them."""
        self._begin = self._end = 0
        self._unsaved = 0

    @property
    def bytes(self) -> int:
        """What it takes; of the cells memory is touched only where they are used."""
        return self._cells.nbytes + self._parts.nbytes

    @property
    def size(self) -> int:
        """Number of steps that can be drawn."""
        live = self._live
        return int(live["first"][-1] + live["length"][-1] - live["first"][0]) if len(live) else 0

    def add(
        self, episodes: Episodes, generator: np.random.Generator, priority: Array | None = None
    ) -> None:
        """Copies episodes, or parts of them, behind what is there; the oldest give way."""
        del generator, priority
        states = np.arange(episodes.observation.shape[1]) <= episodes.length[:, None]
        named = episodes.named()
        rows = {name: named[name] for name in self.of_parts if name in named}
        rows["episode_return"] = episodes.earlier_return + episodes.reward.sum(axis=1)
        for name in self.of_cells:
            values = named[name]
            if values.shape[1] < states.shape[1]:  # of steps, and nothing follows the last state
                values = np.concatenate([values, np.zeros_like(values[:, :1])], axis=1)
            rows[name] = values[states]
        self._append(rows)
        self._unsaved += len(episodes.length)

    def pick(
        self, shape: tuple[int, ...], generator: np.random.Generator, by_priority: bool = False
    ) -> Picks:
        """Draws steps with replacement, all with equal chance and under their own goals."""
        del by_priority
        first = self._live["first"]
        number = generator.integers(self.size, size=shape) + first[0]
        slot = np.searchsorted(first, number, side="right") - 1
        return Picks(slot, number - first[slot], np.full(shape, -1))

    def pick_context(self, shape: tuple[int, ...], generator: np.random.Generator) -> Picks:
        """Draws steps with replacement among those of the latest visit that are context."""
        live = self._live
        parts = np.flatnonzero(live["context"] & (live["visit"] == live["visit"][-1]))
        lengths = live["length"][parts]
        ends = np.cumsum(lengths)
        number = generator.integers(ends[-1], size=shape)
        which = np.searchsorted(ends, number, side="right")
        return Picks(parts[which], number - (ends - lengths)[which], np.full(shape, -1))

    def pick_runs(self, count: int, rows: int, generator: np.random.Generator) -> Picks:
        """Draws runs of as many steps among those of `pick_context`, in order, [count * rows].

        A run begins with an episode, and goes on with the next ones; where there are too few steps
        it goes on with the first episode again.
        """
        live = self._live
        parts = np.flatnonzero(live["context"] & (live["visit"] == live["visit"][-1]))
        lengths = live["length"][parts]
        ends = np.cumsum(lengths)
        starts = ends - lengths
        long = starts[starts + rows <= ends[-1]]
        starting = long if len(long) else starts[:1]
        first = starting[generator.integers(len(starting), size=count)]
        number = ((first[:, None] + np.arange(rows)) % ends[-1]).ravel()
        which = np.searchsorted(ends, number, side="right")
        return Picks(parts[which], number - starts[which], np.full(number.shape, -1))

    def look_up(self, picks: Picks) -> Drawn:
        """Returns the steps that have been picked, before anything else is added."""
        slot, time, _ = picks
        part = self._live.take(slot)
        cell = (part["start"] + time) % self.capacity
        state, after = self._cells.take(cell), self._cells.take((cell + 1) % self.capacity)
        last = time == part["length"] - 1
        return Drawn(
            state,
            after,
            action=state["action"],
            reward=state["reward"],
            goal=part["desired_goal"],
            own=np.ones(slot.shape, np.bool_),
            skill=part["skill"],
            episode_return=self._returns[part["episode"]],
            terminated=part["terminated"] & last,
            truncated=part["truncated"] & last,
            lost=np.zeros(slot.shape, np.bool_),
            goal_rest=rests_of(state)[1],
        )

    def fresh(self, episodes: Episodes, generator: np.random.Generator) -> tuple[Array, Array]:
        """Returns every step of episodes that need not be stored: observations, and goals."""
        del generator
        steps = np.arange(episodes.action.shape[1]) < episodes.length[:, None]
        goals = np.repeat(episodes.desired_goal, episodes.length, axis=0)
        return episodes.observation[:, :-1][steps], goals

    def pick_trajectories(
        self, shape: tuple[int, ...], generator: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Draws parts with equal chance; returns their places [U, M] and lengths [U, M]."""
        slots = generator.integers(len(self._live), size=shape)
        return slots, self._live["length"][slots]

    def trajectories(self, slots: IntArray, out: Array) -> None:
        """Copies columns of the parts in places [U, M] into [U, M, T + 1, D], padded."""
        part = self._live.take(slots)
        state = np.minimum(np.arange(self.longest + 1), part["length"][..., None])
        cells = (part["start"][..., None] + state) % self.capacity
        out[:] = self._cells["observation"][cells][..., self.columns]

    def full_rows(self) -> dict[str, np.ndarray]:
        """Returns what a save of a full ring holds, for names, types and shapes."""
        cells = {name: self._cells[name] for name in self.of_cells}
        shape = (self.capacity // 2,)
        parts = {
            name: np.broadcast_to(self._parts[name][0], shape + self._parts[name].shape[1:])
            for name in self.of_parts
        }
        return {**cells, **parts, "parts": np.array(0)}

    def check_rows(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Checks rows in order of saving, before any of them is restored.

        Raises:
            ValueError: Parts and cells do not match, or not all parts are there.
        """
        parts = 0
        for rows in saved:
            length, parts = rows["length"], int(rows["parts"])
            if not ((length >= 1) & (length <= self.longest)).all():
                raise ValueError("replay: length lies outside an episode")
            if any(len(rows[name]) != len(length) for name in self.of_parts):
                raise ValueError("replay: not as many rows as episodes")
            cells = int(length.sum()) + len(length)
            if any(len(rows[name]) != cells for name in self.of_cells):
                raise ValueError("replay: not as many rows as steps")
        there = sum(len(rows["length"]) for rows in saved)
        if saved and not 1 <= parts <= there:
            raise ValueError(f"replay: {there} of {parts} episodes are there")

    def restore(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Starts from an empty ring and repeats the additions that `saved` holds, in order."""
        self._begin = self._end = self._unsaved = self._episodes = 0
        self._latest = {}
        for rows in saved:
            self._append(rows)
            self._begin = max(self._begin, self._end - int(rows["parts"]))

    def purge(self, generator: np.random.Generator) -> None:
        """Forgets a random half of the parts; no episode may be open."""
        live = self._live
        kept = np.sort(generator.permutation(len(live))[: len(live) // 2])
        self.restore([self._rows_of(live[kept])] if len(kept) else [])

    def unsaved(self) -> dict[str, np.ndarray]:
        """Returns what came since `mark_saved` and is still there; empty where nothing did."""
        return self._rows(min(self._unsaved, len(self._live))) if self._unsaved else {}

    def everything(self) -> dict[str, np.ndarray]:
        """Returns all that is there, as `unsaved` would if nothing were saved yet."""
        return self._rows(len(self._live)) if len(self._live) else {}

    def mark_saved(self) -> None:
        """Notes that what `unsaved` or `everything` returned is safe."""
        self._unsaved = 0

    @property
    def _live(self) -> np.ndarray:
        """The table of parts that are still there, the oldest first."""
        return self._parts[self._begin : self._end]

    def _append(self, rows: Mapping[str, np.ndarray]) -> None:
        """Writes parts behind the newest, in place of as many of the oldest as are in the way."""
        count, cells = len(rows["length"]), len(rows["observation"])
        if self._end + count > len(self._parts):
            live = self._live
            table = np.empty([max(_FEWEST_PARTS, 2 * (len(live) + count))], self._parts.dtype)
            table[: len(live)] = live
            self._parts, self._begin, self._end = table, 0, len(live)
        newest = self._parts[self._end - 1] if self._end > self._begin else None
        start = int(newest["start"] + newest["length"]) + 1 if newest is not None else 0
        first = int(newest["first"] + newest["length"]) if newest is not None else 0
        new = self._parts[self._end : self._end + count]
        for name in self.of_parts:
            new[name] = rows[name]
        new["start"] = start + np.cumsum(new["length"] + 1) - new["length"] - 1
        new["first"] = first + np.cumsum(new["length"]) - new["length"]
        new["episode"] = self._numbered(rows["seed"], rows["episode_return"])
        kept = slice(max(0, cells - self.capacity), None)
        places = (start + np.arange(cells)[kept]) % self.capacity
        for name in self.of_cells:
            self._cells[name][places] = rows[name][kept]
        self._end += count
        gone = np.searchsorted(self._live["start"], start + cells - self.capacity, side="left")
        self._begin += int(gone)

    def _numbered(self, seeds: IntArray, returns: Array) -> list[int]:
        """Returns which episodes new parts belong to, and notes what each has returned by now.

        A part goes on with an episode of its seed that had a part in this call or the last one.
        """
        latest: dict[int, int] = {}
        numbers = []
        for seed, so_far in zip(seeds.tolist(), returns.tolist(), strict=True):
            number = latest.get(seed, self._latest.get(seed, self._episodes))
            if number == self._episodes:
                self._episodes += 1
                if number == len(self._returns):
                    self._returns = np.concatenate([self._returns, self._returns])
            latest[seed], self._returns[number] = number, so_far
            numbers.append(number)
        self._latest = latest
        return numbers

    def _rows(self, count: int) -> dict[str, np.ndarray]:
        """Returns copies of the newest parts with all that `restore` needs."""
        rows = self._rows_of(self._live[len(self._live) - count :])
        return rows | {"parts": np.array(len(self._live))}

    def _rows_of(self, parts: np.ndarray) -> dict[str, np.ndarray]:
        """Returns copies of some parts as if no other were there."""
        cells = parts["length"] + 1
        within = np.arange(cells.sum()) - np.repeat(np.cumsum(cells) - cells, cells)
        places = (np.repeat(parts["start"], cells) + within) % self.capacity
        return {
            **{name: self._cells[name][places] for name in self.of_cells},
            **{name: parts[name].copy() for name in self.of_parts},
            "parts": np.array(len(parts)),
        }
