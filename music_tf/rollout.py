"""Plays episodes with a policy, and draws their seeds, goals and conditions."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.conditions import continuous_conditions
from music_tf.config.settings import Config, ExplorationConfig
from music_tf.envs.lockstep import LockstepEnvs, Observations, StepResults
from music_tf.errors import EnvironmentFault
from music_tf.process.watchdog import heartbeat
from music_tf.randomness import reset_seeds, stream
from music_tf.types import Array, BoolArray, EnvSpec, Episodes, IntArray, Reach

MAX_ATTEMPTS = 4
"""Tries of an episode in which the environment fails: one, and three retries."""
_NEAR = 1.4
"""Distance to the object, in `Reach.within`, up to which no hand is led to it."""

Policy: TypeAlias = Callable[[Array, Array, Array, Array], Array]
"""Maps observation [E, O], goal [E, G (+ H)], skill [E, K] and noise [E, A] to actions [E, A]."""


class Conditions(NamedTuple):
    """Initial conditions of a batch of episodes."""

    seeds: IntArray  # [E], of the environment resets
    goals: Array | None  # [E, G]; None: the environments' own
    skills: Array  # [E, K], the condition of the policy: one-hot or continuous
    tasks: npt.NDArray[np.float64] | None = None  # [E, D], of a family; None: unchanged
    moving: Array | None = None  # [T + 1, G], a goal seen instead, where it is after the step

    def along(self, moving: Array) -> "Conditions":
        return self._replace(goals=np.repeat(moving[:1], len(self.seeds), axis=0), moving=moving)


class ConditionSampler:
    """Draws goals and conditions with a generator of each worker, on any number of ranks alike."""

    def __init__(self, config: Config, goal_dim: int) -> None:
        self._config = config
        self._goal_dim = goal_dim
        self._decks: dict[int, list[int]] = {}
        self.prior: npt.NDArray[np.float64] | None = None
        """Probabilities [K] of one-hot conditions with the sampler `random`; None: uniform."""

    def begin_epoch(self) -> None:
        """Drops the remaining stratified skills, so that a resumed run is exact."""
        self._decks = {}

    def begin_cycle(self, cycle: int) -> None:
        """Assigns stratified skills to whole episodes of a cycle, one for each environment."""
        config = self._config
        if config.condition.sampler == "stratified" and config.collect.steps is None:
            shuffled = stream(config.seed, "rollout/strata", 0, cycle)
            deck = shuffled.permutation(config.condition_size)
            dealt = np.resize(deck, [config.workers, config.rollouts])
            self._decks = {worker: skills.tolist() for worker, skills in enumerate(dealt)}

    def begin_episodes(self, generator: np.random.Generator, envs: IntArray) -> Conditions:
        """Draws reset seeds, then conditions, for environments `envs` [E] of one worker."""
        config, size = self._config, self._config.condition_size
        seeds, goals = reset_seeds(generator, len(envs)), None
        if config.goals == "zero":
            goals = np.zeros([len(envs), self._goal_dim], np.float32)
        if config.condition.kind != "one_hot":
            drawn = continuous_conditions(config.condition, generator, len(envs))
            return Conditions(seeds, goals, drawn)
        if config.condition.sampler == "tiled":
            chosen = envs % size
        elif config.condition.sampler == "stratified":
            chosen = np.array([self._dealt(env // config.rollouts, generator) for env in envs])
        else:
            chosen = generator.choice(size, size=len(envs), p=self.prior)
            if config.pinned_skill is not None:
                chosen = np.full(len(envs), config.pinned_skill)
        return Conditions(seeds, goals, np.eye(size, dtype=np.float32)[chosen])

    def _dealt(self, worker: int, generator: np.random.Generator) -> int:
        deck = self._decks.setdefault(worker, [])
        if not deck:
            deck += generator.permutation(self._config.condition_size).tolist()
        return deck.pop(0)


class Candidates(NamedTuple):
    """Random actions of which exploration takes the best one in each state."""

    actions: Array  # [T, E, N, A], in [-1, 1]
    score: Callable[[Array, Array], Array]
    """Maps states [B, O] and actions [B, N, A] to scores [B, N]. Scores are rounded to a
    thousandth, so that last bits, which depend on the number of ranks, seldom decide."""
    rows: int
    """Number of episodes of a worker, the batch size of `score`, which changes last bits."""

    def best(self, observation: Array, step: int, wanted: BoolArray) -> Array:
        """Returns the best actions [E, A] in states [E, O], for the `wanted` episodes [E]."""
        best = np.zeros_like(self.actions[step, :, 0])
        for start in range(0, len(wanted), self.rows):
            some = start + np.flatnonzero(wanted[start : start + self.rows])
            if len(some):
                tried = self.actions[step, some]
                chosen = np.round(self.score(observation[some], tried), 3).argmax(axis=-1)
                best[some] = tried[np.arange(len(some)), chosen]
        return best


class Leads(NamedTuple):
    """Drawn steps of exploration that head for the object while the hand is far away."""

    reach: Reach
    drawn: BoolArray  # [T, E]

    def __call__(self, goal: Array, step: int, observation: Array) -> Array:
        """Returns goals [E, G + H], of the task or a place of the hand."""
        reach = self.reach
        hand, thing = (observation[:, list(columns)] for columns in (reach.hand, reach.object))
        far = np.linalg.norm(hand - thing, axis=-1) > _NEAR * reach.within
        return reach.goals(goal, thing, self.drawn[step] & far)


class Perturbation(NamedTuple):
    """Random numbers for exploration in all steps of E episodes."""

    gaussian: Array  # [T, E, A], added to the policy's action
    replaced: BoolArray  # [T, E], where a random action replaces it
    uniform: Array  # [T, E, A], the random action, in [-1, 1]
    policy: Array  # [T, E, A], standard normal noise of a stochastic policy
    candidates: Candidates | None = None
    """Replace the uniform actions, if there are any."""
    leads: Leads | None = None
    """Changes the goals under which the policy acts."""

    @classmethod
    def adding(cls, actions: Array) -> "Perturbation":
        """Returns one that adds given actions [T, E, A] and draws nothing."""
        nothing, never = np.zeros_like(actions), np.zeros(actions.shape[:2], np.bool_)
        return cls(actions, never, nothing, nothing)

    def __call__(self, action: Array, step: int, observation: Array) -> Array:
        noisy = np.clip(action + self.gaussian[step], -1.0, 1.0)
        replaced, uniform = self.replaced[step], self.uniform[step]
        if self.candidates is not None:
            uniform = self.candidates.best(observation, step, replaced)
        return np.asarray(np.where(replaced[:, None], uniform, noisy))


def perturbation(
    config: ExplorationConfig,
    generators: Sequence[np.random.Generator],
    shape: tuple[int, int, int],
) -> Perturbation:
    """Draws exploration from the generator of each worker; `shape` is (T, its episodes, A)."""
    steps, episodes, _ = shape
    parts = []
    for generator in generators:
        gaussian = generator.standard_normal(shape, np.float32) * np.float32(config.noise)
        replaced = generator.random((steps, episodes)) < config.random_probability
        uniform = generator.uniform(-1.0, 1.0, shape).astype(np.float32)
        policy = generator.standard_normal(shape, np.float32)
        if config.random_hold > 1.0:
            let_go = 1.0 / config.random_hold
            chance = config.random_probability * let_go
            # equally many random steps begin and end, so that their share stays the same
            begins = chance / (1.0 - config.random_probability + chance)
            drawn = generator.random((2, steps, episodes))
            replaced = drawn[0] < begins
            replaced[0] = drawn[0, 0] < config.random_probability
            for step in range(1, steps):
                goes_on = replaced[step - 1] & (drawn[1, step] >= let_go)
                replaced[step] |= goes_on
                uniform[step, goes_on] = uniform[step - 1, goes_on]
        parts.append((gaussian, replaced, uniform, policy))
    whole = [np.concatenate(part, axis=1) for part in zip(*parts, strict=True)]
    return Perturbation(whole[0], whole[1], whole[2], whole[3])


def play(
    envs: LockstepEnvs, policy: Policy, conditions: Conditions, explore: Perturbation | None
) -> Episodes:
    """Plays one episode in each environment; one that fails is played again with the next seed."""
    played = blank(envs.spec, conditions.skills, envs.spec.max_episode_steps)
    pending = list(range(len(conditions.seeds)))
    for _ in range(MAX_ATTEMPTS):
        faults = _attempt(envs, policy, conditions, explore, played, pending)
        conditions = conditions._replace(seeds=(conditions.seeds + 1) % 2**31)
        pending = sorted(faults)
        if not pending:
            return padded(played)
    raise EnvironmentFault(
        f"{MAX_ATTEMPTS} tries at one episode failed, the last with\n{faults[pending[0]]}"
    )


class OpenEpisodes:
    """Episodes over several calls of T steps; every n steps a new condition begins a new part."""

    def __init__(
        self, envs: LockstepEnvs, skills: int, steps: int, every: int | None = None
    ) -> None:
        count = len(envs)
        self._envs = envs
        self._steps = steps
        self._part = blank(envs.spec, np.zeros([count, skills], np.float32), steps)
        self._open = np.zeros(count, np.bool_)
        self._every = every or 2**62  # more steps than any episode has
        self._age = np.zeros(count, np.int64)
        self._spoiled = np.zeros(count, np.int64)

    @property
    def unfinished(self) -> int:
        return int(self._open.sum())

    def cut(self) -> None:
        """Ends all episodes: the next step of every environment begins a new one."""
        self._open[:], self._part.length[:] = False, 0  # also of a cycle that a fault ended

    def play(
        self, policy: Policy, begin: Callable[[int], Conditions], explore: Perturbation
    ) -> tuple[list[list[Episodes]], BoolArray]:
        """Takes T steps each; returns parts by environment, and which ended episodes succeeded."""
        part, rows = self._part, list(range(len(self._envs)))
        parts = [[part.rows(0, 0)] for _ in rows]  # without rows, for joins of none
        succeeded: list[bool] = []
        for step in range(self._steps):
            for env in np.flatnonzero(~self._open | (self._age % self._every == 0)).tolist():
                parts[env] += self._start(env, begin(env))
            at = part.length.copy()
            observation = part.observation[rows, at]
            chosen = policy(observation, part.desired_goal, part.skill, explore.policy[step])
            action = explore(chosen, step, observation)
            results = self._envs.step(action, rows)
            heartbeat()
            part.action[rows, at], part.reward[rows, at] = action, results.reward
            _note_state(part, rows, at + 1, results)
            part.terminated[:], part.success[:] = results.terminated, results.success
            part.succeeded[:] |= results.success
            part.truncated[:] = results.truncated & ~results.terminated
            part.length[:] += 1
            self._age += 1
            for env in np.flatnonzero(results.terminated | results.truncated).tolist():
                self._open[env] = False
                fault = results.faults[env]
                if fault is None:
                    self._spoiled[env] = 0
                    succeeded.append(bool(results.success[env]))
                else:
                    part.length[env] -= 1
                    part.truncated[env] = False
                    self._spoiled[env] += 1
                    if self._spoiled[env] >= MAX_ATTEMPTS:
                        text = f"{MAX_ATTEMPTS} episodes in a row failed, the last with\n{fault}"
                        raise EnvironmentFault(text)
                parts[env] += self._taken_from(env)
        for env in np.flatnonzero(self._open).tolist():
            parts[env] += self._taken_from(env)
        return parts, np.array(succeeded, np.bool_)

    def _start(self, env: int, conditions: Conditions) -> list[Episodes]:
        """Begins an episode or a new condition in it; returns the part before, if there is one."""
        part = self._part
        before = self._taken_from(env)
        part.skill[env] = conditions.skills[0]
        if self._open[env]:
            return before
        first = self._envs.reset([env], conditions.seeds.tolist(), conditions.goals)
        part.desired_goal[env] = first.desired_goal
        part.seed[env] = conditions.seeds[0]
        part.length[env] = part.earlier_return[env] = self._age[env] = 0
        part.succeeded[env] = False
        _note_state(part, [env], 0, first)
        self._open[env] = True
        return before

    def _taken_from(self, env: int) -> list[Episodes]:
        """Returns the part that an environment has played, if any, and begins the next part."""
        part = self._part
        if not part.length[env]:
            return []
        played = padded(part.at(np.array([env])))  # a copy
        part.earlier_return[env] += played.reward.sum()
        for values in (part.observation, part.achieved_goal, *part.extras.values()):
            values[env, 0] = values[env, part.length[env]]
        part.length[env] = 0
        return [played]


def padded(episodes: Episodes) -> Episodes:
    """Pads episodes beyond their length: states repeat the last one, actions and rewards are 0."""
    states = np.arange(episodes.observation.shape[1])
    last = np.minimum(states, episodes.length[:, None])[..., None]
    over = ~episodes.step_mask
    return episodes._replace(
        observation=np.take_along_axis(episodes.observation, last, axis=1),
        achieved_goal=np.take_along_axis(episodes.achieved_goal, last, axis=1),
        action=np.where(over[..., None], np.float32(0.0), episodes.action),
        reward=np.where(over, np.float32(0.0), episodes.reward),
        extras={
            name: np.take_along_axis(values, last, axis=1)
            for name, values in episodes.extras.items()
        },
    )


def blank(spec: EnvSpec, skill: Array, steps: int) -> Episodes:
    """Returns zero-filled arrays for episodes of up to `steps` steps."""
    count = len(skill)

    def zeros(*shape: int) -> Array:
        return np.zeros([count, *shape], np.float32)

    return Episodes(
        observation=zeros(steps + 1, spec.observation_dim),
        achieved_goal=zeros(steps + 1, spec.goal_dim),
        desired_goal=zeros(spec.goal_dim),
        action=zeros(steps, spec.action_dim),
        reward=zeros(steps),
        length=np.zeros([count], np.int64),
        terminated=np.zeros([count], np.bool_),
        truncated=np.zeros([count], np.bool_),
        lost=np.zeros([count], np.bool_),
        success=np.zeros([count], np.bool_),
        succeeded=np.zeros([count], np.bool_),
        skill=skill,
        earlier_return=zeros(),
        seed=np.zeros([count], np.int64),
        task=np.zeros([count], np.int64),
        visit=np.zeros([count], np.int64),
        context=np.zeros([count], np.bool_),
        extras={name: zeros(steps + 1, size) for name, size in spec.extras.items()},
    )


def _attempt(
    envs: LockstepEnvs,
    policy: Policy,
    conditions: Conditions,
    explore: Perturbation | None,
    played: Episodes,
    indices: list[int],
) -> dict[int, str]:
    """Plays the episodes `indices`, and returns the faults of those that failed."""
    goals = None if conditions.goals is None else conditions.goals[indices]
    played.seed[indices] = conditions.seeds[indices]
    tasks = None if conditions.tasks is None else conditions.tasks[indices]
    first = envs.reset(indices, played.seed[indices].tolist(), goals, tasks)
    played.desired_goal[indices] = first.desired_goal
    _note_state(played, indices, 0, first)
    played.succeeded[indices] = False
    faults: dict[int, str] = {}
    active = indices
    no_noise = np.zeros_like(played.action[:, 0])
    for step in range(played.action.shape[1]):
        noise = no_noise if explore is None else explore.policy[step]
        goal = played.desired_goal
        if conditions.moving is not None:
            goal = np.broadcast_to(conditions.moving[step + 1], goal.shape)
        if explore is not None and explore.leads is not None:
            goal = explore.leads(goal, step, played.observation[:, step])
        action = policy(played.observation[:, step], goal, conditions.skills, noise)
        if explore is not None:
            action = explore(action, step, played.observation[:, step])
        results = envs.step(action[active], active)
        heartbeat()
        played.action[active, step] = action[active]
        _note_state(played, active, step + 1, results)
        played.reward[active, step] = results.reward
        played.length[active] = step + 1
        played.terminated[active] = results.terminated
        played.truncated[active] = results.truncated & ~results.terminated
        played.success[active] = results.success
        played.succeeded[active] |= results.success
        faults |= {i: fault for i, fault in zip(active, results.faults, strict=True) if fault}
        over = results.terminated | results.truncated
        if over.any():
            active = [index for index, done in zip(active, over, strict=True) if not done]
            if not active:
                break
    return faults


def _note_state(
    played: Episodes, indices: list[int], step: int | IntArray, states: Observations | StepResults
) -> None:
    played.observation[indices, step] = states.observation
    played.achieved_goal[indices, step] = states.achieved_goal
    for name, values in states.extras.items():
        played.extras[name][indices, step] = values
