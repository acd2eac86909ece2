"""The training loop: collect, store in replay, update, and evaluate at the end of an epoch."""

import contextlib
import dataclasses
import functools
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from music_tf.config.changes import stage_at
from music_tf.config.epochs import cut_by_epochs
from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EnvironmentFault
from music_tf.gate import ENVIRONMENT, ExpectedState, expected_of, is_count, restore_fields
from music_tf.hints import read
from music_tf.intrinsic.base import RewardTerm
from music_tf.measures.behaviour import visited_cells
from music_tf.networks.acting import SKILLS, Snapshot, SnapshotPolicy
from music_tf.normalizer import InputMoments
from music_tf.replay.buffer import ReplayBuffer
from music_tf.replay.watch import RewardMismatches
from music_tf.rollout import Policy
from music_tf.training.actors import Actors
from music_tf.training.collect import Collected, Collector, Order, by_worker
from music_tf.training.counters import Counters, EpochLog, over_ranks
from music_tf.training.device import DeviceReplay, why_not_on_device
from music_tf.training.evaluation import Comparison, Evaluation, counting
from music_tf.training.feeding import DeviceFeeding, Feeding
from music_tf.training.feeds import Feed, Schedules
from music_tf.training.levels import WeightLevels
from music_tf.training.memory import GIB
from music_tf.training.parts import OnPlayed, Part, RunningMoments
from music_tf.training.rewards import Rewards
from music_tf.training.update import Update, check_same_state
from music_tf.types import Episodes, Metrics

ACTING = ("parameters/", "scales/", "normalizer/", SKILLS)
"""Prefixes of the arrays that policies and reward networks need."""
Kind = TypeVar("Kind", bound=Part)
_LOGGER = logging.getLogger(__name__)
_TURN = 2**40
"""Offset of the cycle in the random streams of each further turn of updates in a cycle."""


@dataclasses.dataclass
class Trainer:
    """The training loop of one rank; each part owns its state, and saves and loads it."""

    config: Config
    comm: Communicator
    collector: Collector | Actors
    replay: ReplayBuffer
    inputs: InputMoments
    update: Update
    counters: Counters = dataclasses.field(default_factory=Counters)
    log: EpochLog = dataclasses.field(default_factory=EpochLog)
    parts: list[Part] = dataclasses.field(default_factory=list)
    """What takes part in each epoch, in the order of their calls."""
    evaluated: LockstepEnvs | None = None
    """Environments of evaluation, if its episodes have another length than those of training."""
    unevaluated: Metrics = dataclasses.field(default_factory=dict)
    """Metrics of the last epoch without its evaluation, if only the end of the run called for it;
    a longer run has this row."""
    _visited: bool = False
    """Whether a cycle that visits every task has been ordered since replay was empty."""
    _compared: RewardMismatches = dataclasses.field(default_factory=RewardMismatches)
    """Counts of rewards that `RewardWatch` compared in this job, over all ranks."""
    _spent: Metrics = dataclasses.field(default_factory=dict)
    """Seconds in this epoch, by metric."""

    def __post_init__(self) -> None:
        self.envs, self.terms = self.collector.envs, self.update.terms
        self.actors = self.collector if isinstance(self.collector, Actors) else None
        """The actors of this learner; None where it plays by itself."""
        self.levels = WeightLevels(self.config, self.envs.info)
        self.rewards = Rewards(self.config, self.update, self.levels.now)
        self.feeding = Feeding(self.config, self.replay, self.inputs, self.rewards)
        first: list[Part] = [self.update, self.rewards, self.levels, RunningMoments(self.inputs)]
        self.parts = first + self.parts

    def part(self, kind: type[Kind]) -> Kind | None:
        return next((part for part in self.parts if isinstance(part, kind)), None)

    def run_epoch(
        self, on_cycle: Callable[[int], bool], on_evaluation: OnPlayed = lambda _: None
    ) -> Metrics | None:
        """Trains to the end of an epoch and evaluates; returns its metrics.

        If `on_cycle` returns True on any rank, it returns None, and the next call continues.
        """
        config, world = self.config, self.world
        self.comm.take_timing()
        if not self.log.cycles:
            for part in self.parts:
                part.begin_epoch(self)
            self.collector.begin_epoch()
        if self.actors is not None:
            self.actors.crew.epoch = self.counters.epoch + 1
        while self.log.cycles < config.cycles:
            start = time.monotonic()
            self.run_cycle()
            seconds = time.monotonic() - start
            self.log.seconds += seconds
            self.counters.elapsed_s += seconds
            if self.comm.any(on_cycle(self.log.cycles)) and self.log.cycles < config.cycles:
                return None
        metrics = self._end_epoch()
        due = self._evaluation_due()
        self.log, self.unevaluated = EpochLog(), {}
        if due or self.is_over():
            if not due:
                self.unevaluated = {n: v for n, v in metrics.items() if math.isfinite(v)}
            start = time.monotonic()
            metrics |= self.evaluate(on_evaluation, world)
            self.counters.elapsed_s += time.monotonic() - start
            metrics["time/elapsed_s"] = self.counters.elapsed_s
        return metrics

    def _end_epoch(self) -> Metrics:
        """Counts the epoch as done; returns its metrics without those of the evaluation."""
        counters, start = self.counters, time.monotonic()
        of_parts = [part.end_epoch(self) for part in self.parts]
        counters.elapsed_s += time.monotonic() - start
        counters.epoch += 1
        metrics = self._throughput() | self.log.averages()
        for measured in of_parts:
            metrics |= measured
        if self.envs.spec.goal_dim and self.config.goals == "environment" and self.log.tried:
            metrics["rollout/success_rate"] = self.log.succeeded / self.log.tried
        if self.envs.info.object is not None:
            metrics["rollout/object_coverage"] = float(len(self.log.cells))
        metrics["time/elapsed_s"] = counters.elapsed_s
        return metrics

    def _evaluation_due(self) -> bool:
        every = self.config.evaluation.every_episodes
        if every is None:
            return self.counters.epoch % self.config.evaluation.every == 0
        before = self.counters.episodes - self.log.tried
        return self.counters.episodes // every > before // every

    def is_over(self) -> bool:
        """Whether all epochs are done, or the time of the run on any rank; a collective call."""
        late = self.counters.elapsed_s >= 60.0 * self.config.max_minutes
        return self.counters.epoch >= self.config.epochs or self.comm.any(late)

    def run_cycle(self) -> None:
        """Collects a cycle of experience, stores it in replay, and takes the updates."""
        config, counters, log = self.config, self.counters, self.log
        before, _ = self.since_begun
        for part in self.parts:
            part.begin_cycle(self)
        self.collect()
        steps, updates = self.since_begun
        turns = (config.tasks.visits or 1) if config.updates else 0
        first = config.collect.learns_after
        rate, early = config.collect.updates_per_step, steps < first
        if rate is not None and config.updates:
            # counted from the totals, so that what is rounded down is made up for later
            turns = (math.floor(rate * (steps - first)) - updates) // config.updates
            if early:
                turns = math.floor(rate * steps) // config.updates
                turns -= math.floor(rate * before) // config.updates
        if early and not self.update.learns_early:
            turns = 0
        for turn in range(turns):
            learned = self._learn(turn, early)
            if not early:
                for term in self.terms:
                    learned |= term.adapt(learned, config.updates, counters.episodes)
                log.updates += config.updates
                counters.updates += config.updates
            log.totals.append({n: v for n, v in learned.items() if math.isfinite(v)})
        log.cycles += 1
        counters.cycle += 1

    def _learn(self, turn: int, early: bool) -> Metrics:
        """Takes a turn of updates, or of early phases only; returns the metrics of all ranks."""
        fed = self._spent.get("time/feed_s", 0.0)
        with self._timed("time/learn_s"):
            measured = self.update.run_parts(self._feeds(turn), self.schedules(), early)
            learned = over_ranks(measured, self.comm)
        self._spent["time/learn_s"] -= self._spent["time/feed_s"] - fed
        return learned

    def collect(self) -> None:
        config, counters, log = self.config, self.counters, self.log
        cycle = counters.cycle
        if self.collector.ordered is None:
            self.order(cycle)
        collected = self.collector.collect()
        ends, watch = collected.succeeded, self.replay.watch
        seen = RewardMismatches() if watch is None else watch.take()
        steps = collected.played.length.sum()
        counts = np.array([ends.sum(), len(ends), steps, collected.unfinished, *seen])
        succeeded, tried, steps, unfinished, *compared = map(int, self.comm.sum_in_place(counts))
        self._judge_rewards(RewardMismatches(*compared))
        log.succeeded += succeeded
        log.tried += tried
        log.env_steps += steps
        counters.env_steps += steps
        counters.episodes += tried
        ends_epoch = log.cycles + 1 == config.cycles
        counters.episodes_cut += unfinished if ends_epoch else 0
        for part in self.parts:
            part.end_collecting(self, cycle, ends_epoch)
        with self._timed("time/take_in_s"):
            self._take_in(collected, cycle)

    def _judge_rewards(self, mismatches: RewardMismatches) -> None:
        """Warns once if replay computes other rewards than steps paid, or ends the run."""
        before, both = self._compared, zip(self._compared, mismatches, strict=True)
        total = self._compared = RewardMismatches(*map(sum, both))
        if not total.common and (before.wrong or not total.wrong):
            return
        example = "" if self.replay.watch is None else self.replay.watch.example
        # all ranks get here: counts are summed
        examples = filter(None, self.comm.allgather(example))
        text = (
            f"{self.config.env_id}: {next(examples, 'rewards differ')} "
            f"({total.wrong} of {total.steps} steps that were drawn with their own goal)"
        )
        if total.common:
            raise EnvironmentFault(f"{text}\nmusic-tf check-env {self.config.env_id} says more")
        if self.comm.is_root:
            _LOGGER.warning("%s; the run continues as long as they are few", text)

    def _take_in(self, collected: Collected, cycle: int) -> None:
        config, log, played = self.config, self.log, collected.played
        kept = by_worker(config, self.envs.info, collected, self.replay.shards)
        self.replay.add(kept, cycle, self.rewards.priorities(kept, cycle))
        for part in self.parts:
            part.take_in(self, kept, cycle)
        cells = visited_cells(played.observation, played.length, self.envs.info)
        visited = [
            (int(x), int(y)) for of_rank in self.comm.allgather(sorted(cells)) for x, y in of_rank
        ]
        log.cells = sorted({*log.cells, *visited})

    def demonstrate(self, episodes: Episodes) -> None:
        """Adds demonstrations to empty replay and to the moments of inputs; a collective call."""
        replay, workers, cycle = self.replay, self.config.workers, 2**62  # of streams of their own
        replay.keep(len(episodes.length), workers)
        bare = ~episodes.desired_goal.any(axis=1, keepdims=True)
        ends = np.where(bare, episodes.achieved_goal[:, -1], episodes.desired_goal)
        given, seen = (
            {worker: each.rows(worker, None, workers) for worker in replay.shards}
            for each in (episodes, episodes._replace(desired_goal=ends))
        )
        replay.add(given, cycle, self.rewards.priorities(given, cycle))
        self.inputs.see(*replay.sample_fresh(seen, cycle), workers)

    def order(self, cycle: int) -> None:
        steps, _ = self.since_begun
        at_random = steps < self.config.collect.random_steps
        initial = not (self._visited or any(shard.size for shard in self.replay.shards.values()))
        self._visited = True
        of_parts = (part.acting() for part in self.parts)
        snapshot = next(filter(None, of_parts), None) or self.snapshot()
        self.collector.order(Order(cycle, snapshot, at_random, self.world, initial))

    def _feeds(self, turn: int) -> Iterator[Feed]:
        """Yields the parts of a turn's inputs, and measures the time that each takes."""
        parts = self.feeding.parts(self.counters.cycle + turn * _TURN, self.active_terms())
        while True:
            with self._timed("time/feed_s"):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def feed(self, turn: int = 0) -> Feed:
        """Returns the inputs of one turn of updates in one part."""
        cycle = self.counters.cycle + turn * _TURN
        (whole,) = self.feeding.parts(cycle, self.active_terms(), count=1)
        return whole

    def copy_replay(self) -> str:
        """Copies replay to the GPU, where updates look it up; returns a message for the user."""
        near = self.envs.distance_reward() if self.replay.goal_reward is not None else None
        if reason := why_not_on_device(self.replay, near):
            return f"replay stays on the host: {reason}"
        device = DeviceReplay(self.replay, near, self.inputs.now)
        feeds = self.config, self.replay, self.inputs, self.rewards
        self.feeding = DeviceFeeding(*feeds, device)
        return f"replay has a copy on the device, {device.bytes / GIB:.2f} GiB"

    def schedules(self) -> Schedules:
        return self.rewards.schedules(self.counters.epoch)

    @property
    def since_begun(self) -> tuple[int, int]:
        """Environment steps and updates so far, of the run or of the skill that is learned now."""
        env_steps, updates = max((part.begun for part in self.parts), default=(0, 0))
        return self.counters.env_steps - env_steps, self.counters.updates - updates

    @property
    def notices(self) -> list[str]:
        cut = cut_by_epochs(self.config, self.envs.spec.max_episode_steps)
        of_parts = [notice for part in self.parts for notice in part.notices]
        return [notice for notice in (cut, self.envs.notice, *of_parts) if notice]

    def active_terms(self) -> Sequence[RewardTerm]:
        return counting(self.terms, self.counters.epoch, self.levels.now)

    def policy(self) -> Policy:
        """Returns a copy of the current policy, deterministic."""
        return SnapshotPolicy(self.snapshot())

    def final_policy(self) -> tuple[Evaluation, Policy]:
        special = (part.final_policy(self) for part in self.parts)
        return next(filter(None, special), None) or (self.evaluation, self.policy())

    def snapshot(self) -> Snapshot:
        """Returns a copy of all that acting needs."""
        update, encoder = self.update, self.update.learner.encoder
        return Snapshot(
            self.config.agent.actor,
            update.actor_weights(),
            self.inputs.now,
            self.rewards.prior(),
            {} if encoder is None else update.arrays_of([encoder]),
            self.rewards.explorer(),
        )

    @property
    def world(self) -> int:
        """The stage of a changing world in this epoch, which follows from counters alone."""
        # only epochs change it, so that no episode is played in two worlds
        begun = self.counters.env_steps - self.log.env_steps
        skill = self.config.incremental.skill_at(self.counters.epoch, self.config.skills)
        return stage_at(self.config.env.stages, begun, skill)

    @property
    def evaluation(self) -> Evaluation:
        as_trained = self.as_trained
        if self.evaluated is None:
            return as_trained
        return as_trained._replace(envs=self.evaluated, actors=None)

    @property
    def as_trained(self) -> Evaluation:
        """The same as `evaluation`, in episodes of the length of training."""
        actors = None if self.actors is None else self.actors.evaluate
        return Evaluation(self.envs, self.config, self.comm, actors, self.world, self._of_networks)

    def evaluate(self, on_played: OnPlayed = lambda _: None, world: int | None = None) -> Metrics:
        """Measures the current policy, in a stage of the world, as the first part does that can."""
        evaluation = self.evaluation
        if world is not None:
            evaluation = evaluation._replace(world=world)
        measured = (part.evaluate(self, evaluation, on_played) for part in self.parts)
        return next((metrics for metrics in measured if metrics is not None), {})

    def compare(self) -> Comparison | None:
        return next(filter(None, (part.compare(self) for part in self.parts)), None)

    def _of_networks(self, played: Episodes) -> Metrics:
        return self.evaluation.heldout(self.active_terms(), self.update.weights(), played)

    def weights(self) -> dict[str, np.ndarray]:
        return {name: array for name, array in self.shared().items() if name.startswith(ACTING)}

    def shared(self) -> dict[str, np.ndarray]:
        return {name: array for part in self.parts for name, array in part.shared().items()}

    def of_workers(self, everything: bool = False) -> dict[int, dict[str, np.ndarray]]:
        """Returns the state of each worker of this rank, with unsaved replay rows or all rows."""
        rows = self.replay.everything() if everything else self.replay.unsaved()
        # the state of a term changes with new episodes only
        return {
            worker: new | (self._of_worker(worker) if new else {}) for worker, new in rows.items()
        }

    def meta(self) -> dict[str, Any]:
        return {
            "counters": dataclasses.asdict(self.counters),
            "log": dataclasses.asdict(self.log),
            "goals": self.config.goals,
            "condition": self.config.condition.kind,
            **({"demonstrations": count} if (count := self.replay.demonstrations) else {}),
            "env_id": self.config.env_id,
            ENVIRONMENT: dataclasses.asdict(self.envs.declared),
            **{name: value for part in self.parts for name, value in part.meta().items()},
            **({"unevaluated": self.unevaluated} if self.unevaluated else {}),
        }

    def check_equal(self) -> None:
        """Compares the shared state of all ranks bit by bit; a collective call."""
        step = self.update.step.numpy()
        check_same_state({**self.shared(), "optimiser step": step}, int(step), self.comm)

    def expected(self) -> ExpectedState:
        """Returns names, types and shapes of the arrays in a checkpoint of this run."""
        worker, shard = next(iter(self.replay.shards.items()))
        rows = expected_of(shard.full_rows()) | expected_of(self._of_worker(worker), free=True)
        shared = expected_of(self.shared())
        less = (part.expected(shared, rows) for part in self.parts)
        of_shared, of_rows = next(filter(None, less), None) or (shared, rows)
        return ExpectedState(of_shared, of_rows, self.envs.declared)

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Restores the state that `shared` and `meta` of an earlier trainer returned."""
        counters = restore_fields(Counters(), meta.get("counters"), "counters")
        log = restore_fields(EpochLog(), meta.get("log"), "log")
        last = read(meta.get("unevaluated", {}), Metrics)
        if not is_count(demonstrations := meta.get("demonstrations", 0)):
            raise ValueError(f"demonstrations: not what a run saves: {str(demonstrations)[:80]}")
        shared = self._widened(shared)
        for part in self.parts:
            part.load(shared, meta)
        self.replay.keep(demonstrations, self.config.workers)
        self.counters, self.log, self.unevaluated = counters, log, last
        self._visited = False  # what replay holds says whether tasks were visited
        self.collector.forget()

    def load_workers(self, saved: Mapping[int, Sequence[Mapping[str, np.ndarray]]]) -> None:
        """Restores what `of_workers` returned at each save, by worker, oldest save first."""
        for worker, shard in self.replay.shards.items():
            shard.check_rows(saved[worker])
        for worker, shard in self.replay.shards.items():
            names = set(shard.full_rows())
            shard.restore([self._widened({n: rows[n] for n in names}) for rows in saved[worker]])
            for part in self.parts if saved[worker] else ():
                part.load_worker(worker, saved[worker][-1])

    def _widened(self, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return functools.reduce(lambda now, part: part.widened(now), self.parts, arrays)

    def forget(self) -> None:
        """Drops replay and the state of terms that belongs to workers."""
        self._visited = False
        self.replay.forget()
        for part in self.parts:
            part.forget()

    def start_from(self, shared: Mapping[str, np.ndarray]) -> None:
        """Loads weights, targets and statistics alone (warm start); raises as `load`."""
        for part in self.parts:
            part.start_from(shared)
        self.tell_replaced()

    def tell_replaced(self) -> None:
        for part in self.parts:
            part.replaced(self)

    def _of_worker(self, worker: int) -> dict[str, np.ndarray]:
        return {n: array for part in self.parts for n, array in part.of_worker(worker).items()}

    @contextlib.contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self._spent[name] = self._spent.get(name, 0.0) + time.monotonic() - start

    def _throughput(self) -> Metrics:
        counters, seconds = self.counters, self.log.seconds
        waits = self.comm.max_in_place(np.array(self.comm.take_timing()))
        metrics = {
            "time/epoch": float(counters.epoch),
            "time/env_steps": float(counters.env_steps),
            "time/updates": float(counters.updates),
            "time/fps": self.log.env_steps / seconds,
            "time/updates_per_second": self.log.updates / seconds,
        }
        if not self.envs.spec.goal_dim:
            metrics["time/episodes"] = float(counters.episodes)
            if self.config.collect.steps is not None:
                metrics["time/episodes_cut"] = float(counters.episodes_cut)
        if self.actors is not None:
            drawn = self.log.updates * self.config.replay.batch_size * self.config.workers
            metrics["train/replay_ratio"] = drawn / self.log.env_steps
            metrics |= self.actors.take_metrics() | self._spent
            self._spent = {}
        if self.comm.size > 1:
            metrics |= {"mpi/allreduce_ms": float(waits[0]), "mpi/wait_ms_max": float(waits[1])}
        return metrics
