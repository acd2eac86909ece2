"""A ring buffer of steps, for tasks without goals and for episodes that come in parts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.settings import ReplayConfig
from music_tf.replay.rows import Drawn, Picks, packed
from music_tf.types import EXTRAS, Array, BoolArray, EnvSpec, Episodes, IntArray

_FEWEST_PARTS = 1024


class StepRing:
    """The latest steps of one worker; a cell is the packed row of a state, L + 1 for L steps."""

    def __init__(
        self,
        spec: EnvSpec,
        skills: int,  # size K of a condition
        config: ReplayConfig,
        columns: Sequence[int] = (),  # of the observation, for `trajectories`
        longest: int = 1,  # most steps of a part
        of_visits: bool = False,  # parts have the number of their visit, and if they are context
    ) -> None:
        self.capacity = max(config.capacity, longest + 1)
        self.columns = np.array(columns, dtype=np.int64)
        self.longest = longest
        extras = {f"{EXTRAS}{name}": size for name, size in spec.extras.items()}
        state = {"observation": spec.observation_dim, "achieved_goal": spec.goal_dim, **extras}
        self._cells = np.empty([self.capacity], packed("reward", **state, action=spec.action_dim))
        kinds: list[Any] = [
            *((name, np.int64) for name in ("start", "first", "length", "episode")),
            *packed("episode_return", desired_goal=spec.goal_dim, skill=skills),
            *((name, np.bool_) for name in ("terminated", "truncated")),
            ("seed", np.int64),
            *([("visit", np.int64), ("context", np.bool_)] if of_visits else []),
        ]
        self._parts = np.empty([_FEWEST_PARTS], kinds)
        self.of_cells = self._cells.dtype.names or ()
        """Names of the arrays that have a row for each state."""
        names = self._parts.dtype.names or ()
        positions = ("start", "first", "episode")  # which are not saved
        self.of_parts = tuple(name for name in names if name not in positions)
        """Names of the arrays that have a row for each part."""
        self._returns = np.empty([_FEWEST_PARTS], np.float32)
        self._episodes = 0
        self._latest: dict[int, int] = {}
        """Open episodes of the last `add` by seed, which the next parts may continue."""
        self._begin = self._end = 0
        self._unsaved = 0

    @property
    def bytes(self) -> int:
        """Memory of the full ring; unused cells are never touched."""
        return self._cells.nbytes + self._parts.nbytes

    @property
    def size(self) -> int:
        live = self._live
        return int(live["first"][-1] + live["length"][-1] - live["first"][0]) if len(live) else 0

    def add(
        self, episodes: Episodes, generator: np.random.Generator, priority: Array | None = None
    ) -> None:
        """Appends episodes or parts of them; the oldest parts are overwritten."""
        states = episodes.state_mask
        named = episodes.named()
        rows = {name: named[name] for name in self.of_parts if name in named}
        rows["episode_return"] = episodes.earlier_return + episodes.reward.sum(axis=1)
        for name in self.of_cells:
            values = named[name]
            if values.shape[1] < states.shape[1]:  # the last state has no step
                values = np.concatenate([values, np.zeros_like(values[:, :1])], axis=1)
            rows[name] = values[states]
        self._append(rows)
        self._unsaved += len(episodes.length)

    def pick(
        self, shape: tuple[int, ...], generator: np.random.Generator, by_priority: bool = False
    ) -> Picks:
        """Draws steps uniformly with replacement, with their own goals."""
        first = self._live["first"]
        number = generator.integers(self.size, size=shape) + first[0]
        slot = np.searchsorted(first, number, side="right") - 1
        return Picks(slot, number - first[slot], np.full(shape, -1))

    def pick_context(self, count: int, run: int | None, generator: np.random.Generator) -> Picks:
        """Draws `count` context steps of the latest visit, with `run` in sequences so long."""
        live = self._live
        parts = np.flatnonzero(live["context"] & (live["visit"] == live["visit"][-1]))
        lengths = live["length"][parts]
        ends = np.cumsum(lengths)
        starts = ends - lengths
        if run is None:
            number = generator.integers(ends[-1], size=count)
        else:
            long = starts[starts + run <= ends[-1]]
            starting = long if len(long) else starts[:1]
            first = starting[generator.integers(len(starting), size=count // run)]
            number = ((first[:, None] + np.arange(run)) % ends[-1]).ravel()  # from the first on
        which = np.searchsorted(ends, number, side="right")
        return Picks(parts[which], number - starts[which], np.full(number.shape, -1))

    def look_up(self, picks: Picks) -> Drawn:
        """Returns the picked steps, before more are added."""
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
            as_taken=np.ones(slot.shape, np.bool_),
            reaches=np.zeros(slot.shape, np.bool_),
            skill=part["skill"],
            episode_return=self._returns[part["episode"]],
            terminated=part["terminated"] & last,
            truncated=part["truncated"] & last,
            lost=np.zeros(slot.shape, np.bool_),
        )

    def fresh(self, episodes: Episodes, generator: np.random.Generator) -> tuple[Array, Array]:
        """Returns observations and goals of every step of given episodes."""
        goals = np.repeat(episodes.desired_goal, episodes.length, axis=0)
        return episodes.observation[:, :-1][episodes.step_mask], goals

    def pick_trajectories(
        self, shape: tuple[int, ...], generator: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Draws parts uniformly; returns their indices [U, M] and lengths [U, M]."""
        slots = generator.integers(len(self._live), size=shape)
        return slots, self._live["length"][slots]

    def trajectories(self, slots: IntArray, out: Array) -> None:
        """Copies `columns` of the parts `slots` [U, M] into `out` [U, M, T + 1, D], padded."""
        part = self._live.take(slots)
        state = np.minimum(np.arange(self.longest + 1), part["length"][..., None])
        cells = (part["start"][..., None] + state) % self.capacity
        out[:] = self._cells["observation"][cells][..., self.columns]

    def full_rows(self) -> dict[str, np.ndarray]:
        """Returns the arrays of a save of a full ring, for their names, types and shapes."""
        cells = {name: self._cells[name] for name in self.of_cells}
        shape = (self.capacity // 2,)
        parts = {
            name: np.broadcast_to(self._parts[name][0], shape + self._parts[name].shape[1:])
            for name in self.of_parts
        }
        return {**cells, **parts, "parts": np.array(0)}

    def check_rows(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Checks saved rows, in the order of saves; a ValueError if parts are missing or misfit."""
        parts = 0
        for rows in saved:
            self.check_sizes(rows)
            parts = int(rows["parts"])
        count = sum(len(rows["length"]) for rows in saved)
        if saved and not 1 <= parts <= count:
            raise ValueError(f"replay: {count} of {parts} episodes are there")

    def check_sizes(self, rows: Mapping[str, np.ndarray]) -> None:
        length = rows["length"]
        if not ((length >= 1) & (length <= self.longest)).all():
            raise ValueError("replay: length lies outside an episode")
        if any(len(rows[name]) != len(length) for name in self.of_parts):
            raise ValueError("replay: not as many rows as episodes")
        if any(len(rows[name]) != (length + 1).sum() for name in self.of_cells):
            raise ValueError("replay: not as many rows as steps")

    def restore(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        self._begin = self._end = self._unsaved = self._episodes = 0
        self._latest = {}
        for rows in saved:
            self._append(rows)
            self._begin = max(self._begin, self._end - int(rows["parts"]))

    def purge(self, generator: np.random.Generator) -> None:
        """Keeps half as many steps, drawn with replacement, each as a part of its own."""
        if not self.size:  # resumed without replay
            return
        slot, time, _ = self.pick((self.size // 2,), generator)
        order = np.lexsort([time, slot])  # the oldest are overwritten first
        time, parts = time[order], self._live[slot[order]]
        for ended in ("terminated", "truncated"):
            parts[ended] &= time == parts["length"] - 1
        parts["start"] += time
        parts["length"], parts["episode_return"] = 1, self._returns[parts["episode"]]
        self.restore([self._rows_of(parts)] if len(parts) else [])

    def unsaved(self) -> dict[str, np.ndarray]:
        """Returns the rows that were added since `mark_saved` and are still there."""
        return self._rows(min(self._unsaved, len(self._live))) if self._unsaved else {}

    def everything(self) -> dict[str, np.ndarray]:
        return self._rows(len(self._live)) if len(self._live) else {}

    def mark_saved(self) -> None:
        self._unsaved = 0

    @property
    def _live(self) -> np.ndarray:
        """The table of parts that are not overwritten, the oldest first."""
        return self._parts[self._begin : self._end]

    def _append(self, rows: Mapping[str, np.ndarray]) -> None:
        """Writes parts after the newest one, and drops the parts that they overwrite."""
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
        over = rows["terminated"] | rows["truncated"]
        new["episode"] = self._numbered(rows["seed"], rows["episode_return"], over)
        kept = slice(max(0, cells - self.capacity), None)
        places = (start + np.arange(cells)[kept]) % self.capacity
        for name in self.of_cells:
            self._cells[name][places] = rows[name][kept]
        self._end += count
        gone = np.searchsorted(self._live["start"], start + cells - self.capacity, side="left")
        self._begin += int(gone)

    def _numbered(self, seeds: IntArray, returns: Array, over: BoolArray) -> list[int]:
        """Numbers the episode of each part: the open one of the same seed, or a new one."""
        latest: dict[int, int] = {}
        numbers = []
        parts = zip(seeds.tolist(), returns.tolist(), over.tolist(), strict=True)
        for seed, so_far, ended in parts:
            number = latest.pop(seed, self._latest.pop(seed, self._episodes))
            if number == self._episodes:
                self._episodes += 1
                if number == len(self._returns):
                    self._returns = np.concatenate([self._returns, self._returns])
            self._returns[number] = so_far
            if not ended:
                latest[seed] = number
            numbers.append(number)
        self._latest = latest
        return numbers

    def _rows(self, count: int) -> dict[str, np.ndarray]:
        """Returns copies of the newest `count` parts, for `restore`."""
        rows = self._rows_of(self._live[len(self._live) - count :])
        return rows | {"parts": np.array(len(self._live))}

    def _rows_of(self, parts: np.ndarray) -> dict[str, np.ndarray]:
        """Returns copies of some parts, as of a ring that holds only these."""
        cells = parts["length"] + 1
        within = np.arange(cells.sum()) - np.repeat(np.cumsum(cells) - cells, cells)
        places = (np.repeat(parts["start"], cells) + within) % self.capacity
        return {
            **{name: self._cells[name][places] for name in self.of_cells},
            **{name: parts[name].copy() for name in self.of_parts},
            "parts": np.array(len(parts)),
        }
