"""Plays each skill of a run by itself and reports what it does and is good for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_tf.errors import FROM_USERS, UsageError, error_line
from music_tf.losses.prior import effective_skills, learned_prior
from music_tf.measures import skills
from music_tf.runs.comparison import variance_explained
from music_tf.runs.loaded_run import LoadedRun
from music_tf.runs.progress import Progress, Row
from music_tf.storage.run_directory import write_json
from music_tf.storage.run_paths import agents, name_of
from music_tf.types import Array, Episodes, IntArray, instead_of_numbers

StepRewards = Callable[[Array, Array, Array], Array]
"""Rewards [T] of observations [T, O], actions [T, A] in [-1, 1] and next observations [T, O]."""


class SkillEpisodes(NamedTuple):
    """What one skill did in E episodes."""

    skill: int
    length: IntArray  # [E], steps until the first end
    returns: Array  # [E], sum of the environment's rewards, or of those of --reward
    seen: Array  # [E, T + 1, D], descriptor before each step and at last; repeated after an end
    diversity: Array | None
    """Sum over an episode of log q - log p, or of the DADS reward, [E]; None without either."""
    named: Array | None
    """Share of the steps in which the discriminator chose each skill, [K]."""
    log_likelihood: float | None
    """Mean of log q(z | s) over the steps, in nats."""

    @property
    def ends(self) -> Array:
        return self.seen[:, -1]


def describe_episodes(
    loaded: LoadedRun, played: Episodes, rewards: StepRewards | None = None
) -> SkillEpisodes:
    """Computes descriptors, returns and discriminator statistics; `rewards` replaces the task's."""
    skill = int(played.skill[0].argmax())
    kept, seen, likelihood = _judged(loaded, played)
    if rewards is not None:
        kept = _paid_by(rewards, kept)
    diversity, named, mean = _diversity(loaded, kept, likelihood), None, None
    if likelihood is not None:
        named = skills.named_shares(likelihood, kept.length).astype(np.float32)
        mean = float(likelihood[..., skill][kept.step_mask].mean())
    return SkillEpisodes(skill, kept.length, kept.reward.sum(axis=1), seen, diversity, named, mean)


def _paid_by(rewards: StepRewards, played: Episodes) -> Episodes:
    paid = np.zeros_like(played.reward)
    for episode, steps in enumerate(played.length):
        states = played.observation[episode, : steps + 1]
        step_arrays = (states[:-1], played.action[episode, :steps], states[1:])
        try:
            of_steps = np.asarray(rewards(*(values.copy() for values in step_arrays)))
        except FROM_USERS as error:
            text = f"fails on an episode of {steps} steps: {error_line(error)}"
            raise UsageError(f"--reward: {text}") from error
        if came := instead_of_numbers(of_steps, (steps,)):
            raise UsageError(
                f"--reward: expected {steps} finite numbers for an episode of {steps} steps, "
                f"got {came}"
            )
        paid[episode, :steps] = of_steps
    return played._replace(reward=paid)


def skill_arrays(loaded: LoadedRun, played: Episodes) -> dict[str, np.ndarray]:
    """Arrays `skill/...` of `evaluate --out`, by episode [E] or step [T, E]; else none."""
    if len(loaded.config.acting_skills) < 2:  # noqa: PLR2004
        return {}
    kept, seen, likelihood = _judged(loaded, played)
    arrays = {
        "skill/return": kept.reward.sum(axis=1),
        "skill/descriptor": np.swapaxes(seen[:, 1:], 0, 1),
        "skill/kept": kept.step_mask.T,
    }
    diversity = _diversity(loaded, kept, likelihood)
    return arrays if diversity is None else arrays | {"skill/diversity_return": diversity}


def _diversity(loaded: LoadedRun, kept: Episodes, likelihood: Array | None) -> Array | None:
    """Returns the sum of the diversity reward over episodes, [E], unscaled; None without one."""
    if likelihood is not None:
        acted = kept.skill.argmax(axis=-1)
        return skills.diversity_returns(likelihood, acted, kept.length).astype(np.float32)
    terms = [term.name for term in loaded.config.rewards.values() if term.measures_diversity]
    if not terms or not loaded.learned:
        return None
    paid: Array = np.where(kept.step_mask, loaded.networks.raw(terms[0], kept), 0.0).sum(axis=1)
    return paid


def _judged(loaded: LoadedRun, played: Episodes) -> tuple[Episodes, Array, Array | None]:
    """Returns episodes as far as they count, their descriptors [E, T + 1, D], and log q."""
    played = loaded.evaluation.counted(played)
    seen, names = loaded.evaluation.seen(played), loaded.saved.discriminator
    if names is None:
        return played, seen, None
    states = seen[:, 1:] if names.after else seen[:, :-1]
    return played, seen, names.log_likelihood(states)


def play_each_skill(
    loaded: LoadedRun, episodes: int, only: Sequence[int] = (), rewards: StepRewards | None = None
) -> Iterator[SkillEpisodes]:
    """Plays each skill, or `only` some, on the same episodes, and yields what it did."""
    acting = loaded.config.acting_skills
    size = loaded.config.condition_size
    if len(acting) < 2:  # noqa: PLR2004
        kind = loaded.config.condition.kind
        has = "acts with one" if acting else f"has conditions from a {kind}"
        able = ", ".join(name for name, of in agents().items() if "skills" in of["evaluation"])
        has += f"\nagents with several: {able}; a recipe for it: sac_diayn"
        if loaded.adaptation is not None:
            has = f"adapts to tasks\nhow well: music-tf evaluate {loaded.path}"
        raise UsageError(f"RUN: expected several skills, {name_of(loaded.path)} {has}")
    for skill in only:
        if skill not in acting:
            raise UsageError(
                f"--only: this run has {size} skills, expected 0 to {size - 1}, got {skill}"
            )
    for skill in only or acting:
        yield describe_episodes(
            loaded, loaded.evaluation.play(loaded.policy, episodes, skill), rewards
        )


def summarize_skills(followed: Sequence[SkillEpisodes]) -> dict[str, Any]:
    """Returns what `skills.json` says of skills; None for what needs more skills or log q."""
    distances = skills.separation([skills.Track(skill.seen, skill.length) for skill in followed])
    ends = np.stack([skill.ends for skill in followed])
    likelihoods = [skill.log_likelihood for skill in followed if skill.log_likelihood is not None]
    shares = [skill.named for skill in followed if skill.named is not None]
    returns = [float(skill.returns.mean()) for skill in followed]
    several = len(followed) > 1
    return {
        "effective": effective_skills(learned_prior(likelihoods)) if likelihoods else None,
        # so many perfectly recognised skills have the same likelihood
        "recognised": float(np.exp(np.mean(likelihoods)) * len(shares[0])) if likelihoods else None,
        "matrix": [row.tolist() for row in shares] or None,
        "end_distances": skills.end_distances(ends).tolist() if several else None,
        "hausdorff": distances.hausdorff.tolist() if several else None,
        "coverage": distances.coverage,
        "explained": variance_explained(ends) if several and ends.shape[1] > 1 else None,
        "best": followed[int(np.argmax(returns))].skill,
        "each": [
            {
                "skill": skill.skill,
                "return": value,
                "return_std": float(skill.returns.std()) if len(skill.returns) > 1 else None,
                "best_return": float(skill.returns.max()),
                "length": float(skill.length.mean()),
                "diversity_return": None
                if skill.diversity is None
                else float(skill.diversity.mean()),
                "log_likelihood": skill.log_likelihood,
                "end": skill.ends.mean(axis=0).tolist(),
                "spread": float(spread),
            }
            for skill, value, spread in zip(followed, returns, distances.spreads, strict=True)
        ],
    }


def show_skills(
    loaded: LoadedRun,
    path: Path,  # relative to `loaded.here`
    episodes: int,  # of each skill
    only: Sequence[int] = (),  # empty: all
    reward: tuple[str, StepRewards] | None = None,  # name and function, in place of the task's own
) -> list[SkillEpisodes]:
    """Plays the skills of a run, shows a table of them, and writes a file such as `skills.json`."""
    name, rewards = reward or ("the task's own reward", None)
    followed = list(play_each_skill(loaded, episodes, only, rewards))
    summary, progress = summarize_skills(followed), Progress()
    rows, lines = _rows(followed, summary), _lines(summary, name, loaded.config.condition_size)
    progress.table(rows, f"{loaded.title}: {episodes} episodes of each skill", "skill")
    origin = {
        **loaded.identity,
        "episodes": episodes,
        "skills": loaded.config.condition_size,
        "reward": None if reward is None else name,
    }
    write_json(loaded.here / path, origin | summary, path)
    progress.banner([*lines, f"written: {path}"])
    return followed


def _rows(followed: Sequence[SkillEpisodes], summary: Mapping[str, Any]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    distances = np.array(summary["end_distances"] or [[np.nan]])
    np.fill_diagonal(distances, np.inf)
    for skill, row in zip(followed, summary["each"], strict=True):
        cells: dict[str, float | str | None] = {
            "return": row["return"],
            **({} if row["return_std"] is None else {"± deviation": row["return_std"]}),
            "best return": row["best_return"],
            "steps": row["length"],
        }
        if skill.diversity is not None:
            cells["diversity"] = row["diversity_return"]
        if skill.named is not None:
            cells["named"] = float(skill.named[skill.skill])
            others = np.where(np.arange(len(skill.named)) == skill.skill, -1.0, skill.named)
            cells["else as"] = f"skill {others.argmax()}" if others.max() > 0 else "-"
        if len(followed) > 1:
            nearest = distances[len(rows)]
            cells["ends from next"] = float(nearest.min())
            cells["next"] = f"skill {followed[int(nearest.argmin())].skill}"
        rows[f"skill {skill.skill}"] = cells
    return rows


def _lines(summary: Mapping[str, Any], reward: str, size: int) -> list[str]:
    returns = [row["return"] for row in summary["each"]]
    lines = [f"best by {reward}: skill {summary['best']}"]
    if len(returns) > 1 and min(returns) == max(returns):
        lines = [f"no skill is best by {reward}: all earn {returns[0]:.3f}"]
    if summary["effective"] is not None:
        lines.append(
            f"effective number of skills exp(H): {summary['effective']:.2f} of {size}; "
            f"as informative as {summary['recognised']:.2f} that are never confused"
        )
    if summary["hausdorff"] is not None:
        pairs = np.array(summary["hausdorff"])[np.triu_indices(len(summary["hausdorff"]), 1)]
        within = np.mean([row["spread"] for row in summary["each"]])
        lines.append(
            f"Hausdorff distance of where two skills go: {pairs.mean():.3f} on average, at least "
            f"{pairs.min():.3f}; episodes of one skill end {within:.3f} apart"
        )
    if summary["explained"] is not None:
        lines.append(f"share of where episodes end that skills explain: {summary['explained']:.3f}")
    return lines
