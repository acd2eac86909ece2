"""Named columns beside an observation: entries of `info`, and what functions of the user's read.

How long each is, and which entries `compute_reward` and `compute_terminated` ask for, is found out
once, when the first environment has been made.
"""

import contextlib
import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.names import few, suggestion
from music_tf.config.world import DESCRIPTOR, GOAL, READ, STRIDE, TIME, load_function
from music_tf.envs import simulator
from music_tf.envs.endings import ends_at_goals
from music_tf.envs.registry import INFO, EnvironmentInfo, descriptor_of
from music_tf.errors import FROM_USERS, EnvironmentFault, UsageError
from music_tf.types import EnvSpec, all_finite

Reader: TypeAlias = Callable[[Any], Any]
"""What a function of the user's reads from an unwrapped environment: a number, or several [D]."""


_STEPS = 100
"""Most steps of the episode in which entries of `info` are looked for."""


class InfoEntry(NamedTuple):
    """An entry of `info` that is kept because rewards or ends read it, and how it comes back."""

    like: Any
    """The first one that came: later ones have its type and shape."""
    always: bool = True
    """Whether each step has it; else one number more says so."""

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return np.size(self.like) + (not self.always)

    def numbers(self, info: Mapping[str, Any], name: str) -> Any:
        """Returns what is kept of an `info`, [size]; None where it is always there, but not now."""
        value = info.get(name)
        if self.always:
            return value if value is None else np.reshape(value, -1)
        if value is None:
            return np.zeros(self.size)
        return np.append(np.reshape(value, -1), 1.0)

    def value(self, kept: npt.NDArray[Any]) -> Any:
        """Returns what numbers [size] stand for, of the type that it had."""
        like, size = np.asarray(self.like), np.size(self.like)
        value = kept[:size].astype(like.dtype).reshape(like.shape)
        if isinstance(self.like, np.ndarray):
            return value
        if isinstance(self.like, np.generic):
            return value[()]
        plain = value.tolist()
        return tuple(plain) if isinstance(self.like, tuple) else plain

    def there(self, kept: npt.NDArray[Any]) -> bool:
        """Whether the step had it whose numbers [size] these are."""
        return self.always or bool(kept[-1])


class Extras(NamedTuple):
    """What is kept beside each state."""

    sizes: Mapping[str, int] = {}
    """Numbers of each extra, in the order in which they are kept."""
    readers: Mapping[str, Reader | InfoEntry | None] = {}
    """What members read, so neither achieved goals nor times; None for an entry of `info`."""
    asked: Mapping[str, InfoEntry] = {}
    """Entries of `info` that `compute_reward` or `compute_terminated` reads."""
    played: bool = False
    """Whether the environment took steps to find that out."""


class Asked(dict[str, Any]):
    """An `info` that remembers which of its entries somebody asked for."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self.names: dict[str, None] = {}
        self.all_asked = False

    def __getitem__(self, name: str) -> Any:
        """Returns an entry."""
        self.names[name] = None
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an entry, or what counts where there is none."""
        self.names[name] = None
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        """Takes an entry out."""
        self.names[name] = None
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Returns an entry, or enters what counts where there is none."""
        self.names[name] = None
        return super().setdefault(name, default)

    def __or__(self, other: dict[str, Any]) -> Any:  # type: ignore[override]
        """Returns another one with all entries, and those of the other."""
        return self.copy() | other

    def __contains__(self, name: object) -> bool:
        """Whether there is such an entry."""
        self.names[str(name)] = None
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        """Goes through all names, so that all have been asked for."""
        self._ask_for_all()
        return super().__iter__()

    def keys(self) -> Any:
        """Returns all names."""
        self._ask_for_all()
        return super().keys()

    def values(self) -> Any:
        """Returns all entries."""
        self._ask_for_all()
        return super().values()

    def items(self) -> Any:
        """Returns all entries with their names."""
        self._ask_for_all()
        return super().items()

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def _ask_for_all(self) -> None:
        self.all_asked = True
        self.names |= dict.fromkeys(super().keys())


def find_extras(
    env_id: str, environment: gymnasium.Env[Any, Any], info: EnvironmentInfo, spec: EnvSpec
) -> Extras:
    """Returns what is kept beside each state of an environment; it may take a step for that.

    Of the specification only what is known without extras counts.

    Raises:
        UsageError: The environment gives no such entry, or a function no numbers of one axis.
        EnvironmentFault: The environment does not step.
    """
    asked, more = asked_of_info(environment, {})
    infos: list[Mapping[str, Any]] = []
    read = {source for source in info.extras.values() if not is_counted(source)}
    played = bool(asked or more or read - {GOAL})
    if played:
        infos = _infos_of_an_episode(env_id, environment, _STEPS if asked or more else 1)
        asked = list(
            dict.fromkeys(n for each in infos for n in asked_of_info(environment, each)[0])
        )
    entries = infos[0] if infos else {}
    sizes: dict[str, int] = {}
    readers: dict[str, Reader | InfoEntry | None] = {}
    for name, source in info.extras.items():
        option = "world.descriptor" if name == DESCRIPTOR and source != INFO else "world.extras"
        if source == GOAL:
            sizes[name] = len(_no_goal(environment))
            if not sizes[name]:
                raise UsageError(
                    f"{option}: {GOAL} needs goals, and {env_id} has none\n"
                    "for example: --world.descriptor observation"
                )
        elif is_counted(source):
            sizes[name] = 1  # of the time; strides follow
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
            sizes[name] = _size(reader, environment, f"{option}: {_called(source)}", env_id)
    columns, extra = descriptor_of(info, spec)
    strides = [name for name, source in info.extras.items() if STRIDE.fullmatch(source)]
    sizes |= dict.fromkeys(strides, sizes.get(extra, len(columns)))
    kept = _kept(env_id, infos, asked, info)
    sizes |= {name: entry.size for name, entry in kept.items()}
    return Extras(sizes, {**readers, **kept}, kept, played)


def _kept(
    env_id: str, infos: Sequence[Mapping[str, Any]], asked: Iterable[str], info: EnvironmentInfo
) -> dict[str, InfoEntry]:
    """Returns those entries of `info` that were asked for and are there in some step.

    Raises:
        UsageError: One is no number, or has the name of another extra.
    """
    kept = {}
    for name in asked:
        found = [each[name] for each in infos if each.get(name) is not None]
        if not found:
            continue
        if info.extras.get(name, INFO) != INFO:
            raise UsageError(
                f"world.extras: {name}: rewards read info[{name!r}], expected another name"
            )
        _shape(f"{env_id}: info[{name!r}], which its rewards read", found[0])
        kept[name] = InfoEntry(found[0], name in info.extras or len(found) == len(infos))
    return kept


def is_counted(source: str) -> bool:
    """Whether an extra follows from the steps of its episode, and no environment is asked."""
    return source == TIME or STRIDE.fullmatch(source) is not None


class Strides:
    """How far a descriptor [D] has moved over the last steps, in each environment of a batch."""

    def __init__(self, count: int, size: int, steps: int) -> None:
        """Takes how many environments there are, D, and over how many steps a stride is."""
        self._places = np.zeros([count, steps + 1, size])
        self._steps = steps

    def __call__(
        self, index: int, elapsed: int, place: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Returns the way since so many steps before, or since the start, over as many steps.

        So it is zero at the start of an episode, and small soon after.
        """
        places, cells = self._places[index], self._steps + 1
        if not elapsed:
            places[:] = place
        places[elapsed % cells] = place
        stride: npt.NDArray[np.float64] = (place - places[(elapsed + 1) % cells]) / self._steps
        return stride


def _called(source: str) -> str:
    """Returns how a user knows a function that reads the environment."""
    return next((word for word, function in READ.items() if function == source), source)


def _size(reader: Reader, environment: gymnasium.Env[Any, Any], what: str, env_id: str) -> int:
    """Returns how many numbers a function reads from an environment."""
    try:
        value = reader(environment.unwrapped)
    except UsageError as error:
        raise UsageError(f"{what} on {env_id}: {error}") from error
    except FROM_USERS as error:  # whatever a function of the user's raises
        text = f"{type(error).__name__}: {str(error)[:200]}"
        raise UsageError(f"{what} fails on {env_id}: {text}") from error
    return math.prod(_shape(f"{what} on {env_id}", value))


def asked_of_info(
    environment: gymnasium.Env[Any, Any], entries: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Returns what `compute_reward` and `compute_terminated` ask `info` for, and if it may be more.

    It may where one of them fails, or goes through all that there is. They are called for a goal
    that is met and for one that is missed; with entries as they are, and with all that are true or
    false set, then unset: one may be read only where another is true.
    """
    names: dict[str, None] = {}
    goal, more = _no_goal(environment), False
    unwrapped: Any = environment.unwrapped
    methods = [unwrapped.compute_reward] if len(goal) else []
    if methods and ends_at_goals(environment):
        methods.append(unwrapped.compute_terminated)
    flags = [name for name, value in entries.items() if isinstance(value, (bool, np.bool_))]
    variants = [
        entries,
        *({**entries, **dict.fromkeys(flags, on)} for on in (True, False) if flags),
    ]
    for method, desired, variant in itertools.product(methods, (goal, goal + 1.0), variants):
        info = Asked(variant)
        try:
            with np.errstate(all="ignore"):
                method(goal.copy(), desired.copy(), info)
        except FROM_USERS:  # whatever it throws is told where its rewards count
            more = True
        if info.all_asked:  # a copy too reads what it does not need, words for example
            info.names = {n: None for n in info.names if _can_be_kept(variant.get(n))}
        names |= info.names
        more |= info.all_asked
    return list(names), more


def _no_goal(environment: gymnasium.Env[Any, Any]) -> npt.NDArray[np.float64]:
    """Returns a goal of zeros, of size 0 where there are no goals."""
    space = environment.observation_space
    if not isinstance(space, gymnasium.spaces.Dict):
        return np.zeros(0)
    return np.zeros(space["desired_goal"].shape or 0)


def _infos_of_an_episode(
    env_id: str, environment: gymnasium.Env[Any, Any], steps: int
) -> list[Mapping[str, Any]]:
    """Returns the `info` of each step of an episode, or of the first ones.

    The first action is the middle of its bounds, the others are random.
    """
    space: Any = environment.action_space
    generator = np.random.default_rng(0)
    infos: list[Mapping[str, Any]] = []
    action = 0.5 * (space.low + space.high)
    try:
        environment.reset(seed=0)
        for _ in range(steps):
            with np.errstate(all="ignore"):
                _, _, terminated, truncated, info = environment.step(action.astype(space.dtype))
            infos.append({name: copy.copy(value) for name, value in info.items()})
            if terminated or truncated:
                break
            action = generator.uniform(space.low, space.high)
    except FROM_USERS as error:  # whatever the environment throws
        if not infos:
            raise EnvironmentFault(
                f"{env_id}: reset or step fails ({type(error).__name__}: {str(error)[:200]})\n"
                "see music-tf check-env"
            ) from error
    simulator.take_warnings()
    return infos


def _can_be_kept(value: Any) -> bool:
    """Whether a value is a finite number, or several in a row."""
    with contextlib.suppress(UsageError):
        return bool(_shape("", value) is not None)
    return False


def _shape(what: str, value: Any) -> tuple[int, ...]:
    """Returns the shape of one number or several in a row, and refuses anything else."""
    came = type(value).__name__
    with contextlib.suppress(TypeError, ValueError):
        numbers = np.asarray(value, np.float64)
        if numbers.ndim <= 1 and numbers.size and all_finite(numbers):
            return numbers.shape
        came = f"shape {numbers.shape}" if all_finite(numbers) else f"{value!r:.80}"
    raise UsageError(f"{what}: expected a finite number, or several of one axis, got {came}")
