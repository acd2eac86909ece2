"""Names of environments, and the nearest valid name for a mistyped one.

The names are written here, so that a mistyped one is refused before a simulator is imported. They
are those of music_tf, gymnasium-robotics 1.4, panda-gym 3 and gymnasium itself.
"""

import contextlib
import difflib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from music_tf.errors import UsageError

FEW = 3
"""How many of several names a line usually shows."""
_MOST_EDITS = 2

_REWARDS = ("", "Dense")
_TOUCH = ("", "_BooleanTouchSensors", "_ContinuousTouchSensors")
_MANIPULATED = (
    *("BlockRotateZ", "BlockRotateParallel", "BlockRotateXYZ", "Block"),
    *("EggRotate", "Egg", "PenRotate", "Pen"),
)
_VARIANTS = ("", "_Diverse_G", "_Diverse_GR")
_MAZES = ("UMaze", *map("".join, product(("Open", "Medium", "Large"), _VARIANTS)))

_POINTS = ("PointPush", "PointPushCrowd", "PointPushTerminating", "PointReach")
TOYS = tuple(f"music_tf/{name}-v0" for name in _POINTS)
FETCH_REACH, FETCH_PUSH = "FetchReach-v4", "FetchPush-v4"
FETCH_SLIDE, FETCH_PICK = "FetchSlide-v4", "FetchPickAndPlace-v4"
FETCH = tuple(
    f"Fetch{task}{reward}-v4"
    for task, reward in product(("Reach", "Push", "Slide", "PickAndPlace"), _REWARDS)
)
HAND = (
    *(f"HandReach{reward}-v3" for reward in _REWARDS),
    *(
        f"HandManipulate{thing}{touch}{reward}-v1"
        for thing, touch, reward in product(_MANIPULATED, _TOUCH, _REWARDS)
    ),
    *(
        f"HandManipulate{thing}Full{reward}-v1"
        for thing, reward in product(("Block", "Egg", "Pen"), _REWARDS)
    ),
)
POINT_MAZE = tuple(f"PointMaze_{maze}{reward}-v3" for maze, reward in product(_MAZES, _REWARDS))
ANT_MAZE = tuple(
    f"AntMaze_{maze}{reward}-v{version}"
    for maze, reward, version in product(_MAZES, _REWARDS, (3, 4, 5))
)
PANDA = tuple(
    f"panda_gym:Panda{task}{control}{reward}-v3"
    for task, control, reward in product(
        ("Reach", "Push", "Slide", "PickAndPlace", "Stack", "Flip"), ("", "Joints"), _REWARDS
    )
)
POINT_ROBOT, HALF_CIRCLE = "music_tf/PointRobot-v0", "music_tf/PointRobotHalfCircle-v0"
CHEETAH_VELOCITY = "music_tf/HalfCheetahVelocity-v0"
CHEETAH_DIRECTION = "music_tf/HalfCheetahDirection-v0"
ANT_DIRECTION, ANT_HIDDEN_GOAL = "music_tf/AntDirection-v0", "music_tf/AntHiddenGoal-v0"
HUMANOID_DIRECTION = "music_tf/HumanoidDirection-v0"
WALKER_BODIES, HOPPER_BODIES = "music_tf/Walker2dBodies-v0", "music_tf/HopperBodies-v0"
ROBOT_FAMILIES = (
    *(CHEETAH_VELOCITY, CHEETAH_DIRECTION, ANT_DIRECTION, ANT_HIDDEN_GOAL),
    *(HUMANOID_DIRECTION, WALKER_BODIES, HOPPER_BODIES),
)
"""Families of tasks of robots, for agents that adapt."""
HIDDEN_GOALS: Mapping[str, str] = {
    f"music_tf/{task}HiddenGoal-v0": f"{task}Dense-v{version}"
    for tasks, version in (
        (("FetchReach", "FetchPush", "FetchSlide", "FetchPickAndPlace"), 4),
        (tuple(f"PointMaze_{maze}" for maze in ("UMaze", "Open", "Medium", "Large")), 3),
        (tuple(f"AntMaze_{maze}" for maze in ("UMaze", "Open", "Medium", "Large")), 5),
    )
    for task in tasks
}
"""Families of tasks whose goal has to be inferred, with the environment that shows each goal."""
FETCH_HIDDEN_GOALS = tuple(hidden for hidden in HIDDEN_GOALS if "Fetch" in hidden)
BOX, SQUARE = "music_tf/UnitBox-v0", "music_tf/Square-v0"
TOYS_WITHOUT_GOALS = (BOX, SQUARE, POINT_ROBOT, HALF_CIRCLE)
CHEETAHS = ("HalfCheetah-v5", "music_tf/HalfCheetah-v0")
ANTS = ("Ant-v5", "music_tf/Ant-v0", "music_tf/AntGoals-v0")
ANTS_AMONG_BLOCKS = "music_tf/AntBlocks-v0"
ON_A_LINE = (*CHEETAHS, "Hopper-v5", "Walker2d-v5", "Swimmer-v5")
TRACKED_ROBOTS = (*ON_A_LINE, *ANTS, ANTS_AMONG_BLOCKS, "Humanoid-v5")
"""Robots without goals whose place can be read: on a line, or in the plane."""
_ROBOTS = (
    *("Hopper", "HalfCheetah", "Walker2d", "Ant", "Swimmer", "Humanoid", "Reacher"),
    *("HumanoidStandup", "InvertedPendulum", "InvertedDoublePendulum", "Pusher"),
)
WITHOUT_OPENGL = (*TOYS, *TOYS_WITHOUT_GOALS)
WITHOUT_GOALS = (
    *TOYS_WITHOUT_GOALS,
    *("music_tf/Ant-v0", "music_tf/AntBlocks-v0", "music_tf/AntGoals-v0"),
    "music_tf/HalfCheetah-v0",
    *ROBOT_FAMILIES,
    *HIDDEN_GOALS,
    *("Pendulum-v1", "MountainCarContinuous-v0", "LunarLanderContinuous-v3"),
    *("BipedalWalker-v3", "BipedalWalkerHardcore-v3"),
    *(f"{robot}-v{version}" for robot, version in product(_ROBOTS, (5, 4))),
)
DISCRETE = (
    *("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "LunarLander-v3"),
    *("Blackjack-v1", "CliffWalking-v1", "FrozenLake-v1", "Taxi-v4"),
)
"""Tasks of gymnasium with discrete actions, which are refused with that reason."""
CONVEYOR, TWO_BLOCKS = "music_tf/FetchPushConveyor-v0", "music_tf/FetchPushTwo-v0"
ROBOTICS = (*FETCH, CONVEYOR, TWO_BLOCKS, *HAND, *POINT_MAZE, *ANT_MAZE)
WITH_GOALS = (*TOYS, *ROBOTICS, *PANDA)
KNOWN = (*WITH_GOALS, *WITHOUT_GOALS)
_OTHERS_OF_ROBOTICS = tuple(
    f"gymnasium_robotics:AdroitHand{task}{reward}-v1"
    for task, reward in product(("Door", "Hammer", "Pen", "Relocate"), ("", "Sparse"))
)
"""Proposed for an id alone, which would be taken for one whose columns are known."""

Value = TypeVar("Value")
_OF_MOST_ROBOTS = 1000
_STEPS: Mapping[str, int] = {
    **dict.fromkeys((*WITHOUT_GOALS, *ANT_MAZE), _OF_MOST_ROBOTS),
    "music_tf/Square-v0": 10,
    **dict.fromkeys((POINT_ROBOT, HALF_CIRCLE), 20),
    **dict.fromkeys(TOYS, 30),
    **dict.fromkeys((*FETCH, CONVEYOR, TWO_BLOCKS, *PANDA, "music_tf/UnitBox-v0"), 50),
    **dict.fromkeys(HAND, 100),
    **dict.fromkeys(("Pusher-v5", "Pusher-v4"), 100),
    **{stack: 100 for stack in PANDA if "Stack" in stack},
    **dict.fromkeys(("HandReach-v3", "HandReachDense-v3", "Reacher-v5", "Reacher-v4"), 50),
    **dict.fromkeys(("music_tf/Ant-v0", "music_tf/AntBlocks-v0", "music_tf/AntGoals-v0"), 200),
    **dict.fromkeys(ROBOT_FAMILIES, 200),
    "Pendulum-v1": 200,
    **dict.fromkeys(POINT_MAZE, 300),
    **{maze: 600 for maze in POINT_MAZE if "Medium" in maze},
    **{maze: 800 for maze in POINT_MAZE if "Large" in maze},
    **{maze: 700 for maze in ANT_MAZE if "UMaze" in maze or "Open" in maze},
    "MountainCarContinuous-v0": 999,
    "BipedalWalker-v3": 1600,
    "BipedalWalkerHardcore-v3": 2000,
}
EPISODE_STEPS: Mapping[str, int] = {
    **_STEPS,
    **{hidden: _STEPS[shown] for hidden, shown in HIDDEN_GOALS.items()},
}
"""Steps of an episode by id, as registered."""

ENV_ID = re.compile(r"-v\d+$")  # how one ends
_OWN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:(?:[\w-]+/)?[\w.-]+")


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Returns the candidate within two edits, the nearest and newest, in any letter case."""
    typed, most = name.lower().replace("-", "_")[:200], min(_MOST_EDITS, len(name) // 2)

    def edits(candidate: str) -> int:
        other = candidate.lower().replace("-", "_")
        changes = difflib.SequenceMatcher(None, typed, other, autojunk=False).get_opcodes()
        return sum(max(b - a, d - c) for kind, a, b, c, d in changes if kind != "equal")

    alike = [each for each in candidates if abs(len(each) - len(typed)) <= most]
    near = [(-count, each) for each in alike if (count := edits(each)) <= most]
    return max(near)[1] if near else None


def likely_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Returns a few names that hold all words of the typed one, else the nearest, if any is."""
    listed, words = list(dict.fromkeys(candidates)), re.findall("[a-z0-9]+", name.lower()[:200])
    enough = len(name) > FEW and bool(words)
    holding = [each for each in listed if enough and all(word in each.lower() for word in words)]
    return sorted(holding, key=len)[:FEW] or [each for each in (nearest(name, listed),) if each]


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Returns the line that proposes likely names, if there are any."""
    likely = likely_names(name, candidates)
    return f"\ndid you mean {' or '.join(likely)}?" if likely else ""


def few(names: Sequence[str], most: int = FEW) -> str:
    """Returns the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def without_module(env_id: str) -> str:
    return env_id.rpartition(":")[2]


def with_hidden_goal(env_id: str) -> str | None:
    """Returns the family that hides the goals of an environment, if there is one."""
    for hidden, dense in HIDDEN_GOALS.items():
        if is_one_of(env_id, (dense, dense.replace("Dense", ""))):
            return hidden
    return None


def is_one_of(env_id: str, ids: Iterable[str]) -> bool:
    """Whether an id is among others, whatever its version and module."""
    return _stem(env_id) in map(_stem, ids)


def _stem(env_id: str) -> str:
    return without_module(env_id).rpartition("-v")[0]


def episode_steps(env_id: str) -> int:
    return of_family(env_id, EPISODE_STEPS, _OF_MOST_ROBOTS)


def of_family(env_id: str, by_id: Mapping[str, Value], otherwise: Value) -> Value:
    return {_stem(key): value for key, value in by_id.items()}.get(_stem(env_id), otherwise)


def names_a_module(env_id: str) -> bool:
    return ":" in env_id


def is_local(env_id: str) -> bool:
    """Whether code of this process has registered an id, which no other process knows."""
    spec = getattr(sys.modules.get("gymnasium"), "registry", {}).get(env_id)
    if spec is None or is_one_of(env_id, KNOWN):
        return False
    maker = spec.entry_point
    module = maker.partition(":")[0] if isinstance(maker, str) else getattr(maker, "__module__", "")
    if module.startswith("gymnasium."):  # under an id of gymnasium's own, or of the user's
        return f'"{env_id}"' not in inspect.getsource(sys.modules["gymnasium.envs"])
    return not module.startswith(("gymnasium_", "ale_py", "music_tf", "panda_gym", "shimmy"))


def check_env_id(env_id: Any) -> str:
    """Returns the id that a user typed: a known one, `module:Id`, or one registered here."""
    if not isinstance(env_id, str):
        name = getattr(env_id, "__name__", type(env_id).__name__)
        name = name if name.isidentifier() else "make"  # a lambda
        raise UsageError(
            f"env_id: expected the id of an environment, got {env_id!r:.80}\nregister it: "
            f'gymnasium.register("{name}-v0", {name}, max_episode_steps=200), then '
            f'env_id="{name}-v0"'
        )
    if env_id in KNOWN or _OWN.fullmatch(env_id) or is_local(env_id):
        return env_id
    if is_one_of(env_id, DISCRETE):
        like = f"{env_id.rpartition('-v')[0]}Continuous"
        near = next((env for env in WITHOUT_GOALS if env.startswith(like)), "Pendulum-v1")
        raise UsageError(
            f"--env-id: expected a task with continuous actions, a bounded Box; those of {env_id} "
            f"are choices (Discrete)\nnearest: {near}"
        )
    if is_one_of(env_id, ("CarRacing-v3",)):
        raise UsageError(
            f"--env-id: expected observations that are a vector; those of {env_id} are images, "
            "which cannot be learned from\nnearest: BipedalWalker-v3"
        )
    listed = (*KNOWN, *_OTHERS_OF_ROBOTICS)
    short = {without_module(env).rpartition("/")[2]: env for env in listed}  # as remembered
    likely = next(iter(likely_names(env_id, (*short, *listed))), "")
    meant = _registered_beside(env_id) or short.get(likely, likely)
    hint = f"\ndid you mean {meant}?" if meant else ""
    raise UsageError(
        f"--env-id: unknown environment {env_id[:80]!r}{hint}\n"
        "your own environment goes in as module:Id, for example --env-id my_package:MyTask-v0; an "
        "id that a notebook registers is known there alone: put it into a module"
    )


def _registered_beside(env_id: str) -> str | None:
    """Looks for the id in `register(...)` calls of modules in the current folder."""
    typed = rf"(['\"])({re.escape(_stem(env_id) or env_id)}-v\d+)\1"
    for path in sorted(Path().glob("*.py")):
        with contextlib.suppress(OSError, UnicodeError):
            text = path.read_text(encoding="utf-8")
            is_module = path.stem == env_id.removesuffix(".py")
            match = re.search(r"(['\"])([\w.-]+-v\d+)\1" if is_module else typed, text)
            if match and "register" in text and path.stem.isidentifier():
                return f"{path.stem}:{match[2]}"
    return None
