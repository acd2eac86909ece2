"""The learner's side of the actors: it sends orders and waits for the answers.

Actors (`acting_rank.py`) hold no state that is saved. What an actor plays follows from the order,
the seed and its workers alone, so the number of actors does not change any bit of a run.
"""

import dataclasses
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EXIT_BUG, EXIT_DONE, MusicError, NumbersFault, fault_of
from music_tf.networks.acting import Snapshot
from music_tf.process.launcher import LEARNS, note
from music_tf.process.signals import request_stop
from music_tf.process.watchdog import longer_timeout
from music_tf.training.adaptation import Adaptation, among_all
from music_tf.training.collect import Collected, Order, make_environments
from music_tf.training.crew import Crew
from music_tf.training.memory import Share
from music_tf.training.messages import (
    ADAPT,
    BEGIN,
    END,
    EVALUATE,
    PLAY,
    AnswerHeader,
    Data,
    OrderHeader,
    SnapshotFormat,
    body_of,
    header_in,
)
from music_tf.training.tasks import TaskSets
from music_tf.training.team import Team, visit_format
from music_tf.types import Episodes, Metrics

Answer = TypeVar("Answer")


class Actors:
    """All actors of one learner, in place of a `Collector`; they play an order at once."""

    envs: LockstepEnvs
    """One environment of the learner: it describes the task and computes relabelled rewards."""

    def __init__(self, config: Config, comm: Communicator, learners: int = 1) -> None:
        """Splits `comm` into teams; a collective call: the other ranks make an `ActingRank`."""
        self._all, self._config = comm, config
        self._team = Team.of(config, comm, learners)
        self.learning, self.hosts = self._team.learning, len(set(comm.hosts))
        self.count, self.here = len(self._team.actors) * learners, comm.actors_here(learners)
        """Number of all actors at the start, and of those on the learner's host."""
        note(LEARNS, os.getpid(), platform.node())
        self.ordered: Order | None = None
        self._number = 0
        self._begins_epoch = False
        self.crew = Crew(self._team, config)
        self._format: SnapshotFormat | None = None
        self._clocks = _Clocks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        """Ends the actors with the exit code of this process."""
        is_loss = raised is not None and self._all.loss_in(raised) is not None
        if is_loss or not (raised is None or isinstance(raised, Exception)):
            return  # the whole job ends at once
        if not hasattr(self, "envs"):
            return  # the actors raise what this rank does, see `make_environments`
        code = getattr(raised, "exit_code", EXIT_DONE if raised is None else EXIT_BUG)
        self.forget()
        self._send(OrderHeader(END, code=code), b"")
        self.crew.receive()

    def make_environment(self) -> LockstepEnvs:
        """Makes the learner's environment while the actors make theirs; as `make_environments`."""
        stores = self._config.workers // self._team.learners
        self.envs = make_environments(self._config, self._all, Share(1, stores))
        self._whole = self._team.format(self.envs.spec)
        self._parts = self._team.format(self.envs.spec, self._config.collect.steps)
        return self.envs

    def take_losses(self) -> list[dict[str, Any]]:
        """Returns the actors that all learners have lost since the last call; they all make it."""
        taken, self.crew.losses = self.crew.losses, []
        return [loss for losses in self.learning.allgather(taken) for loss in losses]

    def begin_epoch(self) -> None:
        self._begins_epoch = True

    def order(self, order: Order) -> None:
        header = OrderHeader(
            PLAY,
            cycle=order.cycle,
            at_random=order.at_random,
            begins_epoch=self._begins_epoch,
            world=order.world,
            initial=order.initial,
        )
        self._tell(header, order.snapshot)
        self.ordered, self._begins_epoch = order, False

    def forget(self) -> None:
        """Waits for the answers to the current order, and drops them."""
        if self.crew.order is not None:
            self.crew.receive()
        self.ordered = None

    def collect(self) -> Collected:
        order, self.ordered = self.ordered, None
        initial = order is not None and order.initial
        expected = self._config.rollouts * self._config.rounds(initial)

        def answered() -> Collected:
            answers = self._answers(self._parts.unpack)
            parts = [count for answer in answers for count in answer.parts]
            if self._config.collect.steps is None and set(parts) != {expected}:
                raise NumbersFault(f"actors played {parts} episodes for each worker")
            over = np.concatenate([answer.succeeded for answer in answers])
            played = Episodes.joined(answer.played for answer in answers)
            return Collected(played, parts, over, sum(answer.unfinished for answer in answers))

        return self.learning.together(answered)

    def evaluate(self, snapshot: Snapshot, episodes: int, world: int) -> dict[str, np.ndarray]:
        """Lets actors play this learner's share of evaluation episodes in a stage of the world."""
        # Rows are episodes; those of other learners are zeros. Raises as `collect`.
        self._tell(OrderHeader(EVALUATE, episodes=episodes, world=world), snapshot)
        played = Episodes.joined(answer.played for answer in self._answers(self._whole.unpack))
        shares = [self._team.evaluated(share, episodes) for share in self._team.actors]
        mine = np.concatenate(shares)
        if len(played.length) != len(mine):
            raise NumbersFault(f"actors played {len(played.length)} of {len(mine)} episodes")
        result = {}
        for name, rows in played.named().items():
            result[name] = np.zeros([episodes, *rows.shape[1:]], rows.dtype)
            result[name][mine] = rows
        return result

    def adapt(self, snapshot: Snapshot, part: str, visits: int) -> Adaptation:
        """Lets the actors play this learner's share of `visits` visits to each evaluation task."""
        # Rows are visits; those of other learners are zeros. Raises as `collect`.
        self._tell(OrderHeader(ADAPT, episodes=visits, part=TaskSets._fields.index(part)), snapshot)
        count = getattr(self._config.tasks, part) * visits
        mine = [self._team.visited(share, count) for share in self._team.actors]
        answers = self._answers(visit_format(self._config).unpack)
        if [len(answer.returns) for answer in answers] != list(map(len, mine)):
            raise NumbersFault(f"actors played other visits than {count} to tasks")
        rows = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        return among_all(count, np.concatenate(mine), Adaptation(*rows))

    def verdict(self) -> str:
        """Returns a line on what limits the run, acting or learning, after at least one cycle."""
        acting, learning = self._clocks.acting, time.monotonic() - self._clocks.left
        times = f"a cycle takes actors {1e3 * acting:.0f} ms, the learner {1e3 * learning:.0f} ms"
        if not self._config.lag:
            return f"{times}, one after the other; --lag 1 would let them work at the same time"
        return f"{'acting' if acting > learning else 'learning'} limits: {times}"

    def take_metrics(self) -> Metrics:
        clocks, self._clocks = self._clocks, _Clocks()
        self._clocks.acting, self._clocks.left = clocks.acting, clocks.left
        left, lag = float(len(self.crew.left)), float(self._config.lag)
        return clocks.metrics() | {"mpi/actors": left, "time/staleness_cycles": lag}

    def _tell(self, header: OrderHeader, snapshot: Snapshot) -> None:
        if self._format is None:
            self._format = SnapshotFormat.of(snapshot)
            self._send(OrderHeader(BEGIN), json.dumps(self._format.shapes).encode())
            self._answers(lambda *_: None)
        start = time.monotonic()
        self._send(header, self._format.pack(snapshot))
        self._clocks.telling.append(time.monotonic() - start)

    def _send(self, header: OrderHeader, body: bytes) -> None:
        self._number += 1
        self.crew.send(header._replace(number=self._number), body)

    def _answers(self, unpack: Callable[[Data, int, int], Answer]) -> list[Answer]:
        """Returns what `unpack` makes of each answer, the number of workers and that of ends."""
        order, start = self.crew.order, time.monotonic()
        if order is None:
            raise ValueError("collect: nothing has been ordered")
        with longer_timeout():  # the watchdog of each actor checks every step
            came = self.crew.receive()
        arrived = time.monotonic()
        answers, headers = [], []
        for share, (rank, data) in zip(self._team.actors, came, strict=True):
            workers = self._team.workers(share)
            try:
                header = header_in(data, AnswerHeader)
                expected = (order.number, order.cycle, workers.start, len(workers))
                if header[: len(expected)] != expected:
                    raise NumbersFault(
                        "answered with number, cycle, first worker and workers "
                        f"{header[: len(expected)]}, expected {expected}"
                    )
                rest = body_of(data, AnswerHeader)
                if header.fault:
                    raise fault_of(header.fault)(rest.tobytes().decode(errors="replace"))
                answers.append(unpack(rest, len(workers), header.ends))
            except MusicError as fault:
                raise type(fault)(f"rank {self._team.comm.numbers[rank]}: {fault}") from fault
            if header.stop:
                request_stop()
            headers.append(header)
        if order.kind == PLAY:
            self._clocks.answered(start, arrived, [rank for rank, _ in came], headers)
        self._clocks.left = time.monotonic()
        return answers


class Ranks(NamedTuple):
    """Which ranks learn, and which act."""

    learning: Communicator
    actors: Actors | None = None
    """Actors of this learner; None where all ranks act and learn."""
    gpu: str | None = None
    """Name of the learner's GPU; None if it learns on the CPU."""

    @property
    def size(self) -> int:
        return self.learning.size + (0 if self.actors is None else self.actors.count)


@dataclasses.dataclass
class _Clocks:
    """The learner's timings in seconds since the metrics were taken last."""

    telling: list[float] = dataclasses.field(default_factory=list)
    waiting: list[float] = dataclasses.field(default_factory=list)
    taking: list[float] = dataclasses.field(default_factory=list)
    played: list[float] = dataclasses.field(default_factory=list)
    waited: list[list[float]] = dataclasses.field(default_factory=list)
    acting: float = 0.0
    """Of the slowest actor in the last cycle."""
    left: float = dataclasses.field(default_factory=time.monotonic)
    """Time at which the learner had unpacked the last answers."""

    def answered(
        self, start: float, arrived: float, ranks: Sequence[int], headers: Sequence[AnswerHeader]
    ) -> None:
        """Records a cycle, given the times at which waiting began and all answers had come."""
        self.waiting.append(arrived - start)
        self.taking.append(time.monotonic() - arrived)
        played = [1e-6 * header.played_us for header in headers]
        self.acting = float(np.bincount(ranks, played).max())
        self.played.append(sum(played) / len(played))
        self.waited.append([1e-6 * header.waited_us for header in headers])

    def metrics(self) -> Metrics:
        waited = np.sum(self.waited, axis=0)
        return {
            "time/act_s": sum(self.played),
            "time/learner_wait_s": sum(self.waiting),
            "time/actors_wait_s": float(np.mean(waited)),
            "time/actors_wait_s_max": float(np.max(waited)),
            "mpi/broadcast_ms": 1e3 * float(np.mean(self.telling)),
            "mpi/gather_ms": 1e3 * float(np.mean(self.taking)),
        }
