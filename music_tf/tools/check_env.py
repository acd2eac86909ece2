"""Checks of an environment, each with its result and a cure, and the world to train with.

Gymnasium's own `check_env` stops at the first fault, names no cure, accepts whole numbers as
observations, and does not check goals.
"""

import contextlib
import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_tf.config.names import few
from music_tf.config.settings import EnvConfig, NormalizerConfig
from music_tf.config.world import World
from music_tf.envs.actions import action_bounds
from music_tf.envs.columns import SHORT, look
from music_tf.envs.endings import as_ended
from music_tf.envs.extras import Asked, asked_of_info
from music_tf.envs.kinds import Kind
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import GOAL_KEYS, dropped, make_environment
from music_tf.envs.member import BadObservation, can_set_goal, number, one_line, succeeded
from music_tf.envs.registry import described
from music_tf.envs.repeating import Difference, first_difference, statistics_of
from music_tf.errors import FROM_USERS, EnvironmentFault, Finding, MusicError
from music_tf.tools.proposals import CheckedEnv, columns_text, next_lines, world_text
from music_tf.training import worlds
from music_tf.training.rehearsal import LONGEST, MANY_AT_ONCE, STAY, Rehearsal
from music_tf.types import to_bounds

_TOLERANCE = 1e-6
_CORNERS: Sequence[Sequence[float]] = ((-1.0,), (1.0,), (-1.0, 1.0))
"""Corners of the action space: all low, all high, and alternating."""


class Played(NamedTuple):
    """An episode of random actions, as the environment returned it."""

    env_id: str
    environment: Any
    settings: EnvConfig
    rehearsal: Callable[[], Rehearsal]
    """Returns the rehearsal that all checks share."""
    returned: list[Any]  # observations, one more than rewards
    observations: list[Any]  # immediate copies of them
    rewards: list[Any]
    infos: list[Any]

    def goals(self) -> tuple[Any, Any]:
        """Returns achieved and desired goals [N, G] after each step."""
        after = self.observations[1:]
        achieved = np.stack([observation["achieved_goal"] for observation in after])
        return achieved, np.stack([observation["desired_goal"] for observation in after])

    def reward_of(self, achieved: Any, desired: Any, info: Any) -> float:
        """Returns the result of `compute_reward` for a single pair of goals."""
        unwrapped = self.environment.unwrapped
        return float(unwrapped.compute_reward(achieved.copy(), desired.copy(), info))

    @property
    def has_goals(self) -> bool:
        return isinstance(self.observations[0], Mapping)


def check_environment(env_id: str, settings: EnvConfig | None = None) -> list[Finding]:
    """Creates an environment, plays a few short episodes, and checks what training needs."""
    # `module:Id` imports the module first. Checks have a fixed order; a fault may end them early.
    settings = settings or EnvConfig()
    environment: Any = make_environment(env_id, settings)
    space, spec = environment.action_space, environment.spec
    keys = "no goals: only hindsight needs them"
    if hasattr(environment.observation_space, "spaces"):
        keys = ", ".join(GOAL_KEYS)
        if more := dropped(environment):
            keys += f"; not learned from: {few(more)}"
    bounded = Finding(f"{space}", name="actions")
    try:
        action_bounds(env_id, environment)
    except MusicError as error:
        cure = "use a Box of one axis with finite bounds, such as -1 and 1"
        bounded = Finding(str(error), cure, name="actions")
    cure = "register it with max_episode_steps, or give --env.max-episode-steps"
    long = Finding("not registered", cure, name="episode length")
    if spec and spec.max_episode_steps:
        long = Finding(f"{spec.max_episode_steps} steps", name="episode length")
    findings = [Finding(keys, name="goal keys"), bounded, long]
    if all(finding.ok for finding in findings):
        with contextlib.ExitStack() as stack:
            stage = functools.cache(lambda: stack.enter_context(Rehearsal(env_id, settings)))
            findings += _played(env_id, environment, settings, stage)
    environment.close()
    return findings


def _played(
    env_id: str, environment: Any, settings: EnvConfig, stage: Callable[[], Rehearsal]
) -> list[Finding]:
    """Plays an episode of random actions and checks it."""
    space, random = environment.action_space, np.random.default_rng(0)
    try:
        observation, _ = environment.reset(seed=0)
        first = copy.deepcopy(observation)
        played = Played(env_id, environment, settings, stage, [observation], [first], [], [])
        for _ in range(min(LONGEST, environment.spec.max_episode_steps)):
            action = random.uniform(space.low, space.high).astype(space.dtype)
            with np.errstate(all="ignore"):
                result = environment.step(action)
            observation, reward, terminated, truncated, info = as_ended(result)
            played.returned.append(observation)
            played.observations.append(copy.deepcopy(observation))
            played.rewards.append(copy.deepcopy(reward))
            played.infos.append(copy.deepcopy(info))
            if terminated or truncated:
                break
    except FROM_USERS as error:
        cure = "let reset(seed=...) and step(action) run"
        if names := _options_needed(environment):
            cure = f"nothing passes options: let reset run without {few(names)}, by a default value"
        return [Finding(one_line(error), cure, name="episode")]
    return _alone(env_id, settings) or _checked(played)


def _checked(played: Played) -> list[Finding]:
    """Returns the results of all checks of an episode, and what the columns mean."""
    findings = []
    for name, check in CHECKS.items():
        if not played.has_goals and name not in (*_WITHOUT_GOALS, *worlds.ROWS):
            continue
        try:
            finding = check(played)
        except FROM_USERS as error:
            finding = Finding(one_line(error), "make this run without an exception")
        if finding.detail:  # it concerns this environment
            findings.append(dataclasses.replace(finding, name=name))
        if name in _BASIC and not finding.ok:
            return findings
    return [*findings, *_columns(played)]


def _options_needed(environment: Any) -> list[str]:
    """Returns which options `reset` reads, if it fails without."""
    options = Asked({})
    with contextlib.suppress(*FROM_USERS):
        environment.reset(seed=0)
        return []
    with contextlib.suppress(*FROM_USERS):
        environment.reset(seed=0, options=options)
    return [f"options[{name!r}]" for name in options.names]


def _alone(env_id: str, settings: EnvConfig) -> list[Finding]:
    """Returns a finding if a process takes one such environment alone, as some simulators do."""
    try:
        with contextlib.closing(make_environment(env_id, settings)) as other:
            other.reset(seed=0)
    except FROM_USERS as error:
        detail = f"a second one beside it fails, so nothing more was checked: {one_line(error)}"
        cure = "train with --workers 1 --rollouts 1; families of tasks need one that bears others"
        return [Finding(detail, cure, warning=True, name="copies")]
    return []


def observations(played: Played) -> Finding:
    """Checks that observations have the declared shapes and types and are finite."""
    space = played.environment.observation_space
    for key in GOAL_KEYS if played.has_goals else ("observation",):
        shape = (space[key] if played.has_goals else space).shape
        for step, observation in enumerate(played.observations):
            value = np.asarray(observation[key] if played.has_goals else observation)
            where = f"{key} at step {step}"
            if value.shape != shape:
                cure = f"return the declared shape {shape}"
                return Finding(f"{where} has shape {value.shape}", cure)
            if key == "observation" and not np.issubdtype(value.dtype, np.floating):
                cure = "return floating point numbers"
                return Finding(f"{where} is {value.dtype}", cure, warning=True)
            if not np.isfinite(value).all():
                return Finding(f"{where} is not finite", "return finite numbers")
    return Finding(f"finite, of the declared shapes, {len(played.rewards)} steps")


def rewards(played: Played) -> Finding:
    """Checks that rewards are finite numbers, and that `info` tells success as a truth value."""
    for step, (found, info) in enumerate(zip(played.rewards, played.infos, strict=True), start=1):
        if not isinstance(info, Mapping):
            given = f"step {step}: info: expected a dict, got {info!r:.80}"
            return Finding(given, "return a dict as info")
        try:
            usable = np.isfinite(number("reward", found))
        except BadObservation as error:
            return Finding(f"step {step}: {error}", "return a number as the reward of a step")
        if not usable:
            return Finding(f"step {step}: {found}", "return finite rewards")
        try:
            succeeded(info)
        except BadObservation as error:
            return Finding(f"step {step}: {error}", "return a truth value as success")
    return Finding("finite")


def fresh_arrays(played: Played) -> Finding:
    """Checks that a returned observation does not change later."""
    pairs = zip(played.returned, played.observations, strict=True)
    for step, (returned, copied) in enumerate(pairs):
        keys = GOAL_KEYS if played.has_goals else (None,)
        for key in keys:
            values = (one if key is None else one[key] for one in (returned, copied))
            now, then = (np.asarray(value, np.float64) for value in values)  # also of objects
            if not np.array_equal(now, then, equal_nan=True):
                found = f"{key or 'observation'} of step {step} changed when later steps were taken"
                cure = "return copies; training makes its own, but other programs may not"
                return Finding(found, cure, warning=True)
    return Finding("arrays once returned do not change")


def constant_goal(played: Played) -> Finding:
    """Checks that the goal stays the same within the episode."""
    goals = np.stack([observation["desired_goal"] for observation in played.observations])
    changed = (goals != goals[0]).any(axis=1)
    if changed.any():
        return Finding(f"it changes at step {int(np.argmax(changed))}", STAY)
    return Finding("the desired goal stays within an episode")


def goal_met(played: Played) -> Finding:
    """Checks that a reached goal stays in place, and whether the episode ends there."""
    found = _rehearsed(played, Rehearsal.goal_met)
    if found.cure:
        return found
    return Finding(f"{found.detail}; {_rehearsed(played, Rehearsal.ends).detail}")


def _rehearsed(played: Played, look_at: Callable[[Rehearsal], Finding]) -> Finding:
    """Returns a finding of a rehearsal."""
    stage = played.rehearsal()
    try:
        return look_at(stage)
    except EnvironmentFault as fault:  # another check reports it
        return Finding(" ".join(f"cannot tell: {fault}".splitlines()))


def batched_reward(played: Played) -> Finding:
    """Compares the rewards of many pairs of goals at once with those of single pairs."""
    if not described(played.env_id, World(), played.environment).batched_reward:
        return Finding("known to be wrong here, goals are rewarded one by one")
    asked, _ = asked_of_info(played.environment, played.infos[-1])
    if asked:
        return Finding(f"it reads {few(asked)} of info, so goals are rewarded one by one")
    achieved, desired = played.goals()
    desired = np.concatenate([desired, achieved[::-1]])
    achieved = np.concatenate([achieved, achieved])
    pairs = zip(achieved, desired, strict=True)
    single = np.array([played.reward_of(*pair, {}) for pair in pairs])
    many = np.asarray(played.environment.unwrapped.compute_reward(achieved, desired, {}))
    if many.shape != single.shape:
        return Finding(f"{len(single)} goals gave shape {many.shape}", MANY_AT_ONCE)
    wrong = int(np.sum(~(np.abs(many - single) <= _TOLERANCE)))
    if wrong:
        return Finding(f"{wrong} of {len(single)} rewards differ from single ones", MANY_AT_ONCE)
    return Finding(f"{len(single)} goals at once give the rewards of single ones")


def success(played: Played) -> Finding:
    """Checks that `info` reports success, which evaluations count."""
    if any("is_success" in info or "success" in info for info in played.infos):
        return Finding("info tells it")
    return dataclasses.replace(_rehearsed(played, Rehearsal.success), warning=False)


def corners(played: Played) -> Finding:
    """Takes steps at the bounds of actions."""
    with _hushed(played.env_id, played.settings) as envs:
        for ends in _CORNERS:
            envs.reset([0], [0])
            action = np.resize(np.array(ends, np.float32), (1, envs.spec.action_dim))
            fault = envs.step(action, [0]).faults[0]
            if fault is not None:
                cure = "take every action of the action space, its bounds included"
                space = played.environment.action_space
                where = to_bounds(action[0], (space.low, space.high))
                return Finding(f"at {where}: {fault}", cure)
    return Finding("actions at their bounds are accepted")


def reset(played: Played) -> Finding:
    """Checks that a seed repeats its episode, else whether it does in a new environment."""
    found = _differs(played.env_id, played.settings)
    if found is None:
        return _rehearsed(played, worlds.copies)
    what = "rewards" if found.of_rewards else "episodes"
    detail = f"with the same seed, {what} differ from step {found.step} on"
    if statistics := statistics_of(played.environment):
        return Finding(f"{detail}{statistics[0]}", statistics[1])
    anew = dataclasses.replace(played.settings, remake=True)
    if _differs(played.env_id, anew) is None:
        cure = "--env.remake True makes a new one for each episode, which repeats itself"
        return Finding(detail, cure)
    cure = (
        "restore everything in reset(seed=...), draw only from self.np_random, and share nothing "
        "with other environments of the process"
    )
    return Finding(detail, cure)


def _differs(env_id: str, settings: EnvConfig) -> Difference | None:
    """Returns where two episodes of one seed differ; None if they do not."""
    with _hushed(env_id, settings, 2) as envs:
        return first_difference(envs)


@contextlib.contextmanager
def _hushed(env_id: str, settings: EnvConfig, count: int = 1) -> Iterator[LockstepEnvs]:
    """Yields environments whose faults only findings report."""
    with contextlib.closing(LockstepEnvs(env_id, count, settings)) as envs:
        envs.hush()
        yield envs


def settable_goal(played: Played) -> Finding:
    """Checks whether the goal of an episode can be set."""
    if can_set_goal(played.environment.unwrapped):
        return Finding("the attribute `goal` replaces the goal")
    return Finding(
        "no attribute `goal` that can be set: hidden goals (--goals zero) are zeros in what is "
        "observed"
    )


def inputs(played: Played) -> Finding:
    """Checks whether `normalizer.input_clip` cuts off observations."""
    return _rehearsed(played, lambda stage: stage.inputs(NormalizerConfig.input_clip))


def _columns(played: Played) -> list[Finding]:
    """Returns what the columns mean, the world to declare, and commands to train with it."""
    try:
        with _hushed(played.env_id, played.settings) as envs:
            found = look(envs)
    except FROM_USERS as error:
        cure = f"let episodes of more than {SHORT} steps run with any action in its bounds"
        return [Finding(one_line(error), cure, name="columns")]
    kinds = set(found.kinds)
    cure = "let every step run with any action in its bounds" if found.fault else ""
    if kinds and not kinds & {Kind.ROBOT, Kind.SWING, Kind.NOISE}:
        cure = "observe what the actions move, as numbers that change with each step"
        if Kind.ROUNDED in kinds:
            cure = "subtract a constant, such as a place near them, from what changes too little"
    info, length = envs.info, envs.spec.max_episode_steps
    paid = _pays(played, info.reward_bounds) if played.has_goals else (None, True, None)
    task = CheckedEnv(played.env_id, played.settings, info, length, *paid)._replace(
        rewarded=_rewarded(played), family=envs.is_family and not played.has_goals
    )
    findings = [
        Finding(columns_text(found), cure, name="columns"),
        Finding(world_text(found, info, played.env_id), name="world"),
    ]
    return findings if cure else [*findings, Finding(next_lines(task, found), name="next")]


def _rewarded(played: Played) -> bool:
    """Whether rewards differ, or an early end costs some."""
    numbers = np.array([np.reshape(reward, -1)[0] for reward in played.rewards], np.float64)
    early = len(numbers) < min(LONGEST, played.environment.spec.max_episode_steps)
    return bool(np.ptp(numbers) > 0.0 or (early and numbers.any()))


def _pays(
    played: Played, bounds: tuple[float, float]
) -> tuple[str, bool, tuple[float, float] | None]:
    """Describes the rewards; returns whether training knows their bounds, and measured ones."""
    low, high = bounds
    if all(map(math.isfinite, bounds)):
        return f"rewards from {low:g} to {high:g} (known)", True, None
    with contextlib.suppress(MusicError):
        if found := played.rehearsal().reward_bounds():
            low, high = found[0] + 0.0, found[1] + 0.0  # without a minus sign of zero
            return f"rewards of {low:g} and {high:g} (measured)", True, (low, high)
    numbers = [float(np.asarray(one).reshape(-1)[0]) for one in played.rewards]
    return f"rewards seen from {min(numbers):.3g} to {max(numbers):.3g}", False, None


CHECKS: Mapping[str, Callable[[Played], Finding]] = {
    "observations": observations,
    "rewards": rewards,
    "stages": functools.partial(_rehearsed, look_at=worlds.stages),
    "fresh arrays": fresh_arrays,
    "constant goal": constant_goal,
    "goal met": goal_met,
    "goal apart": functools.partial(_rehearsed, look_at=Rehearsal.goal_apart),
    "reward": functools.partial(_rehearsed, look_at=Rehearsal.rewards),
    "other goal": functools.partial(_rehearsed, look_at=Rehearsal.other_goal),
    "batched reward": batched_reward,
    "success": success,
    "corners": corners,
    "reset": reset,
    "settable goal": settable_goal,
    "goal set": functools.partial(_rehearsed, look_at=Rehearsal.goal_set),
    "inputs": inputs,
    **{name: functools.partial(_rehearsed, look_at=row) for name, row in worlds.ROWS.items()},
}
"""Checks of an episode by name, in the order in which they are shown."""
_BASIC = "observations", "rewards", "stages"  # all other checks need them
_WITHOUT_GOALS = *_BASIC, "fresh arrays", "corners", "reset", "inputs"
