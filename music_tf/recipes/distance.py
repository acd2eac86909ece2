"""Skills that each move far in their own direction: LSD, CSD and METRA."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from music_tf.config.conditioning import ConditionConfig
from music_tf.config.epochs import with_whole_episodes
from music_tf.config.fields import In, with_fields
from music_tf.config.key_metrics import KeyMetric
from music_tf.config.names import (
    FETCH_PICK,
    FETCH_PUSH,
    FETCH_SLIDE,
    WITH_GOALS,
    is_one_of,
    nearest,
    of_family,
)
from music_tf.config.settings import CollectConfig, Config
from music_tf.config.values import OwnLayers, Rate
from music_tf.config.warm_start import Source
from music_tf.config.world import Columns
from music_tf.errors import UsageError
from music_tf.recipes import releases
from music_tf.recipes.music import sac_music
from music_tf.recipes.skills import DiversityConfig
from music_tf.recipes.tasks import SAMPLED, SOFT, sac

_PLACES: Mapping[str, tuple[int, ...]] = {
    FETCH_PUSH: (3, 4),
    FETCH_SLIDE: (3, 4),
    FETCH_PICK: (3, 4, 5),
}
"""Columns of the object's position: on a table, or also in the air."""
_STARTS: Mapping[str, str] = {FETCH_PUSH: "push_sac", FETCH_PICK: "pick"}
"""Agents of the package that learned to move the object by MUSIC, also for dense rewards."""
_OF_LEARNING = ("density_early", "rest_until")
_OF_THE_DUAL = ("distance", "dual_learning_rate", "dual_start", "lambda_floor", "norm", "slack")
_OF_THE_DENSITY = ("density_early", "density_loss", "modelled", "sigma_floor")
"""Settings that have no effect without networks that learn, a dual variable, or a density."""
_LINEAR = {"distance.hidden_sizes": (), "distance.initializer": "orthogonal"}
"""A matrix in place of a network, at first a turned copy of what the embedding sees."""
_RESTING = {**_LINEAR, "distance.rest_until": 0.5}
"""It learns once the policy follows conditions, else it fits those that a few episodes happened to
have, and may lose an axis."""
_SPEEDS = {"condition.kind": "ball", "distance.speed": "auto", "agent.discount": 0.95, "epochs": 11}
"""Conditions are velocities. A shorter horizon values the steps of a way that is left, of which a
longer one loses sight among all ways that follow."""
_MOVING = {**_RESTING, **_SPEEDS, "distance.rest_until": 0.25}
"""Short conditions lower the cosine with which the learning of the embedding begins."""
_AS_IT_IS = {**_LINEAR, "distance.train": False, "distance.scale": 18.0}
"""This copy as it is. The scale pays about as much for a metre of a block as
METRA's embedding comes to on FetchPush."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistanceConfig(DiversityConfig):
    """Displacement of a learned embedding in the direction of the condition (arXiv:2310.08887).

    A step in the embedding is bounded by a distance of the two states: the number of time steps
    (METRA), how unlikely the change is (CSD, arXiv:2302.05103), or the length of the change (LSD,
    arXiv:2202.00914, by spectral normalisation).
    """

    name: ClassVar[str] = "distance"
    term: ClassVar[str] = "music_tf.intrinsic.distance:Distance"
    networks: ClassVar[Sequence[str]] = ("phi", "dual", "change_mean", "change_deviation")
    metrics: ClassVar[Mapping[str, str]] = {
        "distance/dual": "dual variable lambda of the constraint",
        "distance/slack": "mean slack of the constraint, at most `slack`; below 0 it is violated",
        "distance/violated": "share of replayed steps that violate the constraint",
        "distance/weight_spread": "largest less smallest log-weight of a column in the density "
        "distance",
        "distance/followed": "cosine of replayed steps and their condition, weighted by length; "
        "with `rest_until`",
        "distance/resting": "1 until the embedding learns, then 0; with `rest_until`",
        "distance/aligned": "cosine of the embedding's displacement in an evaluation episode and "
        "its condition, mean over episodes that move; conditions of a `ball` weigh by their length",
        "distance/speed": "v, length of the best step, in units of the embedding's inputs",
        "distance/moved": "share of evaluation episodes that change an input of the embedding by "
        "more than its deviation under random actions",
        "distance/units_0": "distance in the embedding for 1 of its first input, in the unit of "
        "the observation",
        "distance/units_1": "the same for the second input",
        "distance/units_2": "the same for the third input",
    }

    constraint: Literal["dual", "spectral"] = "dual"
    """How a step in the embedding is bounded by the distance: with a learned dual variable, or with
    kernels whose largest singular value is 1 (the distance is then that of the inputs)."""
    distance: Literal["one", "l2", "density"] = "one"
    """With a dual variable, the largest squared distance of a step: 1, the mean square of the
    change, or how unlikely a Gaussian model finds the change."""
    norm: Literal["mean", "sum"] = "mean"
    """Squared length of a step in the embedding: the mean over its D components, as released, or
    their sum. The largest reward with `mean` is sqrt(D) times that with `sum`."""
    columns: Annotated[Columns, In(0, 10**6)] = ()
    """Observation columns that are inputs of the embedding; empty: `world.descriptor`, else the
    surroundings."""
    modelled: Annotated[Columns, In(0, 10**6)] = ()
    """Columns whose changes the density models; empty: the inputs of the embedding."""
    normalize_inputs: bool = False
    """Divides inputs of embedding and density by their deviations under random actions."""
    speed: Annotated[float | Literal["auto"], In(0, math.inf, "(]")] = math.inf
    """Length v of the best step under a condition z of length 1, in units of the embedding's
    inputs; inf: the longer the better. A step dphi earns dphi . z - |dphi|^2 / 2v, with v in the
    embedding's unit: most for v z. Shorter conditions (`condition.kind ball`) mean slower steps, 0
    means to stay, and steps to the side cost. auto: 0.7 times the length that 99 % of the
    steps of object or hand stay below before learning begins, best with an actor of MUSIC."""
    reach: Annotated[float, In(0, math.inf, "(]")] = math.inf
    """With a finite length L in the embedding, conditions of a `ball` name where the object is to
    come to rest, L z from its mean under random actions. A step earns how much nearer it
    brings the object, and `condition.relabel` takes the places where episodes ended."""
    lost_pays: Annotated[float, In(-1e9, 1e9)] = 0.0
    """Reward of every step after the object is lost, under `lost_object absorb`."""
    dual_start: Annotated[float, In(0, 1e9, "(]")] = 30.0
    """Initial dual variable lambda."""
    dual_learning_rate: Rate = 1e-3
    """Adam step size of log lambda."""
    lambda_floor: Annotated[float, In(0, 1e9)] = 0.0
    """Lower bound of lambda, which otherwise nears 0 after a long time without violations."""
    slack: Annotated[float, In(0, 1e6)] = 1e-3
    """Epsilon, the upper bound of the slack."""
    update_order: Literal["simultaneous", "first"] = "simultaneous"
    """Whether embedding and dual variable step together with actor and critics, or before them, so
    that the agent gets the reward of the updated embedding."""
    rest_until: Annotated[float, In(-1, 1, "[)")] = -1.0
    """Cosine of replayed steps and their condition, weighted by length, above which embedding and
    dual variable begin to learn; until then they keep their initial values. Meant for embeddings
    that lose an axis early, and best with an `orthogonal` linear one, whose reward is large enough
    from the start. -1: they learn at once."""
    density_loss: Literal["nll", "released"] = "nll"
    """Loss of the density: minus the log-likelihood, or that of CSD's code for Fetch."""
    density_early: bool = False
    """Trains the density from the first cycle, also before the agent learns
    (`collect.random_steps`, `collect.update_after`)."""
    sigma_floor: Annotated[float, In(0, 1e6, "(]")] = 1e-6
    """Lower bound of the density's deviation, in the unit of its columns. Columns that never change
    reach it, and then dominate the distance."""
    hidden_sizes: OwnLayers = (64, 64)
    """Units of each hidden layer of embedding and density; none: they are linear."""

    @property
    def priced(self) -> bool:
        return self.constraint == "dual"

    @property
    def rests_at_first(self) -> bool:
        """Whether the embedding does not learn until the policy follows the condition."""
        return self.train and self.rest_until > -1.0

    @property
    def has_density(self) -> bool:
        return self.priced and self.distance == "density"

    @property
    def built(self) -> Sequence[str]:
        modelled = ("change_mean", "change_deviation") if self.has_density else ()
        return ("phi", *(("dual",) if self.priced else ()), *modelled)

    def key_metrics(self, run: Config) -> Sequence[KeyMetric]:
        scale = "cosine of displacement and condition, at most 1"
        metrics = [KeyMetric("distance/aligned", "aligned", scale=scale)]
        if self.rests_at_first:
            learns = f"the same of replayed steps; once above {self.rest_until:g}, phi learns"
            metrics.append(KeyMetric("distance/followed", "followed", scale=learns))
        if self.speed == "auto":
            told = "of the best step, in units of the embedding's inputs"
            metrics.append(KeyMetric("distance/speed", "speed", scale=told))
        return (*metrics, *super().key_metrics(run))

    def shortfall(self, row: Mapping[str, float]) -> str:
        if row.get("distance/resting") != 1.0:
            return ""
        followed = f"{row.get('distance/followed', math.nan):.2f}, not above distance.rest_until"
        return (
            f"the embedding has not learned: conditions are followed to {followed} "
            f"{self.rest_until:g}; what acts is its initial copy of the place"
        )

    def check_directions(self, columns: int, size: int) -> None:
        if size < columns and not self.train and not self.hidden_sizes:
            raise UsageError(
                f"condition.size: a copy of {columns} columns that never learns has as many "
                f"directions, got {size}\nnearest: --condition.size {columns}, or name the columns "
                "of a place: --distance.columns"
            )

    def check(self, run: Config) -> None:
        super().check(run)
        kind, size = run.condition.kind, run.condition_size
        if kind in ("box", "belief"):
            raise UsageError(
                f"distance: rewards motion in a direction, expected condition.kind gaussian, "
                f"sphere, ball or one_hot, got {kind}\nnearest: --condition.kind sphere "
                f"--condition.size {size}"
            )
        places, learns = self.reach < math.inf, self.train or not self.normalize_inputs
        whole = kind == "ball" and run.condition.groups == 1 and self.speed == math.inf
        if places and (learns or not whole):
            raise UsageError(
                "distance.reach: expected condition.kind ball, no groups or distance.speed, and an "
                "embedding of normalised inputs that never learns\nnearest: music-tf train "
                "sac_place --condition.kind ball --distance.speed inf --distance.reach 7"
            )
        if (kind == "ball") != (places or self.speed != math.inf):
            raise UsageError(
                f"distance.speed: {self.speed} with condition.kind {kind}; lengths of conditions "
                "are speeds, so that one needs the other\nnearest: --condition.kind ball "
                "--distance.speed auto, or --condition.kind sphere --distance.speed inf"
            )
        fixed = not (self.train or self.hidden_sizes)
        if run.condition.groups > 1 and not (fixed and len(self.columns) in (0, size)):
            raise UsageError(
                "condition.groups: expected a linear embedding that never learns, as of sac_place, "
                f"and a velocity for each of {len(self.columns)} columns, got {size}\n"
                f"nearest: --condition.size {len(self.columns) or size}"
            )
        self.check_directions(len(self.columns), size)
        usual, dual = type(self)(), "--distance.constraint dual"
        for has, what, needed, names in (
            (self.train, "networks that learn", "--distance.train True", _OF_LEARNING),
            (self.priced, "a dual variable", dual, _OF_THE_DUAL),
            (self.has_density, "a density", f"{dual} --distance.distance density", _OF_THE_DENSITY),
        ):
            for name in () if has else names:
                value = getattr(self, name)
                if value != getattr(usual, name):
                    raise UsageError(
                        f"distance.{name}: {value} has no effect without {what}, expected "
                        f"{getattr(usual, name)}, or {needed}"
                    )


def sac_metra(preset: Literal["laptop", "metra_release"], env_id: str = FETCH_PUSH) -> Config:
    """Skills that each move far, measured in time steps.

    METRA (arXiv:2310.08887): in a learned embedding all steps have the same maximum length, and
    skills are rewarded for displacement along their condition. See docs/goals.md for `laptop`, on
    FetchPush and FetchPickAndPlace with velocities, and for `metra_release`, the authors' code.
    """
    if preset == "metra_release":
        return _as_released(preset, env_id)
    resting = _RESTING if of_family(env_id, _PLACES, ()) else {}
    return _laptop(env_id, _MOVING if is_one_of(env_id, _STARTS) else resting)


def sac_csd(preset: Literal["laptop", "csd_release"], env_id: str = FETCH_PUSH) -> Config:
    """Skills that each cause rare changes.

    CSD (arXiv:2302.05103): as `sac_metra`, but the bound of a step is larger for changes that a
    Gaussian model finds unlikely. `csd_release` is the authors' code for Fetch.
    """
    if preset == "csd_release":
        return _as_released(preset, env_id)
    modelled = tuple(range(6)) if of_family(env_id, _PLACES, ()) else ()  # gripper and object
    density = {"distance.distance": "density", "distance.modelled": modelled}
    return _laptop(env_id, {**density, "distance.dual_start": 300.0, "distance.slack": 1e-6})


def sac_lsd(preset: Literal["laptop", "lsd_release"], env_id: str = FETCH_PUSH) -> Config:
    """Skills that each move far, measured in the state.

    LSD (arXiv:2202.00914): as `sac_metra`, but spectral normalisation bounds a step by the change
    of its inputs. `lsd_release` is LSD in CSD's code for locomotion, not the LSD repository.
    """
    if preset == "lsd_release":
        return _as_released(preset, env_id)
    return _laptop(env_id, {"distance.constraint": "spectral"})


def sac_place(preset: Literal["laptop"], env_id: str = FETCH_PUSH) -> Config:
    """Brings an object to places that it is told.

    `sac_metra` with the place of the object, in units of its deviations under random actions. On
    FetchPush and FetchPickAndPlace conditions are velocities, so that it stops at a goal.
    """
    del preset  # there is one
    speeds = _SPEEDS if is_one_of(env_id, _STARTS) else {}
    return _laptop(env_id, {**_AS_IT_IS, **speeds})


def _laptop(env_id: str, changes: Mapping[str, Any]) -> Config:
    config = _on_objects(env_id) if is_one_of(env_id, WITH_GOALS) else _on_states(env_id)
    return with_whole_episodes(with_fields(config, changes))


def _on_objects(env_id: str) -> Config:
    before = sac_music("laptop", env_id)
    columns: tuple[int, ...] = of_family(env_id, _PLACES, ())
    reward = DistanceConfig(columns=columns, normalize_inputs=True, scale=5.0)
    start = of_family(env_id.replace("Dense", ""), _STARTS, "")
    return dataclasses.replace(
        before,
        epochs=7,
        start=Source("", ("actor", "normalizer"), agent=start) if start else None,
        agent=dataclasses.replace(before.agent, action_l2=0.05, return_clip="off"),
        condition=ConditionConfig(kind="sphere", size=len(columns) or 2, relabel=0.5),
        collect=CollectConfig(update_after=8000),
        rewards={reward.name: reward},
    )


def _on_states(env_id: str) -> Config:
    reward = DistanceConfig(normalize_inputs=True)
    return dataclasses.replace(
        sac("laptop", env_id),
        goals="zero",
        condition=ConditionConfig(kind="sphere", size=2),
        rewards={reward.name: reward},
    )


def _as_released(preset: str, env_id: str) -> Config:
    """Returns the settings of other code: CSD's on the agent of MUSIC, others on that of SAC."""
    of_fetch = preset == "csd_release"
    fitting, none = releases.DISTANCE[preset], releases.NOTHING
    changes = of_family(env_id, fitting, none) if of_fetch else fitting.get(env_id, none)
    if not changes:
        near = nearest(env_id, fitting) or next(iter(fitting))
        raise UsageError(
            f"--preset {preset}: expected an environment of that release, {', '.join(fitting)}, "
            f"got {env_id}\nnearest: --env-id {near}, or --preset laptop"
        )
    base = Config(env_id=env_id, agent=SOFT, exploration=SAMPLED)
    if of_fetch:
        base = sac_music("paper", env_id)
    return with_fields(base, {"rewards": {DistanceConfig.name: DistanceConfig()}, **changes})
