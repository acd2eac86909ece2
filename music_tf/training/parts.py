"""Parts of a run: what takes part in each epoch beside the loop, and owns some of its state."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.gate import Expected, ExpectedFrom
from music_tf.networks.acting import Snapshot, arrays_of, snapshot_from
from music_tf.normalizer import InputMoments
from music_tf.replay.buffer import ReplayBuffer
from music_tf.rollout import Policy
from music_tf.training.actors import Actors
from music_tf.training.adaptation import PARTS, VISITS, Adaptations, MetaEvaluation
from music_tf.training.counters import Counters, EpochLog
from music_tf.training.evaluation import Comparison, Evaluation
from music_tf.training.tasks import task_sets
from music_tf.types import Episodes, Metrics

OnPlayed: TypeAlias = Callable[[Episodes | Adaptations], None]
"""Callback that gets the episodes of an evaluation, or the results of visits to tasks."""


class Run(Protocol):
    """What parts use of the trainer."""

    config: Config
    comm: Communicator
    replay: ReplayBuffer
    counters: Counters
    log: EpochLog

    @property
    def envs(self) -> LockstepEnvs: ...

    @property
    def actors(self) -> Actors | None: ...

    @property
    def world(self) -> int: ...

    @property
    def since_begun(self) -> tuple[int, int]: ...

    @property
    def evaluation(self) -> Evaluation: ...

    @property
    def as_trained(self) -> Evaluation: ...

    def order(self, cycle: int) -> None: ...

    def policy(self) -> Policy: ...

    def snapshot(self) -> Snapshot: ...

    def tell_replaced(self) -> None: ...


class Part:
    """A part of a run; a subclass defines the methods that it needs.

    `run` is the trainer. All ranks call the methods of all parts in one order, so that any of them
    may contain collective calls. The state of a part follows from checkpoints and counters alone,
    or resumed runs are not equal to others.
    """

    @property
    def notices(self) -> Sequence[str]:
        """Messages for the user before the run begins."""
        return ()

    @property
    def begun(self) -> tuple[int, int]:
        """Environment steps and updates at which that began which is learned now."""
        return 0, 0

    def begin_epoch(self, run: Run) -> None:
        """Called before the first cycle of an epoch."""

    def begin_cycle(self, run: Run) -> None:
        """Called before a cycle is collected."""

    def acting(self) -> Snapshot | None:
        """Returns the policy that plays the next cycle if it is not the current one."""

    def end_collecting(self, run: Run, cycle: int, ends_epoch: bool) -> None:
        """Called when a cycle has been collected, before replay gets its episodes."""

    def take_in(self, run: Run, fresh: Mapping[int, Episodes], cycle: int) -> None:
        """Called with the fresh episodes of each worker of this rank, which replay holds by now."""

    def end_epoch(self, run: Run) -> Metrics:
        """Called before an epoch counts as done; returns metrics of it."""
        return {}

    def evaluate(self, run: Run, evaluation: Evaluation, on_played: OnPlayed) -> Metrics | None:
        """Measures the current policy; the first part that returns metrics does so for all."""

    def final_policy(self, run: Run) -> tuple[Evaluation, Policy] | None:
        """Returns all that was learned as one policy, and its evaluation, if it is special."""

    def compare(self, run: Run) -> Comparison | None:
        """Compares the agent with simple policies at the end, in place of `runs.comparison`."""

    def replaced(self, run: Run) -> None:
        """Called when the weights were replaced: by a warm start, or for another skill."""

    def shared(self) -> dict[str, np.ndarray]:
        """Returns the state that is equal on all ranks, by name."""
        return {}

    def meta(self) -> dict[str, Any]:
        """Returns counts for a checkpoint as JSON values, by names of its own."""
        return {}

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Restores what `shared` and `meta` of all parts returned; a ValueError refuses it."""

    def start_from(self, shared: Mapping[str, np.ndarray]) -> None:
        """Takes over what a new run may from `shared` of another one (warm start)."""

    def of_worker(self, worker: int) -> dict[str, np.ndarray]:
        """Returns the state for a worker of this rank, by name; it changes with new episodes."""
        return {}

    def load_worker(self, worker: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Restores what `of_worker` of all parts of an earlier run returned."""

    def forget(self) -> None:
        """Called when replay has been emptied although the run goes on."""

    def widened(self, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Returns stored state or rows of replay in the shapes of this run, which may be larger."""
        return arrays

    def expected(
        self, shared: Expected, rows: Expected
    ) -> tuple[ExpectedFrom, ExpectedFrom] | None:
        """Returns what a checkpoint may hold instead of what this run stores, if it may be less."""


class RunningMoments(Part):
    """Running mean and deviation of observations and goals, by which inputs are normalised."""

    def __init__(self, inputs: InputMoments) -> None:
        self._inputs = inputs

    def take_in(self, run: Run, fresh: Mapping[int, Episodes], cycle: int) -> None:
        self._inputs.see(*run.replay.sample_fresh(fresh, cycle), run.config.workers)

    def end_epoch(self, run: Run) -> Metrics:
        moments = {"observation": self._inputs.now.observation}
        if run.envs.spec.goal_dim:
            moments["goal"] = self._inputs.now.goal
        means = {f"stats/{name}_mean": float(each.mean.mean()) for name, each in moments.items()}
        return means | {
            f"stats/{name}_std": float(each.deviation.mean()) for name, each in moments.items()
        }

    def shared(self) -> dict[str, np.ndarray]:
        return self._inputs.shared()

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        self._inputs.load(shared)

    def start_from(self, shared: Mapping[str, np.ndarray]) -> None:
        self._inputs.load(shared)


class Lag(Part):
    """With `lag`, the policy that acts is a cycle old, so actors play while the learner learns."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def acting(self) -> Snapshot:
        return self.snapshot

    def end_collecting(self, run: Run, cycle: int, ends_epoch: bool) -> None:
        self.snapshot = run.snapshot()
        if not ends_epoch:  # environments are reset at the start of an epoch
            run.order(cycle + 1)

    def replaced(self, run: Run) -> None:
        self.snapshot = run.snapshot()

    def shared(self) -> dict[str, np.ndarray]:
        return {f"lagged/{name}": array for name, array in arrays_of(self.snapshot).items()}

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        named = {name.removeprefix("lagged/"): array for name, array in shared.items()}
        self.snapshot = snapshot_from(self.snapshot, named)


class PolicyEvaluation(Part):
    """Measures the current policy, and random actions in the same episodes."""

    def __init__(self) -> None:
        self._random: dict[int | tuple[int, ...], tuple[Episodes, Metrics]] = {}
        """Episodes of random actions and their behaviour metrics, by stage of the world."""

    def evaluate(self, run: Run, evaluation: Evaluation, on_played: OnPlayed) -> Metrics:
        played = evaluation.play(run.policy(), run.config.evaluation.episodes)
        on_played(played)
        metrics, config, world = evaluation.metrics_of(played), evaluation.config, evaluation.world
        pairs = {
            key.random: key.metric
            for term in config.rewards.values()
            for key in term.key_metrics(config)
            if key.random
        }
        if not pairs:
            return metrics
        if world not in self._random:
            played = evaluation.random()
            self._random[world] = played, evaluation.behaviour(played)
        played, behaviour = self._random[world]
        measured = behaviour | evaluation.answers(played)
        return metrics | {name: measured[m] for name, m in pairs.items() if m in measured}


class TaskFamily(Part):
    """The tasks of a run that adapts to them, and its evaluations by visits."""

    def __init__(self, config: Config, envs: LockstepEnvs) -> None:
        sets = task_sets(config, envs)
        if sets is None:
            raise ValueError("TaskFamily: expected an agent that infers its task")
        self.tasks = sets
        self._random_return: float | None = None
        """Mean return of random actions in the last episodes of visits, once it is measured."""

    @property
    def notices(self) -> Sequence[str]:
        return [self.tasks.notice]

    def adaptation(self, run: Run) -> MetaEvaluation:
        actors = None if run.actors is None else run.actors.adapt
        return MetaEvaluation(run.envs, run.config, run.comm, self.tasks, actors=actors)

    def evaluate(self, run: Run, evaluation: Evaluation, on_played: OnPlayed) -> Metrics:
        adaptation, repeats = self.adaptation(run), run.config.evaluation.episodes
        snapshot = run.snapshot()
        visits = Adaptations(*(adaptation.play(snapshot, part, repeats) for part in PARTS))
        on_played(visits)
        metrics = adaptation.metrics(*visits)
        if self._random_return is None:
            at_random = adaptation.play(None, "test", repeats)
            self._random_return = float(at_random.returns[..., -1].mean())
        return metrics | {"adapt/random_return": self._random_return}

    def compare(self, run: Run) -> Comparison:
        return self.adaptation(run).compare(run.snapshot(), VISITS)
