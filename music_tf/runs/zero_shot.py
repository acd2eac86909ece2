"""Zero-shot goals: a run trained without goals reaches them by its embedding or its skills."""

import dataclasses
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from music_tf.config.names import few
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import descriptor_of
from music_tf.errors import UsageError
from music_tf.networks.acting import SkillSnapshots, Snapshot
from music_tf.networks.embedding import Embedding, Ends
from music_tf.rollout import Policy
from music_tf.runs.loaded_run import LoadedRun
from music_tf.storage.metrics import FOLLOWED
from music_tf.storage.run_paths import agents, name_of
from music_tf.training.collect import cut_where_lost
from music_tf.training.evaluation import Evaluation, random_actions, zero_policy
from music_tf.types import Array, BoolArray, Episodes, IntArray, Metrics

_LOGGER = logging.getLogger(__name__)
GOALS = 200
_PRACTICE = 48
"""Number of other goals, on which the stopping distance is chosen."""
_FEW = 8
"""Number of these episodes from which the columns that goals specify are found."""
_SAME = 1e-5
"""Largest difference between a column and an equal component of the achieved goal, as a share of
the range of that component, beside rounding."""
_APART = 10**6
"""Index of the first of these episodes, beyond those of any evaluation."""
_RAISED = 0.03
"""Metres above the rest of an object at which a goal lies in the air."""
_TOLD = {Embedding: "an embedding that sees", Ends: "skills that are distinguished by"}
_COLUMNS = {Embedding: "--distance.columns", Ends: "--world.descriptor"}
_STOPS = (0.0, 0.1, 0.2, 0.3, 0.45)
"""Stopping distances to try, as shares of the median distance at the start of an episode. The
first never stops."""
_X, _Y = 0.08 * np.stack([trace(np.linspace(0.0, 2.0 * np.pi, 73)) for trace in (np.cos, np.sin)])
_SIDE = np.maximum(np.abs(_X), np.abs(_Y)) / 0.08
_SHAPES = {"circle": (_X, _Y), "square": (_X / _SIDE, _Y / _SIDE), "eight": (_X, _X * _Y / 0.08)}
"""Paths of a radius of 8 cm around 0."""
_FOLLOWING, _STEPS, _FROM = 100, 150, 40
"""Episodes with a goal that moves, their steps, and the first of these that counts."""
_FARTHEST = 1e9
"""Largest number of a point on a path, as of `--reach`."""
GoalGuide: TypeAlias = Embedding | Ends
"""What chooses the condition that leads to a place: an embedding, or the ends of skills."""


def guide_to_goals(loaded: LoadedRun, option: str = "--zero-shot") -> GoalGuide:
    """Returns the embedding, or the ends of skills, by which a run reaches goals."""
    run, has_goals = loaded.path, loaded.envs.spec.goal_dim > 0
    if option != "--reach" and not has_goals:
        raise UsageError(
            f"{option}: {run}: expected an environment with goals, {loaded.config.env_id} has "
            f"none\nto send the run to a place of yours: music-tf play {run} --reach X Y"
        )
    guide = loaded.saved.leads
    reason = guide if isinstance(guide, str) else "it has no embedding, and no skills that lead on"
    if isinstance(guide, Ends):
        columns, extra = descriptor_of(loaded.envs.info, loaded.envs.spec)
        guide = guide._replace(columns=tuple(columns))
        if extra or len(columns) != guide.seen:
            guide = reason = "its skills are told apart by what no column of the observation holds"
    if isinstance(guide, Embedding | Ends):
        if loaded.config.goals == "zero" or not has_goals:
            return guide
        reason = "it was trained on goals, so that none of them is new, expected --goals zero"
    able = ", ".join(name for name, of in agents().items() if "zero_shot" in of["evaluation"])
    raise UsageError(
        f"{option}: {name_of(run)} cannot be sent to a place: {reason}\n"
        f"agents that can: {able}; a recipe for it: sac_place"
    )


class Places(NamedTuple):
    """Maps goals of an environment to places, which are columns of the observation."""

    columns: IntArray  # [n], columns of a place
    specified: BoolArray  # [n], whether a goal specifies the column
    numbers: IntArray  # [n], by which of its components

    def of(self, observation: Array, goal: Array) -> tuple[Array, Array]:
        """Returns the places of states [E, O] and of goals [E, G], each [E, n]."""
        here = observation[:, self.columns]
        return here, np.where(self.specified, goal[:, self.numbers], here)

    def goal_at(self, place: Array, achieved: Array) -> Array:
        """Returns goals [E, G] at places [n] or [E, n]; other components are those `achieved`."""
        goals = achieved.copy()
        goals[:, self.numbers[self.specified]] = place[..., self.specified]
        return goals


def places_of(leads: GoalGuide, played: Episodes, run: str) -> Places:
    """Finds which columns goals specify: those that always equal one of an achieved goal."""
    columns, count = np.array(leads.columns), len(played.observation)
    seen, achieved = (
        part.reshape(-1, part.shape[-1])  # after an end the last state is repeated
        for part in (played.observation[..., columns], played.achieved_goal)
    )
    least = _SAME * np.ptp(achieved, axis=0) + np.spacing(np.abs(achieved).max(axis=0))
    gaps = np.abs(seen[:, :, None] - achieved[:, None, :]).max(axis=0)
    same, still = gaps <= least, np.ptp(seen, axis=0) == 0.0  # [n, G], [n]
    specified, numbers = np.zeros(len(columns), np.bool_), np.zeros(len(columns), np.int64)
    free = np.ones(achieved.shape[1], np.bool_)
    for place in range(len(columns)):
        fits = same[place] & free & ~still[place]  # still columns show nothing
        specified[place], numbers[place] = fits.any(), fits.argmax()
        free[numbers[place]] &= not specified[place]
    unknown = columns[still & same.any(axis=1)].tolist()
    if not specified.any():
        why = (
            f"of which {unknown} never differ in {count} episodes, so that nothing tells "
            "their components in the goal\ncure: train on until the policy moves them"
            if unknown
            else "none of which is in the achieved goal\n"
            f"train one with them: {_COLUMNS[type(leads)]}"
        )
        raise UsageError(
            f"{run}: expected {_TOLD[type(leads)]} what goals are about, got "
            f"columns {columns.tolist()}, {why}"
        )
    if unknown:
        _LOGGER.warning(
            "%s: columns %s never differ in %d episodes, so goals say nothing of them",
            run,
            few(list(map(str, unknown))),
            count,
        )
    return Places(columns, specified, numbers)


@dataclasses.dataclass(frozen=True)
class ReachingPolicy:
    """Goes to the environment's goal by conditions; its networks see zero goals."""

    snapshot: Snapshot | SkillSnapshots
    leads: GoalGuide
    places: Places
    stop: float = 0.0
    """Distance to the goal, in the embedding if there is one, below which actions are zero."""
    hold: bool = False
    """Actions there are the mean of those under opposite conditions, which a grasp survives."""
    place: Array | None = None
    """Where to go instead of the goal, [n]."""

    def __call__(self, observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        del skill, noise
        here = observation[:, self.places.columns]
        if self.place is None:
            here, target = self.places.of(observation, goal)
        else:
            target = np.broadcast_to(self.place, here.shape)
        condition = self.leads.leading(here, target)
        action = self.snapshot.act(observation, np.zeros_like(goal), condition, None)
        near = self.leads.distance(here, target) < self.stop
        rest = np.zeros_like(action)
        if self.hold:
            opposite = self.snapshot.act(observation, np.zeros_like(goal), -condition, None)
            rest = np.float32(0.5) * (action + opposite)
        return np.where(near[:, None], rest, action)


def reaching(
    evaluation: Evaluation, snapshot: Snapshot | SkillSnapshots, leads: GoalGuide, run: str
) -> tuple[Evaluation, ReachingPolicy]:
    """Returns an evaluation under the environment's own goals, and the policy that goes there."""
    config = dataclasses.replace(evaluation.config, goals="environment")
    shown = evaluation._replace(config=config)
    some = np.arange(_APART, _APART + _FEW)
    aimless = _under_fixed_conditions(snapshot)
    places = places_of(leads, shown.play_some(aimless, some, len(shown.envs)), run)
    return shown, ReachingPolicy(snapshot, leads, places)


def measure_zero_shot(
    evaluation: Evaluation,
    snapshot: Snapshot | SkillSnapshots,
    leads: GoalGuide,
    run: str,
    goals: int = GOALS,
) -> dict[str, Metrics]:
    """Measures how many of the environment's own goals a run reaches that was trained without."""
    spec = evaluation.envs.spec
    shown, plain = reaching(evaluation, snapshot, leads, run)
    others = np.arange(_APART, _APART + _PRACTICE)
    aimless = _under_fixed_conditions(snapshot)

    def practised(policy: Policy) -> Episodes:
        return shown.play_some(policy, others, len(shown.envs))

    starts = practised(plain)
    first = plain.places.of(starts.observation[:, 0], starts.desired_goal)
    usual = float(np.median(leads.distance(*first)))
    ours = _shares(shown, shown.play(plain, goals))
    kind = getattr(leads, "condition", "")
    for hold in (False, True) if kind in {"sphere", "gaussian"} else (False,):
        braked = [dataclasses.replace(plain, stop=share * usual, hold=hold) for share in _STOPS]
        tried = (starts, *map(practised, braked[1:]))  # the first has no brake
        best = braked[int(np.argmax([_shares(shown, played)["zero_shot/end"] for played in tried]))]
        stopped = ours if best is braked[0] else _shares(shown, shown.play(best, goals))
        ours[f"zero_shot/end_with_{'hold' if hold else 'brake'}"] = stopped["zero_shot/end"]
        ours[f"zero_shot/{'hold' if hold else 'stop'}"] = best.stop
    if getattr(leads, "speed", 0.0) and len(leads.columns) <= len("xyz"):
        ours |= _follow(shown, plain)
    beside = {
        "random conditions": shown.play(aimless, goals),
        "random": shown.play(zero_policy, goals, added=random_actions(spec)),
        "nothing": shown.play(zero_policy, goals),
    }
    return {"ours": ours} | {name: _shares(shown, played) for name, played in beside.items()}


def points_of(path: str, leads: GoalGuide) -> Array:
    """Returns the points of a shape around 0, [N, 2], or those of a CSV file, [N, n]."""
    if not getattr(leads, "speed", 0.0):
        raise UsageError(
            "--path: expected an agent with speeds, trained with --distance.speed auto, got one "
            "without\nit goes to a place that rests: --reach X Y"
        )
    if path in _SHAPES:
        return np.stack(_SHAPES[path], axis=-1)
    try:
        rows = Path(path).read_text(encoding="utf-8-sig").splitlines()
        points = np.loadtxt(rows, np.float32, delimiter=",", ndmin=2)
        far = min(np.ptp(points, axis=0).max(), _FARTHEST - np.abs(points).max())
        if points.shape[-1] != len(leads.columns) or not 0.0 < far < np.inf:
            raise ValueError(f"it has rows such as {points[:2].tolist()!s:.80}")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--path: expected {', '.join(_SHAPES)}, or a .csv file without a header: points, as "
            f"rows of the numbers of --reach, for columns {list(leads.columns)}; got {path!r:.80}\n"
            f"{error!s:.160}"
        ) from error
    return points


def moving_goals(
    evaluation: Evaluation, policy: ReachingPolicy, path: str, share: float = 0.5
) -> Array:
    """Returns a goal that moves along a path at a share of the policy's speed, [T + 1, G]."""
    leads: Any = policy.leads
    places, envs, points = policy.places, evaluation.envs, points_of(path, leads)
    drawn = np.concatenate([envs.reset([0], [seed]).desired_goal for seed in range(GOALS)])
    low, high = drawn.min(axis=0).astype(float), drawn.max(axis=0).astype(float)
    goals = np.repeat(0.5 * (low + high)[None], len(points), axis=0)
    numbers = places.numbers[places.specified]
    if path in _SHAPES:
        of_first = sorted(numbers)[: len(numbers) // leads.groups]  # of several objects
        differ = [number for number in of_first if high[number] > low[number]] or numbers
        goals[:, [differ[0], differ[-1]]] += points
    else:
        goals = places.goal_at(points, goals)
    scale = 1.0 if leads.scale is None else leads.scale[1][places.specified]
    ways = np.linalg.norm(np.diff(goals[:, numbers], axis=0) / scale, axis=-1)
    at = np.concatenate([[0.0], np.cumsum(ways)])
    if not at[-1]:
        raise UsageError(f"--path: {path}: expected points that differ for the environment's goals")
    far = share * leads.speed * np.arange(envs.spec.max_episode_steps + 1)
    far = far % at[-1] if np.allclose(goals[0], goals[-1]) else far
    moving = np.stack([np.interp(far, at, column) for column in goals.T], 1).astype(np.float32)
    if beyond := int(((moving < low) | (moving > high)).any(axis=1).sum()):
        _LOGGER.warning(
            "--path: %d of its %d goals lie outside %s to %s, where %d goals of the environment "
            "lie, so the robot may not get there",
            *(beyond, len(moving), low.round(2).tolist(), high.round(2).tolist(), GOALS),
        )
    return moving


def _follow(evaluation: Evaluation, policy: ReachingPolicy) -> Metrics:
    """Returns how well a policy follows a goal on a circle, at each of the speeds `FOLLOWED`."""
    config, numbers = evaluation.config, policy.places.numbers[policy.places.specified]
    longer_ones = json.loads(config.evaluated_env.kwargs) | {"max_episode_steps": _STEPS}
    env = dataclasses.replace(config.evaluated_env, kwargs=json.dumps(longer_ones))
    envs = LockstepEnvs(config.env_id, len(evaluation.envs), env, world=config.world)
    longer, metrics = evaluation._replace(envs=envs), Metrics()
    for name, share in FOLLOWED.items():
        moving = moving_goals(longer, policy, "circle", share)
        played = longer.play_some(policy, np.arange(_FOLLOWING), len(envs), moving)
        ways = (played.achieved_goal - moving)[:, _FROM:, numbers]
        metrics[f"zero_shot/{name}_m"] = float(np.linalg.norm(ways, axis=-1).mean())
        metrics[f"zero_shot/{name}_lost"] = float(cut_where_lost(played, envs.info).lost.mean())
    envs.close()
    return metrics


def _shares(evaluation: Evaluation, played: Episodes) -> Metrics:
    """Shares of goals reached at any state and at the last one, also above a table and on it."""
    reached = reached_states(evaluation, played)
    last = reached[np.arange(len(reached)), played.length]
    shares = {
        "zero_shot/ever": float(reached.any(axis=1).mean()),
        "zero_shot/end": float(last.mean()),
    }
    support, goals = evaluation.envs.info.support, played.desired_goal
    if support is not None and goals.shape[1] == len("xyz"):
        raised = goals[:, 2] > support.rest_height + _RAISED
        for name, chosen in (("air", raised), ("table", ~raised)):
            if raised.any() and chosen.any():
                shares[f"zero_shot/end_{name}"] = float(last[chosen].mean())
    return shares


def reached_states(evaluation: Evaluation, played: Episodes) -> BoolArray:
    """States with the environment's highest reward, which are at the goal, [E, T + 1]."""
    envs = evaluation.envs
    lowest, highest = envs.info.reward_bounds
    count, states = played.achieved_goal.shape[:2]
    goals = np.repeat(played.desired_goal[:, None], states, axis=1)
    extras = {name: values.reshape(count * states, -1) for name, values in played.extras.items()}
    width = played.achieved_goal.shape[-1]
    paid = envs.goal_reward(
        played.achieved_goal.reshape(-1, width), goals.reshape(-1, width), extras
    ).reshape(count, states)
    kept = played.state_mask
    if not np.isin(paid[kept], np.array([lowest, highest], np.float32)).all():
        raise UsageError(
            f"--zero-shot: {envs.spec.env_id}: expected a reward of two values, which says when a "
            "goal is reached\nwhere the program does not know them, train with lowest and highest: "
            f"music-tf train RECIPE --env-id {envs.spec.env_id} --world.reward -1 0"
        )
    return (paid >= highest) & kept


def _under_fixed_conditions(snapshot: Snapshot | SkillSnapshots) -> Policy:
    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        del noise
        return snapshot.act(observation, np.zeros_like(goal), skill, None)

    return act
