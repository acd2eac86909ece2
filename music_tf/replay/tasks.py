"""Replay for a family of tasks: a ring buffer of steps for each task of a worker."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from music_tf.config.settings import Config
from music_tf.replay.ring import StepRing
from music_tf.replay.rows import Drawn, Picks
from music_tf.types import Array, BoolArray, EnvSpec, Episodes, IntArray


def tasks_of(config: Config, worker: int) -> range:
    """Returns the indices of the training tasks that a worker visits and stores."""
    return range(worker, config.tasks.train, config.workers)


class TaskStore:
    """The replay of one worker's tasks, as a `StepRing`; a slot is part * tasks + task."""

    def __init__(
        self, spec: EnvSpec, config: Config, worker: int, columns: Sequence[int] = ()
    ) -> None:
        """Makes an empty store; the tasks share its capacity evenly."""
        inference = config.agent.inference
        if inference is None:
            raise ValueError("TaskStore: expected an agent that infers its task")
        self.numbers = np.array(tasks_of(config, worker))
        """Indices of this worker's tasks among all training tasks."""
        self._together, self._ordered = inference.tasks // config.workers, inference.ordered
        capacity = max(1, config.replay.capacity // len(self.numbers))
        replay = dataclasses.replace(config.replay, capacity=capacity)
        longest = spec.max_episode_steps
        self._rings = [
            StepRing(spec, config.condition_size, replay, columns, longest, of_visits=True)
            for _ in self.numbers
        ]
        self.columns = self._rings[0].columns
        self.longest = longest

    @property
    def bytes(self) -> int:
        return sum(ring.bytes for ring in self._rings)

    @property
    def size(self) -> int:
        return sum(ring.size for ring in self._rings)

    def add(
        self, episodes: Episodes, generator: np.random.Generator, priority: Array | None = None
    ) -> None:
        for number, ring in zip(self.numbers, self._rings, strict=True):
            mine = episodes.task == number
            if mine.any():
                ring.add(episodes.at(mine), generator, priority)

    def draw_tasks(self, updates: int, generator: np.random.Generator) -> IntArray:
        """Draws tasks for each update with replacement, [U, m], counted within the worker."""
        return generator.integers(len(self._rings), size=(updates, self._together))

    def pick(
        self, shape: tuple[int, ...], generator: np.random.Generator, by_priority: bool = False
    ) -> Picks:
        """Draws tasks, then equally many steps of each with replacement, [U, B]."""
        updates, batch = shape
        rows = np.repeat(self.draw_tasks(updates, generator), batch // self._together, axis=1)
        return self._picked(rows, lambda ring, count: ring.pick((count,), generator))

    def context(self, tasks: IntArray, rows: int, generator: np.random.Generator) -> Drawn:
        """Draws N = `rows` context steps of the latest visit to `tasks` [U, m], [U, m, N]."""
        places, run = np.repeat(tasks[..., None], rows, axis=-1), rows if self._ordered else None
        return self.look_up(
            self._picked(places, lambda ring, count: ring.pick_context(count, run, generator))
        )

    def look_up(self, picks: Picks) -> Drawn:
        part, tasks = np.divmod(picks.slot, len(self._rings))
        drawn: dict[str, np.ndarray] = {}
        for _, ring, where in self._by_task(tasks):
            steps = ring.look_up(Picks(part[where], picks.time[where], picks.goal[where]))
            for name, values in steps._asdict().items():
                if name not in drawn:
                    drawn[name] = np.empty([*tasks.shape, *values.shape[1:]], values.dtype)
                drawn[name][where] = values
        return Drawn(**drawn)

    def fresh(self, episodes: Episodes, generator: np.random.Generator) -> tuple[Array, Array]:
        return self._rings[0].fresh(episodes, generator)

    def pick_trajectories(
        self, shape: tuple[int, ...], generator: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Draws tasks and parts of them; returns their slots [U, M] and lengths [U, M]."""
        tasks = generator.integers(len(self._rings), size=shape)
        slots, lengths = np.zeros([2, *shape], np.int64)
        for number, ring, where in self._by_task(tasks):
            parts, lengths[where] = ring.pick_trajectories((int(where.sum()),), generator)
            slots[where] = parts * len(self._rings) + number
        return slots, lengths

    def trajectories(self, slots: IntArray, out: Array) -> None:
        part, tasks = np.divmod(slots, len(self._rings))
        for _, ring, where in self._by_task(tasks):
            tracks = np.empty([int(where.sum()), *out.shape[2:]], out.dtype)
            ring.trajectories(part[where], tracks)
            out[where] = tracks

    def full_rows(self) -> dict[str, np.ndarray]:
        of_ring, count = self._rings[0].full_rows(), len(self._rings)
        rows = {
            name: np.broadcast_to(values[0], (count * len(values), *values.shape[1:]))
            for name, values in of_ring.items()
            if values.shape
        }
        task = np.broadcast_to(np.int64(0), len(rows["length"]))
        return {**rows, "task": task, "parts": np.zeros(count, np.int64)}

    def check_rows(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Checks saved rows, in the order of saves; a ValueError if of other tasks or misfit."""
        for rows in saved:
            task = rows["task"]
            if len(task) != len(rows["length"]) or len(rows["parts"]) != len(self._rings):
                raise ValueError("replay: not as many tasks as episodes")
            if not np.isin(task, self.numbers).all():
                raise ValueError("replay: an episode is of a task of another worker")
            self._rings[0].check_sizes(rows)
        for number, ring in enumerate(self._rings):
            ring.check_rows(self._saved_of(number, saved))

    def restore(self, saved: Sequence[Mapping[str, np.ndarray]]) -> None:
        for number, ring in enumerate(self._rings):
            ring.restore(self._saved_of(number, saved))

    def purge(self, generator: np.random.Generator) -> None:
        for ring in self._rings:
            ring.purge(generator)

    def unsaved(self) -> dict[str, np.ndarray]:
        return self._joined([ring.unsaved() for ring in self._rings])

    def everything(self) -> dict[str, np.ndarray]:
        return self._joined([ring.everything() for ring in self._rings])

    def mark_saved(self) -> None:
        for ring in self._rings:
            ring.mark_saved()

    def _picked(self, tasks: IntArray, draw: Callable[[StepRing, int], Picks]) -> Picks:
        slot, time = np.empty([2, *tasks.shape], np.int64)
        for number, ring, where in self._by_task(tasks):
            picks = draw(ring, int(where.sum()))
            slot[where] = picks.slot * len(self._rings) + number
            time[where] = picks.time
        return Picks(slot, time, np.full(tasks.shape, -1))

    def _by_task(self, tasks: IntArray) -> Iterator[tuple[int, StepRing, BoolArray]]:
        """Yields each task that occurs, with its ring and a mask of its entries."""
        for number, ring in enumerate(self._rings):
            where: BoolArray = tasks == number
            if where.any():
                yield number, ring, where

    def _joined(self, each: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Joins rows of all rings, and adds the task of each part."""
        some = {number: rows for number, rows in enumerate(each) if rows}
        if not some:
            return {}
        joined = {
            name: np.concatenate([rows[name] for rows in some.values()])
            for name in next(iter(some.values()))
            if name != "parts"
        }
        lengths = [len(rows["length"]) for rows in some.values()]
        parts = np.zeros(len(self._rings), np.int64)
        parts[list(some)] = [int(rows["parts"]) for rows in some.values()]
        return {**joined, "task": np.repeat(self.numbers[list(some)], lengths), "parts": parts}

    def _saved_of(
        self, number: int, saved: Sequence[Mapping[str, np.ndarray]]
    ) -> list[dict[str, np.ndarray]]:
        """Returns the saved rows of one ring, from each save that has any."""
        of_ring = []
        for rows in saved:
            parts = rows["task"] == self.numbers[number]
            if not parts.any():
                continue
            cells = np.repeat(parts, rows["length"] + 1)
            arrays = {
                name: values[cells if name in self._rings[0].of_cells else parts]
                for name, values in rows.items()
                if name not in ("task", "parts")
            }
            of_ring.append({**arrays, "parts": rows["parts"][number]})
        return of_ring
