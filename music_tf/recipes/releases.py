"""Settings of other people's code, as presets of the recipes have them.

Each is a mapping of dotted names to values, which the recipe applies to settings of its own.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from music_tf.config import names

Changes: TypeAlias = Mapping[str, Any]
NOTHING: Changes = MappingProxyType({})

_RAW: Changes = {
    "normalizer.running": False,
    "normalizer.clip": 1e6,
    "normalizer.input_clip": 1e6,
    "collect.random_steps": 0,
    "skill.batch": "shared",
}
DIAYN: Mapping[str, Changes] = {
    "paper": {
        **_RAW,
        "skills": 50,
        "agent.hidden_sizes": (300, 300),
        "agent.critics": 1,
        "agent.critic_loss": "half_mean",
        "agent.polyak": 0.99,
        "replay.batch_size": 128,
        "skill.state": "current",
        "skill.prior_offset": 1e-6,
        "skill.hidden_sizes": (300, 300),
        "collect.update_after": 999,  # the authors' code waits for 1,000 steps
    },
    "diayn_torch": {
        **_RAW,
        "skills": 50,
        "agent.hidden_sizes": (300, 300),
        "agent.deviation": "clip",
        "agent.squash_correction": "epsilon",
        "agent.initializer": "he_normal",
        "skill.trained_on": "current",
        "skill.prior_offset": 1e-6,
        "skill.initializer": "he_normal",
        "skill.hidden_sizes": (300, 300),
        "collect.update_after": 255,  # that code waits for a full batch
    },
    "qdax": {
        **_RAW,
        "skills": 5,
        "agent.temperature": 1.0,
        "agent.learn_temperature": True,
        "agent.target_entropy_per_action": -0.5,
        "agent.discount": 0.97,
        "agent.deviation": "softplus",
        "agent.critic_loss": "half_mean",
        "agent.truncated": "masked",
        "agent.initializer": "lecun_uniform",
        "skill.trained_on": "current",
        "skill.missing_descriptor": "zeros",
        "skill.initializer": "lecun_uniform",
        "rollouts": 10,  # 250 there; skills are tiled over them
        "condition.sampler": "tiled",
        "collect.steps": 20,
        "collect.updates_per_step": 0.25,
    },
}
"""The authors' code, the PyTorch DIAYN, and QDax."""
LONGEST: Mapping[str, int] = {"qdax": 100, "diayn_torch": 1000}
"""Maximum length of an episode there, in steps."""
COMPARED: Changes = {
    "agent.temperature": 0.1,
    "agent.learn_temperature": False,
    "agent.discount": 0.99,
    "collect.updates_per_step": 1.0,
    "skill.missing_descriptor": "observation",
}
"""What the published comparison of SMERL and DADS with QDax has otherwise."""
GATES: Mapping[str, tuple[float, float, float]] = {
    "music_tf/UnitBox-v0": (4.0, 0.5, 1.0),
    **dict.fromkeys(names.CHEETAHS, (2050.0, 205.0, 5.0)),
    "Walker2d-v5": (1180.0, 118.0, 10.0),
    **dict.fromkeys(names.ANTS[:2], (1700.0, 170.0, 10.0)),
}
"""Target, margin and scale of rewards: ours for the box, else those of that comparison."""
ANY_GATE = (1000.0, 100.0, 1.0)

_WITH_PLACE = {"exclude_current_positions_from_observation": False}
_ON_A_PLANE = {
    **_WITH_PLACE,
    "include_cfrc_ext_in_observation": False,
    "terminate_when_unhealthy": False,
}
_DIRECTIONS: Changes = {"condition.kind": "sphere", "condition.size": 2}
_KINDS: Changes = {"skills": 16}
_STEPS = 200
"""Steps of an episode of robots."""
_ANT: Changes = {
    "env.kwargs": json.dumps(_ON_A_PLANE),
    "world.descriptor": (0, 1),
    "distance.columns": tuple(range(29)),
}
_CHEETAH: Changes = {
    "env.kwargs": json.dumps(_WITH_PLACE),
    "world.descriptor": (0,),
    "distance.columns": tuple(range(18)),
}
_ROBOTS: Changes = {
    "workers": 1,
    "env.max_episode_steps": _STEPS,
    **{f"agent.{name}_learning_rate": 1e-4 for name in ("actor", "critic", "temperature")},
    "agent.critic_loss": "half_mean",
    "agent.linear_features": False,
    "agent.deviation": "clip",
    "agent.squash_correction": "epsilon",
    "agent.discount": 0.99,
    "agent.polyak": 0.995,
    "agent.polyak_every": "update",
    "agent.truncated": "terminal",
    "agent.update_order": "sequential",
    "distance.normalize_inputs": True,
    "distance.learning_rate": 1e-4,
}
_METRA: Changes = {
    **_ROBOTS,
    "epochs": 75,
    "cycles": 50,  # a cycle is an epoch there
    "rollouts": 8,
    "updates": 50,
    "collect.update_after": 10_000,
    "replay.draw": "steps",
    "evaluation.episodes": 48,
    "evaluation.every": 20,
    "agent.hidden_sizes": (1024, 1024),
    "agent.temperature": 0.01,
    "agent.target_entropy_per_action": -0.5,
    "distance.update_order": "first",
    "distance.batch": "shared",
    "distance.hidden_sizes": (1024, 1024),
    "distance.dual_learning_rate": 1e-4,
}
_LSD: Changes = {
    **_ROBOTS,
    **_KINDS,
    "epochs": 500,
    "cycles": 40,
    "rollouts": 10,
    "updates": 64,
    "replay.capacity": 10 * _STEPS,  # the episodes of one cycle
    "replay.draw": "episodes",
    "replay.overwrite": "oldest",
    "replay.batch_size": 1024,
    "evaluation.episodes": 64,
    "evaluation.every": 25,
    "agent.hidden_sizes": (512, 512),
    "agent.temperature": 0.003,
    "agent.learn_temperature": False,
    "distance.constraint": "spectral",
    "distance.every": 2,
    "distance.hidden_sizes": (512, 512),
}
_CSD: Changes = {
    "workers": 1,
    "epochs": 1002,
    "cycles": 40,
    "rollouts": 2,
    "updates": 10,
    "collect.random_steps": 200_000,
    "replay.capacity": 100_000,
    "replay.overwrite": "random",
    "evaluation.episodes": 200,
    "evaluation.every": 25,
    "agent.hidden_sizes": (256, 256),
    "agent.gradient_reduce": "mean",
    "agent.polyak": 0.995,
    "agent.entropy_scale": 0.02,
    "agent.entropy_weight": ((0.0, 0.2),),
    "agent.squash_correction": "epsilon",
    "condition.kind": "gaussian",
    "distance.columns": tuple(range(25)),
    "distance.distance": "density",
    "distance.density_loss": "released",
    "distance.density_early": True,
    "distance.dual_start": 3000.0,
    "distance.slack": 1e-6,
    "distance.scale": 500.0,
    "distance.hidden_sizes": (128, 128),
}
_PLACE_SIZES = {"FetchPush-v4": 2, "FetchSlide-v4": 2, "FetchPickAndPlace-v4": 3}
DISTANCE: Mapping[str, Mapping[str, Changes]] = {
    "metra_release": {
        "Ant-v5": {**_METRA, **_ANT, **_DIRECTIONS},
        "HalfCheetah-v5": {**_METRA, **_CHEETAH, **_KINDS},
    },
    "lsd_release": {"Ant-v5": {**_LSD, **_ANT}, "HalfCheetah-v5": {**_LSD, **_CHEETAH}},
    "csd_release": {env_id: {**_CSD, "condition.size": n} for env_id, n in _PLACE_SIZES.items()},
}
"""Code of METRA's authors for states; of CSD's authors for Fetch, and for LSD on robots."""
_DISK: Changes = {
    "agent.hidden_sizes": (256, 256),
    **{f"agent.{name}_learning_rate": 3e-4 for name in ("actor", "critic", "temperature")},
    "agent.update_order": "sequential",
    "agent.polyak": 0.995,
    "agent.polyak_every": 2,
    "replay.batch_size": 1024,
    "collect.random_steps": 0,
    "collect.updates_per_step": 1.0,
    "incremental.collected": 100,
    "incremental.first": "nothing",
}
AS_CODED: Changes = {
    **_DISK,
    "incremental.epochs": (25,) * 20,  # 5,000 steps each, 1,000 on the toy
    "incremental.replay": "purge",
    "collect.random_steps": 5000,
    "env.max_episode_steps": None,
    "world.extras": (),
    "disk.own_episodes": 1,
    "disk.balance": "released",
    "disk.descriptor": "velocity",
}
"""The code of DISk's authors."""
_SHORT_EPISODES: Changes = {"env.max_episode_steps": 100, "evaluation.length": 500}
_NO_FALLS: Changes = {"env.kwargs": '{"terminate_when_unhealthy": false}'}
_DISK_ANT: Changes = {**_SHORT_EPISODES, "disk.alpha": 60.0}
DISK: Mapping[str, Changes] = {
    names.SQUARE: {"incremental.epochs": (50,) * 2, "collect.random_steps": 500},
    **dict.fromkeys(names.CHEETAHS, _SHORT_EPISODES),
    "Hopper-v5": {
        **_SHORT_EPISODES,
        **_NO_FALLS,
        "incremental.epochs": (10,) * 50,
        "disk.beta": 10.0,
    },
    "Swimmer-v5": {
        "incremental.epochs": (50,) * 10,
        "env.max_episode_steps": 200,
        "evaluation.length": 500,
        "disk.alpha": 1000.0,
    },
    **{ant: {**_DISK_ANT, "incremental.epochs": (*(100,) * 2, *(200,) * 8)} for ant in names.ANTS},
    names.ANTS_AMONG_BLOCKS: {
        **_DISK_ANT,
        "incremental.epochs": (50, 50, 200, 200, *(100,) * 4, 50, 50),
    },
    "Humanoid-v5": {
        **_NO_FALLS,
        "incremental.epochs": (1000,) * 6,
        "incremental.collected": 500,
        "collect.random_steps": 10_000,
        "env.max_episode_steps": 1000,
        "evaluation.length": 1500,
        "disk.alpha": 60.0,
    },
}
"""By environment, what that code has otherwise."""
AS_STATED: Changes = {
    **_DISK,
    "skills": 20,
    "agent.update_order": "actor_first",
    "incremental.past": "append",
    "world.extras": ("time=time",),
    "disk.k": 5,
    "disk.rows": 100,
    "disk.own_episodes": 100,
    "disk.balance": "raw",
    "disk.timesteps": "equal",
    "disk.schedule": False,
}
"""DISk as the paper states it."""
_LARGE: Changes = {
    "epochs": 500,
    "cycles": 1,
    "agent.hidden_sizes": (300, 300, 300),
    "tasks.train": 100,
    "tasks.test": 30,
    "tasks.posterior": 0,
    "tasks.posterior_first": False,
    "tasks.adapt": 1,
    "evaluation.episodes": 1,
}
OYSTER: Changes = {
    **_LARGE,
    "updates": 400,
    "tasks.visits": 5,
    "replay.batch_size": 4096,
    "task.scale": 5.0,
    "tasks.seed": 1337,
    "tasks.extra": 3,
    "tasks.explore": 2,
}
"""The code of PEARL's authors."""
PEARL_PAPER: Changes = {"agent.context_next_observation": True, "agent.kl_weight": 1.0}
"""Settings of the paper that differ from the authors' code."""
GARAGE: Changes = {
    **_LARGE,
    "updates": 10,
    "tasks.visits": 100,
    "agent.meta_batch": 64,
    "agent.context_rows": 100,
    "replay.batch_size": 65_536,
    "tasks.initial": 1,
    "tasks.prior": 1,
    "tasks.extra": 1,
    "tasks.explore": 10,
}
"""Defaults of garage's constructor."""
_THREE: Changes = {"tasks.extra": 3}
_LONG: Changes = {"updates": 800, **_THREE}
_TEN: Changes = {"agent.meta_batch": 10, "replay.batch_size": 2560}
_TWO: Changes = {
    **{"agent.meta_batch": 4, "agent.context_rows": 256, "replay.batch_size": 1024},
    **{"tasks.train": 2, "tasks.test": 2, "evaluation.episodes": 4},
}
_BODIES: Changes = {
    **{**_LONG, "agent.context_next_observation": True, **_TEN},
    **{"tasks.train": 40, "tasks.test": 10, "evaluation.episodes": 2},
}
_PLACES: Changes = {
    **{"updates": 200, "task.scale": 100.0, "tasks.train": 80, "tasks.test": 20},
    **{"agent.context_rows": 64, "tasks.prior": 10, "tasks.extra": 10},
    **{"tasks.explore": 1, "tasks.adapt": 2, "evaluation.episodes": 2},
}
OYSTER_FAMILIES: Mapping[str, Changes] = {
    names.POINT_ROBOT: _PLACES,
    names.HALF_CIRCLE: {
        **{**_PLACES, "updates": 100, "agent.discount": 0.9, "agent.kl_weight": 1.0},
        **{"world.extras": ("sparse_reward",), "agent.context_reward": "sparse_reward"},
        **{"agent.context_rows": 1024, "tasks.visits": 10, "tasks.prior": 5},
        **{"tasks.posterior": 45, "tasks.extra": 0, "tasks.explore": 5, "tasks.adapt": 15},
    },
    names.CHEETAH_VELOCITY: _THREE,
    names.CHEETAH_DIRECTION: {**_TWO, "tasks.prior": 5, "tasks.extra": 5},
    names.ANT_DIRECTION: {**_LONG, **_TWO},
    names.ANT_HIDDEN_GOAL: {
        **{**_LONG, **_TEN, "agent.context_rows": 256},
        **{"agent.kl_weight": 1.0, "tasks.train": 150},
    },
    names.HUMANOID_DIRECTION: {**_LONG, "agent.context_rows": 256},
    **dict.fromkeys((names.WALKER_BODIES, names.HOPPER_BODIES), _BODIES),
}
"""By environment, what the authors' code has otherwise."""

_SHORT: Changes = {"tasks.initial": 2, "tasks.prior": 2, "tasks.extra": 2}
GARAGE_FAMILIES: Mapping[str, Changes] = {
    names.POINT_ROBOT: {"tasks.initial": 5, "tasks.prior": 5, "tasks.extra": 5},
    **dict.fromkeys(names.FETCH_HIDDEN_GOALS, _SHORT),
}
"""The same for garage, whose visits have a number of steps; short episodes need more of them."""

OTHER_PROGRAMS = frozenset(
    {
        *("agent.context_reward", "agent.critic_loss", "agent.encoder_learning_rate"),
        *("agent.encoder_sizes", "agent.initializer", "agent.target_entropy_per_action"),
        *("agent.truncated", "agent.value_learning_rate", "condition.sampler", "dads.batch"),
        *("dads.initializer", "dads.normalize_inputs", "dads.omit", "dads.weight"),
        *("disk.balance", "disk.beta", "disk.k", "disk.schedule", "disk.timesteps"),
        *("distance.batch", "distance.density_early", "distance.density_loss"),
        *("distance.dual_learning_rate", "distance.every", "distance.learning_rate"),
        *("distance.normalize_inputs", "distance.update_order", "evaluation.length"),
        *("incremental.collected", "incremental.past", "incremental.replay", "replay.overwrite"),
        *("skill.batch", "skill.initializer", "skill.missing_descriptor", "skill.prior_offset"),
        *("skill.trained_on", "skill.weight", "tasks.explore", "tasks.posterior_first"),
        *("tasks.seed", "tasks.visits"),
    }
)
"""Options to which the presets of this file alone give other values."""
