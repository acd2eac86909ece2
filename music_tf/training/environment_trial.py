"""An environment that is tried before a run, and the episodes of random actions that checks read.

Replay recomputes the reward of each step under relabelled goals. If `compute_reward` differs from
the reward of `step` under the step's own goal, it is wrong under all goals.
"""

import contextlib
import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from music_tf.config.names import KNOWN, is_one_of
from music_tf.config.settings import EnvConfig, NormalizerConfig, ReplayConfig
from music_tf.config.world import World
from music_tf.envs import simulator
from music_tf.envs.endings import as_ended
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import find_spec
from music_tf.envs.member import one_line, show_goal
from music_tf.errors import FROM_USERS, EnvironmentFault
from music_tf.replay.buffer import Shard
from music_tf.replay.rows import Picks, explained_by_rounding, reward_gaps, transition
from music_tf.rollout import Conditions, play
from music_tf.types import Array, BoolArray, Episodes

SEED = 0
OTHER_SEEDS = range(1, 6)
LONGEST = 1000
"""Maximum number of steps of an episode."""
AROUND = 50
"""Steps that are played under another goal."""
_SOON = 3
"""Step whose achieved goal becomes that goal."""
_DISTANCES, _DIRECTIONS = (-3.0, 3.0), 3
"""Decimal logarithms of the smallest and largest distance at which goals are tried, and in how many
further directions from each achieved goal."""


class RawStep(NamedTuple):
    """What reset or a step of the environment returned, copied at once."""

    observation: Mapping[str, Any]
    reward: Any
    terminated: bool
    info: Any
    returned: Any
    """The observation itself, which the environment may change later."""


class EnvironmentTrial:
    """An environment and episodes in it, each played when first read, under a seed of its own."""

    def __init__(
        self,
        env_id: str,
        settings: EnvConfig | None = None,
        world: World | None = None,
        normalizer: NormalizerConfig | None = None,
        shows_goals: bool = True,
    ) -> None:
        """Makes the environment; `shows_goals` tells whether policies see its goals."""
        settings, longest = settings or EnvConfig(), find_spec(env_id).max_episode_steps
        if (settings.max_episode_steps or longest or 0) > LONGEST:
            settings = dataclasses.replace(settings, max_episode_steps=LONGEST)
        self.env_id, self.settings = env_id, settings
        self.normalizer, self.shows_goals = normalizer or NormalizerConfig(), shows_goals
        self.envs = LockstepEnvs(env_id, 1, settings, world=world)
        self.envs.mute_faults()  # training will report what breaks
        self.has_goals = self.envs.spec.goal_dim > 0
        self.is_known = is_one_of(env_id, KNOWN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(*FROM_USERS):
            self.envs.close()

    # --- episodes of random actions --------------------------------------------------------------

    @functools.cached_property
    def episode(self) -> Episodes:
        """An episode as replay stores it, [1, T, ...]."""
        generator = np.random.default_rng(SEED)

        def act(*_: Array) -> Array:
            return _random_actions(generator, 1, self.envs.spec.action_dim)

        return play(self.envs, act, Conditions(np.array([SEED]), None, np.ones((1, 1), "f")), None)

    @property
    def length(self) -> int:
        return int(self.episode.length[0])

    @functools.cached_property
    def raw(self) -> Sequence[RawStep]:
        """An episode of these actions, with what the environment itself returned."""
        spec, generator = self.envs.spec, np.random.default_rng(SEED)
        actions = _random_actions(generator, spec.max_episode_steps, spec.action_dim)
        return self.record(actions, SEED)

    @functools.cached_property
    def at_goal(self) -> Sequence[RawStep]:
        """The same actions under a goal that they meet; empty if goals cannot be set."""
        try:
            steps = self._recorded(AROUND, self.near_goal)
        except EnvironmentFault:  # user code may not expect such a goal
            return ()
        return steps if same(steps[1].observation["desired_goal"], self.near_goal) else ()

    @functools.cached_property
    def first_steps(self) -> tuple[RawStep, RawStep, RawStep] | None:
        """The first step of the episode, that again, and under another goal; None if not set."""
        goals = (self.envs.reset([0], [seed]).desired_goal[0] for seed in OTHER_SEEDS)
        others = (goal for goal in goals if not np.array_equal(goal, self.episode.desired_goal[0]))
        goal = next(others, None)
        if goal is None:  # all episodes have the same one
            return None
        try:
            first, again = (self._recorded(1)[-1] for _ in range(2))
            under = self._recorded(1, goal.astype(float))[-1]
        except EnvironmentFault:  # user code may not expect such a goal
            return None
        return (first, again, under) if same(under.observation["desired_goal"], goal) else None

    def _recorded(self, steps: int, goal: Any = None) -> list[RawStep]:
        return self.record(self.episode.action[0, :steps], int(self.episode.seed[0]), goal)

    def record(self, actions: Array, seed: int, goal: Any = None) -> list[RawStep]:
        """Plays actions [T, A] in the environment itself, under `goal` if it can be set."""
        steps: list[RawStep] = []
        try:
            for step in self._played(actions, seed, goal):
                steps.append(step)
        except FROM_USERS as error:
            text = f"{self.env_id}: step {len(steps)}: {one_line(error)}"
            raise EnvironmentFault(text if steps else one_line(error)) from error
        simulator.take_warnings()
        return steps

    def _played(self, actions: Array, seed: int, goal: Any) -> Iterator[RawStep]:
        environment: Any = self.envs.environment
        observation, info = self.envs.begin(seed)
        yield _copied(observation, 0.0, False, info)
        if goal is not None:
            show_goal(environment.unwrapped, goal)
            task: Any = getattr(environment.unwrapped, "task", None)
            if hasattr(task, "goal"):  # as panda-gym keeps it
                task.goal = goal.copy()
        for action in self.envs.scaled(actions):
            with np.errstate(all="ignore"):
                result = environment.step(action)
            observation, reward, terminated, truncated, info = as_ended(result)
            yield _copied(observation, reward, bool(terminated), info)
            if terminated or truncated:
                break

    # --- goals and rewards -----------------------------------------------------------------------

    @property
    def achieved(self) -> Any:
        """Achieved goals of the episode, [T + 1, G]."""
        return self.episode.achieved_goal[0, : self.length + 1]

    @property
    def near_goal(self) -> Any:
        """A goal that the episode meets after a few steps, [G]."""
        return self.achieved[min(_SOON, self.length)].astype(float)

    @property
    def places_at_goal(self) -> Any:
        """Achieved goals of the episode for the steps of `at_goal`, [N, G]."""
        return self.achieved[1 : len(self.at_goal)]

    @functools.cached_property
    def repeats(self) -> bool:
        """Whether `at_goal` reached the same states as the episode."""
        pairs = zip(self.at_goal[1:], self.places_at_goal, strict=True)
        return all(same(step.observation["achieved_goal"], place) for step, place in pairs)

    @functools.cached_property
    def replayed(self) -> tuple[Array, Array]:
        """The reward that replay computes for each step, and that of the step, [T] each."""
        spec, length = self.envs.spec, self.length
        shard = Shard(spec, 1, ReplayConfig(capacity=spec.max_episode_steps))
        shard.add(self.episode, np.random.default_rng(SEED))
        first, steps = np.zeros(length, np.int64), np.arange(length)
        drawn = shard.look_up(Picks(first, steps, np.full(length, -1)))
        self.midst_of_another_episode()
        return transition(drawn, 0.0, self.envs.goal_reward).reward, drawn.reward

    @functools.cached_property
    def gaps(self) -> BoolArray:
        """Where these two differ by more than rounding explains, [T]."""
        computed, paid = self.replayed
        return self.gaps_under(self.episode.desired_goal[0], self.achieved[1:], paid, computed)

    def gaps_under(self, goal: Any, places: Array, paid: Array, computed: Array) -> BoolArray:
        """Returns where rewards [N] differ by more than rounded goals [G], [N, G] explain."""
        gaps = reward_gaps(paid, computed)
        if gaps.any():
            method = functools.partial(self.under_goal, self.envs.goal_reward, goal)
            pairs = places, np.broadcast_to(goal.astype(places.dtype), places.shape)
            gaps &= ~explained_by_rounding(method, pairs, paid, computed)
        return gaps

    def under_goal(self, method: Callable[..., np.ndarray], goal: Any, places: Array) -> np.ndarray:
        """Applies `goal_reward` or `goal_terminated` to steps [N, G] under another goal, [N]."""
        self.midst_of_another_episode()
        extras = {
            name: values[0, 1 : 1 + len(places)] for name, values in self.episode.extras.items()
        }
        return method(places, np.broadcast_to(goal.astype(places.dtype), places.shape), extras)

    def midst_of_another_episode(self) -> None:
        """Resets to another goal, since replay computes rewards during other episodes."""
        self.envs.reset([0], OTHER_SEEDS[:1])

    def reward_bounds(self) -> tuple[float, float] | None:
        """Returns the values of a reward with two values; None for others and for known bounds."""
        if all(map(math.isfinite, self.envs.info.reward_bounds)):
            return None
        generator, achieved = np.random.default_rng(SEED), self.achieved[1:]
        extras = {name: rows[0, 1 : self.length + 1] for name, rows in self.episode.extras.items()}
        way = generator.standard_normal(achieved.shape)
        far = np.logspace(*_DISTANCES, len(achieved)) / np.linalg.norm(way, axis=1)
        tried = [achieved, np.roll(achieved, 1, axis=0), achieved + far[:, None] * way]
        tried += [achieved + generator.permutation(far)[:, None] * way for _ in range(_DIRECTIONS)]
        for seed in OTHER_SEEDS:
            goal = self.envs.reset([0], [seed]).desired_goal
            tried.append(np.repeat(goal, len(achieved), axis=0))
        rewards = []
        for goals in tried:
            with contextlib.suppress(EnvironmentFault):  # a goal may lie outside of the map
                rewards.append(self.envs.goal_reward(achieved, goals.astype(np.float32), extras))
        values = np.unique([*self.replayed, *rewards])
        if len(values) != 2:  # noqa: PLR2004
            return None
        return _outwards(values[0], -np.inf), _outwards(values[1], np.inf)


def same(goal: Any, other: Any) -> bool:
    """Whether goals are equal in single precision."""
    return bool(np.array_equal(np.asarray(goal, np.float32), np.asarray(other, np.float32)))


def _random_actions(generator: np.random.Generator, steps: int, size: int) -> Array:
    return generator.uniform(-1.0, 1.0, (steps, size)).astype(np.float32)


def _copied(observation: Any, reward: Any, terminated: bool, info: Any) -> RawStep:
    """Copies an observation, or its only vector; the environment may overwrite its arrays."""
    parts = observation if isinstance(observation, Mapping) else {"observation": observation}
    copies = {name: np.array(value) for name, value in parts.items()}
    if isinstance(info, Mapping):
        info = {name: copy.copy(value) for name, value in info.items()}
    return RawStep(copies, copy.copy(reward), terminated, info, observation)


def _outwards(reward: Any, end: float) -> float:
    """Returns a float32 reward, moved towards `end` by its possible rounding error."""
    whole = float(reward).is_integer()
    return float(reward if whole else np.nextafter(np.float32(reward), np.float32(end)))
