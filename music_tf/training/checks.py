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
from music_tf.errors import EnvironmentFault, Finding, MusicError
from music_tf.replay.hindsight import relabel_probability
from music_tf.training import goal_checks, observation_checks, world_checks
from music_tf.training.environment_trial import EnvironmentTrial


class Check(NamedTuple):
    """A row of the list."""

    name: str
    find: Callable[[EnvironmentTrial], Finding]
    """What is found; a finding without text does not concern the environment."""
    concerns: Callable[[Config], bool]
    """Whether a run needs it: it is then refused, or warned, by what is found."""
    goals: bool = False
    """Whether it is about goals, which not all environments have."""


def _in_training(config: Config) -> bool:
    """Leaves to training what it notices itself, as soon as it happens."""
    del config
    return False


def _pays(config: Config) -> bool:
    return config.goals == "environment" and "task" in config.rewards


def _relabels(config: Config) -> bool:
    return config.goals == "environment" and relabel_probability(config.replay) > 0.0


def _pays_or_relabels(config: Config) -> bool:
    return _pays(config) or _relabels(config)


def _relabels_rewards(config: Config) -> bool:
    return _pays(config) and _relabels(config)


def _is_foreign(config: Config) -> bool:
    return not is_one_of(config.env_id, KNOWN)


def _sees_foreign_numbers(config: Config) -> bool:
    return _is_foreign(config) or _pays_or_relabels(config)


def _visits_foreign_tasks(config: Config) -> bool:
    return _is_foreign(config) and config.agent.inference is not None


def _uses_own_split(config: Config) -> bool:
    needed = any(term.needs_split for term in config.rewards.values())
    return needed and (_is_foreign(config) or bool(config.world.agent))


CHECKS: Sequence[Check] = (
    Check("observations", observation_checks.observations, _in_training),
    Check("rewards", observation_checks.rewards, _in_training),
    Check("stages", world_checks.stages, _is_foreign),
    Check("split", world_checks.split, _uses_own_split),
    Check("fresh arrays", observation_checks.fresh_arrays, _in_training),
    Check("digits", goal_checks.digits, _pays_or_relabels, goals=True),
    Check("constant goal", goal_checks.goal_stays, _pays, goals=True),
    Check("reward", goal_checks.reward, _pays, goals=True),
    Check("other goal", goal_checks.other_goal, _relabels_rewards, goals=True),
    Check("batched reward", goal_checks.batched_reward, _relabels_rewards, goals=True),
    Check("success", goal_checks.success, _pays_or_relabels, goals=True),
    Check("inputs", observation_checks.inputs, _sees_foreign_numbers),
    Check("goal apart", goal_checks.goal_apart, _relabels, goals=True),
    Check("goal set", goal_checks.goal_set, _relabels, goals=True),
    Check("ends", goal_checks.ends, _relabels, goals=True),
    Check("corners", world_checks.corners, _in_training),
    Check("reset", world_checks.reset, _in_training),
    Check("copies", world_checks.copies, _is_foreign),
    Check("bounds", observation_checks.bounds, _is_foreign),
    Check("units", observation_checks.units, _is_foreign),
    Check("last step", observation_checks.last_step, _is_foreign),
    Check("render", observation_checks.render, _is_foreign),
    Check("time limit", world_checks.time_limit, _is_foreign),
    Check("family", world_checks.family, _visits_foreign_tasks),
)
"""All checks, in the order in which they are made and shown."""


class TrialResult(NamedTuple):
    """Results of a trial that lets the run begin."""

    warnings: Sequence[str] = ()
    reward_bounds: tuple[float, float] | None = None
    """Lowest and highest reward of a step, if the run needs them and has no setting for them."""


def try_environment(config: Config) -> TrialResult:
    """Makes the checks that concern a run, before it begins.

    If the environment cannot be made or cannot play, training reports that later, unless the run
    needs bounds of rewards: without them it would be refused for another reason.
    """
    checks = [check for check in CHECKS if check.concerns(config)]
    if not checks:
        return TrialResult()
    findings: list[Finding] = []
    bounds, fault, asks = None, None, _needs_bounds(config)
    shows_goals = config.goals == "environment"
    with _streams_kept():
        try:
            with EnvironmentTrial(
                config.env_id, config.env, config.world, config.normalizer, shows_goals
            ) as trial:
                made = (check for check in checks if trial.has_goals or not check.goals)
                for check in made:
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
    if fault is not None and _is_foreign(config) and (asks or config.env.stages):
        raise fault
    return TrialResult(tuple(texts), bounds)


def _needs_bounds(config: Config) -> bool:
    """Whether `return_clip=auto` needs bounds of the task reward that no setting gives."""
    if not _pays(config) or config.agent.return_clip != "auto" or config.world.reward:
        return False
    return not all(map(math.isfinite, config.rewards["task"].clip))


@contextlib.contextmanager
def _streams_kept() -> Iterator[None]:
    """Restores the global random states of Python and numpy, which user code may draw from."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
