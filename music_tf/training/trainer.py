"""The training loop: rollouts, replay, rewards and updates, in the order data flows."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.config.settings import Config, SacConfig, Schedule
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.intrinsic.base import RewardTerm, schedule_value, split_of
from music_tf.intrinsic.music import Music
from music_tf.measures.behaviour import summarize, support_lost_at, visited_cells
from music_tf.normalizer import NetworkInputs, Normalizer
from music_tf.randomness import stream
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.rollout import Conditions, GoalsAndSkills, Policy, padded, perturbation, play
from music_tf.storage.restored import check_rows, sizes_of, take_over
from music_tf.storage.state_folder import Sizes
from music_tf.training.agreement import check_same_state
from music_tf.training.build import build_learner, build_terms, discount
from music_tf.training.epoch_log import EpochLog, over_ranks
from music_tf.training.evaluation import evaluate, evaluation_conditions
from music_tf.training.policy import learned_policy
from music_tf.training.update import Feed, Schedules, Update
from music_tf.types import Array, Episodes, Metrics

_NO_ENTROPY: Schedule = ((0.0, 0.0),)


@dataclasses.dataclass
class Counters:
    """How far a run has come, over all ranks; with the seed, all that random streams need.

    Ranks agree on all but `elapsed_s`, which each measures by its own clock.
    """

    epoch: int = 0
    cycle: int = 0
    env_steps: int = 0
    updates: int = 0
    elapsed_s: float = 0.0


@dataclasses.dataclass
class _Taken:
    """What the optimiser has done so far."""

    updates: int = 0
    step_scale: float = 1.0


class Trainer:
    """Owns every part of a run and takes it from one epoch to the next."""

    def __init__(self, config: Config, comm: Communicator) -> None:
        """Builds environments, replay, normalisers, rewards and learner.

        Args:
            config: Of the run.
            comm: The ranks, which share the workers.

        Raises:
            UsageError: Settings that do not fit the environment or the ranks.
        """
        self.config = config
        self._comm = comm
        self._workers = comm.local_workers(config.workers)
        self.envs = LockstepEnvs(config.env_id, len(self._workers) * config.rollouts)
        spec = self.envs.spec
        self.counters = Counters()
        self._terms = build_terms(config, self.envs)
        learner = build_learner(config, spec, self._terms)
        self._learner = learner
        gamma = discount(config, spec)
        self.update = Update(learner, self._terms, config.agent, gamma, comm, config.workers)
        split = split_of(config.world, spec) if "music" in config.rewards else None
        columns = [*split.agent, *split.surrounding] if split else []
        shards = {
            worker: Shard(spec, config.skills, config.replay, columns) for worker in self._workers
        }
        goal_reward = self.envs.goal_reward if "task" in config.rewards else None
        self.replay = ReplayBuffer(shards, config.replay, goal_reward, gamma, config.seed)
        self.observations = Normalizer(spec.observation_dim, config.normalizer, comm)
        self.goals = Normalizer(spec.goal_dim, config.normalizer, comm)
        self.log = EpochLog()
        self._sampler = GoalsAndSkills(
            spec.goal_dim, config.goals == "zero", config.skills, config.pinned_skill
        )

    @property
    def terms(self) -> Sequence[RewardTerm]:
        """All reward terms, in the order in which they are summed, at whatever weight."""
        return self._terms

    def run_epoch(
        self,
        on_cycle: Callable[[int], bool],
        on_evaluation: Callable[[Episodes], None] | None = None,
    ) -> Metrics | None:
        """Trains to the end of an epoch and evaluates; every rank must call it together.

        Args:
            on_cycle: Called after each cycle with the number done; True on any rank interrupts
                the epoch, which the next call then continues.
            on_evaluation: Called with the episodes of an evaluation.

        Returns:
            The metrics of the epoch, equal on every rank but for those that clocks measure; None
            where it was interrupted.
        """
        self._comm.take_timing()
        while self.log.cycles < self.config.cycles:
            start = time.monotonic()
            self._run_cycle()
            seconds = time.monotonic() - start
            self.log.seconds += seconds
            self.counters.elapsed_s += seconds
            if self._comm.any(on_cycle(self.log.cycles)) and self.log.cycles < self.config.cycles:
                return None
        self.counters.epoch += 1
        metrics = self._throughput() | self.log.averages() | self._seen()
        self.log = EpochLog()
        if self.counters.epoch % self.config.evaluation.every == 0:
            start = time.monotonic()
            metrics |= self.evaluate(self.config.evaluation.episodes, on_played=on_evaluation)
            self.counters.elapsed_s += time.monotonic() - start
        metrics["time/elapsed_s"] = self.counters.elapsed_s
        return metrics

    def evaluate(
        self,
        episodes: int,
        policy: Policy | None = None,
        skill: int | None = None,
        on_played: Callable[[Episodes], None] | None = None,
    ) -> Metrics:
        """Plays evaluation episodes, by default with the present policy; all ranks together.

        Success is measured under the environment's goals where training was, and behaviour
        under the goals of training: a policy that knew only zero goals does anything under
        others. Skills take turns, unless the configuration or `skill` pins one of them.
        `on_played` sees the episodes.
        """
        played = self.played(episodes, policy or self.policy(), skill)
        if on_played is not None:
            on_played(played)
        metrics = self.behaviour(played)
        return metrics if policy else metrics | self.heldout(played)

    def played(self, episodes: int, policy: Policy, skill: int | None = None) -> Episodes:
        """Returns what `evaluate` measures: episodes without exploration; all ranks together."""
        config = self.config
        pinned = config.pinned_skill if skill is None else skill
        conditions = evaluation_conditions(
            range(episodes), self.envs.spec.goal_dim, config.goals == "zero", config.skills, pinned
        )
        return evaluate(self.envs, policy, conditions, self._comm)

    def behaviour(self, played: Episodes) -> Metrics:
        """Returns the behaviour metrics of episodes, and their success where goals count."""
        metrics = summarize(played.observation, played.length, self.envs.info)
        if self.config.goals == "environment":
            metrics["eval/success_rate"] = float(played.success.mean())
        return metrics

    def heldout(self, played: Episodes) -> Metrics:
        """Returns what the active reward terms make of these episodes."""
        if self.config.lost_object == "absorb":
            played = _cut_where_lost(played, self.envs)  # what the networks are trained on
        weights = self.update.weights()
        found = [term.heldout(weights, played) for term in self._active()]
        return {name: value for metrics in found for name, value in metrics.items()}

    def policy(self) -> Policy:
        """Returns the deterministic policy as it is now."""
        return learned_policy(self._learner, self.update.actor_weights(), self._inputs())

    def weights(self) -> dict[str, np.ndarray]:
        """Returns what acting and judging need, by explicit names: `load_weights` takes it."""
        wanted = ("parameters/", "scales/", "normalizer/")
        return {name: array for name, array in self.arrays().items() if name.startswith(wanted)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the state that all ranks share, by explicit names."""
        update = self.update
        vectors = {
            "parameters": update.parameters,
            "adam_first": update.moments.first,
            "adam_second": update.moments.second,
        }
        named = {
            f"{group}/{name}": array
            for group, vector in vectors.items()
            for name, array in update.layout.name_arrays(vector.numpy()).items()
        }
        named |= {
            f"targets/{name}": array
            for name, array in update.targets_layout.name_arrays(update.targets.numpy()).items()
        }
        return {
            **named,
            **{f"scales/{name}": scale.numpy() for name, scale in self._scales().items()},
            "normalizer/observation": self.observations.state,
            "normalizer/goal": self.goals.state,
        }

    def check_equal(self) -> None:
        """Compares all that ranks share, bit by bit; every rank must call it together.

        Raises:
            NumbersFault: Something differs; the text names it and the ranks.
        """
        step = self.update.step.numpy()
        check_same_state({**self.arrays(), "optimiser step": step}, int(step), self._comm)

    def meta(self) -> dict[str, Any]:
        """Returns counters and what else JSON can hold."""
        return {
            "counters": dataclasses.asdict(self.counters),
            "log": dataclasses.asdict(self.log),
            "updates": int(self.update.step.numpy()),
            "step_scale": self.update.step_scale,
            "goals": self.config.goals,
            "env_id": self.config.env_id,
            "inputs": {name: seen for term in self._terms for name, seen in term.inputs.items()},
        }

    def sizes(self) -> Sizes:
        """Returns the most bytes that files of a checkpoint of this run can have."""
        shard = next(iter(self.replay.shards.values()))
        return sizes_of(self.arrays(), shard, self.config.cycles)

    def load(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Takes over what `arrays` and `meta` of an earlier trainer returned.

        Raises:
            ValueError: A name is missing or does not fit; the text names it.
        """
        update = self.update
        taken = take_over(_Taken(), {name: meta.get(name) for name in vars(_Taken())}, "meta")
        counters = take_over(Counters(), meta.get("counters"), "counters")
        log = take_over(EpochLog(), meta.get("log"), "log")
        self.start_from(arrays)
        update.moments.first.assign(update.layout.flatten(_group(arrays, "adam_first")))
        update.moments.second.assign(update.layout.flatten(_group(arrays, "adam_second")))
        update.step.assign(taken.updates)
        update.scale_steps(taken.step_scale)
        self.counters, self.log = counters, log
        self.log.cells = [(x, y) for x, y in log.cells]

    def load_rows(self, saved: Mapping[int, Sequence[Mapping[str, np.ndarray]]]) -> None:
        """Takes over replay rows by worker, in order of saving.

        Raises:
            ValueError: They do not fit; nothing has changed then.
        """
        for worker, shard in self.replay.shards.items():
            check_rows(saved[worker], shard)
        for worker, shard in self.replay.shards.items():
            shard.restore(saved[worker])

    def start_from(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Takes over weights, targets and statistics; moments and counters stay as they are.

        Raises:
            ValueError: A name is missing, unknown, or does not fit; the text names it.
        """
        self.load_weights(arrays)
        targets = self.update.targets_layout.flatten(_group(arrays, "targets"))
        self.update.targets.assign(targets)

    def load_weights(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Takes over what acting needs, as `weights` or `arrays` of another trainer returned it.

        Raises:
            ValueError: A name is missing, unknown, or does not fit; the text names it.
        """
        parameters, totals = _group(arrays, "parameters"), _group(arrays, "normalizer")
        for name in sorted(set(parameters) - set(self.update.layout.names)):
            raise ValueError(f"{name}: no such weight in this run")
        self.update.parameters.assign(self.update.layout.flatten(parameters))
        for name, scale in self._scales().items():
            if f"scales/{name}" in arrays:  # an older version measured it again
                scale.assign(arrays[f"scales/{name}"])
        for name, normalizer in (("observation", self.observations), ("goal", self.goals)):
            if name not in totals:
                raise ValueError(f"normalizer/{name}: missing")
            try:
                normalizer.state = totals[name]
            except ValueError as error:
                raise ValueError(f"normalizer/{name}: {error}") from error

    def _scales(self) -> dict[str, tf.Variable]:
        """Returns the input scales of all terms, by network."""
        return {name: scale for term in self._terms for name, scale in term.scales.items()}

    def _run_cycle(self) -> None:
        """Collects episodes, learns from replay, and notes what all ranks saw."""
        episodes = self._collect()
        cells = visited_cells(episodes.observation, episodes.length, self.envs.info)
        learned = over_ranks(self._learn(), self._comm) if self.config.updates else {}
        counts = np.array([episodes.success.sum(), len(episodes.success), episodes.length.sum()])
        succeeded, tried, steps = map(int, self._comm.sum_in_place(counts))
        self.counters.cycle += 1
        self.counters.env_steps += steps
        log = self.log
        log.cycles += 1
        log.totals.append(learned)
        log.cells = sorted(set(log.cells).union(*map(_pairs, self._comm.collect(sorted(cells)))))
        log.succeeded += succeeded
        log.tried += tried
        log.env_steps += steps

    def _collect(self) -> Episodes:
        """Plays one episode in each environment, stores them and feeds the normalisers."""
        config, spec = self.config, self.envs.spec
        cycle = self.counters.cycle
        drawn = [
            self._sampler.begin_episodes(
                stream(config.seed, "rollout/conditions", worker, cycle), config.rollouts
            )
            for worker in self._workers
        ]
        conditions = _joined(drawn)
        explore = perturbation(
            config.exploration,
            [stream(config.seed, "rollout/exploration", w, cycle) for w in self._workers],
            (spec.max_episode_steps, config.rollouts, spec.action_dim),
        )
        policy = learned_policy(
            self._learner,
            self.update.actor_weights(),
            self._inputs(),
            config.exploration.sample,
            rows=config.rollouts,
        )
        episodes = self._comm.together(lambda: play(self.envs, policy, conditions, explore))
        kept = episodes
        if config.lost_object == "absorb":
            kept = _cut_where_lost(episodes, self.envs)
        by_worker = {
            worker: _rows(kept, index * config.rollouts, config.rollouts)
            for index, worker in enumerate(self._workers)
        }
        self.replay.add(by_worker, cycle, self._priorities(by_worker))
        fresh = [self.replay.sample_fresh(own, worker, cycle) for worker, own in by_worker.items()]
        self.observations.update(np.stack([batch.observation for batch in fresh]), config.workers)
        self.goals.update(np.stack([batch.desired_goal for batch in fresh]), config.workers)
        return episodes

    def _priorities(self, episodes: Mapping[int, Episodes]) -> dict[int, Array] | None:
        """Returns how much fresh episodes count, by worker; None where all count alike."""
        if self.config.replay.priority == "uniform":
            return None
        (music,) = [term for term in self._terms if isinstance(term, Music)]
        weights = self.update.weights()
        return {
            worker: music.priorities(weights, own, worker, self.counters.cycle)
            for worker, own in episodes.items()
        }

    def _learn(self) -> Metrics:
        """Takes all updates of a cycle."""
        config, cycle = self.config, self.counters.cycle
        batch = self.replay.sample_transitions(config.updates, cycle)
        inputs = self._inputs()
        feed = Feed(
            batch,
            inputs(batch.observation, batch.desired_goal, batch.skill),
            inputs(batch.next_observation, batch.desired_goal, batch.skill),
            {term.name: term.feed(self.replay, config.updates, cycle) for term in self._active()},
            self._learner.draws(
                [stream(config.seed, "agent/noise", w, cycle) for w in self._workers],
                config.updates,
                config.replay.batch_size,
            ),
        )
        self.counters.updates += config.updates
        return self.update.run(feed, self._schedules())

    def _active(self) -> list[RewardTerm]:
        """Returns the reward terms that still count, now or later; all where none does."""
        epoch = self.counters.epoch
        return [term for term in self._terms if not term.mixing.retired(epoch)] or self._terms

    def _inputs(self) -> NetworkInputs:
        return NetworkInputs(self.observations.moments, self.goals.moments, self.config.normalizer)

    def _schedules(self) -> Schedules:
        epoch = self.counters.epoch
        agent = self.config.agent
        entropy = agent.entropy_weight if isinstance(agent, SacConfig) else _NO_ENTROPY
        weights = {
            term.name: tf.constant(schedule_value(term.mixing.weight, epoch), tf.float32)
            for term in self._terms
        }
        return Schedules(weights, tf.constant(schedule_value(entropy, epoch), tf.float32))

    def _seen(self) -> Metrics:
        """Returns what the rollouts of the epoch came to."""
        metrics: Metrics = {}
        if self.config.goals == "environment":
            metrics["rollout/success_rate"] = self.log.succeeded / self.log.tried
        if self.envs.info.support is not None:
            metrics["rollout/object_coverage"] = float(len(self.log.cells))
        return metrics

    def _throughput(self) -> Metrics:
        counters, seconds = self.counters, self.log.seconds
        reduce_ms, wait_ms = self._comm.take_timing()
        waits = self._comm.max_in_place(np.array([reduce_ms, wait_ms]))
        metrics = {
            "time/epoch": float(counters.epoch),
            "time/env_steps": float(counters.env_steps),
            "time/updates": float(counters.updates),
            "time/fps": self.log.env_steps / seconds,
            "time/updates_per_second": self.config.cycles * self.config.updates / seconds,
            "stats/observation_mean": float(self.observations.moments.mean.mean()),
            "stats/observation_std": float(self.observations.moments.deviation.mean()),
            "stats/goal_mean": float(self.goals.moments.mean.mean()),
            "stats/goal_std": float(self.goals.moments.deviation.mean()),
        }
        if self._comm.size > 1:
            metrics |= {"mpi/allreduce_ms": float(waits[0]), "mpi/wait_ms_max": float(waits[1])}
        return metrics


def _joined(drawn: Sequence[Conditions]) -> Conditions:
    """Joins the conditions of several workers."""
    goals = [one.goals for one in drawn if one.goals is not None]
    return Conditions(
        seeds=np.concatenate([one.seeds for one in drawn]),
        goals=np.concatenate(goals) if goals else None,
        skills=np.concatenate([one.skills for one in drawn]),
    )


def _rows(episodes: Episodes, start: int, count: int) -> Episodes:
    """Returns `count` of the episodes."""
    picked = {
        name: values[start : start + count]
        for name, values in episodes._asdict().items()
        if name != "extras"
    }
    extras = {name: values[start : start + count] for name, values in episodes.extras.items()}
    return Episodes(**picked, extras=extras)


def _cut_where_lost(episodes: Episodes, envs: LockstepEnvs) -> Episodes:
    """Cuts each episode after the step that takes the object off its support."""
    first = support_lost_at(episodes.observation, episodes.length, envs.info)
    lost = (first >= 1) & (first <= episodes.length)
    length = np.where(lost, first, episodes.length)
    return padded(episodes._replace(length=length, lost=lost))


def _group(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Returns the arrays of one group, without its name in front of theirs."""
    prefix = f"{name}/"
    return {
        key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)
    }


def _pairs(cells: list[Any]) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for x, y in cells]
