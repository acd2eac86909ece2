"""The policy of a run, which needs numpy but no TensorFlow, MPI or simulator."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_tf.networks.acting import SkillSnapshots, Snapshot, skill_arrays
from music_tf.networks.belief import Belief, Encoder
from music_tf.networks.policy import Episode, Policy, believe, numbers
from music_tf.networks.reward_networks import Discriminator
from music_tf.reading.stored import StoredRun
from music_tf.types import Array, Declared, bounds_of


class SavedPolicy(Policy):
    """A run's deterministic policy at the weights of one checkpoint; `load_policy` makes one."""

    def __init__(
        self,
        stored: StoredRun,
        snapshot: Snapshot | SkillSnapshots,
        counters: Mapping[str, Any],
        discriminator: Discriminator | str | None = None,  # a text: why the saved one does not fit
        declared: Declared | None = None,  # what the environment declared in training, if known
    ) -> None:
        """Takes a run's record, its networks, and its counters."""
        self.stored, config = stored, stored.config
        self.declared = declared
        self.worlds: tuple[int, ...] = ()
        """Stage of a changing world in which each skill was learned, if skills are frozen."""
        self.snapshot = snapshot
        self.discriminator = discriminator if isinstance(discriminator, Discriminator) else None
        self._why_not = discriminator if isinstance(discriminator, str) else ""
        self.recipe = stored.recipe
        self.env_id = config.env_id
        self.epoch: int = counters["epoch"]
        self.env_steps: int = counters["env_steps"]
        self.condition = config.condition.kind
        self.skills = config.condition_size
        self.acting_skills = config.acting_skills
        self.zero_goals = config.goals == "zero"
        self.observation_dim = len(snapshot.inputs.observation.mean)
        reach, seen = snapshot.inputs.reach, len(snapshot.inputs.goal.mean)
        self.goal_dim = seen if reach is None else seen // 2  # without places of the hand
        self.action_dim = snapshot.action_dim
        self.bounds = None if declared is None else bounds_of(vars(declared))

    def digest(self, skills: int) -> str:
        """Returns the SHA-256 of the arrays with which its first skills act."""
        snapshot, digest = self.snapshot, hashlib.sha256()
        each = snapshot.each[:skills] if isinstance(snapshot, SkillSnapshots) else (snapshot,)
        for actor in each:
            for name, array in sorted(skill_arrays(actor).items()):
                digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
                digest.update(array.tobytes())
        return digest.hexdigest()

    def skill_log_likelihood(self, states: npt.ArrayLike) -> Array:
        """Returns log q(z | s) in nats for each skill, [T, K]: how well each explains a state.

        Args:
            states: Observations [T, O]; or descriptors [T, D] that are no part of observations.

        Raises:
            ValueError: A wrong shape or number, or a run without a discriminator.
        """
        if self._why_not:
            raise ValueError(f"states: the checkpoint does not fit config.json: {self._why_not}")
        if self.discriminator is None:
            raise ValueError(
                f"states: {self.recipe} on {self.env_id} has no discriminator; expected "
                "a run with the reward skill, or an export with --parts actor,normalizer,"
                "discriminator"
            )
        reads = self.discriminator
        size = self.observation_dim if reads.columns or reads.blind else reads.size
        rows = np.atleast_2d(numbers("states", states, size))
        return reads.log_likelihood(rows[:, list(reads.columns)] if reads.columns else rows)

    def nearest_skill(self, states: npt.ArrayLike) -> int:
        r"""Returns the skill that most likely passed through states: imitation without actions.

        .. math:: \arg\max_z \sum_t \log q(z | s_t)

        The authors of DIAYN imitate an expert in this way (arXiv:1802.06070). Arguments and faults
        are those of `skill_log_likelihood`, whose sums for other skills show how clear the choice
        is.
        """
        return int(self.skill_log_likelihood(states).sum(axis=0, dtype=np.float64).argmax())


class AdaptivePolicy(SavedPolicy):
    """A policy that infers its task from episodes; `load_policy` makes one.

    Each object has its own context; the copy that `exploration` returns has an empty one. `act`
    begins an episode if `begin_episode` has not, and takes no goal, skill or place.
    """

    snapshot: Snapshot
    _encoder: Encoder

    def __init__(
        self,
        stored: StoredRun,
        snapshot: Snapshot,
        counters: Mapping[str, Any],
        declared: Declared | None = None,
    ) -> None:
        """Takes those of `SavedPolicy`; a ValueError if the agent does not infer its task."""
        super().__init__(stored, snapshot, counters, declared=declared)
        inference = stored.config.agent.inference
        if inference is None:
            raise ValueError(f"{stored.recipe}: expected an agent that infers its task")
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
        """Returns the sizes of the inputs and outputs of `actor` or `encoder`."""
        inference = self._encoder.inference
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
        self._context = np.zeros([0, self.sizes("encoder")[0]], np.float32)
        self._belief = self._encoder.prior
        self._latent: Array | None = None

    def begin_episode(self, seed: int | None = None) -> Array:
        """Draws the latent [L] of the next actions; a seed fixes it."""
        generator = self._generator if seed is None else np.random.default_rng(seed)
        noise = generator.standard_normal(len(self._belief.mean), np.float32)
        self._latent = self._belief.draw(noise)
        return self._latent.copy()

    def _condition(self, skill: Any, state: Array) -> Array:
        """Returns the latent of this episode, [L]; the first call begins one."""
        if skill is not None:
            raise ValueError("skill: begin_episode() draws the latent; leave skill= out")
        return self.begin_episode() if self._latent is None else self._latent

    def adapt(self, episodes: Sequence[Episode]) -> "AdaptivePolicy":
        """Infers the task from these and all earlier episodes; returns itself.

        The next `act` draws a latent of the new belief, unless `begin_episode` does.

        Args:
            episodes: Those of `infer`, at least one.

        Raises:
            ValueError: No episode, wrong shapes or numbers, or a checkpoint without an encoder.
        """
        try:
            played = list(episodes)
        except TypeError as error:
            raise ValueError(f"episodes: expected a list, got {episodes!r:.80}") from error
        if not played:
            raise ValueError("episodes: expected at least one, got none")
        context = np.concatenate([self._context, *map(self._rows, played)])
        self._belief = believe(self.encoder, context)
        self._context, self._latent = context, None
        return self
