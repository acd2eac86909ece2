"""Settings of a run, each with its default, unit and range; a method's own are in its file.

Defaults are those of the published MUSIC recipes (arXiv:2103.08107 and its release); recipes
change them. Counts are per worker, the unit of randomness and data: W workers of batch B make
a global batch of W * B on any number of ranks.
"""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

from music_tf.config.agents import AgentConfig, DdpgConfig
from music_tf.config.changes import OPTION, SKILL, Stage, stages_of
from music_tf.config.fields import In, Settings
from music_tf.config.names import suggestion
from music_tf.config.terms import TaskConfig, TermConfig
from music_tf.config.values import Digest, JsonObject
from music_tf.config.world import World
from music_tf.errors import UsageError

UNIFORM = "uniform"
"""The draw of episodes without priorities."""


class Source(NamedTuple):
    """The earlier run from which a recipe starts."""

    recipe: str
    """Recipe of that run."""
    parts: tuple[str, ...]
    """Parts that are loaded from it unless the user says otherwise."""
    env_id: str = ""
    """Environment in which it is trained; empty: that of the run itself."""
    epochs: int | None = None
    """Epochs of the published source, if not those of its recipe."""
    preset: str = ""
    """Preset of the source; empty: that of the run itself."""
    best_of: int | None = None
    """Episodes of each of its skills, after which the best in the task is pinned."""
    same_skills: bool = False
    """Takes as many skills as the source has, unless the user types another number."""
    agent: str = ""
    """Agent of the package that is taken unless the user names another source, or `none`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvConfig(Settings):
    """How the environment is made."""

    name: ClassVar[str] = "env"

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
    skill_discount: Annotated[float, In(0, 1, "[)")] = 0.99
    """Gamma for each of these steps; the agent's own discount has to be equal."""
    skill_sample: bool = False
    """Draws the actions of skills from their policies instead of taking the likeliest."""
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
        """Rejects values outside their range, and a wrong list of stages."""
        super().__post_init__()
        stages_of(self.changes)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that `changes` describes; none if the world stays as it is."""
        return stages_of(self.changes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConditionConfig(Settings):
    """What the policy is conditioned on beside state and goal; evaluation has a fixed list."""

    name: ClassVar[str] = "condition"

    kind: Literal["one_hot", "gaussian", "sphere", "ball", "box", "belief"] = "one_hot"
    """One of `skills` as a one-hot vector; or a vector drawn from a standard Gaussian, the unit
    sphere, the unit ball with uniform lengths, or the box [-1, 1]^K; or a latent drawn from the
    agent's belief over its task."""
    size: Annotated[int | None, In(1, 4096)] = None
    """Numbers K in it; unset, for one_hot alone: `skills`."""
    groups: Annotated[int, In(1, 4096)] = 1
    """Groups of K / groups numbers of a `ball`, the velocities of as many objects. In an episode,
    one group at random is drawn, and the others are 0: those objects are to stay in place."""
    relabel: Annotated[float, In(0, 1)] = 0.0
    """Share of replayed steps that actor and critics see under a fresh condition, for which rewards
    are computed anew; networks of rewards learn under the condition that acted."""
    sampler: Literal["random", "tiled", "stratified"] = "random"
    """How one-hot conditions are assigned: each drawn with equal chance; environment i keeps i
    modulo K; or dealt from a shuffled deck, so that all act equally often in the episodes of a
    cycle (with `collect.steps`: of a worker in an epoch)."""
    every: Annotated[int | None, In(1, 10**6)] = None
    """Steps after which the condition changes within an episode; unset: one for the whole episode.
    Needs `collect.steps`, since an episode that replay keeps whole has one condition."""

    def __post_init__(self) -> None:
        """Rejects values outside their range, and groups that a condition cannot have."""
        super().__post_init__()
        if self.groups > 1 and (self.kind != "ball" or (self.size or 1) % self.groups):
            raise UsageError(
                f"condition.groups: expected a ball and a size that {self.groups} divides, got "
                f"{self.kind} of size {self.size}\n"
                f"nearest: --condition.kind ball --condition.size {2 * self.groups}"
            )


BOTH: Literal["both"] = "both"
Visited: TypeAlias = Literal["both", "test", "train"]
"""Which tasks of a run are visited: those kept for evaluation (`test`), those of training, both."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TasksConfig(Settings):
    """Tasks of a family that share robot and sizes, and how each is explored.

    A visit plays episodes of one task: under the prior, then under the belief inferred in it.
    Numbers of episodes are rounded up to multiples of `rollouts`.
    """

    name: ClassVar[str] = "tasks"
    metrics: ClassVar[Mapping[str, str]] = {
        "adapt/return_prior": "mean return in evaluation tasks under latents of the prior",
        "adapt/return_1": "the same in the episode after 1 context episode",
        "adapt/return_2": "the same in the episode after 2 context episodes",
        "adapt/return_last": "the same in the last episode of a visit, after all others",
        "adapt/random_return": "the same of random actions in these last episodes",
        "adapt/train_return": "the same of the last episode in training tasks, explored anew",
        "adapt/success_prior": "share of evaluation tasks solved under latents of the prior",
        "adapt/success_1": "share solved after 1 context episode",
        "adapt/success_2": "share solved after 2 context episodes",
        "adapt/success_last": "share solved in the last episode of a visit",
        "adapt/context_return_prior": "adapt/return_prior of the reward that contexts hold, where "
        "`agent.context_reward` is another than the environment's",
        "adapt/context_return_last": "adapt/return_last of that reward",
        "adapt/context_return_late": "mean of that over the last 30 % of the episodes of a visit",
        "adapt/variance": "mean variance of what is believed after all episodes of a visit",
        "adapt/probe_r2": "R^2 of evaluation tasks, read from beliefs after two episodes by a "
        "linear map",
    }

    train: Annotated[int, In(0, 10**5)] = 0
    """Tasks for training, divided among workers; 0: the environment has one task."""
    test: Annotated[int, In(0, 10**5)] = 0
    """Tasks that are kept for evaluation."""
    seed: Annotated[int | None, In(0, 2**32 - 1)] = None
    """Seed of the drawn tasks; unset: 1337 + `seed`, so that each run has its own tasks."""
    initial: Annotated[int, In(1, 10**6)] = 10
    """Episodes under the prior in each task before anything is learned; all are context."""
    prior: Annotated[int, In(1, 10**6)] = 2
    """Episodes of a visit under latents of the prior; they are context."""
    posterior: Annotated[int, In(0, 10**6)] = 2
    """Episodes of a visit after those, under latents of the posterior; they are context too."""
    extra: Annotated[int, In(0, 10**6)] = 0
    """Episodes of a visit after those, under the posterior; they are no context."""
    posterior_first: bool = True
    """Whether the first episodes of `tasks.posterior`, and those of `tasks.extra`, already use the
    posterior. False: the prior, as many as `tasks.resample_posterior`."""
    visits: Annotated[int | None, In(1, 10**6)] = None
    """Visits of each worker before updates, which then follow in as many turns of `updates`; visits
    to all tasks come before the first, and contexts may repeat steps of a visit, as in the authors'
    code. Unset: one visit a cycle, in the first cycle one to each task instead."""
    resample_belief: Literal["episode", "step"] = "episode"
    """Whether a latent is drawn for each episode of training, or anew at each step. Evaluations
    have one for each episode."""
    resample_posterior: Annotated[int, In(1, 10**6)] = 1
    """Episodes of each environment until the posterior is inferred again."""
    explore: Annotated[int, In(1, 10**4)] = 1
    """Episodes of an evaluation under the prior, before a belief is inferred."""
    adapt: Annotated[int, In(1, 10**4)] = 6
    """Episodes of an evaluation after those of `tasks.explore`; before each the belief is
    inferred."""

    @property
    def evaluation_episodes(self) -> int:
        """Episodes of a visit to a task in an evaluation."""
        return self.explore + self.adapt


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
    priority: str = UNIFORM
    """How episodes are drawn for actor and critics: uniform, or the name of a reward of the run, by
    the rank of the priority that it gave them when they were stored. That of `music` is the mutual
    information of their steps, as its statistics network measured it."""

    @property
    def ranked(self) -> bool:
        """Whether episodes have priorities."""
        return self.priority != UNIFORM


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
    length: Annotated[int | None, In(1, 10**6)] = None
    """Steps of an evaluation episode, where skills are learned one after the other; unset: as in
    training."""
    world_episodes: Annotated[int, In(1, 10**4)] = 5
    """With `env.changes`: episodes of each skill in each stage of the world, when it changes and at
    the end of a run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class IncrementalConfig(Settings):
    """Skills that are learned one after the other, each by its own actor, which is then frozen."""

    name: ClassVar[str] = "incremental"

    epochs: Annotated[tuple[int, ...], In(1, 10**9)] = ()
    """Epochs of each skill: one number for all, or one for each. Empty: one agent learns all skills
    at once."""
    replay: Literal["keep", "reset", "purge"] = "keep"
    """How much of the experience of earlier skills a new skill learns from: all, none, or half as
    many steps, drawn with replacement (half of the episodes where replay keeps these whole)."""
    past: Literal["refresh", "append"] = "refresh"
    """When earlier skills are played to see where they go: all anew before each skill, in the world
    as it is then, unless they were played in that world before; or each once, as soon as it is
    learned."""
    collected: Annotated[int, In(1, 10**5)] = 10
    """Episodes that each earlier skill plays for `incremental.past`."""
    collect_sampled: bool = False
    """Draws the actions of these episodes from the policies instead of taking the likeliest."""
    first: Literal["random", "nothing"] = "random"
    """What the first skill is compared with: episodes of uniform actions, or nothing."""
    begin: Literal["fresh", "first", "nearest"] = "fresh"
    """Initial weights of a later skill's actor: random, or those of the first skill, or of the
    skill whose steps are furthest from those of all others. Critics start at random."""

    @property
    def on(self) -> bool:
        """Whether skills are learned one after the other."""
        return bool(self.epochs)

    def of_each(self, skills: int) -> tuple[int, ...]:
        """Returns the epochs of each skill, for a number of skills."""
        return self.epochs * skills if len(self.epochs) == 1 else self.epochs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """One training run."""

    env_id: str = "FetchPush-v4"
    """Gymnasium id of an environment, with goals or without; `module:Id` imports yours first."""
    seed: Annotated[int, In(0, 2**32 - 1)] = 0
    """Every random stream derives from this."""
    workers: Annotated[int, In(1, 4096)] = 16
    """Units of data and randomness, divided among ranks: a multiple of their number."""
    epochs: Annotated[int, In(1, 10**9)] = 50
    """Epochs to train."""
    max_minutes: Annotated[float, In(0, math.inf, "(]")] = math.inf
    """Stops after the epoch in which this training time is reached, time before a resume
    included."""
    hang_after: Annotated[float, In(0, math.inf, "(]")] = 300.0
    """Seconds without progress after which a run ends with its stacks and exit code 86; compiling
    and saving may take four times as long."""
    cycles: Annotated[int, In(1, 10**6)] = 50
    """Rollouts with learning after each, per epoch."""
    rollouts: Annotated[int, In(1, 4096)] = 2
    """Environments of a worker, each of which plays an episode per cycle."""
    updates: Annotated[int, In(0, 10**6)] = 40
    """Updates of all networks per cycle, or at a time with `collect.updates_per_step` or
    `tasks.visits`."""
    goals: Literal["environment", "zero"] = "environment"
    """Goals of training episodes; zero for learning without a task."""
    skills: Annotated[int, In(1, 4096)] = 1
    """Number of discrete skills K; the policy sees a one-hot vector of this size, which is constant
    for one."""
    pinned_skill: Annotated[int | None, In(0, 4095)] = None
    """The skill that acts in every episode, one of the K counted from 0; unset: each drawn with
    equal chance."""
    lost_object: Literal["continue", "absorb"] = "continue"
    """How learning treats an object that has left its support: the episode goes on, or it is cut
    there and every reward term counts as paying its lowest value for ever after. Needs
    `world.support` or an environment whose support is known; elsewhere nothing is ever lost."""
    lag: Annotated[int, In(0, 1)] = 0
    """Cycles by which acting weights are older than learning ones: with 1 actors (`--learners`)
    play while the learner learns. The same lag gives the same numbers on any ranks."""
    threads: Annotated[int, In(0, 1024)] = 0
    """TensorFlow threads per rank; 0 means all cores for one rank, else one."""
    checkpoint_every: Annotated[int, In(1, 10**6)] = 1
    """Epochs between checkpoints."""
    agent: AgentConfig = dataclasses.field(default_factory=DdpgConfig)
    rewards: Mapping[str, TermConfig] = dataclasses.field(
        default_factory=lambda: {"task": TaskConfig()}
    )
    """Terms that are summed into the reward, in this order; each has settings under its name."""
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
        """Rejects values outside their range and settings that contradict each other."""
        super().__post_init__()
        if not self.env_id:
            raise UsageError(f"env_id: expected a Gymnasium id, got {self.env_id!r}")
        if not self.rewards:
            raise UsageError("rewards: expected at least one term, got none")
        if self.exploration.sample and self.agent.actor == "deterministic":
            raise UsageError(
                "exploration.sample: expected False for a deterministic policy, got True; recipes "
                "with SAC have a stochastic one"
            )
        if self.env.skills and self.agent.discount != self.env.skill_discount:
            raise UsageError(
                f"agent.discount: expected env.skill_discount, {self.env.skill_discount:g}, which "
                f"discounts rewards within a choice (env.skills), got {self.agent.discount}\n"
                f"for example: --agent.discount {self.env.skill_discount:g}"
            )
        self._check_condition()
        if self.incremental.on:
            self._check_incremental()
        elif self.evaluation.length is not None:
            raise UsageError(
                "evaluation.length: only for skills that are learned one after the other, expected "
                f"none, got {self.evaluation.length}\n"
                f"nearest: --env.max-episode-steps {self.evaluation.length}"
            )
        self._check_changes()
        self._check_tasks()
        self.agent.check(self)
        self._check_rewards()
        self._check_relabelling()  # after rewards, which say why they need several conditions

    def _check_rewards(self) -> None:
        """Rejects terms that do not fit the run or their name, and a priority without its term."""
        if not isinstance(self.rewards, Mapping):
            raise UsageError(f"rewards: expected settings by name, got {self.rewards!r:.80}")
        for name, term in self.rewards.items():
            if name != term.name:
                raise UsageError(f"rewards: expected {term.name!r} as its name, got {name!r}")
            term.check(self)
        priority = self.replay.priority
        known = (UNIFORM, *(name for name, term in self.rewards.items() if term.ranks))
        if priority not in known:
            raise UsageError(
                f"replay.priority: expected {UNIFORM}, or a reward of the run that ranks episodes, "
                f"got {priority[:80]!r}; this run has {', '.join(known)}"
                f"{suggestion(priority, known)}\n"
                "a reward that only ranks has the weight 0 0; music needs a gain above 0, too"
            )

    @property
    def functions(self) -> tuple[str, ...]:
        """The user's functions that it names, which no file may import."""
        return self.world.functions() + self.agent.functions

    @property
    def condition_size(self) -> int:
        """Size K of the condition of the policy."""
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
        return next((term for term in self.rewards.values() if term.explores), None)

    @property
    def acting_skills(self) -> tuple[int, ...]:
        """The skills that act in training and evaluation; none if conditions are continuous."""
        if self.condition.kind != "one_hot":
            return ()
        every = tuple(range(self.condition_size))
        return every if self.pinned_skill is None else (self.pinned_skill,)

    def _check_relabelling(self) -> None:
        """Rejects relabelling of conditions of which there is only one, or none that is drawn."""
        kind, alone = self.condition.kind, len(self.acting_skills) == 1
        if self.condition.relabel and (kind == "belief" or self.incremental.on or alone):
            raise UsageError(
                "condition.relabel: expected conditions that are drawn for each episode, got "
                f"condition.kind {kind}, skills {self.skills}, pinned_skill {self.pinned_skill}, "
                f"incremental.epochs {self.incremental.epochs}\nnearest: --condition.relabel 0"
            )

    def _check_changes(self) -> None:
        """Rejects stages that begin with a skill if all skills are learned at once."""
        for number, stage in enumerate(self.env.stages):
            if SKILL in stage.at and not self.incremental.on:
                raise UsageError(
                    f"{OPTION}: stage {number}: at: this run learns its skills together, expected "
                    '{"steps": N}, got ' + json.dumps(dict(stage.at))
                )

    def of_first_skills(self, count: int) -> "Config":
        """Returns the configuration of a run that ends after its first `count` skills."""
        each = self.incremental.of_each(self.skills)[:count]
        incremental = dataclasses.replace(self.incremental, epochs=each)
        return dataclasses.replace(self, skills=count, epochs=sum(each), incremental=incremental)

    def _check_incremental(self) -> None:
        """Rejects settings that skills learned one after the other do not allow."""
        each, paying = self.incremental.epochs, [t for t in self.rewards.values() if t.incremental]
        every = self.incremental.of_each(self.skills)
        for wrong, text in (
            (
                len(paying) != 1,
                "incremental.epochs: skills one after the other need one reward that tells a skill "
                f"from earlier ones, got {' '.join(self.rewards)}; for example --rewards disk",
            ),
            (
                self.condition.kind != "one_hot" or self.pinned_skill is not None,
                f"incremental.epochs: skills take turns by themselves, got condition.kind "
                f"{self.condition.kind}, pinned_skill {self.pinned_skill}; leave both out",
            ),
            (
                self.condition.sampler != "random" or self.condition.every is not None,
                "incremental.epochs: one skill acts at a time, got condition.sampler "
                f"{self.condition.sampler}, condition.every {self.condition.every}; leave both out",
            ),
            (
                len(every) != self.skills,
                f"incremental.epochs: expected one number, or one for each of {self.skills} "
                f"skills, got {len(each)}\nnearest: --skills {len(each)}",
            ),
            (
                self.epochs != sum(every),
                f"epochs: expected those of all skills together, {sum(every)}, got {self.epochs}\n"
                f"leave --epochs out; nearest: {self._nearest_skills(every)}",
            ),
        ):
            if wrong:
                raise UsageError(text)

    def _nearest_skills(self, every: Sequence[int]) -> str:
        """Returns the option with which epochs and skills fit, near to what was asked for."""
        if len(self.incremental.epochs) == 1:
            return f"--skills {max(1, round(self.epochs / every[0]))}"
        return f"--epochs {sum(every)}"

    @property
    def task_seed(self) -> int:
        """Seed of the tasks that a family draws for this run."""
        seed = self.tasks.seed
        return 1337 + self.seed if seed is None else seed

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

    def _check_tasks(self) -> None:
        """Rejects tasks that workers cannot share, or that the agent cannot infer."""
        inference, count, workers = self.agent.inference, self.tasks.train, self.workers
        if inference is None:
            if count or self.tasks.test or self.tasks.visits or self.condition.kind == "belief":
                raise UsageError(
                    f"tasks.train: several tasks need an agent that infers which one it is in, got "
                    f"{count} and condition.kind {self.condition.kind}\nrecipes for it: sac_pearl"
                )
            return
        shared = max(workers, workers * round(count / workers))
        for wrong, text in (
            (count == 0, "tasks.train: expected at least 1, got 0; for example --tasks.train 20"),
            (self.tasks.test == 0, "tasks.test: expected at least 1, got 0; nearest: 1"),
            (
                self.condition.kind != "belief",
                f"condition.kind: expected belief for an agent that infers its condition, got "
                f"{self.condition.kind}; leave it out",
            ),
            (
                count % workers != 0,
                f"tasks.train: expected a multiple of workers {workers}, which share them out, got "
                f"{count}; nearest: {shared}",
            ),
            (
                self.collect.steps is not None or self.collect.random_steps > 0,
                "collect.steps: a visit to a task is made of whole episodes, the first of them "
                "under the prior; leave --collect.steps and --collect.random-steps out",
            ),
            (
                bool(self.env.stages),
                f"{OPTION}: tasks differ from each other, and do not change while one is visited; "
                "leave it out",
            ),
            (
                self.replay.relabel_k > 0 or self.goals == "zero",
                "replay.relabel_k: a task is inferred, not shown as a goal; leave hindsight and "
                "--goals zero out",
            ),
            (
                self.replay.draw == "episodes",
                "replay.draw: expected steps where tasks are kept apart, got episodes; leave it "
                "out",
            ),
        ):
            if wrong:
                raise UsageError(text)

    def _check_condition(self) -> None:
        """Rejects conditions that cannot be drawn as asked."""
        kind, sampler, every = self.condition.kind, self.condition.sampler, self.condition.every
        size, given, pinned = self.condition_size, self.condition.size, self.pinned_skill
        discrete, together = kind == "one_hot", self.workers * self.rollouts
        unit = size // math.gcd(size, self.workers)
        near = unit * max(1, round(self.rollouts / unit))
        hindsight = " --replay.relabel-k 0" if self.replay.relabel_k else ""
        for wrong, text in (
            (
                discrete and given not in (None, self.skills) and self.skills > 1,
                f"condition.size: expected {self.skills}, as skills says, got {given}; "
                "leave skills out, or add --condition.size None",
            ),
            (
                discrete and pinned is not None and pinned >= size,
                f"pinned_skill: expected a number in [0, {size - 1}], got {pinned}",
            ),
            (
                not discrete and (self.skills > 1 or pinned is not None),
                f"condition.kind: expected one_hot for skills {self.skills} and pinned_skill "
                f"{pinned}, got {kind}\nfor skills: --condition.kind one_hot --condition.size "
                "None; for directions: --skills 1 --pinned-skill None",
            ),
            (
                not discrete and given is None and kind != "belief" and not self.agent.inference,
                f"condition.size: expected how many numbers a {kind} condition has, got none; "
                "for example --condition.size 2",
            ),
            (
                kind == "belief" and given not in (None, size),
                f"condition.size: expected {size}, as agent.latent_size says, got {given}; leave "
                "one of the two out",
            ),
            (
                sampler != "random" and (not discrete or pinned is not None),
                f"condition.sampler: {sampler} shares out one_hot conditions, expected random for "
                + (f"pinned_skill {pinned}" if discrete else f"a {kind} one"),
            ),
            (
                sampler == "tiled" and together % size != 0,
                f"condition.sampler: tiled needs a multiple of {size} environments, got workers "
                f"{self.workers} x rollouts {self.rollouts} = {together}\n"
                f"nearest: --rollouts {near}, or --condition.sampler stratified",
            ),
            (
                every is not None and (sampler == "tiled" or len(self.acting_skills) == 1),
                f"condition.every: expected conditions that may change, got skills {size}, "
                f"pinned_skill {pinned}, condition.sampler {sampler}; leave it out",
            ),
            (
                every is not None and self.collect.steps is None,
                f"condition.every: replay keeps whole episodes, each with one condition, got "
                f"another every {every} steps\n"
                f"for example: --collect.steps 50 --replay.draw steps{hindsight}",
            ),
            (
                self.exploration.random_hold > 1.0 and self.collect.steps is not None,
                "exploration.random_hold: actions are held within what is played at once, whole "
                f"episodes, got collect.steps {self.collect.steps}; leave one of the two out",
            ),
        ):
            if wrong:
                raise UsageError(text)


def measures_motion(config: Config) -> bool:
    """Whether a run has a reward for which evaluations measure joint movement."""
    if config.incremental.on:
        return False
    return any(term.measures_motion and term.counts for term in config.rewards.values())
