"""Loads what a run has learned, and measures it, without MPI and without its replay."""

import dataclasses
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_tf.config.settings import Config
from music_tf.config.stored import StoredRun, read_run
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EnvironmentFault, MusicError, UsageError
from music_tf.rollout import Policy
from music_tf.runs.progress import Progress
from music_tf.storage.checkpoint import load_weights
from music_tf.storage.files import read_at_most, replace_file
from music_tf.storage.gate import take_over
from music_tf.storage.results import read_metric
from music_tf.storage.run_directory import EVALUATION_NAME, provenance
from music_tf.storage.start import Heritage, inherit
from music_tf.tools.comparison import by_metric, compare
from music_tf.tools.export import check_minari, export_minari, export_npz
from music_tf.tools.judging import judge
from music_tf.tools.skills import measure_skills, skill_rows
from music_tf.training.build import build_trainer
from music_tf.training.evaluation import evaluation_conditions, wilson_interval
from music_tf.training.trainer import ACTING, Counters, Trainer
from music_tf.types import Metrics

_MOST_ENVIRONMENTS = 32
_SUCCESS = "eval/success_rate"
_SEEDS_NAMED = 3
_LARGEST_EVALUATION = 1_000_000
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class LoadedRun:
    """A run as its newest intact checkpoint left it, ready to act."""

    path: Path
    stored: StoredRun
    """What `config.json` says; the configuration is the run's own."""
    trainer: Trainer
    """Holds weights and moments, and a few environments in place of the run's."""
    comm: Communicator
    policy: Policy
    """Deterministic, with the main networks."""

    @property
    def epoch(self) -> int:
        """Epochs of training so far."""
        return self.trainer.counters.epoch

    @property
    def env_steps(self) -> int:
        """Environment steps of training so far."""
        return self.trainer.counters.env_steps

    @property
    def config(self) -> Config:
        """The configuration that the run was trained with."""
        return self.stored.config

    @property
    def envs(self) -> LockstepEnvs:
        """Environments to play in."""
        return self.trainer.envs


def load_run(
    run: Path, typed_env_id: str | None = None, environments: int | None = None
) -> LoadedRun:
    """Builds a run's environments and networks and loads its newest intact checkpoint.

    Args:
        run: The run directory.
        typed_env_id: The environment that the user typed, if any: `module:Id` is taken from
            nowhere else.
        environments: How many to make; as many as the run had on one rank by default, up to 32.

    Raises:
        UsageError: No run, no checkpoint yet, another environment than the one typed, or
            weights that do not fit the configuration; the text names the first of them.
        EnvironmentFault: Every checkpoint is damaged, or the environment cannot be created.
    """
    stored = read_run(run, typed_env_id)
    config = stored.config
    if typed_env_id is not None and typed_env_id != config.env_id:
        raise UsageError(
            f"--env-id: the run was trained on {config.env_id}, got {typed_env_id[:80]!r}\n"
            "it may be left out, unless the id is of the form module:Id"
        )
    if stored.notice:
        _LOGGER.warning("%s: %s", run, stored.notice)
    count = environments or min(_MOST_ENVIRONMENTS, config.workers * config.rollouts)
    comm = Communicator(alone=True)
    trainer = build_trainer(_smaller(config, count), comm)
    try:
        arrays, meta = load_weights(run / "checkpoints", trainer.expected().shared, ACTING)
        trainer.load_weights(arrays)
        trainer.counters = take_over(Counters(), meta.get("counters"), "counters")
    except MusicError:
        trainer.envs.close()
        raise
    except ValueError as error:
        trainer.envs.close()
        raise UsageError(f"{run}: the checkpoint does not fit config.json\n{error}") from error
    return LoadedRun(run, stored, trainer, comm, trainer.policy())


def evaluate_run(
    run: Path,
    episodes: int = 100,
    typed_env_id: str | None = None,
    *,
    full: bool = False,
    npz: Path | None = None,
    minari: str | None = None,
) -> None:
    """Measures a run beside simple policies; shows a table and writes `RUN/evaluation.json`.

    Success is given for runs trained on the environment's goals; where there are skills, each is
    measured by itself on the same episodes.

    Args:
        run: The run directory.
        episodes: How many, for each policy and each skill.
        typed_env_id: As for `load_run`.
        full: Whether to judge control beyond the metrics of every epoch, under `control`; what
            was found of the same checkpoint before is kept otherwise.
        npz: A file for the episodes of our policy, as `export_npz` writes it.
        minari: The id of a new Minari dataset for them.

    Raises:
        UsageError: The run cannot be loaded, or the dataset exists.
        EnvironmentFault: A checkpoint or the environment is broken, nothing can be written, or
            Minari or h5py is not installed.
        NumbersFault: The policy gives actions that are not finite.
    """
    if minari is not None:
        check_minari(minari)
    loaded = load_run(run, typed_env_id)
    progress = Progress()
    progress.banner([f"{describe(loaded)}: {episodes} episodes"])
    try:
        result = measure(loaded, episodes)
        if full:
            cells = read_metric(run, "rollout/object_coverage", loaded.epoch)
            control = judge(loaded.trainer, loaded.comm, episodes, cells)
            result |= {"control": control, "control_episodes": episodes}
        _show(progress, result)
        result = _judged_before(run, result["checkpoint"]) | result
        _write(run / EVALUATION_NAME, result)
        progress.banner([f"written: {run / EVALUATION_NAME}"])
        if npz is not None or minari is not None:
            progress.banner(_export(loaded, episodes, npz, minari))
    finally:
        loaded.envs.close()


def measure(loaded: LoadedRun, episodes: int) -> dict[str, Any]:
    """Returns what `evaluation.json` holds, the same for each call."""
    config = loaded.config
    policies = compare(loaded.trainer, loaded.comm, episodes)
    first = evaluation_conditions(range(min(_SEEDS_NAMED, episodes)), 0, False, config.skills)
    made = provenance(loaded.comm, {})
    return {
        "recipe": loaded.stored.recipe,
        "preset": loaded.stored.preset,
        "env_id": config.env_id,
        "seed": config.seed,
        "checkpoint": {"epoch": loaded.epoch, "env_steps": loaded.env_steps},
        "episodes": episodes,
        "protocol": {
            "policy": "deterministic, main networks",
            "goals": config.goals,
            "reset_seeds": "fixed by episode index from 0 on, the same for every run",
            "first_reset_seeds": [int(seed) for seed in first.seeds],
            "skills": "taking turns by episode index; then each by itself on the same episodes",
        },
        "success": _success(policies["ours"], episodes),
        "policies": policies,
        "skills": [
            {**row, "success": _success(row["metrics"], episodes)}
            for row in measure_skills(loaded.trainer, loaded.policy, episodes)
        ],
        "versions": made["versions"],
        "commit": made["commit"],
    }


def describe(loaded: LoadedRun) -> str:
    """Returns one line that says which run this is, and how far it has come."""
    stored = loaded.stored
    return (
        f"{stored.recipe} ({stored.preset}) on {stored.config.env_id}, seed {stored.config.seed}, "
        f"epoch {loaded.epoch}, {loaded.env_steps:,} steps"
    )


def try_heritage(config: Config, source: Path, parts: Sequence[str]) -> Heritage:
    """Returns what a run of this configuration takes over, tried on a few environments.

    Raises:
        UsageError: Nothing is there, or it does not fit, or its numbers are not finite; the text
            names the part.
        EnvironmentFault: Whatever is there is damaged, or the environment cannot be created.
    """
    trainer = build_trainer(_smaller(config, 1), Communicator(alone=True))
    try:
        own = {n: array for n, array in trainer.shared().items() if not n.startswith("adam_")}
        heritage = inherit(own, source, parts, trainer.meta()["inputs"])
        try:
            trainer.start_from(heritage.arrays)
        except ValueError as error:
            raise UsageError(f"--init-from: {source}: {error}") from error
    finally:
        trainer.envs.close()
    return heritage


def _smaller(config: Config, environments: int) -> Config:
    """Returns the configuration with fewer environments and no room for replay."""
    replay = dataclasses.replace(config.replay, capacity=1)
    return dataclasses.replace(config, workers=1, rollouts=environments, replay=replay)


def _success(metrics: Metrics, episodes: int) -> dict[str, Any] | None:
    """Returns the success rate and its interval, or None where no goals were trained on."""
    if _SUCCESS not in metrics:
        return None
    successes = round(metrics[_SUCCESS] * episodes)
    return {
        "successes": successes,
        "rate": successes / episodes,
        "interval_95": list(wilson_interval(successes, episodes)),
    }


def _show(progress: Progress, result: Mapping[str, Any]) -> None:
    """Shows the comparison, the success rate and its interval, and a table of skills."""
    title = f"{result['env_id']}, {result['episodes']} episodes"
    progress.final_table(by_metric(result["policies"]), title)
    if result["success"]:
        progress.banner([f"success rate {_with_interval(result['success'])}"])
    if "control" in result:
        progress.final_table(by_metric(result["control"]), f"{title}: control")
    if result["skills"]:
        rows = skill_rows(result["skills"], result["policies"]["random"])
        progress.final_table(rows, f"{title} of each skill", "skill")


def _judged_before(run: Path, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what `--full` has found of the same checkpoint before, as far as it can be read."""
    try:
        earlier = json.loads(read_at_most(run / EVALUATION_NAME, _LARGEST_EVALUATION))
        json.dumps(earlier, allow_nan=False)  # numbers such as 1e999 can be read, but not written
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(earlier, dict) or earlier.get("checkpoint") != checkpoint:
        return {}
    return {name: earlier[name] for name in ("control", "control_episodes") if name in earlier}


def _write(path: Path, result: Mapping[str, Any]) -> None:
    try:
        replace_file(path, (json.dumps(result, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written ({error.strerror})") from error


def _export(loaded: LoadedRun, episodes: int, npz: Path | None, minari: str | None) -> list[str]:
    """Writes the evaluation episodes of our policy, and returns lines that say where."""
    config = loaded.config
    played = loaded.trainer.played(episodes, loaded.policy)
    about = {
        "recipe": loaded.stored.recipe,
        "preset": loaded.stored.preset,
        "env_id": config.env_id,
        "seed": config.seed,
        "epoch": loaded.epoch,
        "env_steps": loaded.env_steps,
        "goals": config.goals,
    }
    lines = []
    if npz is not None:
        export_npz(npz, played, about)
        lines.append(f"written: {npz}")
    if minari is not None:
        export_minari(minari, played, about)
        lines.append(f"written: Minari dataset {minari}")
    return lines


def _with_interval(success: Mapping[str, Any]) -> str:
    low, high = success["interval_95"]
    return f"{success['rate']:.3f} (95 % interval {low:.3f} to {high:.3f})"
