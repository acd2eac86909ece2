"""Who plays which share of the workers: sends orders to actors, and goes on when one is lost.

A share is a fixed part of the workers, of evaluation episodes and of visits, one for each actor at
the start. Actors hold no state that is saved, so another one can play a share of the lost one in
its environments, after its own, with the same bits.
"""

import contextlib
import dataclasses
import logging
import math
import time
import zlib
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from music_tf.config.settings import Config
from music_tf.errors import RankLost
from music_tf.process.launcher import KILL, is_elastic, note
from music_tf.training.messages import END, Data, OrderHeader, head_of
from music_tf.training.team import Team

SHORTEST_LIMIT_S, SLOWER = 60.0, 4.0
"""An actor hangs after so many times the slowest answer to an order of its kind."""
_KILLED_WITHIN_S = 15.0
_PAUSED_S, _SENT_WITHIN_S = 2.0, 1.0
_LOOK_S = 2e-4
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass
class _Actor:
    rank: int
    """Within the team."""
    plays: list[int]
    owes: list[int] = dataclasses.field(default_factory=list)
    """Shares whose answers have not come, in the order in which they will."""
    since: float = 0.0
    """Time of the last answer, or of the order."""
    gone_by: float = math.inf
    """Time by which the launcher has killed it."""


class Crew:
    """The actors of a learner that are left."""

    def __init__(self, team: Team, config: Config) -> None:
        self._comm, self._shares, self._config = team.comm, team.actors, config
        self.left = [_Actor(rank, [rank]) for rank in team.actors]
        self.epoch = 0
        self.losses: list[dict[str, Any]] = []
        """Rank among all, host, epoch, and seconds of waiting in vain, of each lost actor."""
        self.order: OrderHeader | None = None
        """The order whose answers have not been taken."""
        self._asked: list[int] = []
        self._waits = 0.0
        """Time at which this process began to wait, or to send."""
        self._body, self._checked = np.zeros(0, np.uint8), 0
        self._slowest: dict[int, float] = {}
        """Seconds, by kind of order."""
        self._sending: list[Callable[..., bool]] = []

    def send(self, order: OrderHeader, body: bytes) -> None:
        """Begins to send an order for every share, but to each actor that it ends; as `receive`."""
        self.order, self._body = order, np.frombuffer(body, np.uint8)
        self._checked = zlib.crc32(body)
        self._waits = time.monotonic()
        ends = [actor.plays[0] for actor in self.left]
        self._asked = ends if order.kind == END else list(self._shares)
        for share in tuple(self._asked):  # whose actors change when one is lost on the way
            self._hand(share, next(actor for actor in self.left if share in actor.plays))
        while not self._all_sent() and time.monotonic() < self._waits + _SENT_WITHIN_S:
            time.sleep(_LOOK_S)  # MPI moves long messages in calls alone; one that hangs takes none

    def receive(self) -> list[tuple[int, Data]]:
        """Waits for the answers to the last order: by share, the rank that played, and its answer.

        Raises:
            RankLost: None is left to play, or what a lost actor had begun cannot be repeated.
        """
        answers: dict[int, tuple[int, Data]] = {}
        looked = self._waits = time.monotonic()
        while len(answers) < len(self._asked):
            waiting = [actor for actor in self.left if actor.owes]
            before, looked = looked, time.monotonic()
            if looked - before > _PAUSED_S:  # this process stood still, perhaps with all others
                for actor in waiting:
                    actor.since = looked
            if not sum(self._take(actor, answers) for actor in waiting):
                self._end_hanging(waiting)
                time.sleep(_LOOK_S)
        while not self._all_sent():
            time.sleep(_LOOK_S)
        self.order = None
        return [answers[share] for share in self._asked]

    def _all_sent(self) -> bool:
        """Whether all messages have come, but for those to actors that are lost."""
        left, self._sending = self._sending, []
        for finish in left:
            with contextlib.suppress(RankLost):
                if not finish(wait=False):
                    self._sending.append(finish)
        return not self._sending

    def _take(self, actor: _Actor, answers: dict[int, tuple[int, Data]]) -> bool:
        """Takes the answer of an actor; False if none has come."""
        try:
            answer = self._comm.received(actor.rank)
        except RankLost:
            self._lose(actor)
            return True
        if answer is None:
            return False
        answers[actor.owes.pop(0)] = actor.rank, answer
        self._answered(actor)
        actor.since = time.monotonic()
        return True

    def _answered(self, actor: _Actor) -> None:
        """Notes how long an order of this kind may take."""
        kind, seconds = cast(OrderHeader, self.order).kind, time.monotonic() - actor.since
        self._slowest[kind] = max(self._slowest.get(kind, 0.0), seconds)

    def _hand(self, share: int, actor: _Actor) -> None:
        """Begins to send the order for a share to the actor that plays it."""
        if not actor.owes:
            actor.since = time.monotonic()
        actor.owes.append(share)
        order = cast(OrderHeader, self.order)._replace(share=share)
        head = np.frombuffer(head_of(order, self._checked), np.uint8)
        try:
            for part in (head, self._body):
                self._sending.append(self._comm.begin_send(part, actor.rank))
        except RankLost:
            self._lose(actor)

    def _lose(self, actor: _Actor) -> None:
        """Deals the shares of a lost actor to those that are left, which play what it owes."""
        if actor not in self.left:
            return
        self.left.remove(actor)
        rank, host = self._comm.numbers[actor.rank], self._comm.hosts[actor.rank]
        seconds = round(time.monotonic() - max(actor.since, self._waits), 3)
        self.losses.append({"rank": rank, "host": host, "epoch": self.epoch, "seconds": seconds})
        text, reason = f"rank {rank} on {host}, an actor, was lost", ""
        if self.order is not None and self.order.kind == END:
            self._asked = [share for share in self._asked if share not in actor.owes]
            return
        if not self.left:
            reason = "no other actor of its learner is left"
        elif self._config.collect.steps is not None:
            reason = "with it episodes that go on beyond a cycle"
        if reason:
            self.order = None
            raise RankLost(f"{text}, and {reason}")
        _LOGGER.warning("%s; actors that go on: %d", text, len(self.left))
        for share in actor.plays:
            heir = min(self.left, key=lambda each: len(each.plays))
            heir.plays.append(share)
            if share in actor.owes:
                self._hand(share, heir)

    def _end_hanging(self, waiting: list[_Actor]) -> None:
        """Lets the launcher kill actors that hang while others answer.

        MPI loses no rank that is only stopped, as by SIGSTOP: its own watchdog is stopped with it.
        """
        now, limit = time.monotonic(), self._config.hang_after
        if not is_elastic() or len(waiting) == len(self.left) or math.isinf(limit):
            return  # all are slow alike; the learner's watchdog ends a job that stands still
        kind = cast(OrderHeader, self.order).kind
        if kind in self._slowest:
            limit = min(limit, max(SHORTEST_LIMIT_S, SLOWER * self._slowest[kind]))
        for actor in waiting:
            number = self._comm.numbers[actor.rank]
            if now > actor.gone_by:
                raise RankLost(f"rank {number}, an actor, hangs and could not be killed")
            if now - actor.since > limit and math.isinf(actor.gone_by):
                _LOGGER.warning("rank %d has not answered for %.0f s: it is killed", number, limit)
                note(KILL, number, self._comm.processes[actor.rank])
                actor.gone_by = now + _KILLED_WITHIN_S
                self._answered(actor)  # whoever plays its share may be as slow
