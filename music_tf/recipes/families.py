"""Changes of the presets of `sac_pearl` for each of our families of tasks."""

from collections.abc import Mapping
from typing import Any

from music_tf.config.names import (
    ANT_DIRECTION,
    ANT_HIDDEN_GOAL,
    CHEETAH_DIRECTION,
    CHEETAH_VELOCITY,
    HALF_CIRCLE,
    HIDDEN_GOALS,
    HOPPER_BODIES,
    HUMANOID_DIRECTION,
    POINT_ROBOT,
    ROBOT_FAMILIES,
    WALKER_BODIES,
)

Changes = Mapping[str, Any]

HIDDEN_PUSH, HIDDEN_REACH = "music_tf/FetchPushHiddenGoal-v0", "music_tf/FetchReachHiddenGoal-v0"
_OF_FETCH = tuple(hidden for hidden in HIDDEN_GOALS if "Fetch" in hidden)

_ROBOT: Changes = {
    "epochs": 60,
    "cycles": 20,
    "updates": 100,
    "agent.discount": 0.97,
    "agent.polyak": 0.98,
    "agent.latent_size": 5,
    "agent.posterior": "diagonal",
    "agent.kl_weight": 1.0,
    "agent.meta_batch": 4,
    "agent.context_rows": 100,
    "replay.batch_size": 256,
    "task.scale": 30.0,
    "tasks.initial": 4,
    "tasks.prior": 1,
    "tasks.posterior": 1,
    "tasks.adapt": 2,
    "evaluation.every": 5,
}
_TWO_TASKS: Changes = {"workers": 2, "replay.batch_size": 512, "tasks.train": 2, "tasks.test": 2}
"""Forward and backward, which are both training tasks and evaluation tasks."""
_OTHER_BODY: Changes = {"agent.context_next_observation": True}
_GOAL: Changes = {
    "epochs": 40,
    "cycles": 8,
    "updates": 100,
    "agent.context_rows": 100,
    "task.scale": 100.0,
    "tasks.train": 32,
    "tasks.initial": 4,
    "evaluation.every": 5,
}
"""Rewards in metres are small, so that their scale is larger."""
_FAR_GOAL: Changes = {**_GOAL, "agent.discount": 0.95}
_IN_DECIMETRES: Changes = {
    "normalizer.running": True,
    "normalizer.clip": 5.0,
    "normalizer.input_clip": 200.0,
    "agent.context_reward_scale": 10.0,
    "agent.context_rows": 50,
    "agent.kl_weight": 0.2,
    "tasks.posterior": 0,
    "tasks.extra": 2,
}
"""On Fetch, places and rewards differ by about 0.1 m, too little for an encoder to learn fast.
Contexts come from episodes under the prior alone, as at the start of an adaptation."""
_FAR_FETCH: Changes = {**_FAR_GOAL, **_IN_DECIMETRES}
LAPTOP: Mapping[str, Changes] = {
    **dict.fromkeys(ROBOT_FAMILIES, _ROBOT),
    CHEETAH_DIRECTION: {**_ROBOT, **_TWO_TASKS},
    WALKER_BODIES: {**_ROBOT, **_OTHER_BODY},
    HOPPER_BODIES: {**_ROBOT, **_OTHER_BODY},
    **dict.fromkeys(HIDDEN_GOALS, _FAR_GOAL),
    **dict.fromkeys(_OF_FETCH, _FAR_FETCH),
    HIDDEN_REACH: {**_GOAL, **_IN_DECIMETRES, "epochs": 15},
}
"""By environment; all other settings are those of the point robot."""

_THREE: Changes = {"tasks.extra": 3}
_LONG: Changes = {"updates": 800, **_THREE}
_TEN: Changes = {"agent.meta_batch": 10, "replay.batch_size": 2560}
_TWO: Changes = {
    **{"agent.meta_batch": 4, "agent.context_rows": 256, "replay.batch_size": 1024},
    **{"tasks.train": 2, "tasks.test": 2, "evaluation.episodes": 4},
}
_BODIES: Changes = {
    **{**_LONG, **_OTHER_BODY, **_TEN},
    **{"tasks.train": 40, "tasks.test": 10, "evaluation.episodes": 2},
}
_PLACES: Changes = {
    **{"updates": 200, "task.scale": 100.0, "tasks.train": 80, "tasks.test": 20},
    **{"agent.context_rows": 64, "tasks.prior": 10, "tasks.extra": 10},
    **{"tasks.explore": 1, "tasks.adapt": 2, "evaluation.episodes": 2},
}
OYSTER: Mapping[str, Changes] = {
    POINT_ROBOT: _PLACES,
    HALF_CIRCLE: {
        **{**_PLACES, "updates": 100, "agent.discount": 0.9, "agent.kl_weight": 1.0},
        **{"world.extras": ("sparse_reward",), "agent.context_reward": "sparse_reward"},
        **{"agent.context_rows": 1024, "tasks.visits": 10, "tasks.prior": 5},
        **{"tasks.posterior": 45, "tasks.extra": 0, "tasks.explore": 5, "tasks.adapt": 15},
    },
    CHEETAH_VELOCITY: _THREE,
    CHEETAH_DIRECTION: {**_TWO, "tasks.prior": 5, "tasks.extra": 5},
    ANT_DIRECTION: {**_LONG, **_TWO},
    ANT_HIDDEN_GOAL: {
        **{**_LONG, **_TEN, "agent.context_rows": 256},
        **{"agent.kl_weight": 1.0, "tasks.train": 150},
    },
    HUMANOID_DIRECTION: {**_LONG, "agent.context_rows": 256},
    **dict.fromkeys((WALKER_BODIES, HOPPER_BODIES), _BODIES),
}
"""The same for the authors' code, which has these families."""

_SHORT: Changes = {"tasks.initial": 2, "tasks.prior": 2, "tasks.extra": 2}
GARAGE: Mapping[str, Changes] = {
    POINT_ROBOT: {"tasks.initial": 5, "tasks.prior": 5, "tasks.extra": 5},
    **dict.fromkeys(_OF_FETCH, _SHORT),
}
"""The same for garage, whose visits have a number of steps; short episodes need more of them."""
OF_FAMILIES = {"laptop": LAPTOP, "oyster": OYSTER, "garage": GARAGE}
