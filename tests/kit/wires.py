"""A learner and its actors in the threads of one process, which meet without MPI."""

import contextlib
import queue
import threading

from music_tf.distributed import Communicator
from music_tf.errors import LearnerEnded, RankLost
from music_tf.training.acting_rank import ActingRank
from music_tf.training.actors import Actors

SECONDS = 60.0


class Wires(Communicator):  # one of several ranks; `change(rank, data)` may spoil what it sends
    def __init__(self, rank, between, change=None):
        self._meet = lambda number: None  # others are not there yet
        super().__init__(alone=True)
        self.rank, self.size = rank, between.size
        self.hosts, self.numbers = ["here"] * between.size, range(between.size)
        self.processes = [0] * between.size
        self._between, self._change = between, change

    def group(self, role):
        del role
        return self

    def allgather(self, value):
        self._between.told[self.rank] = value
        self._between.meeting.wait(SECONDS)
        found = list(self._between.told)
        self._between.meeting.wait(SECONDS)
        return found

    def patient_barrier(self):
        self._between.meeting.wait(SECONDS)

    def begin_send(self, data, to):
        if to in self._between.lost:
            raise RankLost(f"rank {to} was lost")
        if self._change is not None:
            data = self._change(self.rank, data)
        self._between.posts[self.rank, to].put(data.copy())
        return lambda wait=True: True

    def receive(self, source):
        return self._between.posts[source, self.rank].get(timeout=SECONDS).copy()

    def received(self, source):
        if source in self._between.lost:
            raise RankLost(f"rank {source} was lost")
        with contextlib.suppress(queue.Empty):
            return self._between.posts[source, self.rank].get(timeout=0.001).copy()


class Between:  # what lies between ranks
    def __init__(self, size):
        self.size = size
        self.told = [None] * size
        self.meeting = threading.Barrier(size)
        ranks = range(size)
        self.lost = set()  # ranks that the learner hears nothing of any more
        self.posts = {(one, other): queue.Queue() for one in ranks for other in ranks}


@contextlib.contextmanager
def actors_of(config, count, change=None):
    """The learner's `Actors`, with `count` of them that act in threads until the block ends."""
    between, codes = Between(1 + count), []

    def act(rank):
        try:
            ActingRank(config, Wires(rank, between, change)).serve(lambda evidence: None)
            codes.append(0)
        except LearnerEnded as ended:
            codes.append(ended.exit_code)

    threads = [threading.Thread(target=act, args=[rank]) for rank in range(1, 1 + count)]
    for thread in threads:
        thread.start()
    try:
        with Actors(config, Wires(0, between)) as actors:
            actors.codes, actors.between = codes, between
            yield actors
    finally:
        for thread in threads:
            thread.join(SECONDS)
