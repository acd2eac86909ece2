"""Loads the policy of a run, and checks what its checkpoint must hold."""

import functools
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from music_tf.config.settings import Config
from music_tf.config.world import is_function
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.files import as_object
from music_tf.gate import Expected, Kind, MisfitError, declared_in, is_count
from music_tf.networks import acting
from music_tf.networks.belief import encoder_shapes
from music_tf.networks.embedding import PHI, Embedding
from music_tf.networks.reward_networks import Discriminator, discriminator_of, embedding_of
from music_tf.normalizer import COLUMNS, Normalizer
from music_tf.reading.stored import StoredRun, allowed_env_id, check_same_env, read_run
from music_tf.storage.checkpoint import StoredWeights, newest_weights, weights_of
from music_tf.storage.frozen_skills import worlds_of
from music_tf.storage.policy import AdaptivePolicy, SavedPolicy
from music_tf.storage.run_paths import find_agent
from music_tf.storage.skill_ends import ends_of
from music_tf.types import Array

# prefixes of the arrays of networks
DISCRIMINATOR = ("parameters/discriminator/", "scales/discriminator")
EMBEDDING = (f"parameters/{PHI}/", f"scales/{PHI}")
_NORMALIZERS = ("normalizer/observation", "normalizer/goal")
_MOST_COMPONENTS = 2**20
"""Largest size of an observation, goal or action."""
_LARGEST_NETWORKS = 2**29
"""Most bytes of weights beside the actor's."""


def load_policy(
    run: str | os.PathLike[str], env_id: str | None = None, *, allow_import: bool = False
) -> SavedPolicy:
    """Loads the policy of a run from its newest intact checkpoint, or that of a ready-made agent.

    The run may still be in training: nothing is locked or written.

    Args:
        run: A run directory, `latest`, a folder that `evaluate --export` wrote, or the name of an
            agent that comes with the package, such as `push`; a path has priority over a name.
        env_id: The id `module:Id` of your own environment, if the run has one, since no file may
            import a module.
        allow_import: Lets the run import the modules of your own that it names, such as that of an
            encoder, which needs TensorFlow.

    Raises:
        UsageError: No run, another environment than the one typed, no checkpoint yet, or a
            checkpoint that does not fit `config.json`.
        EnvironmentFault: Every checkpoint is damaged.
    """
    directory = find_agent(os.fspath(run))
    if allow_import:
        env_id = allowed_env_id(directory.resolve(), env_id)
    stored = read_run(directory.resolve(), env_id)
    check_same_env("env_id", stored, env_id)
    return policy_of(directory, stored)


def policy_of(directory: Path, stored: StoredRun) -> SavedPolicy:
    """Loads the policy of a run whose configuration is read, for any environment."""
    parts = ("parameters/actor/", "normalizer/", f"parameters/{acting.ENCODER}")
    return saved_policy(directory, stored, (*parts, *DISCRIMINATOR, *EMBEDDING))[0]


def saved_policy(
    run: Path, stored: StoredRun, wanted: tuple[str, ...]
) -> tuple[SavedPolicy, StoredWeights]:
    """Returns the newest intact policy, and what was read of it: arrays with `wanted` prefixes."""
    config = stored.config
    expected = functools.partial(_expected, config)
    if config.incremental.on:
        wanted = (*wanted, acting.SKILLS)
    try:
        checkpoint = newest_weights(weights_of(run.resolve()), expected, wanted)
        counters = as_object(checkpoint.meta.get("counters"))
        if not all(is_count(counters.get(name)) for name in ("epoch", "env_steps")):
            raise ValueError("counters: expected whole numbers epoch and env_steps")
        declared = declared_in(checkpoint.meta)
        reach = checkpoint.arrays.get(COLUMNS)
        size, offsets = (checkpoint.arrays[name].size // 2 for name in _NORMALIZERS)
        if reach is not None and (
            reach.size != offsets or not np.isin(reach, np.arange(-size, size)).all()
        ):
            raise ValueError(f"{COLUMNS}: expected columns of an observation, which has {size}")
    except ValueError as error:
        raise UsageError(f"{run}: the checkpoint does not fit config.json\n{error}") from error
    moments = []
    for name in _NORMALIZERS:
        totals = checkpoint.arrays[name]
        normalizer = Normalizer(totals.size // 2, config.normalizer, Communicator(alone=True))
        normalizer.state = totals
        moments.append(normalizer.moments)
    names = _actor_shapes(config, 0, 0, 0)
    weights = {name: checkpoint.arrays[f"parameters/{name}"] for name in names}
    observation, goal = moments
    inputs = acting.NetworkInputs(
        observation, goal, config.normalizer, config.seen_condition, reach
    )
    encoder = _encoder_of(config, checkpoint, size)
    # with a dict as `explorer`, so that a policy can be copied and pickled
    current = acting.Snapshot(config.agent.actor, weights, inputs, encoder=encoder, explorer={})
    snapshot: acting.Snapshot | acting.SkillSnapshots = current
    worlds: tuple[int, ...] = ()
    if config.incremental.on:
        worlds = _learned_in(run, config, checkpoint)
        skills = len(worlds)
        stored = stored._replace(config=config.of_first_skills(skills))
        each = (acting.learned_skill(current, checkpoint.arrays, skill) for skill in range(skills))
        snapshot = acting.SkillSnapshots(tuple(each))
    if config.agent.inference is not None:
        return AdaptivePolicy(stored, current, counters, declared), checkpoint
    discriminator = _discriminator_in(config, checkpoint)
    policy = SavedPolicy(stored, snapshot, counters, discriminator, declared)
    policy.worlds = worlds
    policy.embedding = _embedding_in(config, checkpoint, policy.observation_dim)
    policy.ends = ends_of(run, policy.stored.config, counters)
    return policy, checkpoint


def _inputs_in(weights: StoredWeights, network: str) -> dict[str, Any]:
    return as_object(as_object(weights.meta.get("inputs")).get(network))


def _discriminator_in(config: Config, weights: StoredWeights) -> Discriminator | str | None:
    """Returns the discriminator, a text that says why it does not fit, or None without one."""
    seen = _inputs_in(weights, "discriminator")
    for term in config.rewards.values() if config.acting_skills else ():
        if "discriminator" in term.networks:
            hidden = getattr(term, "hidden_sizes", ())
            state = getattr(term, "state", None)  # before or after the step, as in the reward
            judged = {**seen, "state": state} if seen else seen
            try:
                return discriminator_of(weights.arrays, judged, hidden, config.condition_size)
            except ValueError as error:  # the policy acts without it
                return str(error)
    return None


def _embedding_in(
    config: Config, weights: StoredWeights, observation_dim: int
) -> Embedding | str | None:
    """Returns the embedding, a text that says why it does not fit, or None without one."""
    seen, kind, size = _inputs_in(weights, PHI), config.condition.kind, config.condition_size
    for term in config.rewards.values():
        if PHI in term.networks:
            try:
                phi = embedding_of(weights.arrays, seen, term, kind, size, observation_dim)
                return phi and phi._replace(groups=config.condition.groups)
            except ValueError as error:  # the policy acts without it
                return str(error)
    return None


def _learned_in(run: Path, config: Config, weights: StoredWeights) -> tuple[int, ...]:
    worlds = worlds_of(weights.meta)
    room = len(weights.arrays[f"{acting.SKILLS}moments/observation"])
    stages = range(max(1, len(config.env.stages)))
    if (
        worlds is None
        or not all(type(stage) is int and stage in stages for stage in worlds)
        or len(worlds) > min(room, config.skills)
    ):
        raise UsageError(f"{run}: the checkpoint does not fit config.json\nincremental: no worlds")
    if not worlds:
        first = config.incremental.of_each(config.skills)[0]
        raise UsageError(
            f"{run}: no skill is learned yet, expected at least one; the first is with epoch "
            f"{first}, and the newest checkpoint is of epoch {weights.meta['counters']['epoch']}"
        )
    return tuple(worlds)


def _encoder_of(config: Config, saved: StoredWeights, observation_dim: int) -> dict[str, Array]:
    inference, stored = config.agent.inference, _encoder_in(saved.arrays)
    if inference is None or not stored:
        return {}
    names = list(encoder_shapes(inference, observation_dim, 0)) or stored
    return {name: saved.arrays[f"parameters/{name}"] for name in names}


def _encoder_in(arrays: Iterable[str]) -> list[str]:
    """Returns the names of an encoder's weights; a folder of exported weights may lack it."""
    names = (name.removeprefix("parameters/") for name in arrays)
    return [name for name in names if name.startswith(acting.ENCODER)]


def _actor_shapes(
    config: Config, observation_dim: int, goal_dim: int, action_dim: int
) -> dict[str, tuple[int, ...]]:
    agent, input_dim = config.agent, observation_dim + config.seen_condition + goal_dim
    return acting.actor_shapes(agent.actor, input_dim, agent.actor_layers, action_dim)


def _expected(config: Config, stored: Expected) -> Expected:
    """Returns the arrays that a checkpoint must hold; sizes of the environment are its own."""
    *_, last = _actor_shapes(config, 0, 0, 0)
    sizes = {}
    for name in (*_NORMALIZERS, f"parameters/{last}"):
        if name not in stored:
            raise MisfitError(name, "numbers", None)
        _, shape = stored[name]
        if len(shape) != 1 or shape[0] > _MOST_COMPONENTS:
            raise MisfitError(name, f"at most {_MOST_COMPONENTS} numbers", str(shape))
        sizes[name] = shape[0]
    observation, goal, actions = sizes.values()
    skills = 0
    if config.incremental.on:  # fewer before a run that learns further skills has saved
        _, shape = stored.get(f"{acting.SKILLS}moments/observation", (None, ()))
        skills = min(config.skills, shape[0]) if shape else config.skills
    expected: dict[str, Kind] = {
        name: (np.dtype(np.float64), (2 * (sizes[name] // 2) + 1,)) for name in _NORMALIZERS
    }
    expected |= {COLUMNS: (np.dtype(np.float32), (2, goal // 4))} if config.replay.reach else {}
    for name, shape in _actor_shapes(config, observation // 2, goal // 2, actions).items():
        expected[f"parameters/{name}"] = np.dtype(np.float32), shape
        if config.incremental.on:
            expected[f"{acting.SKILLS}{name}"] = np.dtype(np.float32), (skills, *shape)
    for name, size in (("observation", observation), ("goal", goal)) if skills else ():
        expected[f"{acting.SKILLS}moments/{name}"] = np.dtype(np.float32), (skills, 2, size // 2)
    checked = ["parameters/actor/", "norm", acting.SKILLS]
    inference = config.agent.inference
    if inference is not None and not is_function(inference.encoder):
        checked.append(f"parameters/{acting.ENCODER}")
        inferring = encoder_shapes(inference, observation // 2, actions)
        shapes = inferring if _encoder_in(stored) else {}
        expected |= {f"parameters/{n}": (np.dtype(np.float32), s) for n, s in shapes.items()}
    # shapes of reward networks are known to TensorFlow alone
    others = {n: e for n, e in stored.items() if not n.startswith(tuple(checked))}
    size = sum(math.prod(shape) * dtype.itemsize for dtype, shape in others.values())
    if size > _LARGEST_NETWORKS:
        raise MisfitError("parameters", f"at most {_LARGEST_NETWORKS} bytes", str(size))
    return expected | others
