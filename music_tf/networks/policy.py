"""How a trained agent acts outside of training, in numpy alone.

`load_policy` returns a subclass of `Policy`. `tools.portable` copies this module, with those of
this package that it imports, into one file for robots, which Python 3.9 must run:

    from policy import Policy  # policy.py, with policy.npz beside it

    policy = Policy()
    action = policy.act(observation)

Actions lie within the bounds of the environment in training, in its units. `python policy.py`
prints these bounds, and the other inputs and outputs of the policy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from music_tf.networks.acting import (
    Moments,
    NetworkInputs,
    SkillSnapshots,
    Snapshot,
    empty_snapshot,
    snapshot_from,
)
from music_tf.networks.belief import Belief, Encoder, Steps, context_rows
from music_tf.networks.embedding import Embedding, Ends
from music_tf.types import Array, Bounds, bounds_of, to_bounds, to_unit

Observation = Union[npt.ArrayLike, Mapping[str, npt.ArrayLike]]  # noqa: UP007 - Python 3.9
"""Observations [O] or [B, O], or a goal environment's dictionary of observations and goals."""
Episode = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
"""Observations [T + 1, O], actions [T, A] as `act` returned them, and rewards [T]."""

FACTS = (
    *("recipe", "env_id", "epoch", "env_steps", "observation_dim", "goal_dim", "action_dim"),
    *("zero_goals", "condition", "skills", "acting_skills"),
)
"""Attributes of a policy that are JSON values."""
_MATRIX = 2
_ROUNDING = 1e-3
"""How far the length of a condition on the sphere, or an action in [-1, 1], may be beyond 1."""


class Policy:
    """The deterministic policy of a trained agent."""

    recipe: str
    env_id: str
    epoch: int
    env_steps: int
    observation_dim: int
    goal_dim: int
    action_dim: int
    zero_goals: bool
    """Whether it was trained without goals, in an environment that may have them."""
    condition: str
    skills: int
    """Number of skills, or of components of a continuous condition."""
    acting_skills: Sequence[int]
    """Indices of the skills that may act; empty for continuous conditions."""
    bounds: Bounds | None
    """Lowest and highest action, [A], in the type of actions; None if unknown."""
    snapshot: Snapshot | SkillSnapshots
    embedding: Embedding | str | None = None
    """Embedding of places; a text that says why it does not fit, None without one."""
    ends: Ends | str | None = None
    """End positions of skills; a text that says why they are unknown, None without skills."""
    _encoder: Encoder | None = None

    def __init__(self, path: Path | None = None) -> None:
        """Reads an archive; by default `policy.npz` beside this file."""
        with np.load(path or Path(__file__).with_name("policy.npz"), allow_pickle=False) as file:
            arrays: dict[str, Array] = {name: file[name] for name in file.files}
        self.about: dict[str, Any] = json.loads(str(arrays.pop("about")))
        """Sizes of the policy's inputs and outputs, bounds of its actions, and its origin."""
        about = self.about
        vars(self).update({name: about[name] for name in FACTS})
        self.bounds = bounds_of(about["environment"]) if about["environment"] else None

        def under(prefix: str) -> dict[str, Array]:
            return {n[len(prefix) :]: a for n, a in arrays.items() if n.startswith(prefix)}

        normalizer: Any = SimpleNamespace(**about["normalizer"])
        unknown = Moments(*np.zeros([2, 0], np.float32))
        inputs = NetworkInputs(unknown, unknown, normalizer, about["condition_seen"])
        parts = [under(f"actor_{number}/") for number in range(about["actors"])]
        each = [snapshot_from(empty_snapshot(about["actor"], part, inputs), part) for part in parts]
        self.snapshot = SkillSnapshots(tuple(each)) if len(each) > 1 else each[0]
        if about["inference"]:
            inference: Any = SimpleNamespace(**about["inference"])
            self._encoder = Encoder(each[0].encoder, inference)
        if about["embedding"]:
            weights = list(under("embedding/").values())
            self.embedding = Embedding(weights, arrays.get("scale"), **about["embedding"])

    def __repr__(self) -> str:
        takes = [f"observation[{self.observation_dim}]"]
        if self.goal_dim and not self.zero_goals:
            takes.append(f"goal[{self.goal_dim}]")
        if self.condition not in ("one_hot", "belief"):
            takes.append(f"skill[{self.skills}] ({self.condition})")
        elif len(self.acting_skills) > 1:
            takes.append(f"skill of {self.skills}")
        where = f"{self.recipe} on {self.env_id}, epoch {self.epoch}"
        return f"<{where}: {', '.join(takes)} -> action[{self.action_dim}]>"

    @property
    def leads(self) -> Embedding | Ends | str | None:
        """What answers `reach=`: an embedding, ends of skills, why neither fits, or None."""
        if isinstance(self.embedding, str):
            return f"the checkpoint does not fit config.json: {self.embedding}"
        return self.ends if self.embedding is None else self.embedding

    def act(
        self,
        observation: Observation,
        goal: npt.ArrayLike | None = None,
        skill: npt.ArrayLike | None = None,
        reach: npt.ArrayLike | None = None,
        *,
        unit: bool = False,
    ) -> np.ndarray:
        """Returns the action for one observation, or the actions for a batch of them.

        Args:
            observation: Shape [O] or [B, O]; or a dictionary with `observation` and, for runs
                trained on goals, `desired_goal`.
            goal: Shape [G] or [B, G]. None takes the goals of training: those in `observation`,
                or zeros for a run that was trained without goals, which accepts no others.
            skill: Index of one of K skills, a number or [B], or one-hot floats, [K] or [B, K];
                None if only one skill acts. A continuous condition, or a latent that `draw`
                returned, has the shape [K] or [B, K].
            reach: Place to reach instead of a skill, [n] or [B, n]: values of the columns that the
                embedding sees, such as [x, y] of a block. The run chooses the condition that leads
                there. Without an embedding the skill acts whose end is nearest, in the numbers
                of their descriptor.
            unit: Whether to return actions in [-1, 1] in place of the environment's units.

        Returns:
            Actions as the environment takes them, within its bounds and in the type of its action
            space, shape [A] or [B, A]. Choices stay one-hot.

        Raises:
            ValueError: A wrong shape or number, a missing goal or skill, a skill that the run does
                not have, a place without an embedding or ends of skills, or, without `unit`, no
                stored bounds of actions.
        """
        if isinstance(observation, Mapping):
            if "observation" not in observation:
                raise ValueError(f"observation: expected 'observation' in {sorted(observation)}")
            if goal is None and self.goal_dim and not self.zero_goals:
                goal = observation.get("desired_goal")
            observation = observation["observation"]
        state = numbers("observation", observation, self.observation_dim)
        goals = self._goal(goal, state)
        if reach is not None:
            skill = self._towards(reach, skill, state)
        rows, conditions = np.atleast_2d(state), self._condition(skill, state)
        actions = self.snapshot.act(
            rows,
            np.broadcast_to(goals, (len(rows), self.goal_dim)),
            np.broadcast_to(conditions, (len(rows), self.skills)),
            None,
        )
        actions = actions if unit else to_bounds(actions, self.bounds)
        return actions if state.ndim == _MATRIX else actions[0]

    def infer(self, episodes: Sequence[Episode]) -> Belief:
        """Returns the belief over tasks after some episodes; the prior without any.

        Rewards are those of the context in training: of `agent.context_reward` if the run has one.
        A ValueError says what is missing or wrong.
        """
        parts = [self._rows(each) for each in episodes]
        return believe(self.encoder, np.concatenate(parts)) if parts else self.encoder.prior

    def draw(self, belief: Belief, seed: int | None = None) -> Array:
        """Returns a latent [L] of a belief; a seed fixes it."""
        noise = np.random.default_rng(seed).standard_normal(len(belief.mean), np.float32)
        return belief.draw(noise)

    @property
    def encoder(self) -> Encoder:
        """Infers beliefs; raises a ValueError without one."""
        if self._encoder is None or not self._encoder.weights:
            raise ValueError(
                "episodes: expected a policy with an encoder; export one with "
                "--parts actor,encoder,normalizer, or give skill= a latent"
            )
        return self._encoder

    def _rows(self, episode: Episode) -> Array:
        """Checks an episode and returns its rows for the encoder, [T, C]."""
        if not isinstance(episode, (tuple, list)) or len(episode) != 3:  # noqa: PLR2004
            raise ValueError(
                "episodes: expected observations, actions and rewards of each, got "
                + (f"{len(episode)} in a " if isinstance(episode, Sized) else "")
                + type(episode).__name__
            )
        states = np.atleast_2d(numbers("observations", episode[0], self.observation_dim))
        actions = np.atleast_2d(numbers("actions", episode[1], self.action_dim))
        actions = to_unit(actions, self.bounds)
        try:
            rewards = np.atleast_1d(np.asarray(episode[2], np.float32))
        except (TypeError, ValueError) as error:
            text = f"rewards: expected numbers of shape [T], got {episode[2]!r:.80}"
            raise ValueError(text) from error
        if not len(states) - 1 == len(actions) == len(rewards) > 0 or rewards.ndim != 1:
            raise ValueError(
                "episodes: expected T + 1 observations, the last after the last step, T actions "
                f"and T rewards of at least one step, got {len(states)}, {len(actions)} and "
                f"{list(rewards.shape)}"
            )
        if (np.abs(actions) > 1.0 + _ROUNDING).any() or not np.isfinite(rewards).all():
            raise ValueError("episodes: expected actions within their bounds and finite rewards")
        inference = self.encoder.inference
        extras = {inference.reward: rewards[:, None]}
        steps = Steps(states[:-1], actions, rewards, states[1:], extras)
        return context_rows(inference, self.snapshot.inputs, steps)

    def _goal(self, goal: npt.ArrayLike | None, state: Array) -> Array:
        """Returns goals, [G] or [B, G]."""
        untrained = self.zero_goals or not self.goal_dim
        if goal is not None and not self.goal_dim:
            raise ValueError(f"goal: {self.env_id} has no goals; leave goal= out")
        if goal is not None and self.zero_goals and np.any(goal):
            instead = ", or reach=" if isinstance(self.leads, (Embedding, Ends)) else ""
            raise ValueError(
                f"goal: {self.recipe} was trained without goals and follows none; "
                f"leave goal= out{instead}"
            )
        if goal is None and not untrained:
            raise ValueError(
                f"goal: {self.recipe} was trained on goals; give goal= of shape "
                f"[{self.goal_dim}], or an observation with a 'desired_goal'"
            )
        goals = numbers("goal", np.zeros(self.goal_dim) if goal is None else goal, self.goal_dim)
        return _for_each("goal", goals, state)

    def _towards(self, reach: npt.ArrayLike, skill: Any, state: Array) -> Array:
        """Returns the condition that leads to a place, [K] or [B, K]."""
        leads = self.leads
        if isinstance(leads, str):
            raise ValueError(f"reach: {leads}")
        if leads is None:
            raise ValueError(
                f"reach: {self.recipe} on {self.env_id} cannot go to places; expected a run with "
                "the reward distance or an export of one with phi in its --parts, or a run with "
                "skills"
            )
        if isinstance(leads, Embedding) and not leads.columns:
            raise ValueError("reach: its embedding sees no columns of the observation")
        if skill is not None:
            raise ValueError("reach: the place determines the condition; leave skill= out")
        place = _for_each("reach", numbers("reach", reach, leads.seen), state)
        if isinstance(leads, Ends):
            return leads.nearest(place)
        here = state[..., list(leads.columns)]
        return leads.leading(here, np.broadcast_to(place, here.shape))

    def _condition(self, skill: Any, state: Array) -> Array:
        """Returns skills or continuous conditions, [K] or [B, K]."""
        if not self.acting_skills:
            return self._vectors(skill, state)
        if skill is None and len(self.acting_skills) > 1:
            raise ValueError(f"skill: this run has {self.skills}, give one of 0..{self.skills - 1}")
        chosen = np.asarray(self.acting_skills[0] if skill is None else skill)
        one_hot_shapes = {(self.skills,), (*state.shape[:-1], self.skills)}
        if chosen.dtype.kind == "f" and chosen.shape in one_hot_shapes:
            if not (np.isin(chosen, (0.0, 1.0)).all() and (chosen.sum(axis=-1) == 1.0).all()):
                raise ValueError(f"skill: expected one-hot vectors, got {skill!r}"[:200])
            chosen = chosen.argmax(axis=-1)
        if chosen.dtype.kind not in "iu" or chosen.shape not in {(), state.shape[:-1]}:
            raise ValueError(
                f"skill: expected a whole number, or one for each observation "
                f"{list(state.shape)}, got {skill!r}"[:200]
            )
        if ((chosen < 0) | (chosen >= self.skills)).any():
            raise ValueError(
                f"skill: this run has {self.skills}, expected 0..{self.skills - 1}, got {skill}"
            )
        return np.asarray(np.eye(self.skills, dtype=np.float32)[chosen])

    def _vectors(self, skill: Any, state: Array) -> Array:
        """Returns continuous conditions, [K] or [B, K]."""
        if skill is None:
            instead = ", or reach=" if isinstance(self.leads, Embedding) else ""
            raise ValueError(
                f"skill: {self.recipe} has a {self.condition} condition, expected skill= of "
                f"shape [{self.skills}]{instead}"
            )
        vectors = numbers(f"skill, a {self.condition} condition", skill, self.skills)
        beyond = np.linalg.norm(_for_each("skill", vectors, state), axis=-1) - 1.0
        far = {"ball": beyond, "sphere": np.abs(beyond)}.get(self.condition, np.zeros([]))
        if (far > _ROUNDING).any():
            length = "at most 1" if self.condition == "ball" else "1"
            raise ValueError(f"skill: expected vectors of length {length}, got {skill!r}"[:200])
        return vectors


def believe(encoder: Encoder, context: Array) -> Belief:
    """Returns the belief after rows [N, C]; a ValueError where they overflow."""
    with np.errstate(all="ignore"):  # the result is checked
        belief = encoder(context)
    if not np.isfinite([belief.mean, belief.variance]).all():
        raise ValueError("episodes: expected numbers as in training, these give no belief")
    return belief


def numbers(name: str, values: Any, size: int) -> Array:
    """Returns finite numbers of shape [size] or [B, size], or a ValueError."""
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


def _for_each(name: str, values: Array, state: Array) -> Array:
    """Returns values that are one, or one for each observation."""
    if values.shape[:-1] not in {(), state.shape[:-1]}:
        raise ValueError(
            f"{name}: expected one, or one for each observation {list(state.shape)}, got "
            f"{list(values.shape)}"
        )
    return values


if __name__ == "__main__":
    sys.stdout.write(json.dumps(Policy().about, indent=1) + "\n")
