"""Measures what a run has learned, without a trainer, MPI or its replay."""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from music_tf.config.changes import NOW
from music_tf.config.settings import EnvConfig
from music_tf.envs.registry import descriptor_of
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.files import read_json
from music_tf.gate import ENVIRONMENT
from music_tf.hints import fits
from music_tf.networks.embedding import Embedding
from music_tf.networks.ends import Ends
from music_tf.reading.stored import runs_root
from music_tf.runs.adapting import measure_adaptation, show_adaptation
from music_tf.runs.comparison import (
    COVERED,
    EPISODES,
    compare,
    cover,
    judge,
    measure_skills,
    skill_rows,
)
from music_tf.runs.key_metrics import explanation, key_metrics, shortfalls, without_unpaid
from music_tf.runs.loaded_run import LoadedRun
from music_tf.runs.progress import Progress
from music_tf.runs.skills import show_skills, skill_arrays
from music_tf.runs.zero_shot import GOALS, GoalGuide, measure_zero_shot
from music_tf.storage.metrics import JUDGED
from music_tf.storage.provenance import provenance
from music_tf.storage.results import read_metrics
from music_tf.storage.run_directory import EVALUATION_NAME, write_json
from music_tf.storage.run_paths import agents, comes_with_package
from music_tf.storage.skill_ends import SKILLS_NAME
from music_tf.training.adaptation import VISITS
from music_tf.training.evaluation import evaluation_conditions, wilson_interval
from music_tf.types import Episodes, Metrics

Export: TypeAlias = Callable[[Episodes, Mapping[str, Any], Mapping[str, Any], EnvConfig], list[str]]
"""Writes the episodes of an evaluation; returns lines to print."""
Draw: TypeAlias = Callable[[LoadedRun], list[str]]
"""Draws pictures of an evaluated run; returns lines to print."""
_BESIDE = tuple(f"{name}{suffix}" for name in JUDGED for suffix in ("", "_episodes"))
_LOGGER = logging.getLogger(__name__)
_SEEDS_NAMED = 3
_LARGEST_EVALUATION = 1_000_000
_LONGEST_WORDS = 80
_PRACTISED = 20
"""Episodes of each skill from which its end is measured."""


class ExtraMeasures(NamedTuple):
    """What is asked of an evaluation beyond the metrics of every epoch."""

    full: bool = False
    """Control of the object and the coverage of its positions: `control` and `coverage`."""
    zero_shot: bool = False
    """Success on goals that training never had: `zero_shot`."""
    overwrite: bool = False
    """Replace a file that holds more episodes, too."""


NO_EXTRAS = ExtraMeasures()


def evaluate_run(
    loaded: LoadedRun,
    episodes: int | None = None,
    *,
    extras: ExtraMeasures = NO_EXTRAS,
    export: Export | None = None,
    draw: Draw | None = None,
    shown: bool = True,
) -> dict[str, Any]:
    """Measures a run beside simple policies; shows a table and writes `RUN/evaluation.json`.

    A file that holds more episodes of the same checkpoint stays, and a warning says so. That of an
    agent of the package is `NAME_evaluation.json` in the root folder of runs.
    The success rate is given for runs trained on the environment's goals. Each skill is also
    measured by itself, on the same episodes.

    Args:
        loaded: The run; its environments are closed at the end.
        episodes: Episodes of each policy and each skill, 100 by default; for a run that adapts to
            tasks, visits to each task, 20 by default.
        extras: What to measure beyond the metrics of every epoch; earlier results of the same
            checkpoint are kept in the file.
        export: Called with the episodes of our policy, their origin, `skill_arrays` and the
            settings of the environment.
        draw: Called with the run.
        shown: Whether to print tables.

    Returns:
        What was measured, and earlier results of `beyond`.
    """
    progress, path = Progress(shown=shown), written_to(loaded, EVALUATION_NAME)
    adapts = loaded.adaptation is not None
    episodes = episodes or (VISITS if adapts else EPISODES)
    _refuse_export(loaded, export is not None)
    if extras.zero_shot:
        _practise_skills(loaded)
    leads = guide_to_goals(loaded) if extras.zero_shot else None
    counted = f"{episodes} visits to each task" if adapts else f"{episodes} episodes"
    progress.banner([f"{describe(loaded)}: {counted}"])
    try:
        reached: dict[str, Any] = {}
        if leads is not None:  # first, since no goal may be about what it sees
            run, acting = f"--zero-shot: {loaded.path}", loaded.saved.snapshot
            found = measure_zero_shot(loaded.evaluation, acting, leads, run)
            reached = {"zero_shot": found, "zero_shot_episodes": GOALS}
        result = measure(loaded, episodes, extras.full) | reached
        if extras.full and not adapts:
            result |= _judged(loaded, episodes)
        _show(loaded, result, counted, progress)
        place = loaded.here / path
        earlier = _earlier(place, result["checkpoint"], result["env_kwargs"])
        result = {name: earlier[name] for name in _BESIDE if name in earlier} | result
        kept = result if extras.overwrite else _fuller(earlier, result)
        if kept["episodes"] > episodes:
            _LOGGER.warning(
                "not stored: %s holds more of this checkpoint, %d %s\n"
                "to replace it: --overwrite, in Python overwrite=True",
                *(path, kept["episodes"], "visits to each task" if adapts else "episodes"),
            )
        if kept["episodes"] == episodes or kept != earlier:
            write_json(place, kept, path)
            progress.banner([f"written: {path}"])
        progress.banner(draw(loaded) if draw else ())
        if export is not None:
            played = loaded.evaluation.play(loaded.policy, episodes)
            names = ("recipe", "preset", "env_id", "seed")
            about = {name: result[name] for name in names} | result["checkpoint"]
            about |= {"goals": loaded.config.goals, ENVIRONMENT: vars(loaded.envs.declared)}
            arrays = skill_arrays(loaded, played)
            progress.banner(export(played, about, arrays, loaded.config.env))
    finally:
        loaded.envs.close()
    return result


def _judged(loaded: LoadedRun, episodes: int) -> dict[str, Any]:
    """Returns control of the object and coverage of its positions, as the file holds them."""
    metrics = read_metrics(loaded.here / loaded.path, loaded.saved.epoch)
    cells = metrics.get("rollout/object_coverage")
    return {
        "control": judge(loaded.evaluation, loaded.policy, episodes, cells),
        "control_episodes": episodes,
        "coverage": cover(loaded.evaluation, loaded.policy),
        "coverage_episodes": COVERED,
    }


def _show(loaded: LoadedRun, result: Mapping[str, Any], counted: str, progress: Progress) -> None:
    """Shows the tables of an evaluation; `counted` says of how many episodes or visits."""
    title = f"{result['env_id']}, {counted}"
    policies: dict[str, Metrics] = result["policies"]
    if "adaptation" in result:
        show_adaptation(result["adaptation"], policies, result["env_id"], progress)
    else:
        progress.policies(without_unpaid(policies, loaded.config), title)
    progress.banner(explanation(key_metrics(loaded.config, loaded.envs.info, policies["ours"])))
    trained = read_metrics(loaded.here / loaded.path, loaded.saved.epoch)
    progress.banner(shortfalls(loaded.config, trained))
    if result["success"]:
        rate, (low, high) = result["success"]["rate"], result["success"]["interval_95"]
        progress.banner([f"success rate {rate:.3f} (95 % interval {low:.3f} to {high:.3f})"])
    for name in JUDGED:
        if name in result:
            about = f"{result[f'{name}_episodes']} episodes: {name.replace('_', '-')}"
            progress.policies(result[name], f"{result['env_id']}, {about}")
    for name, where in (("skills", ""), ("skills_where_learned", " where it was learned")):
        if result[name]:
            rows = skill_rows(result[name], policies["random"], loaded.envs.info.unit)
            progress.table(rows, f"{title} of each skill{where}", "skill")


def _practise_skills(loaded: LoadedRun) -> None:
    """Measures the ends of skills, as `music-tf skills` does, if reaching goals needs only them."""
    saved, has_goals = loaded.saved, loaded.envs.spec.goal_dim > 0
    if saved.embedding is None and isinstance(saved.ends, str) and saved.zero_goals and has_goals:
        path = written_to(loaded, SKILLS_NAME)
        followed = show_skills(loaded, describe(loaded), path, _PRACTISED)
        saved.ends = Ends(np.stack([one.ends.mean(axis=0) for one in followed]))


def guide_to_goals(loaded: LoadedRun, asked: str = "--zero-shot") -> GoalGuide:
    """Returns the embedding, or the ends of skills, by which a run reaches goals."""
    leads, run = loaded.saved.leads, loaded.path
    if asked != "--reach" and not loaded.envs.spec.goal_dim:
        loaded.envs.close()
        raise UsageError(
            f"{asked}: {run}: expected an environment with goals, {loaded.config.env_id} has none\n"
            f"to send the run to a place of yours: music-tf play {run} --reach X Y"
        )
    text = leads if isinstance(leads, str) else "it has neither"
    if isinstance(leads, Ends):
        columns, extra = descriptor_of(loaded.envs.info, loaded.envs.spec)
        if extra or len(columns) != leads.seen:
            text = "its skills are distinguished by what no column of the observation holds"
            leads = None
        else:
            leads = leads._replace(columns=tuple(columns))
    if isinstance(leads, Embedding | Ends):
        if loaded.config.goals == "zero" or not loaded.envs.spec.goal_dim:
            return leads
        text = "it was trained on goals, so that none of them is new, expected --goals zero"
    loaded.envs.close()
    raise UsageError(
        f"{asked}: {run}: expected a run without goals that has an embedding, or skills whose ends "
        f"are known; {text}\n"
        "for example: music-tf train sac_place"
    )


def _refuse_export(loaded: LoadedRun, asked: bool) -> None:
    """Refuses to export episodes of a run that adapts to tasks, before anything is measured."""
    if asked and loaded.adaptation is not None:
        loaded.envs.close()
        raise UsageError(
            "--out, --minari: expected neither for a run that adapts to tasks, since episodes "
            "of a visit depend on each other\nevaluation.json has the return of each"
        )


def measure(loaded: LoadedRun, episodes: int, full: bool = False) -> dict[str, Any]:
    """Returns the content of `evaluation.json`, the same for each call.

    For a run that adapts to tasks, `episodes` counts visits to each, and `full` probes the belief.
    """
    config, saved = loaded.config, loaded.saved

    def heldout(played: Episodes) -> Metrics:
        return loaded.networks.heldout(played, saved.epoch) if loaded.learned else {}

    def success(metrics: Metrics) -> dict[str, Any] | None:
        """Returns the rate and its interval, or None where no goals were trained on."""
        if "eval/success_rate" not in metrics:
            return None
        count = round(metrics["eval/success_rate"] * episodes)
        return {
            "successes": count,
            "rate": count / episodes,
            "interval_95": list(wilson_interval(count, episodes)),
        }

    adapted: dict[str, Any] = {}
    if loaded.adaptation is None:
        evaluation = loaded.evaluation._replace(answers=heldout)
        policies = compare(evaluation, loaded.policy, episodes)
    else:
        found, policies = measure_adaptation(loaded.adaptation, loaded.agent, episodes, full)
        adapted["adaptation"] = found
    skills = measure_skills(loaded.evaluation, loaded.policy, episodes, heldout)
    where_learned = loaded.evaluation._replace(world=saved.worlds)
    both = loaded.stage == NOW and any(world != loaded.evaluation.world for world in saved.worlds)
    others = measure_skills(where_learned, loaded.policy, episodes, heldout) if both else []
    protocol: dict[str, Any] = {"policy": "deterministic, main networks", "goals": config.goals}
    if adapted:
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
    made = provenance(loaded.evaluation.comm, {})
    return {
        "recipe": saved.recipe,
        "preset": loaded.stored.preset,
        "env_id": config.env_id,
        "env_kwargs": json.loads(config.env.kwargs),
        **({"stage": loaded.evaluation.world} if config.env.stages else {}),
        "seed": config.seed,
        "checkpoint": {"epoch": saved.epoch, "env_steps": saved.env_steps},
        "episodes": episodes,
        "protocol": protocol,
        "success": success(policies["ours"]),
        "policies": policies,
        **adapted,
        "skills": [{**row, "success": success(row["metrics"])} for row in skills],
        "skills_where_learned": [{**row, "success": success(row["metrics"])} for row in others],
        "versions": made["versions"],
        "commit": made["commit"],
    }


def describe(loaded: LoadedRun) -> str:
    """Returns a line with recipe, environment, seed, epoch and steps of a run."""
    stored, saved = loaded.stored, loaded.saved
    other = f" with {stored.config.env.kwargs}" if loaded.env_overrides else ""
    if stored.config.env.stages:
        world = loaded.evaluation.world
        each = "where each skill was learned"
        other += f" in stage {world} of its world" if isinstance(world, int) else f" {each}"
    return (
        f"{stored.recipe} ({stored.preset}) on {stored.config.env_id}{other}, seed "
        f"{stored.config.seed}, epoch {saved.epoch}, {saved.env_steps:,} steps"
    )


def written_to(loaded: LoadedRun, name: str, more: str = "") -> Path:
    """Returns the path of a file about a run, relative to `loaded.here`.

    The name includes other arguments of the environment, a chosen stage, and more words. A file
    about an agent of the package lies in the root folder of runs and starts with the agent's name.
    """
    stage = "" if loaded.stage == NOW else f"stage {loaded.stage}"
    words = "_".join(re.findall(r"[\w.-]+", f"{loaded.env_overrides} {stage} {more}"))
    if len(words) > _LONGEST_WORDS:
        digest = hashlib.sha256(words.encode()).hexdigest()[:8]
        words = f"{words[: _LONGEST_WORDS - len(digest) - 1]}_{digest}"
    stem, dot, ending = name.rpartition(".")
    own = f"{stem}_{words}{dot}{ending}" if words else name
    path = loaded.path
    if not comes_with_package(path):
        return path / own
    root = loaded.here / runs_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(f"{root}: cannot be created ({error.strerror})") from error
    return root / f"{path.name}_{own}"


def brake_distance(loaded: LoadedRun) -> float:
    """Returns the distance to a goal below which it is best to do nothing; 0 if not measured.

    `evaluate --zero-shot` measures it, for one checkpoint. Agents of the package come with it.
    """
    saved, path = loaded.saved, loaded.path
    if comes_with_package(path):
        judged = agents()[path.resolve().name]["evaluation"]
    else:
        checkpoint = {"epoch": saved.epoch, "env_steps": saved.env_steps}
        own = json.loads(loaded.config.env.kwargs)
        place = loaded.here / written_to(loaded, EVALUATION_NAME)
        judged = _earlier(place, checkpoint, own)
    for name in ("zero_shot", "ours"):
        judged = judged.get(name)
        if not isinstance(judged, dict):
            return 0.0
    stop = judged.get("zero_shot/stop")
    return float(stop) if fits(stop, float) and stop > 0.0 else 0.0


def _earlier(
    path: Path, checkpoint: Mapping[str, Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns earlier results, if readable.

    None of another checkpoint, nor of an environment with other arguments; a stage has a file.
    """
    try:
        earlier = read_json(path, _LARGEST_EVALUATION)
    except (OSError, ValueError):
        return {}
    if not isinstance(earlier, dict):
        return {}
    same = (earlier.get("checkpoint"), earlier.get("env_kwargs")) == (checkpoint, kwargs)
    return earlier if same else {}


def _fuller(earlier: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Returns the evaluation and each part of `JUDGED` from the result with more episodes of it."""

    def fuller(count: str) -> dict[str, Any]:
        return max(
            result, earlier, key=lambda told: told[count] if type(told.get(count)) is int else 0
        )

    parts = {name: fuller(f"{name.removesuffix('_episodes')}_episodes") for name in _BESIDE}
    return fuller("episodes") | {name: told[name] for name, told in parts.items() if name in told}
