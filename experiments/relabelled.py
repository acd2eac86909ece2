"""`sac_place` whose replay relabels conditions with the velocity that a step had."""

import dataclasses
from typing import ClassVar, Literal

import numpy as np

from music_tf.config.settings import Config
from music_tf.intrinsic.base import TermContext
from music_tf.intrinsic.distance import Distance
from music_tf.networks.parameters import Weights
from music_tf.recipes.distance import DistanceConfig, sac_place
from music_tf.replay.buffer import ReplayBuffer
from music_tf.replay.rows import Picks
from music_tf.types import Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepConfig(DistanceConfig):
    """The settings of `sac_place`."""

    name: ClassVar[str] = "step_distance"
    term: ClassVar[str] = "experiments.relabelled:StepDistance"


class StepDistance(Distance):
    """A place whose relabelled steps are seen under z = dphi / v, at most of length 1."""

    def __init__(self, config: StepConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self.fulfilled = self._had

    def _had(self, weights: Weights, replay: ReplayBuffer, picks: Picks) -> Array:
        batch = replay.transitions(picks, paid=False)
        step = self._step(weights, *self._ends("seen", self._seen, batch).values()).numpy()
        assert self._speed is not None
        velocity: Array = step / self._speed.value.numpy()
        length = np.linalg.norm(velocity, axis=-1, keepdims=True)
        shorter: Array = velocity / np.maximum(np.float32(1.0), length)
        return shorter


def step_velocities(preset: Literal["laptop"], env_id: str) -> Config:
    """`sac_place`, relabelled with the velocity of the step."""
    config = sac_place(preset, env_id)
    names = {field.name for field in dataclasses.fields(DistanceConfig)}
    settings = {name: getattr(config.rewards["distance"], name) for name in names}
    return dataclasses.replace(config, rewards={StepConfig.name: StepConfig(**settings)})
