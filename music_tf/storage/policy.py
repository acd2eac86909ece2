"""The policy of a run, which needs numpy but no TensorFlow, MPI or simulator.

policy = music_tf.load_policy("latest")  # or "push", which comes with the package
action = policy.act(observation)
"""

import copy
import hashlib
from collections.abc import Mapping, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.networks.acting import SkillSnapshots, Snapshot, skill_arrays
from music_tf.networks.belief import Belief, Encoder, Steps, context_rows
from music_tf.networks.discriminator import Discriminator
from music_tf.networks.embedding import Embedding
from music_tf.networks.ends import Ends
from music_tf.reading.stored import StoredRun
from music_tf.types import Array, Declared, bounds_of, to_bounds, to_unit

Observation: TypeAlias = npt.ArrayLike | Mapping[str, npt.ArrayLike]
"""Observations [O] or [B, O], or a goal environment's dictionary of observations and goals."""

_MATRIX = 2
_ROUNDING = 1e-3
"""How far the length of a condition on the sphere, or an action in [-1, 1], may be beyond 1."""


class SavedPolicy:
    """A run's deterministic policy at the weights of one checkpoint; `load_policy` makes one."""

    def __init__(
        self,
        stored: StoredRun,
        snapshot: Snapshot | SkillSnapshots,
        counters: Mapping[str, Any],
        discriminator: Discriminator | str | None = None,
        declared: Declared | None = None,
    ) -> None:
        """Takes a run's record, its networks, and its counters.

        `discriminator` is None without one, or a text that says why the saved one does not fit.
        `declared` is what the environment declared in training, None if unknown.
        """
        self.stored, config = stored, stored.config
        self.declared = declared
        self.worlds: tuple[int, ...] = ()
        """Stage of a changing world in which each skill was learned, if skills are frozen."""
        self.embedding: Embedding | str | None = None
        """Embedding of places; a text that says why it does not fit, None without one."""
        self.ends: Ends | str | None = None
        """End positions of skills; a text that says why they are unknown, None without skills."""
        self.snapshot = snapshot
        self.discriminator = discriminator if isinstance(discriminator, Discriminator) else None
        self._why_not = discriminator if isinstance(discriminator, str) else ""
        self.recipe = stored.recipe
        self.env_id = config.env_id
        self.epoch: int = counters["epoch"]
        self.env_steps: int = counters["env_steps"]
        self.condition = config.condition.kind
        self.skills = config.condition_size
        self._acting = config.acting_skills
        self.zero_goals = config.goals == "zero"
        self.observation_dim = len(snapshot.inputs.observation.mean)
        self.goal_dim = len(snapshot.inputs.goal.mean)
        self.action_dim = snapshot.action_dim
        self.bounds = None if declared is None else bounds_of(vars(declared))
        """Lowest and highest action, [A], in the type of actions; None if unknown."""

    def __repr__(self) -> str:
        """Returns where it was trained, and the lengths of what `act` takes and returns."""
        takes = [f"observation[{self.observation_dim}]"]
        if self.goal_dim and not self.zero_goals:
            takes.append(f"goal[{self.goal_dim}]")
        if self.condition not in ("one_hot", "belief"):
            takes.append(f"skill[{self.skills}] ({self.condition})")
        elif len(self._acting) > 1:
            takes.append(f"skill of {self.skills}")
        given = ", ".join(takes)
        where = f"{self.recipe} on {self.env_id}, epoch {self.epoch}"
        return f"<{where}: {given} -> action[{self.action_dim}]>"

    @property
    def leads(self) -> Embedding | Ends | str | None:
        """What chooses a condition for a place: the embedding, else the ends of skills."""
        if isinstance(self.embedding, str):
            return f"the checkpoint does not fit config.json: {self.embedding}"
        return self.ends if self.embedding is None else self.embedding

    def digest(self, skills: int) -> str:
        """Returns the SHA-256 of the arrays with which its first skills act."""
        snapshot, found = self.snapshot, hashlib.sha256()
        each = snapshot.each[:skills] if isinstance(snapshot, SkillSnapshots) else (snapshot,)
        for one in each:
            for name, array in sorted(skill_arrays(one).items()):
                found.update(f"{name} {array.dtype} {array.shape}\n".encode())
                found.update(array.tobytes())
        return found.hexdigest()

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
                None if only one skill acts. A continuous condition has the shape [K] or [B, K].
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
        if goal is not None and not self.goal_dim:
            raise ValueError(f"goal: {self.env_id} has no goals; leave goal= out")
        if goal is not None and self.zero_goals and np.any(goal):
            instead = ", or reach=" if isinstance(self.leads, Embedding | Ends) else ""
            raise ValueError(
                f"goal: {self.recipe} was trained without goals and follows none; "
                f"leave goal= out{instead}"
            )
        if goal is None and (self.zero_goals or not self.goal_dim):
            goal = np.zeros(self.goal_dim)
        if isinstance(observation, Mapping):
            if "observation" not in observation:
                raise ValueError(f"observation: expected 'observation' in {sorted(observation)}")
            goal = observation.get("desired_goal") if goal is None else goal
            observation = observation["observation"]
        given = _numbers("observation", observation, self.observation_dim)
        if goal is None:
            raise ValueError(
                f"goal: {self.recipe} was trained on goals; give goal= of shape "
                f"[{self.goal_dim}], or an observation with a 'desired_goal'"
            )
        goals = _numbers("goal", goal, self.goal_dim)
        if goals.ndim == _MATRIX and goals.shape[:-1] != given.shape[:-1]:
            raise ValueError(
                f"goal: expected one, or one for each observation {list(given.shape)}, "
                f"got {list(goals.shape)}"
            )
        if reach is not None:
            skill = self._towards(reach, skill, given)
        rows, skills = np.atleast_2d(given), self._condition(skill, given)
        actions = self.snapshot.act(
            rows,
            np.broadcast_to(goals, (len(rows), self.goal_dim)),
            np.broadcast_to(skills, (len(rows), self.skills)),
            None,
        )
        actions = actions if unit else to_bounds(actions, self.bounds)
        return actions if given.ndim == _MATRIX else actions[0]

    def _towards(self, reach: npt.ArrayLike, skill: Any, given: Array) -> Array:
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
        there = _numbers("reach", reach, leads.seen)
        if there.ndim == _MATRIX and there.shape[:-1] != given.shape[:-1]:
            raise ValueError(
                f"reach: expected one place, or one for each observation {list(given.shape)}, got "
                f"{list(there.shape)}"
            )
        if isinstance(leads, Ends):
            return leads.nearest(there)
        here = given[..., list(leads.columns)]
        return leads.leading(here, np.broadcast_to(there, here.shape))

    def _condition(self, skill: Any, given: Array) -> Array:
        """Returns skills or continuous conditions, [K] or [B, K]."""
        if not self._acting:
            if skill is None:
                instead = ", or reach=" if isinstance(self.leads, Embedding) else ""
                raise ValueError(
                    f"skill: {self.recipe} has a {self.condition} condition, expected skill= of "
                    f"shape [{self.skills}]{instead}"
                )
            vectors = _numbers(f"skill, a {self.condition} condition", skill, self.skills)
            if vectors.shape[:-1] not in {(), given.shape[:-1]}:
                raise ValueError(
                    f"skill: expected one condition, or one for each observation "
                    f"{list(given.shape)}, got {list(vectors.shape)}"
                )
            beyond = np.linalg.norm(vectors, axis=-1) - 1.0
            far = {"ball": beyond, "sphere": np.abs(beyond)}.get(self.condition, np.zeros([]))
            if (far > _ROUNDING).any():
                length = "at most 1" if self.condition == "ball" else "1"
                raise ValueError(f"skill: expected vectors of length {length}, got {skill!r}"[:200])
            return vectors
        if skill is None and len(self._acting) > 1:
            raise ValueError(f"skill: this run has {self.skills}, give one of 0..{self.skills - 1}")
        chosen = np.asarray(self._acting[0] if skill is None else skill)
        if chosen.dtype.kind == "f" and chosen.shape in {
            (self.skills,),
            (*given.shape[:-1], self.skills),
        }:
            if not (np.isin(chosen, (0.0, 1.0)).all() and (chosen.sum(axis=-1) == 1.0).all()):
                raise ValueError(f"skill: expected one-hot vectors, got {skill!r}"[:200])
            chosen = chosen.argmax(axis=-1)
        if chosen.dtype.kind not in "iu" or chosen.shape not in {(), given.shape[:-1]}:
            raise ValueError(
                f"skill: expected a whole number, or one for each observation "
                f"{list(given.shape)}, got {skill!r}"[:200]
            )
        if ((chosen < 0) | (chosen >= self.skills)).any():
            raise ValueError(
                f"skill: this run has {self.skills}, expected 0..{self.skills - 1}, got {skill}"
            )
        one_hot: Array = np.eye(self.skills, dtype=np.float32)[chosen]
        return one_hot

    def skill_log_likelihood(
        self, states: npt.ArrayLike, actions: npt.ArrayLike | None = None
    ) -> Array:
        """Returns log q(z | s) in nats for each skill, [T, K]: how well each explains a state.

        Args:
            states: Observations [T, O]; or descriptors [T, D] that are no part of observations.
            actions: Taken there, [T, A] as `act` returned them; only for a run trained with
                `skill.include_actions`.

        Raises:
            ValueError: A wrong shape or number, or a run without a discriminator.
        """
        names = self.discriminator
        if self._why_not:
            raise ValueError(f"states: the checkpoint does not fit config.json: {self._why_not}")
        if names is None:
            raise ValueError(
                f"states: {self.recipe} on {self.env_id} has no discriminator; expected "
                "a run with the reward skill, or an export with --parts actor,normalizer,"
                "discriminator"
            )
        size = self.observation_dim if names.columns or names.blind else names.size
        given = np.atleast_2d(_numbers("states", states, size))
        seen = given[:, list(names.columns)] if names.columns else given
        if (actions is not None) is not (names.actions > 0):
            wanted = f"shape [T, {names.actions}]" if names.actions else "none"
            came = "none" if actions is None else "some"
            raise ValueError(f"actions: the discriminator was trained on {wanted}, got {came}")
        if actions is None:
            return names.log_likelihood(seen)
        taken = np.atleast_2d(_numbers("actions", actions, names.actions))
        if len(taken) != len(seen):
            raise ValueError(f"actions: expected one for each of {len(seen)} states")
        return names.log_likelihood(seen, to_unit(taken, self.bounds))

    def nearest_skill(self, states: npt.ArrayLike, actions: npt.ArrayLike | None = None) -> int:
        r"""Returns the skill that most likely passed through states: imitation without actions.

        .. math:: \arg\max_z \sum_t \log q(z | s_t)

        The authors of DIAYN imitate an expert in this way (arXiv:1802.06070). Arguments and faults
        are those of `skill_log_likelihood`, whose sums for other skills show how clear the choice
        is.
        """
        named = self.skill_log_likelihood(states, actions)
        return int(named.sum(axis=0, dtype=np.float64).argmax())


class AdaptivePolicy(SavedPolicy):
    """A policy that infers its task from episodes; `load_policy` makes one.

    Each object has its own context; the copy that `exploration` returns has an empty one.
    """

    snapshot: Snapshot

    def __init__(
        self,
        stored: StoredRun,
        snapshot: Snapshot,
        counters: Mapping[str, Any],
        declared: Declared | None = None,
    ) -> None:
        """Takes a run's record, its networks, its counters, and what its environment declared.

        Raises:
            ValueError: The agent of the run does not infer its task.
        """
        super().__init__(stored, snapshot, counters, declared=declared)
        inference = stored.config.agent.inference
        if inference is None:
            raise ValueError(f"{stored.recipe}: expected an agent that infers its task")
        self._inference = inference
        self._encoder = Encoder(snapshot.encoder, inference)
        self._generator = np.random.default_rng()
        self.reset()

    @property
    def belief(self) -> Belief:
        """The belief over tasks: the prior until `adapt` is called."""
        return self._belief

    @property
    def context(self) -> Array:
        """The rows from which the belief is inferred, [N, C], one per step: see `context_rows`."""
        return self._context

    def networks(self) -> dict[str, Mapping[str, Array]]:
        """Weights of actor and encoder by name."""
        return {"actor": self.snapshot.weights, "encoder": self.snapshot.encoder}

    def sizes(self, module: str) -> tuple[int, int]:
        """Returns the sizes of the inputs and outputs of `actor` or `encoder`.

        Raises:
            ValueError: There is no such network.
        """
        inference = self._inference
        if module == "encoder":
            return inference.row_dim(self.observation_dim, self.action_dim), inference.outputs
        if module == "actor":
            return self.observation_dim + inference.latent, self.action_dim
        raise ValueError(f"module: expected actor or encoder, got {module!r:.80}")

    def exploration(self) -> "AdaptivePolicy":
        """Returns a fresh copy with the prior and an empty context."""
        fresh = copy.copy(self)
        fresh._generator = np.random.default_rng()
        fresh.reset()
        return fresh

    def reset(self) -> None:
        """Returns to the prior and an empty context."""
        row_dim = self.sizes("encoder")[0]
        self._context = np.zeros([0, row_dim], np.float32)
        self._belief = self._encoder.prior
        self._latent: Array | None = None

    def begin_episode(self, seed: int | None = None) -> Array:
        """Draws the latent [L] of the next actions; a seed fixes it."""
        generator = self._generator if seed is None else np.random.default_rng(seed)
        self._latent = self._belief.draw(
            generator.standard_normal(self._inference.latent, np.float32)
        )
        return self._latent.copy()

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
            observation: Shape [O] or [B, O].
            goal: None, as the run has no goals.
            skill: None: `begin_episode` draws the latent. The first call begins an episode.
            reach: None, as the run has no embedding.
            unit: As of other policies.

        Returns:
            Actions as of other policies, shape [A] or [B, A].

        Raises:
            ValueError: A wrong shape or number, a goal or skill, or no stored bounds of actions.
        """
        if skill is not None:
            raise ValueError("skill: begin_episode() draws the latent; leave skill= out")
        latent = self.begin_episode() if self._latent is None else self._latent
        if reach is not None:
            raise ValueError("reach: a run that adapts to tasks cannot go to places")
        return super().act(observation, goal, latent, unit=unit)

    def adapt(
        self, episodes: Sequence[tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
    ) -> "AdaptivePolicy":
        """Infers the task from these and all earlier episodes; returns itself.

        The next `act` draws a latent of the new belief, unless `begin_episode` does.

        Args:
            episodes: Observations [T + 1, O], actions [T, A] as `act` returned them, and rewards
                [T] of each. Rewards are those of `agent.context_reward` if the run has one.

        Raises:
            ValueError: No episode, wrong shapes or numbers, or a checkpoint without an encoder.
        """
        if not self.snapshot.encoder:
            raise ValueError(
                "adapt: expected a checkpoint with an encoder; export one with "
                "--parts actor,encoder,normalizer"
            )
        try:
            given = list(episodes)
        except TypeError as error:
            raise ValueError(f"episodes: expected a list, got {episodes!r:.80}") from error
        if not given:
            raise ValueError("episodes: expected at least one, got none")
        context = np.concatenate([self._context, *map(self._rows, given)])
        with np.errstate(all="ignore"):  # the result is checked
            belief = self._encoder(context)
        if not np.isfinite([belief.mean, belief.variance]).all():
            raise ValueError("episodes: expected numbers as in training, these give no belief")
        self._context, self._belief, self._latent = context, belief, None
        return self

    def _rows(self, episode: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]) -> Array:
        """Returns the rows of an episode for the encoder, [T, C]."""
        if not isinstance(episode, tuple | list) or len(episode) != 3:  # noqa: PLR2004
            raise ValueError(
                "episodes: expected observations, actions and rewards of each, got "
                + (f"{len(episode)} in a " if isinstance(episode, Sized) else "")
                + type(episode).__name__
            )
        observed = np.atleast_2d(_numbers("observations", episode[0], self.observation_dim))
        actions = np.atleast_2d(_numbers("actions", episode[1], self.action_dim))
        actions = to_unit(actions, self.bounds)
        try:
            rewards = np.atleast_1d(np.asarray(episode[2], np.float32))
        except (TypeError, ValueError) as error:
            text = f"rewards: expected numbers of shape [T], got {episode[2]!r:.80}"
            raise ValueError(text) from error
        fits = len(observed) - 1 == len(actions) == len(rewards) > 0 and rewards.ndim == 1
        if not fits:
            raise ValueError(
                "episodes: expected T + 1 observations, the last after the last step, T actions "
                f"and T rewards of at least one step, got {len(observed)}, {len(actions)} and "
                f"{list(rewards.shape)}"
            )
        if (np.abs(actions) > 1.0 + _ROUNDING).any() or not np.isfinite(rewards).all():
            raise ValueError("episodes: expected actions within their bounds and finite rewards")
        given = {self._inference.reward: rewards[:, None]}
        steps = Steps(observed[:-1], actions, rewards, observed[1:], given)
        return context_rows(self._inference, self.snapshot.inputs, steps)


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
