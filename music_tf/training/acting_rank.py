"""An actor: a rank that plays what the learner orders, with numpy alone."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.errors import EXIT_DONE, FROM_USERS, LearnerEnded, MusicError, NumbersFault
from music_tf.networks.acting import (
    Moments,
    NetworkInputs,
    Snapshot,
    SnapshotPolicy,
    empty_snapshot,
)
from music_tf.process.signals import stop_requested
from music_tf.process.watchdog import let_others_go_on, longer_timeout
from music_tf.training import messages
from music_tf.training.adaptation import Adaptation, MetaEvaluation
from music_tf.training.collect import Collected, Order, make_collector, make_environments
from music_tf.training.evaluation import Evaluation
from music_tf.training.memory import Share
from music_tf.training.tasks import TaskCollector, TaskSets
from music_tf.training.team import Team, visit_format


class ActingRank:
    """A rank that plays what the learner orders; an actor has no state that is saved."""

    def __init__(self, config: Config, comm: Communicator, learners: int = 1) -> None:
        self._config = config
        self._team = team = Team.of(config, comm, learners)
        workers = len(team.workers(team.comm.rank))
        self._envs = make_environments(config, comm, Share(workers * config.rollouts, 0))
        alone = Communicator(alone=True)
        self._collector = make_collector(config, self._envs, team.workers(team.comm.rank), alone)
        self._evaluation = Evaluation(self._envs, config, alone)
        self._whole = team.format(self._envs.spec)
        self._parts = team.format(self._envs.spec, config.collect.steps)

    def serve(self, keep: Callable[[Mapping[str, Any]], None]) -> None:
        """Plays until the learner ends the run; `keep` stores arrays that are not finite."""
        comm, order = self._team.comm, messages.OrderHeader(messages.BEGIN)
        sending: list[Callable[..., bool]] = []
        let_others_go_on()
        while order.kind != messages.END:
            start = time.monotonic()
            with longer_timeout():
                order = messages.header_in(head := comm.receive(0), messages.OrderHeader)
                message = np.concatenate([head, comm.receive(0)])
            workers = self._team.workers(order.share)
            came, fault, ends = time.monotonic(), EXIT_DONE, 0
            try:
                answer, ends = self._answer(order, messages.body_of(message, messages.OrderHeader))
            except MusicError as error:
                keep(getattr(error, "evidence", {}))
                answer, fault = str(error).encode(), error.exit_code
            header = messages.AnswerHeader(
                *(order.number, order.cycle, workers.start, len(workers)),
                fault=fault,
                ends=ends,
                stop=stop_requested(),
                played_us=round(1e6 * (time.monotonic() - came)),
                waited_us=round(1e6 * (came - start)),
            )
            with longer_timeout():  # the learner may compile or save before it receives
                for finish in sending:
                    finish()
                sending = [comm.begin_send(messages.headed(header, answer), 0)]
        sending[0]()
        if order.code != EXIT_DONE:
            raise LearnerEnded(order.code)

    def close(self) -> None:
        with contextlib.suppress(*FROM_USERS):
            self._envs.close()

    def _answer(self, order: messages.OrderHeader, body: messages.Data) -> tuple[bytes, int]:
        """Returns the packed answer to an order, and its number of finished episodes or visits."""
        if order.kind == messages.END:
            return b"", 0
        if order.kind == messages.BEGIN:
            self._format = messages.SnapshotFormat(json.loads(body.tobytes()))
            nothing, config = Moments(*np.empty((2, 0), np.float32)), self._config
            inputs = NetworkInputs(nothing, nothing, config.normalizer, config.seen_condition)
            self._like = empty_snapshot(config.agent.actor, self._format.shapes, inputs)
            return b"", 0
        self._collector.workers = self._team.workers(order.share)
        snapshot = self._format.unpack(body, self._like)
        if order.kind == messages.ADAPT:
            visits = self._visit(order, snapshot)
            return visit_format(self._config).pack(visits), len(visits.returns)
        played = self._play(order, snapshot)
        form = self._whole if order.kind == messages.EVALUATE else self._parts
        return form.pack(played), len(played.succeeded)

    def _visit(self, order: messages.OrderHeader, snapshot: Snapshot) -> Adaptation:
        if not isinstance(self._collector, TaskCollector):
            raise NumbersFault("asked for visits to tasks, and there is one task")
        tasks, part = self._collector.tasks, TaskSets._fields[order.part]
        adaptation = MetaEvaluation(self._envs, self._config, Communicator(alone=True), tasks)
        mine = self._team.visited(order.share, len(getattr(tasks, part)) * order.episodes)
        return adaptation.play_some(snapshot, part, order.episodes, mine)

    def _play(self, order: messages.OrderHeader, snapshot: Snapshot) -> Collected:
        if order.kind == messages.EVALUATE:
            mine = self._team.evaluated(order.share, order.episodes)
            policy, together = SnapshotPolicy(snapshot), self._team.together
            evaluation = self._evaluation._replace(world=order.world)
            played = evaluation.play_some(policy, mine, together)
            counts = [len(mine), *[0] * (len(self._team.workers(order.share)) - 1)]
            return Collected(played, counts, np.zeros(0, np.bool_))
        if order.begins_epoch:
            self._collector.begin_epoch()
        at_random, initial = bool(order.at_random), bool(order.initial)
        self._collector.order(Order(order.cycle, snapshot, at_random, order.world, initial))
        return self._collector.collect()
