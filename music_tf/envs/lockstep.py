"""Several copies of one environment, stepped in lockstep in one process."""

import contextlib
import copy
import dataclasses
import functools
import itertools
import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.changes import OPTION
from music_tf.config.names import POINT_ROBOT, few
from music_tf.config.settings import EnvConfig
from music_tf.config.world import DISCOUNT, STRIDE, TIME, World
from music_tf.envs import simulator
from music_tf.envs.actions import action_bounds, as_declared
from music_tf.envs.changes import Changes
from music_tf.envs.distance import DistanceReward, distance_reward
from music_tf.envs.endings import ends_at_goals, ends_together
from music_tf.envs.extras import Strides, find_extras, is_counted
from music_tf.envs.making import GOAL_KEYS, dropped, make_environment
from music_tf.envs.member import Outcome, PlainMember, Row, answers_wrongly, one_line
from music_tf.envs.registry import INFO, described, descriptor_of
from music_tf.envs.specification import describe
from music_tf.envs.viewer import Viewer
from music_tf.errors import (
    FROM_USERS,
    EnvironmentFault,
    MusicError,
    NumbersFault,
    Stopped,
    UsageError,
    error_line,
)
from music_tf.process.signals import keep_signal_handlers, stop_requested
from music_tf.process.watchdog import heartbeat
from music_tf.types import (
    Array,
    BoolArray,
    Declared,
    EnvSpec,
    Floats,
    all_finite,
    finite,
    instead_of_numbers,
    to_bounds,
)

_LOGGER = logging.getLogger(__name__)
_RESET_ATTEMPTS = 2
_LOW, _HIGH = np.float32(-1.0), np.float32(1.0)
_COMPARED = 1000
"""Number of pairs of goals on which a reward is tried."""
_USUAL_FRAMES, _MOST_FRAMES = 25, 1000
TEST_TASKS = "sample_test_tasks"
"""Method by which a family may draw tasks of evaluation apart from those of training."""
_BROKEN = Outcome(reward=0.0, terminated=False, truncated=True, success=False)


class Observations(NamedTuple):
    """First states of episodes."""

    observation: Array  # [E, O]
    achieved_goal: Array  # [E, G]
    desired_goal: Array  # [E, G]
    extras: Mapping[str, Array]  # name -> [E, D]


class StepResults(NamedTuple):
    """Results of one step of several environments, in the order of the given indices."""

    observation: Array  # [E, O]
    achieved_goal: Array  # [E, G]
    desired_goal: Array  # [E, G]
    extras: Mapping[str, Array]  # name -> [E, D]
    reward: Array  # [E]
    terminated: BoolArray  # [E], the task ended
    truncated: BoolArray  # [E], the time is over, or the environment is broken
    success: BoolArray  # [E]
    faults: list[str | None]  # [E], a fault; its row repeats the state before


class LockstepEnvs:
    """A batch of environments without automatic resets; the caller resets them."""

    def __init__(
        self,
        env_id: str,
        count: int,
        settings: EnvConfig | None = None,
        accept: Callable[[EnvSpec, int], None] | None = None,  # given sizes and bytes of the first
        world: World | None = None,  # before the known or registered meaning of columns
    ) -> None:
        self._settings = settings or EnvConfig()
        self._env_id, self._stages = env_id, self._settings.stages
        self._worlds = [0] * count
        environment = make_environment(env_id, self._settings)  # its module may register a world
        beginning = simulator.Beginning(environment.unwrapped)  # extras may be sought in an episode
        self.info = described(env_id, world or World(), environment)
        if self._settings.skills:
            extras, bounds = {**self.info.extras, DISCOUNT: INFO}, (-math.inf, math.inf)
            self.info = dataclasses.replace(
                self.info, extras=extras, arm=None, reward_bounds=bounds
            )
        self._bounds = action_bounds(env_id, environment)
        more = few(dropped(environment))
        self.notice = more and (
            f"{env_id} also observes {more}, which nothing learns from: it may join `observation`"
        )
        """A line for the user before a run begins, if any."""
        spec = describe(env_id, environment, self.info)
        self.nondeterministic = bool(environment.spec and environment.spec.nondeterministic)
        self.extras = find_extras(env_id, environment, self.info, spec)
        self.spec = dataclasses.replace(spec, extras=self.extras.sizes)
        self.declared = Declared.of(spec, *self._bounds)
        first = self._member_of(environment, beginning)
        self._members: list[PlainMember | None] = [first]
        if accept is not None:
            accept(self.spec, simulator.bytes_of(first.environment))
        for _ in range(count - 1):
            if stop_requested():
                raise Stopped("stopped while environments were made")
            self._members.append(self._make_member())
            heartbeat()
        self._faults: list[str | None] = [None] * count
        self._broke = self._has_reset = False
        self._elapsed = np.zeros(count, np.int64)
        self._used = np.zeros(count, np.bool_)
        self._used[0] = self.extras.played
        goal, readers = self.spec.goal_dim, self.extras.readers
        counted = {name: source for name, source in self.info.extras.items() if is_counted(source)}
        sizes = {
            name: size for name, size in self.spec.extras.items() if name in {*readers, *counted}
        }
        ends = np.cumsum([self.spec.observation_dim, goal, goal, *sizes.values()]).tolist()
        slices = [slice(start, end) for start, end in itertools.pairwise([0, *ends])]
        named = dict(zip(sizes, slices[3:], strict=True))
        self._parts = [*slices[:3], *(named.get(name, slices[1]) for name in self.spec.extras)]
        self._table = np.zeros((count, ends[-1]))
        self._times = [named[name] for name, source in counted.items() if source == TIME]
        columns, extra = descriptor_of(self.info, self.spec)
        place = self._parts[3 + list(self.spec.extras).index(extra)] if extra else list(columns)
        self._strides = [
            (place, named[name], Strides(count, sizes[name], int(match[1])))
            for name, source in counted.items()
            if (match := STRIDE.fullmatch(source))
        ]
        self._rows = [Row(*self._split(row)) for row in self._table]
        self._viewer = Viewer(env_id, self._settings)

    def __len__(self) -> int:
        return len(self._members)

    def set_world(self, stage: int | Sequence[int]) -> None:
        """Chooses the stages, from 0, in which the environments or the first ones reset next."""
        last, chosen = max(0, len(self._stages) - 1), stage
        if isinstance(chosen, int):
            chosen = [chosen] * len(self)
        for number in chosen:
            if not 0 <= number <= last:
                raise UsageError(f"{OPTION}: expected a stage from 0 to {last}, got {number}")
        self._worlds[: len(chosen)] = chosen

    def reset(
        self,
        indices: Sequence[int],
        seeds: Sequence[int],
        goals: Array | None = None,
        tasks: Floats | None = None,
    ) -> Observations:
        """Starts episodes by their seeds, under `goals` [E, G] and in `tasks` [E, D] if given."""
        for position, (index, seed) in enumerate(zip(indices, seeds, strict=True)):
            shown = None if goals is None or not self.spec.goal_dim else goals[position]
            goal = None if shown is None else shown.astype(np.float64)
            self._reset_one(index, int(seed), goal, None if tasks is None else tasks[position])
        keep_signal_handlers()
        return Observations(*self._split(self._table[indices].astype(np.float32)))

    def step(self, actions: Array, indices: Sequence[int]) -> StepResults:
        """Applies an action in [-1, 1]^A to each environment; `faults` tells which ones failed."""
        scaled = self.scaled(actions)
        rows = np.asarray(indices)
        before = self._table.take(rows, axis=0)
        outcomes = [
            self._step_one(index, action) for index, action in zip(indices, scaled, strict=True)
        ]
        after = self._table.take(rows, axis=0)
        if not all_finite(after) or any(self._faults[index] for index in indices):
            for position, index in enumerate(indices):
                bad = self._bad_numbers(index)
                if bad and self._faults[index] is None:
                    self._report(index, bad)
                if self._faults[index] is not None:  # restore its row
                    self._table[index] = before[position]
                    outcomes[position] = _BROKEN
            after = self._table.take(rows, axis=0)
        faults = [self._faults[index] for index in indices]
        reward, terminated, truncated, success = zip(*outcomes, strict=True)
        rewards = np.array(reward, np.float32)
        self._refuse_outside(rewards[[fault is None for fault in faults]])
        return StepResults(
            *self._split(after.astype(np.float32)),
            reward=rewards,
            terminated=np.array(terminated, np.bool_),
            truncated=np.array(truncated, np.bool_),
            success=np.array(success, np.bool_),
            faults=faults,
        )

    def goal_reward(
        self, achieved: Array, desired: Array, extras: Mapping[str, Array] = MappingProxyType({})
    ) -> Array:
        """Returns the environment's own reward [N] for goals [N, G], of which it gets copies."""
        together = self.info.batched_reward
        values = self._results_for_goals("compute_reward", together, achieved, desired, extras)
        rewards: Array = values.astype(np.float32)
        self._refuse_outside(rewards)
        return rewards

    def _refuse_outside(self, rewards: Array) -> None:
        low, high = self.info.reward_bounds
        outside = (rewards < low) | (rewards > high)
        if outside.any():
            raise EnvironmentFault(
                f"{self._env_id}: reward {rewards[outside][0]:g} lies outside {low:g}..{high:g}, "
                "the bounds known for its id, or seen before training\n"
                "begin a run with its own: --world.reward LOW HIGH"
            )

    def goal_terminated(
        self, achieved: Array, desired: Array, extras: Mapping[str, Array] = MappingProxyType({})
    ) -> BoolArray:
        """Whether steps [N] to achieved goals [N, G] end an episode under desired ones."""
        together = self._ends_together
        ends = self._results_for_goals("compute_terminated", together, achieved, desired, extras)
        return ends.astype(np.bool_)

    @property
    def ends_at_goals(self) -> bool:
        """Whether `goal_terminated` can be true, and episodes end there."""
        ends = self._settings.success_ends is not False
        return ends and self.spec.goal_dim > 0 and ends_at_goals(self.environment)

    @functools.cached_property
    def _ends_together(self) -> bool:
        return ends_together(self._some_member().environment, self.spec.goal_dim)

    def _results_for_goals(
        self,
        name: str,
        together: bool,
        achieved: Array,
        desired: Array,
        extras: Mapping[str, Array],
    ) -> np.ndarray:
        """Returns the results [N] of a method for goals [N, G], computed at once or one by one."""
        environment: Any = self._some_member().environment
        method: Any = getattr(environment.unwrapped, name)
        read, space = self.extras.entries_read, environment.observation_space
        kinds = [space[key].dtype for key in GOAL_KEYS[1:]]
        goals = map(as_declared, (achieved, desired), kinds)  # copies
        try:
            with np.errstate(all="ignore"):  # the results are checked
                if together and not read:
                    values = np.asarray(method(*goals, {}))
                else:
                    single = []
                    for row, pair in enumerate(zip(*goals, strict=True)):
                        beside = ((name, entry, extras[name][row]) for name, entry in read.items())
                        info = {
                            name: e.value(kept) for name, e, kept in beside if e.was_given(kept)
                        }
                        # the method may return an array that it overwrites at the next call
                        single.append(np.array(method(*pair, info)))
                    values = np.array(single).reshape(-1)
        except FROM_USERS as error:
            raise EnvironmentFault(
                f"{self._env_id}: {name} of goals {achieved.shape} and infos "
                f"{{{', '.join(read)}}} fails: {error_line(error)}\nsee music-tf check-env"
            ) from error
        if came := instead_of_numbers(values, achieved.shape[:1]):
            raise EnvironmentFault(
                f"{self._env_id}: {name} of goals {achieved.shape} must give "
                f"{achieved.shape[:1]} finite numbers, got {came}\nsee music-tf check-env"
            )
        return values

    def distance_reward(self) -> DistanceReward | None:
        """Returns `goal_reward` as a threshold on a distance, if they agree around it."""
        reward = distance_reward(self._some_member().environment)
        if reward is None or self.extras.entries_read:
            return None
        shape = (_COMPARED, self.spec.goal_dim)
        achieved, way = np.random.default_rng(0).standard_normal((2, *shape))
        way *= np.linspace(0.0, 2.0, _COMPARED)[:, None] / np.linalg.norm(way, axis=1)[:, None]
        goals = [v.astype(np.float32) for v in (achieved, achieved + reward.threshold * way)]
        try:
            same = np.array_equal(reward(*goals), self.goal_reward(*goals))
            if self.ends_at_goals:
                near = reward(*goals) == np.float32(reward.near)
                reward = reward._replace(ends=np.array_equal(near, self.goal_terminated(*goals)))
        except EnvironmentFault:  # raised again when rewards are needed
            same = False
        return reward if same else None

    def sample_tasks(
        self, count: int, generator: np.random.Generator, method: str = "sample_tasks"
    ) -> Floats:
        """Draws tasks [count, D] twice: every rank and each resume must draw the same."""
        if not self.is_family:
            raise UsageError(
                "env_id: expected a family of tasks, with the methods sample_tasks and set_task, "
                f"got {self._env_id}\nfor example: --env-id {POINT_ROBOT}"
            )
        draw, same = self.environment.get_wrapper_attr(method), copy.deepcopy(generator)
        expected = (
            f"env_id: {method} of {self._env_id} must give [{count}, D] numbers for {count} tasks"
        )
        try:
            tasks, again = (np.array(draw(count, each), np.float64) for each in (generator, same))
        except FROM_USERS as error:
            raise UsageError(f"{expected}, but fails: {one_line(error)}") from error
        if tasks.ndim != 2 or len(tasks) != count or not tasks.shape[1]:  # noqa: PLR2004
            raise UsageError(f"{expected}, got {list(tasks.shape)}")
        if not all_finite(tasks):
            raise UsageError(f"{expected}, got one that is not finite")
        if not np.array_equal(tasks, again):
            raise UsageError(f"{expected} of its generator alone, got others from an equal one")
        return tasks

    def render(self, index: int, *shown: Array) -> npt.NDArray[np.uint8]:
        """Returns an image [height, width, 3] of an environment; `shown` as of `Viewer.render`."""
        member = self._members[index] or self._some_member()
        return self._viewer.render(member.environment, *shown)

    def open_window(self) -> None:
        """Lets `render` draw in the environment's own window."""
        self._viewer = Viewer(self._env_id, self._settings, "human")

    @property
    def steps_per_second(self) -> float:
        """Steps per simulated second, as the environment declares by `render_fps`."""
        declared = self._some_member().environment.metadata.get("render_fps")
        if isinstance(declared, int | float | np.integer) and 0 < declared <= _MOST_FRAMES:
            return float(declared)
        return _USUAL_FRAMES

    def close(self) -> None:
        for member in self._members:
            if member is not None:
                member.environment.close()
        self._viewer.close()

    def mute_faults(self) -> None:
        """Logs the first environment fault at INFO instead of warning."""
        self._broke = True

    @property
    def environment(self) -> gymnasium.Env[Any, Any]:
        """One of the environments, for a look at it between two episodes."""
        return self._some_member().environment

    def begin(self, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Resets `environment` as a member does, and returns what it returned."""
        return self._some_member().begin(seed)

    @property
    def says_success(self) -> bool:
        return any(member is not None and member.says_success for member in self._members)

    @property
    def is_family(self) -> bool:
        return all(map(self.environment.has_wrapper_attr, ("sample_tasks", "set_task")))

    def _make_member(self) -> PlainMember:
        environment = make_environment(self._env_id, self._settings)
        return self._member_of(environment, simulator.Beginning(environment.unwrapped))

    def _member_of(
        self, environment: gymnasium.Env[Any, Any], beginning: simulator.Beginning
    ) -> PlainMember:
        """Returns a member for an environment, in the present stage of the first one."""
        readers = self.extras.readers
        member: PlainMember | None = None
        fast = not readers and not self._settings.skills  # the fast path has no `info`
        if "mujoco" in sys.modules and fast:
            from music_tf.envs.fetch import fetch_member  # noqa: PLC0415  (needs MuJoCo)

            member = fetch_member(environment)
        if member is None:
            member = PlainMember(environment, self._settings.success_ends, readers, beginning)
        if self._stages:
            member.changes = Changes(environment, self._stages)
            member.changes.apply(self._worlds[0])
        return member

    def _some_member(self) -> PlainMember:
        for member in self._members:
            if member is not None:
                return member
        fresh = self._members[0] = self._make_member()
        return fresh

    def _reset_one(self, index: int, seed: int, goal: Floats | None, task: Floats | None) -> None:
        text = ""
        kind: type[MusicError] = EnvironmentFault
        for _ in range(_RESET_ATTEMPTS):
            member = self._members[index]
            remake = self._settings.remake and self._used[index]
            if member is None or self._faults[index] is not None or remake:
                self._members[index] = None
                with contextlib.suppress(*FROM_USERS):  # closing a broken environment may fail
                    if member is not None:
                        member.environment.close()
                member = self._members[index] = self._make_member()
                self._faults[index] = None
            self._used[index] = True
            try:
                member.start(seed, goal, self._rows[index], self._worlds[index], task)
                text = self._bad_numbers(index)
            except UsageError:
                raise
            except FROM_USERS as error:
                text = one_line(error)
                if answers_wrongly(error) and not self._has_reset:
                    kind = UsageError
            if not text:
                self._set_time(index, 0)
                self._update_strides(index)
                self._has_reset = True
                return
            self._faults[index] = text
        raise kind(f"{self._env_id}: reset with seed {seed} fails twice: {text}")

    def _step_one(self, index: int, action: npt.NDArray[np.float32]) -> Outcome:
        member = self._members[index]
        if self._faults[index] is not None or member is None:
            return _BROKEN
        self._set_time(index, self._elapsed[index] + 1)
        try:
            outcome = member.step(action, self._rows[index])
        except FROM_USERS as error:
            self._report(index, one_line(error))
            return _BROKEN
        if warnings := member.warnings():
            self._report(index, f"MuJoCo warns: {'; '.join(warnings)}")
        elif not finite(outcome.reward):
            self._report(index, f"reward: expected a finite number, got {outcome.reward}")
        elif not finite(outcome.reward * self.spec.max_episode_steps):
            expected = f"a number whose sum over {self.spec.max_episode_steps} steps is finite"
            self._report(index, f"reward: expected {expected}, got {outcome.reward}")
        self._update_strides(index)
        return outcome

    def _set_time(self, index: int, steps: int) -> None:
        self._elapsed[index] = steps
        for column in self._times:
            self._table[index, column] = steps

    def _update_strides(self, index: int) -> None:
        row = self._table[index]
        for place, column, stride in self._strides:
            row[column] = stride(index, int(self._elapsed[index]), row[place])

    def _report(self, index: int, text: str) -> None:
        step = int(self._elapsed[index])
        fault = self._faults[index] = f"{self._env_id}, environment {index}, step {step}: {text}"
        if self._broke:
            _LOGGER.info("%s", fault)
        else:
            _LOGGER.warning("%s; its episode ends there, further ones are in the log", fault)
        self._broke = True

    def _bad_numbers(self, index: int) -> str:
        row = self._rows[index]
        extras = {f"extras[{name!r}]": values for name, values in row.extras.items()}
        for key, values in (*zip(GOAL_KEYS, row[:3], strict=True), *extras.items()):
            usable = finite(values)
            if not usable.all():
                first = int(np.argmin(usable))
                return f"{key}[{first}]: expected a finite number, got {values[first]}"
        return ""

    def _split(self, rows: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        observation, achieved, desired, *extras = [rows[..., part] for part in self._parts]
        return observation, achieved, desired, dict(zip(self.spec.extras, extras, strict=True))

    def scaled(self, actions: Array) -> np.ndarray:
        """Clips actions [N, A] to [-1, 1] and maps them to the space of the environment."""
        expected = (len(actions), self.spec.action_dim)
        if actions.shape != expected:
            raise ValueError(f"actions: expected shape {expected}, got {actions.shape}")
        if not all_finite(actions):
            where = [int(axis) for axis in np.argwhere(~finite(actions))[0]]
            raise NumbersFault(
                f"{self._env_id}: action{where} is {actions[tuple(where)]}; "
                "the policy gives non-finite actions",
                {"action": actions},
            )
        clipped = np.minimum(np.maximum(actions, _LOW), _HIGH).astype(np.float32, copy=False)
        return to_bounds(clipped, self._bounds)
