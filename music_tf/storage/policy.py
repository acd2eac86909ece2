"""What a run has learned, ready to act in a few lines: numpy only, no TensorFlow, MPI or simulator.

policy = music_tf.load_policy("latest")
action = policy.act(observation)
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.config.settings import Config
from music_tf.config.stored import StoredRun, named_run, read_run
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.networks.acting import NetworkInputs, Snapshot, actor_shapes
from music_tf.normalizer import Normalizer
from music_tf.storage.checkpoint import StoredWeights, newest_weights
from music_tf.storage.gate import Arrays
from music_tf.types import Array, all_finite

Observation: TypeAlias = npt.ArrayLike | Mapping[str, npt.ArrayLike]
"""Observations [O] or [B, O], or what a goal environment gives: a dictionary of them and goals."""

_MATRIX = 2
_LARGEST_COUNT = 2**62


class SavedPolicy:
    """A run's deterministic policy at the weights of one checkpoint; `load_policy` makes one."""

    def __init__(self, stored: StoredRun, snapshot: Snapshot, counters: Mapping[str, int]) -> None:
        """Takes what acts.

        Args:
            stored: What the run says about itself.
            snapshot: Of its checkpoint.
            counters: Epochs and environment steps of training up to there.
        """
        config = stored.config
        self.snapshot = snapshot
        self.recipe = stored.recipe
        self.env_id = config.env_id
        self.epoch = counters["epoch"]
        self.env_steps = counters["env_steps"]
        self.skills = config.skills
        self._acting = config.acting_skills
        self._zero_goals = config.goals == "zero"
        self.observation_dim = len(snapshot.inputs.observation.mean)
        self.goal_dim = len(snapshot.inputs.goal.mean)
        self.action_dim = snapshot.action_dim

    def act(
        self,
        observation: Observation,
        goal: npt.ArrayLike | None = None,
        skill: int | Sequence[int] | npt.NDArray[np.integer] | None = None,
    ) -> Array:
        """Returns the action for one observation, or the actions for a batch of them.

        Args:
            observation: Shape [O] or [B, O]; or a dictionary with `observation` and, for runs
                trained on goals, `desired_goal`.
            goal: Shape [G] or [B, G]. None takes the goals of training: those in `observation`,
                or zeros for a run that was trained without goals.
            skill: Which of K skills, from 0 on, one for all or [B]. None where there is only one,
                or one that the run pinned.

        Returns:
            Actions in [-1, 1], shape [A] or [B, A].

        Raises:
            ValueError: A wrong shape or number, a goal or a skill that is missing, or a skill
                that the run does not have.
        """
        if isinstance(observation, Mapping):
            if "observation" not in observation:
                raise ValueError(f"observation: expected 'observation' in {sorted(observation)}")
            goal = observation.get("desired_goal") if self._lacks(goal) else goal
            observation = observation["observation"]
        given = _numbers("observation", observation, self.observation_dim)
        rows = np.atleast_2d(given)
        goals, skills = self._goals(goal, given), self._skills(skill, given)
        actions = self.snapshot.act(rows, goals, skills, None)
        return actions if given.ndim == _MATRIX else actions[0]

    def _lacks(self, goal: npt.ArrayLike | None) -> bool:
        """Whether a goal must still come from somewhere."""
        return goal is None and not self._zero_goals

    def _goals(self, goal: npt.ArrayLike | None, given: Array) -> Array:
        """Returns goals [B, G]."""
        if self._lacks(goal):
            raise ValueError(
                f"goal: {self.recipe} was trained on goals; give goal= of shape "
                f"[{self.goal_dim}], or an observation with a 'desired_goal'"
            )
        wanted = np.zeros(self.goal_dim) if goal is None else goal
        goals = _numbers("goal", wanted, self.goal_dim)
        if goals.ndim == _MATRIX and goals.shape[:-1] != given.shape[:-1]:
            raise ValueError(
                f"goal: expected one, or one for each observation {list(given.shape)}, "
                f"got {list(goals.shape)}"
            )
        return np.broadcast_to(goals, (len(np.atleast_2d(given)), self.goal_dim))

    def _skills(
        self, skill: int | Sequence[int] | npt.NDArray[np.integer] | None, given: Array
    ) -> Array:
        """Returns skills [B, K], one-hot."""
        if skill is None and len(self._acting) > 1:
            raise ValueError(f"skill: this run has {self.skills}, give one of 0..{self.skills - 1}")
        chosen = np.asarray(self._acting[0] if skill is None else skill)
        if chosen.dtype.kind not in "iu" or chosen.shape not in {(), given.shape[:-1]}:
            raise ValueError(
                f"skill: expected a whole number, or one for each observation "
                f"{list(given.shape)}, got {skill!r}"[:200]
            )
        if ((chosen < 0) | (chosen >= self.skills)).any():
            raise ValueError(
                f"skill: this run has {self.skills}, expected 0..{self.skills - 1}, got {skill}"
            )
        one_hot = np.eye(self.skills, dtype=np.float32)[chosen]
        return np.broadcast_to(one_hot, (len(np.atleast_2d(given)), self.skills))


def load_policy(run: str | os.PathLike[str], env_id: str | None = None) -> SavedPolicy:
    """Loads the policy of a run from its newest intact checkpoint.

    The run may still be going: nothing is locked or written.

    Args:
        run: The run directory, or `latest`.
        env_id: Repeats the id `module:Id` of your own environment, which no file may import;
            needed for nothing else.

    Raises:
        UsageError: No run, no checkpoint yet, or a checkpoint that does not fit `config.json`.
        EnvironmentFault: Every checkpoint is damaged.
    """
    directory = named_run(os.fspath(run)) or Path(run)
    stored = read_run(directory.resolve(), env_id)
    return saved_policy(directory, stored, ("parameters/actor/", "normalizer/"))[0]


def saved_policy(
    run: Path, stored: StoredRun, wanted: tuple[str, ...]
) -> tuple[SavedPolicy, StoredWeights]:
    """Returns the policy of a run's newest intact checkpoint, and what was read of that.

    Args:
        run: The run directory.
        stored: What its `config.json` says.
        wanted: How the names of the arrays to read begin: actor and normalisers, and what else
            the caller needs of the same checkpoint. Others may be damaged.

    Raises:
        UsageError: No checkpoint yet, or one that does not fit `config.json`.
        EnvironmentFault: Every checkpoint is damaged.
    """
    found = newest_weights(run.resolve() / "checkpoints", wanted=wanted)
    try:
        snapshot = _snapshot(found.arrays, stored.config)
        counters = _counters(found.meta.get("counters"))
    except ValueError as error:
        raise UsageError(f"{run}: the checkpoint does not fit config.json\n{error}") from error
    return SavedPolicy(stored, snapshot, counters), found


def _counters(found: Any) -> dict[str, int]:
    """Returns how far the run had come."""
    names = ("epoch", "env_steps")
    counts: dict[str, int] = {}
    for name in names:
        count = found.get(name) if isinstance(found, dict) else None
        if type(count) is not int or not 0 <= count < _LARGEST_COUNT:
            raise ValueError(f"counters: expected whole numbers {' and '.join(names)}")
        counts[name] = count
    return counts


def _snapshot(arrays: Arrays, config: Config) -> Snapshot:
    """Returns what acts, after checking the shapes that the run's sizes fix."""
    moments = []
    for name in ("observation", "goal"):
        totals = _found(arrays, f"normalizer/{name}")
        normalizer = Normalizer(totals.size // 2, config.normalizer, Communicator(alone=True))
        try:
            normalizer.state = totals
        except ValueError as error:
            raise ValueError(f"normalizer/{name}: {error}") from error
        moments.append(normalizer.moments)
    inputs = NetworkInputs(moments[0], moments[1], config.normalizer)
    agent = config.agent
    input_dim = len(inputs.observation.mean) + config.skills + len(inputs.goal.mean)
    last = list(actor_shapes(agent.actor, input_dim, agent.hidden_sizes, 0))[-1]
    action_dim = _found(arrays, f"parameters/{last}").size
    expected = actor_shapes(agent.actor, input_dim, agent.hidden_sizes, action_dim)
    for name in sorted(arrays):
        weight = name.removeprefix("parameters/")
        if weight.startswith("actor/") and weight not in expected:
            raise ValueError(f"{weight}: no such weight in this run")
    for weight, shape in expected.items():
        array = _found(arrays, f"parameters/{weight}")
        if array.shape != shape or array.dtype != np.float32:
            came = f"{array.dtype} {array.shape}"
            raise ValueError(f"{weight}: expected float32 {shape}, found {came}")
        if not all_finite(array):
            raise ValueError(f"{weight}: expected finite numbers")
    weights = {weight: arrays[f"parameters/{weight}"] for weight in expected}
    return Snapshot(agent.actor, weights, inputs)


def _found(arrays: Arrays, name: str) -> npt.NDArray[Any]:
    if name not in arrays:
        raise ValueError(f"{name.removeprefix('parameters/')}: missing")
    return arrays[name]


def _numbers(name: str, values: npt.ArrayLike, size: int) -> Array:
    """Returns finite numbers of shape [size] or [B, size]."""
    expected = f"{name}: expected numbers of shape [{size}] or [B, {size}]"
    try:
        array = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected}, got {type(values).__name__}") from error
    if array.ndim not in {1, _MATRIX} or array.shape[-1] != size:
        raise ValueError(f"{expected}, got {list(array.shape)}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]}")
    return array
