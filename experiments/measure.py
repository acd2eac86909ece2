"""Takes one measurement of `benchmark.py`: `python experiments/measure.py NAME OUT.json SIZES`.

Each measurement has its own process, since TensorFlow fixes its threads once per process.
"""
# ruff: noqa: E402 - TensorFlow reads the environment when it is imported

import itertools
import json
import math
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from music_tf.process.launcher import launched_rank
from music_tf.process.tensorflow_start import limit_threads, prepare_tensorflow
from music_tf.process.watchdog import heartbeat, watchdog

prepare_tensorflow()

import gymnasium
import mujoco
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.config.fields import with_fields
from music_tf.config.names import CHEETAH_VELOCITY
from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import import_robotics
from music_tf.intrinsic.base import RewardTerm
from music_tf.losses.neighbours import kth_nearest
from music_tf.networks.parameters import Layout, compiled
from music_tf.recipes import resolve
from music_tf.training.adam import AdamState, adam_step
from music_tf.training.build import build_terms, build_trainer
from music_tf.training.feeds import as_tensor
from music_tf.training.trainer import Trainer
from music_tf.training.update import DESYNC_INTERVAL
from music_tf.types import Array, all_finite

ENV_ID = "FetchPush-v4"
SUBSTEPS = 20
_PEAK_SECONDS = 0.3
_CHECKS_PER_STEP = 8
"""Checks for finite numbers in a step: actions, simulator's state, rewards and observations."""
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION

Sizes = Mapping[str, Any]
"""Amounts of work of measurements, see `benchmark.Sizes`."""


class Recording(NamedTuple):
    """The simulator, and its states before each step of an episode."""

    model: Any
    data: Any
    states: list[npt.NDArray[np.float64]]


def simulation(sizes: Sizes) -> dict[str, float]:
    """Plays the same episodes of random actions with our environment, Gymnasium's, and mj_step.

    Returns:
        Steps per second; those of environments include resets.
    """
    import_robotics()
    envs = LockstepEnvs(ENV_ID, 1)
    environment = gymnasium.make(ENV_ID)
    generator = np.random.default_rng(0)
    shape = (envs.spec.max_episode_steps, envs.spec.action_dim)

    def play_ours(seed: int, actions: Array) -> None:
        envs.reset([0], [seed])
        for action in actions:
            envs.step(action[None], [0])

    def play_theirs(seed: int, actions: Array) -> None:
        environment.reset(seed=seed)
        for action in actions:
            environment.step(action)

    seconds = np.zeros(3)
    for seed in range(sizes["env_episodes"] + 1):
        actions = generator.uniform(-1.0, 1.0, shape).astype(np.float32)
        recording = record(envs, seed, actions)
        ours, theirs = _seconds(play_ours, seed, actions), _seconds(play_theirs, seed, actions)
        if seed > 0:  # the first episode warms up
            seconds += [ours, theirs, step_physics(recording)]
    environment.close()
    envs.close()
    ours, theirs, physics = sizes["env_episodes"] * shape[0] / seconds
    return {
        "env_steps_per_s": float(ours),
        "gymnasium_steps_per_s": float(theirs),
        "mj_step_per_s": float(physics),
    }


def _seconds(action: Callable[..., Any], *arguments: Any) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def record(envs: LockstepEnvs, seed: int, actions: Array) -> Recording:
    """Plays an episode in our environment and records the state before each mj_step."""
    states: list[npt.NDArray[np.float64]] = []
    seen: list[Any] = []
    original = mujoco.mj_step

    def step(model: Any, data: Any, nstep: int = 1) -> None:
        state = np.empty(mujoco.mj_stateSize(model, _STATE))
        mujoco.mj_getState(model, data, state, _STATE)
        states.append(state)
        seen[:] = model, data
        original(model, data, nstep=nstep)

    envs.reset([0], [seed])
    mujoco.mj_step = step
    try:
        for action in actions:
            envs.step(action[None], [0])
    finally:
        mujoco.mj_step = original
    return Recording(seen[0], seen[1], states)


def step_physics(recording: Recording) -> float:
    """Returns the seconds inside mj_step alone, over the recorded states."""
    model, data, states = recording
    seconds = 0.0
    for state in states:
        mujoco.mj_setState(model, data, state, _STATE)
        seconds += _seconds(partial(mujoco.mj_step, nstep=SUBSTEPS), model, data)
    return seconds


class MatrixPeak:
    """The highest rate of square float32 products seen so far, by TensorFlow or numpy."""

    def __init__(self, sizes: Sequence[int], threads: int) -> None:
        """Makes matrices of these sizes and multiplies each once, untimed.

        TensorFlow multiplies a pair on each of its threads in parallel; numpy splits one pair among
        its threads.
        """
        generator = np.random.default_rng(0)
        self.flop_per_s = 0.0
        self._pairs = [generator.standard_normal((2, n, n), np.float32) for n in sizes]
        self._threads = threads
        self._tensors = [[tf.constant(pair) for _ in range(threads)] for pair in self._pairs]
        self._product = compiled(lambda pairs: [tf.matmul(pair[0], pair[1]) for pair in pairs])
        for pair in self._tensors:
            self._product(pair)

    def look(self) -> None:
        """Multiplies each size for a moment in both libraries, and keeps the fastest product."""
        for pair, tensors in zip(self._pairs, self._tensors, strict=True):
            flop = 2.0 * pair.shape[1] ** 3
            numpy_product = partial(np.matmul, pair[0], pair[1], out=np.empty_like(pair[0]))
            end = time.perf_counter() + _PEAK_SECONDS / len(self._pairs)
            while time.perf_counter() < end:
                by_tensorflow = self._threads * flop / _seconds(self._product, tensors)
                by_numpy = flop / _seconds(numpy_product)
                self.flop_per_s = max(self.flop_per_s, by_tensorflow, by_numpy)


class LoneRank(Communicator):
    """One process that calls every reduction, as several ranks do."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 2


def configuration(recipe: str, sizes: Sizes, changes: Mapping[str, object]) -> Config:
    """Returns a recipe on FetchPush with the sizes of networks and batches for comparisons."""
    fixed = {
        "workers": 1,
        "rollouts": 2,
        "updates": sizes["updates"],
        "agent.hidden_sizes": tuple(sizes["hidden"]),
        "replay.batch_size": sizes["batch"],
    }
    config = resolve(recipe, env_id=ENV_ID)
    if "music" in config.rewards:
        fixed["music.trajectories"] = sizes["trajectories"]
    return with_fields(config, {**fixed, **changes})


def filled_trainer(config: Config, sizes: Sizes, comm: Communicator) -> Trainer:
    """Returns a trainer with episodes of its initial policy in replay and in the normalisers."""
    trainer = build_trainer(config, comm)
    for cycle in range(sizes["stored_episodes"] // config.rollouts):
        trainer.counters.cycle = cycle
        trainer.collect()
    return trainer


def learn(trainer: Trainer) -> None:
    """Takes all updates of a cycle, from sampling to targets."""
    trainer.update.run(trainer.feed(), trainer.schedules())


def updates_per_s(
    trainer: Trainer,
    sizes: Sizes,
    peak: MatrixPeak | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Times the learning half of training cycles."""
    learn(trainer)  # compiles
    seconds = 0.0
    for _ in range(sizes["rounds"]):
        if peak is not None:
            peak.look()
        trainer.counters.cycle += 1
        start = clock()
        learn(trainer)
        seconds += clock() - start
    return float(sizes["rounds"] * sizes["updates"] / seconds)


def update(sizes: Sizes, threads: int) -> dict[str, float]:
    """Measures DDPG with hindsight against the matrix-multiply peak of the same process."""
    limit_threads(threads)
    peak = MatrixPeak(sizes["matrices"], threads)
    config = configuration("ddpg_her", sizes, {"agent.critics": 1, "threads": threads})
    rate = updates_per_s(filled_trainer(config, sizes, Communicator()), sizes, peak)
    return {"updates_per_s": rate, "peak_flop_per_s": peak.flop_per_s}


def critics(sizes: Sizes) -> dict[str, float]:
    """Measures updates with two critics, with layer norm, and with five, in processor time.

    They take turns, so that a slow minute slows all of them.
    """
    limit_threads(1)
    kinds: dict[str, dict[str, object]] = {
        "two_ms": {},
        "normalized_ms": {"agent.layer_norm": True},
        "five_ms": {"agent.critics": 5, "agent.target_critics": 2},
    }
    trainers, seconds = {}, dict.fromkeys(kinds, 0.0)
    for name, changes in kinds.items():
        config = configuration("ddpg_her", sizes, {"agent.critics": 2, "threads": 1, **changes})
        trainers[name] = filled_trainer(config, sizes, Communicator())
        learn(trainers[name])  # compiles
    for _, (name, trainer) in itertools.product(range(sizes["rounds"]), trainers.items()):
        trainer.counters.cycle += 1
        start = time.process_time()
        learn(trainer)
        seconds[name] += time.process_time() - start
    updates = sizes["rounds"] * sizes["updates"]
    return {name: 1e3 * spent / updates for name, spent in seconds.items()}


def meta(sizes: Sizes) -> dict[str, float]:
    """Measures PEARL against the matrix-multiply peak of the same process, in processor time."""
    limit_threads(1)
    peak = MatrixPeak(sizes["matrices"], 1)
    changes = {
        **{"workers": 1, "threads": 1, "updates": sizes["updates"], "env.max_episode_steps": 200},
        **{"replay.batch_size": sizes["meta_rows"], "tasks.train": 4, "tasks.initial": 1},
    }
    config = with_fields(resolve("sac_pearl", env_id=CHEETAH_VELOCITY), changes)
    trainer = build_trainer(config, Communicator())
    trainer.collect()
    rate = updates_per_s(trainer, sizes, peak, time.process_time)
    return {"updates_per_s": rate, "peak_flop_per_s": peak.flop_per_s}


def ours(sizes: Sizes, recipe: str) -> dict[str, float]:
    """Measures a recipe whose targets move at every update, as those of Stable-Baselines3."""
    limit_threads(sizes["compared_threads"])
    config = configuration(recipe, sizes, {"agent.polyak_every": "update"})
    trainer = filled_trainer(config, sizes, Communicator())
    return {"updates_per_s": updates_per_s(trainer, sizes)}


def music(sizes: Sizes) -> dict[str, float]:
    """Measures an update of the statistics network, and one of policy and statistics network."""
    limit_threads(1)
    config = configuration("ddpg_music", sizes, {"workers": 2, "threads": 1})
    trainer = filled_trainer(config, sizes, LoneRank())
    rate = updates_per_s(trainer, sizes)
    take = updates_of(build_terms(config, trainer.envs)[0])
    seconds = 0.0
    for cycle in range(sizes["rounds"] + 1):
        start = time.perf_counter()
        feed = trainer.terms[0].feed(trainer.replay, sizes["updates"], cycle)
        tensors = tf.nest.map_structure(tf.convert_to_tensor, feed)
        for index in range(sizes["updates"]):
            take(tensors, tf.constant(index))
        if cycle > 0:  # the first one compiles
            seconds += time.perf_counter() - start
    alone = seconds / (sizes["rounds"] * sizes["updates"])
    return {"mi_update_ms": 1e3 * alone, "pair_update_ms": 1e3 / rate}


def feeding(sizes: Sizes) -> dict[str, float]:
    """Measures the feed of all updates of a worker's cycle: drawing, relabelling, conversion."""
    limit_threads(1)
    times = {}
    for recipe in ("ddpg_her", "ddpg_music"):
        config = configuration(recipe, sizes, {"threads": 1})
        trainer = filled_trainer(config, sizes, Communicator())
        seconds = [_seconds(fed, trainer) for _ in range(sizes["rounds"] + 1)][1:]
        times[f"{recipe}_ms"] = 1e3 * statistics.median(seconds)
    return times


def neighbours(sizes: Sizes) -> dict[str, float]:
    """Measures the time that the reward of incremental skills adds to an update, in processor time.

    It is the minimum over rounds, since other processes on the same core can only add to it.
    """
    limit_threads(1)
    batch, rows = sizes["batch"], 2 * sizes["batch"]
    generator = np.random.default_rng(0)
    query, *each = (
        tf.constant(generator.standard_normal([1, count, 3]), tf.float32)
        for count in (batch, rows, rows)
    )
    times = {}
    for k in (3, 5):

        def distances(k: int = k) -> list[tf.Tensor]:
            return [kth_nearest(query, known_rows, k) for known_rows in each]

        measure_distances = compiled(distances)
        measure_distances()
        counts = {"number": sizes["updates"], "repeat": sizes["rounds"]}
        seconds = timeit.repeat(measure_distances, timer=time.process_time, **counts)
        times[f"k{k}_ms"] = 1e3 * min(seconds) / sizes["updates"]
    return times


def one_by_one(sizes: Sizes) -> dict[str, float]:
    """Measures a whole run of incremental skills on a toy with compilation, in processor time."""
    limit_threads(1)
    each = tuple(sizes["skill_epochs"])
    changes = {"skills": len(each), "epochs": sum(each), "incremental.epochs": each, "threads": 1}
    config = with_fields(resolve("sac_disk"), changes)
    start = time.process_time()
    trainer = build_trainer(config, Communicator())
    for _ in range(config.epochs):
        trainer.run_epoch(lambda done: False)
    return {"seconds": time.process_time() - start}


def fed(trainer: Trainer) -> Any:
    """Returns the feed of a cycle as tensors on the device of the updates."""
    return tf.nest.map_structure(as_tensor, trainer.feed())


def updates_of(term: RewardTerm) -> Callable[[Mapping[str, Any], tf.Tensor], None]:
    """Returns the update of a reward term without a policy: its loss, gradient and Adam step."""
    layout = Layout(list(term.networks))
    initial = layout.initial()
    parameters, moments, step = tf.Variable(initial), AdamState.zeros(initial), tf.Variable(0.0)
    rates = tf.constant(layout.learning_rates())

    def take(feed: Mapping[str, Any], index: tf.Tensor) -> None:
        now = {name: values[index] for name, values in feed.items()}
        flat = tf.convert_to_tensor(parameters)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(flat)
            loss, _ = term.loss(layout.split(flat), now)
        adam_step(parameters, tape.gradient(loss, flat), moments, step.assign_add(1.0), rates)

    learned: Callable[[Mapping[str, Any], tf.Tensor], None] = compiled(take)
    return learned


def warm_trainer(comm: Communicator, sizes: Sizes) -> Trainer:
    """Returns DDPG with hindsight, a worker per rank, after some cycles; ranks call it together."""
    limit_threads(1)
    alike = {"workers": comm.size, "threads": 1, "agent.critics": 1}
    config = configuration("ddpg_her", sizes, alike)
    trainer = build_trainer(config, comm)
    for _ in range(sizes["warm_cycles"]):
        trainer.run_cycle()
    return trainer


class TimedCommunicator(Communicator):
    """Sums the seconds in collectives, waiting included; none of them calls another."""

    spent_s = 0.0


def _timed(name: str) -> Callable[..., Any]:
    collective = getattr(Communicator, name)

    def method(comm: TimedCommunicator, *values: Any) -> Any:
        start = time.perf_counter()
        answer = collective(comm, *values)
        comm.spent_s += time.perf_counter() - start
        return answer

    return method


for _name in (
    *("sum_in_place", "sum_into", "max_in_place"),  # `any` takes a maximum
    *("broadcast", "broadcast_object", "allgather", "barrier"),
):
    setattr(TimedCommunicator, _name, _timed(_name))


def ranks(sizes: Sizes) -> dict[str, float]:
    """Returns the seconds of a cycle, and the share of MPI on the rank where it is largest."""
    comm = TimedCommunicator()
    trainer = warm_trainer(comm, sizes)
    comm.spent_s = 0.0
    start = time.perf_counter()
    for _ in range(sizes["cycles"]):
        trainer.run_cycle()
    elapsed = time.perf_counter() - start
    slowest = comm.max_in_place(np.array([elapsed / sizes["cycles"], comm.spent_s / elapsed]))
    return {"cycle_s": float(slowest[0]), "mpi_share": float(slowest[1]), "ranks": comm.size}


class SwitchedCommunicator(Communicator):
    """Exchanges the faults of ranks only if `guarded`."""

    guarded = True

    def together(self, action: Callable[[], Any]) -> Any:
        return super().together(action) if self.guarded else action()

    def any(self, flag: bool) -> bool:
        return super().any(flag) if self.guarded else flag


def guards(sizes: Sizes) -> dict[str, float]:
    """Measures the cost of guards: alternating cycles with and without them, in one run.

    The exchange of faults and the watchdog are switched. Checks of finite numbers, heartbeats and
    the comparison of parameters cannot be switched off; they are timed alone and subtracted.

    Returns:
        Seconds of a cycle with and without guards, and their ratio: medians over pairs of
        neighbouring cycles of the slowest rank.
    """
    comm = SwitchedCommunicator()
    trainer = warm_trainer(comm, sizes)

    def cycle(guarded: bool) -> float:
        comm.guarded = guarded
        with watchdog(300.0 if guarded else math.inf, "benchmark", None):
            comm.barrier()
            seconds = _seconds(trainer.run_cycle)
        return float(comm.max_in_place(np.array([seconds]))[0])

    pairs = []
    for number in range(2 * sizes["cycles"]):
        order = (True, False) if number % 2 else (False, True)
        seconds = {guarded: cycle(guarded) for guarded in order}
        pairs.append((seconds[True], seconds[False]))
    comm.guarded = True
    always = comm.max_in_place(np.array([_always_on(trainer)]))
    with_them, without = np.array(pairs).T - [[0.0], always]
    return {
        "guarded_s": float(np.median(with_them)),
        "unguarded_s": float(np.median(without)),
        "ratio": float(np.median(with_them / without)),
        "ranks": comm.size,
    }


def _always_on(trainer: Trainer) -> float:
    """Returns the seconds per cycle of guards that cannot be switched off."""
    config, spec = trainer.config, trainer.envs.spec
    row = np.zeros((config.rollouts, spec.observation_dim))
    repeated = 1000
    check = timeit.timeit(lambda: all_finite(row), number=repeated) / repeated
    beat = timeit.timeit(heartbeat, number=repeated) / repeated
    equal = statistics.median(_seconds(trainer.update.check_equal) for _ in range(5))
    total = statistics.median(
        _seconds(lambda: tf.reduce_sum(trainer.update.parameters).numpy()) for _ in range(5)
    )
    steps, updates = spec.max_episode_steps, config.updates
    of_rank = steps * (_CHECKS_PER_STEP * check + beat) + updates * beat + total
    return of_rank + equal * updates / DESYNC_INTERVAL


MEASUREMENTS: dict[str, Callable[[Sizes], dict[str, float]]] = {
    "simulation": simulation,
    "update_1t": partial(update, threads=1),
    "update_2t": partial(update, threads=2),
    "our_sac": partial(ours, recipe="sac_her"),
    "our_ddpg": partial(ours, recipe="ddpg_her"),
    "critics": critics,
    "meta": meta,
    "music": music,
    "neighbours": neighbours,
    "one_by_one": one_by_one,
    "feeding": feeding,
    "ranks": ranks,
    "guards": guards,
}


def main(name: str, out: str, sizes: str) -> None:
    """Takes a measurement and writes the result as JSON."""
    measured = MEASUREMENTS[name](json.loads(sizes))
    if launched_rank() == 0:
        Path(out).write_text(json.dumps(measured), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
