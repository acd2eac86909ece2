"""Meta-evaluation: the return of an agent in a task against the number of its episodes so far."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.networks.acting import Snapshot, SnapshotPolicy
from music_tf.networks.belief import Belief, Encoder
from music_tf.randomness import reset_seeds, stream
from music_tf.rollout import Conditions, Perturbation, play
from music_tf.training.evaluation import SEED, Comparison, random_actions, zero_policy
from music_tf.training.tasks import Tasks, TaskSets, context_of
from music_tf.types import Array, Episodes, IntArray, Metrics

VISITS = 20
"""Visits to each task in the final evaluation of a run and in `evaluate`."""
_RIDGE = 1e-3
_PROBED = 2
"""Episodes of a visit before the probe reads the belief."""
_SHOWN = (1, 2)
"""Numbers of context episodes after which the return has a metric of its own."""
_LATE = 0.3
"""Share of the episodes of a visit that count as late."""


class Adaptation(NamedTuple):
    """Results of R visits to each of N tasks, with E episodes a visit."""

    returns: Array  # [N, R, E]
    lengths: Array  # [N, R, E]
    success: Array  # [N, R, E], 1 where an episode succeeded; -1 where no info says it
    context_returns: Array  # [N, R, E], of the reward that contexts hold
    means: Array  # [N, R, E, L], of the belief after each episode
    variances: Array  # [N, R, E, L]


class Adaptations(NamedTuple):
    """Results of visits to evaluation tasks and to training tasks."""

    test: Adaptation
    train: Adaptation


PARTS = Adaptations._fields


class MetaEvaluation(NamedTuple):
    """Measures how an agent adapts to tasks; `play` is a collective call."""

    envs: LockstepEnvs
    config: Config
    comm: Communicator
    tasks: TaskSets
    parts: Sequence[str] = PARTS
    """Which tasks `music-tf evaluate` visits."""
    actors: Callable[[Snapshot, str, int], Adaptation] | None = None
    """`Actors.adapt`, which plays this rank's share of visits; None without actors."""

    @property
    def explored(self) -> int:
        """Number of episodes of a visit that draw their latents from the prior."""
        return self.config.tasks.explore

    @property
    def episodes(self) -> int:
        return self.config.tasks.evaluation_episodes

    def play(self, snapshot: Snapshot | None, part: str, repeats: int) -> Adaptation:
        """Visits the tasks of `train` or `test`, each time from the prior on; None acts at random.

        After the episodes that explore, each acts under a latent of the belief from all so far.
        """
        tasks: Tasks = getattr(self.tasks, part)
        count = len(tasks) * repeats

        def own_part() -> Adaptation:
            if self.actors is not None and snapshot is not None:
                return self.actors(snapshot, part, repeats)
            rows = np.arange(count)
            mine = rows[rows // len(self.envs) % self.comm.size == self.comm.rank]
            return among_all(count, mine, self.play_some(snapshot, part, repeats, mine))

        visits = self.comm.together(own_part)
        size = (len(tasks), repeats)
        summed = (self.comm.sum_in_place(values) for values in visits)
        return Adaptation(*(values.reshape(*size, *values.shape[1:]) for values in summed))

    def play_some(
        self, snapshot: Snapshot | None, part: str, repeats: int, rows: IntArray
    ) -> Adaptation:
        """Plays the visits `rows`, numbered task by task; one axis [rows] replaces [N, R]."""
        envs = len(self.envs)
        results = no_visits(len(rows), self.episodes, self.config.condition_size)
        for start in range(0, len(rows), envs):
            some = rows[start : start + envs]
            visited, _ = self._visit(snapshot, part, np.resize(some, envs), repeats)
            for values, played in zip(results, visited, strict=True):
                values[start : start + envs] = played[: len(some)]
        return results

    def starts(self, snapshot: Snapshot, tasks: Sequence[int]) -> tuple[Conditions, Array]:
        """Returns conditions of first visits by episode, with deviations of their beliefs."""
        results, episodes = self._visit(snapshot, "test", np.array(tasks), 1)
        starts = [(start.seeds, start.skills, start.tasks) for start, _ in episodes]
        every = [np.stack(rows, axis=1) for rows in zip(*starts, strict=True)]
        seeds, skills, places = (rows.reshape(-1, *rows.shape[2:]) for rows in every)
        unsure = np.ones(results.returns.shape, np.float32)
        deviations = np.sqrt(results.variances.mean(axis=-1))
        unsure[:, self.explored :] = deviations[:, self.explored - 1 : -1]
        return Conditions(seeds, None, skills, places), unsure.ravel()

    def first_visits(self, snapshot: Snapshot, count: int) -> Episodes:
        """Plays the first visit of `play` to the first `count` evaluation tasks, on this rank."""
        # Returns episodes task after task, all episodes of a visit in order.
        visits: list[Episodes] = []
        for start in range(0, count, len(self.envs)):
            rows = np.arange(start, start + len(self.envs)) % len(self.tasks.test)
            _, episodes = self._visit(snapshot, "test", rows, 1)
            for row in range(min(len(self.envs), count - start)):
                visits += [played.rows(row, row + 1) for _, played in episodes]
        return Episodes.joined(visits)

    def metrics(self, test: Adaptation, train: Adaptation) -> Metrics:
        return {
            **self.by_episode(test),
            "adapt/train_return": float(train.returns[..., -1].mean()),
            "adapt/variance": float(test.variances[:, :, -1].mean()),
            "adapt/probe_r2": self.probe(train, test),
        }

    def by_episode(self, visits: Adaptation) -> Metrics:
        """Returns means over visits, by the number of earlier episodes in the visit."""
        shown = {str(seen): seen for seen in _SHOWN if self.explored <= seen < self.episodes}
        episodes = {"prior": 0, **shown, "last": self.episodes - 1}
        metrics = {
            "eval/return": float(visits.returns[..., -1].mean()),
            "eval/length": float(visits.lengths[..., -1].mean()),
        }
        for name, values in (("return", visits.returns), ("success", visits.success)):
            means = values.mean(axis=(0, 1))
            numbers = episodes if name == "return" or values.min() >= 0.0 else {}
            metrics |= {f"adapt/{name}_{seen}": float(means[at]) for seen, at in numbers.items()}
        inference = self.config.agent.inference
        if inference is not None and inference.reward:
            means = visits.context_returns.mean(axis=(0, 1))
            late = means[-max(1, round(_LATE * self.episodes)) :].mean()
            parts = {"prior": means[0], "last": means[-1], "late": late}
            metrics |= {f"adapt/context_return_{name}": float(m) for name, m in parts.items()}
        return metrics

    def compare(self, snapshot: Snapshot, repeats: int) -> Comparison:
        ours, random = (self.play(who, "test", repeats) for who in (snapshot, None))
        policies = {"ours": self.by_episode(ours), "random": self.by_episode(random)}
        better = ours.returns[..., -1] - random.returns[..., -1]  # [N, R]
        errors = {"adapt/return_last": float(better.std(ddof=1)) / math.sqrt(better.size)}
        return Comparison(policies, repeats, "visits to each evaluation task", errors)

    def probe(self, train: Adaptation, test: Adaptation, seen: int = _PROBED) -> float:
        """Returns R^2 of ridge regression from mean beliefs after `seen` episodes to new tasks."""
        at = min(seen, self.episodes) - 1

        def pairs(visits: Adaptation, tasks: Tasks) -> tuple[Tasks, Tasks]:
            means = visits.means[:, :, at].astype(np.float64)
            ones = np.ones((*means.shape[:2], 1))
            rows = np.concatenate([means, ones], axis=-1).reshape(-1, means.shape[-1] + 1)
            return rows, np.repeat(tasks, means.shape[1], axis=0)

        inputs, wanted = pairs(train, self.tasks.train)
        square = inputs.T @ inputs + _RIDGE * np.eye(inputs.shape[1])
        rows, truth = pairs(test, self.tasks.test)
        error = np.square(rows @ np.linalg.solve(square, inputs.T @ wanted) - truth).sum()
        spread = np.square(truth - truth.mean(axis=0)).sum()
        return float(1.0 - error / spread) if spread > 0.0 else 0.0

    def _visit(
        self, snapshot: Snapshot | None, part: str, rows: IntArray, repeats: int
    ) -> tuple[Adaptation, list[tuple[Conditions, Episodes]]]:
        """Plays the visit `rows[i]` in environment i; results have no axis of repeats."""
        inference = self.config.agent.inference
        if inference is None:
            raise ValueError("MetaEvaluation: expected an agent that infers its task")
        results = no_visits(len(rows), self.episodes, inference.latent)
        episodes: list[tuple[Conditions, Episodes]] = []
        tasks: Tasks = getattr(self.tasks, part)[rows // repeats]
        drawn = [
            stream(SEED, f"adaptation/{part}", *map(int, divmod(row, repeats))) for row in rows
        ]
        encoder = None if snapshot is None else Encoder(snapshot.encoder, inference)
        beliefs: list[Belief] = [] if encoder is None else [encoder.prior] * len(rows)
        contexts: list[list[Array]] = [[] for _ in rows]
        for episode in range(self.episodes):
            seeds = np.array([int(reset_seeds(generator, 1)[0]) for generator in drawn])
            noise = [generator.standard_normal(inference.latent, np.float32) for generator in drawn]
            if snapshot is None or encoder is None:
                draw = random_actions(self.envs.spec, episode)
                actions = np.stack([draw(int(row)) for row in rows], axis=1)  # [T, E, A]
                acting, explore = zero_policy, Perturbation.adding(actions)
                latents = np.zeros([len(rows), inference.latent], np.float32)
            else:
                acting, explore = SnapshotPolicy(snapshot, rows=1), None
                believed = beliefs if episode >= self.explored else [encoder.prior] * len(rows)
                latents = np.stack(
                    [belief.draw(n) for belief, n in zip(believed, noise, strict=True)]
                )
            conditions = Conditions(seeds, None, latents, tasks)
            played = play(self.envs, acting, conditions, explore)
            episodes.append((conditions, played))
            results.returns[:, episode] = played.reward.sum(axis=1)
            results.lengths[:, episode] = played.length
            results.success[:, episode] = played.success if self.envs.says_success else -1.0
            paid: Array = played.reward
            if inference.reward:  # which contexts hold in place of it
                of_steps = played.extras[inference.reward][:, 1:, 0]
                paid = np.where(played.step_mask, of_steps, 0.0)
            results.context_returns[:, episode] = paid.sum(axis=1)
            if snapshot is None or encoder is None:
                continue
            for row, context in enumerate(contexts):
                context.append(context_of(snapshot, inference, played, row))
            beliefs = [encoder(np.concatenate(context)) for context in contexts]
            results.means[:, episode] = [belief.mean for belief in beliefs]
            results.variances[:, episode] = [belief.variance for belief in beliefs]
        return results, episodes


def among_all(count: int, rows: IntArray, some: Adaptation) -> Adaptation:
    """Returns `count` visits, of which `rows` are the given ones and all others are zeros."""
    every = no_visits(count, some.returns.shape[1], some.means.shape[-1])
    for values, visited in zip(every, some, strict=True):
        values[rows] = visited
    return every


def no_visits(visits: int, episodes: int, latent: int) -> Adaptation:
    """Returns an `Adaptation` of zeros, without the axis of repeats."""
    each = (visits, episodes)
    numbers = [np.zeros(each, np.float32) for _ in range(4)]
    return Adaptation(*numbers, *(np.zeros((*each, latent), np.float32) for _ in range(2)))
