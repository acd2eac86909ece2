"""Settings of reward terms: of all, of the task, and of intrinsic rewards with a gain."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from music_tf.config.fields import In, Settings, show_option, show_value
from music_tf.config.key_metrics import INFORMATION, LEVELS, SUCCESS, KeyMetric
from music_tf.config.values import Bounds, Schedule
from music_tf.errors import UsageError

ENTROPY = "entropy"
"""Name in metrics of the entropy reward of SAC; no term may have this name."""


def reward_metrics(name: str) -> dict[str, str]:
    """Returns the metrics that a reward of this name has, with their meaning."""
    statistics = {"mean": "mean", "std": "standard deviation", "min": "lowest", "max": "highest"}
    reward = f"the {name.replace('_', ' ')} reward in minibatches, clipped, weighted"
    named = {f"reward/{name}_{short}": f"{long} of {reward}" for short, long in statistics.items()}
    level = "highest share so far of training episodes that moved or lifted the object"
    level += ", or 1 if `weight_latest` came first; with `weight_by`"
    return {**named, f"reward/{name}_level": level}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TermConfig(Settings):
    """A reward term, of which weight * (clip(raw reward) + shift) enters the sum of rewards.

    A subclass names the term and the class that computes it. It is found in the module of its
    recipe; no list of terms exists.
    """

    name: ClassVar[str]
    """Prefix of its options and of its metrics `reward/NAME_mean`."""
    metrics: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Metrics that only this term writes, with their meaning, beside those of its reward."""
    term: ClassVar[str]
    """The `RewardTerm` that is built from it, as `module:Class`."""
    networks: ClassVar[Sequence[str]] = ()
    """Names of its networks; each is a part that a warm start can take over. Settings may leave
    some out (`built`)."""
    action_scorer: ClassVar[str] = ""
    """The function `module:function` that scores random actions: from the arrays of its networks,
    observations [B, O] and actions [B, N, A] to scores [B, N]; `scorer_arguments` has the others.
    Used if `candidate_actions` is above 0."""
    incremental: ClassVar[bool] = False
    """Whether it tells a skill from earlier ones, so that skills are learned one by one."""
    needs_split: ClassVar[bool] = False
    """Whether it reads both halves of a split of the observation: robot and surroundings."""
    measures_motion: ClassVar[bool] = False
    """Whether evaluations measure how robot and surroundings move together."""
    measures_diversity: ClassVar[bool] = False
    """Whether its raw reward is a log-ratio that evaluations add up where no network names
    skills."""

    clip: Bounds = (-math.inf, math.inf)
    """Bounds of the scaled reward of a step, such as 0 1; finite for `agent.return_clip` auto and
    paid, which bound the TD target by them."""
    shift: Annotated[float, In(-1e9, 1e9)] = 0.0
    """Added after clipping: -1 turns rewards from 0 to 1 into costs from -1 to 0."""
    weight: Schedule = ((0.0, 1.0),)
    """Weight in the sum of rewards, by epoch, or by a level from 0 to 1 with `weight_by`."""
    weight_by: Literal["epoch", "moved", "lifted"] = "epoch"
    """What the points of `weight` are: epochs, or levels. The level is taken each cycle and never
    falls: the highest share so far of the last `weight_episodes` training episodes that moved the
    object by more than 5 cm, or held it over 5 cm above its rest for 10 steps."""
    weight_episodes: Annotated[int, In(1, 10**6)] = 40
    """Number of these episodes, over all workers; one that is still to come counts as a failure."""
    weight_latest: Annotated[int | None, In(1, 10**9)] = None
    """Epochs after which a weight by level has its last value, whatever the robot does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        by_level = self.weight_by != "epoch"
        if by_level and not 0.0 <= self.weight[0][0] < self.weight[-1][0] <= 1.0:
            raise UsageError(
                f"{self.shown('weight')}: expected two or more levels from 0 to 1, each with its "
                f"weight, for weight_by {self.weight_by}, got {show_value(self.weight)}\n"
                f"for example: {show_option(self.shown('weight'))} 0.5 0 0.8 1"
            )
        for field in ("weight_latest", "weight_episodes"):
            value, unset = getattr(self, field), getattr(TermConfig, field)
            if value != unset and not by_level:
                raise UsageError(
                    f"{self.shown(field)}: belongs to weights by level, expected {unset} by epoch, "
                    f"got {value}\nfor example: {show_option(self.shown(field))} {unset}, or "
                    f"{show_option(self.shown('weight_by'))} moved"
                )

    @property
    def built(self) -> Sequence[str]:
        """Names of the networks that these settings build."""
        return self.networks

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        """Returns the metrics of its reward, and its own."""
        return {**reward_metrics(cls.name), **cls.metrics}

    @property
    def counts(self) -> bool:
        """Whether it affects the reward in any epoch."""
        return any(weight for _, weight in self.weight)

    @property
    def unit_weight(self) -> float:
        """Weight at which it pays at most 1 per step, if its upper bound is finite and above 0."""
        return 1.0 / self.clip[1]

    @property
    def ranks(self) -> bool:
        """Whether it gives episodes a priority, by which `replay.priority` can draw them."""
        return False

    @property
    def candidate_actions(self) -> int:
        """Random actions of which exploration takes the best one by `action_scorer`."""
        return 0

    @property
    def scorer_arguments(self) -> Mapping[str, float]:
        """Further arguments of `action_scorer`, by name."""
        return {}

    def key_metrics(self, run: Any) -> Sequence[KeyMetric]:
        """Returns the metrics that show whether its reward rises, the most telling first.

        By default the mean reward per step in replay. Metrics without a column are not shown.
        """
        return (KeyMetric(f"reward/{self.name}_mean", f"pay for {self.name}", scale=self._paid),)

    def shortfall(self, row: Mapping[str, float]) -> str:
        """Returns what was not learned by an epoch with these metrics; by default nothing."""
        return ""

    @property
    def _paid(self) -> str:
        low, high = (end + self.shift for end in self.clip)
        ends = f", {low:g} to {high:g}" if math.isfinite(low) and math.isfinite(high) else ""
        return f"mean reward of a step{ends}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskConfig(TermConfig):
    """The environment's own reward under the goal: w * (clip(scale * r, *clip) + shift)."""

    name: ClassVar[str] = "task"
    term: ClassVar[str] = "music_tf.intrinsic.task:TaskReward"

    scale: Annotated[float, In(-1e9, 1e9)] = 1.0
    """Factor before clipping."""
    clip: Bounds = (-math.inf, math.inf)
    """Bounds of the scaled reward, beside the environment's known bounds."""

    def key_metrics(self, run: Any) -> Sequence[KeyMetric]:
        earned = "sum of the task's rewards in an episode"
        return (
            KeyMetric(
                *(SUCCESS, "success"),
                scale="share of episodes",
                trained="rollout/success_rate",
                level=LEVELS[SUCCESS],
            ),
            KeyMetric("eval/return", "return", scale=earned, trained=f"reward/{self.name}_mean"),
            KeyMetric(
                "eval/goal_distance", "distance", scale="from the goal at the end, which falls"
            ),
            KeyMetric(
                "eval/goal_moved_rate", "moved", scale="share of episodes that move the goal"
            ),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaledConfig(TermConfig):
    """A reward without a unit: w * (pay(gain * r) + shift)."""

    measures_motion: ClassVar[bool] = True
    measured: ClassVar[tuple[str, str]]
    """Metrics with the gain auto: mean positive raw reward, and gain."""

    gain: Annotated[float | Literal["auto"] | None, In(0, 1e9)] = 1.0
    """Factor on the raw reward; auto, or unset: `mean` over a running mean of it."""
    mean: Annotated[float, In(0, 1e6, "(]")] = 0.2
    """With gain auto: the mean of gain times raw reward, before clip or logarithm."""
    pay: Literal["clip", "log"] = "clip"
    """How the scaled raw reward r becomes a reward, within `clip`: r, or sign(r) log(1 + |r|)."""
    clip: Bounds = (0.0, 1.0)
    """Bounds of that reward; with -4 4 noise, whose mean is 0, earns nothing."""

    @property
    def counts(self) -> bool:
        return super().counts and self.gain != 0.0

    def key_metrics(self, run: Any) -> Sequence[KeyMetric]:
        moved = KeyMetric(
            INFORMATION,
            "I(dx; dy)",
            random=f"{INFORMATION}_random",
            scale="mutual information of the motions of robot and surroundings in nats; 0 is none",
        )
        return (moved, *super().key_metrics(run))
