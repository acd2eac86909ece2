"""Checks of a goal environment, each with what was found and how to cure it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import GOAL_KEYS, make_environment
from music_tf.envs.registry import lookup
from music_tf.errors import MusicError
from music_tf.types import Array

_STEPS = 30
_TOLERANCE = 1e-6


class Check(NamedTuple):
    """Result of one check."""

    name: str
    ok: bool
    detail: str
    """What was found."""
    cure: str
    """What to change; empty where all is well."""


class _Played(NamedTuple):
    """An episode of random actions, as the environment gave it."""

    env_id: str
    environment: Any
    observations: list[dict[str, Any]]  # one more than rewards
    rewards: list[Any]
    infos: list[dict[str, Any]]


def check_environment(env_id: str) -> list[Check]:
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
        return [_failed("goal keys", str(error), "return a dict with these keys, see the docs")]
    keys = Check("goal keys", True, ", ".join(GOAL_KEYS), "")
    actions = _check_actions(environment)
    length = _check_length(environment)
    if not (actions.ok and length.ok):
        environment.close()
        return [keys, actions, length]
    checks = [keys, actions, length, *_check_played(env_id, environment)]
    environment.close()
    return checks


def _check_played(env_id: str, environment: Any) -> list[Check]:
    try:
        played = _play(env_id, environment)
    except Exception as error:  # whatever the environment throws
        return [_failed("episode", _line(error), "let reset(seed=...) and step(action) run")]
    return [
        *(_guard(check, played) for check in _PLAYED_CHECKS),
        *(_guard(check, env_id) for check in _LOCKSTEP_CHECKS),
    ]


def _failed(name: str, detail: str, cure: str) -> Check:
    return Check(name, False, detail, cure)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _guard(check: Callable[[Any], Check], subject: Any) -> Check:
    try:
        return check(subject)
    except Exception as error:  # whatever the environment throws
        name = check.__name__.removeprefix("_check_").replace("_", " ")
        return _failed(name, _line(error), "make this run without an exception")


def _play(env_id: str, environment: Any) -> _Played:
    space = environment.action_space
    random = np.random.default_rng(0)
    observation, _ = environment.reset(seed=0)
    played = _Played(env_id, environment, [observation], [], [])
    for _ in range(min(_STEPS, environment.spec.max_episode_steps)):
        action = random.uniform(space.low, space.high).astype(space.dtype)
        with np.errstate(all="ignore"):
            observation, reward, terminated, truncated, info = environment.step(action)
        played.observations.append(observation)
        played.rewards.append(reward)
        played.infos.append(info)
        if terminated or truncated:
            break
    return played


def _check_actions(environment: Any) -> Check:
    space = environment.action_space
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or low.ndim != 1:
        return _failed("actions", f"got {space}", "use a Box of one axis")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return _failed(
            "actions", f"unbounded: {space}", "give the Box finite bounds, such as -1 and 1"
        )
    return Check("actions", True, f"{low.shape[0]} components in finite bounds", "")


def _check_length(environment: Any) -> Check:
    steps = environment.spec.max_episode_steps if environment.spec else None
    if not steps:
        return _failed("episode length", "not registered", "register it with max_episode_steps")
    return Check("episode length", True, f"{steps} steps", "")


def _check_observations(played: _Played) -> Check:
    name = "observations"
    for key in GOAL_KEYS:
        shape = played.environment.observation_space[key].shape
        for step, observation in enumerate(played.observations):
            value = np.asarray(observation[key])
            where = f"{key} at step {step}"
            if value.shape != shape:
                return _failed(
                    name, f"{where} has shape {value.shape}", f"return the declared shape {shape}"
                )
            if not np.issubdtype(value.dtype, np.floating):
                return _failed(name, f"{where} is {value.dtype}", "return floating point numbers")
            if not np.isfinite(value).all():
                return _failed(name, f"{where} is not finite", "return finite numbers")
    return Check(name, True, f"finite, of the declared shapes, {len(played.rewards)} steps", "")


def _check_constant_goal(played: _Played) -> Check:
    goals = np.stack([observation["desired_goal"] for observation in played.observations])
    if (goals == goals[0]).all():
        return Check("constant goal", True, "the desired goal stays within an episode", "")
    step = int(np.argmax((goals != goals[0]).any(axis=1)))
    return _failed("constant goal", f"it changes at step {step}", "draw goals in reset only")


def _check_reward(played: _Played) -> Check:
    name, unwrapped = "reward", played.environment.unwrapped
    achieved, desired = _goals(played)
    single = [
        float(unwrapped.compute_reward(one.copy(), other.copy(), {}))
        for one, other in zip(achieved, desired, strict=True)
    ]
    for step, (reward, computed) in enumerate(zip(played.rewards, single, strict=True), start=1):
        if not abs(float(reward) - computed) <= _TOLERANCE:
            return _failed(
                name,
                f"step {step} gave {float(reward):g}, compute_reward {computed:g}",
                "step must return compute_reward(achieved_goal, desired_goal, info)",
            )
    return Check(name, True, "step and compute_reward agree", "")


def _check_batched_reward(played: _Played) -> Check:
    name = "batched reward"
    if not lookup(played.env_id).batched_reward:
        return Check(name, True, "known to be wrong here, goals are rewarded one by one", "")
    unwrapped = played.environment.unwrapped
    achieved, desired = _goals(played)
    desired = np.concatenate([desired, achieved[::-1]])
    achieved = np.concatenate([achieved, achieved])
    single = np.array(
        [
            float(unwrapped.compute_reward(one.copy(), other.copy(), {}))
            for one, other in zip(achieved, desired, strict=True)
        ]
    )
    many = np.asarray(unwrapped.compute_reward(achieved, desired, {}))
    cure = "compute_reward must take goals [N, G] and give rewards [N]: use axis=-1"
    if many.shape != single.shape:
        return _failed(name, f"{len(single)} goals gave shape {many.shape}", cure)
    wrong = int(np.sum(~(np.abs(many - single) <= _TOLERANCE)))
    if wrong:
        return _failed(name, f"{wrong} of {len(single)} rewards differ from single ones", cure)
    return Check(name, True, f"{len(single)} goals at once give the rewards of single ones", "")


def _goals(played: _Played) -> tuple[Any, Any]:
    """Achieved and desired goals [N, G] after each step."""
    after = played.observations[1:]
    achieved = np.stack([observation["achieved_goal"] for observation in after])
    return achieved, np.stack([observation["desired_goal"] for observation in after])


def _check_success(played: _Played) -> Check:
    if all("is_success" in info or "success" in info for info in played.infos):
        return Check("success", True, "info tells it", "")
    return _failed(
        "success",
        "info has no is_success, so the success rate is always 0",
        'return {"is_success": ...} as info of each step',
    )


def _check_reset(env_id: str) -> Check:
    envs = LockstepEnvs(env_id, 1)
    first = _trajectory(envs, seed=1)
    _trajectory(envs, seed=2)
    again = _trajectory(envs, seed=1)
    envs.close()
    if np.array_equal(first, again):
        return Check("reset", True, "the same seed gives the same episode, bit for bit", "")
    step = int(np.argmax((first != again).any(axis=1)))
    return _failed(
        "reset",
        f"with the same seed, episodes differ from step {step} on",
        "restore everything in reset(seed=...), and draw only from self.np_random",
    )


def _trajectory(envs: LockstepEnvs, seed: int) -> Array:
    random = np.random.default_rng(seed)
    first = envs.reset([0], [seed])
    states = [np.concatenate([part[0] for part in first[:3]])]
    for _ in range(min(_STEPS, envs.spec.max_episode_steps)):
        action = random.uniform(-1.0, 1.0, (1, envs.spec.action_dim)).astype(np.float32)
        steps = envs.step(action, [0])
        fault = steps.faults[0]
        if fault is not None:
            raise RuntimeError(fault)
        states.append(np.concatenate([part[0] for part in steps[:3]]))
        if steps.terminated[0] or steps.truncated[0]:
            states += [states[-1]] * (_STEPS + 1 - len(states))
            break
    return np.stack(states)


def _check_settable_goal(env_id: str) -> Check:
    envs = LockstepEnvs(env_id, 1)
    goal = envs.reset([0], [3]).achieved_goal + np.float32(0.125)
    envs.reset([0], [4], goal)
    action = np.zeros((1, envs.spec.action_dim), np.float32)
    kept = np.array_equal(envs.step(action, [0]).desired_goal, goal)
    envs.close()
    if kept:
        return Check("settable goal", True, "the attribute `goal` replaces the goal", "")
    return _failed(
        "settable goal",
        "the desired goal does not follow the attribute `goal`",
        "observe self.goal as desired_goal, needed for --goals zero",
    )


_PLAYED_CHECKS = (
    _check_observations,
    _check_constant_goal,
    _check_reward,
    _check_batched_reward,
    _check_success,
)
_LOCKSTEP_CHECKS = (_check_reset, _check_settable_goal)
