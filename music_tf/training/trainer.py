"""The training loop: collect, remember, learn, and evaluate at the end of an epoch."""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.config.settings import Config, SacConfig, Schedule
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.intrinsic.base import RewardTerm, schedule_value
from music_tf.measures.behaviour import visited_cells
from music_tf.networks.acting import Snapshot, policy_of
from music_tf.normalizer import InputMoments
from music_tf.randomness import stream
from music_tf.replay.buffer import ReplayBuffer
from music_tf.rollout import Policy
from music_tf.storage.gate import ExpectedState, expected_of, take_over
from music_tf.training.collect import Collected, Collector, cut_where_lost
from music_tf.training.evaluation import Evaluation
from music_tf.training.update import Feed, Schedules, Update, check_same_state
from music_tf.types import Array, Episodes, Metrics

ACTING = ("parameters/", "scales/", "normalizer/")
"""How names of arrays begin that acting and judging need."""
_TURNS = 2**40
"""Cycles that no run has; a second turn of updates in a cycle draws as if so many later."""
_NO_ENTROPY: Schedule = ((0.0, 0.0),)


@dataclasses.dataclass
class Counters:
    """How far a run has come, over all ranks; with the seed, all that random streams need.

    Ranks agree on all but `elapsed_s`, which each measures by its own clock.
    """

    epoch: int = 0
    cycle: int = 0
    env_steps: int = 0
    episodes: int = 0
    updates: int = 0
    elapsed_s: float = 0.0


@dataclasses.dataclass
class EpochLog:
    """What an epoch has shown so far, over all ranks; saved when it is interrupted."""

    cycles: int = 0
    totals: list[Metrics] = dataclasses.field(default_factory=list)
    cells: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    succeeded: int = 0
    tried: int = 0
    env_steps: int = 0
    updates: int = 0
    seconds: float = 0.0

    def averages(self) -> Metrics:
        """Returns the means of what was learned over the cycles, extremes apart."""
        columns: dict[str, list[float]] = {}
        for cycle in self.totals:
            for name, value in cycle.items():
                columns.setdefault(name, []).append(value)
        metrics: Metrics = {}
        for name, column in columns.items():
            pick = min if name.endswith("_min") else max if name.endswith("_max") else np.mean
            metrics[name] = float(pick(column))
        for square in [name for name in metrics if name.endswith("_square")]:
            name = square.removesuffix("_square")
            variance = metrics.pop(square) - metrics[f"{name}_mean"] ** 2
            metrics[f"{name}_std"] = float(np.sqrt(max(0.0, variance)))
        return metrics


@dataclasses.dataclass
class _Taken:
    """What the optimiser has done so far."""

    updates: int = 0
    step_scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.step_scale <= 1.0:
            raise ValueError(f"step_scale: expected a number in (0, 1], got {self.step_scale}")


@dataclasses.dataclass
class Trainer:
    """Takes a run from one epoch to the next; `build_trainer` makes one.

    Its parts own what they learn or keep, and save and load it themselves.
    """

    config: Config
    comm: Communicator
    collector: Collector
    replay: ReplayBuffer
    inputs: InputMoments
    update: Update
    counters: Counters = dataclasses.field(default_factory=Counters)
    log: EpochLog = dataclasses.field(default_factory=EpochLog)

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
        config, counters = self.config, self.counters
        self.comm.take_timing()
        if not self.log.cycles:
            self.collector.begin_epoch()
        while self.log.cycles < config.cycles:
            start = time.monotonic()
            self.run_cycle()
            seconds = time.monotonic() - start
            self.log.seconds += seconds
            counters.elapsed_s += seconds
            if self.comm.any(on_cycle(self.log.cycles)) and self.log.cycles < config.cycles:
                return None
        counters.epoch += 1
        seen = counters.episodes - self.log.tried
        metrics = self._throughput() | self.log.averages() | self._seen()
        self.log = EpochLog()
        every = config.evaluation.every_episodes
        due = counters.epoch % config.evaluation.every == 0
        if due if every is None else counters.episodes // every > seen // every:
            start = time.monotonic()
            metrics |= self.evaluate(config.evaluation.episodes, on_played=on_evaluation)
            counters.elapsed_s += time.monotonic() - start
        metrics["time/elapsed_s"] = counters.elapsed_s
        return metrics

    def run_cycle(self) -> None:
        """Plays in each environment, remembers it, and learns from replay."""
        self.collect()
        for turn in range(self._turns()):
            learned = over_ranks(self.update.run(self.feed(turn), self.schedules()), self.comm)
            self.log.totals.append(learned)
            self.log.updates += self.config.updates
            self.counters.updates += self.config.updates
        self.log.cycles += 1
        self.counters.cycle += 1

    def collect(self) -> None:
        """Plays for a cycle and hands it to all who remember or count something of it."""
        cycle = self.counters.cycle
        at_random = self.counters.env_steps < self.config.collect.random_steps
        collected = self.collector.collect(self.snapshot(), cycle, at_random)
        kept = collected.kept
        self.replay.add(kept, cycle, self._priorities(kept))
        for term in self.terms:
            term.observe(kept, cycle)
        self.inputs.see(*self.replay.sample_fresh(kept, cycle), self.config.workers)
        self._count(collected)

    def _turns(self) -> int:
        """Returns how often `config.updates` updates are due in this cycle."""
        config, counters = self.config, self.counters
        steps = counters.env_steps - config.collect.random_steps
        if steps < 0 or not config.updates:
            return 0
        if config.collect.updates_per_step is None:
            return 1
        due = math.floor(config.collect.updates_per_step * steps) - counters.updates
        return max(0, due) // config.updates

    def feed(self, turn: int = 0) -> Feed:
        """Draws all that one turn of updates of a cycle needs."""
        config, inputs = self.config, self.inputs.now
        cycle = self.counters.cycle + turn * _TURNS
        batch = self.replay.sample_transitions(config.updates, cycle)
        return Feed(
            batch,
            inputs(batch.observation, batch.desired_goal, batch.skill),
            inputs(batch.next_observation, batch.desired_goal, batch.skill),
            {
                term.name: term.feed(self.replay, config.updates * term.times, cycle)
                for term in self.active_terms()
            },
            self.update.learner.draws(
                [stream(config.seed, "agent/noise", w, cycle) for w in self.replay.shards],
                config.updates,
                config.replay.batch_size,
            ),
        )

    def schedules(self) -> Schedules:
        """Returns the weights of terms and entropy in the present epoch."""
        epoch, agent = self.counters.epoch, self.config.agent
        entropy = agent.entropy_weight if isinstance(agent, SacConfig) else _NO_ENTROPY
        weights = {
            term.name: tf.constant(schedule_value(term.mixing.weight, epoch), tf.float32)
            for term in self.terms
        }
        return Schedules(weights, tf.constant(schedule_value(entropy, epoch), tf.float32))

    @property
    def envs(self) -> LockstepEnvs:
        """The environments of this rank."""
        return self.collector.envs

    @property
    def terms(self) -> Sequence[RewardTerm]:
        """All reward terms, in the order in which they are summed, at whatever weight."""
        return self.update.terms

    def active_terms(self) -> Sequence[RewardTerm]:
        """Returns the reward terms that still count, now or later; all where none does."""
        epoch = self.counters.epoch
        return [term for term in self.terms if not term.mixing.retired(epoch)] or self.terms

    def policy(self) -> Policy:
        """Returns the deterministic policy as it is now."""
        return policy_of(self.snapshot())

    def snapshot(self) -> Snapshot:
        """Returns a copy of all that acts, as it is now."""
        return Snapshot(self.config.agent.actor, self.update.actor_weights(), self.inputs.now)

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
        return Evaluation(self.envs, self.config, self.comm).play(policy, episodes, skill)

    def behaviour(self, played: Episodes) -> Metrics:
        """Returns the behaviour metrics of episodes, and their success where goals count."""
        return Evaluation(self.envs, self.config, self.comm).behaviour(played)

    def heldout(self, played: Episodes) -> Metrics:
        """Returns what the active reward terms make of these episodes."""
        if not self.terms:
            return {}
        if self.config.lost_object == "absorb":
            played = cut_where_lost(played, self.envs.info)  # what the networks are trained on
        weights = self.update.weights()
        found = [term.heldout(weights, played) for term in self.active_terms()]
        return {name: value for metrics in found for name, value in metrics.items()}

    def weights(self) -> dict[str, np.ndarray]:
        """Returns what acting and judging need, by explicit names: `load_weights` takes it."""
        return {name: array for name, array in self.shared().items() if name.startswith(ACTING)}

    def shared(self) -> dict[str, np.ndarray]:
        """Returns the state that all ranks share, by explicit names."""
        owners: list[Update | RewardTerm | InputMoments] = [self.update, *self.terms, self.inputs]
        return {name: array for owner in owners for name, array in owner.shared().items()}

    def of_workers(self, everything: bool = False) -> dict[int, dict[str, np.ndarray]]:
        """Returns what belongs to the workers of this rank: new replay rows, or all of them."""
        rows = self.replay.everything() if everything else self.replay.unsaved()
        for worker, new in rows.items():
            for term in self.terms if new else ():  # a term keeps something of new episodes alone
                kept = term.of_worker(worker)
                new |= {f"{term.name}/{name}": array for name, array in kept.items()}
        return rows

    def meta(self) -> dict[str, Any]:
        """Returns counters and what else JSON can hold."""
        return {
            "counters": dataclasses.asdict(self.counters),
            "log": dataclasses.asdict(self.log),
            **self.update.counts(),
            "goals": self.config.goals,
            "env_id": self.config.env_id,
            "inputs": {name: seen for term in self.terms for name, seen in term.inputs.items()},
        }

    def check_equal(self) -> None:
        """Compares all that ranks share, bit by bit; every rank must call it together.

        Raises:
            NumbersFault: Something differs; the text names it and the ranks.
        """
        step = self.update.step.numpy()
        check_same_state({**self.shared(), "optimiser step": step}, int(step), self.comm)

    def expected(self) -> ExpectedState:
        """Returns names, types and shapes of what a checkpoint of this run holds."""
        worker, shard = next(iter(self.replay.shards.items()))
        rows = expected_of(shard.full_rows())
        for term in self.terms:
            kept = term.of_worker(worker)
            rows |= expected_of({f"{term.name}/{n}": a for n, a in kept.items()}, free=True)
        return ExpectedState(expected_of(self.shared()), rows)

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Takes over what `shared` and `meta` of an earlier trainer returned.

        Raises:
            ValueError: A name is missing or does not fit; the text names it.
        """
        taken = take_over(_Taken(), {name: meta.get(name) for name in vars(_Taken())}, "meta")
        counters = take_over(Counters(), meta.get("counters"), "counters")
        log = take_over(EpochLog(), meta.get("log"), "log")
        log.cells = [(x, y) for x, y in log.cells]
        self.update.load(shared)
        self._load_beside_weights(shared)
        self.update.load_counts(taken.updates, taken.step_scale, meta.get("phase_steps", ()))
        self.counters, self.log = counters, log

    def load_workers(self, saved: Mapping[int, Sequence[Mapping[str, np.ndarray]]]) -> None:
        """Takes over what `of_workers` returned at each save, by worker, oldest first.

        Raises:
            ValueError: Replay rows do not fit; nothing has changed then.
        """
        for worker, shard in self.replay.shards.items():
            shard.check_rows(saved[worker])
        for worker, shard in self.replay.shards.items():
            names = set(shard.full_rows())
            shard.restore([{n: a for n, a in rows.items() if n in names} for rows in saved[worker]])
            for term in self.terms if saved[worker] else ():
                prefix = f"{term.name}/"
                kept = {n: a for n, a in saved[worker][-1].items() if n.startswith(prefix)}
                term.load_worker(worker, {n.removeprefix(prefix): a for n, a in kept.items()})

    def start_from(self, shared: Mapping[str, np.ndarray]) -> None:
        """Takes over weights, targets and statistics; moments and counters stay as they are.

        Raises:
            ValueError: A name is missing, unknown, or does not fit; the text names it.
        """
        self.load_weights(shared)
        self.update.load_targets(shared)

    def load_weights(self, shared: Mapping[str, np.ndarray]) -> None:
        """Takes over what acting needs, as `weights` or `shared` of another trainer returned it.

        Raises:
            ValueError: A name is missing, unknown, or does not fit; the text names it.
        """
        self.update.load_weights(shared)
        self._load_beside_weights(shared)

    def _load_beside_weights(self, shared: Mapping[str, np.ndarray]) -> None:
        for term in self.terms:
            term.load(shared)
        self.inputs.load(shared)

    def _priorities(self, kept: Mapping[int, Episodes]) -> dict[int, Array] | None:
        """Returns how much fresh episodes count, by worker; None where all count alike."""
        judges = [term for term in self.terms if term.name == self.config.replay.priority]
        if not judges:
            return None
        weights = self.update.weights()
        return {
            worker: judges[0].priorities(weights, own, worker, self.counters.cycle)
            for worker, own in kept.items()
        }

    def _count(self, collected: Collected) -> None:
        """Notes what all ranks saw in a cycle."""
        played, ends = collected.played, collected.succeeded
        counts = np.array([ends.sum(), len(ends), played.length.sum()])
        succeeded, tried, steps = map(int, self.comm.sum_in_place(counts))
        cells = visited_cells(played.observation, played.length, self.envs.info)
        visited = [(int(x), int(y)) for own in self.comm.collect(sorted(cells)) for x, y in own]
        log = self.log
        log.cells = sorted({*log.cells, *visited})
        log.succeeded += succeeded
        log.tried += tried
        log.env_steps += steps
        self.counters.env_steps += steps
        self.counters.episodes += tried

    def _seen(self) -> Metrics:
        """Returns what the rollouts of the epoch came to."""
        metrics: Metrics = {}
        of_goals = self.envs.spec.goal_dim and self.config.goals == "environment"
        if of_goals and self.log.tried:
            metrics["rollout/success_rate"] = self.log.succeeded / self.log.tried
        if self.envs.info.support is not None:
            metrics["rollout/object_coverage"] = float(len(self.log.cells))
        return metrics

    def _throughput(self) -> Metrics:
        counters, seconds, inputs = self.counters, self.log.seconds, self.inputs.now
        reduce_ms, wait_ms = self.comm.take_timing()
        waits = self.comm.max_in_place(np.array([reduce_ms, wait_ms]))
        metrics = {
            "time/epoch": float(counters.epoch),
            "time/env_steps": float(counters.env_steps),
            "time/updates": float(counters.updates),
            "time/fps": self.log.env_steps / seconds,
            "time/updates_per_second": self.log.updates / seconds,
            "stats/observation_mean": float(inputs.observation.mean.mean()),
            "stats/observation_std": float(inputs.observation.deviation.mean()),
        }
        if self.envs.spec.goal_dim:
            metrics["stats/goal_mean"] = float(inputs.goal.mean.mean())
            metrics["stats/goal_std"] = float(inputs.goal.deviation.mean())
        if not self.envs.spec.goal_dim:
            metrics["time/episodes"] = float(counters.episodes)
        if self.comm.size > 1:
            metrics |= {"mpi/allreduce_ms": float(waits[0]), "mpi/wait_ms_max": float(waits[1])}
        return metrics


def over_ranks(metrics: Metrics, comm: Communicator) -> Metrics:
    """Adds up the shares that all ranks have in a cycle; of extremes it takes the furthest."""
    names = list(metrics)
    own = np.array([metrics[name] for name in names])
    lowest = np.array([name.endswith("_min") for name in names])
    highest = np.array([name.endswith("_max") for name in names])
    ends = comm.max_in_place(np.where(lowest, -own, own))
    sums = comm.sum_in_place(own)
    values = np.where(lowest, -ends, np.where(highest, ends, sums))
    return dict(zip(names, map(float, values), strict=True))
