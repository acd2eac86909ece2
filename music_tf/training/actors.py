"""Ranks that only act, with numpy: what the learner asks of them, and what they do.

The first rank learns and tells the others what to play; they hold nothing that has to be saved. So
their number changes no bit: an order, the seed and their workers decide all that they do.
"""

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import (
    EXIT_BUG,
    EXIT_DONE,
    FROM_USERS,
    EnvironmentFault,
    LearnerEnded,
    MusicError,
    NumbersFault,
    UsageError,
)
from music_tf.networks.acting import (
    ENCODER,
    EXPLORER,
    Moments,
    NetworkInputs,
    Snapshot,
    policy_of,
)
from music_tf.process.machine import available_cores, threads_per_rank
from music_tf.process.signals import request_stop, stop_requested
from music_tf.process.tensorflow_start import NO_GPU
from music_tf.process.watchdog import longer_timeout
from music_tf.training.adaptation import Adaptation, MetaEvaluation, among_all
from music_tf.training.collect import Collected, Order, make_environments
from music_tf.training.evaluation import Evaluation
from music_tf.training.memory import Share
from music_tf.training.messages import (
    ADAPT,
    END,
    EVALUATE,
    PLAY,
    AnswerHeader,
    Data,
    EpisodeFormat,
    OrderHeader,
    SnapshotFormat,
    VisitFormat,
    answer_in,
    body_of,
    headed,
    header_size,
    order_in,
)
from music_tf.training.tasks import TaskCollector, TaskSets, make_collector
from music_tf.types import Array, EnvSpec, Episodes, IntArray, Metrics

Answer = TypeVar("Answer", covariant=True)  # noqa: PLC0105  (as in _Format)
_LEARNER_CORES = 2
"""That a learner keeps busy beside its actors."""
_FAULTS = {kind.exit_code: kind for kind in (UsageError, EnvironmentFault, NumbersFault)}


class Team(NamedTuple):
    """A rank that learns, the first of its team, and those that act for it."""

    comm: Communicator
    """Of the team, for its messages alone."""
    learning: Communicator
    """Of the ranks with the same role in all teams."""
    config: Config
    learners: int
    """How many teams there are."""
    number: int
    """Of this one."""

    @classmethod
    def of(cls, config: Config, comm: Communicator, learners: int) -> Self:
        """Makes teams of all ranks, the first of which learn; every rank must call it together.

        Raises:
            EnvironmentFault: A rank that acts sees a GPU.
        """
        acts = comm.rank >= learners
        own = os.environ.get("CUDA_VISIBLE_DEVICES") if acts else NO_GPU
        for rank, visible in enumerate(comm.allgather(own)):
            if visible != NO_GPU:
                raise EnvironmentFault(
                    f"rank {rank} only acts, and sees a GPU: CUDA_VISIBLE_DEVICES is {visible!r}\n"
                    "a module that the run imports has changed it; leave that to the learner"
                )
        each = (comm.size - learners) // learners
        number = (comm.rank - learners) // each if acts else comm.rank
        team, learning = comm.group(number), comm.group(int(acts))
        if learners == 1:
            learning = Communicator(alone=True)
        return cls(team, learning, config, learners, number)

    @property
    def actors(self) -> range:
        """Ranks that act, in this group of one learner and its actors."""
        return range(1, self.comm.size)

    def among_all(self, rank: int) -> int:
        """Returns the number that a rank that acts has among all ranks."""
        return self.learners + self.number * len(self.actors) + rank - 1

    def workers(self, rank: int) -> range:
        """Returns the workers that a rank plays for."""
        share = self.config.workers // self.learners // len(self.actors)
        first = self.number * len(self.actors) + rank - 1
        return range(first * share, (first + 1) * share)

    @property
    def together(self) -> int:
        """Episodes of an evaluation that the learner would play at a time if it did."""
        return self.config.workers // self.learners * self.config.rollouts

    def evaluated(self, rank: int, episodes: int) -> IntArray:
        """Returns the evaluation episodes that a rank plays: those of its own environments."""
        each = self.together // len(self.actors)
        indices = np.arange(episodes)
        batch, place = np.divmod(indices, self.together)
        mine: IntArray = indices[
            (batch % self.learners == self.number) & (place // each == rank - 1)
        ]
        return mine

    def visited(self, rank: int, visits: int) -> IntArray:
        """Returns the evaluation visits to tasks that a rank plays, by their numbers."""
        turn, learner = np.divmod(np.arange(visits), self.learners)
        mine: IntArray = np.flatnonzero(
            (learner == self.number) & (turn % len(self.actors) == rank - 1)
        )
        return mine

    def format(self, spec: EnvSpec, steps: int | None = None) -> EpisodeFormat:
        """Returns how episodes are sent: parts of up to `steps`, or whole ones."""
        return EpisodeFormat(spec, self.config.condition_size, steps or spec.max_episode_steps)


def visit_format(config: Config) -> VisitFormat:
    """Returns how visits to tasks are sent."""
    return VisitFormat(config.tasks.explore + config.tasks.adapt, config.condition_size)


class _Format(Protocol[Answer]):
    """How answers of some kind are sent."""

    def unpack(self, data: Data, workers: int, ends: int) -> Answer:
        """Returns what was packed."""


class Actors:
    """All actors as the learner sees them: takes the place of a `Collector`.

    What is ordered is played at once, so that the learner may learn meanwhile.
    """

    envs: LockstepEnvs
    """One of the learner's own: it says what the task is, and pays goals in hindsight."""

    def __init__(self, config: Config, comm: Communicator, learners: int = 1) -> None:
        """Takes all ranks; every rank must call it, or make an `ActingRank`, together."""
        self._all, self._config = comm, config
        self._team = Team.of(config, comm, learners)
        self.ordered: Order | None = None
        """What the actors play now."""
        self._number = 0
        self._begins_epoch = False
        self._format: SnapshotFormat | None = None
        self._asked: OrderHeader | None = None
        self._clocks = _Clocks()

    def __enter__(self) -> Self:
        """Returns itself; the actors end with the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the actors with the exit code that this process will have."""
        if raised is not None and not isinstance(raised, Exception):
            return  # the whole job ends at once
        code = getattr(raised, "exit_code", EXIT_DONE if raised is None else EXIT_BUG)
        self.forget()
        if self._format is None:
            self._begin({"code": code})
        else:
            end = headed(OrderHeader(END, code=code), bytes(self._format.bytes))
            self._team.comm.patient_broadcast(end)

    @property
    def count(self) -> int:
        """How many there are, of all learners."""
        return len(self._team.actors) * self._team.learners

    @property
    def here(self) -> int:
        """How many share the learner's host."""
        return self._all.actors_here(self._team.learners)

    @property
    def hosts(self) -> int:
        """How many hosts all ranks run on."""
        return len(set(self._all.hosts))

    @property
    def learning(self) -> Communicator:
        """The ranks that learn together."""
        return self._team.learning

    def make_environment(self) -> LockstepEnvs:
        """Makes the learner's own environment while the actors make theirs.

        Raises:
            MusicError: As `make_environments`.
        """
        stores = self._config.workers // self._team.learners
        self.envs = make_environments(self._config, self._all, Share(1, stores))
        self._whole = self._team.format(self.envs.spec)
        self._parts = self._team.format(self.envs.spec, self._config.collect.steps)
        return self.envs

    def begin_epoch(self) -> None:
        """Lets all that is open be cut off before what is ordered next."""
        self._begins_epoch = True

    def order(self, order: Order) -> None:
        """Lets the actors play a cycle."""
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
        """Waits for what the actors play now, and drops it."""
        if self._asked is not None:
            self._receive()
        self.ordered = None

    def collect(self) -> Collected:
        """Waits for the cycle that was ordered.

        Raises:
            EnvironmentFault: An environment of an actor is broken.
            NumbersFault: A policy gave numbers that are not finite, or an actor answered something
                else than it was asked.
        """
        order, self.ordered = self.ordered, None
        initial = order is not None and order.initial
        expected = self._config.rollouts * self._config.rounds(initial)

        def answered() -> Collected:
            found = self._answers(self._parts)
            parts = [count for own in found for count in own.parts]
            if self._config.collect.steps is None and set(parts) != {expected}:
                raise NumbersFault(f"actors played {parts} episodes for each worker")
            over = np.concatenate([own.succeeded for own in found])
            unfinished = sum(own.unfinished for own in found)
            return Collected(_joined([own.played for own in found]), parts, over, unfinished)

        return self.learning.together(answered)

    def evaluate(self, snapshot: Snapshot, episodes: int, world: int) -> dict[str, np.ndarray]:
        """Lets the actors play this learner's share of evaluation episodes in a stage of the world.

        Returns:
            All episodes by name as this rank would play them itself, those of others zeros.

        Raises:
            MusicError: As `collect`.
        """
        self._tell(OrderHeader(EVALUATE, episodes=episodes, world=world), snapshot)
        with longer_timeout():  # actors watch themselves, step by step
            played = _joined([own.played for own in self._answers(self._whole)])
        shares = [self._team.evaluated(rank, episodes) for rank in self._team.actors]
        mine = np.concatenate(shares)
        if len(played.length) != len(mine):
            raise NumbersFault(f"actors played {len(played.length)} of {len(mine)} episodes")
        result = {}
        for name, rows in played.named().items():
            result[name] = np.zeros([episodes, *rows.shape[1:]], rows.dtype)
            result[name][mine] = rows
        return result

    def adapt(self, snapshot: Snapshot, part: str, visits: int) -> Adaptation:
        """Lets the actors play this learner's share of visits to each evaluation task.

        Returns:
            All visits as this rank would play them itself, those of others zeros.

        Raises:
            MusicError: As `collect`.
        """
        self._tell(OrderHeader(ADAPT, episodes=visits, part=TaskSets._fields.index(part)), snapshot)
        count = getattr(self._config.tasks, part) * visits
        mine = [self._team.visited(rank, count) for rank in self._team.actors]
        with longer_timeout():  # actors watch themselves, step by step
            found = self._answers(visit_format(self._config))
        if [len(one.returns) for one in found] != list(map(len, mine)):
            raise NumbersFault(f"actors played other visits than {count} to tasks")
        rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return among_all(count, np.concatenate(mine), Adaptation(*rows))

    def verdict(self) -> str:
        """Says which side limits the run, after at least one cycle."""
        acting, learning = self._clocks.acting, time.monotonic() - self._clocks.left
        times = f"a cycle takes actors {1e3 * acting:.0f} ms, the learner {1e3 * learning:.0f} ms"
        if not self._config.lag:
            return f"{times}, one after the other; --lag 1 would let them work at the same time"
        return f"{'acting' if acting > learning else 'learning'} limits: {times}"

    def take_metrics(self) -> Metrics:
        """Returns what the clocks say since the last call."""
        found, self._clocks = self._clocks, _Clocks()
        self._clocks.acting, self._clocks.left = found.acting, found.left
        return found.metrics() | {"time/staleness_cycles": float(self._config.lag)}

    def _tell(self, header: OrderHeader, snapshot: Snapshot) -> None:
        """Sends all actors an order, and before the first one how snapshots are sent."""
        if self._format is None:
            self._format = SnapshotFormat.of(snapshot)
            self._begin({"shapes": self._format.shapes})
        start = time.monotonic()
        self._number += 1
        self._asked = header._replace(number=self._number)
        self._team.comm.patient_broadcast(headed(self._asked, self._format.pack(snapshot)))
        self._clocks.telling.append(time.monotonic() - start)

    def _begin(self, said: Mapping[str, Any]) -> None:
        """Tells each actor how snapshots are sent, or that there will be none."""
        data = np.frombuffer(json.dumps(said).encode(), np.uint8)
        for rank in self._team.actors:
            self._team.comm.send(data, rank)

    def _receive(self) -> list[Data]:
        """Waits for the answer of each actor."""
        self._asked = None
        return [self._team.comm.receive(rank) for rank in self._team.actors]

    def _answers(self, form: _Format[Answer]) -> list[Answer]:
        """Waits for the answers to the last order, and returns what they hold."""
        asked, start = self._asked, time.monotonic()
        if asked is None:
            raise ValueError("collect: nothing has been ordered")
        came = self._receive()
        there = time.monotonic()
        found, headers = [], []
        for rank, data in zip(self._team.actors, came, strict=True):
            workers = self._team.workers(rank)
            with _naming(self._team.among_all(rank)):
                header = answer_in(data)
                expected = (asked.number, asked.cycle, workers.start, len(workers))
                if header[: len(expected)] != expected:
                    raise NumbersFault(
                        "answered with number, cycle, first worker and workers "
                        f"{header[: len(expected)]}, expected {expected}"
                    )
                rest = body_of(data, AnswerHeader)
                if header.fault:
                    text = rest.tobytes().decode(errors="replace")
                    raise _FAULTS.get(header.fault, MusicError)(text)
                found.append(form.unpack(rest, len(workers), header.ends))
            if header.stop:
                request_stop()
            headers.append(header)
        if asked.kind == PLAY:
            self._clocks.answered(start, there, headers)
        self._clocks.left = time.monotonic()
        return found


class Ranks(NamedTuple):
    """Who learns, and who acts for them."""

    learning: Communicator
    """Ranks that learn together."""
    actors: Actors | None = None
    """Actors of this learner; None where all ranks act and learn."""
    gpu: str | None = None
    """Name of the GPU that learns, if one does."""

    @property
    def size(self) -> int:
        """How many there are in all."""
        return self.learning.size + (0 if self.actors is None else self.actors.count)

    def described(self, config: Config) -> str:
        """Returns the line of the terminal on who learns, who acts, and on which cores."""
        actors = self.actors
        here = 0 if actors is None else actors.here
        threads = threads_per_rank(config.threads, self.learning.size, here)
        cores = f"{available_cores()} cores"
        learner = f"on {self.gpu}" if self.gpu else f"of {threads} thread(s)"
        if actors is not None:
            others = f" and {actors.hosts - 1} more host(s)" if actors.hosts > 1 else ""
            missing = here + _LEARNER_CORES - available_cores()
            crowded = f"; {missing} too few for all to work at once" if missing > 0 else ""
            return (
                f"{actors.count} actor(s) beside {self.learning.size} learner(s) {learner}, "
                f"lag {config.lag}, on {cores}{others}{crowded}"
            )
        ranks = f"{self.size} rank{'s' if self.size > 1 else ''}"
        return f"{ranks} of {cores}, " + (learner if self.gpu else f"{threads} thread(s) each")


def _joined(parts: Sequence[Episodes]) -> Episodes:
    named = [part.named() for part in parts]
    return Episodes.from_named({n: np.concatenate([one[n] for one in named]) for n in named[0]})


@contextlib.contextmanager
def _naming(rank: int) -> Iterator[None]:
    """Lets a fault say which rank it is about."""
    try:
        yield
    except MusicError as fault:
        raise type(fault)(f"rank {rank}: {fault}") from fault


@dataclasses.dataclass
class _Clocks:
    """What took how long since the metrics were taken last, as the learner sees it, in seconds."""

    telling: list[float] = dataclasses.field(default_factory=list)
    waiting: list[float] = dataclasses.field(default_factory=list)
    taking: list[float] = dataclasses.field(default_factory=list)
    played: list[float] = dataclasses.field(default_factory=list)
    waited: list[list[float]] = dataclasses.field(default_factory=list)
    """Of each cycle, by actor."""
    acting: float = 0.0
    """How long the slowest actor played in the last cycle."""
    left: float = dataclasses.field(default_factory=time.monotonic)
    """When the learner had all that it was sent last."""

    def answered(self, start: float, there: float, headers: Sequence[AnswerHeader]) -> None:
        """Notes a cycle: when the learner began to wait, and when all answers were there."""
        self.waiting.append(there - start)
        self.taking.append(time.monotonic() - there)
        played = [1e-6 * header.played_us for header in headers]
        self.acting = max(played)
        self.played.append(sum(played) / len(played))
        self.waited.append([1e-6 * header.waited_us for header in headers])

    def metrics(self) -> Metrics:
        """Returns them by their public names."""
        waited = np.sum(self.waited, axis=0)
        return {
            "time/act_s": sum(self.played),
            "time/learner_wait_s": sum(self.waiting),
            "time/actors_wait_s": float(np.mean(waited)),
            "time/actors_wait_s_max": float(np.max(waited)),
            "mpi/broadcast_ms": 1e3 * float(np.mean(self.telling)),
            "mpi/gather_ms": 1e3 * float(np.mean(self.taking)),
        }


class ActingRank:
    """A rank that plays what the learner orders, and keeps nothing that has to be saved."""

    def __init__(self, config: Config, comm: Communicator, learners: int = 1) -> None:
        """Makes the environments of its workers; every rank must do its part together.

        Raises:
            MusicError: As `make_environments`.
        """
        self._config = config
        self._team = team = Team.of(config, comm, learners)
        self._workers = team.workers(team.comm.rank)
        share = Share(len(self._workers) * config.rollouts, 0)
        self._envs = make_environments(config, comm, share)
        alone = Communicator(alone=True)
        self._collector = make_collector(config, self._envs, self._workers, alone)
        self._evaluation = Evaluation(self._envs, config, alone)
        self._whole = team.format(self._envs.spec)
        self._parts = team.format(self._envs.spec, config.collect.steps)

    def serve(self, keep: Callable[[Mapping[str, Any]], None]) -> None:
        """Plays until the learner ends the run.

        Args:
            keep: Takes what a bad number was found in.

        Raises:
            LearnerEnded: Its run did not come to a good end; it has said why.
        """
        comm, config = self._team.comm, self._config
        with longer_timeout():
            said = json.loads(comm.receive(0).tobytes())
        if "code" in said:
            self._end(said["code"])
            return
        form = SnapshotFormat(said["shapes"])
        nothing = Moments(np.empty(0, np.float32), np.empty(0, np.float32))
        inputs = NetworkInputs(nothing, nothing, config.normalizer, config.seen_condition)
        names = [name for name in form.shapes if name not in ("observation", "goal", "prior")]
        beside: dict[str, dict[str, Array]] = {ENCODER: {}, EXPLORER: {}, "": {}}
        for name in names:
            kind = next(kind for kind in beside if name.startswith(kind))
            beside[kind][name] = nothing.mean
        like = Snapshot(
            config.agent.actor,
            beside[""],
            inputs,
            encoder=beside[ENCODER],
            explorer=beside[EXPLORER],
        )
        message = np.empty(header_size(OrderHeader) + form.bytes, np.uint8)
        while True:
            start = time.monotonic()
            with longer_timeout():
                comm.patient_broadcast(message)
            order = order_in(message)
            if order.kind == END:
                break
            came, fault, ends = time.monotonic(), EXIT_DONE, 0
            try:
                snapshot = form.unpack(body_of(message, OrderHeader), like)
                body, ends = self._answer(order, snapshot)
            except MusicError as error:
                keep(getattr(error, "evidence", {}))
                body, fault = str(error).encode(), error.exit_code
            header = AnswerHeader(
                *(order.number, order.cycle, self._workers.start, len(self._workers)),
                fault=fault,
                ends=ends,
                stop=stop_requested(),
                played_us=round(1e6 * (time.monotonic() - came)),
                waited_us=round(1e6 * (came - start)),
            )
            comm.send(headed(header, body), 0)
        self._end(order.code)

    def _end(self, code: int) -> None:
        """Ends as the learner does."""
        if code != EXIT_DONE:
            raise LearnerEnded(code)

    def close(self) -> None:
        """Closes the environments; what that breaks is ignored."""
        with contextlib.suppress(*FROM_USERS):
            self._envs.close()

    def _answer(self, order: OrderHeader, snapshot: Snapshot) -> tuple[bytes, int]:
        """Returns what was ordered as it is sent, and how much came to its end."""
        if order.kind == ADAPT:
            visits = self._visit(order, snapshot)
            return visit_format(self._config).pack(visits), len(visits.returns)
        played = self._play(order, snapshot)
        form = self._whole if order.kind == EVALUATE else self._parts
        return form.pack(played), len(played.succeeded)

    def _visit(self, order: OrderHeader, snapshot: Snapshot) -> Adaptation:
        """Plays this rank's share of visits to evaluation tasks."""
        if not isinstance(self._collector, TaskCollector):
            raise NumbersFault("asked for visits to tasks, and there is one task")
        tasks, part = self._collector.tasks, TaskSets._fields[order.part]
        adaptation = MetaEvaluation(self._envs, self._config, Communicator(alone=True), tasks)
        count = len(getattr(tasks, part)) * order.episodes
        mine = self._team.visited(self._team.comm.rank, count)
        return adaptation.play_some(snapshot, part, order.episodes, mine)

    def _play(self, order: OrderHeader, snapshot: Snapshot) -> Collected:
        """Plays a cycle, or this rank's rows of each batch of evaluation episodes."""
        if order.kind == EVALUATE:
            mine = self._team.evaluated(self._team.comm.rank, order.episodes)
            policy, together = policy_of(snapshot), self._team.together
            evaluation = self._evaluation._replace(world=order.world)
            played = evaluation.play_some(policy, mine, together)
            counts = [len(mine), *[0] * (len(self._workers) - 1)]
            return Collected(played, counts, np.zeros(0, np.bool_))
        if order.begins_epoch:
            self._collector.begin_epoch()
        at_random, initial = bool(order.at_random), bool(order.initial)
        self._collector.order(Order(order.cycle, snapshot, at_random, order.world, initial))
        return self._collector.collect()
