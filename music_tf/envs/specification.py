"""Sizes of an environment for a learner, checked against its world."""

from typing import Any

import gymnasium

from music_tf.envs.registry import EnvironmentInfo
from music_tf.errors import UsageError
from music_tf.types import EnvSpec

_AXES = "xyz"


def describe(env_id: str, environment: gymnasium.Env[Any, Any], info: EnvironmentInfo) -> EnvSpec:
    """Returns sizes and split of an environment without extras; its world must fit them."""
    steps = environment.spec.max_episode_steps if environment.spec else None
    if not steps:
        raise UsageError(
            f"env_id: {env_id!r} does not say how long an episode is; "
            "register it with max_episode_steps, or give --env.max-episode-steps"
        )
    space: Any = environment.observation_space
    observation_dim, goal_dim = sum(space.shape or ()), 0
    if isinstance(space, gymnasium.spaces.Dict):
        observation_dim, goal_dim = (space[key].shape[0] for key in ("observation", "desired_goal"))
    split, descriptor = info.split, info.descriptor
    action_dim = int(environment.action_space.shape[0])
    columns = {
        "agent": (split.agent if split else (), observation_dim),
        "surrounding": (split.surrounding if split else (), observation_dim),
        "object": (info.object or (), observation_dim),
        "gripper": (info.gripper or (), observation_dim),
        "descriptor": (() if isinstance(descriptor, str) else descriptor, observation_dim),
        "arm": (info.arm or (), action_dim),
    }
    for name, (indices, size) in columns.items():
        if indices and not 0 <= min(indices) <= max(indices) < size:
            what = "numbers of an action" if name == "arm" else "components"
            near = "\nfor example: --world.descriptor observation" if name == "descriptor" else ""
            raise UsageError(f"world.{name}: expected {what} in 0..{size - 1}, got {indices}{near}")
    if info.support is not None and (info.object is None or len(info.object) != len(_AXES)):
        raise UsageError(
            "world.support: carries an object and has a height, so it needs world.object beside it "
            f"with columns of x, y and z, got {info.object}"
        )
    if info.object and info.gripper and len(info.object) != len(info.gripper):
        raise UsageError(
            f"world.gripper: expected as many columns as world.object has {info.object}, "
            f"got {info.gripper}"
        )
    return EnvSpec(
        env_id=env_id,
        observation_dim=observation_dim,
        goal_dim=goal_dim,
        action_dim=action_dim,
        max_episode_steps=steps,
        split=split,
    )
