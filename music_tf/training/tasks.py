"""Tasks of a family (PEARL): their draw, and visits that explore a task and infer its latent."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from music_tf.config.agents import Inference
from music_tf.config.names import POINT_ROBOT, with_hidden_goal
from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import TEST_TASKS, LockstepEnvs
from music_tf.errors import UsageError
from music_tf.networks.acting import Snapshot, SnapshotPolicy
from music_tf.networks.belief import Belief, Encoder, Steps, context_rows
from music_tf.randomness import reset_seeds, stream
from music_tf.replay.tasks import tasks_of
from music_tf.rollout import Conditions, Policy, perturbation, play
from music_tf.training.collect import Collected, Collector, Order
from music_tf.types import Array, Episodes, Floats, IntArray

Tasks: TypeAlias = Floats


class TaskSets(NamedTuple):
    """Parameters of the training tasks and of the evaluation tasks."""

    train: Tasks  # [N, D]
    test: Tasks  # [M, D]

    @property
    def notice(self) -> str:
        """Message that evaluation tasks are training tasks as well; empty if none is."""
        repeated = int((self.test[:, None] == self.train).all(axis=-1).any(axis=-1).sum())
        if not repeated:
            return ""
        return f"{repeated} of {len(self.test)} evaluation tasks are training tasks as well"

    def record(self) -> dict[str, Any]:
        return {name: tasks.tolist() for name, tasks in self._asdict().items()}


def task_sets(config: Config, envs: LockstepEnvs) -> TaskSets | None:
    """Draws the tasks of a run, the same on all ranks; None for a run with one task."""
    inference = config.agent.inference
    if inference is None:
        return None
    if envs.spec.goal_dim:
        raise UsageError(
            f"env_id: a task is inferred, not shown, and {config.env_id} shows goals; expected a "
            "family of tasks without goals\n"
            f"for example: --env-id {with_hidden_goal(config.env_id) or POINT_ROBOT}"
        )
    if inference.reward and envs.spec.extras.get(inference.reward) != 1:
        raise UsageError(
            f"agent.context_reward: expected the name of one number among the extras "
            f"{sorted(envs.spec.extras)}, got {inference.reward[:80]!r}\n"
            f"for example: --world.extras {inference.reward[:80]}"
        )
    longest = envs.spec.max_episode_steps
    played = config.context_episodes * longest
    if inference.rows > played and config.tasks.visits is None:
        raise UsageError(
            f"agent.context_rows: a visit plays {config.context_episodes} context episodes of "
            f"{longest} steps, expected at most {played} rows, got {inference.rows}\n"
            f"nearest: --agent.context-rows {played}; or more --tasks.initial and --tasks.prior"
        )
    episodes = config.rollouts * max(map(config.rounds_of_visit, (False, True)))
    needed = config.tasks.train // config.workers * episodes * (longest + 1)
    if config.replay.capacity < needed:
        raise UsageError(
            f"replay.capacity: a worker keeps a visit to each of its "
            f"{config.tasks.train // config.workers} tasks, {episodes} episodes of {longest} "
            f"steps, got {config.replay.capacity}\nnearest: --replay.capacity {needed}"
        )
    seed = 1337 + config.seed if config.tasks.seed is None else config.tasks.seed
    generator = stream(seed, "tasks")
    train, test = config.tasks.train, config.tasks.test
    if not envs.environment.has_wrapper_attr(TEST_TASKS):
        drawn = envs.sample_tasks(train + test, generator)
        return TaskSets(drawn[:train], drawn[train:])
    sets = TaskSets(
        envs.sample_tasks(train, generator), envs.sample_tasks(test, generator, TEST_TASKS)
    )
    if sets.train.shape[1] != sets.test.shape[1]:
        raise UsageError(
            f"env_id: {TEST_TASKS} of {config.env_id}: expected tasks of "
            f"{sets.train.shape[1]} numbers, as sample_tasks gives, got {sets.test.shape[1]}"
        )
    return sets


def recorded_tasks(record: Mapping[str, Any] | None, config: Config) -> TaskSets | None:
    """Returns the tasks that a run has recorded; None for a run with one task."""
    if config.agent.inference is None:
        return None
    counts = {"train": config.tasks.train, "test": config.tasks.test}
    try:
        sets = [np.array((record or {})[name], np.float64) for name in counts]
        sizes = {tasks.shape[1:] for tasks in sets}
        fits = [len(tasks) for tasks in sets] == list(counts.values())
        fits &= len(sizes) == 1 and len(*sizes) == 1 and all(np.isfinite(t).all() for t in sets)
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise UsageError(
            f"tasks: expected {counts['train']} tasks under 'train' and {counts['test']} under "
            "'test', lists of as many finite numbers each, as a run records them in config.json"
        )
    return TaskSets(*sets)


def context_of(snapshot: Snapshot, inference: Inference, episodes: Episodes, row: int) -> Array:
    """Returns the context rows of the episode at index `row`, [T, C]."""
    length = int(episodes.length[row])
    observation = episodes.observation[row, : length + 1]
    extras = {name: values[row, 1 : length + 1] for name, values in episodes.extras.items()}
    action, reward = episodes.action[row, :length], episodes.reward[row, :length]
    steps = Steps(observation[:-1], action, reward, observation[1:], extras)
    return context_rows(inference, snapshot.inputs, steps)


def _with_latent_by_step(policy: Policy, latents: Array) -> Policy:
    """Returns a policy with a new latent at each step of an episode; `latents` are [T, E, L]."""
    each = itertools.cycle(latents)  # an episode played again after a fault has other latents
    return lambda observation, goal, _, noise: policy(observation, goal, next(each), noise)


class TaskCollector(Collector):
    """Plays visits to tasks; a context holds steps of its visit alone."""

    def __init__(
        self, config: Config, envs: LockstepEnvs, workers: Sequence[int], comm: Communicator
    ) -> None:
        super().__init__(config, envs, workers, comm)
        sets, inference = task_sets(config, envs), config.agent.inference
        if sets is None or inference is None:
            raise ValueError("TaskCollector: expected an agent that infers its task")
        self.tasks, self._inference = sets, inference

    def play_ordered(self, order: Order) -> Collected:
        rounds = list(self._comm.together(lambda: list(self._rounds(order))))
        workers, size = len(self.workers), self._config.rollouts
        each = np.arange(len(rounds) * workers * size).reshape(len(rounds), workers, size)
        played = Episodes.joined(rounds).at(each.swapaxes(0, 1).ravel())  # worker by worker
        return Collected(played, [size * len(rounds)] * workers, played.success)

    def _rounds(self, order: Order) -> Iterator[Episodes]:
        config, workers = self._config, self.workers
        generators = {
            name: [stream(config.seed, f"rollout/{name}", w, order.cycle) for w in workers]
            for name in ("tasks", "conditions", "exploration", "beliefs")
        }
        owned = [tasks_of(config, worker) for worker in workers]
        visits = config.tasks.visits or 0
        number = order.cycle * (1 + visits)
        if order.initial:
            for tasks in np.transpose([list(tasks) for tasks in owned]):  # [N / W, W]
                yield from self._visit(order, tasks, number, True, generators)
        for each in range(1, 1 + visits) if visits or order.initial else [0]:
            drawn = [t[g.integers(len(t))] for g, t in zip(generators["tasks"], owned, strict=True)]
            yield from self._visit(order, np.array(drawn), number + each, False, generators)

    def _visit(
        self,
        order: Order,
        tasks: IntArray,  # of all workers, at the same time
        number: int,  # higher than that of each earlier visit to the same task
        initial: bool,  # before anything is learned
        generators: Mapping[str, Sequence[np.random.Generator]],
    ) -> Iterator[Episodes]:
        config, inference, snapshot = self._config, self._inference, order.snapshot
        size, spec = config.rollouts, self.envs.spec
        encoder = Encoder(snapshot.encoder, inference)
        beliefs: list[Belief] = []
        contexts: list[list[Array]] = [[] for _ in tasks]
        policy = SnapshotPolicy(snapshot, config.exploration.sample, rows=size)
        shape = (spec.max_episode_steps, size, spec.action_dim)
        times = shape[:1] if config.tasks.resample_belief == "step" else ()
        since = config.tasks.resample_posterior
        for posterior, is_context in self._plan(initial):
            if posterior and since >= config.tasks.resample_posterior:
                since = 0
                beliefs = []
                for context, generator in zip(contexts, generators["beliefs"], strict=True):
                    steps = np.concatenate(context)
                    if not inference.ordered:  # else all, since their order counts
                        steps = steps[generator.integers(len(steps), size=inference.rows)]
                    beliefs.append(encoder(steps))
            since = since + 1 if posterior else config.tasks.resample_posterior
            believed = beliefs if posterior else [encoder.prior] * len(tasks)
            drawn = [
                belief.draw(generator.standard_normal((*times, size, inference.latent), np.float32))
                for belief, generator in zip(believed, generators["beliefs"], strict=True)
            ]
            latents = np.concatenate(drawn, axis=-2)  # [E, L], or [T, E, L]
            acting = _with_latent_by_step(policy, latents) if times else policy
            explore = perturbation(config.exploration, generators["exploration"], shape)
            rows = np.repeat(tasks, size)
            seeds = [reset_seeds(generator, size) for generator in generators["conditions"]]
            conditions = Conditions(
                np.concatenate(seeds),
                None,
                latents[0] if times else latents,
                self.tasks.train[rows],
            )
            played = play(self.envs, acting, conditions, explore)
            count = len(rows)
            played = played._replace(
                task=rows, visit=np.full(count, number), context=np.full(count, is_context)
            )
            if is_context:
                for row in range(count):
                    steps = context_of(snapshot, inference, played, row)
                    contexts[row // size].append(steps)
            yield played

    def _plan(self, initial: bool) -> list[tuple[bool, bool]]:
        """Returns of each episode if latents are of the posterior, and if it becomes context."""
        tasks, size = self._config.tasks, self._config.rollouts

        def rounds(episodes: int, posterior: bool, context: bool) -> list[tuple[bool, bool]]:
            count = math.ceil(episodes / size)
            late = 0 if tasks.posterior_first or not posterior else tasks.resample_posterior
            return [(posterior and number >= late, context) for number in range(count)]

        if initial:
            return rounds(tasks.initial, False, True)
        return [
            *rounds(tasks.prior, False, True),
            *rounds(tasks.posterior, True, True),
            *rounds(tasks.extra, True, False),
        ]
