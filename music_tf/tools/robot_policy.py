"""Acts as an agent that music_tf has trained, with numpy and nothing else.

Copy `policy.py` and `policy.npz` to the computer of the robot; they need no other file:

    from policy import Policy

    policy = Policy()
    action = policy.act(observation)

Actions lie within the bounds of the environment in training, in its units. `python policy.py`
prints these bounds, and the other inputs and outputs of the policy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.types import bounds_of, moved_first, to_bounds, to_unit

Array = npt.NDArray[np.float32]
Episode = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
_MATRIX, _LEAST_VARIANCE, _LEAST_PRECISION = 2, 1e-7, 1e-7
_HERE = 1e-9
"""Distance in the embedding below which a place counts as reached."""
_ROUNDING = 1e-3
"""How far the length of a condition on the sphere, or an action in [-1, 1], may be beyond 1."""


class TaskBelief(NamedTuple):
    """A Gaussian belief over latents, which describe the task."""

    mean: Array  # [L]
    variance: Array  # [L]
    spread: Array | None = None
    """Root of the covariance, if that is full, [L, L]."""


class Policy:
    """The deterministic policy of a trained agent."""

    def __init__(self, path: Path | None = None) -> None:
        """Reads an archive; by default `policy.npz` beside this file."""
        place = path or Path(__file__).with_name("policy.npz")
        with np.load(place, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        self.about: dict[str, Any] = json.loads(str(arrays.pop("about")))
        """Sizes of the policy's inputs and outputs, bounds of its actions, and its origin."""
        declared = self.about["environment"]
        self._bounds = bounds_of(declared) if declared else None
        self._arrays: dict[str, Array] = arrays

    def act(
        self,
        observation: npt.ArrayLike,
        goal: npt.ArrayLike | None = None,
        skill: npt.ArrayLike | None = None,
        latent: npt.ArrayLike | None = None,
        reach: npt.ArrayLike | None = None,
        *,
        unit: bool = False,
    ) -> np.ndarray:
        """Returns the action for one observation, or the actions for a batch of them.

        Args:
            observation: Shape [O] or [B, O].
            goal: Shape [G] or [B, G]; needed by a policy that was trained on goals, and only then.
            skill: Index of the skill, from 0, a number or [B]; needed if there are several.
            latent: Shape [L] or [B, L]: the result of `draw`, or a continuous condition.
            reach: Place to reach instead of a skill or latent, [n] or [B, n]: values of the columns
                `about["reach"]["columns"]` of the observation.
            unit: Whether to return actions in [-1, 1] in place of the environment's units.

        Returns:
            Actions within the bounds in `about["environment"]`, shape [A] or [B, A].
        """
        about = self.about
        given = _numbers("observation", observation, about["observation_dim"])
        without = about["zero_goals"] or not about["goal_dim"]
        if goal is not None and without and (not about["goal_dim"] or np.any(goal)):
            raise ValueError("goal: this agent was trained without goals; leave goal= out")
        if goal is None and without:
            goal = np.zeros(about["goal_dim"])
        if goal is None:
            raise ValueError(f"goal: expected shape [{about['goal_dim']}], got none")
        goals = _numbers("goal", goal, about["goal_dim"])
        rows, size = np.atleast_2d(given), about["condition_dim"]
        named, chosen = self._chosen(skill, latent, reach, given)
        for name, values in (("goal", goals), (named, chosen)):
            if values.shape[:-1] not in {(), given.shape[:-1]}:
                raise ValueError(
                    f"{name}: expected one, or one for each observation {list(given.shape)}, got "
                    f"{list(values.shape[:-1])} of them"
                )
        actions = self._act(
            rows,
            np.broadcast_to(goals, (len(rows), about["goal_dim"])),
            np.broadcast_to(chosen, (len(rows), size)),
        )
        actions = actions if unit else to_bounds(actions, self._bounds)
        return actions if given.ndim == _MATRIX else actions[0]

    def infer(self, episodes: Sequence[Episode]) -> TaskBelief:
        """Returns the belief over tasks after some episodes; the prior without any.

        Args:
            episodes: Observations [T + 1, O], actions [T, A] as `act` returned them, and rewards
                [T], which are those of the context in training.
        """
        told = self.about["inference"]
        if told is None:
            raise ValueError("episodes: this file has no encoder of the agent; give latent=")
        latent, deterministic = told["latent"], told["deterministic"]
        if not episodes:
            zeros = np.zeros(latent, np.float32)
            return TaskBelief(zeros, zeros if deterministic else zeros + np.float32(1.0))
        rows = np.concatenate([self._rows(one) for one in episodes])
        outputs = self._network("encoder", rows)
        if told["recurrent"]:
            outputs = self._after_run(told["recurrent"], outputs)[None]
        if deterministic:
            mean: Array = outputs.mean(axis=0)
            return TaskBelief(mean, np.zeros_like(mean))
        if told["full"]:
            return _after_observations(outputs.reshape(-1, latent + 1))
        means, raw = outputs[:, :latent], outputs[:, latent:]
        precision = 1.0 / np.maximum(np.logaddexp(raw, np.float32(0.0)), _LEAST_VARIANCE)
        variance: Array = 1.0 / precision.sum(axis=0)
        return TaskBelief(variance * (precision * means).sum(axis=0), variance)

    def draw(self, belief: TaskBelief, seed: int | None = None) -> Array:
        """Returns a latent [L] of a belief; a seed fixes it."""
        noise = np.random.default_rng(seed).standard_normal(len(belief.mean), np.float32)
        spread = belief.spread
        away = np.sqrt(belief.variance) * noise if spread is None else noise @ spread
        return (belief.mean + away).astype(np.float32)

    def _after_run(self, kind: str, inputs: Array) -> Array:
        """Applies a GRU or LSTM to inputs [T, I], then a linear layer; returns [D]."""
        kernel, recurrent, bias, head, head_bias = (
            self._arrays[f"{kind}/{part}"]
            for part in ("kernel", "recurrent", "bias", "head", "head_bias")
        )
        state = cell = np.zeros(len(recurrent), np.float32)
        for step in inputs @ kernel + (bias[0] if kind == "gru" else bias):
            if kind == "gru":
                update, reset, new = np.split(step, 3)
                old_update, old_reset, old = np.split(state @ recurrent + bias[1], 3)
                kept, seen = _sigmoid(update + old_update), _sigmoid(reset + old_reset)
                state = kept * state + (1.0 - kept) * np.tanh(new + seen * old)
                continue
            write, keep, new, show = np.split(step + state @ recurrent, 4)
            cell = _sigmoid(keep) * cell + _sigmoid(write) * np.tanh(new)
            state = _sigmoid(show) * np.tanh(cell)
        outputs: Array = state @ head + head_bias
        return outputs

    def _chosen(
        self,
        skill: npt.ArrayLike | None,
        latent: npt.ArrayLike | None,
        reach: npt.ArrayLike | None,
        given: Array,
    ) -> tuple[str, Array]:
        """Returns the name of the argument that chose the condition, and that, [K] or [B, K]."""
        named = "skill" if self.about["acting"] else "latent"
        if reach is not None:
            if skill is not None or latent is not None:
                raise ValueError(f"reach: the place determines the condition; leave {named}= out")
            return "reach", self._towards(reach, given)
        if named == "skill":
            if latent is not None:
                raise ValueError("latent: this agent has skills; give skill= in its place")
            return named, self._one_hot(skill)
        if skill is not None:
            raise ValueError("skill: this agent has no skills to count; give latent= in its place")
        numbers = _numbers(named, latent, self.about["condition_dim"])
        beyond, kind = np.linalg.norm(numbers, axis=-1) - 1.0, self.about["condition"]
        far = {"ball": beyond, "sphere": np.abs(beyond)}.get(kind, np.zeros([]))
        if (far > _ROUNDING).any():
            length = "at most 1" if kind == "ball" else "1"
            raise ValueError(f"latent: expected vectors of length {length}, got {latent!r}"[:200])
        return named, numbers

    def _towards(self, reach: npt.ArrayLike, given: Array) -> Array:
        """Returns the condition that leads to a place, [K] or [B, K]."""
        leads = self.about["reach"]
        if leads is None:
            raise ValueError(
                "reach: this agent cannot go to places; expected one that was trained "
                "with the reward distance"
            )
        if not leads["columns"]:
            raise ValueError("reach: its embedding sees no columns of the observation")
        there = _numbers("reach", reach, len(leads["columns"]))
        if there.shape[:-1] not in {(), given.shape[:-1]}:
            raise ValueError(
                f"reach: expected one place, or one for each observation {list(given.shape)}, got "
                f"{list(there.shape)}"
            )
        here = given[..., leads["columns"]]
        here, there = (
            self._scaled_place(here),
            self._scaled_place(np.broadcast_to(there, here.shape)),
        )
        if leads["groups"] > 1:
            first = moved_first(there - here, leads["groups"], leads["near"] / 2)
            there = np.where(first, there, here)
        if leads["places"]:  # seen from the mean of the inputs
            here = np.zeros_like(here)
        way = self._network("phi", there) - self._network("phi", here)
        size = way.shape[-1]
        if leads["condition"] == "one_hot":
            one_hot: Array = np.eye(size, dtype=np.float32)[way.argmax(axis=-1)]
            return one_hot
        length = np.linalg.norm(way.astype(np.float64), axis=-1, keepdims=True)
        unit = np.where(length > _HERE, way / np.maximum(length, _HERE), np.eye(1, size)[0])
        long = np.sqrt(size) if leads["condition"] == "gaussian" else 1.0
        if leads["condition"] == "ball":  # a velocity, which falls near the goal
            left, unit = way if leads["places"] else there - here, unit.astype(np.float32)
            long = np.minimum(1.0, np.linalg.norm(left, axis=-1, keepdims=True) / leads["near"])
        found: Array = (long * unit).astype(np.float32)
        return found

    def _scaled_place(self, seen: Array) -> Array:
        """Returns inputs [..., n] of the embedding."""
        scale = self._arrays.get("phi/scale")
        return np.asarray(seen if scale is None else (seen - scale[0]) / scale[1], np.float32)

    def _one_hot(self, skill: npt.ArrayLike | None) -> Array:
        acting, size = self.about["acting"], self.about["condition_dim"]
        if skill is None and len(acting) > 1:
            raise ValueError(f"skill: this agent has {size}, expected one of 0..{size - 1}")
        chosen = np.asarray(acting[0] if skill is None else skill)
        if chosen.dtype.kind not in "iu" or ((chosen < 0) | (chosen >= size)).any():
            raise ValueError(f"skill: expected whole numbers in 0..{size - 1}, got {skill!r}")
        one_hot: Array = np.eye(size, dtype=np.float32)[chosen]
        return one_hot

    def _act(self, observation: Array, goal: Array, condition: Array) -> Array:
        """Returns actions [B, A], by the actor of each skill if each has its own."""
        if self.about["actors"] == 1:
            return self._actor("0", observation, goal, condition)
        numbers = condition.argmax(axis=-1)
        actions = np.empty([len(numbers), self.about["action_dim"]], np.float32)
        for number in np.unique(numbers).tolist():
            at = numbers == number
            actions[at] = self._actor(str(number), observation[at], goal[at], condition[at])
        return actions

    def _actor(self, actor: str, observation: Array, goal: Array, condition: Array) -> Array:
        parts = [
            self._normalized(observation, f"{actor}/observation"),
            condition[..., : self.about["condition_seen"]],
            self._normalized(goal, f"{actor}/goal"),
        ]
        outputs = self._network(actor, np.concatenate(parts, axis=-1))
        if self.about["choices"]:
            one_hot: Array = np.eye(outputs.shape[-1], dtype=np.float32)[outputs.argmax(axis=-1)]
            return one_hot
        actions: Array = np.tanh(outputs)
        return actions

    def _normalized(self, values: Array, moments: str) -> Array:
        limit, clip = self.about["input_clip"], self.about["clip"]
        scaled: Array = np.clip(values, -limit, limit)
        scaled = (scaled - self._arrays[f"{moments}/mean"]) / self._arrays[f"{moments}/deviation"]
        return np.clip(scaled, -clip, clip)

    def _network(self, name: str, inputs: Array) -> Array:
        """Applies hidden layers with ReLUs, then linear ones."""
        for layer, is_hidden in enumerate(self.about["layers"][name]):
            kernel, bias = (self._arrays[f"{name}/{layer}/{part}"] for part in ("kernel", "bias"))
            inputs = inputs @ kernel + bias
            if is_hidden:
                inputs = np.maximum(inputs, 0.0)
        return inputs

    def _rows(self, episode: Episode) -> Array:
        """Returns the rows of an episode for the encoder, [T, C]."""
        about = self.about
        observed = np.atleast_2d(_numbers("observations", episode[0], about["observation_dim"]))
        actions = np.atleast_2d(_numbers("actions", episode[1], about["action_dim"]))
        actions = to_unit(actions, self._bounds)
        rewards = np.atleast_1d(np.asarray(episode[2], np.float32))
        if not len(observed) - 1 == len(actions) == len(rewards) > 0 or rewards.ndim != 1:
            raise ValueError(
                "episodes: expected T + 1 observations, T actions and T rewards, got "
                f"{len(observed)}, {len(actions)} and {list(rewards.shape)}"
            )
        if (np.abs(actions) > 1.0 + _ROUNDING).any() or not np.isfinite(rewards).all():
            raise ValueError("episodes: expected actions within their bounds and finite rewards")
        seen, inference = self._normalized(observed, "0/observation"), about["inference"]
        paid = np.float32(inference["reward_scale"]) * rewards[:, None]
        after = [seen[1:]] if inference["next_observation"] else []
        rows = np.concatenate([seen[:-1], actions, paid, *after], axis=-1)
        return rows.astype(np.float32, copy=False)


def _sigmoid(values: Array) -> Array:
    """Applies the logistic function, which overflows nowhere in this form."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)), np.float32)


def _after_observations(observed: Array) -> TaskBelief:
    """Returns the belief after N linear observations: direction and value of each, [N, L + 1]."""
    direction, value = observed[:, :-1], observed[:, -1]
    unit = np.eye(direction.shape[-1], dtype=np.float32)
    precision = unit + direction.T @ direction
    precision += np.maximum(np.float32(_LEAST_PRECISION) * np.trace(precision) - 1, 0) * unit
    spread = np.linalg.inv(np.linalg.cholesky(precision))
    mean: Array = spread.T @ (spread @ (direction.T @ value))
    return TaskBelief(mean, np.square(spread).sum(axis=0), spread)


def _numbers(name: str, values: npt.ArrayLike | None, size: int) -> Array:
    """Returns finite numbers of shape [size] or [B, size]."""
    if values is None:
        raise ValueError(f"{name}: expected numbers of shape [{size}], got none")
    array = np.asarray(values, np.float32)
    if array.ndim not in {1, _MATRIX} or array.shape[-1] != size:
        raise ValueError(f"{name}: expected shape [{size}] or [B, {size}], got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers")
    return array


if __name__ == "__main__":
    sys.stdout.write(json.dumps(Policy().about, indent=1) + "\n")
