"""Plays an episode before training, to check that the environment fits hindsight relabelling.

Replay recomputes the reward of each step under relabelled goals. If `compute_reward` differs from
the reward of `step` under the step's own goal, it is wrong under all goals; this check finds that.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from music_tf.config.names import KNOWN, few, is_one_of
from music_tf.config.settings import Config, EnvConfig, NormalizerConfig, ReplayConfig
from music_tf.config.world import World
from music_tf.envs import simulator
from music_tf.envs.endings import as_ended
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import find_spec
from music_tf.envs.member import show_goal
from music_tf.envs.registry import UNKNOWN, layers_of
from music_tf.errors import FROM_USERS, EnvironmentFault, Finding, MusicError
from music_tf.replay.buffer import Shard
from music_tf.replay.hindsight import relabel_probability
from music_tf.replay.rows import Picks, explained_by_rounding, reward_gaps, transition
from music_tf.replay.watch import RARE
from music_tf.rollout import Conditions, play
from music_tf.training import worlds
from music_tf.types import ACHIEVED_REST, DESIRED_REST, Array, BoolArray, Episodes

SEED = 0
_OTHER_SEEDS = range(1, 6)
LONGEST = 1000
"""Maximum number of steps of the episode."""
_DISTANCES = -3.0, 3.0
"""Decimal logarithms of the smallest and largest distance at which goals are tried."""
_SOON, _AROUND = 3, 50
"""Step whose achieved goal becomes the second goal, and steps that are played with that goal."""
_NOT_SET = "no attribute `goal` sets the goal of an episode"
_FEW = 3
STAY = "draw goals in reset only"
MANY_AT_ONCE = "compute_reward must take goals [N, G] and give rewards [N]: use axis=-1"
"""Cures of a goal that moves, and of a reward that is wrong for many goals."""
_MANY = "compute_reward is wrong for many goals at once", MANY_AT_ONCE
_ELSEWHERE = (
    "compute_reward reads from the environment itself what other episodes change, such as its goal "
    "or its time",
    "let compute_reward use nothing but what it is given",
)
_FINE, _COARSE = 1e-3, 1e-2
"""Shares of a step that rounding may move goals, and inputs of networks."""
_SEE = "\nsee music-tf check-env"


class RawStep(NamedTuple):
    """What a step of the environment returned, unchanged."""

    observation: Mapping[str, Any]
    reward: float
    terminated: bool
    info: Mapping[str, Any]


class Rehearsal:
    """A separate environment, and an episode of random actions in it."""

    def __init__(
        self, env_id: str, settings: EnvConfig | None = None, world: World | None = None
    ) -> None:
        """Makes the environment; only tasks with goals play an episode."""
        settings, longest = settings or EnvConfig(), find_spec(env_id).max_episode_steps
        if (settings.max_episode_steps or longest or 0) > LONGEST:
            settings = dataclasses.replace(settings, max_episode_steps=LONGEST)
        self.env_id = env_id
        self.envs = LockstepEnvs(env_id, 1, settings, world=world)
        self.envs.hush()  # training will report what breaks
        self.has_goals = self.envs.spec.goal_dim > 0
        self.exact_goals = settings.exact_goals
        if not self.exact_goals and self._need_digits():
            self.envs.close()
            settings, self.exact_goals = dataclasses.replace(settings, exact_goals=True), True
            self.envs = LockstepEnvs(env_id, 1, settings, world=world)
            self.envs.hush()
            del self.episode
        self.settings, self.epsilon = settings, NormalizerConfig.epsilon

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(*FROM_USERS):
            self.envs.close()

    def findings(self, config: Config) -> Iterator[Finding]:
        """Yields the results of the checks that concern this configuration."""
        if "task" in config.rewards:
            yield self.rewards()
            yield self.goal_met()
        if "task" in config.rewards and relabel_probability(config.replay):
            yield self.other_goal()
        yield self.success()
        yield self.inputs(config.normalizer.input_clip)
        if relabel_probability(config.replay):
            yield self.goal_apart()
            yield self.goal_set()
            yield self.ends()

    def rewards(self) -> Finding:
        """Compares the reward of each step with the one that replay computes for the same goal."""
        episode = self.episode
        try:
            computed, paid = self._replayed(episode)
        except EnvironmentFault as fault:
            cure = "let compute_reward take goals [N, G] and use only what each step's info has"
            text = str(fault).removeprefix(f"{self.env_id}: ").removesuffix(_SEE)
            return Finding(text, cure)
        gaps = self._own_gaps(paid, computed)
        if not gaps.any():
            return Finding(f"replay computes what {len(paid)} steps paid")
        step = int(np.argmax(gaps))
        cause, cure = self._cause(episode, step)
        return Finding(
            f"step {step + 1} paid {paid[step]:g}, and replay computes {computed[step]:g} under "
            f"the same goal ({int(gaps.sum())} of {len(paid)} steps differ): {cause}",
            cure,
            warning=bool(gaps.mean() <= RARE),
        )

    def success(self) -> Finding:
        """Looks for what evaluations count, in steps that meet a goal where goals can be set."""
        length = min(_AROUND, int(self.episode.length[0]))
        own = self.steps(self.episode.action[0, :length], int(self.episode.seed[0]))
        if any({"is_success", "success"} & {*seen.info} for seen in (*self._at_goal, *own)):
            return Finding("info tells it")
        return Finding(
            "info has no is_success, so the success rate is always 0",
            'return {"is_success": ...} as info of each step',
            warning=True,
        )

    def _own_gaps(self, paid: Array, computed: Array) -> BoolArray:
        """Returns where rewards under the episode's goal differ by more than rounding, [N]."""
        goal, extras = self.episode.desired_goal[0], self.episode.extras
        if self.exact_goals:
            goal = np.add(goal, extras[DESIRED_REST][0, 0], dtype=np.float64)
        places = self._achieved[1 : len(paid) + 1]

        def reward_of(moved: Array) -> Array:
            return self._under(self.envs.goal_reward, goal, moved, _OTHER_SEEDS[0])

        return _gaps(reward_of, (places, np.broadcast_to(goal, places.shape)), paid, computed)

    def goal_apart(self) -> Finding:
        """Looks for observation columns that depend on the goal: relabelling cannot change them."""
        first, again = self._step_under(None), self._step_under(None)
        goal = self._other_goal()
        other = None if goal is None else self._step_under(goal)
        if first is None or again is None or other is None:
            return Finding(f"cannot tell: {_NOT_SET}")
        own, same, under = (
            np.asarray(seen.observation["observation"]) for seen in (first, again, other)
        )
        if not np.array_equal(own, same, equal_nan=True):
            return Finding("cannot tell: it does not repeat itself under one seed")
        columns = np.flatnonzero(own != under).tolist()
        if not columns:
            return Finding("the observation does not change with the goal")
        return Finding(
            f"columns {few(list(map(str, columns)))} of the observation change with the goal: "
            "hindsight gives a step another goal, and leaves them as they are",
            "leave the goal out of the observation: policies get it separately",
        )

    def goal_set(self) -> Finding:
        """Warns if `goal_apart` could not set a goal; known ids have no goal in observations."""
        if self._at_goal or is_one_of(self.env_id, KNOWN):
            return Finding("goals can be set, or the id is known")
        return Finding(
            f"{_NOT_SET}, so nothing can tell whether the observation holds the goal: hindsight "
            "would leave the old one there",
            "leave the goal out of the observation; kept in an attribute `goal` that step reads, "
            "it can be tried",
            warning=True,
        )

    def goal_met(self) -> Finding:
        """Looks for a goal that moves once it has been met."""
        for step, seen in enumerate(self._at_goal):
            if step and not _same(seen.observation["desired_goal"], self._near_goal):
                return Finding(
                    f"the goal moves at step {step} of an episode that meets it: replay pays all "
                    "steps of an episode under its first goal",
                    f"{STAY}; in a maze leave reset_target False",
                )
        return Finding("a goal that was met stays" if self._at_goal else f"cannot tell: {_NOT_SET}")

    def other_goal(self) -> Finding:
        """Plays the episode again under another goal, and compares rewards with relabelled ones.

        They differ if `compute_reward` reads the episode's goal from info or from the environment.
        """
        seen, places = self._at_goal[1:], self._places
        if not seen:
            return Finding(f"cannot tell: {_NOT_SET}")
        if not self._repeats:
            return Finding("cannot tell: it does not repeat itself under one seed")
        own, paid = self._replayed(self.episode)
        if self._own_gaps(paid, own).any():
            return Finding("cannot tell: rewards under the own goal differ already")
        computed = self._of_near_goal(self.envs.goal_reward, places)
        paid = np.array([step.reward for step in seen], np.float32)
        near = np.broadcast_to(self._near_goal.astype(places.dtype), places.shape)
        gaps = _gaps(
            functools.partial(self._of_near_goal, self.envs.goal_reward),
            *((places, near), paid, computed),
        )
        if not gaps.any():
            return Finding(f"replay computes what {len(paid)} steps under another goal paid")
        if not reward_gaps(paid, own[: len(paid)]).any():
            return Finding("cannot tell: steps pay for another goal than the attribute `goal`")
        step = int(np.argmax(gaps))
        cause, cure = (
            "compute_reward knows the goal of the episode from info or from the environment; "
            f"read of info: {few(list(self.envs.asked)) or 'nothing'}",
            "let compute_reward use the desired goal that it is given, and read nothing from info "
            "that depends on the goal",
        )
        places = np.array([one.observation["achieved_goal"] for one in seen])
        if not reward_gaps(paid, self._of_near_goal(self.envs.goal_reward, places)).any():
            cause, cure = _digits(places[step])
        return Finding(
            f"step {step + 1} under another goal pays {paid[step]:g}, and replay computes "
            f"{computed[step]:g} ({int(gaps.sum())} of {len(paid)} steps differ): {cause}",
            cure,
        )

    def ends(self) -> Finding:
        """Looks for episodes that end at their goal in an environment without a test for others."""
        if self.envs.ends_at_goals:
            return self._ends_alike()
        episode, earlier = self.episode, len(self._at_goal) <= int(self.episode.length[0])
        ended = earlier and any(seen.terminated for seen in self._at_goal)
        ended |= bool((episode.terminated & episode.success).any())
        if not ended or self.envs.success_ends is False:
            return Finding("no episode was seen to end at its goal")
        return Finding(
            "episodes end at their goal, and nothing says where they end under another one: steps "
            "that met a goal of hindsight are valued as if the episode went on",
            "define compute_terminated(achieved_goal, desired_goal, info), or give "
            "--env.success-ends False",
            warning=True,
        )

    def _ends_alike(self) -> Finding:
        """Compares the end of an episode that meets its goal with `compute_terminated`."""
        fine = Finding("compute_terminated says where an episode ends under another goal")
        seen = self._at_goal[1:]
        if not seen or not self._repeats:
            return fine
        said = self._of_near_goal(self.envs.goal_terminated, self._places)
        ended = np.array([step.terminated for step in seen])
        earlier = len(seen) < min(_AROUND, int(self.episode.length[0]))  # it ended for its goal
        wrong = (said & ~ended) | (~said & ended & earlier)
        if not wrong.any():
            return fine
        step = int(np.argmax(wrong))
        does, says = ("ends", "does not") if ended[step] else ("goes on", "does")
        return Finding(
            f"step {step + 1} of an episode that meets its goal {does}, and compute_terminated "
            f"says that it {says} end: replay would believe the latter",
            "let step end episodes where compute_terminated says so, or give --env.success-ends "
            "False",
            warning=True,
        )

    @property
    def _places(self) -> Any:
        """Achieved goals of the first episode, for the steps that the second one has, [N, G]."""
        return self._achieved[1 : len(self._at_goal)]

    @functools.cached_property
    def _achieved(self) -> Any:
        """Achieved goals of the episode with the precision of replay, [T + 1, G]."""
        achieved, extras = self.episode.achieved_goal[0], self.episode.extras
        if not self.exact_goals:
            return achieved
        return np.add(achieved, extras[ACHIEVED_REST][0], dtype=np.float64)

    @functools.cached_property
    def _repeats(self) -> bool:
        """Whether the episode under another goal reached the same states as the first one."""
        pairs = zip(self._at_goal[1:], self._places, strict=True)
        return all(_same(seen.observation["achieved_goal"], place) for seen, place in pairs)

    def _of_near_goal(self, method: Callable[..., np.ndarray], places: Array) -> np.ndarray:
        """Applies a function of goals to steps of the first episode under `_near_goal`, [N]."""
        return self._under(method, self._near_goal, places, SEED)

    def _under(
        self, method: Callable[..., np.ndarray], goal: Any, places: Array, seed: int
    ) -> np.ndarray:
        """Applies `compute_reward` or `compute_terminated` to steps under another goal, [N].

        The environment is reset to the goal of `seed` before, as it would be in the midst of other
        episodes, so that a function that reads the environment's own goal is found.
        """
        self.envs.reset([0], [seed])
        extras = {
            name: values[0, 1 : 1 + len(places)] for name, values in self.episode.extras.items()
        }
        goals = np.broadcast_to(goal.astype(places.dtype), places.shape)
        return method(places, goals, extras)

    def inputs(self, most: float, goals: bool = True) -> Finding:
        """Looks for inputs that single precision blurs, or that are clipped at +-`most`.

        Without `goals`, in observations alone.
        """
        episode, length = self.episode, int(self.episode.length[0]) + 1
        seen = {"observation": episode.observation[0, :length]}
        if goals:
            both = episode.achieved_goal[0, :length], episode.desired_goal
            seen["achieved_goal"] = np.concatenate(both)
        for key, values in seen.items():
            largest = np.abs(values).max(axis=0)
            blurred, clipped = self._blurred(key, largest), largest > most
            found = blurred if blurred.any() else clipped
            if not found.any():
                continue
            columns, reached = few(list(map(str, np.flatnonzero(found)))), largest[found].max()
            name = "the observation" if key == "observation" else "goals"
            detail = f"columns {columns} of {name} reach {reached:g}, and networks see them "
            if blurred.any():
                detail += f"in steps of {np.spacing(reached):g}, since single precision has no more"
                return Finding(
                    detail, "subtract a constant, such as a place near them", warning=True
                )
            cure = (
                "give them in larger units, relative to a place near them, or give "
                "--normalizer.input-clip a larger number"
            )
            return Finding(f"{detail}clipped at {most:g}", cure, warning=True)
        return Finding("no number is clipped")

    def _blurred(self, key: str, largest: Array) -> BoolArray:
        """Returns which columns of a part of observations lose their motion to rounding, [D].

        Only large ones do: of small ones rounding loses noise. A column at rest counts as moving
        as far as the others.
        """
        large = largest > NormalizerConfig.input_clip
        if not large.any():
            return large
        actions, seed = self.episode.action[0, : int(self.episode.length[0])], self.episode.seed[0]
        try:
            played = [step.observation[key] for step in self.steps(actions, int(seed))]
            moved = np.abs(np.diff(np.array(played, np.float64), axis=0)).max(axis=0)
        except FROM_USERS:  # it does not repeat itself
            return np.zeros_like(large)
        moved = np.where(moved > 0.0, moved, moved.max())
        blurred: BoolArray = large & (moved > 0.0) & (np.spacing(largest) > _COARSE * moved)
        return blurred

    @functools.cached_property
    def _near_goal(self) -> Any:
        """A goal that the episode meets after a few steps."""
        return self._achieved[min(_SOON, int(self.episode.length[0]))].astype(float)

    @functools.cached_property
    def _at_goal(self) -> Sequence[RawStep]:
        """The same actions under a goal that they meet; empty if goals cannot be set."""
        actions, seed = self.episode.action[0][:_AROUND], int(self.episode.seed[0])
        try:
            seen = list(self.steps(actions, seed, self._near_goal))
        except FROM_USERS:  # user code may not expect such a goal
            return ()
        return seen if _same(seen[1].observation["desired_goal"], self._near_goal) else ()

    def _step_under(self, goal: Any) -> RawStep | None:
        """Returns the first step of the episode under a goal; None if goals cannot be set."""
        actions, seed = self.episode.action[0][:1], int(self.episode.seed[0])
        try:
            *_, seen = self.steps(actions, seed, goal)
        except FROM_USERS:  # user code may not expect such a goal
            return None
        there = goal is None or _same(seen.observation["desired_goal"], goal)
        return seen if there else None

    def _other_goal(self) -> Any:
        """Returns a goal of another episode; None if all episodes have the same goal."""
        for seed in _OTHER_SEEDS:
            goal = self.envs.reset([0], [seed]).desired_goal[0]
            if not np.array_equal(goal, self.episode.desired_goal[0]):
                return goal.astype(float)
        return None

    def reward_bounds(self) -> tuple[float, float] | None:
        """Returns the values of a reward with two values; None for others and for known bounds.

        Goals that are tried: of this episode and of others, achieved ones, and some at all
        distances from achieved ones.
        """
        if all(map(math.isfinite, self.envs.info.reward_bounds)):
            return None
        episode, generator = self.episode, np.random.default_rng(SEED)
        steps = slice(1, int(episode.length[0]) + 1)
        achieved = episode.achieved_goal[0, steps]
        extras = {name: values[0, steps] for name, values in episode.extras.items()}
        way = generator.standard_normal(achieved.shape)
        far = np.logspace(*_DISTANCES, len(achieved)) / np.linalg.norm(way, axis=1)
        tried = [achieved, np.roll(achieved, 1, axis=0), achieved + far[:, None] * way]
        tried += [achieved + generator.permutation(far)[:, None] * way for _ in range(_FEW)]
        for seed in _OTHER_SEEDS:
            goal = self.envs.reset([0], [seed]).desired_goal
            tried.append(np.repeat(goal, len(achieved), axis=0))
        rewards = []
        for goals in tried:
            with contextlib.suppress(EnvironmentFault):  # a goal may lie outside of the map
                rewards.append(self.envs.goal_reward(achieved, goals.astype(np.float32), extras))
        values = np.unique([*self._replayed(episode), *rewards])
        if len(values) != 2:  # noqa: PLR2004
            return None
        return _outwards(values[0], -np.inf), _outwards(values[1], np.inf)

    def _need_digits(self) -> bool:
        """Whether rounding to float32 moves goals by more than a thousandth of a step.

        Environments of known families do not need it.
        """
        if not self.has_goals or self.envs.info.family != UNKNOWN.family:
            return False
        try:
            episode = self.episode
        except MusicError:
            return False
        length = int(episode.length[0])
        achieved, desired = episode.achieved_goal[0, : length + 1], episode.desired_goal[0]
        moved = np.abs(np.diff(achieved, axis=0)).max()
        moved = max(moved, np.abs(desired - achieved).max() / length)
        largest = max(np.abs(achieved).max(), np.abs(desired).max())
        return bool(np.spacing(np.float32(largest)) > _FINE * moved > 0.0)

    @functools.cached_property
    def episode(self) -> Episodes:
        """An episode of random actions with a fixed seed, [1, T, ...]."""
        generator = np.random.default_rng(SEED)
        shape = (1, self.envs.spec.action_dim)

        def act(*_: Array) -> Array:
            return generator.uniform(-1.0, 1.0, shape).astype(np.float32)

        return play(self.envs, act, Conditions(np.array([SEED]), None, np.ones((1, 1), "f")), None)

    def _replayed(self, episode: Episodes) -> tuple[Array, Array]:
        """Returns the reward that replay computes for each step, and that of the step, [N]."""
        spec, length = self.envs.spec, int(episode.length[0])
        shard = Shard(spec, 1, ReplayConfig(capacity=spec.max_episode_steps))
        shard.add(episode, np.random.default_rng(SEED))
        first, steps = np.zeros(length, np.int64), np.arange(length)
        drawn = shard.look_up(Picks(first, steps, np.full(length, -1)))
        self.envs.reset([0], _OTHER_SEEDS[:1])  # replay computes rewards during other episodes
        return transition(drawn, 0.0, self.envs.goal_reward).reward, drawn.reward

    def _cause(self, episode: Episodes, step: int) -> tuple[str, str]:
        """Returns why the reward of a step differs from that of replay, and the cure.

        The episode is played again in the environment itself, without rounding.
        """
        seen = list(self.steps(episode.action[0, : step + 1], int(episode.seed[0])))
        first, last = seen[0].observation, seen[-1]
        goal = np.asarray(last.observation["desired_goal"])
        if not np.array_equal(goal, first["desired_goal"]):
            return "the goal moves within the episode", STAY
        achieved = np.asarray(last.observation["achieved_goal"])
        short: Sequence[Any] = (achieved, goal)
        if not self.exact_goals:
            short = [np.float32(part).astype(part.dtype) for part in short]
        method: Any = self.envs.environment.unwrapped

        def agrees(goals: Sequence[Any], info: Mapping[str, Any]) -> bool:
            with np.errstate(all="ignore"), contextlib.suppress(*FROM_USERS):
                found = float(method.compute_reward(*map(np.copy, goals), dict(info)))
                return not reward_gaps(np.float32(last.reward), np.float32(found))
            return False

        if agrees((achieved, goal), last.info):
            if not agrees(short, last.info):
                return _digits(goal)
            if not agrees(short, {}):
                kept = few(list(self.envs.asked)) or "none"
                return (
                    "compute_reward reads from info what replay does not keep; kept of "
                    f"{few(list(last.info)) or 'nothing'}: {kept}",
                    "let it read numbers that every step's info has, by their names, as in "
                    "info['cost']; or put them into the achieved goal",
                )
            self.envs.reset([0], _OTHER_SEEDS[:1])
            return _MANY if agrees(short, {}) else _ELSEWHERE
        wrappers = _wrappers(self.envs.environment)
        if wrappers and self.envs.environment is not method:
            return (
                f"step pays something else than compute_reward; around the environment are "
                f"{few(wrappers)}, and compute_reward does not know what wrappers do to goals",
                "let no wrapper change goals or rewards, or define compute_reward in an "
                "environment of your own around the wrapped one",
            )
        return (
            "step pays something else than compute_reward",
            "step must return compute_reward(achieved_goal, desired_goal, info)",
        )

    def steps(self, actions: Array, seed: int, goal: Any = None) -> Iterator[RawStep]:
        """Plays actions in the environment itself; yields what reset and each step returned."""
        # Actions [T, A] are in [-1, 1]; the episode may end earlier. `seed` is that of the reset.
        # `goal` replaces the environment's goal, if its attribute `goal` can be set.
        environment: Any = self.envs.environment
        observation, info = self.envs.begin(seed)
        yield RawStep(_copied(observation), 0.0, False, dict(info))
        if goal is not None:
            show_goal(environment.unwrapped, goal)
            task: Any = getattr(environment.unwrapped, "task", None)
            if hasattr(task, "goal"):  # as panda-gym keeps it
                task.goal = goal.copy()
        for action in self.envs.scaled(actions):
            with np.errstate(all="ignore"):
                result = environment.step(action)
            observation, reward, terminated, truncated, info = as_ended(result)
            yield RawStep(_copied(observation), float(reward), bool(terminated), dict(info))
            if terminated or truncated:
                break
        simulator.take_warnings()


def _gaps(
    reward_of: Callable[[Array], Array], places: tuple[Array, Array], paid: Array, computed: Array
) -> BoolArray:
    """Returns where rewards [N] differ by more than rounded goals explain."""
    gaps = reward_gaps(paid, computed)
    if gaps.any():
        gaps &= ~explained_by_rounding(reward_of, places, paid, computed)
    return gaps


class Rehearsed(NamedTuple):
    """Results of a rehearsal that lets the run begin."""

    warnings: Sequence[str] = ()
    reward_bounds: tuple[float, float] | None = None
    """Lowest and highest reward of a step, if the run needs them and has no setting for them."""
    exact_goals: bool = False
    """Whether replay has to keep goals in double precision."""


def rehearse(config: Config) -> Rehearsed:
    """Checks an environment before a run.

    If the environment cannot be made or cannot play, training reports that later, unless the run
    needs bounds of rewards: without them it would be refused for another reason.
    """
    question, own = worlds.asked_of_split(config), config.goals == "environment"
    relabels = own and ("task" in config.rewards or relabel_probability(config.replay) > 0.0)
    known = is_one_of(config.env_id, KNOWN)
    if known and not relabels:
        return Rehearsed(question)
    findings: list[Finding] = []
    bounds, exact_goals, fault = None, False, None
    with worlds.streams_kept():
        try:
            with Rehearsal(config.env_id, config.env, config.world) as stage:
                stage.epsilon = config.normalizer.epsilon
                if relabels and stage.has_goals:
                    exact_goals = stage.exact_goals
                    findings.extend(stage.findings(config))
                    bounds = stage.reward_bounds() if _needs_bounds(config) else None
                elif not known:
                    findings.append(stage.inputs(config.normalizer.input_clip, goals=own))
                if not known:
                    visits_tasks = config.agent.inference is not None
                    findings.extend(worlds.findings(stage, visits_tasks))
        except MusicError as error:  # earlier findings are kept
            fault = error
    for finding in findings:
        if finding.cure and not finding.warning:
            text = f"{config.env_id}: {finding.detail}\ncure: {finding.cure}"
            raise EnvironmentFault(f"{text}\nmusic-tf check-env {config.env_id} says more")
    if fault is not None and not known and (_needs_bounds(config) or config.env.stages):
        raise fault
    rare = [finding for finding in findings if finding.cure]
    texts = (f"{config.env_id}: {finding.detail}\ncure: {finding.cure}" for finding in rare)
    return Rehearsed((*question, *texts), bounds, exact_goals)


def _needs_bounds(config: Config) -> bool:
    """Whether `return_clip=auto` needs bounds of the task reward that no setting gives."""
    task = config.rewards.get("task")
    if task is None or config.agent.return_clip != "auto" or config.world.reward:
        return False
    return not all(map(math.isfinite, task.clip))


def _same(goal: Any, other: Any) -> bool:
    """Whether goals are equal in single precision."""
    return bool(np.array_equal(np.asarray(goal, np.float32), np.asarray(other, np.float32)))


def _outwards(reward: Any, end: float) -> float:
    """Returns a float32 reward, moved towards `end` by its possible rounding error."""
    whole = float(reward).is_integer()
    return float(reward if whole else np.nextafter(np.float32(reward), np.float32(end)))


def _copied(observation: Any) -> dict[str, Any]:
    """Copies an observation, or its only vector; the environment may overwrite its arrays."""
    if not isinstance(observation, Mapping):
        return {"observation": np.array(observation)}
    return {name: np.array(value) for name, value in observation.items()}


def _wrappers(environment: Any) -> list[str]:
    """Returns the class names of a user's wrappers around an environment."""
    kinds = map(type, layers_of(environment))
    common = "gymnasium.wrappers.common"
    return [kind.__name__ for kind in kinds if not kind.__module__.startswith(common)]


def _listed(goal: Any) -> str:
    shown = ", ".join(f"{number:.10g}" for number in goal[:_FEW])
    return f"({shown}{', ...' if len(goal) > _FEW else ''})"


def _digits(goal: Any) -> tuple[str, str]:
    """Returns the cause that goals need more digits than float32 has, and the cure."""
    return (
        f"goals such as {_listed(goal)} have more digits than the single precision in which "
        "replay keeps them",
        "give goals relative to a place near them: subtract a constant in achieved and desired "
        "goals",
    )
