"""Faults of a rank that only acts, which loads no stand-in: `tests.faults.acting:Acting/WAY-v0`.

They strike the second rank once, at the first call of a way in its sixth cycle.
"""

import os
import sys

import gymnasium
import numpy as np

from music_tf.envs.toys import PointPush
from music_tf.networks.acting import Snapshot
from music_tf.training import messages

RANK = "1"
CYCLE = 5


def strike(way):  # hooks into what an actor does with an order
    header_in, act, body_of = messages.header_in, Snapshot.act, messages.body_of
    left = {"cycles": 0, "strikes": 1}

    def noted(message, kind):
        order = header_in(message, kind)
        left["cycles"] = int(order.kind == messages.PLAY and order.cycle == CYCLE)
        return order

    def strikes(name):
        if way != name or not (left["cycles"] and left["strikes"]):
            return False
        left["strikes"] = 0
        return True

    def acted(self, *arguments):
        result = act(self, *arguments)
        if strikes("action"):
            result[0] = np.nan
        return result

    def came(message, kind):
        if strikes("weights"):
            message = message.copy()
            numbers = message.view("<f4")
            numbers[-1] = np.nextafter(numbers[-1], np.float32(np.inf))
        return body_of(message, kind)

    messages.header_in, Snapshot.act, messages.body_of = noted, acted, came


class Acting(PointPush):
    struck = False

    def __init__(self, way, render_mode=None):
        super().__init__(render_mode=render_mode)
        acts = os.environ.get("OMPI_COMM_WORLD_RANK") == RANK and "tensorflow" not in sys.modules
        if acts and not Acting.struck:
            Acting.struck = True
            strike(way)


WAYS = ("action", "weights")
for name in WAYS:
    gymnasium.register(
        f"Acting/{name}-v0", f"{__name__}:Acting", max_episode_steps=30, kwargs={"way": name}
    )
