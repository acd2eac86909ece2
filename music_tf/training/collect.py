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
from music_tf.rollout import Conditions, GoalsAndSkills, OpenEpisodes, padded, perturbation, play
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
        """Takes what it plays with.

        Args:
            config: Goals, skills, exploration, and what becomes of a lost object.
            envs: `config.rollouts` environments for each worker.
            workers: Those of this rank.
            comm: The ranks, which meet a fault of any of them together.
        """
        self.envs = envs
        self._config = config
        self._workers = workers
        self._comm = comm
        self._sampler = GoalsAndSkills(
            envs.spec.goal_dim, config.goals == "zero", config.skills, config.pinned_skill
        )
        steps = config.collect.steps
        self._open = None if steps is None else OpenEpisodes(envs, config.skills, steps)

    def begin_epoch(self) -> None:
        """Cuts off all episodes that are still open, so that an epoch begins with resets."""
        if self._open is not None:
            self._open.cut()

    def collect(self, snapshot: Snapshot, cycle: int, at_random: bool = False) -> Collected:
        """Plays the episodes or steps of a cycle; every rank must call it together.

        Args:
            snapshot: What acts.
            cycle: Which draws are taken.
            at_random: Takes uniform actions in place of the policy's.

        Raises:
            EnvironmentFault: An environment of any rank spoiled an episode again and again.
            NumbersFault: The policy of any rank returned an action that is not finite.
        """
        config, spec = self._config, self.envs.spec

        def streams(purpose: str) -> list[np.random.Generator]:
            return [stream(config.seed, purpose, worker, cycle) for worker in self._workers]

        starts = streams("rollout/conditions")
        explore = perturbation(
            config.exploration,
            streams("rollout/exploration"),
            (config.collect.steps or spec.max_episode_steps, config.rollouts, spec.action_dim),
        )
        if at_random:
            explore = explore._replace(replaced=np.ones_like(explore.replaced))
        policy = policy_of(snapshot, config.exploration.sample, rows=config.rollouts)
        size = config.rollouts
        opened = self._open
        if opened is not None:
            parts, succeeded = self._comm.together(
                lambda: opened.play(
                    policy,
                    lambda env: self._sampler.begin_episodes(starts[env // size], 1),
                    explore,
                )
            )
            kept = {
                worker: _joined(
                    [part for env in range(index * size, (index + 1) * size) for part in parts[env]]
                )
                for index, worker in enumerate(self._workers)
            }
            return Collected(_joined(list(kept.values())), kept, succeeded)
        drawn = [self._sampler.begin_episodes(generator, size) for generator in starts]
        goals = [one.goals for one in drawn if one.goals is not None]
        conditions = Conditions(
            seeds=np.concatenate([one.seeds for one in drawn]),
            goals=np.concatenate(goals) if goals else None,
            skills=np.concatenate([one.skills for one in drawn]),
        )
        played = self._comm.together(lambda: play(self.envs, policy, conditions, explore))
        cut = played
        if config.lost_object == "absorb":
            cut = cut_where_lost(played, self.envs.info)
        kept = {
            worker: _rows(cut, slice(index * size, (index + 1) * size))
            for index, worker in enumerate(self._workers)
        }
        return Collected(played, kept, played.success)


def cut_where_lost(episodes: Episodes, info: EnvironmentInfo) -> Episodes:
    """Cuts each episode after the step that takes the object off its support."""
    first = support_lost_at(episodes.observation, episodes.length, info)
    lost = (first >= 1) & (first <= episodes.length)
    length = np.where(lost, first, episodes.length)
    return padded(episodes._replace(length=length, lost=lost))


def _joined(parts: Sequence[Episodes]) -> Episodes:
    """Returns one batch of several."""
    named = [part.named() for part in parts]
    return Episodes.from_named(
        {name: np.concatenate([one[name] for one in named]) for name in named[0]}
    )


def _rows(episodes: Episodes, rows: slice) -> Episodes:
    """Returns some of the episodes."""
    return Episodes.from_named({name: values[rows] for name, values in episodes.named().items()})
