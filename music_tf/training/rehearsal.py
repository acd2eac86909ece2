"""An episode before training: does replay pay what `step` paid, and what else hangs on the goal?

Hindsight computes the reward of each replayed step anew, under whatever goal. A reward that comes
out differently under the step's own goal is wrong under all of them, and nothing else would tell.
"""

import contextlib
import dataclasses
import functools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from music_tf.config.names import KNOWN, few, is_one_of
from music_tf.config.settings import Config, EnvConfig, ReplayConfig
from music_tf.config.world import World
from music_tf.envs import simulator
from music_tf.envs.columns import played_at_random, share_moved
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import find_spec
from music_tf.envs.member import show_goal
from music_tf.envs.registry import lookup
from music_tf.errors import FROM_USERS, EnvironmentFault, MusicError
from music_tf.replay.buffer import Shard
from music_tf.replay.hindsight import relabel_probability
from music_tf.replay.rows import Picks, explained_by_rounding, reward_gaps, transition
from music_tf.replay.watch import RARE
from music_tf.rollout import Conditions, play
from music_tf.types import ACHIEVED_REST, DESIRED_REST, Array, BoolArray, Episodes

SEED = 0
_OTHER_SEEDS = range(1, 6)
_LONGEST = 1000
"""Most steps that are played."""
_DISTANCES = -3.0, 3.0
"""Decimal logarithms of the smallest and largest distance at which goals are tried."""
_SOON, _AROUND = 3, 50
"""Steps after which a goal is met that is set for that, and steps that are played with it."""
_NOT_SET = "no attribute `goal` sets the goal of an episode"
_FEW = 3
_MANY = (
    "compute_reward is wrong for many goals at once",
    "compute_reward must take goals [N, G] and give rewards [N]: use axis=-1",
)
_ELSEWHERE = (
    "compute_reward reads from the environment itself what other episodes change, such as its goal "
    "or its time",
    "let compute_reward use nothing but what it is given",
)
_FINE = 1e-3
_OF_SPLITS = {"music", "joint_motion"}
"""Rewards of the robot and its surroundings."""
_MOST = 0.5
"""Share of random steps up to which surroundings move that have to be touched."""
_SEE = "\nsee music-tf check-env"


class Verdict(NamedTuple):
    """What was found."""

    detail: str
    cure: str = ""
    """Empty where all is well."""
    rare: bool = False
    """Whether it concerns so few steps that a warning is enough."""


class RawStep(NamedTuple):
    """What a step of the environment gave, before anything is made of it."""

    observation: Mapping[str, Any]
    reward: float
    terminated: bool
    info: Mapping[str, Any]


class Rehearsal:
    """One environment of its own, and an episode of random actions that was played in it."""

    def __init__(
        self, env_id: str, settings: EnvConfig | None = None, world: World | None = None
    ) -> None:
        """Makes the environment; a task without goals plays nothing.

        Raises:
            MusicError: The environment cannot be made.
        """
        settings, longest = settings or EnvConfig(), find_spec(env_id).max_episode_steps
        if (settings.max_episode_steps or longest or 0) > _LONGEST:
            settings = dataclasses.replace(settings, max_episode_steps=_LONGEST)
        self.env_id = env_id
        self.envs = LockstepEnvs(env_id, 1, settings, world=world)
        self.envs.hush()  # training meets what breaks, and tells of it
        self.has_goals = self.envs.spec.goal_dim > 0
        self.exact_goals = settings.exact_goals
        if not self.exact_goals and self._need_digits():
            self.envs.close()
            settings, self.exact_goals = dataclasses.replace(settings, exact_goals=True), True
            self.envs = LockstepEnvs(env_id, 1, settings, world=world)
            self.envs.hush()
            del self.episode

    def __enter__(self) -> Self:
        """Returns itself; the environment is closed with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the environment, whatever it throws."""
        with contextlib.suppress(*FROM_USERS):
            self.envs.close()

    def verdicts(self, config: Config) -> Iterator[Verdict]:
        """Yields what concerns a run as it is configured.

        Raises:
            EnvironmentFault: The environment does not play.
        """
        if "task" in config.rewards:
            yield self.rewards()
            yield self.goal_met()
        if "task" in config.rewards and relabel_probability(config.replay):
            yield self.other_goal()
        yield self.inputs(config.normalizer.input_clip)
        if relabel_probability(config.replay):
            yield self.goal_apart()
            yield self.goal_set()
            yield self.ends()

    def rewards(self) -> Verdict:
        """Compares what each step paid with what replay makes of it under the same goal.

        Raises:
            EnvironmentFault: The environment does not play an episode.
        """
        episode = self.episode
        try:
            computed, paid = self._replayed(episode)
        except EnvironmentFault as fault:
            cure = "let compute_reward take goals and info as replay gives them, see docs"
            text = str(fault).removeprefix(f"{self.env_id}: ").removesuffix(_SEE)
            return Verdict(text, cure)
        gaps = self._own_gaps(paid, computed)
        if not gaps.any():
            return Verdict(f"replay computes what {len(paid)} steps paid")
        step = int(np.argmax(gaps))
        cause, cure = self._cause(episode, step)
        return Verdict(
            f"step {step + 1} paid {paid[step]:g}, and replay computes {computed[step]:g} under "
            f"the same goal ({int(gaps.sum())} of {len(paid)} steps differ): {cause}",
            cure,
            rare=bool(gaps.mean() <= RARE),
        )

    def _own_gaps(self, paid: Array, computed: Array) -> BoolArray:
        """Returns where replay differs under the episode's goal by more than rounding does, [N]."""
        goal, extras = self.episode.desired_goal[0], self.episode.extras
        if self.exact_goals:
            goal = np.add(goal, extras[DESIRED_REST][0, 0], dtype=np.float64)
        places = self._achieved[1 : len(paid) + 1]

        def reward_of(moved: Array) -> Array:
            return self._under(self.envs.goal_reward, goal, moved, _OTHER_SEEDS[0])

        return _gaps(reward_of, (places, np.broadcast_to(goal, places.shape)), paid, computed)

    def goal_apart(self) -> Verdict:
        """Looks for columns of the observation that change with the goal alone.

        Hindsight gives a step another goal, and leaves in its observation what is there of its own.
        """
        first, again = self._step_under(None), self._step_under(None)
        goal = self._other_goal()
        other = None if goal is None else self._step_under(goal)
        if first is None or again is None or other is None:
            return Verdict(f"cannot tell: {_NOT_SET}")
        own, same, under = (
            np.asarray(seen.observation["observation"]) for seen in (first, again, other)
        )
        if not np.array_equal(own, same, equal_nan=True):
            return Verdict("cannot tell: it does not repeat itself under one seed")
        columns = np.flatnonzero(own != under).tolist()
        if not columns:
            return Verdict("the observation does not change with the goal")
        return Verdict(
            f"columns {few(list(map(str, columns)))} of the observation change with the goal: "
            "hindsight gives a step another goal, and leaves them as they are",
            "leave the goal out of the observation: policies see it beside",
        )

    def goal_set(self) -> Verdict:
        """Says where nobody can tell whether the observation changes with the goal.

        Of ids that the package knows it does not.
        """
        if self._at_goal or is_one_of(self.env_id, KNOWN):
            return Verdict("goals can be set, or the id is known")
        return Verdict(
            f"{_NOT_SET}, so nothing can tell whether the observation holds the goal: hindsight "
            "would leave the old one there",
            "leave the goal out of the observation; kept in an attribute `goal` that step reads, "
            "it can be tried",
            rare=True,
        )

    def goal_met(self) -> Verdict:
        """Looks for a goal that moves once it has been met."""
        for step, seen in enumerate(self._at_goal):
            if step and not _same(seen.observation["desired_goal"], self._near_goal):
                return Verdict(
                    f"the goal moves at step {step} of an episode that meets it: replay pays all "
                    "steps of an episode under its first goal",
                    "draw goals in reset only; in a maze leave reset_target False",
                )
        return Verdict("a goal that was met stays" if self._at_goal else f"cannot tell: {_NOT_SET}")

    def other_goal(self) -> Verdict:
        """Compares what steps under another goal pay with what replay makes of them.

        Replay has the episode under its own goal, and gives its steps the other one: rewards that
        read the own goal elsewhere, from info or from the environment, differ.
        """
        seen, places = self._at_goal[1:], self._places
        if not seen:
            return Verdict(f"cannot tell: {_NOT_SET}")
        if not self._repeats:
            return Verdict("cannot tell: it does not repeat itself under one seed")
        own, paid = self._replayed(self.episode)
        if self._own_gaps(paid, own).any():
            return Verdict("cannot tell: rewards under the own goal differ already")
        computed = self._of_near_goal(self.envs.goal_reward, places)
        paid = np.array([step.reward for step in seen], np.float32)
        near = np.broadcast_to(self._near_goal.astype(places.dtype), places.shape)
        gaps = _gaps(
            functools.partial(self._of_near_goal, self.envs.goal_reward),
            *((places, near), paid, computed),
        )
        if not gaps.any():
            return Verdict(f"replay computes what {len(paid)} steps under another goal paid")
        if not reward_gaps(paid, own[: len(paid)]).any():
            return Verdict("cannot tell: steps pay for another goal than the attribute `goal`")
        step = int(np.argmax(gaps))
        cause, cure = (
            "compute_reward knows the goal of the episode from info or from the environment; "
            f"read of info: {few(list(self.envs.asked)) or 'nothing'}",
            "let compute_reward use the desired goal that it is given, and read nothing from info "
            "that hangs on the goal",
        )
        places = np.array([one.observation["achieved_goal"] for one in seen])
        if not reward_gaps(paid, self._of_near_goal(self.envs.goal_reward, places)).any():
            cause, cure = _digits(places[step])
        return Verdict(
            f"step {step + 1} under another goal pays {paid[step]:g}, and replay computes "
            f"{computed[step]:g} ({int(gaps.sum())} of {len(paid)} steps differ): {cause}",
            cure,
        )

    def ends(self) -> Verdict:
        """Looks for episodes that end at their goal, where nobody can say so of another goal."""
        if self.envs.ends_at_goals:
            return self._ends_alike()
        episode, earlier = self.episode, len(self._at_goal) <= int(self.episode.length[0])
        ended = earlier and any(seen.terminated for seen in self._at_goal)
        ended |= bool((episode.terminated & episode.success).any())
        if not ended or self.envs.success_ends is False:
            return Verdict("no episode was seen to end at its goal")
        return Verdict(
            "episodes end at their goal, and nothing says where they end under another one: steps "
            "that met a goal of hindsight are valued as if the episode went on",
            "define compute_terminated(achieved_goal, desired_goal, info), or give "
            "--env.success-ends False",
            rare=True,
        )

    def _ends_alike(self) -> Verdict:
        """Compares where an episode ends at a goal with what `compute_terminated` says of it."""
        fine = Verdict("compute_terminated says where an episode ends under another goal")
        seen = self._at_goal[1:]
        if not seen or not self._repeats:
            return fine
        said = self._of_near_goal(self.envs.goal_terminated, self._places)
        ended = np.array([step.terminated for step in seen])
        earlier = len(seen) < min(_AROUND, int(self.episode.length[0]))  # and so for its goal
        wrong = (said & ~ended) | (~said & ended & earlier)
        if not wrong.any():
            return fine
        step = int(np.argmax(wrong))
        does, says = ("ends", "does not") if ended[step] else ("goes on", "does")
        return Verdict(
            f"step {step + 1} of an episode that meets its goal {does}, and compute_terminated "
            f"says that it {says} end: replay would believe the latter",
            "let step end episodes where compute_terminated says so, or give --env.success-ends "
            "False",
            rare=True,
        )

    @property
    def _places(self) -> Any:
        """Goals that the first episode achieved in as many steps as the other one has, [N, G]."""
        return self._achieved[1 : len(self._at_goal)]

    @functools.cached_property
    def _achieved(self) -> Any:
        """Goals that the episode achieved, [T + 1, G], as exactly as replay has them."""
        achieved, extras = self.episode.achieved_goal[0], self.episode.extras
        if not self.exact_goals:
            return achieved
        return np.add(achieved, extras[ACHIEVED_REST][0], dtype=np.float64)

    @functools.cached_property
    def _repeats(self) -> bool:
        """Whether the episode under another goal went where the first one did."""
        pairs = zip(self._at_goal[1:], self._places, strict=True)
        return all(_same(seen.observation["achieved_goal"], place) for seen, place in pairs)

    def _of_near_goal(self, method: Callable[..., np.ndarray], places: Array) -> np.ndarray:
        """Returns what replay asks of steps of the first episode under the goal near it, [N]."""
        return self._under(method, self._near_goal, places, SEED)

    def _under(
        self, method: Callable[..., np.ndarray], goal: Any, places: Array, seed: int
    ) -> np.ndarray:
        """Returns what replay asks of steps of the first episode under a goal, [N].

        The environment has the goal of a seed meanwhile, else it would have that goal itself.
        """
        self.envs.reset([0], [seed])
        extras = {
            name: values[0, 1 : 1 + len(places)] for name, values in self.episode.extras.items()
        }
        goals = np.broadcast_to(goal.astype(places.dtype), places.shape)
        return method(places, goals, extras)

    def inputs(self, most: float) -> Verdict:
        """Looks for numbers that networks see cut off, at most so large."""
        episode, length = self.episode, int(self.episode.length[0]) + 1
        seen = {
            "the observation": episode.observation[0, :length],
            "goals": np.concatenate([episode.achieved_goal[0, :length], episode.desired_goal]),
        }
        for name, values in seen.items():
            columns = np.flatnonzero((np.abs(values) > most).any(axis=0)).tolist()
            if columns:
                return Verdict(
                    f"columns {few(list(map(str, columns)))} of {name} reach "
                    f"{np.abs(values).max():g}, and networks see them clipped at {most:g}",
                    "give them in larger units, relative to a place near them, or give "
                    "--normalizer.input-clip a larger number",
                    rare=True,
                )
        return Verdict("no number is clipped")

    @functools.cached_property
    def _near_goal(self) -> Any:
        """A goal that the episode meets after some steps."""
        return self._achieved[min(_SOON, int(self.episode.length[0]))].astype(float)

    @functools.cached_property
    def _at_goal(self) -> Sequence[RawStep]:
        """The episode again under a goal that it meets; empty where goals cannot be set."""
        actions, seed = self.episode.action[0][:_AROUND], int(self.episode.seed[0])
        try:
            seen = list(self.steps(actions, seed, self._near_goal))
        except FROM_USERS:  # whatever comes of a goal that nobody foresaw
            return ()
        return seen if _same(seen[1].observation["desired_goal"], self._near_goal) else ()

    def _step_under(self, goal: Any) -> RawStep | None:
        """Returns the first step of the episode under a goal; None where that cannot be set."""
        actions, seed = self.episode.action[0][:1], int(self.episode.seed[0])
        try:
            *_, seen = self.steps(actions, seed, goal)
        except FROM_USERS:  # whatever comes of a goal that nobody foresaw
            return None
        there = goal is None or _same(seen.observation["desired_goal"], goal)
        return seen if there else None

    def _other_goal(self) -> Any:
        """Returns a goal of another episode; None where all have the same."""
        for seed in _OTHER_SEEDS:
            goal = self.envs.reset([0], [seed]).desired_goal[0]
            if not np.array_equal(goal, self.episode.desired_goal[0]):
                return goal.astype(float)
        return None

    def reward_bounds(self) -> tuple[float, float] | None:
        """Returns the two values that rewards have; None where they are known, or are not two.

        They are looked for under the goals of this episode and of others, under what was achieved,
        and at all distances from it.

        Raises:
            EnvironmentFault: The environment does not play, or pays nothing.
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
            with contextlib.suppress(EnvironmentFault):  # its map may end before
                rewards.append(self.envs.goal_reward(achieved, goals.astype(np.float32), extras))
        values = np.unique([*self._replayed(episode), *rewards])
        if len(values) != 2:  # noqa: PLR2004
            return None
        return _outwards(values[0], -np.inf), _outwards(values[1], np.inf)

    def _need_digits(self) -> bool:
        """Whether single precision moves goals by a thousandth of what a step does, or by more.

        Of environments that are known it does not.
        """
        if not self.has_goals or self.envs.info.family != lookup("").family:
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
        """An episode of random actions, [1, T, ...], always the same.

        Raises:
            EnvironmentFault: The environment spoils it.
        """
        generator = np.random.default_rng(SEED)
        shape = (1, self.envs.spec.action_dim)

        def act(*_: Array) -> Array:
            return generator.uniform(-1.0, 1.0, shape).astype(np.float32)

        return play(self.envs, act, Conditions(np.array([SEED]), None, np.ones((1, 1), "f")), None)

    def _replayed(self, episode: Episodes) -> tuple[Array, Array]:
        """Returns what replay pays for each step of an episode, and what the step paid, [N]."""
        spec, length = self.envs.spec, int(episode.length[0])
        shard = Shard(spec, 1, ReplayConfig(capacity=spec.max_episode_steps))
        shard.add(episode, np.random.default_rng(SEED))
        first, steps = np.zeros(length, np.int64), np.arange(length)
        drawn = shard.look_up(Picks(first, steps, np.full(length, -1)))
        self.envs.reset([0], _OTHER_SEEDS[:1])  # as replay does it in the midst of other episodes
        return transition(drawn, 0.0, self.envs.goal_reward).reward, drawn.reward

    def _cause(self, episode: Episodes, step: int) -> tuple[str, str]:
        """Returns why a step paid something else than replay computes, and the cure.

        The episode is played again, without what is stored of it between.
        """
        seen = list(self.steps(episode.action[0, : step + 1], int(episode.seed[0])))
        first, last = seen[0].observation, seen[-1]
        goal = np.asarray(last.observation["desired_goal"])
        if not np.array_equal(goal, first["desired_goal"]):
            return "the goal moves within the episode", "draw goals in reset only"
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
        """Plays actions [T, A] in [-1, 1] without stored rows; yields what reset and steps gave.

        Args:
            actions: What is done; an episode may end before they do.
            seed: Of the reset.
            goal: Replaces the environment's own, if its attribute `goal` can be set.
        """
        environment: Any = self.envs.environment
        simulator.clear_state(environment.unwrapped)
        observation, info = environment.reset(seed=seed)
        yield RawStep(_copied(observation), 0.0, False, dict(info))
        if goal is not None:
            show_goal(environment.unwrapped, goal)
            task: Any = getattr(environment.unwrapped, "task", None)
            if hasattr(task, "goal"):  # as panda-gym keeps it
                task.goal = goal.copy()
        for action in self.envs.scaled(actions):
            with np.errstate(all="ignore"):
                observation, reward, terminated, truncated, info = environment.step(action)
            yield RawStep(_copied(observation), float(reward), bool(terminated), dict(info))
            if terminated or truncated:
                break
        simulator.take_warnings()


def _gaps(
    reward_of: Callable[[Array], Array], places: tuple[Array, Array], paid: Array, computed: Array
) -> BoolArray:
    """Returns where rewards [N] differ by more than goals that are rounded explain.

    As `explained_by_rounding`, which is asked only where they differ.
    """
    gaps = reward_gaps(paid, computed)
    if gaps.any():
        gaps &= ~explained_by_rounding(reward_of, places, paid, computed)
    return gaps


class Rehearsed(NamedTuple):
    """What a rehearsal tells of a run that it does not refuse."""

    warnings: Sequence[str] = ()
    reward_bounds: tuple[float, float] | None = None
    """Lowest and highest reward of a step, where a run needs them and nobody has said them."""
    exact_goals: bool = False
    """Whether replay has to keep more of goals than single precision does."""


def rehearse(config: Config) -> Rehearsed:
    """Plays before a run what its replay recomputes.

    An environment that cannot be made, or does not play, is left to training, which will meet it.

    Raises:
        EnvironmentFault: Replay would learn from wrong numbers.
    """
    question, own = _asked_of_split(config), config.goals == "environment"
    if not own or ("task" not in config.rewards and not relabel_probability(config.replay)):
        return Rehearsed(question)
    verdicts: list[Verdict] = []
    bounds, exact_goals = None, False
    with _streams_kept(), contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(MusicError))  # what was found before counts
        stage = stack.enter_context(Rehearsal(config.env_id, config.env, config.world))
        if stage.has_goals:
            exact_goals = stage.exact_goals
            verdicts.extend(stage.verdicts(config))
            bounds = stage.reward_bounds() if _needs_bounds(config) else None
    for verdict in verdicts:
        if verdict.cure and not verdict.rare:
            text = f"{config.env_id}: {verdict.detail}\ncure: {verdict.cure}"
            raise EnvironmentFault(f"{text}\nmusic-tf check-env {config.env_id} says more")
    rare = [verdict for verdict in verdicts if verdict.cure]
    texts = (f"{config.env_id}: {verdict.detail}\ncure: {verdict.cure}" for verdict in rare)
    return Rehearsed((*question, *texts), bounds, exact_goals)


def _asked_of_split(config: Config) -> tuple[str, ...]:
    """Returns a question where surroundings that somebody named move in most random steps.

    The robot's own columns do, and a reward for moving both together would be paid from the start.

    Raises:
        EnvironmentFault: What somebody named as the robot's never changes.
    """
    if not _OF_SPLITS & set(config.rewards):
        return ()
    split, episodes = None, []
    with _streams_kept(), contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(MusicError))  # training will meet it
        envs = LockstepEnvs(config.env_id, 1, config.env, world=config.world)
        stack.callback(envs.close)
        envs.hush()
        split = envs.spec.split
        if split is None or split == lookup(config.env_id).split:
            return ()
        episodes = played_at_random(envs)
        simulator.take_warnings()
    if split is None or not any(len(rows) > 1 for rows in episodes):
        return ()
    cure = f"music-tf check-env {config.env_id} shows what each column does"
    if not any(np.ptp(rows[:, list(split.agent)], axis=0).any() for rows in episodes):
        named = few([str(column) for column in split.agent])
        raise EnvironmentFault(
            f"{config.env_id}: expected columns of the robot that actions move, got {named}, "
            f"which stay as they are in {len(episodes)} episodes of random actions\n{cure}"
        )
    share = share_moved(episodes, split.surrounding)
    if share <= _MOST:
        return ()
    named = few([str(column) for column in split.surrounding])
    return (
        f"{config.env_id}: the surroundings (columns {named}) move in {share:.0%} of random steps; "
        "is that split right? It is if they are held or move by themselves, and wrong if they are "
        f"the robot's\n{cure}",
    )


def _needs_bounds(config: Config) -> bool:
    """Whether a run counts on rewards that are bounded, and does not say by what."""
    task = config.rewards.get("task")
    if task is None or config.agent.return_clip != "auto" or config.world.reward:
        return False
    return not all(map(math.isfinite, task.clip))


@contextlib.contextmanager
def _streams_kept() -> Iterator[None]:
    """Leaves the random streams that all of Python and numpy share as they were."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - user code may draw from it
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def _same(goal: Any, other: Any) -> bool:
    """Whether goals are the same up to single precision."""
    return bool(np.array_equal(np.asarray(goal, np.float32), np.asarray(other, np.float32)))


def _outwards(reward: Any, end: float) -> float:
    """Returns a bound that holds for a reward of which a rounded copy is there."""
    whole = float(reward).is_integer()
    return float(reward if whole else np.nextafter(np.float32(reward), np.float32(end)))


def _copied(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what an environment observed, which may change its arrays later."""
    return {name: np.array(value) for name, value in observation.items()}


def _wrappers(environment: Any) -> list[str]:
    """Returns the classes of a user's wrappers around an environment."""
    names = []
    while environment is not environment.unwrapped:
        if not type(environment).__module__.startswith("gymnasium.wrappers.common"):
            names.append(type(environment).__name__)
        environment = environment.env
    return names


def _listed(goal: Any) -> str:
    shown = ", ".join(f"{number:.10g}" for number in goal[:_FEW])
    return f"({shown}{', ...' if len(goal) > _FEW else ''})"


def _digits(goal: Any) -> tuple[str, str]:
    """Returns that such goals are too long for replay, and the cure."""
    return (
        f"goals such as {_listed(goal)} have more digits than the single precision in which "
        "replay keeps them",
        "give goals relative to a place near them: subtract a constant in achieved and desired "
        "goals",
    )
