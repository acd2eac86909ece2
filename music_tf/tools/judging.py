"""Is it control? Measures beyond the metrics of every epoch, for ours and for a random policy."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from music_tf.distributed import Communicator
from music_tf.intrinsic.base import split_of
from music_tf.measures.behaviour import (
    end_position,
    first_contact,
    support_cells,
    visited_cells,
)
from music_tf.measures.information import paired_information
from music_tf.randomness import stream
from music_tf.rollout import Policy
from music_tf.storage.metrics import CONTROL
from music_tf.training.policy import noisy_policy, random_policy
from music_tf.training.trainer import Trainer
from music_tf.types import Array, Episodes, IntArray, Metrics

NOISE = 0.05
"""Standard deviation of the noise on actions in [-1, 1], under which ends are compared."""
REPEATS = 8
"""How often an episode is repeated under noise."""
STARTS = 25
"""Episodes that are repeated under noise, and that every skill plays."""
_SEED = 20210309
_STILL = 1e-12
"""Square metres; less than this is rounding."""


def judge(
    trainer: Trainer, comm: Communicator, episodes: int, rollout_cells: float | None = None
) -> dict[str, Metrics]:
    """Measures control by our policy and by the random one, on the same episodes.

    Args:
        trainer: Holds the policy and the environments.
        comm: The ranks; each must call this together.
        episodes: How many to play without noise.
        rollout_cells: `rollout/object_coverage` of the run, where it is known.

    Returns:
        Measures named in `CONTROL` by policy, `ours` and `random`: those that the environment, the
        number of episodes and the number of skills allow.
    """
    dimension = trainer.envs.spec.action_dim
    policies: dict[str, Callable[[int], Policy]] = {
        "ours": lambda draw: trainer.policy(),
        "random": lambda draw: random_policy(
            stream(0, "comparison/random", comm.rank, draw), dimension
        ),
    }
    found = {name: _measures(trainer, make, episodes) for name, make in policies.items()}
    support = trainer.envs.info.support
    if support is not None and rollout_cells is not None:
        found["ours"]["control/rollout_coverage"] = rollout_cells / support_cells(support)
    return {
        name: {metric: measures[metric] for metric in CONTROL if metric in measures}
        for name, measures in found.items()
    }


def end_spread(ends: Array) -> float:
    r"""Returns how far repeated episodes end apart.

    .. math:: \sqrt{\langle |e_{rs} - \bar e_s|^2 \, R / (R - 1) \rangle_{rs}}

    Args:
        ends: End positions of R > 1 repeats of S starts, shape [R, S, 3].

    Returns:
        Metres, at least 0: root mean square distance from the mean of the same start.
    """
    variances: npt.NDArray[np.float64] = ends.var(axis=0, ddof=1, dtype=np.float64)  # [S, 3]
    return float(np.sqrt(variances.sum(axis=-1).mean()))


def variance_explained(ends: Array) -> float:
    r"""Returns the share of the variance of end positions that lies between skills, eta squared.

    .. math:: \eta^2 = \sum_k S |\bar e_k - \bar e|^2 / \sum_{ks} |e_{ks} - \bar e|^2

    Args:
        ends: End positions of K skills on the same S starts, shape [K, S, 3].

    Returns:
        In [0, 1]; 0 where nothing varies. Dealt out at random, skills explain
        (K - 1) / (K S - 1) of it in the mean.
    """
    apart = ends.astype(np.float64) - ends.mean(axis=(0, 1), dtype=np.float64)
    total = float(np.square(apart).sum())
    between = ends.shape[1] * float(np.square(apart.mean(axis=1)).sum())
    return between / total if total > _STILL else 0.0


def median_steps(steps: IntArray, length: IntArray) -> float | None:
    """Returns the median of the steps to contact; None where it falls on an episode without."""
    median = float(np.median(np.where(steps <= length, steps, np.inf)))
    return median if np.isfinite(median) else None


def _measures(trainer: Trainer, make: Callable[[int], Policy], episodes: int) -> Metrics:
    """Measures a policy; `make` gives it anew, with the same or other random draws."""
    played = trainer.played(episodes, make(0))
    measures = _information(trainer, played)
    info = trainer.envs.info
    if info.support is not None:
        cells = visited_cells(played.observation, played.length, info)
        measures["control/coverage"] = len(cells) / support_cells(info.support)
    if info.object is None:
        return measures
    if info.gripper is not None:
        steps = first_contact(played.observation, played.length, info)
        measures["control/contact_rate"] = float(np.mean(steps <= played.length))
        median = median_steps(steps, played.length)
        if median is not None:
            measures["control/steps_to_contact"] = median
    starts = min(STARTS, episodes)
    noise = [stream(_SEED, "judging/noise", 0, repeat) for repeat in range(REPEATS)]
    repeats = [
        trainer.played(starts, noisy_policy(make(0), generator, NOISE)) for generator in noise
    ]
    measures["control/end_spread_m"] = end_spread(_ends(trainer, repeats))
    skills = trainer.config.acting_skills
    if len(skills) > 1:
        each = [trainer.played(starts, make(skill), skill) for skill in skills]
        chance = (len(skills) - 1) / (len(skills) * starts - 1)
        measures["control/skill_variance"] = variance_explained(_ends(trainer, each))
        measures["control/skill_variance_chance"] = chance
    return measures


def _ends(trainer: Trainer, played: list[Episodes]) -> Array:
    """Returns the object's end positions, [plays, episodes, 3]."""
    info = trainer.envs.info
    return np.stack([end_position(one.observation, one.length, info) for one in played])


def _information(trainer: Trainer, played: Episodes) -> Metrics:
    """Estimates I(dx; dy) where robot and surroundings are known and two episodes share steps."""
    split = split_of(trainer.config.world, trainer.envs.spec)
    if split is None or len(played.length) < 2:  # noqa: PLR2004
        return {}
    moved = np.diff(played.observation, axis=1)  # [E, T, O]
    found = paired_information(
        moved[..., list(split.agent)],
        moved[..., list(split.surrounding)],
        played.length,
        stream(_SEED, "judging/information"),
    )
    if not len(found.null):
        return {}
    return {
        "control/information": found.nats,
        "control/information_null": float(found.null.mean()),
        "control/information_null_std": float(found.null.std()),
        "control/information_p": found.chance,
    }
