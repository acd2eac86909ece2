"""What a run has learned, ready to act in a few lines: numpy only, no TensorFlow, MPI or simulator.

policy = music_tf.load_policy("runs/latest")
action = policy.act(observation)
"""

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.config.settings import Config, SacConfig
from music_tf.config.stored import StoredRun, read_run
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.networks.acting import (
    deterministic_action,
    deterministic_layers,
    gaussian_action,
    gaussian_layers,
)
from music_tf.normalizer import NetworkInputs, Normalizer
from music_tf.storage.checkpoint import newest_weights
from music_tf.storage.gate import Arrays
from music_tf.types import Array

Observation: TypeAlias = npt.ArrayLike | Mapping[str, npt.ArrayLike]
"""Observations [O] or [B, O], or what a goal environment gives: a dictionary of them and goals."""

_MATRIX = 2
_NEEDED = ("parameters/actor/", "normalizer/")


class SavedPolicy:
    """A run's deterministic policy at the weights of one checkpoint; `load_policy` makes one."""

    def __init__(self, stored: StoredRun, arrays: Arrays, epoch: int) -> None:
        """Takes weights and moments out of a checkpoint.

        Args:
            stored: What the run says about itself.
            arrays: Of its checkpoint, by name.
            epoch: Of the checkpoint.

        Raises:
            ValueError: An array is missing or does not fit; the text names it.
        """
        config = stored.config
        self.recipe = stored.recipe
        self.env_id = config.env_id
        self.epoch = epoch
        self.skills = config.skills
        self._acting = config.acting_skills
        self._zero_goals = config.goals == "zero"
        observations, goals = (
            _normalizer(name, arrays, config) for name in ("observation", "goal")
        )
        self._inputs = NetworkInputs(observations.moments, goals.moments, config.normalizer)
        self.observation_dim = len(observations.moments.mean)
        self.goal_dim = len(goals.moments.mean)
        self._weights = _actor_weights(
            arrays, config, self.observation_dim + self.skills + self.goal_dim
        )
        self._gaussian = isinstance(config.agent, SacConfig)
        self.action_dim = len(self._weights[-1])

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
        inputs = self._inputs(rows, self._goals(goal, given), self._skills(skill, given))
        if self._gaussian:
            actions = gaussian_action(self._weights, inputs, None)
        else:
            actions = deterministic_action(self._weights, inputs)
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
        run: The run directory, `runs/latest` for example.
        env_id: Repeats the id `module:Id` of your own environment, which no file may import;
            needed for nothing else.

    Raises:
        UsageError: No run, no checkpoint yet, or a checkpoint that does not fit `config.json`.
        EnvironmentFault: Every checkpoint is damaged.
    """
    directory = Path(run).resolve()
    stored = read_run(directory, env_id)
    found = newest_weights(directory / "checkpoints", wanted=_NEEDED)
    try:
        return SavedPolicy(stored, found.arrays, int(found.meta["counters"]["epoch"]))
    except (ValueError, KeyError, TypeError) as error:
        text = str(error) if isinstance(error, ValueError) else f"counters: {error!r}"
        raise UsageError(f"{run}: the checkpoint does not fit config.json\n{text}") from error


def _normalizer(name: str, arrays: Arrays, config: Config) -> Normalizer:
    totals = _found(arrays, f"normalizer/{name}")
    normalizer = Normalizer(len(totals) // 2, config.normalizer, Communicator(alone=True))
    normalizer.state = totals
    return normalizer


def _actor_weights(arrays: Arrays, config: Config, input_dim: int) -> list[Array]:
    """Returns kernels and biases in turn, after checking the shapes that the run's sizes fix."""
    hidden = config.agent.hidden_sizes
    gaussian = isinstance(config.agent, SacConfig)
    names = (gaussian_layers if gaussian else deterministic_layers)(len(hidden))
    action_dim = len(_found(arrays, f"parameters/actor/{names[-1]}/bias"))
    heads = [hidden[-1], action_dim, action_dim] if gaussian else [action_dim]
    shapes = [*itertools.pairwise([input_dim, *hidden]), *((hidden[-1], size) for size in heads)]
    expected = {
        f"parameters/actor/{layer}/{part}": shape
        for layer, kernel in zip(names, shapes, strict=True)
        for part, shape in (("kernel", kernel), ("bias", kernel[1:]))
    }
    for name in sorted(arrays):
        if name.startswith("parameters/actor/") and name not in expected:
            raise ValueError(f"{name.removeprefix('parameters/')}: no such weight in this run")
    for name, shape in expected.items():
        array = _found(arrays, name)
        if array.shape != shape or array.dtype != np.float32:
            came = f"{array.dtype} {array.shape}"
            raise ValueError(
                f"{name.removeprefix('parameters/')}: expected float32 {shape}, found {came}"
            )
    return [arrays[name] for name in expected]


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
