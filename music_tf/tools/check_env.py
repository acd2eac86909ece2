"""Checks of an environment, each with its result and a cure, and the world to train with."""

import contextlib
import dataclasses
import math
from typing import Any

import numpy as np

from music_tf.config.names import few
from music_tf.config.settings import EnvConfig
from music_tf.envs.actions import action_bounds
from music_tf.envs.columns import SHORT, PlayResult, look
from music_tf.envs.kinds import Kind
from music_tf.envs.making import GOAL_KEYS, dropped, make_environment
from music_tf.envs.member import number, one_line
from music_tf.errors import FROM_USERS, EnvironmentFault, Finding, MusicError
from music_tf.tools.proposals import CheckedEnv, columns_text, next_lines, world_text
from music_tf.training.checks import CHECKS, Check
from music_tf.training.environment_trial import EnvironmentTrial


def check_environment(env_id: str, settings: EnvConfig | None = None) -> list[Finding]:
    """Creates an environment, plays a few short episodes, and checks what training needs."""
    # `module:Id` imports the module first. Checks have a fixed order; a fault may end them early.
    settings = settings or EnvConfig()
    with contextlib.closing(make_environment(env_id, settings)) as environment:
        findings = _declared(env_id, environment)
        length = environment.spec.max_episode_steps if environment.spec else None
    if length is None or not all(finding.ok for finding in findings):
        return findings
    with contextlib.ExitStack() as stack:
        try:
            trial = stack.enter_context(EnvironmentTrial(env_id, settings))
        except FROM_USERS as error:
            cure = "let reset(seed=...) and step(action) run"
            return [*findings, Finding(one_line(error), cure, name="episode")]
        for check in CHECKS:
            finding = _result(check, trial)
            if finding.detail:  # it concerns this environment
                findings.append(finding)
            if check.name in ("episode", "stages") and not finding.ok:  # later ones need them
                return findings
        try:
            played = look(trial.envs)
        except FROM_USERS as error:
            cure = f"let episodes of more than {SHORT} steps run with any action in its bounds"
            return [*findings, Finding(one_line(error), cure, name="columns")]
        columns = _columns(played)
        world = Finding(world_text(played, trial.envs.info, env_id), name="world")
        task = _task(trial, settings, length)
    findings += [columns, world]
    if columns.ok:  # another environment is made to try what is proposed
        findings.append(Finding(next_lines(task, played), name="next"))
    return findings


def _declared(env_id: str, environment: Any) -> list[Finding]:
    keys = "no goals: only hindsight needs them"
    if hasattr(environment.observation_space, "spaces"):
        keys = ", ".join(GOAL_KEYS)
        if more := dropped(environment):
            keys += f"; not learned from: {few(more)}"
    actions = Finding(f"{environment.action_space}", name="actions")
    try:
        action_bounds(env_id, environment)
    except MusicError as error:
        cure = "use a Box of one axis with finite bounds, such as -1 and 1"
        actions = Finding(str(error), cure, name="actions")
    cure = "register it with max_episode_steps, or give --env.max-episode-steps"
    steps = Finding("not registered", cure, name="episode length")
    if environment.spec and environment.spec.max_episode_steps:
        steps = Finding(f"{environment.spec.max_episode_steps} steps", name="episode length")
    return [Finding(keys, name="goal keys"), actions, steps]


def _result(check: Check, trial: EnvironmentTrial) -> Finding:
    finding = Finding("")
    try:
        if trial.has_goals or not check.goals:
            finding = check.find(trial)
    except EnvironmentFault as fault:  # another check reports it
        finding = Finding(f"cannot tell: {one_line(fault)}")
    except FROM_USERS as error:
        finding = Finding(one_line(error), "make this run without an exception")
    return dataclasses.replace(finding, name=check.name)


def _columns(played: PlayResult) -> Finding:
    kinds = set(played.kinds)
    cure = "let every step run with any action in its bounds" if played.fault else ""
    if kinds and not kinds & {Kind.ROBOT, Kind.SWING, Kind.NOISE}:
        cure = "observe what the actions move, as numbers that change with each step"
        if Kind.ROUNDED in kinds:
            cure = "subtract a constant, such as a place near them, from what changes too little"
    return Finding(columns_text(played), cure, name="columns")


def _task(trial: EnvironmentTrial, settings: EnvConfig, length: int) -> CheckedEnv:
    rewards = np.array([number("reward", step.reward) for step in trial.raw[1:]])
    early = len(rewards) < trial.envs.spec.max_episode_steps
    task = CheckedEnv(
        trial.env_id,
        settings,
        trial.envs.info,
        length,
        pays=None,
        rewarded=bool(np.ptp(rewards) > 0.0 or (early and rewards.any())),
        family=trial.envs.is_family and not trial.has_goals,
    )
    if not trial.has_goals:
        return task
    low, high = trial.envs.info.reward_bounds
    if math.isfinite(low) and math.isfinite(high):
        return task._replace(pays=f"rewards from {low:g} to {high:g} (known)")
    with contextlib.suppress(MusicError):
        if measured := trial.reward_bounds():
            low, high = measured[0] + 0.0, measured[1] + 0.0  # without a minus sign of zero
            text = f"rewards of {low:g} and {high:g} (measured)"
            return task._replace(pays=text, reward=(low, high))
    text = f"rewards seen from {min(rewards):.3g} to {max(rewards):.3g}"
    return task._replace(pays=text, bounded=False)
