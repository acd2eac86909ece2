"""A learner in numpy under the real trainer, and faults that strike where they are told to."""

import ctypes
import functools
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np

from music_tf.agents.base import Phase
from music_tf.process.launcher import launched_rank
from music_tf.process.watchdog import heartbeat
from music_tf.training import update
from tests.kit.jobs import VARIABLE

_STEP_SIZE = 0.01


class Linear:  # a policy that is linear in its inputs
    name = "actor"
    weight_names = ("actor/kernel", "actor/bias")
    learning_rate = _STEP_SIZE

    def __init__(self, inputs, actions, seed):
        self.shapes = [(inputs, actions), (actions,)]
        self.initial = 0.1 * seed.standard_normal((inputs + 1) * actions).astype(np.float32)
        self.size = len(self.initial)


class Learner:  # imitates the actions that replay holds: enough for weights that every step moves
    entropy_weight = ((0.0, 0.0),)
    encoder = None

    def __init__(self, network):
        self.networks = self.target_networks = [network]
        self.phases = [Phase(None, (network.name,))]

    def draws(self, generators, updates, batch_size):
        return {}

    def feed(self, replay, inputs, updates, cycle):
        return {}


class Update(update.Update):
    """Gradient descent in numpy where TensorFlow takes the updates of a part."""

    def _take(self, feed, schedules, early):
        rows = []
        for inputs, actions in zip(feed.inputs, feed.transitions.action, strict=True):
            kernel, bias = self.actor_weights().values()
            error = np.tanh(inputs @ kernel + bias) - actions  # [W, B, A]
            own = np.concatenate(
                [np.einsum("wbi,wba->ia", inputs, error).ravel(), error.sum(axis=(0, 1))]
            ).astype(np.float32)
            total = np.empty_like(own)
            self._comm.sum_into(own, total)
            heartbeat()
            self.parameters -= self._learning_rate * total / (self._workers * actions.shape[1])
            for count in (self.step, *self._phase_steps):
                count.assign(count + 1)
            loss = np.square(error).mean() * len(actions) / self._workers
            rows.append([loss, np.linalg.norm(total) / self._comm.size])
        names = [("train/critic_loss", 1), ("train/grad_norm", 1)]
        self._names[frozenset(feed.terms), early] = names, []
        return [np.array(rows), *np.zeros((2, len(rows), 0))]

    def weights(self):
        return {}


def install():
    """Puts the learner in its place, and a fault if the environment of the process names one."""
    from music_tf.training import build

    words = json.loads(os.environ.get(VARIABLE, "{}"))
    fault = Fault(**words) if words else None
    if fault:
        fault.arm("import")
    build.Update = Update
    build.build_terms = lambda config, envs, comm: []
    build.build_learner = _build_learner
    if fault:
        fault.install()


def _build_learner(config, spec, terms):
    from music_tf.randomness import stream

    inputs = spec.observation_dim + config.skills + spec.goal_dim
    return Learner(Linear(inputs, spec.action_dim, stream(config.seed, "initial weights/agent")))


class Fault:  # strikes one rank from one call of one phase on, or at that call alone
    def __init__(self, phase, how, rank=-1, after=0, mark="", once=False):
        self._phase, self._how, self._rank = phase, how, rank
        self._left = after
        self._mark = mark
        self._once = once

    def install(self):  # hooks into the functions of the library that a phase consists of
        from music_tf import rollout
        from music_tf.envs import lockstep
        from music_tf.runs import progress
        from music_tf.storage import checkpoint
        from music_tf.training import evaluation

        places = {
            "make": (lockstep.LockstepEnvs, "__init__"),
            "rollout": (rollout, "play"),
            "update": (Update, "run_parts"),
            "eval": (evaluation.Evaluation, "play"),
            "save": (checkpoint.Checkpoints, "save"),
            "log": (progress.Progress, "epoch"),
            "write": (checkpoint.Checkpoints, "_commit"),
        }
        if self._phase not in places:
            return
        owner, name = places[self._phase]
        original = getattr(owner, name)

        @functools.wraps(original)
        def struck(*arguments, **named):
            self.arm(self._phase, arguments)
            return original(*arguments, **named)

        setattr(owner, name, struck)

    def arm(self, phase, arguments=()):  # strikes if this is the phase, the rank and the call
        if phase != self._phase or self._rank not in (-1, launched_rank()):
            return
        self._left -= 1
        if self._left < -1 and self._once:
            return
        if self._left < 0:
            if self._mark:
                Path(self._mark).touch()
            _WAYS[self._how](*arguments[:1])


def _raise(*_):
    raise RuntimeError("a fault was injected")


def _grow(*_):  # asks for more memory than the process may have
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    np.ones(2**40)


def _one_ulp(learning):  # moves one weight by the smallest step there is
    flat = learning.parameters
    flat[3] = np.nextafter(flat[3], np.float32(np.inf))


def _bad(learning):  # makes one weight no number
    learning.parameters[3] = np.nan


def _day(sign):  # sets this process's wall clock a day forth or back
    now = time.time

    def jump(*_):
        time.time = lambda: now() + sign * 86400.0

    return jump


_WAYS = {
    **{"raise": _raise, "sys.exit(3)": lambda *_: sys.exit(3)},
    **{"os._exit(7)": lambda *_: os._exit(7), "segfault": lambda *_: ctypes.string_at(0)},
    **{"memory": _grow, "killed": lambda *_: os.kill(os.getpid(), signal.SIGKILL)},
    **{"hang": lambda *_: time.sleep(1e6), "linger": lambda *_: time.sleep(3.0)},
    **{"slow": lambda *_: time.sleep(0.2), "ulp": _one_ulp, "nan": _bad, "tomorrow": _day(1.0)},
    "yesterday": _day(-1.0),
}
