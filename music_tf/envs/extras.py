"""Extras: named columns beside an observation, from `info` or from the user's functions.

Their sizes, and the entries of `info` that `compute_reward` and `compute_terminated` read, are
determined once, on the first environment.
"""

import contextlib
import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.names import few, suggestion
from music_tf.config.world import DESCRIPTOR, GOAL, READ, STRIDE, TIME, load_function
from music_tf.envs import simulator
from music_tf.envs.actions import as_declared
from music_tf.envs.endings import ends_at_goals
from music_tf.envs.registry import INFO, EnvironmentInfo, descriptor_of
from music_tf.errors import FROM_USERS, EnvironmentFault, UsageError, error_line
from music_tf.types import EnvSpec, all_finite

Found = TypeVar("Found")
Reader: TypeAlias = Callable[[Any], Any]
"""A user's function that reads a number, or several [D], from an unwrapped environment."""
_STEPS = 100
"""Most steps of the episode in which entries of `info` are looked for."""


class InfoEntry(NamedTuple):
    """An entry of `info` that is stored as numbers because `compute_reward` or ends read it."""

    like: Any
    """Its first value; later values have the same type and shape."""
    always: bool = True
    """Whether each step has it; else a further number says whether the step has it."""

    @property
    def size(self) -> int:
        return np.size(self.like) + (not self.always)

    def numbers(self, info: Mapping[str, Any], name: str) -> Any:
        """Returns the numbers of an entry, [size]; None if an entry that is always there lacks."""
        value = info.get(name)
        if self.always:
            return value if value is None else np.reshape(value, -1)
        return np.zeros(self.size) if value is None else np.append(np.reshape(value, -1), 1.0)

    def value(self, kept: npt.NDArray[Any]) -> Any:
        """Returns the entry of numbers [size], with its original type."""
        like, size = np.asarray(self.like), np.size(self.like)
        value = kept[:size].astype(like.dtype).reshape(like.shape)
        if isinstance(self.like, np.ndarray):
            return value
        if isinstance(self.like, np.generic):
            return value[()]
        plain = value.tolist()
        return tuple(plain) if isinstance(self.like, tuple) else plain

    def was_given(self, kept: npt.NDArray[Any]) -> bool:
        """Whether the step with the numbers [size] had the entry."""
        return self.always or bool(kept[-1])


class Extras(NamedTuple):
    """The extras of an environment."""

    sizes: Mapping[str, int] = {}
    """Size of each extra, in the order of their columns."""
    readers: Mapping[str, Reader | InfoEntry | None] = {}
    """How members read each, except achieved goals and times; None for an entry of `info`."""
    entries_read: Mapping[str, InfoEntry] = {}
    """Entries of `info` that `compute_reward` or `compute_terminated` reads."""
    played: bool = False
    """Whether the environment took steps to determine them."""


class RecordingInfo(dict[str, Any]):
    """An `info` that records which of its entries are read."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self.names: dict[str, None] = {}
        self.all_read = False

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(self._noted(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self._noted(name), default)

    def pop(self, name: str, *default: Any) -> Any:
        return super().pop(self._noted(name), *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        return super().setdefault(self._noted(name), default)

    def __or__(self, other: dict[str, Any]) -> Any:  # type: ignore[override]
        return self.copy() | other

    def __contains__(self, name: object) -> bool:
        self._noted(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        return self._with_all_noted(super().__iter__())

    def keys(self) -> Any:
        return self._with_all_noted(super().keys())

    def values(self) -> Any:
        return self._with_all_noted(super().values())

    def items(self) -> Any:
        return self._with_all_noted(super().items())

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def _noted(self, name: str) -> str:
        self.names[name] = None
        return name

    def _with_all_noted(self, result: Found) -> Found:
        self.all_read = True
        self.names |= dict.fromkeys(super().keys())
        return result


def find_extras(
    env_id: str, environment: gymnasium.Env[Any, Any], info: EnvironmentInfo, spec: EnvSpec
) -> Extras:
    """Determines the extras of an environment, for which that may play an episode."""
    names, more = read_of_info(environment, {})
    infos: list[Mapping[str, Any]] = []
    read = {source for source in info.extras.values() if not is_counted(source)}
    played = bool(names or more or read - {GOAL})
    if played:
        infos = _infos_of_an_episode(env_id, environment, _STEPS if names or more else 1)
        names = list(dict.fromkeys(n for each in infos for n in read_of_info(environment, each)[0]))
    entries = infos[0] if infos else {}
    sizes: dict[str, int] = {}
    readers: dict[str, Reader | InfoEntry | None] = {}
    for name, source in info.extras.items():
        option = "world.descriptor" if name == DESCRIPTOR and source != INFO else "world.extras"
        if source == GOAL:
            sizes[name] = len(_zero_goal(environment))
            if not sizes[name]:
                raise UsageError(
                    f"{option}: {GOAL} needs goals, and {env_id} has none\n"
                    "for example: --world.descriptor observation"
                )
        elif is_counted(source):
            sizes[name] = 1  # the size of a stride is set below
        elif source == INFO:
            if name not in entries:
                raise UsageError(
                    f"{option}: expected what a step of {env_id} has in its info, got {name!r}; "
                    f"it has {few(list(entries)) or 'nothing'}{suggestion(name, entries)}"
                )
            readers[name] = None
            sizes[name] = math.prod(_shape(f"{option}: info[{name!r}]", entries[name]))
        else:
            reader = readers[name] = load_function(source, option)
            shown = next((word for word, function in READ.items() if function == source), source)
            sizes[name] = _size(reader, environment, f"{option}: {shown}", env_id)
    columns, extra = descriptor_of(info, spec)
    strides = [name for name, source in info.extras.items() if STRIDE.fullmatch(source)]
    sizes |= dict.fromkeys(strides, sizes.get(extra, len(columns)))
    kept = _stored_entries(env_id, infos, names, info)
    sizes |= {name: entry.size for name, entry in kept.items()}
    return Extras(sizes, {**readers, **kept}, kept, played)


def _stored_entries(
    env_id: str, infos: Sequence[Mapping[str, Any]], names: Iterable[str], info: EnvironmentInfo
) -> dict[str, InfoEntry]:
    """Returns entries of `info` that rewards or ends read; one that no step had is a number."""
    kept = {}
    for name in names:
        values = [each[name] for each in infos if each.get(name) is not None]
        if not values:
            if name not in info.extras:
                kept[name] = InfoEntry(0.0, always=False)
            continue
        if info.extras.get(name, INFO) != INFO:
            raise UsageError(
                f"world.extras: {name}: rewards read info[{name!r}], expected another name"
            )
        _shape(f"{env_id}: info[{name!r}], which its rewards read", values[0])
        kept[name] = InfoEntry(values[0], name in info.extras or len(values) == len(infos))
    return kept


def is_counted(source: str) -> bool:
    """Whether an extra follows from the steps of its episode, without reading the environment."""
    return source == TIME or STRIDE.fullmatch(source) is not None


class Strides:
    """Mean change per step of a descriptor [D] over the last steps, in each environment."""

    def __init__(self, count: int, size: int, steps: int) -> None:
        self._places = np.zeros([count, steps + 1, size])
        self._steps = steps

    def __call__(
        self, index: int, elapsed: int, place: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Returns the change since `steps` steps ago, or since the start, divided by `steps`."""
        places, cells = self._places[index], self._steps + 1
        if not elapsed:
            places[:] = place
        places[elapsed % cells] = place
        stride: npt.NDArray[np.float64] = (place - places[(elapsed + 1) % cells]) / self._steps
        return stride


def _size(reader: Reader, environment: gymnasium.Env[Any, Any], what: str, env_id: str) -> int:
    try:
        value = reader(environment.unwrapped)
    except UsageError as error:
        raise UsageError(f"{what} on {env_id}: {error}") from error
    except FROM_USERS as error:
        raise UsageError(f"{what} fails on {env_id}: {error_line(error)}") from error
    return math.prod(_shape(f"{what} on {env_id}", value))


def read_of_info(
    environment: gymnasium.Env[Any, Any], entries: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Returns the entries that rewards and ends of goals read, and whether more may be read."""
    names: dict[str, None] = {}
    goal, more = _zero_goal(environment), False
    unwrapped: Any = environment.unwrapped
    methods = [unwrapped.compute_reward] if len(goal) else []
    if methods and ends_at_goals(environment):
        methods.append(unwrapped.compute_terminated)
    flags = [name for name, value in entries.items() if isinstance(value, (bool, np.bool_))]
    variants = [  # flags as they are, set, and unset: an entry may be read only if one is true
        entries,
        *({**entries, **dict.fromkeys(flags, on)} for on in (True, False) if flags),
    ]
    for method, desired, variant in itertools.product(
        methods, (goal, as_declared(goal + 1.0, goal.dtype)), variants
    ):
        info = RecordingInfo(variant)
        try:
            with np.errstate(all="ignore"):
                method(goal.copy(), desired.copy(), info)
        except FROM_USERS:  # reported later, when rewards are computed
            more = True
        if info.all_read:  # copying reads entries that are not needed, such as texts
            info.names = {n: None for n in info.names if _can_be_kept(variant.get(n))}
        names |= info.names
        more |= info.all_read
    return list(names), more


def _zero_goal(environment: gymnasium.Env[Any, Any]) -> npt.NDArray[np.float64]:
    space = environment.observation_space
    if not isinstance(space, gymnasium.spaces.Dict):
        return np.zeros(0)
    return as_declared(np.zeros(space["desired_goal"].shape or 0), space["desired_goal"].dtype)


def _infos_of_an_episode(
    env_id: str, environment: gymnasium.Env[Any, Any], steps: int
) -> list[Mapping[str, Any]]:
    """Returns the `info` of each step of an episode: the middle action, then random ones."""
    space: Any = environment.action_space
    generator = np.random.default_rng(0)
    infos: list[Mapping[str, Any]] = []
    action = 0.5 * space.low + 0.5 * space.high  # whole numbers would overflow
    try:
        environment.reset(seed=0)
        for _ in range(steps):
            with np.errstate(all="ignore"):
                _, _, terminated, truncated, info = environment.step(action.astype(space.dtype))
            infos.append({name: copy.copy(value) for name, value in info.items()})
            if terminated or truncated:
                break
            action = generator.uniform(space.low, space.high)
    except FROM_USERS as error:
        if not infos:
            raise EnvironmentFault(
                f"{env_id}: reset or step fails ({error_line(error)})\nsee music-tf check-env"
            ) from error
    simulator.take_warnings()
    return infos


def _can_be_kept(value: Any) -> bool:
    with contextlib.suppress(UsageError):
        return bool(_shape("", value) is not None)
    return False


def _shape(what: str, value: Any) -> tuple[int, ...]:
    came = type(value).__name__
    with contextlib.suppress(TypeError, ValueError):
        numbers = np.asarray(value, np.float64)
        if numbers.ndim <= 1 and numbers.size and all_finite(numbers):
            return numbers.shape
        came = f"shape {numbers.shape}" if all_finite(numbers) else f"{value!r:.80}"
    raise UsageError(f"{what}: expected a finite number, or several of one axis, got {came}")
