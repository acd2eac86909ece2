"""A warm start from another run: read before the new run begins, taken over by its trainer."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from music_tf.config.agents import DdpgConfig
from music_tf.config.fields import show_option, show_value
from music_tf.config.settings import Config
from music_tf.config.warm_start import AGENT_PARTS, WarmStart, parts_of
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.files import as_object
from music_tf.hints import hints_of
from music_tf.reading.stored import read_record, read_run
from music_tf.storage import warm_start
from music_tf.storage.checkpoint import CHECKPOINTS
from music_tf.storage.loading import policy_of
from music_tf.storage.policy import SavedPolicy
from music_tf.storage.run_paths import AGENTS, find_source
from music_tf.training.evaluation import Evaluation
from music_tf.types import SPACES, Array, refusal

if TYPE_CHECKING:  # TensorFlow
    from music_tf.training.trainer import Trainer

_TRIED_TOGETHER = 8
_OF_INPUTS = ("normalizer.running", "normalizer.clip", "normalizer.input_clip")
_OF_STATISTICS = ("normalizer.epsilon",)
_OF_OUTPUTS = ("agent.deviation",)
"""Settings that determine what networks compute, whatever their shapes."""


def read_start(config: Config, start: WarmStart) -> tuple[Config, warm_start.LoadedWarmStart]:
    """Returns a new run's configuration with the skills of its source, and parts of that."""
    # a folder of the user's with that name is not meant by a recipe
    source = AGENTS / start.path if start.by_default else find_source(start.path)
    if not start.parts:
        parts = parts_of([type(config.agent), *map(type, config.rewards.values())])
        text = f"--init-from: say which parts to take over, any of {','.join(parts)}"
        raise UsageError(f"{text}\nfor example: --parts actor,normalizer")
    config = with_skills_of(config, start, source)
    otherwise = "; from random weights: --init-from none" if start.by_default else ""
    with _ending(otherwise):
        return config, read_parts(config, source, start.parts)._replace(otherwise=otherwise)


def read_parts(config: Config, source: Path, parts: Sequence[str]) -> warm_start.LoadedWarmStart:
    """Reads parts of a source whose networks mean the same in a run of this configuration."""
    _check_meaning(config, source, parts)
    return warm_start.load_warm_start(config, source, parts)


def take_over(trainer: "Trainer", loaded: warm_start.LoadedWarmStart) -> None:
    """Starts a trainer from parts of another run, or refuses what does not fit."""
    initial = {name: a for name, a in trainer.shared().items() if not name.startswith("adam_")}
    inputs, declared = trainer.meta()["inputs"], trainer.envs.declared
    target = warm_start.WarmStartTarget(initial, inputs, declared, trainer.config)
    with _ending(loaded.otherwise):
        arrays = warm_start.initial_arrays(loaded, target)
        try:
            trainer.start_from(arrays)
        except ValueError as error:
            raise UsageError(f"--init-from: {loaded.source}: {error}") from error


@contextlib.contextmanager
def _ending(otherwise: str) -> Iterator[None]:
    """Adds a text to the end of a refusal."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{error}{otherwise}") from error


def _check_meaning(config: Config, source: Path, parts: Sequence[str]) -> None:
    """Refuses networks that fit, but whose inputs or outputs would mean something else."""
    # as they are stored: a source of another version may have settings that this one cannot read
    try:
        stored = read_record(_run_of(source), "config")["config"]
    except UsageError:  # missing or damaged
        return
    samples = not as_object(stored.get("agent")).keys() <= hints_of(DdpgConfig).keys()
    samples = samples and hasattr(config.agent, "deviation")  # else they do not fit
    settings: tuple[str, ...] = _OF_INPUTS if {*AGENT_PARTS} & {*parts} else ()
    settings += _OF_STATISTICS if settings and "normalizer" in parts else ()
    settings += _OF_OUTPUTS if samples and "actor" in parts else ()  # others have no deviation
    missing, present = [], []
    for name in settings:
        group, _, key = name.partition(".")
        now, earlier = getattr(config, group), as_object(stored.get(group))
        before = earlier.get(key, getattr(type(now)(), key, None))
        if before != getattr(now, key, None):
            missing.append(f"{show_option(name)} {warm_start.printable(show_value(before))}")
            present.append(f"{show_option(name)} {show_value(getattr(now, key, None))}")
    if missing:
        raise UsageError(
            f"--init-from: {source}: its networks would act differently here, under "
            f"{' '.join(present)}\nadd: {' '.join(missing)}"
        )


def _run_of(source: Path) -> Path:
    """Returns the run of checkpoints; a folder of weights is its own."""
    for folder in (source, source.parent):
        if folder.name == CHECKPOINTS:
            return folder.parent
    return source


def with_skills_of(config: Config, start: WarmStart, source: Path) -> Config:
    """Returns the configuration of a new run with skills as its source has them."""
    if not start.same_skills and start.best_of is None:
        return config
    try:
        stored = read_run(_run_of(source).resolve(), config.env_id)
    except UsageError:  # a folder of weights may lack a configuration
        if start.best_of is not None:
            raise
        return config
    before, policy = stored.config, None
    if start.best_of is not None or before.incremental.on:  # some may not be learned yet
        policy = policy_of(_run_of(source), stored)
    one_hot = {before.condition.kind, config.condition.kind} == {"one_hot"}
    if start.same_skills and one_hot and before.condition_size > 1:
        skills = policy.skills if policy else before.condition_size
        config = dataclasses.replace(config, skills=skills)
    if policy is None or start.best_of is None:
        return config
    best, returns = best_skill(config, policy, start)
    shown = "  ".join(f"{value:.4g}" for value in returns)
    sys.stdout.write(f"skill {best} is best at the task; mean returns: {shown}\n")
    return dataclasses.replace(config, pinned_skill=best)


def best_skill(config: Config, policy: SavedPolicy, start: WarmStart) -> tuple[int, list[float]]:
    """Returns the skill of a source with the best return at the task, and all mean returns."""
    source, episodes = start.path[:120], start.best_of or 1
    skilled = policy.condition == "one_hot" and policy.skills > 1
    if not skilled or policy.skills != config.condition_size:
        cure = f"first: music-tf train sac_diayn --env-id {config.env_id}"
        if skilled:
            cure = f"for example: --skills {policy.skills}, or --pinned-skill 0 to try none"
        raise UsageError(
            f"--best-of: expected a run with {config.condition_size} skills, {source} is "
            f"{policy.recipe} with {policy.skills} as {policy.condition}\n{cure}"
        )
    count = min(episodes, _TRIED_TOGETHER)
    envs = LockstepEnvs(config.env_id, count, config.env, world=config.world)
    with contextlib.closing(envs):
        if text := refusal(policy.declared, envs.declared, f"--best-of {source}", SPACES):
            raise UsageError(text)

        def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
            del noise
            seen = np.zeros_like(goal) if policy.zero_goals else goal
            return policy.snapshot.act(observation, seen, skill, None)

        evaluation = Evaluation(envs, config, Communicator(alone=True))
        returns = [
            float(evaluation.play(act, episodes, skill).reward.sum(axis=1).mean())
            for skill in range(policy.skills)
        ]
    return int(np.argmax(returns)), returns
