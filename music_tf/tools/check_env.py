"""Checks of a goal environment, each with what was found and how to cure it.

Gymnasium's own `check_env` stops at the first fault, names no cure, lets whole numbers pass as
observations, and knows nothing of goals.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import GOAL_KEYS, make_environment
from music_tf.envs.registry import lookup
from music_tf.envs.specification import action_bounds
from music_tf.errors import MusicError
from music_tf.tools.doctor import Finding
from music_tf.types import Array

_STEPS = 30
_TOLERANCE = 1e-6

Verdict = tuple[str, str]
"""What was found, and the cure; an empty one where all is well."""


class Played(NamedTuple):
    """An episode of random actions, as the environment gave it."""

    env_id: str
    environment: Any
    observations: list[dict[str, Any]]  # one more than rewards
    rewards: list[Any]
    infos: list[dict[str, Any]]

    def goals(self) -> tuple[Any, Any]:
        """Returns achieved and desired goals [N, G] after each step."""
        after = self.observations[1:]
        achieved = np.stack([observation["achieved_goal"] for observation in after])
        return achieved, np.stack([observation["desired_goal"] for observation in after])

    def reward_of(self, achieved: Any, desired: Any) -> float:
        """Returns what `compute_reward` says of a single pair of goals."""
        unwrapped = self.environment.unwrapped
        return float(unwrapped.compute_reward(achieved.copy(), desired.copy(), {}))


def check_environment(env_id: str) -> list[Finding]:
    """Creates an environment, plays a few short episodes, and says what fits and what does not.

    Args:
        env_id: Gymnasium id; `module:Id` imports the module first.

    Returns:
        All checks in a fixed order; the first failures can hide later ones.

    Raises:
        UsageError: Unknown id, or module that cannot be imported.
    """
    try:
        environment: Any = make_environment(env_id)
    except MusicError as error:
        if "no goal environment" not in str(error):
            raise
        cure = "return a dict with these keys, see the docs"
        return [Finding("goal keys", str(error), cure=cure)]
    space, spec = environment.action_space, environment.spec
    bounded = Finding("actions", f"{space}")
    try:
        action_bounds(env_id, environment)
    except MusicError as error:
        cure = "use a Box of one axis with finite bounds, such as -1 and 1"
        bounded = Finding("actions", str(error), cure=cure)
    long = Finding("episode length", "not registered", cure="register it with max_episode_steps")
    if spec and spec.max_episode_steps:
        long = Finding("episode length", f"{spec.max_episode_steps} steps")
    findings = [Finding("goal keys", ", ".join(GOAL_KEYS)), bounded, long]
    if all(finding.ok for finding in findings):
        findings += _played(env_id, environment)
    environment.close()
    return findings


def _played(env_id: str, environment: Any) -> list[Finding]:
    """Plays an episode of random actions and checks what came of it."""
    space, random = environment.action_space, np.random.default_rng(0)

    def line(error: Exception) -> str:
        return f"{type(error).__name__}: {error}".splitlines()[0]

    try:
        observation, _ = environment.reset(seed=0)
        played = Played(env_id, environment, [observation], [], [])
        for _ in range(min(_STEPS, environment.spec.max_episode_steps)):
            action = random.uniform(space.low, space.high).astype(space.dtype)
            with np.errstate(all="ignore"):
                observation, reward, terminated, truncated, info = environment.step(action)
            played.observations.append(observation)
            played.rewards.append(reward)
            played.infos.append(info)
            if terminated or truncated:
                break
    except Exception as error:  # whatever the environment throws
        cure = "let reset(seed=...) and step(action) run"
        return [Finding("episode", line(error), cure=cure)]
    findings = []
    for name, check in CHECKS.items():
        try:
            detail, cure = check(played)
        except Exception as error:  # whatever the environment throws
            detail, cure = line(error), "make this run without an exception"
        findings.append(Finding(name, detail, cure=cure))
    return findings


def observations(played: Played) -> Verdict:
    """Looks for observations of other shapes or kinds than declared, or not finite."""
    for key in GOAL_KEYS:
        shape = played.environment.observation_space[key].shape
        for step, observation in enumerate(played.observations):
            value = np.asarray(observation[key])
            where = f"{key} at step {step}"
            if value.shape != shape:
                return f"{where} has shape {value.shape}", f"return the declared shape {shape}"
            if not np.issubdtype(value.dtype, np.floating):
                return f"{where} is {value.dtype}", "return floating point numbers"
            if not np.isfinite(value).all():
                return f"{where} is not finite", "return finite numbers"
    return f"finite, of the declared shapes, {len(played.rewards)} steps", ""


def constant_goal(played: Played) -> Verdict:
    """Looks for a goal that changes within the episode."""
    goals = np.stack([observation["desired_goal"] for observation in played.observations])
    changed = (goals != goals[0]).any(axis=1)
    if changed.any():
        return f"it changes at step {int(np.argmax(changed))}", "draw goals in reset only"
    return "the desired goal stays within an episode", ""


def reward(played: Played) -> Verdict:
    """Compares the rewards of steps with those computed from their goals."""
    goals = zip(*played.goals(), strict=True)
    for step, (found, pair) in enumerate(zip(played.rewards, goals, strict=True), start=1):
        computed = played.reward_of(*pair)
        if not abs(float(found) - computed) <= _TOLERANCE:
            return (
                f"step {step} gave {float(found):g}, compute_reward {computed:g}",
                "step must return compute_reward(achieved_goal, desired_goal, info)",
            )
    return "step and compute_reward agree", ""


def batched_reward(played: Played) -> Verdict:
    """Compares the rewards of many pairs of goals at once with those of single pairs."""
    if not lookup(played.env_id).batched_reward:
        return "known to be wrong here, goals are rewarded one by one", ""
    achieved, desired = played.goals()
    desired = np.concatenate([desired, achieved[::-1]])
    achieved = np.concatenate([achieved, achieved])
    single = np.array([played.reward_of(*pair) for pair in zip(achieved, desired, strict=True)])
    many = np.asarray(played.environment.unwrapped.compute_reward(achieved, desired, {}))
    cure = "compute_reward must take goals [N, G] and give rewards [N]: use axis=-1"
    if many.shape != single.shape:
        return f"{len(single)} goals gave shape {many.shape}", cure
    wrong = int(np.sum(~(np.abs(many - single) <= _TOLERANCE)))
    if wrong:
        return f"{wrong} of {len(single)} rewards differ from single ones", cure
    return f"{len(single)} goals at once give the rewards of single ones", ""


def success(played: Played) -> Verdict:
    """Looks for a success that evaluations can count."""
    if all("is_success" in info or "success" in info for info in played.infos):
        return "info tells it", ""
    return (
        "info has no is_success, so the success rate is always 0",
        'return {"is_success": ...} as info of each step',
    )


def reset(played: Played) -> Verdict:
    """Plays an episode, another one, and the first again."""
    envs = LockstepEnvs(played.env_id, 1)
    first, _, again = (list(_states(envs, seed)) for seed in (1, 2, 1))
    envs.close()
    for step, pair in enumerate(itertools.zip_longest(first, again)):
        if not np.array_equal(*pair):
            return (
                f"with the same seed, episodes differ from step {step} on",
                "restore everything in reset(seed=...), and draw only from self.np_random",
            )
    return "the same seed gives the same episode, bit for bit", ""


def _states(envs: LockstepEnvs, seed: int) -> Iterator[Array]:
    """Plays an episode of random actions."""
    random = np.random.default_rng(seed)
    yield np.concatenate([part[0] for part in envs.reset([0], [seed])[:3]])
    for _ in range(min(_STEPS, envs.spec.max_episode_steps)):
        action = random.uniform(-1.0, 1.0, (1, envs.spec.action_dim)).astype(np.float32)
        steps = envs.step(action, [0])
        if steps.faults[0] is not None:
            raise RuntimeError(steps.faults[0])
        yield np.concatenate([part[0] for part in steps[:3]])
        if steps.terminated[0] or steps.truncated[0]:
            return


def settable_goal(played: Played) -> Verdict:
    """Sets the goal of an episode and looks whether it is observed."""
    envs = LockstepEnvs(played.env_id, 1)
    goal = envs.reset([0], [3]).achieved_goal + np.float32(0.125)
    envs.reset([0], [4], goal)
    action = np.zeros((1, envs.spec.action_dim), np.float32)
    kept = np.array_equal(envs.step(action, [0]).desired_goal, goal)
    envs.close()
    if kept:
        return "the attribute `goal` replaces the goal", ""
    return (
        "the desired goal does not follow the attribute `goal`",
        "observe self.goal as desired_goal, needed for --goals zero",
    )


CHECKS: dict[str, Callable[[Played], Verdict]] = {
    check.__name__.replace("_", " "): check
    for check in (
        *(observations, constant_goal, reward, batched_reward),
        *(success, reset, settable_goal),
    )
}
"""Checks of an episode by name, in the order in which they are shown."""
