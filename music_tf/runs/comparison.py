"""Measures what a policy does beside simple ones: the final table, skills, and control."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.config.world import ALL
from music_tf.envs.scripted import StraightShove
from music_tf.measures import behaviour
from music_tf.measures.information import information_of_moves
from music_tf.measures.skills import Track, separation
from music_tf.randomness import stream
from music_tf.rollout import Policy
from music_tf.runs.progress import Row
from music_tf.storage.metrics import CONTROL
from music_tf.training.evaluation import (
    Added,
    Comparison,
    Evaluation,
    noise,
    random_actions,
    zero_policy,
)
from music_tf.types import Array, Episodes, IntArray, Metrics

EPISODES = 100
COVERED = 200
"""Episodes over which coverage is counted; counts grow with their number."""
NOISE = 0.05
"""Standard deviation of the noise on actions in [-1, 1], under which end positions are compared."""
REPEATS = 8
STARTS = 25
"""Episodes that are repeated under noise, and that every skill plays."""
SEPARATED = 10
"""Largest number of episodes per skill for distances between skills in the final table."""
SHOVE, RANDOM_SHOVE = "scripted shove", "shove in random directions"
_SEED = 20210309
_STILL = 1e-12
"""Squared length below which a variance is rounding."""
_COLUMNS = {
    "skill/accuracy_heldout": "accuracy",
    "skill/diversity_return": "diverse",
    "eval/return": "return",
    "eval/success_rate": "success",
    "eval/object_moved_rate": "moved",
    "eval/object_displacement_m": "distance",
    "eval/object_comotion_m": "comotion",
    "eval/object_on_support_rate": "on support",
    "eval/object_lift_rate": "lifted",
}
_AXES = 3
_LENGTHS = ("distance", "comotion", "dx", "dy", "dz")


class Trace(NamedTuple):
    """One reward along episodes, for pictures of them."""

    name: str
    values: Array  # [E, T]
    lowest: float
    """Lower bound of the reward, infinite without one."""
    highest: float


def compare(evaluation: Evaluation, policy: Policy, episodes: int = EPISODES) -> Comparison:
    """Evaluates our policy, random actions and a scripted shove on equal episodes; collective."""
    played = dict(_beside_baselines(evaluation, policy, episodes, (SHOVE,)))
    metrics = {name: evaluation.metrics_of(each) for name, each in played.items()}
    at_random = functools.partial(random_actions, evaluation.envs.spec)
    metrics["ours"] |= separate(evaluation, policy, episodes)
    metrics["random"] |= separate(evaluation, zero_policy, episodes, at_random)
    errors = evaluation.errors(played["ours"], played["random"])
    return Comparison(metrics, episodes, "episodes", errors)


def separate(
    evaluation: Evaluation,
    policy: Policy,
    episodes: int,
    added: Callable[[int], Added | None] = lambda skill: None,
) -> Metrics:
    """Metrics of `separation` under actions with `added`; empty for one skill; collective."""
    skills = evaluation.config.acting_skills
    if len(skills) < 2:  # noqa: PLR2004
        return {}
    each = max(1, min(SEPARATED, episodes // len(skills)))
    played = (evaluation.play(policy, each, skill, added(skill)) for skill in skills)
    return separation(list(map(evaluation.track, played))).metrics()


def cover(evaluation: Evaluation, policy: Policy) -> dict[str, Metrics]:
    """Measures where policies bring the object and keep it, by `COVERAGE`; a collective call."""
    info = evaluation.envs.info
    if info.object is None:
        return {}
    played = _beside_baselines(evaluation, policy, COVERED, (SHOVE, RANDOM_SHOVE))
    return {name: behaviour.coverage(each.observation, each.length, info) for name, each in played}


def measure_skills(
    evaluation: Evaluation,
    policy: Policy,
    episodes: int,
    heldout: Callable[[Episodes], Metrics] = lambda played: {},
) -> list[dict[str, Any]]:
    """Measures each skill on the same episodes, `heldout` included; a collective call."""
    acting = evaluation.config.acting_skills
    rows: list[dict[str, Any]] = []
    tracks = []
    for skill in acting if len(acting) > 1 else ():
        played = evaluation.play(policy, episodes, skill)
        tracks.append(evaluation.track(played))
        ways = behaviour.shifts(played.observation, played.length, evaluation.envs.info)
        metrics = evaluation.behaviour(played) | heldout(played)
        shift = None if ways is None else [float(way) for way in ways.mean(axis=0)]
        rows.append({"skill": skill, "metrics": metrics, "shift_m": shift})
    if rows:
        distances = separation(tracks)
        for row, nearest, spread in zip(rows, distances.nearest, distances.spreads, strict=True):
            row |= {"nearest": float(nearest), "spread": float(spread)}
    return rows


def skill_rows(
    measured: Sequence[dict[str, Any]], random: Metrics, unit: str = "m"
) -> dict[str, Row]:
    """Returns the rows of the table of skills; distances between skills only without an object."""
    every = [random, *(skill["metrics"] for skill in measured)]

    def in_unit(title: str) -> str:
        return f"{title} {unit}".rstrip() if title in _LENGTHS else title

    shown = {name: in_unit(title) for name, title in _COLUMNS.items()}
    if not any(metrics.get("eval/return") for metrics in every):
        del shown["eval/return"]

    def named(metrics: Metrics) -> dict[str, float | str | None]:
        return {title: metrics[name] for name, title in shown.items() if name in metrics}

    rows: dict[str, Row] = {}
    for skill in measured:
        row = named(skill["metrics"])
        if skill["shift_m"] is None and "nearest" in skill:
            row |= {"nearest skill": skill["nearest"], "spread": skill["spread"]}
        if skill["shift_m"] is not None:
            row |= dict(zip(map(in_unit, _LENGTHS[-_AXES:]), skill["shift_m"], strict=False))
            if len(skill["shift_m"]) > 1:
                row["way"] = behaviour.direction(*skill["shift_m"][:2])
        rows[f"skill {skill['skill']}"] = row
    return rows | {"random": named(random)}


def judge(
    evaluation: Evaluation, policy: Policy, episodes: int, rollout_cells: float | None = None
) -> dict[str, Metrics]:
    """Measures `CONTROL` by our and by the random policy, on the same episodes; collective."""
    at_random = functools.partial(random_actions, evaluation.envs.spec)
    measured = {
        "ours": _measures(evaluation, policy, episodes, lambda draw: None),
        "random": _measures(evaluation, zero_policy, episodes, at_random),
    }
    support = evaluation.envs.info.support
    if support is not None and rollout_cells is not None:
        measured["ours"]["control/rollout_coverage"] = rollout_cells / behaviour.support_cells(
            support
        )
    return {
        name: {metric: measures[metric] for metric in CONTROL if metric in measures}
        for name, measures in measured.items()
    }


def end_spread(ends: Array) -> float:
    """Root mean square distance of ends [R, S, D] from the mean of R repeats of a start."""
    variances: npt.NDArray[np.float64] = ends.var(axis=0, ddof=1, dtype=np.float64)  # [S, D]
    return float(np.sqrt(variances.sum(axis=-1).mean()))


def variance_explained(ends: Array) -> float:
    """Share of the variance of ends [K, S, D] that lies between skills, eta squared."""
    deviations = ends.astype(np.float64) - ends.mean(axis=(0, 1), dtype=np.float64)
    total = float(np.square(deviations).sum())
    between = ends.shape[1] * float(np.square(deviations.mean(axis=1)).sum())
    return between / total if total > _STILL else 0.0


def linearly_explained(conditions: Array, ends: Array) -> float:
    """Share of the variance of ends [E, D] that a linear map of conditions [E, K] explains, R^2."""
    deviations = ends.astype(np.float64) - ends.mean(axis=0, dtype=np.float64)
    inputs = np.column_stack([conditions, np.ones(len(conditions))]).astype(np.float64)
    residuals = deviations - inputs @ np.linalg.lstsq(inputs, deviations)[0]
    total = float(np.square(deviations).sum())
    return 1.0 - float(np.square(residuals).sum()) / total if total > _STILL else 0.0


def _beside_baselines(
    evaluation: Evaluation, policy: Policy, episodes: int, shoves: Sequence[str]
) -> Iterator[tuple[str, Episodes]]:
    """Yields name and episodes of our policy, random actions, and shoves where an arm can."""
    spec, info = evaluation.envs.spec, evaluation.envs.info
    yield "ours", evaluation.play(policy, episodes)
    yield "random", evaluation.play(zero_policy, episodes, added=random_actions(spec))
    gripper, place, arm = info.gripper, info.object, info.arm
    if gripper is None or place is None or arm is None or len(place) < _AXES:
        return

    def planned(indices: IntArray, at_random: bool) -> Policy:
        drawn = [stream(_SEED, "judging/shove", 0, int(index)) for index in indices]
        angles = np.array([generator.uniform(-np.pi, np.pi) for generator in drawn])
        return StraightShove(gripper, place, angles if at_random else None, arm)

    for name in shoves:
        plan = functools.partial(planned, at_random=name == RANDOM_SHOVE)
        yield name, evaluation.play(zero_policy, episodes, planned=plan)


def _measures(
    evaluation: Evaluation, policy: Policy, episodes: int, added: Callable[[int], Added | None]
) -> Metrics:
    spec, info = evaluation.envs.spec, evaluation.envs.info
    played = evaluation.play(policy, episodes, added=added(0))
    measures: Metrics = {}
    information = information_of_moves(played, spec.split, stream(_SEED, "judging/information"))
    if information is not None:
        measures |= {
            "control/information": information.nats,
            "control/information_null": float(information.null.mean()),
            "control/information_null_std": float(information.null.std()),
            "control/information_p": information.chance,
        }
    if info.support is not None:
        cells = behaviour.visited_cells(played.observation, played.length, info)
        measures["control/coverage"] = len(cells) / behaviour.support_cells(info.support)
    if info.object is None:
        if info.descriptor not in ((), ALL):
            counted = evaluation.counted(played)
            visited = evaluation.seen(counted)[counted.state_mask]  # cells of side 1
            measures["control/descriptor_cells"] = len(np.unique(np.floor(visited), axis=0))
            measures |= _skill_variance(evaluation, policy, played, added)
        return measures
    turned = behaviour.rotation(played.observation, played.length, info)
    if turned is not None:
        measures["control/rotation_rad"] = float(turned.mean())
    if info.gripper is not None:
        steps = behaviour.first_contact(played.observation, played.length, info)
        measures["control/contact_rate"] = float(np.mean(steps <= played.length))
        median = float(np.median(np.where(steps <= played.length, steps, np.inf)))
        if np.isfinite(median):  # unknown if the median episode has no contact
            measures["control/steps_to_contact"] = median
    repeated = (
        evaluation.play(policy, min(STARTS, episodes), added=noise(spec, NOISE, repeat, added(0)))
        for repeat in range(REPEATS)
    )
    measures["control/end_spread_m"] = end_spread(_ends(evaluation, repeated))
    return measures | _skill_variance(evaluation, policy, played, added)


def _skill_variance(
    evaluation: Evaluation, policy: Policy, played: Episodes, added: Callable[[int], Added | None]
) -> Metrics:
    """Returns what skills, or the continuous conditions of `played`, explain of where they end."""
    config, episodes = evaluation.config, len(played.length)
    starts, skills = min(STARTS, episodes), config.acting_skills
    if len(skills) > 1 and starts > 1:
        each = (evaluation.play(policy, starts, skill, added(skill)) for skill in skills)
        explained = variance_explained(_ends(evaluation, each))
        chance = (len(skills) - 1) / (len(skills) * starts - 1)
    elif not skills and episodes > config.condition_size + 1:
        explained = linearly_explained(played.skill, _ends(evaluation, [played])[0])
        chance = config.condition_size / (episodes - 1)
    else:
        return {}
    return {"control/skill_variance": explained, "control/skill_variance_chance": chance}


def _ends(evaluation: Evaluation, many: Iterable[Episodes]) -> Array:
    """Returns the last place of each episode, [plays, E, D]: the object's, or the descriptor."""
    thing = evaluation.envs.info.object
    if thing is None:
        return np.stack([evaluation.track(played).ends for played in many])
    places = (Track(played.observation[..., list(thing)], played.length) for played in many)
    return np.stack([place.ends for place in places])
