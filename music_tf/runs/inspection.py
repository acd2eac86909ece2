"""Evaluates a run: measures it beside simple policies, shows tables, writes `evaluation.json`.

No trainer, MPI or replay takes part. A further measurement is a function in `measure`.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from music_tf.config.changes import NOW
from music_tf.config.settings import EnvConfig
from music_tf.errors import UsageError
from music_tf.gate import ENVIRONMENT
from music_tf.networks.embedding import Ends
from music_tf.runs import comparison
from music_tf.runs.adapting import measure_adaptation, show_adaptation
from music_tf.runs.evaluation_file import store_evaluation
from music_tf.runs.key_metrics import explanation, key_metrics, shortfalls, without_unpaid
from music_tf.runs.loaded_run import LoadedRun
from music_tf.runs.progress import Progress
from music_tf.runs.skills import show_skills, skill_arrays
from music_tf.runs.zero_shot import GOALS, guide_to_goals, measure_zero_shot
from music_tf.storage.metrics import JUDGED
from music_tf.storage.provenance import provenance
from music_tf.storage.results import read_metrics
from music_tf.storage.skill_ends import SKILLS_NAME
from music_tf.training.adaptation import VISITS
from music_tf.training.evaluation import Evaluation, evaluation_conditions, wilson_interval
from music_tf.types import Episodes, Metrics

Export: TypeAlias = Callable[[Episodes, Mapping[str, Any], Mapping[str, Any], EnvConfig], list[str]]
"""Writes the episodes of an evaluation, from these, their origin, `skill_arrays` and the settings
of the environment; returns lines to print."""
Draw: TypeAlias = Callable[[LoadedRun], list[str]]
"""Draws pictures of an evaluated run; returns lines to print."""
_SEEDS_NAMED = 3
_EPISODES_OF_SKILLS = 20
"""Episodes of each skill from which its unknown end is measured."""


class ExtraMeasures(NamedTuple):
    """What to measure beyond the metrics of every epoch."""

    full: bool = False
    """Control of the object and the coverage of its positions: `control` and `coverage`."""
    zero_shot: bool = False
    overwrite: bool = False


NO_EXTRAS = ExtraMeasures()


def evaluate_run(
    loaded: LoadedRun,  # its environments are closed at the end
    episodes: int | None = None,  # of each policy and skill, or visits to each task
    *,
    extras: ExtraMeasures = NO_EXTRAS,
    export: Export | None = None,
    draw: Draw | None = None,
    shown: bool = True,
) -> dict[str, Any]:
    """Measures a run, stores and returns the result, with earlier `extras` of the checkpoint."""
    progress, adapts = Progress(shown=shown), loaded.adaptation is not None
    episodes = episodes or (VISITS if adapts else comparison.EPISODES)
    counted = f"{episodes} visits to each task" if adapts else f"{episodes} episodes"
    with contextlib.closing(loaded.envs):
        if adapts and export is not None:
            raise UsageError(
                "--out, --minari: expected neither for a run that adapts to tasks, since episodes "
                "of a visit depend on each other\nevaluation.json has the return of each"
            )
        progress.banner([f"{loaded.title}: {counted}"])
        result = measure(loaded, episodes, extras)
        _show(loaded, result, counted, progress)
        result, lines = store_evaluation(loaded, result, extras.overwrite)
        progress.banner([*lines, *(draw(loaded) if draw else ())])
        if export is not None:
            names = ("recipe", "preset", "env_id", "seed")
            origin = {name: result[name] for name in names} | result["checkpoint"]
            origin |= {"goals": loaded.config.goals, ENVIRONMENT: vars(loaded.envs.declared)}
            played = loaded.evaluation.play(loaded.policy, episodes)
            arrays = skill_arrays(loaded, played)
            progress.banner(export(played, origin, arrays, loaded.config.env))
    return result


def measure(loaded: LoadedRun, episodes: int, extras: ExtraMeasures = NO_EXTRAS) -> dict[str, Any]:
    """Returns the content of `evaluation.json`, the same for each call."""
    result = _zero_shot(loaded) if extras.zero_shot else {}  # first, since it may refuse a run
    result |= _origin(loaded, episodes) | _policies(loaded, episodes, extras.full)
    result |= _skills(loaded, episodes)
    if extras.full and loaded.adaptation is None:
        metrics = read_metrics(loaded.here / loaded.path, loaded.saved.epoch)
        cells = metrics.get("rollout/object_coverage")
        control = comparison.judge(loaded.evaluation, loaded.policy, episodes, cells)
        result |= {"control": control, "control_episodes": episodes}
        coverage = comparison.cover(loaded.evaluation, loaded.policy)
        result |= {"coverage": coverage, "coverage_episodes": comparison.COVERED}
    return result


def _zero_shot(loaded: LoadedRun) -> dict[str, Any]:
    saved, has_goals = loaded.saved, loaded.envs.spec.goal_dim > 0
    if saved.embedding is None and isinstance(saved.ends, str) and saved.zero_goals and has_goals:
        skills = show_skills(loaded, loaded.file(SKILLS_NAME), _EPISODES_OF_SKILLS)
        saved.ends = Ends(np.stack([skill.ends.mean(axis=0) for skill in skills]))
    guide, label = guide_to_goals(loaded), f"--zero-shot: {loaded.path}"
    reached = measure_zero_shot(loaded.evaluation, saved.snapshot, guide, label)
    return {"zero_shot": reached, "zero_shot_episodes": GOALS}


def _origin(loaded: LoadedRun, episodes: int) -> dict[str, Any]:
    config = loaded.config
    protocol: dict[str, Any] = {"policy": "deterministic, main networks", "goals": config.goals}
    if loaded.adaptation is not None:
        protocol |= {
            "reset_seeds": "fixed by task, visit and episode, the same for every run",
            "latents": "drawn from the prior while a visit explores, then from the belief",
        }
    else:
        first = evaluation_conditions(range(min(_SEEDS_NAMED, episodes)), config, 0)
        protocol |= {
            "reset_seeds": "fixed by episode index from 0 on, the same for every run",
            "first_reset_seeds": [int(seed) for seed in first.seeds],
            "skills": "taking turns by episode index; then each by itself on the same episodes"
            if config.acting_skills
            else f"{config.condition.kind} conditions, fixed by episode index",
        }
    software = provenance(loaded.evaluation.comm, {})
    return {
        **loaded.identity,
        "preset": loaded.stored.preset,
        "episodes": episodes,
        "protocol": protocol,
        "versions": software["versions"],
        "commit": software["commit"],
    }


def _policies(loaded: LoadedRun, episodes: int, full: bool) -> dict[str, Any]:
    """Compares with simple policies; of a run that adapts, `full` probes the belief as well."""
    adapted: dict[str, Any] = {}
    if loaded.adaptation is None:
        evaluation = loaded.evaluation._replace(answers=loaded.heldout)
        policies = comparison.compare(evaluation, loaded.policy, episodes).policies
    else:
        adapted["adaptation"], policies = measure_adaptation(
            loaded.adaptation, loaded.agent, episodes, full
        )
    return {"success": _success(policies["ours"], episodes), "policies": policies, **adapted}


def _skills(loaded: LoadedRun, episodes: int) -> dict[str, Any]:
    """Measures each skill, also in the stage of a changing world in which it was learned."""

    def measured(evaluation: Evaluation) -> list[dict[str, Any]]:
        rows = comparison.measure_skills(evaluation, loaded.policy, episodes, loaded.heldout)
        return [{**row, "success": _success(row["metrics"], episodes)} for row in rows]

    here, worlds = loaded.evaluation, loaded.saved.worlds
    moved = loaded.stage == NOW and any(world != here.world for world in worlds)
    return {
        "skills": measured(here),
        "skills_where_learned": measured(here._replace(world=worlds)) if moved else [],
    }


def _success(metrics: Metrics, episodes: int) -> dict[str, Any] | None:
    """Returns the success rate and its interval, or None where no goals were trained on."""
    if "eval/success_rate" not in metrics:
        return None
    count = round(metrics["eval/success_rate"] * episodes)
    interval = list(wilson_interval(count, episodes))
    return {"successes": count, "rate": count / episodes, "interval_95": interval}


def _show(loaded: LoadedRun, result: Mapping[str, Any], counted: str, progress: Progress) -> None:
    env_id, policies = result["env_id"], result["policies"]
    title = f"{env_id}, {counted}"
    if "adaptation" in result:
        show_adaptation(result["adaptation"], policies, env_id, progress)
    else:
        progress.policies(without_unpaid(policies, loaded.config), title)
    trained = read_metrics(loaded.here / loaded.path, loaded.saved.epoch)
    followed = key_metrics(loaded.config, loaded.envs.info, loaded.envs.spec.goal_dim > 0)
    shown = [each for each in followed if each.metric in policies["ours"]]
    progress.banner([*explanation(shown), *shortfalls(loaded.config, trained)])
    if result["success"]:
        rate, (low, high) = result["success"]["rate"], result["success"]["interval_95"]
        progress.banner([f"success rate {rate:.3f} (95 % interval {low:.3f} to {high:.3f})"])
    for name in JUDGED:
        if name in result:
            kind = name.replace("_", "-")
            progress.policies(
                result[name], f"{env_id}, {result[f'{name}_episodes']} episodes: {kind}"
            )
    for name, where in (("skills", ""), ("skills_where_learned", " where it was learned")):
        if result[name]:
            rows = comparison.skill_rows(result[name], policies["random"], loaded.envs.info.unit)
            progress.table(rows, f"{title} of each skill{where}", "skill")
