"""An environment whose action chooses a frozen skill of an earlier run."""

import copy
import functools
import importlib
import math
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.settings import EnvConfig
from music_tf.config.world import DISCOUNT
from music_tf.envs.endings import as_ended
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.types import ACTIONS, Declared, refusal, to_bounds

_SEEN = ("observation", "desired_goal")
_LOADING = "music_tf.storage.loading"
"""Module that loads a run; named here, as this folder may not import it."""


class SkillChoice(gymnasium.Wrapper[Any, Any, Any, Any]):
    r"""Plays a chosen skill for k steps as one step.

    The action is a vector of K numbers, whose argmax is the skill. The reward is the discounted sum
    over the n steps that it takes. `info[DISCOUNT]` multiplies the discount of one step, so that
    the next value is bootstrapped with gamma^n (options: Sutton, Precup, Singh, 1999):

    .. math:: r = \sum_{i < n} \gamma^i r_i, \quad \mathrm{discount} = \gamma^{n - 1}

    n is k except at the end of an episode. Goals become the last columns of the observation, and
    rewards are the environment's own. Skills see the first columns, on which they were trained.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any], settings: EnvConfig) -> None:
        """Loads a run's skills, those of a digest once a process, since their run may train on."""
        super().__init__(environment)
        self._settings = settings
        if settings.skill_digest:
            named = settings.skills, settings.skill_count, settings.skill_digest
            self._policy = _same_skills(*named)
        else:  # older runs do not say which skills they had
            self._policy = skills_of(settings.skills)
        choices = settings.skill_count or self._policy.skills
        if choices > self._policy.skills:
            raise UsageError(
                f"env.skill_count: {settings.skills[:120]} has {self._policy.skills} skills, "
                f"expected no more, got {choices}"
            )
        spaces: Any = environment.observation_space
        self._goals = isinstance(spaces, gymnasium.spaces.Dict)
        parts = [spaces[key] for key in _SEEN] if self._goals else [spaces]
        sizes = [math.prod(space.shape or ()) for space in parts]
        action: Any = environment.action_space
        wanted = (self._policy.observation_dim, self._policy.action_dim)
        if wanted[0] > sizes[0] or wanted[1] != len(action.low):
            raise UsageError(
                f"env.skills: {settings.skills[:120]} acts on {wanted[0]} columns with "
                f"{wanted[1]} numbers, this environment has {sizes[0]} and {len(action.low)}\n"
                f"they were learned on {self._policy.env_id}"
            )
        here = Declared(low=action.low.tolist(), high=action.high.tolist())
        learned = f"env.skills {settings.skills[:120]}"
        if text := refusal(self._policy.declared, here, learned, ACTIONS):
            raise UsageError(text)
        box = gymnasium.spaces.Box
        self.observation_space = box(-math.inf, math.inf, (sum(sizes),), np.float64)
        self.action_space = box(-1.0, 1.0, (choices,), np.float32)
        self._state = np.zeros(sum(sizes))

    @property
    def spec(self) -> Any:
        """The registered specification, with the length of episodes in choices."""
        spec_copy = copy.copy(self.env.spec)
        if spec_copy is not None and spec_copy.max_episode_steps:
            choices = spec_copy.max_episode_steps / self._settings.skill_steps
            spec_copy.max_episode_steps = math.ceil(choices)
        return spec_copy

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float64], dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._state = self._joined(observation)
        return self._state.copy(), {**info, DISCOUNT: 1.0}

    def step(
        self, action: Any
    ) -> tuple[npt.NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        gamma, total, steps = self._settings.skill_discount, 0.0, 0
        space: Any = self.env.action_space
        info: dict[str, Any] = {}
        terminated = truncated = False
        while steps < self._settings.skill_steps and not (terminated or truncated):
            inside = to_bounds(self._act(int(np.argmax(action))), (space.low, space.high))
            observation, reward, terminated, truncated, info = as_ended(self.env.step(inside))
            total += gamma**steps * float(reward)
            steps += 1
            self._state = self._joined(observation)
        info = {**info, DISCOUNT: gamma ** (steps - 1)}
        return self._state.copy(), total, bool(terminated), bool(truncated), info

    def _act(self, skill: int) -> Any:
        policy = self._policy
        seen = self._state[None, : policy.observation_dim].astype(np.float32)
        one_hot = np.eye(policy.skills, dtype=np.float32)[[skill]]
        goals = np.zeros((1, policy.goal_dim), np.float32)
        return policy.snapshot.act(seen, goals, one_hot, None)[0]

    def _joined(self, observation: Any) -> npt.NDArray[np.float64]:
        """Returns an observation as one vector, with its goal at the end."""
        parts = [observation[key] for key in _SEEN] if self._goals else [observation]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])


def skills_of(run: str) -> Any:
    """Returns the policy of a run with several skills."""
    loading = importlib.import_module(_LOADING)
    try:
        policy = loading.load_policy(run)
    except UsageError as error:
        raise UsageError(f"env.skills: {error}") from error
    if policy.condition != "one_hot" or policy.skills < 2:  # noqa: PLR2004
        raise UsageError(
            f"env.skills: expected a run with several skills, {run[:120]} is {policy.recipe} with "
            f"{policy.skills} as {policy.condition}\n"
            "for example: music-tf train sac_diayn --env-id ID --skills 5, then --env.skills latest"
        )
    if not policy.zero_goals and policy.goal_dim:
        raise EnvironmentFault(f"env.skills: {run[:120]} was trained on goals, expected none")
    return policy


@functools.lru_cache(maxsize=4)
def _same_skills(run: str, count: int | None, digest: str) -> Any:
    """Returns the policy of a run whose first skills have a digest; refuses other skills."""
    policy = skills_of(run)
    if (now := policy.digest(count or policy.skills)) != digest:
        raise UsageError(
            f"env.skills: {run[:120]} was trained further: expected skills with SHA-256 "
            f"{digest[:12]}, found {now[:12]} at its epoch {policy.epoch}\n"
            "put back its earlier checkpoint, or train another controller, on an export:\n"
            f"music-tf evaluate {run[:120]} --export FOLDER --parts actor,normalizer"
        )
    return policy
