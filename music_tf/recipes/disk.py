"""Skills that are learned one after the other, each away from the states of earlier skills."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from music_tf.config import names, settings
from music_tf.config.agents import with_one_rate
from music_tf.config.conditioning import IncrementalConfig
from music_tf.config.epochs import with_whole_episodes
from music_tf.config.fields import In, show_option, show_value, with_fields
from music_tf.config.key_metrics import KeyMetric
from music_tf.config.terms import TermConfig
from music_tf.config.world import STRIDE, TIME, World
from music_tf.errors import UsageError
from music_tf.recipes import releases
from music_tf.recipes.music import sac_music
from music_tf.recipes.tasks import sac


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiskConfig(TermConfig):
    """Distance to earlier skills, minus distance to the skill's own past (arXiv:2203.11176)."""

    name: ClassVar[str] = "disk"
    term: ClassVar[str] = "music_tf.intrinsic.incremental:Incremental"
    incremental: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {
        "disk/skill": "the skill that is learned, counted from 0",
        "disk/past": "mean distance of replayed steps to the k-th nearest of earlier skills",
        "disk/own": "the same to the k-th nearest of the skill's own recent past",
        "disk/beta": "factor on the first distance: weight over unit",
        "disk/alpha": "factor on the second distance; below 0 spreading is rewarded",
        "skill/hausdorff_mean": "Hausdorff distance of two skills, mean over pairs; at ends of "
        "skills",
        "skill/hausdorff_min": "Hausdorff distance of the two nearest skills",
        "skill/spread": "distance between ends of a skill's episodes, mean over skills",
        "disk/coverage": "log of the mean distance from a visited place to the 3rd nearest other",
    }

    k: Annotated[int, In(2, 1000)] = 3
    """Number of the neighbour whose distance counts; at least 2, because a step is its own nearest
    neighbour."""
    rows: Annotated[int, In(1, 10**5)] = 512
    """Number of steps of earlier skills, and of the skill's own past, that an update compares with;
    with equal timesteps, for each time step."""
    own_episodes: Annotated[int, In(1, 10**5)] = 10
    """Number of latest episodes of each worker in the skill's own past."""
    alpha: Annotated[float, In(0, 1e9)] = 1.0
    """Weight of consistency: of being near the skill's own past."""
    beta: Annotated[float, In(0, 1e9)] = 1.0
    """Weight of diversity: of being far from earlier skills."""
    balance: Literal["running", "previous", "raw", "released"] = "running"
    """Unit of each distance: its mean over the last few thousand updates of this skill, its mean
    over the previous skill (1 for the first), or 1. `released` has the sign of the authors' code,
    on means of the previous skill: after the first skill consistency changes its sign, and both
    distances are divided by their weights; and t counts updates, not steps."""
    descriptor: Literal["position", "velocity", "stride"] = "position"
    """What is compared: `world.descriptor` after a step, its change in the step, or its mean change
    over the last steps (with --world.extras stride=stride:20)."""
    timesteps: Literal["pooled", "equal"] = "pooled"
    """Compares with steps at any time of an episode, or at the same time step alone (with
    --world.extras time=time)."""
    schedule: bool = True
    """Multiplies consistency by tanh(8 t - 4), where t rises from 0 to 1 over a skill: a skill is
    rewarded for spreading first, and for consistency later."""

    def key_metrics(self, run: settings.Config) -> Sequence[KeyMetric]:
        del run
        scale = "Hausdorff distance of two skills, in the unit of their descriptor"
        return (KeyMetric("skill/hausdorff_mean", "apart", scale=scale),)

    def check(self, run: settings.Config) -> None:
        extras = [word.partition("=")[2] for word in run.world.extras]
        if not run.incremental.on:
            raise UsageError(
                "incremental.epochs: the disk reward is for skills one after the other, expected "
                "epochs of each, got none\nfor example: --incremental.epochs 4"
            )
        if self.rows < self.k:
            raise UsageError(f"disk.rows: expected at least disk.k = {self.k}, got {self.rows}")
        if self.descriptor == "stride" and not any(map(STRIDE.fullmatch, extras)):
            raise UsageError(
                "disk.descriptor: a stride is an extra, and world.extras has none\n"
                "add --world.extras stride=stride:20"
            )
        if self.timesteps == "equal" and TIME not in extras:
            raise UsageError(
                "disk.timesteps: equal needs the time of each step, and world.extras lacks it\n"
                "add --world.extras time=time"
            )
        if self.balance == "released" and not self.alpha * self.beta:
            raise UsageError(
                "disk.balance: released divides by disk.alpha and disk.beta, expected both above 0"
            )

    def check_training(self, run: settings.Config) -> None:
        ends = list(itertools.accumulate(run.incremental.of_each(run.skills)))
        for skill, (first, end) in enumerate(itertools.pairwise(ends), start=1):
            if self._rests(first, end - 1):
                raise UsageError(
                    "disk.weight: expected a weight in some epoch of each skill after the first, "
                    f"got 0 in epochs {first} to {end - 1}, all of skill {skill}\n"
                    f"for example: {self._from_second(run, ends[0])}"
                )

    def _rests(self, first: int, last: int) -> bool:
        start = max((epoch for epoch, _ in self.weight if epoch <= first), default=-math.inf)
        end = min((epoch for epoch, _ in self.weight if epoch >= last), default=math.inf)
        return not any(weight for epoch, weight in self.weight if start <= epoch <= end)

    def _from_second(self, run: settings.Config, epoch: int) -> str:
        """Returns options by which scheduled weights change at the second skill's first epoch."""
        options = []
        for term in run.rewards.values():
            (_, before), (_, after) = term.weight[0], term.weight[-1]
            if term is self:
                after = after or 1.0
            elif len(term.weight) == 1:
                continue
            points = {0: before, epoch - 1: before, epoch: after}
            words = show_value(tuple(points.items()))
            options.append(f"{show_option(f'{term.name}.weight')} {words}")
        return " ".join(options)


def sac_disk(
    preset: Literal["laptop", "seed", "released"], env_id: str = names.SQUARE
) -> settings.Config:
    """Skills that are learned one after the other.

    DISk (arXiv:2203.11176). `seed` is the algorithm as the paper states it, `released` the authors'
    code with its numbers of skills and steps: see docs/skills.md.
    """
    small = names.is_one_of(env_id, (names.SQUARE,))
    base = _laptop(env_id, small)
    if preset == "laptop":
        return with_whole_episodes(base)
    changes: dict[str, Any] = {"rewards": {DiskConfig.name: DiskConfig()}}
    changes["cycles"] = 20 if small else 100
    if preset == "released":
        changes |= {**releases.AS_CODED, **names.of_family(env_id, releases.DISK, releases.NOTHING)}
        epochs = changes["incremental.epochs"]
        changes |= {"skills": len(epochs), "epochs": sum(epochs)}
    else:
        each = 4 if small else 2
        changes |= {"incremental.epochs": (each,), "epochs": 20 * each, **releases.AS_STATED}
        tracked = names.is_one_of(env_id, names.TRACKED_ROBOTS)
        changes["evaluation.length"] = 500 if tracked else None
    return with_whole_episodes(with_fields(base, changes))


def _laptop(env_id: str, small: bool) -> settings.Config:
    steps = sac("laptop", "Hopper-v5")  # a task without goals
    rate, sizes = 1e-3, (64, 64) if small else (128, 128)
    agent = with_one_rate(steps.agent, rate, sizes, temperature=0.1)
    tracked = names.is_one_of(env_id, names.TRACKED_ROBOTS)
    reward, world = DiskConfig(), World()
    if not small:
        reward = DiskConfig(alpha=0.2, descriptor="stride", own_episodes=5, rows=256)
        where = "plane" if names.is_one_of(env_id, names.ON_A_LINE) else "xy"
        world = World(descriptor=(where,) if tracked else (), extras=("stride=stride:20",))
    epochs, skills = (4, 4) if small else (5, 4)
    return dataclasses.replace(
        steps,
        env_id=env_id,
        agent=agent,
        goals="zero",
        skills=skills,
        epochs=epochs * skills,
        cycles=20 if small else 40,
        env=settings.EnvConfig(max_episode_steps=200 if tracked else None),
        world=world,
        rewards={"disk": reward},
        collect=settings.CollectConfig(
            steps=50, random_steps=0 if small else 500, updates_per_step=0.5
        ),
        replay=settings.ReplayConfig(batch_size=128, draw="steps"),
        evaluation=settings.EvaluationConfig(episodes=3),
        incremental=IncrementalConfig(epochs=(epochs,)),
    )


def sac_disk_music(preset: Literal["laptop"], env_id: str = names.FETCH_PICK) -> settings.Config:
    """MUSIC first, then skills one after the other.

    The first skill is that of `sac_music`, from whose actor later ones start (`sac_disk`). Mutual
    information stays in the reward, so that the robot does not let go of the object.
    """
    before = sac_music(preset, env_id)
    full, quiet = before.rewards["music"].unit_weight, 0.3 * before.rewards["music"].unit_weight
    each = (20, 5, 5, 5, 5)
    last, first = float(each[0] - 1), float(each[0])
    music = dataclasses.replace(
        before.rewards["music"], weight=((0.0, full), (last, full), (first, quiet))
    )
    disk = DiskConfig(
        alpha=0.2,
        own_episodes=5,
        rows=256,
        clip=(0.0, 4.0),  # so that a lost object costs the rewards of later steps
        weight=((0.0, 0.0), (last, 0.0), (first, 1.0)),
    )
    return dataclasses.replace(
        before,
        skills=len(each),
        epochs=sum(each),
        rewards={music.name: music, disk.name: disk},
        evaluation=dataclasses.replace(before.evaluation, episodes=10),
        incremental=IncrementalConfig(epochs=each, first="nothing", begin="first"),
    )
