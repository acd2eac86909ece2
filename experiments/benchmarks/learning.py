"""Updates a second of our learners, each as a training cycle runs it."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.arithmetic import (
    COMPARED_THREADS,
    DDPG_BATCH,
    DDPG_HIDDEN,
    UPDATES_PER_CYCLE,
)
from benchmarks.peak import MatrixPeak
from benchmarks.sizes import Sizes
from music_tf.config.fields import with_fields
from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.intrinsic.base import RewardTerm
from music_tf.networks.parameters import Layout, compiled
from music_tf.process import limit_threads
from music_tf.recipes import resolve
from music_tf.training.build import build_terms, build_trainer
from music_tf.training.trainer import Trainer
from music_tf.training.update import AdamState, adam_step
from music_tf.types import EnvSpec, Episodes


class LoneRank(Communicator):
    """One process that takes the path of several ranks: every reduction is called, alone."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 2


def configuration(recipe: str, sizes: Sizes, **changes: object) -> Config:
    """Returns a recipe on FetchPush-v4 with the network and batch sizes that we compare at."""
    fixed = {
        "workers": 1,
        "rollouts": 2,
        "updates": sizes.updates,
        "agent.hidden_sizes": DDPG_HIDDEN,
        "replay.batch_size": DDPG_BATCH,
        "music.trajectories": sizes.trajectories,
    }
    nested = {name.replace("__", "."): value for name, value in changes.items()}
    return with_fields(resolve(recipe, env_id="FetchPush-v4"), {**fixed, **nested})


def cycle_configuration(sizes: Sizes, ranks: int, **changes: object) -> Config:
    """Returns DDPG with hindsight and one critic, one worker a rank, for timed training cycles."""
    return configuration(
        "ddpg_her",
        sizes,
        workers=ranks,
        threads=1,
        updates=UPDATES_PER_CYCLE,
        agent__critics=1,
        **changes,
    )


def filled_trainer(config: Config, sizes: Sizes, comm: Communicator) -> Trainer:
    """Returns a trainer with random episodes in replay and in the normalisers."""
    trainer = build_trainer(config, comm)
    generator = np.random.default_rng(0)
    workers = list(trainer.replay.shards)
    stored = {
        worker: random_episodes(trainer.envs.spec, sizes.stored_episodes, config.skills, generator)
        for worker in workers
    }
    trainer.replay.add(stored, cycle=0)
    rows = np.stack([stored[worker].observation for worker in workers])
    goals = np.stack([stored[worker].achieved_goal for worker in workers])
    trainer.inputs.observations.update(
        rows.reshape(len(workers), -1, rows.shape[-1]), config.workers
    )
    trainer.inputs.goals.update(goals.reshape(len(workers), -1, goals.shape[-1]), config.workers)
    return trainer


def random_episodes(
    spec: EnvSpec, count: int, skills: int, generator: np.random.Generator
) -> Episodes:
    """Returns episodes of full length with standard normal numbers in them."""
    steps = spec.max_episode_steps

    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal((count, *shape), np.float32)

    return Episodes(
        observation=normal(steps + 1, spec.observation_dim),
        achieved_goal=normal(steps + 1, spec.goal_dim),
        desired_goal=normal(spec.goal_dim),
        action=np.clip(normal(steps, spec.action_dim), -1.0, 1.0),
        reward=normal(steps),
        length=np.full(count, steps, np.int64),
        terminated=np.zeros(count, np.bool_),
        lost=np.zeros(count, np.bool_),
        success=np.zeros(count, np.bool_),
        skill=np.eye(skills, dtype=np.float32)[generator.integers(skills, size=count)],
        seed=np.zeros(count, np.int64),
        extras={},
    )


def measure_update(sizes: Sizes, threads: int) -> dict[str, float]:
    """Measures DDPG with hindsight against the matrix-multiply peak of the same process."""
    limit_threads(threads)
    peak = MatrixPeak(sizes.matrices, threads)
    config = configuration("ddpg_her", sizes, agent__critics=1, threads=threads)
    rate = updates_per_s(filled_trainer(config, sizes, Communicator()), sizes, peak)
    return {
        "updates_per_s": rate,
        "peak_flop_per_s": peak.flop_per_s,
        "tensorflow_flop_per_s": peak.tensorflow_flop_per_s,
    }


def measure_ours(sizes: Sizes, recipe: str) -> dict[str, float]:
    """Measures a recipe with what Stable-Baselines3 does too: targets move at every update."""
    limit_threads(COMPARED_THREADS)
    config = configuration(recipe, sizes, agent__polyak_every="update")
    trainer = filled_trainer(config, sizes, Communicator())
    return {"updates_per_s": updates_per_s(trainer, sizes)}


def measure_music(sizes: Sizes) -> dict[str, float]:
    """Measures an update of the statistics network, and one of policy and statistics network."""
    limit_threads(1)
    config = configuration("ddpg_music", sizes, workers=2, threads=1)
    trainer = filled_trainer(config, sizes, LoneRank())
    rate = updates_per_s(trainer, sizes)
    return {
        "mi_update_ms": 1e3 * _statistics_update_s(config, trainer, sizes),
        "pair_update_ms": 1e3 / rate,
    }


def updates_per_s(trainer: Trainer, sizes: Sizes, peak: MatrixPeak | None = None) -> float:
    """Times the learning half of training cycles, from sampling to targets."""
    trainer.update.run(trainer.feed(), trainer.schedules())  # compiles
    seconds = 0.0
    for _ in range(sizes.rounds):
        if peak is not None:
            peak.look()
        trainer.counters.cycle += 1
        start = time.perf_counter()
        trainer.update.run(trainer.feed(), trainer.schedules())
        seconds += time.perf_counter() - start
    return sizes.rounds * sizes.updates / seconds


def _statistics_update_s(config: Config, trainer: Trainer, sizes: Sizes) -> float:
    """Returns the seconds of one update of the statistics network alone, sampling included."""
    learner = _TermLearner(build_terms(config, trainer.envs)[0])
    seconds = 0.0
    for cycle in range(sizes.rounds + 1):
        start = time.perf_counter()
        feed = learner.term.feed(trainer.replay, sizes.updates, cycle)
        tensors = tf.nest.map_structure(tf.convert_to_tensor, feed)
        for index in range(sizes.updates):
            learner.update(tensors, tf.constant(index))
        if cycle > 0:  # the first one compiles
            seconds += time.perf_counter() - start
    return seconds / (sizes.rounds * sizes.updates)


class _TermLearner:
    """A reward term that learns without a policy: its loss, gradient and Adam."""

    def __init__(self, term: RewardTerm) -> None:
        self.term = term
        self._layout = Layout(list(term.networks))
        initial = self._layout.initial()
        self._parameters = tf.Variable(initial)
        self._moments = AdamState.zeros(initial)
        self._step = tf.Variable(0.0)
        self._rates = tf.constant(self._layout.learning_rates())
        self.update = compiled(self._update)

    def _update(self, feed: Mapping[str, Any], index: tf.Tensor) -> None:
        now = {name: values[index] for name, values in feed.items()}
        flat = tf.convert_to_tensor(self._parameters)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(flat)
            loss, _ = self.term.loss(self._layout.split(flat), now)
        step = self._step.assign_add(1.0)
        gradient = tape.gradient(loss, flat)
        adam_step(
            self._parameters,
            slice(0, self._layout.size),
            gradient,
            self._moments,
            step,
            self._rates,
        )
