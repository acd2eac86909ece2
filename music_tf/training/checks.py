"""The list of checks of an environment, which `train` and `check-env` share.

A new check is a function of a trial and a row here.
"""

import contextlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from music_tf.config.names import KNOWN, is_one_of
from music_tf.config.settings import Config
from music_tf.errors import EnvironmentFault, Finding, MusicError, UsageError
from music_tf.replay.hindsight import relabel_probability
from music_tf.training import goal_checks, observation_checks, world_checks
from music_tf.training.environment_trial import EnvironmentTrial


class Check(NamedTuple):
    """A row of the list."""

    name: str
    find: Callable[[EnvironmentTrial], Finding]
    """What is found; a finding without text does not concern the environment."""
    concerns: str = ""
    """Which runs are refused or warned by it, see `concerns_of`; empty: none, since training
    notices it as soon as it happens."""
    goals: bool = False
    """Whether it is about goals, which not all environments have."""


CHECKS: Sequence[Check] = (
    Check("stages", world_checks.stages, "foreign"),
    Check("episode", observation_checks.episode),
    Check("split", world_checks.split, "split"),
    Check("fresh arrays", observation_checks.fresh_arrays),
    Check("digits", goal_checks.digits, "goals", goals=True),
    Check("constant goal", goal_checks.goal_stays, "pays", goals=True),
    Check("reward", goal_checks.reward, "pays", goals=True),
    Check("other goal", goal_checks.other_goal, "relabels rewards", goals=True),
    Check("batched reward", goal_checks.batched_reward, "relabels rewards", goals=True),
    Check("success", goal_checks.success, "goals", goals=True),
    Check("inputs", observation_checks.inputs, "inputs"),
    Check("goal apart", goal_checks.goal_apart, "relabels", goals=True),
    Check("place", goal_checks.place, "reaches", goals=True),
    Check("goal set", goal_checks.goal_set, "relabels", goals=True),
    Check("ends", goal_checks.ends, "relabels", goals=True),
    Check("corners", world_checks.corners),
    Check("reset", world_checks.reset),
    Check("copies", world_checks.copies, "foreign"),
    Check("bounds", observation_checks.bounds, "foreign"),
    Check("units", observation_checks.units, "foreign"),
    Check("last step", observation_checks.last_step, "foreign"),
    Check("render", observation_checks.render, "foreign"),
    Check("time limit", world_checks.time_limit, "foreign"),
    Check("family", world_checks.family, "foreign tasks"),
)
"""All checks, in the order in which they are made and shown."""


def concerns_of(config: Config) -> set[str]:
    """Returns what concerns a run: the words of `Check.concerns`."""
    sees_goals, foreign = config.goals == "environment", not is_one_of(config.env_id, KNOWN)
    pays = sees_goals and "task" in config.rewards
    relabels = sees_goals and relabel_probability(config.replay) > 0.0
    splits = any(term.needs_split for term in config.rewards.values())
    concerns = {
        "pays": pays,
        "relabels": relabels,
        "relabels rewards": pays and relabels,
        "reaches": config.replay.reach > 0.0,
        "goals": pays or relabels,
        "foreign": foreign,
        "inputs": foreign or pays or relabels,
        "foreign tasks": foreign and config.agent.inference is not None,
        "split": splits and (foreign or bool(config.world.agent)),
    }
    return {name for name, holds in concerns.items() if holds}


class TrialResult(NamedTuple):
    """Results of a trial that lets the run begin."""

    warnings: Sequence[str] = ()
    reward_bounds: tuple[float, float] | None = None
    """Lowest and highest reward of a step, if the run needs them and has no setting for them."""


def try_environment(config: Config) -> TrialResult:
    """Makes the checks that concern a run, before it begins."""
    # If it cannot be made or played, training reports that, unless the run needs bounds of rewards:
    # without them it would be refused for another reason.
    concerns = concerns_of(config)
    checks = [check for check in CHECKS if check.concerns in concerns]
    if not checks:
        return TrialResult()
    findings: list[Finding] = []
    bounds, fault = None, None
    if asks := "pays" in concerns and not config.world.reward:
        free = not all(map(math.isfinite, config.rewards["task"].clip))
        clips = free and config.agent.return_clip in ("auto", "paid")
        asks = clips or config.replay.reach > 0.0  # whose rows are paid these bounds
    settings = config.env, config.world, config.normalizer, config.goals == "environment"
    with streams_kept():
        try:
            with EnvironmentTrial(config.env_id, *settings) as trial:
                for check in checks:
                    if trial.has_goals or not check.goals:
                        findings.append(check.find(trial))
                bounds = trial.reward_bounds() if asks and trial.has_goals else None
        except MusicError as error:  # earlier findings are kept
            fault = error
    texts = []
    for finding in findings:
        if finding.cure:
            texts.append(f"{config.env_id}: {finding.detail}\ncure: {finding.cure}")
        if not finding.ok:
            raise EnvironmentFault(f"{texts[-1]}\nmusic-tf check-env {config.env_id} says more")
    needed = "foreign" in concerns and (asks or config.env.stages)
    if fault is not None and (needed or isinstance(fault, UsageError)):
        raise fault
    return TrialResult(tuple(texts), bounds)


@contextlib.contextmanager
def streams_kept() -> Iterator[None]:
    """Restores the global random states of Python and numpy, which user code may draw from."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
