"""What the columns of an observation mean, and functions that read more from an environment.

`config.json` stores a world, with functions as `module:function`. A module that only a file names
is not imported: the user must type, register or allow its function.
"""

import dataclasses
import importlib
import os
import pkgutil
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Annotated, Any, ClassVar, TypeAlias

from music_tf.config.fields import Settings, Where
from music_tf.config.names import suggestion, without_module
from music_tf.errors import FROM_USERS, ModuleNotAllowed, UsageError, error_line
from music_tf.hints import fits, hints_of

GOAL, ALL = "achieved_goal", "observation"
"""Descriptors that have a name."""
TIME = "time"
"""Source of an extra: the number of steps of its episode so far."""
STRIDE = re.compile("stride:([1-9][0-9]{0,5})")
"""Source of an extra: the mean change of the descriptor per step, over the last steps."""
READ = {name: f"music_tf.envs.descriptors:{name}" for name in ("xy", "plane", "foot_contacts")}
"""Descriptors that a function of the package reads from a robot."""
NAMES = (GOAL, ALL, *READ)
ALLOW_IMPORT = "MUSIC_TF_ALLOW_IMPORT"
"""Variable of the modules that files may name, as in `my_robot,lab`; only a shell sets it."""
MAIN = "__main__"
"""The module of the started program, which another process cannot import."""
OWN = "music_tf/"
"""Prefix of the names of the package's own extras."""
DESCRIPTOR, DISCOUNT = f"{OWN}descriptor", f"{OWN}discount"
"""Extras: a descriptor of skills that is not in the columns, and the factor on the discount of a
step, which an environment gives in its `info`."""
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", re.ASCII)
_SOURCE = rf"{TIME}|{STRIDE.pattern}|{_FUNCTION.pattern}"
_EXTRA = re.compile(rf"{DISCOUNT}|[A-Za-z_][\w.-]*(=({_SOURCE}))?", re.ASCII)
_SIDES, _AXES = 4, 3
_TRUSTED: set[str] = set(READ.values())
_REGISTERED: "dict[str, World]" = {}


def is_function(word: str) -> bool:
    return _FUNCTION.fullmatch(word) is not None


def _once(columns: tuple[Any, ...]) -> bool:
    return all(type(column) in (int, str) for column in columns) and len(set(columns)) == len(
        columns
    )


def _is_support(numbers: tuple[float, ...]) -> bool:
    low, high = numbers[:2], numbers[2:_SIDES]
    if len(numbers) not in (0, _SIDES + 1, _SIDES + 2):
        return False
    usable = fits(numbers, tuple[float, ...])
    ordered = usable and all(a < b for a, b in zip(low, high, strict=True))
    return ordered and all(tolerance >= 0 for tolerance in numbers[_SIDES + 1 :])


def _are_bounds(numbers: tuple[float, ...]) -> bool:
    usable = fits(numbers, tuple[float, ...])
    return not numbers or (len(numbers) == 2 and usable and numbers[0] <= numbers[1])  # noqa: PLR2004


def _is_descriptor(words: tuple[int | str, ...]) -> bool:
    named = [word for word in words if isinstance(word, str)]
    readable = all(word in NAMES or _FUNCTION.fullmatch(word) for word in named)
    return _once(words) and readable and (not named or len(words) == 1)


def _are_extras(words: tuple[str, ...]) -> bool:
    readable = all(isinstance(word, str) and _EXTRA.fullmatch(word) for word in words)
    return readable and _once(tuple(word.partition("=")[0] for word in words))


Columns: TypeAlias = Annotated[tuple[int, ...], Where("each once", _once)]
Place: TypeAlias = Annotated[
    tuple[int, ...],
    Where(
        "one, two or three different ones: x, x and y, or x, y and z",
        lambda columns: len(columns) <= _AXES and _once(columns),
    ),
]
Axes: TypeAlias = Annotated[
    tuple[int, ...],
    Where(
        "three different ones for x, y and z",
        lambda columns: len(columns) in (0, _AXES) and _once(columns),
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class World(Settings):
    """What the columns of an observation mean. An empty field keeps the environment's own meaning.

    Python code may also give lists and arrays, functions themselves, and a mapping of names to
    functions as `extras`.
    """

    name: ClassVar[str] = "world"

    agent: Columns = ()
    """Columns of the robot itself; empty: the environment's own."""
    surrounding: Columns = ()
    """Columns of its surroundings; empty: the environment's own."""
    object: Place = ()
    """Columns of the object's x, y and z, or of x and y in a plane, or of its place on a line:
    behaviour metrics are about it, in the unit of these columns."""
    gripper: Place = ()
    """Columns of the gripper's place, as many as of the object's and in the same order."""
    arm: Axes = ()
    """Numbers of an action, counted from 0, that move the gripper by x, y and z: with them
    `evaluate --full` also measures scripted shoves."""
    support: Annotated[
        tuple[float, ...],
        Where(
            "LOW_X LOW_Y HIGH_X HIGH_Y HEIGHT and perhaps TOLERANCE, each LOW below its HIGH",
            _is_support,
        ),
    ] = ()
    """The surface that carries an object of which x, y and z are known, in metres. HEIGHT is the z
    of the centre of an object at rest on it, TOLERANCE how far that may be off (0.02)."""
    reward: Annotated[tuple[float, ...], Where("LOW HIGH", _are_bounds)] = ()
    """The lowest and highest task reward of a step; a run ends as soon as it computes another.
    Empty: as the environment is known, or as an episode before training shows, if rewards have two
    values, and `agent.return_clip` is auto or `replay.reach` pays them."""
    descriptor: Annotated[
        tuple[int | str, ...],
        Where(f"columns or one name: {', '.join(NAMES)}, module:function", _is_descriptor),
    ] = ()
    """What skills are distinguished by: columns, achieved_goal, observation, where a robot is (xy;
    plane where it is held to a line or swims) or which of its feet touch the floor (foot_contacts).
    Or what a function of yours reads from the environment after each step, as module:function.
    Empty: the surroundings, or the whole observation where the environment has none."""
    extras: Annotated[
        tuple[str, ...],
        Where(
            "each NAME, NAME=time, NAME=stride:STEPS or NAME=module:function, each name once",
            _are_extras,
        ),
    ] = ()
    """Values kept beside each state for reward terms, in one of four forms:
    NAME, the entry NAME of `info`, such as slip;
    NAME=time, the number of steps of its episode so far;
    NAME=stride:20, the mean change of the descriptor in each of the last 20 steps;
    NAME=module:function, what your function returns for the unwrapped environment after each step,
    a number or several, such as tip=my_robot:tip.
    The entry music_tf/discount of `info` multiplies the discount of the step that brought it."""

    def __post_init__(self) -> None:
        for name in hints_of(type(self)):
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, _plain(value))
            except TypeError as error:
                raise UsageError(
                    f"world.{name}: expected columns or names, got {value!r}"
                ) from error
        for word in self.descriptor:
            if isinstance(word, str) and ":" not in word and word not in NAMES:
                raise UsageError(
                    f"world.descriptor: expected columns or one name: {', '.join(NAMES)}, "
                    f"module:function; got {word[:80]!r}{suggestion(word, NAMES)}"
                )
        super().__post_init__()
        if bool(self.agent) != bool(self.surrounding):
            raise UsageError(
                "--world.agent, --world.surrounding: expected both or neither, "
                f"got {(self.agent, self.surrounding)}"
            )
        for first, second in (("agent", "surrounding"), ("gripper", "object")):
            if both := sorted(set(getattr(self, first)) & set(getattr(self, second))):
                raise UsageError(
                    f"world.{second}: expected other columns than world.{first}, both have {both}"
                )

    def over(self, other: "World") -> "World":
        """Returns this world, with its empty fields taken from another one."""
        stated = {name: getattr(self, name) for name in hints_of(World) if getattr(self, name)}
        return dataclasses.replace(other, **stated)

    def functions(self) -> tuple[str, ...]:
        """Returns the functions that it names, as `module:function`."""
        words = (*map(str, self.descriptor), *(word.partition("=")[2] for word in self.extras))
        return tuple(filter(is_function, words))


def register_world(env_id: str, world: World) -> None:
    """Sets the world of an environment for all later runs of this process.

    Settings of a command line or a configuration have priority over it.

    Raises:
        UsageError: The argument is no world.
    """
    if not isinstance(world, World):
        raise UsageError(f"register_world: expected a music_tf.World, got {world!r:.80}")
    trust(world.functions())
    _REGISTERED[without_module(env_id)] = world


def registered_world(env_id: str) -> World:
    return _REGISTERED.get(without_module(env_id), World())


def trust(functions: Iterable[str]) -> None:
    """Allows functions to be imported by name, since the user typed or allowed them."""
    _TRUSTED.update(functions)


def allowed_in_shell(word: str) -> bool:
    """Whether the user's shell allows the module of `module:name`, or a package that it lies in."""
    module = word.rpartition(":")[0]
    listed = os.environ.get(ALLOW_IMPORT, "").split(",")
    return any(f"{module}.".startswith(f"{name.strip()}.") for name in listed if name.strip())


def not_allowed(setting: str, what: str, word: str, more: str = "") -> ModuleNotAllowed:
    """Returns the refusal of a module that only a file names, with the ways to allow it."""
    listed = filter(None, (os.environ.get(ALLOW_IMPORT), word.rpartition(":")[0][:80]))
    return ModuleNotAllowed(
        f"{setting}: a file may not import a module, and it asks for {word[:80]!r}\n"
        f"if that {what} is yours, add --allow-import{more}\n"
        f"or for all commands of this shell: export {ALLOW_IMPORT}={shlex.quote(','.join(listed))}"
    )


def load_function(word: str, option: str) -> Callable[..., Any]:
    """Returns the function `module:function` of a world; messages name `option`."""
    if word not in _TRUSTED and not allowed_in_shell(word):
        raise not_allowed(option, "function", word, ", in Python allow_import=True")
    return named_in_module(word, option)


def named_in_module(word: str, option: str) -> Callable[..., Any]:
    """Returns the function or class `module:name` of a setting; messages name `option`."""
    module, _, names = word.partition(":")
    member: Any = import_own(module, option)
    for name in names.split("."):
        if not hasattr(member, name):
            raise UsageError(
                f"{option}: there is no {names[:80]!r} in {module[:80]}"
                f"{suggestion(name, vars(member))}"
            )
        member = getattr(member, name)
    if not callable(member):
        raise UsageError(f"{option}: expected a function, got {word[:80]} = {member!r:.80}")
    function: Callable[..., Any] = member
    return function


def class_in_module(word: str, base: type, option: str) -> Any:
    """Returns the class `module:Class` of a setting, which has to derive from `base`."""
    kind = named_in_module(word, option)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise UsageError(
            f"{option}: expected a class derived from {base.__module__}:{base.__name__}, got "
            f"{word[:80]}"
        )
    return kind


def import_own(module: str, option: str) -> ModuleType:
    """Imports a user's module, if necessary from the current folder; messages name `option`."""
    if module == MAIN:
        raise UsageError(
            f"{option}: expected a module that another process can import, got {MAIN}, the program "
            "that was started\nput what it defines into a module of its own, such as my_module.py"
        )
    if not (module.startswith("music_tf.") or {"", os.getcwd()} & set(sys.path)):
        sys.path.append(os.getcwd())  # as `python -m` has it
    try:
        return importlib.import_module(module)
    except FROM_USERS as error:
        cure = ""
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            cure = "\nit must be installed or stand in the current folder"
            cure += suggestion(module, (info.name for info in pkgutil.iter_modules([os.getcwd()])))
        raise UsageError(
            f"{option}: the module {module[:80]!r} cannot be imported: {error_line(error)}{cure}"
        ) from error


def _plain(value: Any) -> tuple[Any, ...]:
    """Returns a field as it is stored, with functions by name."""
    if callable(value):
        return (_name_of(value),)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping):
        words = {name: _name_of(item) if callable(item) else item for name, item in value.items()}
        return tuple(f"{name}={word}" if word else name for name, word in words.items())
    return tuple(item.item() if hasattr(item, "item") else item for item in value)


def _name_of(function: Callable[..., Any]) -> str:
    """Returns the `module:function` of a function and trusts it, since the caller holds it."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    word = f"{module}:{name}"
    if module == MAIN or not _FUNCTION.fullmatch(word):
        raise UsageError(
            f"world: expected a function that another process can import, got {function!r:.80}\n"
            "define it by def in a module of its own, such as my_world.py"
        )
    _TRUSTED.add(word)
    return word
