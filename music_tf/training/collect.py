"""Plays the episodes that a cycle learns from."""

from collections.abc import Sequence

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import EnvironmentInfo
from music_tf.measures.behaviour import support_lost_at
from music_tf.networks.acting import Snapshot, policy_of
from music_tf.randomness import stream
from music_tf.rollout import Conditions, GoalsAndSkills, padded, perturbation, play
from music_tf.types import Episodes


class Collector:
    """Plays one exploring episode in each environment of this rank's workers."""

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
        self._sampler = GoalsAndSkills(
            envs.spec.goal_dim, config.goals == "zero", config.skills, config.pinned_skill
        )

    def collect(self, snapshot: Snapshot, cycle: int) -> Episodes:
        """Plays the episodes of a cycle; every rank must call it together.

        The cycle decides which draws are taken.

        Raises:
            EnvironmentFault: An environment of any rank spoiled an episode again and again.
            NumbersFault: The policy of any rank returned an action that is not finite.
        """
        config, spec = self._config, self.envs.spec

        def streams(purpose: str) -> list[np.random.Generator]:
            return [stream(config.seed, purpose, worker, cycle) for worker in self._workers]

        drawn = [
            self._sampler.begin_episodes(generator, config.rollouts)
            for generator in streams("rollout/conditions")
        ]
        goals = [one.goals for one in drawn if one.goals is not None]
        conditions = Conditions(
            seeds=np.concatenate([one.seeds for one in drawn]),
            goals=np.concatenate(goals) if goals else None,
            skills=np.concatenate([one.skills for one in drawn]),
        )
        explore = perturbation(
            config.exploration,
            streams("rollout/exploration"),
            (spec.max_episode_steps, config.rollouts, spec.action_dim),
        )
        policy = policy_of(snapshot, config.exploration.sample, rows=config.rollouts)
        return self._comm.together(lambda: play(self.envs, policy, conditions, explore))

    def kept(self, episodes: Episodes) -> dict[int, Episodes]:
        """Returns what is learned from, by worker: without what follows a lost object."""
        if self._config.lost_object == "absorb":
            episodes = cut_where_lost(episodes, self.envs.info)
        size, named = self._config.rollouts, episodes.named()
        return {
            worker: Episodes.from_named(
                {name: rows[index * size : (index + 1) * size] for name, rows in named.items()}
            )
            for index, worker in enumerate(self._workers)
        }


def cut_where_lost(episodes: Episodes, info: EnvironmentInfo) -> Episodes:
    """Cuts each episode after the step that takes the object off its support."""
    first = support_lost_at(episodes.observation, episodes.length, info)
    lost = (first >= 1) & (first <= episodes.length)
    length = np.where(lost, first, episodes.length)
    return padded(episodes._replace(length=length, lost=lost))
