"""Checks of a goal environment, each with what was found and how to cure it.

Gymnasium's own `check_env` stops at the first fault, names no cure, and knows nothing of goals.
"""

from typing import Any, NamedTuple

import numpy as np

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import GOAL_KEYS, make_environment
from music_tf.envs.registry import lookup
from music_tf.errors import MusicError
from music_tf.tools.doctor import Finding
from music_tf.types import Array

_STEPS = 30
_TOLERANCE = 1e-6

Verdict = tuple[str, str]
"""What was found, and the cure; an empty one where all is well."""


class _Played(NamedTuple):
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
    findings = [
        Finding("goal keys", ", ".join(GOAL_KEYS)),
        _finding("actions", *_actions(environment.action_space)),
        _finding("episode length", *_length(environment.spec)),
    ]
    if all(finding.ok for finding in findings):
        findings += _played(env_id, environment)
    environment.close()
    return findings


def _finding(name: str, detail: str, cure: str) -> Finding:
    return Finding(name, detail, cure=cure)


def _played(env_id: str, environment: Any) -> list[Finding]:
    """Plays an episode of random actions and checks what came of it."""
    space, random = environment.action_space, np.random.default_rng(0)
    try:
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
    except Exception as error:  # whatever the environment throws
        return [_finding("episode", _line(error), "let reset(seed=...) and step(action) run")]
    findings = []
    for name, check in _CHECKS.items():
        try:
            verdict = check(played)
        except Exception as error:  # whatever the environment throws
            verdict = _line(error), "make this run without an exception"
        findings.append(_finding(name, *verdict))
    return findings


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _actions(space: Any) -> Verdict:
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or low.ndim != 1:
        return f"got {space}", "use a Box of one axis"
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return f"unbounded: {space}", "give the Box finite bounds, such as -1 and 1"
    return f"{low.shape[0]} components in finite bounds", ""


def _length(spec: Any) -> Verdict:
    steps = spec.max_episode_steps if spec else None
    if not steps:
        return "not registered", "register it with max_episode_steps"
    return f"{steps} steps", ""


def _observations(played: _Played) -> Verdict:
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


def _constant_goal(played: _Played) -> Verdict:
    goals = np.stack([observation["desired_goal"] for observation in played.observations])
    changed = (goals != goals[0]).any(axis=1)
    if changed.any():
        return f"it changes at step {int(np.argmax(changed))}", "draw goals in reset only"
    return "the desired goal stays within an episode", ""


def _reward(played: _Played) -> Verdict:
    goals = zip(*played.goals(), strict=True)
    for step, (reward, pair) in enumerate(zip(played.rewards, goals, strict=True), start=1):
        computed = played.reward_of(*pair)
        if not abs(float(reward) - computed) <= _TOLERANCE:
            return (
                f"step {step} gave {float(reward):g}, compute_reward {computed:g}",
                "step must return compute_reward(achieved_goal, desired_goal, info)",
            )
    return "step and compute_reward agree", ""


def _batched_reward(played: _Played) -> Verdict:
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


def _success(played: _Played) -> Verdict:
    if all("is_success" in info or "success" in info for info in played.infos):
        return "info tells it", ""
    return (
        "info has no is_success, so the success rate is always 0",
        'return {"is_success": ...} as info of each step',
    )


def _reset(played: _Played) -> Verdict:
    envs = LockstepEnvs(played.env_id, 1)
    first, _, again = (_trajectory(envs, seed) for seed in (1, 2, 1))
    envs.close()
    if np.array_equal(first, again):
        return "the same seed gives the same episode, bit for bit", ""
    return (
        "with the same seed, episodes differ from step "
        f"{int(np.argmax((first != again).any(axis=1)))} on",
        "restore everything in reset(seed=...), and draw only from self.np_random",
    )


def _trajectory(envs: LockstepEnvs, seed: int) -> Array:
    random = np.random.default_rng(seed)
    first = envs.reset([0], [seed])
    states = [np.concatenate([part[0] for part in first[:3]])]
    for _ in range(min(_STEPS, envs.spec.max_episode_steps)):
        action = random.uniform(-1.0, 1.0, (1, envs.spec.action_dim)).astype(np.float32)
        steps = envs.step(action, [0])
        if steps.faults[0] is not None:
            raise RuntimeError(steps.faults[0])
        states.append(np.concatenate([part[0] for part in steps[:3]]))
        if steps.terminated[0] or steps.truncated[0]:
            states += [states[-1]] * (_STEPS + 1 - len(states))
            break
    return np.stack(states)


def _settable_goal(played: _Played) -> Verdict:
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


_CHECKS = {
    "observations": _observations,
    "constant goal": _constant_goal,
    "reward": _reward,
    "batched reward": _batched_reward,
    "success": _success,
    "reset": _reset,
    "settable goal": _settable_goal,
}
"""Checks of an episode by name, in the order in which they are shown."""
