"""Tries a warm start from another run before anything of the new run is written."""

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from music_tf.config.agents import DdpgConfig
from music_tf.config.fields import show_option, show_value
from music_tf.config.settings import Config, NormalizerConfig
from music_tf.config.warm_start import AGENT_PARTS
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.reading.stored import config_to_json, flatten, read_record, read_run
from music_tf.storage.checkpoint import CHECKPOINTS
from music_tf.storage.loading import load_policy_for
from music_tf.storage.run_paths import find_agent, find_source
from music_tf.storage.warm_start import (
    LoadedWarmStart,
    WarmStartTarget,
    load_warm_start,
    printable,
)
from music_tf.training.build import build_trainer
from music_tf.training.evaluation import Evaluation
from music_tf.types import ACTIONS, Array, refusal

_TRIED_TOGETHER = 8
_OF_INPUTS = ("normalizer.running", "normalizer.clip", "normalizer.input_clip")
_OF_STATISTICS = ("normalizer.epsilon",)
_OF_OUTPUTS = ("agent.deviation",)
"""Settings that determine what networks compute, whatever their shapes."""


def try_warm_start(
    config: Config, source: Path, parts: Sequence[str], otherwise: str = ""
) -> LoadedWarmStart:
    """Returns the warm start of a run of this configuration, tried on a few environments.

    `otherwise` ends the refusal of a source that does not fit.
    """
    tried = config
    if config.agent.inference is None:  # else the check depends on all workers and episodes
        replay = dataclasses.replace(config.replay, capacity=1)
        drawn = dataclasses.replace(config.condition, sampler="random")  # tiles need more episodes
        tried = dataclasses.replace(config, workers=1, rollouts=1, replay=replay, condition=drawn)
    trainer = build_trainer(tried, Communicator(alone=True))
    try:
        own = {n: array for n, array in trainer.shared().items() if not n.startswith("adam_")}
        target = WarmStartTarget(
            own,
            trainer.meta()["inputs"],
            trainer.envs.declared,
            tuple(config.rewards.values()),
            config.seen_condition,
            config.condition.kind,
            config.pinned_skill,
            config.agent.actor,
        )
        warm_start = load_warm_start(target, source, parts)
        _check_meaning(config, source, parts)
        try:
            trainer.start_from(warm_start.arrays)
        except ValueError as error:
            raise UsageError(f"--init-from: {source}: {error}") from error
    except UsageError as error:
        raise UsageError(f"{error}{otherwise}") from error
    finally:
        trainer.envs.close()
    return warm_start


def _check_meaning(config: Config, source: Path, parts: Sequence[str]) -> None:
    """Refuses networks that fit, but whose inputs or outputs would mean something else.

    Settings are compared as they are stored, since a source of another version may have others that
    this one cannot read. A folder of weights without a configuration is not checked.
    """
    run = source
    for folder in (source, source.parent):
        run = folder.parent if folder.name == CHECKPOINTS else run
    try:
        stored = read_record(run, "config")["config"]
    except UsageError:  # missing or damaged
        return
    usual = {"normalizer": NormalizerConfig(), "agent": type(config.agent)()}
    before = flatten(config_to_json(usual)) | flatten(stored)
    here = flatten(config_to_json(config))
    settings: tuple[str, ...] = _OF_INPUTS if {*AGENT_PARTS} & {*parts} else ()
    settings += _OF_STATISTICS if settings and "normalizer" in parts else ()
    deterministic = flatten(config_to_json({"agent": DdpgConfig()}))  # it has no deviation
    samples = any(name[:6] == "agent." and name not in deterministic for name in flatten(stored))
    settings += _OF_OUTPUTS if samples and "actor" in parts else ()
    other = [name for name in settings if before.get(name) != here.get(name)]
    if other:
        there = {name: printable(show_value(before.get(name))) for name in other}
        lines = [
            f"{show_option(name)}: the source has {there[name]}, this run "
            f"{show_value(here.get(name))}"
            for name in other
        ]
        add = " ".join(f"{show_option(name)} {there[name]}" for name in other)
        raise UsageError(
            f"--init-from: {source}: its networks would act differently here\n"
            + "\n".join((*lines, f"add: {add}"))
        )


def with_skills_of(config: Config, source: str) -> Config:
    """Returns the configuration of a new run with as many skills as `source` has learned.

    It is unchanged if `source` has one skill, has continuous conditions, or does not say.
    """
    before = None
    with contextlib.suppress(UsageError):  # a folder of weights may lack a configuration
        before = read_run(find_agent(source).resolve(), config.env_id).config
    kinds = {config.condition.kind, "one_hot" if before is None else before.condition.kind}
    if before is None or before.condition_size == 1 or kinds != {"one_hot"}:
        return config
    skills = before.condition_size
    if before.incremental.on:  # some skills may not be learned yet
        skills = load_policy_for(source, config.env_id).skills
    return dataclasses.replace(config, skills=skills)


def best_skill(
    config: Config, source: str, episodes: int, parts: Sequence[str] = ()
) -> tuple[int, list[float]]:
    """Returns the skill of `source` with the best return at the task, and all mean returns.

    Each skill plays the same evaluation episodes without exploration, under the environment, goals
    and rewards of the new run, whose configuration is given. A warm start from `parts`, if any, is
    tried before that takes its minutes.
    """
    policy = load_policy_for(source, config.env_id)
    known = f"{source[:120]} is {policy.recipe} with {policy.skills} as {policy.condition}"
    if policy.condition != "one_hot" or policy.skills == 1:
        raise UsageError(
            f"--best-of: expected a run with skills to try, {known}\n"
            f"first: music-tf train sac_diayn --env-id {config.env_id}"
        )
    if policy.skills != config.condition_size:
        raise UsageError(
            f"--best-of: expected a run with {config.condition_size} skills, {known}\n"
            f"for example: --skills {policy.skills}, or --pinned-skill 0 to try none"
        )
    count = min(episodes, _TRIED_TOGETHER)
    envs = LockstepEnvs(config.env_id, count, config.env, world=config.world)
    try:
        wanted = (policy.observation_dim, policy.action_dim)
        found = (envs.spec.observation_dim, envs.spec.action_dim)
        if wanted != found:
            raise UsageError(
                f"--best-of: {source[:120]} acts on {wanted[0]} columns with {wanted[1]} numbers, "
                f"{config.env_id} has {found[0]} and {found[1]}"
            )
        if text := refusal(policy.declared, envs.declared, f"--best-of {source[:120]}", ACTIONS):
            raise UsageError(text)
        if parts:
            pinned = dataclasses.replace(config, pinned_skill=0)
            try_warm_start(pinned, find_source(source), parts)

        def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
            del noise
            known = np.zeros_like(goal) if policy.zero_goals else goal
            return policy.snapshot.act(observation, known, skill, None)

        evaluation = Evaluation(envs, config, Communicator(alone=True))
        returns = [
            float(evaluation.play(act, episodes, skill).reward.sum(axis=1).mean())
            for skill in range(policy.skills)
        ]
    finally:
        envs.close()
    return int(np.argmax(returns)), returns
