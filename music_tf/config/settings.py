"""Settings of a run, each with its default, unit and range; a method's own are in its file.

Defaults are those of the published MUSIC recipes (arXiv:2103.08107 and its release); recipes
change them. Counts are per worker, the unit of randomness and data: W workers of batch B make
a global batch of W * B on any number of ranks.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from music_tf.config.agents import AgentConfig, DdpgConfig
from music_tf.config.changes import OPTION, SKILL, Stage, stages_of
from music_tf.config.conditioning import ConditionConfig, IncrementalConfig, TasksConfig
from music_tf.config.fields import In, Settings, Where, groups_of
from music_tf.config.names import suggestion
from music_tf.config.terms import TaskConfig, TermConfig
from music_tf.config.values import Digest, JsonObject
from music_tf.config.warm_start import Source
from music_tf.config.world import World
from music_tf.errors import UsageError

UNIFORM = "uniform"
"""The draw of episodes without priorities."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvConfig(Settings):
    """How the environment is made."""

    name: ClassVar[str] = "env"
    skill_discount: ClassVar[float] = 0.99
    """Gamma for each step for which a chosen skill acts, and of an agent that chooses."""

    max_episode_steps: Annotated[int | None, In(1, 10**6)] = None
    """Steps after which an episode is cut off; unset: as registered."""
    kwargs: JsonObject = "{}"
    """Arguments of the environment's constructor; `play` sets the render mode."""
    remake: bool = False
    """Makes the environment anew for each episode: slow, but a cure for one that does not repeat
    itself under the same seed."""
    skills: str = ""
    """A run with skills, of which an action then chooses one for `skill_steps` steps; goals become
    the last columns of the observation. Empty: actions are the environment's own."""
    skill_count: Annotated[int | None, In(2, 4096)] = None
    """How many of them, from the first on. Unset: all that run has when this one begins, also if it
    learns more later."""
    skill_digest: Digest = ""
    """SHA-256 of the arrays with which they act, checked wherever they are loaded. Unset: of what
    that run holds when this one begins."""
    skill_steps: Annotated[int, In(1, 10**6)] = 10
    """Steps for which a chosen skill acts."""
    success_ends: bool | None = None
    """Whether an episode ends when the environment ends it for success at its own goal. Unset: yes,
    unless the agent is shown other goals and the environment's own goal cannot be set."""
    changes: str = "[]"
    """Stages of a world that changes between two epochs, as JSON: each describes the whole world
    relative to the defaults. `at` is the number of steps (or, of skills learned one by one, the
    skill) at which it begins; `mass`, `friction`, `damping` and `gear` are factors by MuJoCo's
    names, `*` for all; `gravity` is a factor, `place` gives x, y and z of bodies, `set` attributes
    of a toy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        stages_of(self.changes)

    def check(self, run: "Config") -> None:
        for number, stage in enumerate(self.stages):
            if SKILL in stage.at and not run.incremental.on:
                raise UsageError(
                    f"{OPTION}: stage {number}: at: this run learns its skills together, expected "
                    '{"steps": N}, got ' + json.dumps(dict(stage.at))
                )
        if self.skills and run.agent.discount != self.skill_discount:
            raise UsageError(
                f"agent.discount: expected {self.skill_discount:g}, which discounts rewards within "
                f"a choice (env.skills), got {run.agent.discount}\n"
                f"for example: --agent.discount {self.skill_discount:g}"
            )

    def check_training(self, run: "Config") -> None:
        limits = self.max_episode_steps or run.evaluation.length
        if limits and "max_episode_steps" in json.loads(self.kwargs):
            raise UsageError("env.kwargs: max_episode_steps would replace that of other settings")
        for number, stage in enumerate(self.stages):
            since = stage.at.get(SKILL, 0)
            if since >= run.skills:
                raise UsageError(
                    f"{OPTION}: stage {number}: at: the last of {run.skills} skills is "
                    f"{run.skills - 1}, got {since}\n"
                    f'nearest: {{"skill": {run.skills - 1}}}, or --skills {since + 1}'
                )

    @property
    def stages(self) -> tuple[Stage, ...]:
        return stages_of(self.changes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CollectConfig(Settings):
    """How experience is collected, by episodes or by steps."""

    name: ClassVar[str] = "collect"

    steps: Annotated[int | None, In(1, 10**6)] = None
    """Steps that each of a worker's `rollouts` environments takes per cycle; episodes go on from
    cycle to cycle, and are cut off at the end of an epoch. Unset: one whole episode per cycle."""
    random_steps: Annotated[int, In(0, 10**9)] = 0
    """Environment steps over all workers with uniform actions before anything is learned; with
    `incremental.epochs` before each skill."""
    update_after: Annotated[int, In(0, 10**9)] = 0
    """Environment steps over all workers before the first update, random or not; with 255 the first
    update follows the 256th step. `collect.random_steps` applies if larger."""
    updates_per_step: Annotated[float | None, In(0, 1e3, "(]")] = None
    """Updates for each environment step over all workers, taken `updates` at a time; unset:
    `updates` per cycle."""

    def check(self, run: "Config") -> None:
        for name, term in run.rewards.items():
            if self.steps is not None and term.weight_by != "epoch":
                raise UsageError(
                    f"{name}.weight_by: {term.weight_by} counts whole episodes, expected epoch "
                    f"with collect.steps {self.steps}; leave one of the two out"
                )

    @property
    def learns_after(self) -> int:
        """Environment steps over all workers before the first update."""
        return max(self.random_steps, self.update_after)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayConfig(Settings):
    """Episode store and hindsight relabelling (arXiv:1707.01495)."""

    name: ClassVar[str] = "replay"

    capacity: Annotated[int, In(1, 10**9)] = 1_000_000
    """Transitions kept per worker; in a ring of steps each episode, or each condition in it, takes
    one more."""
    draw: Literal["episodes", "steps"] | None = None
    """How steps are drawn: an episode, then a step of it; or any step uniformly, from a ring of
    steps. Unset: `episodes` where the environment has goals, `steps` where it has none."""
    overwrite: Literal["random", "oldest"] | None = None
    """Which episodes a full store overwrites; unset: random ones if episodes are drawn, the
    oldest if steps are."""
    batch_size: Annotated[int, In(1, 10**6)] = 256
    """Transitions per update and worker."""
    strategy: Literal["future", "final", "none"] = "future"
    """Which achieved goal of the same episode replaces the desired one."""
    relabel_k: Annotated[float, In(0, 1e6)] = 0.0
    """Relabelled transitions per original one; 4 relabels four of five."""
    reach: Annotated[float, In(0, 1e6)] = 0.0
    """Distance at which the hand (`world.gripper`) is at a place, in the unit of its columns. Above
    0, a quarter of the transitions of a minibatch teach it to go to the object (`world.object`) or
    to its own later places, half of the exploring steps far from the object go to it, and networks
    see goals as offsets. 0: none."""
    priority: str = UNIFORM
    """How episodes are drawn for actor and critics: uniform, or the name of a reward of the run, by
    the rank of the priority that it gave them when they were stored. That of `music` is the mutual
    information of their steps, as its statistics network measured it."""
    demonstration_share: Annotated[float, In(0, 1, "(]")] = 0.125
    """Share of each minibatch that is drawn from the episodes of `--demonstrations`, on average."""

    @property
    def ranked(self) -> bool:
        return self.priority != UNIFORM

    def check(self, run: "Config") -> None:
        ranking = (UNIFORM, *(name for name, term in run.rewards.items() if term.ranks))
        if self.priority not in ranking:
            raise UsageError(
                f"replay.priority: expected {UNIFORM}, or a reward of the run that ranks episodes, "
                f"got {self.priority[:80]!r}; this run has {', '.join(ranking)}"
                f"{suggestion(self.priority, ranking)}\n"
                "a reward that only ranks has the weight 0 0; music needs a gain above 0, too"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExplorationConfig(Settings):
    """How actions are perturbed while data is collected."""

    name: ClassVar[str] = "exploration"

    random_probability: Annotated[float, In(0, 1)] = 0.3
    """Chance of replacing a whole action by a uniform one."""
    random_hold: Annotated[float, In(1, 1e6)] = 1.0
    """Mean number of steps for which a random action is held: held actions move the robot further.
    The share of random steps does not change. Only where whole episodes are collected."""
    noise: Annotated[float, In(0, 10)] = 0.2
    """Deviation of the Gaussian noise on each component."""
    sample: bool = False
    """Draws the action from a stochastic policy instead of taking its mean."""

    def check(self, run: "Config") -> None:
        if self.sample and run.agent.actor == "deterministic":
            raise UsageError(
                "exploration.sample: expected False for a deterministic policy, got True; recipes "
                "with SAC have a stochastic one"
            )
        if self.random_hold > 1.0 and run.collect.steps is not None:
            raise UsageError(
                "exploration.random_hold: actions are held within what is played at once, whole "
                f"episodes, got collect.steps {run.collect.steps}; leave one of the two out"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormalizerConfig(Settings):
    """Running mean and deviation of observations and goals."""

    name: ClassVar[str] = "normalizer"

    running: bool = True
    """Normalises by running moments; else means stay 0 and deviations 1, and inputs are clipped."""
    epsilon: Annotated[float, In(0, 1e6, "(]")] = 0.01
    """Smallest deviation."""
    clip: Annotated[float, In(0, 1e6, "(]")] = 5.0
    """Bound of normalised components."""
    input_clip: Annotated[float, In(0, 1e9, "(]")] = 200.0
    """Bound of raw components before they are normalised."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationConfig(Settings):
    """Evaluation after each epoch: deterministic policy, fixed seeds by episode index."""

    name: ClassVar[str] = "evaluation"

    episodes: Annotated[int, In(1, 10**6)] = 20
    """Episodes over all ranks, in which skills take turns. With a typed `--skills` at least as many
    as skills, unless this is typed too."""
    every: Annotated[int, In(1, 10**6)] = 1
    """Epochs between evaluations; the last epoch has one, too."""
    every_episodes: Annotated[int | None, In(1, 10**9)] = None
    """Training episodes between evaluations, each at the end of its epoch; unset: by epochs."""
    every_cycles: Annotated[int | None, In(1, 10**6)] = None
    """Cycles between further evaluations of ten fresh episodes, which change no number of training;
    `evaluations.csv` has their success rates, and the mean of the last four. Unset: none."""
    length: Annotated[int | None, In(1, 10**6)] = None
    """Steps of an evaluation episode, where skills are learned one after the other; unset: as in
    training."""
    world_episodes: Annotated[int, In(1, 10**4)] = 5
    """With `env.changes`: episodes of each skill in each stage of the world, when it changes and at
    the end of a run."""

    def check(self, run: "Config") -> None:
        if self.length is not None and not run.incremental.on:
            raise UsageError(
                "evaluation.length: only for skills that are learned one after the other, expected "
                f"none, got {self.length}\nnearest: --env.max-episode-steps {self.length}"
            )
        if self.every_cycles and (run.incremental.on or run.agent.inference is not None):
            raise UsageError(
                "evaluation.every_cycles: only for one policy that learns one task, expected none, "
                f"got {self.every_cycles}\nnearest: --evaluation.every 1"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """One training run."""

    env_id: Annotated[str, Where("not empty", bool)] = "FetchPush-v4"
    """Gymnasium id of the environment; yours is module:Id. The module is imported first."""
    seed: Annotated[int, In(0, 2**32 - 1)] = 0
    """Every random stream derives from this."""
    workers: Annotated[int, In(1, 4096)] = 16
    """Units of data and randomness, divided among ranks. A multiple of their number."""
    epochs: Annotated[int, In(1, 10**9)] = 50
    """Epochs to train."""
    max_minutes: Annotated[float, In(0, math.inf, "(]")] = math.inf
    """Ends after the epoch in which this training time is over. Time before a resume counts."""
    hang_after: Annotated[float, In(0, math.inf, "(]")] = 300.0
    """Seconds without progress after which a run is ended. It shows its stacks, with exit code 86;
    compiling, saving and waiting for answers may take four times as long."""
    cycles: Annotated[int, In(1, 10**6)] = 50
    """Rollouts with learning after each, per epoch."""
    rollouts: Annotated[int, In(1, 4096)] = 2
    """Environments of a worker; each plays an episode per cycle."""
    updates: Annotated[int, In(0, 10**6)] = 40
    """Updates of all networks per cycle. With `collect.updates_per_step` or `tasks.visits`, so many
    at a time."""
    goals: Literal["environment", "zero"] = "environment"
    """Goals of training episodes: zero for learning without a task."""
    skills: Annotated[int, In(1, 4096)] = 1
    """Number of discrete skills K. The policy sees a one-hot vector of this size, which is constant
    for one."""
    pinned_skill: Annotated[int | None, In(0, 4095)] = None
    """The skill that acts in every episode, counted from 0. Unset: each of the K is drawn with
    equal chance."""
    lost_object: Literal["continue", "absorb"] = "continue"
    """How an object counts that has left its support. The episode goes on, or it is cut there and
    every reward term counts as having its lowest value for ever after. Needs `world.support` or an
    environment whose support is known; elsewhere nothing is ever lost."""
    lag: Annotated[int, In(0, 1)] = 0
    """Cycles by which acting weights are older than learned ones. With 1, actors (`--learners`)
    play while the learner learns. The same lag gives the same numbers on any ranks."""
    threads: Annotated[int, In(0, 1024)] = 0
    """TensorFlow threads per rank. 0: all cores for one rank, else one."""
    checkpoint_every: Annotated[int, In(1, 10**6)] = 1
    """Epochs between checkpoints."""
    agent: AgentConfig = dataclasses.field(default_factory=DdpgConfig)
    rewards: Mapping[str, TermConfig] = dataclasses.field(
        default_factory=lambda: {"task": TaskConfig()}
    )
    """Terms whose sum is the reward. Each has settings under its name."""
    env: EnvConfig = dataclasses.field(default_factory=EnvConfig)
    world: World = dataclasses.field(default_factory=World)
    condition: ConditionConfig = dataclasses.field(default_factory=ConditionConfig)
    tasks: TasksConfig = dataclasses.field(default_factory=TasksConfig)
    collect: CollectConfig = dataclasses.field(default_factory=CollectConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    exploration: ExplorationConfig = dataclasses.field(default_factory=ExplorationConfig)
    normalizer: NormalizerConfig = dataclasses.field(default_factory=NormalizerConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    incremental: IncrementalConfig = dataclasses.field(default_factory=IncrementalConfig)
    start: Source | None = dataclasses.field(default=None, compare=False)
    """The earlier run that the recipe builds on. No setting: `--init-from` says which run it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rewards:
            raise UsageError("rewards: expected at least one term, got none")
        if not isinstance(self.rewards, Mapping):
            raise UsageError(f"rewards: expected settings by name, got {self.rewards!r:.80}")
        for name, term in self.rewards.items():
            if name != term.name:
                raise UsageError(f"rewards: expected {term.name!r} as its name, got {name!r}")
        for group in groups_of(self):
            group.check(self)

    def check_training(self, run: "Config") -> None:
        for group in groups_of(self):
            group.check_training(run)

    @property
    def functions(self) -> tuple[str, ...]:
        """The user's functions that it names, which no file may import."""
        return self.world.functions() + self.agent.functions

    @property
    def condition_size(self) -> int:
        inference = self.agent.inference
        return inference.latent if inference else self.condition.size or self.skills

    @property
    def seen_condition(self) -> int:
        """Size of the condition for actor and critics; 0 if each skill has its own networks."""
        return 0 if self.incremental.on else self.condition_size

    @property
    def evaluated_env(self) -> EnvConfig:
        """The environment of evaluation episodes, which may have another length."""
        steps = self.evaluation.length or self.env.max_episode_steps
        return dataclasses.replace(self.env, max_episode_steps=steps)

    @property
    def explorer(self) -> TermConfig | None:
        """The reward that chooses among random actions of exploration, if any."""
        return next((term for term in self.rewards.values() if term.candidate_actions), None)

    @property
    def acting_skills(self) -> tuple[int, ...]:
        """The skills that act in training and evaluation; none if conditions are continuous."""
        if self.condition.kind != "one_hot":
            return ()
        every = tuple(range(self.condition_size))
        return every if self.pinned_skill is None else (self.pinned_skill,)

    def of_first_skills(self, count: int) -> "Config":
        """Returns the configuration of a run that ends after its first `count` skills."""
        each = self.incremental.of_each(self.skills)[:count]
        incremental = dataclasses.replace(self.incremental, epochs=each)
        return dataclasses.replace(self, skills=count, epochs=sum(each), incremental=incremental)

    def rounds(self, initial: bool = False) -> int:
        """Returns how many episodes each environment plays in a cycle, or in the first one."""
        if self.agent.inference is None:
            return 1
        first = self.tasks.train // self.workers * self.rounds_of_visit(True) if initial else 0
        return first + (self.tasks.visits or 1 - initial) * self.rounds_of_visit(False)

    def rounds_of_visit(self, initial: bool) -> int:
        """Returns how many episodes each environment plays in a visit."""
        tasks = self.tasks
        visit = (tasks.initial,) if initial else (tasks.prior, tasks.posterior, tasks.extra)
        return sum(math.ceil(episodes / self.rollouts) for episodes in visit)

    @property
    def context_episodes(self) -> int:
        """Fewest episodes of a visit that a context is drawn from."""
        tasks, size = self.tasks, self.rollouts
        later = math.ceil(tasks.prior / size) + math.ceil(tasks.posterior / size)
        return size * min(math.ceil(tasks.initial / size), later)
