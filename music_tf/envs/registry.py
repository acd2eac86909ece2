"""Facts about known environments: split for MUSIC, object, support, bounds of rewards.

Other environments are described by a `World`, typed or registered, which has priority over this
table.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from music_tf.config.names import HIDDEN_GOALS, KNOWN, WITH_GOALS, is_one_of, without_module
from music_tf.config.settings import Config
from music_tf.config.world import ALL, DESCRIPTOR, READ, World, registered_world
from music_tf.errors import UsageError
from music_tf.types import EnvSpec, SplitSpec

INFO = "info"
"""Source of an extra that is an entry of `info`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Support:
    """The horizontal surface that carries the object, in metres and world coordinates."""

    low: tuple[float, float]
    """Smallest x and y of the surface."""
    high: tuple[float, float]
    """Largest x and y of the surface."""
    rest_height: float
    """Height z of the centre of an object at rest on it."""
    tolerance: float = 0.02
    """How far the height may be from `rest_height` before the object counts as raised or fallen."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvironmentInfo:
    """Facts about a family of environments; indices are those of observations."""

    split: SplitSpec | None = None
    """Columns of the robot and of its surroundings; None if MUSIC needs them from the user."""
    gripper: tuple[int, ...] | None = None
    """Columns of the gripper's x, y, z; None without a single gripper."""
    arm: tuple[int, ...] | None = None
    """Components of an action that move the gripper by x, y, z; None without any."""
    object: tuple[int, ...] | None = None
    """Columns of the object's x, y, z; None without an object."""
    orientation: tuple[int, ...] | None = None
    """Columns of its quaternion; None without one."""
    support: Support | None = None
    """Surface that carries the object; None if it is not plane."""
    unit: str = ""
    """`m` if positions are in metres; else they are in a unit of the environment."""
    music_gain: float | None = None
    """Reward per nat of the mutual information bound that suits these positions and steps; None
    if unknown: `--music.gain auto` finds one."""
    reward_bounds: tuple[float, float] = (-math.inf, math.inf)
    """Lowest and highest task reward of a step; infinite if unknown."""
    batched_reward: bool = True
    """False if `compute_reward` is wrong for many goals at once and is called one by one."""
    descriptor: tuple[int, ...] | str = ()
    """What skills are distinguished by: columns, `observation` for all of them, or the name of an
    extra; empty: the surroundings."""
    extras: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Source of each extra by name: `INFO`, `TIME`, `STRIDE`, the achieved goal, or a function of
    the environment as `module:function`."""
    why_no_split: str = ""
    """Why there is no split, as in `has no object`."""


_GRIPPER = (0, 1, 2)
_OBJECT = (3, 4, 5)
_ARM = (0, 1, 2)
_FETCH_SPLIT = SplitSpec(agent=_GRIPPER, surrounding=_OBJECT)
_SLIDE_TABLE = Support(low=(0.69942, 0.30018), high=(1.94942, 1.20018), rest_height=0.42)

_NO_OBJECT = EnvironmentInfo(why_no_split="has no object")
_POINT = dataclasses.replace(_NO_OBJECT, descriptor=(0, 1))
_FETCH = EnvironmentInfo(
    split=_FETCH_SPLIT,
    gripper=_GRIPPER,
    arm=_ARM,
    object=_OBJECT,
    support=Support(low=(1.05, 0.40), high=(1.55, 1.10), rest_height=0.42489),
    unit="m",
    music_gain=5000.0,  # as released
)
_CONVEYOR = dataclasses.replace(
    _FETCH, split=SplitSpec(agent=_GRIPPER, surrounding=(*_OBJECT, 25, 26, 27)), music_gain=None
)
_TWO = dataclasses.replace(_CONVEYOR, music_gain=5000.0)
_SLIDE = dataclasses.replace(_FETCH, support=_SLIDE_TABLE)

# Observations of the hand: 24 joint angles, 24 joint velocities, 6 velocities of the object, then
# its position (54..56) and its quaternion (57..60); touch sensors come after these.
_HAND_JOINTS = tuple(range(24))
_HAND_OBJECT_POSE = tuple(range(54, 61))
_HAND = EnvironmentInfo(
    split=SplitSpec(agent=_HAND_JOINTS, surrounding=_HAND_OBJECT_POSE),
    object=_HAND_OBJECT_POSE[:3],
    orientation=_HAND_OBJECT_POSE[3:],
    unit="m",
    # At random actions |dx| |dy| of a step is about 0.014, 35 times that of Fetch at contact.
    music_gain=150.0,
)

# Observations of Panda: position and velocity of the gripper, the width of its fingers if these
# open, then the object's position.
_PANDA_PUSH = EnvironmentInfo(
    split=SplitSpec(agent=_GRIPPER, surrounding=(6, 7, 8)),
    gripper=_GRIPPER,
    arm=_ARM,
    object=(6, 7, 8),
    support=Support(low=(-0.85, -0.35), high=(0.25, 0.35), rest_height=0.02),
    unit="m",
)
_PANDA_SLIDE = dataclasses.replace(
    _PANDA_PUSH, support=Support(low=(-0.8, -0.35), high=(0.6, 0.35), rest_height=0.015)
)
_PANDA_PICK = dataclasses.replace(
    _PANDA_PUSH, split=SplitSpec(agent=_GRIPPER, surrounding=(7, 8, 9)), object=(7, 8, 9)
)

_POINT_PUSH = EnvironmentInfo(
    split=_FETCH_SPLIT,
    gripper=_GRIPPER,
    object=_OBJECT,
    support=Support(low=(-1.0, -1.0), high=(1.0, 1.0), rest_height=0.0),
    # |dx| |dy| of a pushing step is about 0.007, 17 times that of Fetch at contact.
    music_gain=300.0,
)
_POINT_CROWD = dataclasses.replace(
    _POINT_PUSH,
    split=SplitSpec(agent=_GRIPPER, surrounding=(*_OBJECT, 8, 9, 10, 11)),
    music_gain=None,
)

_FAMILIES: Mapping[str, EnvironmentInfo] = {
    "FetchPush": _FETCH,
    "FetchPickAndPlace": _FETCH,
    "FetchSlide": _SLIDE,
    "FetchReach": _NO_OBJECT,
    "HandReach": _NO_OBJECT,
    "HandManipulatePen": dataclasses.replace(_HAND, batched_reward=False),
    "HandManipulate": _HAND,
    "PointMaze": _NO_OBJECT,
    "AntMaze": _NO_OBJECT,
    "PandaPush": _PANDA_PUSH,
    "PandaPickAndPlace": _PANDA_PICK,
    "PandaSlide": _PANDA_SLIDE,
    "PandaReach": _NO_OBJECT,
    "music_tf/FetchPushConveyor": _CONVEYOR,
    "music_tf/FetchPushTwo": _TWO,
    "music_tf/PointPushCrowd": _POINT_CROWD,
    "music_tf/PointPush": _POINT_PUSH,
    "music_tf/PointReach": _NO_OBJECT,
    "music_tf/UnitBox": dataclasses.replace(_POINT, reward_bounds=(-1.0, 1.0)),
    "music_tf/Square": dataclasses.replace(_POINT, reward_bounds=(0.0, 0.0)),
    "music_tf/PointRobot": _POINT,
}
"""Facts by prefix of the id; the first that fits is used."""
UNKNOWN = EnvironmentInfo(why_no_split="has no known robot and object")
"""Facts about an environment that the table does not have."""
_PACKAGES = ("gymnasium_robotics.", "panda_gym.", "music_tf.")
"""Prefixes of the modules whose environments the table describes."""
_HARMLESS = "gymnasium.wrappers.common"
"""Module of wrappers that change neither rewards nor observations."""


def lookup(env_id: str) -> EnvironmentInfo:
    """Returns the facts about an environment id; without split and object if it is unknown."""
    name = without_module(env_id)
    shown = HIDDEN_GOALS.get(name, name)
    for beginning, info in _FAMILIES.items():
        if shown.startswith(beginning) and is_one_of(name, KNOWN):
            if not is_one_of(name, WITH_GOALS):
                return info
            bounds = (-math.inf if "Dense" in name else -1.0), 0.0
            if "Maze" in name:
                bounds = 0.0, 1.0
            arm = None if "Joints" in name else info.arm  # actions turn the joints themselves
            return dataclasses.replace(info, reward_bounds=bounds, arm=arm)
    return UNKNOWN


def no_split(env_id: str, info: EnvironmentInfo) -> UsageError:
    """Returns the fault of a method that needs the columns of the robot and its surroundings."""
    return UsageError(
        f"{env_id} {info.why_no_split}, whose motion is to be rewarded\n"
        f"music-tf check-env {env_id} looks for one (about 5 s); or set --world.agent COLUMNS "
        "--world.surrounding COLUMNS"
    )


def check_split(config: Config) -> None:
    """Refuses a run whose rewards need columns of robot and surroundings that are not known."""
    world, info = config.world.over(registered_world(config.env_id)), lookup(config.env_id)
    needed = any(term.needs_split for term in config.rewards.values())
    if needed and not world.agent and info.split is None:
        raise no_split(config.env_id, info)


def layers_of(environment: Any) -> Iterator[Any]:
    """Yields the wrappers around an environment, the outermost first."""
    unwrapped, layer = environment.unwrapped, environment
    while layer is not unwrapped:
        yield layer
        layer = getattr(layer, "env", unwrapped)


def confirmed(info: EnvironmentInfo, environment: Any) -> EnvironmentInfo:
    """Returns the facts about an id that hold for the environment that was made."""
    # Bounds of rewards hold only if no class or wrapper of others may change these.
    unwrapped = environment.unwrapped
    written = [kind.__module__.startswith(_PACKAGES) for kind in type(unwrapped).__mro__]
    others = [o for o in layers_of(environment) if not type(o).__module__.startswith("music_tf.")]
    if not any(written) or any(o.observation_space != o.env.observation_space for o in others):
        return UNKNOWN
    harmless = (type(layer).__module__ == _HARMLESS for layer in layers_of(environment))
    as_written = written[0] and all(harmless)
    bounds = info.reward_bounds if as_written else (-math.inf, math.inf)
    reward_type = getattr(getattr(unwrapped, "task", unwrapped), "reward_type", "sparse")
    if bounds[0] < 0.0 and reward_type != "sparse":
        bounds = -math.inf, bounds[1]
    turned = getattr(unwrapped, "ignore_z_target_rotation", False)
    joints = getattr(getattr(unwrapped, "robot", None), "control_type", "ee") == "joints"
    return dataclasses.replace(
        info,
        reward_bounds=bounds,
        batched_reward=info.batched_reward and not turned,
        arm=None if joints else info.arm,
    )


def told_apart_by(info: EnvironmentInfo, observation_dim: int) -> tuple[tuple[int, ...], str]:
    """Returns what describes skills: the world's, else surroundings, else the observation."""
    named, everything = info.descriptor, tuple(range(observation_dim))
    if isinstance(named, str):
        return (everything, "") if named == ALL else ((), named)
    return named or (info.split.surrounding if info.split else everything), ""


def descriptor_of(info: EnvironmentInfo, spec: EnvSpec) -> tuple[tuple[int, ...], str]:
    """Returns the same with the split and the size of an environment."""
    return told_apart_by(dataclasses.replace(info, split=spec.split), spec.observation_dim)


def described(env_id: str, world: World, environment: Any) -> EnvironmentInfo:
    """Returns the facts about an environment that was made; those of the run have priority."""
    info, world = confirmed(lookup(env_id), environment), world.over(registered_world(env_id))
    declared: dict[str, Any] = {}
    if world.agent:
        declared["split"] = SplitSpec(agent=world.agent, surrounding=world.surrounding)
    if world.support:
        low_x, low_y, high_x, high_y, height, *tolerance = world.support
        declared["support"] = Support(
            low=(low_x, low_y),
            high=(high_x, high_y),
            rest_height=height,
            tolerance=tolerance[0] if tolerance else Support.tolerance,
        )
        declared["unit"] = "m"  # as a support is given
    if world.reward:
        declared["reward_bounds"] = world.reward
    places = ("object", "gripper", "arm")  # joined with known ones, as they must differ
    joined = world.over(World(**{name: getattr(info, name) or () for name in places}))
    declared |= {name: getattr(joined, name) for name in places if getattr(joined, name)}
    words = (word.partition("=") for word in world.extras)
    extras = {**info.extras, **{name: function or INFO for name, _, function in words}}
    if world.descriptor:
        named = world.descriptor[0]
        declared["descriptor"] = world.descriptor
        if isinstance(named, str):
            declared["descriptor"] = named if named == ALL else DESCRIPTOR
            extras |= {} if named == ALL else {DESCRIPTOR: READ.get(named, named)}
            declared |= {"unit": "m"} if named in ("xy", "plane") else {}
    return dataclasses.replace(info, **declared, extras=extras)
