"""Facts about an environment for other programs: data inside its spaces, and how to make it."""

import copy
import importlib
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import load_env_creator

from music_tf.envs.making import GOAL_KEYS
from music_tf.envs.registry import layers_of
from music_tf.envs.skill_choice import SkillChoice
from music_tf.process.children import check_extra


def import_minari(option: str) -> Any:
    for package in ("minari", "h5py"):  # Minari itself imports h5py only to write
        check_extra(option, package, "minari")
    return importlib.import_module("minari")


def spaces_of(
    environment: gymnasium.Env[Any, Any],
) -> tuple[gymnasium.Space[Any], Mapping[str, gymnasium.Space[Any]]]:
    space: Any = environment.observation_space
    if not isinstance(space, gymnasium.spaces.Dict):
        return space, {"observation": space}
    parts = {key: space[key] for key in GOAL_KEYS}
    return gymnasium.spaces.Dict(parts), parts


def held_by(space: gymnasium.Space[Any], rows: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Returns rows [N, D] in the type of a space, each inside it also where rounding left it."""
    held: npt.NDArray[Any] = rows.astype(space.dtype or np.float64)
    if isinstance(space, gymnasium.spaces.Box):
        near = np.clip(held, space.low, space.high)
        held = np.where(near.astype(np.float32) == held.astype(np.float32), near, held)
    for step, row in enumerate(held):
        if not space.contains(row):
            raise ValueError(
                f"the {name} of step {step} is not in the space that the environment declares, "
                f"{str(space)[:100]}: {str(row)[:100]}"
            )
    return held


class MadeAgain(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose `spec` is JSON with which another process can make it."""

    @property
    def spec(self) -> Any:
        """The specification with its entry point by name, without a choice of skills, or None."""
        spec_copy = copy.copy(self.env.spec)
        layers = layers_of(self.env)
        if spec_copy is None or any(isinstance(layer, SkillChoice) for layer in layers):
            return None
        try:
            if callable(entry := spec_copy.entry_point):
                spec_copy.entry_point = f"{entry.__module__}:{entry.__qualname__}"
                if load_env_creator(spec_copy.entry_point) is not entry:
                    return None
            spec_copy.to_json()
        except (AttributeError, ImportError, TypeError, ValueError):
            return None
        return spec_copy
