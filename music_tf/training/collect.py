"""Plays the episodes that a cycle learns from."""

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from music_tf import rollout
from music_tf.config.settings import Config
from music_tf.config.terms import TermConfig
from music_tf.config.world import class_in_module, named_in_module
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import EnvironmentInfo
from music_tf.errors import (
    EXIT_DONE,
    EXIT_STOPPED,
    EnvironmentFault,
    Stopped,
    UsageError,
    fault_of,
)
from music_tf.measures.behaviour import support_lost_at
from music_tf.networks.acting import EXPLORER, Snapshot, SnapshotPolicy
from music_tf.process.signals import stop_requested
from music_tf.randomness import stream
from music_tf.replay.hindsight import LED
from music_tf.training.memory import Share, refuse_too_large
from music_tf.types import BoolArray, EnvSpec, Episodes, Reach

_MOST_PLACES = 3
"""Columns of an object's place."""


class Order(NamedTuple):
    """What the environments play in the next cycle."""

    cycle: int
    """With the seed of the run it determines all random draws."""
    snapshot: Snapshot
    at_random: bool
    """Whether uniform random actions replace those of the policy."""
    world: int = 0
    """Stage of a changing world; unfinished episodes stay in their stage."""
    initial: bool = False
    """Whether replay is empty, so that every task has to be visited."""


class Collected(NamedTuple):
    """What the environments played in a cycle."""

    played: Episodes
    """Episodes or parts of them, worker by worker."""
    parts: Sequence[int]
    """Number of rows of `played` for each worker."""
    succeeded: BoolArray
    """Whether each finished episode succeeded."""
    unfinished: int = 0
    """Episodes that continue in the next cycle, or are cut at the end of the epoch."""


def make_environments(config: Config, comm: Communicator, share: Share) -> LockstepEnvs:
    """Makes the environments of this rank; if any rank fails, all ranks raise the first failure."""
    envs, told, compared = None, ("", EXIT_DONE), list[bool]()

    def accept(spec: EnvSpec, least: int) -> None:
        compared.append(True)
        refuse_too_large(config, comm, share, spec, least)

    try:
        envs = LockstepEnvs(config.env_id, share.environments, config.env, accept, config.world)
    except (UsageError, EnvironmentFault) as fault:
        told = str(fault), fault.exit_code
    except Stopped:
        told = "", EXIT_STOPPED
    if not compared:
        comm.allgather(None)  # meets what others compare in `refuse_too_large`
    comm.patient_barrier()
    if stop_requested():
        told = "", EXIT_STOPPED
    for text, code in comm.allgather(told):
        if code != EXIT_DONE:
            raise fault_of(code)(text or "stopped before the first step")
    assert envs is not None
    if config.replay.reach:
        envs.spec = dataclasses.replace(
            envs.spec, reach=_reach(config, envs.info, envs.spec.goal_dim)
        )
    return envs


def _reach(config: Config, info: EnvironmentInfo, goals: int) -> Reach:
    """Returns what `replay.reach` needs to know of an environment, or a UsageError."""
    columns = info.object or ()
    if goals > _MOST_PLACES or (info.gripper and columns and len(columns) != goals):
        raise UsageError(
            f"replay.reach: goals are places of the object, and those of {config.env_id} have "
            f"{goals} numbers\nexpected as many columns in world.object, at most {_MOST_PLACES}, "
            f"got {len(columns)}; ddpg_her takes any"
        )
    if info.gripper is None or info.object is None:
        missing = "the hand" if info.object else "the object" if info.gripper else "hand and object"
        raise UsageError(
            f"replay.reach: leads the hand to the object, but {config.env_id} has no known columns "
            f"of {missing}\nexpected --world.gripper COLUMNS --world.object COLUMNS; "
            f"music-tf check-env {config.env_id} proposes them if it finds an object (about 5 s); "
            "without one: ddpg_her"
        )
    if "task" in config.rewards and not all(map(math.isfinite, info.reward_bounds)):
        raise UsageError(
            f"replay.reach: pays the bounds of the task's reward, and those of {config.env_id} are "
            "not known\nexpected --world.reward LOWEST HIGHEST"
        )
    return Reach(info.gripper, info.object, config.replay.reach, info.reward_bounds)


def make_collector(
    config: Config, envs: LockstepEnvs, workers: Sequence[int], comm: Communicator
) -> "Collector":
    kind = class_in_module(config.agent.collector, Collector, "collector of agent")
    collector: Collector = kind(config, envs, workers, comm)
    return collector


class Collector:
    """Plays exploring episodes, or steps of them, in each environment of this rank's workers."""

    def __init__(
        self, config: Config, envs: LockstepEnvs, workers: Sequence[int], comm: Communicator
    ) -> None:
        """Takes `config.rollouts` environments for each worker of this rank."""
        self.envs = envs
        self._config = config
        self.workers = workers
        self._comm = comm
        self.sampler = rollout.ConditionSampler(config, envs.spec.goal_dim)
        steps, size, every = config.collect.steps, config.condition_size, config.condition.every
        self._open = None if steps is None else rollout.OpenEpisodes(envs, size, steps, every)
        self.ordered: Order | None = None

    def begin_epoch(self) -> None:
        """Cuts off all unfinished episodes, so that an epoch begins with resets."""
        self.sampler.begin_epoch()
        if self._open is not None:
            self._open.cut()

    def order(self, order: Order) -> None:
        self.ordered = order

    def forget(self) -> None:
        self.ordered = None

    def collect(self) -> Collected:
        """Plays the order, and returns its episodes or steps; a collective call."""
        if self.ordered is None:
            raise ValueError("collect: nothing has been ordered")
        order, self.ordered = self.ordered, None
        self.envs.set_world(order.world)
        return self.play_ordered(order)

    def play_ordered(self, order: Order) -> Collected:
        cycle, snapshot = order.cycle, order.snapshot
        config, spec = self._config, self.envs.spec
        size, opened = config.rollouts, self._open

        def streams(purpose: str) -> list[np.random.Generator]:
            return [stream(config.seed, purpose, worker, cycle) for worker in self.workers]

        starts = streams("rollout/conditions")
        exploration = config.exploration
        if order.at_random:
            exploration = dataclasses.replace(exploration, random_probability=1.0)
        explore = rollout.perturbation(
            exploration,
            streams("rollout/exploration"),
            (config.collect.steps or spec.max_episode_steps, size, spec.action_dim),
        )
        if config.explorer is not None and not order.at_random:
            tried = self._candidates(config.explorer, snapshot, streams("rollout/candidates"))
            explore = explore._replace(candidates=tried)
        if spec.reach is not None:
            shape = (spec.max_episode_steps, size)
            led = [each.random(shape) < LED for each in streams("rollout/reach")]
            leads = rollout.Leads(spec.reach, np.concatenate(led, axis=1))
            explore = explore._replace(leads=leads)
        policy = SnapshotPolicy(snapshot, config.exploration.sample, rows=size)
        self.sampler.prior = None
        if snapshot.prior is not None:
            chances = snapshot.prior.astype(np.float64)
            self.sampler.prior = chances / chances.sum()  # `choice` refuses a sum of float32
        self.sampler.begin_cycle(cycle)
        numbers = np.add.outer(np.multiply(self.workers, size), np.arange(size))  # [workers, R]
        if opened is not None:

            def begin(env: int) -> rollout.Conditions:
                number = numbers.ravel()[env : env + 1]
                return self.sampler.begin_episodes(starts[env // size], number)

            parts, succeeded = self._comm.together(lambda: opened.play(policy, begin, explore))
            counts = np.array([len(of_env) - 1 for of_env in parts]).reshape(-1, size).sum(axis=1)
            played = Episodes.joined(part for of_env in parts for part in of_env)
            return Collected(played, counts.tolist(), succeeded, opened.unfinished)
        drawn = list(map(self.sampler.begin_episodes, starts, numbers))
        goals = [each.goals for each in drawn if each.goals is not None]
        conditions = rollout.Conditions(
            seeds=np.concatenate([each.seeds for each in drawn]),
            goals=np.concatenate(goals) if goals else None,
            skills=np.concatenate([each.skills for each in drawn]),
        )
        played = self._comm.together(lambda: rollout.play(self.envs, policy, conditions, explore))
        return Collected(played, [size] * len(self.workers), played.success)

    def _candidates(
        self, term: TermConfig, snapshot: Snapshot, generators: Sequence[np.random.Generator]
    ) -> rollout.Candidates:
        """Draws actions of which exploration takes the best one by the scorer of a reward."""
        config, spec = self._config, self.envs.spec
        steps = config.collect.steps or spec.max_episode_steps
        shape = (steps, config.rollouts, term.candidate_actions, spec.action_dim)
        drawn = [each.uniform(-1.0, 1.0, shape).astype(np.float32) for each in generators]
        arrays = {name.removeprefix(EXPLORER): a for name, a in snapshot.explorer.items()}
        action_scorer = named_in_module(term.action_scorer, f"action_scorer of {term.name}")
        score = functools.partial(action_scorer, arrays, **term.scorer_arguments)
        return rollout.Candidates(np.concatenate(drawn, axis=1), score, config.rollouts)


def by_worker(
    config: Config, info: EnvironmentInfo, collected: Collected, workers: Iterable[int]
) -> dict[int, Episodes]:
    """Returns the episodes to learn from by worker, read-only, cut where the object is lost."""
    played = collected.played
    if config.lost_object == "absorb" and config.collect.steps is None:
        played = cut_where_lost(played, info)
    end, kept = 0, {}
    for worker, count in zip(workers, collected.parts, strict=True):
        start, end = end, end + count
        kept[worker] = played.rows(start, end).read_only()
    return kept


def cut_where_lost(episodes: Episodes, info: EnvironmentInfo) -> Episodes:
    """Cuts each episode after the step at which the object falls off its support."""
    first = support_lost_at(episodes.observation, episodes.length, info)
    lost = (first >= 1) & (first <= episodes.length)
    length = np.where(lost, first, episodes.length)
    truncated = episodes.truncated & ~lost
    return rollout.padded(episodes._replace(length=length, lost=lost, truncated=truncated))
