"""Skills that can be recognised by their effects, alone and after MUSIC."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from music_tf.config import names
from music_tf.config.agents import GaussianConfig, SacConfig, SacValueConfig, with_one_rate
from music_tf.config.epochs import with_whole_episodes
from music_tf.config.fields import In, with_fields
from music_tf.config.key_metrics import KeyMetric
from music_tf.config.settings import (
    Config,
    EnvConfig,
    EvaluationConfig,
    ExplorationConfig,
    ReplayConfig,
)
from music_tf.config.terms import TaskConfig, TermConfig
from music_tf.config.values import Bounds, Initializer, Layers, Rate
from music_tf.config.warm_start import AGENT_PARTS, Source
from music_tf.errors import UsageError
from music_tf.recipes import Preset, releases
from music_tf.recipes.music import sac_music_skills
from music_tf.recipes.tasks import sac


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiversityConfig(TermConfig):
    """Base of `SkillConfig`, `DadsConfig`, `DistanceConfig`: when networks learn, SMERL's gate."""

    scale: Annotated[float, In(0, 1e9)] = 1.0
    """Factor on the reward before clipping."""
    target: Annotated[float | None, In(-math.inf, 1e12)] = None
    """Pays only in episodes whose return so far is at least `target - margin` (arXiv:2010.14484);
    unset, or -inf: in all episodes."""
    margin: Annotated[float | None, In(0, 1e12)] = None
    """How far an episode's return may be below the target."""
    every: Annotated[int, In(1, 10**6)] = 1
    """Its network learns at every n-th update."""
    times: Annotated[int, In(1, 1000)] = 1
    """Steps of its network at such an update, each on its own minibatch if `batch` is own."""
    batch: Literal["own", "shared"] = "own"
    """Whether its network has its own minibatches, or learns from those of actor and critics, as in
    public code of DIAYN and QDax."""
    train: bool = True
    """False: the network keeps its initial or loaded weights."""
    initializer: Initializer = "glorot"
    """Initial kernels of the network, as in `agent.initializer`."""
    learning_rate: Rate = 1e-3
    """Adam step size of the network."""

    @property
    def counts(self) -> bool:
        return super().counts and self.scale != 0.0

    def check(self, run: Config) -> None:
        if (self.target is None) != (self.margin is None):
            typed, other = ("target", "margin") if self.margin is None else ("margin", "target")
            raise UsageError(
                f"{self.shown(typed)}: the gate opens at target - margin and needs both, got no "
                f"{other}\nfor example: --{self.name}.target 1000 --{self.name}.margin 100"
            )
        if run.condition.kind == "belief":
            raise UsageError(
                f"rewards: {self.name} rewards conditions that are drawn, and a belief is "
                f"inferred; leave {self.name} out"
            )
        if run.condition.kind == "one_hot" and len(run.acting_skills) < 2:  # noqa: PLR2004
            pinned, sized = run.pinned_skill is not None, run.condition.size is not None
            cure = "--pinned-skill None" * pinned or "--condition.size None" * sized
            raise UsageError(
                f"skills: the {self.name} reward needs several that act, got "
                f"{len(run.acting_skills)}\nexpected {cure or '--skills 2 or more'}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SkillConfig(DiversityConfig):
    """Log-likelihood of the active skill given the state that it reached (arXiv:1802.06070)."""

    name: ClassVar[str] = "skill"
    term: ClassVar[str] = "music_tf.intrinsic.skill:Skill"
    networks: ClassVar[Sequence[str]] = ("discriminator",)
    metrics: ClassVar[Mapping[str, str]] = {
        "skill/accuracy": "share of states whose skill the discriminator recognises",
        "skill/log_likelihood": "mean log-likelihood of the active skill in nats",
        "skill/accuracy_heldout": "share of recognised states in evaluation episodes",
        "skill/log_likelihood_heldout": "log-likelihood in evaluation episodes, in nats",
        "skill/log_likelihood_running": "running average of log_likelihood over episodes",
        "skill/loss": "loss of the discriminator: minus the log-likelihood",
        "skill/effective": "exp of the entropy of a learned prior: how many skills act in effect",
        "skill/diversity_return": "sum of log q - log p over an evaluation episode, unclipped",
        "skill/gate_open": "share of replayed steps on which a target enables the reward",
    }

    scale: Annotated[float, In(0, 1e9)] = 0.5
    clip: Bounds = (-1.0, 0.0)
    """Bounds of the scaled reward."""
    state: Literal["current", "next"] = "current"
    """Whether the reward is for the state before the action (as released) or after it."""
    trained_on: Literal["current", "next"] | None = None
    """Which of these states the discriminator learns from; unset: the same as `state`."""
    missing_descriptor: Literal["observation", "zeros"] = "observation"
    """Inputs of the discriminator without a descriptor: the whole observation, or two zeros as in
    QDax, which reveal no skill."""
    subtract_prior: bool = False
    """Subtracts log p(z), so that the reward at chance level is zero, as in the DIAYN paper."""
    prior: Literal["uniform", "learned"] = "uniform"
    """How often each one-hot skill acts: uniform, or in proportion to exp(E[log q(z | s)]) over its
    own states, averaged over about 1000 updates."""
    prior_offset: Annotated[float, In(0, 1)] = 0.0
    """Added to p(z) before its logarithm is taken; 1e-6 in a public PyTorch DIAYN."""
    resume_rows: Annotated[int, In(0, 10**9)] = 500
    """After `--resume --without-replay`: fresh steps of each skill before the discriminator learns
    again. 0: it learns at once."""
    posterior: Literal["gaussian", "von_mises_fisher"] | None = None
    """Density q(z | s) of continuous conditions; unset: von_mises_fisher on the sphere, a Gaussian
    with its own deviations elsewhere."""
    normalize_inputs: bool = False
    """Normalises the inputs of the discriminator."""
    hidden_sizes: Layers = (128, 128, 128)
    """Units of each hidden layer of the discriminator."""

    def key_metrics(self, run: Config) -> Sequence[KeyMetric]:
        if run.condition.kind != "one_hot":
            name, scale = "skill/log_likelihood_heldout", "nats of density, only its rise counts"
            trained = name.removesuffix("_heldout")
            return (KeyMetric(name, "log-likelihood", scale=scale, trained=trained),)
        chance = 1.0 / run.condition_size
        scale = f"share of steps whose skill is recognised; chance is {chance:.3g}"
        name, trained = "skill/accuracy_heldout", "skill/accuracy"
        return (KeyMetric(name, "accuracy", chance=chance, scale=scale, trained=trained),)

    def check(self, run: Config) -> None:
        super().check(run)
        kind = run.condition.kind
        if self.prior == "learned" and (kind != "one_hot" or run.condition.sampler != "random"):
            raise UsageError(
                "skill.prior: learned says how often each of the one_hot skills is drawn, got "
                f"condition.kind {kind}, condition.sampler {run.condition.sampler}\n"
                "for example: --condition.kind one_hot --condition.sampler random --skills 5"
            )
        fitting = {"one_hot": (None,), "sphere": (None, "gaussian", "von_mises_fisher")}
        if self.posterior not in fitting.get(kind, (None, "gaussian")):
            raise UsageError(
                f"skill.posterior: expected gaussian for continuous conditions, von_mises_fisher "
                f"on the sphere alone, got {self.posterior} for condition.kind {kind}\n"
                "nearest: leave it out, or --condition.kind sphere --condition.size 3 --skills 1"
            )
        if self.posterior != "gaussian" and kind == "sphere" and run.condition_size == 1:
            raise UsageError(
                "skill.posterior: von_mises_fisher has no direction to learn on a sphere of size "
                "1\nnearest: --skill.posterior gaussian, or --condition.size 2"
            )

    def check_training(self, run: Config) -> None:
        if self.prior == "learned" and run.incremental.on:
            raise UsageError(
                f"{self.name}.prior: learned draws among skills, and with incremental.epochs they "
                "take turns, expected uniform, got learned\nnearest: --skill.prior uniform"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DadsConfig(DiversityConfig):
    """Log-ratio of the active skill's density of a change to all skills' (arXiv:1907.01657)."""

    name: ClassVar[str] = "dads"
    term: ClassVar[str] = "music_tf.intrinsic.dads:Dads"
    networks: ClassVar[Sequence[str]] = ("dynamics",)
    components: ClassVar[int] = 4
    """Number of Gaussians in the mixture; their deviations are 1."""
    measures_diversity: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {
        "dads/loss": "loss of the skill dynamics: minus the log-density of replayed changes",
        "dads/log_density": "mean log-density of replayed changes under their skill, in nats",
        "dads/target_mean": "running mean of changes, averaged over their components",
        "dads/target_std": "running deviation of changes, averaged over their components",
        "dads/reward_heldout": "mean raw reward in evaluation episodes, in nats, at most log K",
        "dads/gate_open": "share of replayed steps on which a target enables the reward",
    }

    omit: Annotated[int | Literal["all"], In(0, 10**6)] = 2
    """Number of leading columns of the descriptor that are no inputs of the skill dynamics; with
    all, changes are predicted from the skill alone."""
    normalize_target: bool = True
    """Normalises changes by their running moments."""
    normalize_inputs: bool = False
    """Normalises the descriptors in the inputs of the skill dynamics."""
    samples: Annotated[int, In(1, 10**4)] = 20
    """Number of random conditions that a continuous condition is compared with; a one-hot skill is
    compared with all K."""
    hidden_sizes: Layers = (256, 256)
    """Units of each hidden layer of the skill dynamics."""
    learning_rate: Rate = 3e-4
    """Adam step size of the skill dynamics."""

    def key_metrics(self, run: Config) -> Sequence[KeyMetric]:
        del run
        name, scale = "skill reward", "nats a step; guessing earns 0, and no step more than log K"
        paid = f"reward/{self.name}_mean"
        return (KeyMetric("dads/reward_heldout", name, chance=0.0, scale=scale, trained=paid),)


def sac_diayn(
    preset: Literal["laptop", "paper", "music", "qdax", "diayn_torch"],
    env_id: str = names.FETCH_PICK,
) -> Config:
    """Skills that are recognised by the states they reach.

    DIAYN (arXiv:1802.06070): a discriminator recognises the skill, and the agent is rewarded
    log q(z | s) - log p(z). `paper` is the authors' code, `qdax` and `diayn_torch` are public
    implementations, `music` is the MUSIC release: see docs/skills.md.
    """
    if preset == "music" or (preset == "laptop" and names.is_one_of(env_id, names.WITH_GOALS)):
        return _on_objects(preset, env_id)
    return _on_states(preset, env_id)


def sac_dads(preset: Literal["laptop", "qdax"], env_id: str = names.BOX) -> Config:
    """Skills with predictable consequences.

    DADS (arXiv:1907.01657) in the off-policy form of QDax. There is no preset `paper`: the
    published comparison with QDax has DADS only in addition to a task.
    """
    return dataclasses.replace(_compared(preset, env_id), rewards={"dads": _dads(preset)})


def sac_smerl(preset: Literal["laptop", "paper", "qdax"], env_id: str = names.BOX) -> Config:
    """Several skills that solve the task.

    SMERL (arXiv:2010.14484): the task's reward, and that of `sac_diayn` in episodes whose return
    reaches `skill.target - skill.margin`, those of the published comparison with QDax.
    """
    config = _compared(preset, env_id)
    return _gated(config, preset, config.rewards["skill"])


def sac_dads_smerl(preset: Literal["laptop", "paper", "qdax"], env_id: str = names.BOX) -> Config:
    """Several skills that solve the task, by `sac_dads`."""
    return _gated(_compared(preset, env_id), preset, _dads(preset))


def _on_states(preset: str, env_id: str, longest: int | None = None) -> Config:
    boxed, goals = names.is_one_of(env_id, (names.BOX,)), names.is_one_of(env_id, names.WITH_GOALS)
    with_value, small = preset in ("paper", "diayn_torch"), preset == "laptop" and boxed
    steps = sac("paper" if with_value else "laptop", "Hopper-v5" if goals else env_id)
    sizes, rate = ((64, 64), 1e-3) if small else ((256, 256), 3e-4)
    agent = with_one_rate(steps.agent, rate, sizes, temperature=0.1, learn_temperature=False)
    if with_value:
        shared = {
            field.name: getattr(agent, field.name) for field in dataclasses.fields(GaussianConfig)
        }
        agent = SacValueConfig(**shared, value_learning_rate=rate)
    skill = SkillConfig(
        scale=1.0,
        clip=(-math.inf, math.inf),
        state="next",
        subtract_prior=True,
        normalize_inputs=preset == "laptop",
        hidden_sizes=sizes,
        learning_rate=rate,
    )
    ours = dataclasses.replace(
        steps,
        env_id=env_id,
        agent=agent,
        goals="zero",
        skills=20,
        rewards={"skill": skill},
        replay=ReplayConfig(batch_size=128 if small else 256, draw="steps"),
    )
    config = with_fields(ours, releases.DIAYN.get(preset, {}))
    registered = names.episode_steps(env_id)
    length = min(longest or releases.LONGEST.get(preset, registered), registered)
    played = (config.collect.steps or 1) * config.rollouts
    longer = dataclasses.replace(
        config,
        cycles=(steps.collect.steps or 1) * steps.cycles // played,  # the same total of steps
        env=EnvConfig(max_episode_steps=length if length < registered else None),
        evaluation=EvaluationConfig(episodes=config.skills, every=1 if boxed else 4),
    )
    return with_whole_episodes(longer)


def _compared(preset: str, env_id: str) -> Config:
    """Returns `_on_states`, for `paper` with the settings of the published comparison."""
    if preset != "paper":
        return dataclasses.replace(_on_states(preset, env_id), skills=5)
    longest = 500 if names.is_one_of(env_id, names.ANT_MAZE) else 250
    return with_fields(_on_states("qdax", env_id, longest), releases.COMPARED)


def _dads(preset: str) -> DadsConfig:
    """Returns the reward of DADS; under `laptop` with the whole descriptor, normalised."""
    if preset == "laptop":
        return DadsConfig(omit=0, normalize_inputs=True)
    omit: Literal["all"] | int = "all" if preset == "paper" else DadsConfig.omit
    return DadsConfig(initializer="lecun_uniform", batch="shared", omit=omit)


def _gated(config: Config, preset: str, reward: TermConfig) -> Config:
    """Returns a run with the task's reward, and another one in episodes with a high return."""
    target, margin, scale = names.of_family(config.env_id, releases.GATES, releases.ANY_GATE)
    weight = 2.0 * scale
    if preset == "qdax":
        target, margin, scale, weight = 800.0, 800.0, 1.0, 2.0
    elif preset == "laptop":
        scale, weight = 1.0, 1.0
        learned = {"agent.temperature": 1.0, "agent.learn_temperature": True}
        config = with_fields(config, learned)  # units of task rewards differ
    gate = {"target": target, "margin": margin, "weight": ((0.0, weight),)}
    rewards = {"task": TaskConfig(scale=scale), reward.name: with_fields(reward, gate)}
    return dataclasses.replace(config, goals="environment", rewards=rewards)


def _on_objects(preset: str, env_id: str) -> Config:
    """Returns DIAYN of the MUSIC release, or our variant of it for `laptop`."""
    entropy_scale = 0.03 if env_id == names.FETCH_SLIDE else 0.02
    released = Config(
        env_id=env_id,
        goals="zero",
        skills=5,
        agent=SacConfig(entropy_scale=entropy_scale, gradient_reduce="sum"),
        rewards={"skill": SkillConfig()},
        replay=ReplayConfig(relabel_k=4.0),
        evaluation=EvaluationConfig(episodes=320),
    )
    if preset != "laptop":
        return released
    return dataclasses.replace(
        released,
        workers=4,
        epochs=60,
        cycles=20,
        lost_object="absorb",
        agent=SacConfig(
            polyak=0.995,
            polyak_every="update",
            action_l2=0.0,
            entropy_mode="next_state",
            entropy_scale=entropy_scale,
            actor_entropy=True,
            learn_temperature=True,
            next_action="main",
        ),
        rewards={
            "skill": SkillConfig(
                scale=1.0,
                clip=(0.0, math.inf),
                state="next",
                subtract_prior=True,
                normalize_inputs=True,
                hidden_sizes=(32, 32),
            )
        },
        replay=ReplayConfig(batch_size=64),
        exploration=ExplorationConfig(sample=True, noise=0.0),
        evaluation=EvaluationConfig(episodes=40),
    )


def sac_diayn_finetune(preset: Preset, env_id: str = names.FETCH_PICK) -> Config:
    """The task, from the first skill of `sac_diayn`.

    As the MUSIC release (arXiv:2103.08107) fine-tunes DIAYN, with a larger weight of the entropy
    than in pre-training. On tasks without goals all settings but the reward are those of
    `sac_diayn`, without random steps.
    """
    has_goals = names.is_one_of(env_id, names.WITH_GOALS)
    before = _on_objects(preset, env_id) if has_goals else sac_diayn(preset, env_id)
    task = dataclasses.replace(
        before, goals="environment", rewards={"task": TaskConfig()}, pinned_skill=0
    )
    if not has_goals:
        parts = (*AGENT_PARTS, "normalizer") if before.normalizer.running else AGENT_PARTS
        return dataclasses.replace(
            task,
            collect=dataclasses.replace(before.collect, random_steps=0),
            evaluation=sac("laptop", env_id).evaluation,
            start=Source("sac_diayn", parts, same_skills=True),
        )
    if preset == "paper":
        return dataclasses.replace(
            task,
            agent=with_fields(before.agent, {"entropy_weight": ((0.0, 0.5),)}),
            replay=ReplayConfig(),
            start=Source("sac_diayn", AGENT_PARTS, preset="music"),
        )
    start = Source("sac_diayn", (*AGENT_PARTS, "normalizer"))
    return dataclasses.replace(task, lost_object="continue", start=start)


def sac_finetune_skill(preset: Preset, env_id: str = names.FETCH_PICK) -> Config:
    """The task, from the best skill of `sac_diayn`.

    As the authors of DIAYN use skills (arXiv:1802.06070): each is tried in ten episodes
    (`--best-of`), and the one with the highest return is the input in all episodes of training.
    """
    task = sac_diayn_finetune(preset, env_id)
    start = task.start and task.start._replace(best_of=10)
    return dataclasses.replace(task, pinned_skill=None, start=start)


def sac_music_diayn(preset: Preset, env_id: str = names.FETCH_PICK) -> Config:
    """MUSIC first, then skills of `sac_diayn`.

    As released (arXiv:2103.08107). `laptop` also loads the statistics network, which pays with 0.3
    of its weight: without that the robot lets go of the object before the discriminator has
    learned anything.
    """
    alone = _on_objects(preset, env_id)
    if preset == "paper":
        return dataclasses.replace(alone, start=Source("sac_music_skills", AGENT_PARTS))
    before = sac_music_skills(preset, env_id)
    quiet = 0.3 * before.rewards["music"].unit_weight
    quieter = with_fields(before, {"music.weight": ((0.0, quiet),), "agent.action_l2": 0.0})
    return dataclasses.replace(
        quieter,
        rewards={**quieter.rewards, **alone.rewards},
        start=Source("sac_music_skills", (*AGENT_PARTS, "normalizer", "statistics")),
    )
