"""Plays the episodes that a cycle learns from."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import EnvironmentInfo
from music_tf.measures.behaviour import support_lost_at
from music_tf.networks.acting import Snapshot, policy_of
from music_tf.randomness import stream
from music_tf.rollout import (
    Conditions,
    ConditionSampler,
    OpenEpisodes,
    padded,
    perturbation,
    play,
)
from music_tf.types import BoolArray, Episodes


class Collected(NamedTuple):
    """What the environments of this rank played in a cycle."""

    played: Episodes
    """All of it, worker by worker."""
    kept: Mapping[int, Episodes]
    """What is learned from, by worker: without what follows a lost object."""
    succeeded: BoolArray
    """Of each episode that came to its end, whether it succeeded."""


class Collector:
    """Plays exploring episodes, or steps of them, in each environment of this rank's workers."""

    def __init__(
        self,
        config: Config,
        envs: LockstepEnvs,
        workers: Sequence[int],
        comm: Communicator,
    ) -> None:
        """Takes `config.rollouts` environments for each worker of this rank."""
        self.envs = envs
        self._config = config
        self._workers = workers
        self._comm = comm
        self.sampler = ConditionSampler(config, envs.spec.goal_dim)
        steps, size, every = config.collect.steps, config.condition_size, config.condition.every
        self._open = None if steps is None else OpenEpisodes(envs, size, steps, every)

    def begin_epoch(self) -> None:
        """Cuts off all episodes that are still open, so that an epoch begins with resets."""
        self.sampler.begin_epoch()
        if self._open is not None:
            self._open.cut()

    def collect(self, snapshot: Snapshot, cycle: int, at_random: bool = False) -> Collected:
        """Plays the episodes or steps of a cycle; every rank must call it together.

        The cycle decides which draws are taken; `at_random` takes uniform actions in place of the
        policy's.

        Raises:
            EnvironmentFault: An environment of any rank spoiled an episode again and again.
            NumbersFault: The policy of any rank returned an action that is not finite.
        """
        config, spec = self._config, self.envs.spec
        size, opened = config.rollouts, self._open

        def streams(purpose: str) -> list[np.random.Generator]:
            return [stream(config.seed, purpose, worker, cycle) for worker in self._workers]

        starts = streams("rollout/conditions")
        explore = perturbation(
            config.exploration,
            streams("rollout/exploration"),
            (config.collect.steps or spec.max_episode_steps, size, spec.action_dim),
        )
        if at_random:
            explore = explore._replace(replaced=np.ones_like(explore.replaced))
        policy = policy_of(snapshot, config.exploration.sample, rows=size)
        self.sampler.begin_cycle(cycle)
        numbers = np.add.outer(np.multiply(self._workers, size), np.arange(size))  # [workers, R]
        if opened is not None:

            def begin(env: int) -> Conditions:
                number = numbers.ravel()[env : env + 1]
                return self.sampler.begin_episodes(starts[env // size], number)

            parts, succeeded = self._comm.together(lambda: opened.play(policy, begin, explore))
            kept = {
                worker: _joined(parts[index * size : (index + 1) * size])
                for index, worker in enumerate(self._workers)
            }
            return Collected(_joined(parts), kept, succeeded)
        drawn = list(map(self.sampler.begin_episodes, starts, numbers))
        goals = [one.goals for one in drawn if one.goals is not None]
        conditions = Conditions(
            seeds=np.concatenate([one.seeds for one in drawn]),
            goals=np.concatenate(goals) if goals else None,
            skills=np.concatenate([one.skills for one in drawn]),
        )
        played = self._comm.together(lambda: play(self.envs, policy, conditions, explore))
        cut = cut_where_lost(played, self.envs.info) if config.lost_object == "absorb" else played
        kept = {
            worker: Episodes.from_named(
                {n: rows[index * size : (index + 1) * size] for n, rows in cut.named().items()}
            )
            for index, worker in enumerate(self._workers)
        }
        return Collected(played, kept, played.success)


def _joined(parts: Sequence[Sequence[Episodes]]) -> Episodes:
    """Returns the parts that several environments played as one batch."""
    named = [part.named() for own in parts for part in own]
    return Episodes.from_named({n: np.concatenate([one[n] for one in named]) for n in named[0]})


def cut_where_lost(episodes: Episodes, info: EnvironmentInfo) -> Episodes:
    """Cuts each episode after the step that takes the object off its support."""
    first = support_lost_at(episodes.observation, episodes.length, info)
    lost = (first >= 1) & (first <= episodes.length)
    length = np.where(lost, first, episodes.length)
    truncated = episodes.truncated & ~lost
    return padded(episodes._replace(length=length, lost=lost, truncated=truncated))
