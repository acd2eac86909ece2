"""Loads what a run has learned, ready to act, without a trainer, MPI or its replay.

Policies act with numpy; TensorFlow is loaded only for the networks of rewards.
"""

import dataclasses
import functools
import hashlib
import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_tf.config.changes import NOW, chosen_stage, stage_at
from music_tf.config.conditioning import BOTH, Visited
from music_tf.config.fields import with_fields
from music_tf.config.settings import Config
from music_tf.config.terms import ScaledConfig, TermConfig
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.gate import Arrays
from music_tf.networks.acting import Snapshot, SnapshotPolicy
from music_tf.process.tensorflow_start import claim_gpu, load_tensorflow, prepare_tensorflow
from music_tf.reading.stored import StoredRun, check_same_env, read_run
from music_tf.rollout import Policy
from music_tf.storage.loading import saved_policy
from music_tf.storage.policy import AdaptivePolicy, SavedPolicy
from music_tf.storage.run_paths import comes_with_package, file_about
from music_tf.training.adaptation import PARTS, MetaEvaluation
from music_tf.training.evaluation import Evaluation
from music_tf.training.tasks import recorded_tasks, task_sets
from music_tf.types import ALL, SPACES, Episodes, Metrics, refusal

if TYPE_CHECKING:  # loads TensorFlow
    from music_tf.runs.learned_rewards import LearnedRewards

_MOST_ENVIRONMENTS = 32
_LONGEST_WORDS = 80
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class LoadedRun:
    """A run as its newest intact checkpoint left it, ready to act."""

    path: Path
    """Its directory, as its user typed it."""
    here: Path
    """The working directory then; files are written there, though the environment may leave it."""
    stored: StoredRun
    saved: SavedPolicy
    learned: Arrays
    """Weights and scales of the networks that belong to rewards, by name; empty without any."""
    evaluation: Evaluation
    env_overrides: str = ""
    """Arguments of the environment that differ from those of training, as JSON; empty: none."""
    stage: str = NOW
    """Stage of a changing world in which it acts: `NOW`, `LEARNED`, or a number."""
    adaptation: MetaEvaluation | None = None
    visits: str = ""
    """What `visiting` changed, in the names of files."""

    @property
    def policy(self) -> Policy:
        """The policy of the checkpoint: the mean action of the actor, not of its target."""
        return SnapshotPolicy(self.saved.snapshot)

    @property
    def agent(self) -> Snapshot:
        """The networks that act and infer the task, in a run that adapts to tasks."""
        if not isinstance(self.saved, AdaptivePolicy):
            raise ValueError(f"{self.path}: expected a run that adapts to tasks")
        return self.saved.snapshot

    @property
    def config(self) -> Config:
        return self.stored.config

    @property
    def envs(self) -> LockstepEnvs:
        return self.evaluation.envs

    @property
    def title(self) -> str:
        stored, saved, world = self.stored, self.saved, self.evaluation.world
        overrides = json.loads(self.env_overrides or "{}")
        where = "".join(f", {name} {value}" for name, value in overrides.items())
        if self.config.env.stages:
            stage = f" in stage {world} of its world"
            where += stage if isinstance(world, int) else " where each skill was learned"
        return (
            f"{stored.recipe} ({stored.preset}) on {self.config.env_id}{where}, seed "
            f"{self.config.seed}, epoch {saved.epoch}, {saved.env_steps:,} steps"
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What the JSON files about a run say of it, its checkpoint and its environment."""
        config, saved = self.config, self.saved
        return {
            "recipe": saved.recipe,
            "env_id": config.env_id,
            "env_kwargs": json.loads(config.env.kwargs),
            **({"stage": self.evaluation.world} if config.env.stages else {}),
            "seed": config.seed,
            "checkpoint": {"epoch": saved.epoch, "env_steps": saved.env_steps},
        }

    def file(self, name: str, more: str = "") -> Path:
        """A file about the run; its name has other arguments, a chosen stage, and more words."""
        stage = "" if self.stage == NOW else f"stage {self.stage}"
        words = "_".join(
            re.findall(r"[\w.-]+", f"{self.env_overrides} {stage} {self.visits} {more}")
        )
        if len(words) > _LONGEST_WORDS:
            digest = hashlib.sha256(words.encode()).hexdigest()[:8]
            words = f"{words[: _LONGEST_WORDS - len(digest) - 1]}_{digest}"
        stem, dot, ending = name.rpartition(".")
        return file_about(self.path, f"{stem}_{words}{dot}{ending}" if words else name, self.here)

    def heldout(self, played: Episodes) -> Metrics:
        return self.networks.heldout(played, self.saved.epoch) if self.learned else {}

    @functools.cached_property
    def networks(self) -> "LearnedRewards":
        """The networks of rewards; the first access loads TensorFlow, which then uses no GPU."""
        prepare_tensorflow()
        load_tensorflow()
        claim_gpu(needed=False, allowed=False)
        from music_tf.runs.learned_rewards import LearnedRewards  # noqa: PLC0415 - TensorFlow

        return LearnedRewards(self.evaluation, self.learned)


def load_run(
    run: Path,
    typed_env_id: str | None = None,  # what the user typed; a module is imported only of such an id
    environments: int | None = None,  # by default workers times rollouts, at most 32
    env_overrides: str = "",  # JSON, further arguments of the environment's constructor
    stage: str = NOW,  # of its world: `NOW`, `LEARNED`, or a number
) -> LoadedRun:
    """Builds a run's environments and networks and loads its newest intact checkpoint."""
    here = Path.cwd()  # the user's environment may leave this folder
    stored = read_run(run, typed_env_id)
    config = stored.config
    if env_overrides:
        both = json.dumps(json.loads(config.env.kwargs) | json.loads(env_overrides))
        env = dataclasses.replace(config.env, kwargs=both)
        stored = stored._replace(config=dataclasses.replace(config, env=env))
    check_same_env("--env-id", stored, typed_env_id)
    if stored.notice and not comes_with_package(run):
        _LOGGER.warning("%s: %s", run, stored.notice)
    saved, checkpoint = saved_policy(
        run, stored, ("parameters/", "scales/", "level/", "normalizer/")
    )
    if isinstance(saved, AdaptivePolicy) and not saved.snapshot.encoder:
        raise UsageError(
            f"{run}: expected weights of an encoder, which infers the task, found none\n"
            "export them as well: --parts actor,encoder,normalizer"
        )
    stored, config = saved.stored, saved.stored.config
    now = stage_at(config.env.stages, saved.env_steps, skill=saved.skills)  # of the next skill
    world = chosen_stage(stage, config.env.stages, now, saved.worlds)
    count = environments or min(_MOST_ENVIRONMENTS, config.workers * config.rollouts)
    envs = LockstepEnvs(config.env_id, count, config.evaluated_env, world=config.world)
    compared = SPACES if env_overrides or config.evaluation.length else ALL
    if text := refusal(saved.declared, envs.declared, str(run), compared):
        envs.close()
        raise UsageError(text)
    evaluation = Evaluation(envs, config, Communicator(alone=True), world=world)
    learned = learned_arrays(checkpoint.arrays, config.rewards)
    tasks = recorded_tasks(stored.tasks, config) if stored.tasks else task_sets(config, envs)
    adaptation = None if tasks is None else MetaEvaluation(envs, config, evaluation.comm, tasks)
    return LoadedRun(
        run, here, stored, saved, learned, evaluation, env_overrides, stage, adaptation
    )


def visiting(loaded: LoadedRun, tasks: Visited = BOTH, explore: int | None = None) -> LoadedRun:
    """Returns a run that visits such tasks and first explores for `explore` episodes."""
    if tasks == BOTH and explore is None:
        return loaded
    adaptation, config = loaded.adaptation, loaded.config
    if adaptation is None:
        loaded.envs.close()
        raise UsageError(
            "--tasks, --explore: expected a run that adapts to tasks, got one of "
            f"{loaded.stored.recipe}, which has one task"
        )
    if explore is not None:
        config = with_fields(config, {"tasks.explore": explore})
    visits = adaptation._replace(config=config, parts=PARTS if tasks == BOTH else (tasks,))
    named = "" if tasks == BOTH else f"tasks {tasks}"
    named += "" if explore is None else f" explore {explore}"
    return dataclasses.replace(loaded, adaptation=visits, visits=named)


def learned_arrays(arrays: Arrays, rewards: Mapping[str, TermConfig]) -> Arrays:
    """Weights and scales of the networks of rewards; none if one is missing, as in exports."""
    networks = [f"parameters/{network}/" for term in rewards.values() for network in term.built]
    names = [f"{name}/" for name in arrays]
    scaled = [term for term in rewards.values() if isinstance(term, ScaledConfig)]
    needed = [*networks, *(f"scales/{term.name}/" for term in scaled if term.gain == "auto")]
    if not networks or not all(any(n.startswith(network) for n in names) for network in needed):
        return {}
    wanted = ("scales/", "level/", *networks)
    return {name: array for name, array in arrays.items() if f"{name}/".startswith(wanted)}
