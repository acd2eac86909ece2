"""The reward terms of a run: what they need between updates, and their state."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.config.agents import AgentConfig
from music_tf.config.settings import Config
from music_tf.config.values import Bounds
from music_tf.errors import UsageError
from music_tf.intrinsic.base import Mixing, RewardTerm, schedule_value
from music_tf.intrinsic.term_outputs import prior_of, priorities_of
from music_tf.networks.acting import EXPLORER
from music_tf.training.feeds import Schedules
from music_tf.training.parts import Part, Run
from music_tf.training.update import Update
from music_tf.types import Array, Episodes


def return_bounds(
    agent: AgentConfig,
    terms: Sequence[RewardTerm],
    gamma: float,
    epoch: float | None = None,
    levels: Mapping[str, float] = MappingProxyType({}),
) -> Bounds:
    """Returns the bounds of the TD target, at the weights of now or, without an epoch, of all."""
    if isinstance(agent.return_clip, tuple):
        return agent.return_clip
    if agent.return_clip == "off":
        return -math.inf, math.inf
    if agent.return_clip == "symmetric":
        return -4.0 / (1.0 - gamma), 4.0 / (1.0 - gamma)
    points = {term.name: levels.get(term.name, epoch) for term in terms}
    bounds = {f"{each.name}.clip": each.mixing.at(points[each.name]).bounds for each in terms}
    for term in (each for each in terms if each.gated):  # where its gate is closed it pays nothing
        low, high = bounds[f"{term.name}.clip"]
        bounds[f"{term.name}.clip"] = min(low, 0.0), max(high, 0.0)
    for name, (scale, clip, weight) in agent.bonus.items():
        bounds[f"agent.{name}"] = Mixing(scale, clip, 0.0, weight).at(epoch).bounds
    for name, ends in bounds.items():
        if not all(map(math.isfinite, ends)):
            numbers = f"--{name.replace('_', '-')} two numbers"
            if name == "task.clip":
                numbers = f"--world.reward the range of the environment's reward, or {numbers}"
            raise UsageError(
                f"agent.return_clip: {agent.return_clip!r} needs bounded rewards, but {name} is "
                f"not finite; give {numbers}, or choose --agent.return-clip off"
            )
    low, high = (sum(ends) for ends in zip(*bounds.values(), strict=True))
    return low / (1.0 - gamma), high / (1.0 - gamma)


class Rewards(Part):
    """All reward terms in the order in which they are summed, also those without weight."""

    def __init__(self, config: Config, update: Update, levels: Mapping[str, float]) -> None:
        self._config, self.update, self._levels = config, update, levels
        self.terms: Sequence[RewardTerm] = update.terms

    @property
    def notices(self) -> Sequence[str]:
        return [term.notice for term in self.terms]

    def schedules(self, epoch: float) -> Schedules:
        entropy = self.update.learner.entropy_weight
        now = {term.name: self._levels.get(term.name, epoch) for term in self.terms}
        weights = {
            term.name: tf.constant(schedule_value(term.mixing.weight, now[term.name]), tf.float32)
            for term in self.terms
        }
        agent, bounds = self._config.agent, None
        if agent.return_clip == "paid":
            low, high = return_bounds(agent, self.terms, self.update.discount, epoch, self._levels)
            bounds = tf.constant(low, tf.float32), tf.constant(high, tf.float32)
        return Schedules(weights, tf.constant(schedule_value(entropy, epoch), tf.float32), bounds)

    def prior(self) -> Array | None:
        """Returns the probability of each one-hot condition, [K]; None if it is uniform."""
        priors = (prior_of(term, self._config.condition_size) for term in self.terms)
        return next((chances for chances in priors if chances is not None), None)

    def explorer(self) -> dict[str, Array]:
        """Returns the arrays with which a term chooses among random actions, if one does."""
        arrays: dict[str, Array] = {}
        for term in self.terms:
            if self._config.rewards[term.name].candidate_actions:
                weights = self.update.arrays_of(term.networks)
                weights |= {f"scales/{name}": scale.numpy() for name, scale in term.scales.items()}
                arrays = {f"{EXPLORER}{name}": array for name, array in weights.items()}
        return arrays

    def priorities(self, fresh: Mapping[int, Episodes], cycle: int) -> dict[int, Array] | None:
        """Returns the priorities of fresh episodes by worker, if replay draws by them."""
        for term in self.terms:
            if term.name == self._config.replay.priority:
                weights = self.update.weights()
                return {
                    worker: priorities_of(term, weights, episodes, worker, cycle)
                    for worker, episodes in fresh.items()
                }
        return None

    def take_in(self, run: Run, fresh: Mapping[int, Episodes], cycle: int) -> None:
        for term in self.terms:
            term.observe(fresh, cycle)

    def shared(self) -> dict[str, np.ndarray]:
        return {name: array for term in self.terms for name, array in term.shared().items()}

    def meta(self) -> dict[str, Any]:
        """Returns what inputs of reward networks and encoder mean, and counts of terms."""
        counts = {term.name: meta for term in self.terms if (meta := term.meta())}
        inference = self._config.agent.inference
        inputs: dict[str, Any] = {} if inference is None else {"encoder": dict(inference.inputs)}
        for term in self.terms:
            inputs |= term.inputs
        return {"inputs": inputs} | ({"terms": counts} if counts else {})

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        counts = meta.get("terms", {})
        if not isinstance(counts, dict) or not all(isinstance(c, dict) for c in counts.values()):
            raise ValueError("terms: expected counts by name of the term")
        self.start_from(shared)
        for term in self.terms:
            term.load_meta(counts.get(term.name, {}))

    def start_from(self, shared: Mapping[str, np.ndarray]) -> None:
        for term in self.terms:
            term.load(shared)

    def of_worker(self, worker: int) -> dict[str, np.ndarray]:
        return {
            f"{term.name}/{name}": array
            for term in self.terms
            for name, array in term.of_worker(worker).items()
        }

    def load_worker(self, worker: int, arrays: Mapping[str, np.ndarray]) -> None:
        for term in self.terms:
            prefix = f"{term.name}/"
            kept = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            term.load_worker(worker, kept)

    def forget(self) -> None:
        for term in self.terms:
            term.forget()
