"""Chooses the metrics that say whether a run learns."""

from collections.abc import Mapping, Sequence

from music_tf.config.key_metrics import LEVELS, MOTION, SUCCESS, KeyMetric
from music_tf.config.settings import Config
from music_tf.envs.registry import EnvironmentInfo
from music_tf.training.evaluation import Comparison
from music_tf.types import Metrics

_EARLY = 2
"""Number of context episodes after which the return is also shown."""
_RETURN, _LENGTH = "eval/return", "eval/length"
_OF_GOALS = {SUCCESS, "eval/goal_distance", "eval/goal_moved_rate"}


def key_metrics(config: Config, info: EnvironmentInfo, goals: bool) -> list[KeyMetric]:
    """Returns the metrics that say whether a run learns, the most telling first."""
    if config.agent.inference is not None:
        return _of_adaptation(config)
    counted = [term for term in config.rewards.values() if term.counts]
    paid = {term.name for term in counted}
    if config.incremental.on:
        counted = [term for term in counted if term.incremental]
    metrics = [metric for term in counted for metric in term.key_metrics(config)]
    metrics.sort(key=lambda metric: metric.metric not in (_RETURN, SUCCESS))
    moves_objects = info.object is not None and info.gripper is not None
    if moves_objects and "task" not in paid and not config.incremental.on:
        scale = "path of the object with the gripper"
        motion = KeyMetric(MOTION, "co-motion", info.unit, scale=scale)
        if info.support is not None and info.unit == "m":
            level, what = LEVELS[MOTION]
            motion = motion._replace(scale=f"{level:g} m is {what}", level=LEVELS[MOTION])
        metrics.insert(0, motion)
    unmeasured = {_RETURN} if goals else _OF_GOALS
    if config.goals != "environment":
        unmeasured |= _OF_GOALS
    return [metric for metric in dict.fromkeys(metrics) if metric.metric not in unmeasured]


def _of_adaptation(config: Config) -> list[KeyMetric]:
    """Returns the metrics of adaptation, of the reward in the context if that is another."""
    inference, last = config.agent.inference, config.tasks.evaluation_episodes - 1
    after, paid, scale = f"after {last}", "reward/task_mean", "by episodes of the task seen before"
    if inference is not None and inference.reward:
        return [
            KeyMetric("adapt/context_return_prior", "prior", trained=paid),
            KeyMetric("adapt/context_return_last", after, scale=f"{inference.reward} {scale}"),
        ]
    random, scale = "adapt/random_return", f"return {scale}"
    prior = KeyMetric("adapt/return_prior", "prior", trained=paid)
    early = [KeyMetric("adapt/return_2", f"after {_EARLY}")] if last > _EARLY else []
    return [prior, *early, KeyMetric("adapt/return_last", after, random=random, scale=scale)]


def explanation(metrics: Sequence[KeyMetric], beside: str = "") -> list[str]:
    """Explains metrics; `beside` says where the values of random actions stand."""
    width = max((len(metric.label) for metric in metrics), default=0)
    beside = f"; {beside}" if beside and any(metric.random for metric in metrics) else ""
    lines = [f"  {metric.label:{width}}  {metric.explained}".rstrip() for metric in metrics]
    return [f"the run learns if these rise{beside}:", *lines] if metrics else []


def verdict(metrics: Sequence[KeyMetric], comparison: Comparison) -> list[str]:
    """Returns the line that ends a run: its first metric, by a known level or beside random."""
    ours, random = comparison.policies["ours"], comparison.policies["random"]
    shared = [each for each in metrics if each.metric in ours and each.metric in random]
    before = {"adapt/return_prior", "adapt/return_2", "adapt/context_return_prior"}
    shared.sort(key=lambda each: (each.level is None, each.metric in before))
    errors = comparison.errors
    return [k.judged(ours[k.metric], random[k.metric], errors.get(k.metric)) for k in shared[:1]]


def shortfalls(config: Config, row: Metrics) -> list[str]:
    return [text for term in config.rewards.values() if (text := term.shortfall(row))]


def without_unpaid(policies: Mapping[str, Metrics], config: Config) -> dict[str, Metrics]:
    """Drops the return if no reward counts it and all are 0, and the length if all are equal."""
    task = config.rewards.get("task")
    earned = any(row.get(_RETURN) or row.get(SUCCESS) for row in policies.values())
    if earned or (task is not None and task.counts):
        return dict(policies)
    dropped = {_RETURN}
    if len({row.get(_LENGTH) for row in policies.values()}) == 1:
        dropped.add(_LENGTH)
    return {
        name: {metric: value for metric, value in row.items() if metric not in dropped}
        for name, row in policies.items()
    }
