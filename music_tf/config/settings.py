"""The configuration tree of a run: every setting, its default, unit and range, in one place.

Defaults are those of the published MUSIC recipes (arXiv:2103.08107 and its release); recipes
change them. Counts are per worker, the unit of randomness and data: W workers of batch B make
a global batch of W * B, on however many ranks they are shared out.
"""

import dataclasses
import itertools
import math
from typing import ClassVar, Literal, TypeAlias, get_args

from music_tf.errors import UsageError

Schedule: TypeAlias = tuple[tuple[float, float], ...]
"""Values by epoch, `((epoch, value), ...)`: linear in between, constant outside."""

_MOST_LAYERS, _MOST_UNITS = 16, 8192


def _require(condition: bool, name: str, allowed: str, value: object) -> None:
    if not condition:
        raise UsageError(f"{name}: expected {allowed}, got {value!r}")


def _in_range(name: str, value: float, low: float, high: float) -> None:
    _require(low <= value <= high, name, f"a number in [{low:.10g}, {high:.10g}]", value)


def _positive(name: str, value: float, high: float) -> None:
    _require(0.0 < value <= high, name, f"a number in (0, {high:.10g}]", value)


def _layers(name: str, sizes: tuple[int, ...]) -> None:
    fits = 1 <= len(sizes) <= _MOST_LAYERS and all(1 <= size <= _MOST_UNITS for size in sizes)
    _require(fits, name, f"1 to {_MOST_LAYERS} sizes in 1..{_MOST_UNITS}", sizes)


def _schedule(name: str, value: Schedule) -> None:
    finite = all(math.isfinite(number) for point in value for number in point)
    epochs = [point[0] for point in value]
    _require(
        bool(value) and finite and all(a < b for a, b in itertools.pairwise(epochs)),
        name,
        "finite 'epoch value' pairs with increasing epochs",
        value,
    )


def _bounds(name: str, value: tuple[float, float]) -> None:
    low, high = value
    _require(low <= high, name, "two numbers, the lower first (inf allowed)", value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """DDPG, and what SAC shares with it."""

    actor: ClassVar[str] = "deterministic"
    """How its policy acts: one of `networks.acting.ACTORS`."""
    hidden_sizes: tuple[int, ...] = (256, 256, 256)
    """Units of each hidden layer of actor and critics, each in 1..8192."""
    actor_learning_rate: float = 1e-3
    """Adam step size of the actor, in [0, 1]."""
    critic_learning_rate: float = 1e-3
    """Adam step size of the critics, in [0, 1]."""
    gradient_reduce: Literal["sum", "mean"] = "sum"
    """Gradients of the workers are summed (as released) or averaged; Adam nearly hides it."""
    critics: int = 1
    """Members of the critic ensemble, in 1..10; targets use the lowest of them."""
    polyak: float = 0.95
    """Share of the old target weights that a target update keeps, in [0, 1]."""
    polyak_every: Literal["cycle", "update"] = "cycle"
    """When target networks move."""
    action_l2: float = 1.0
    """Weight of the mean squared action in the actor's loss, in [0, 1e6]."""
    discount: float | None = None
    """Gamma per environment step, in [0, 1); unset means 1 - 1/T for episodes of T steps."""
    return_clip: Literal["off", "symmetric", "auto"] = "off"
    """Bounds of the TD target: none, +-4/(1 - gamma), or what the active rewards allow."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _layers("agent.hidden_sizes", self.hidden_sizes)
        _in_range("agent.actor_learning_rate", self.actor_learning_rate, 0.0, 1.0)
        _in_range("agent.critic_learning_rate", self.critic_learning_rate, 0.0, 1.0)
        _in_range("agent.critics", self.critics, 1, 10)
        _in_range("agent.polyak", self.polyak, 0.0, 1.0)
        _in_range("agent.action_l2", self.action_l2, 0.0, 1e6)
        if self.discount is not None:
            _require(0.0 <= self.discount < 1.0, "agent.discount", "in [0, 1)", self.discount)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DdpgConfig(AgentConfig):
    """Deep deterministic policy gradient (arXiv:1509.02971)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SacConfig(AgentConfig):
    """Soft actor-critic (arXiv:1801.01290); the defaults are the released MUSIC variant.

    That variant is a stochastic DDPG: a clipped entropy reward at o_t, averaged over the batch
    before it enters the target, and none in the actor's loss.
    """

    actor: ClassVar[str] = "gaussian"
    entropy_mode: Literal["batch_mean", "per_sample", "next_state", "off"] = "batch_mean"
    """Where entropy enters the TD target. `batch_mean` is the released broadcast, a constant
    that cannot steer the policy; `per_sample` what was meant; `next_state` the soft Bellman
    target of the SAC paper, scaled by the temperature."""
    entropy_scale: float = 0.02
    """Factor on -log pi before clipping, in [0, 1e6]."""
    entropy_clip: tuple[float, float] = (-1.0, 0.0)
    """Bounds of the scaled entropy reward."""
    entropy_weight: Schedule = ((0.0, 0.2), (24.0, 0.2), (200.0, 0.2))
    """Weight of the entropy reward, by epoch."""
    actor_entropy: bool = False
    """Adds alpha log pi to the actor's loss, as in the SAC paper."""
    temperature: float = 0.2
    """Alpha at the start, in (0, 1e3]."""
    learn_temperature: bool = False
    """Tunes alpha towards `target_entropy_per_action` nats per action component."""
    target_entropy_per_action: float = -1.0
    """Wanted entropy in nats for each component of the action, in [-100, 100]."""
    temperature_learning_rate: float = 1e-3
    """Adam step size of log alpha, in [0, 1]."""
    next_action: Literal["target", "main"] = "target"
    """Which actor proposes the next action of the TD target."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        super().__post_init__()
        _in_range("agent.entropy_scale", self.entropy_scale, 0.0, 1e6)
        _bounds("agent.entropy_clip", self.entropy_clip)
        _schedule("agent.entropy_weight", self.entropy_weight)
        _positive("agent.temperature", self.temperature, 1e3)
        _in_range("agent.target_entropy_per_action", self.target_entropy_per_action, -100.0, 100.0)
        _in_range("agent.temperature_learning_rate", self.temperature_learning_rate, 0.0, 1.0)
        if self.entropy_mode == "next_state" and self.return_clip == "auto":
            raise UsageError(
                "agent.return_clip: 'auto' needs bounded rewards, and agent.entropy_mode "
                "'next_state' is unbounded; choose 'off' or 'symmetric'"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """The environment's own reward under the goal: w * (clip(scale * r, *clip) + shift)."""

    scale: float = 1.0
    """Factor before clipping, in [-1e9, 1e9]."""
    clip: tuple[float, float] = (-math.inf, math.inf)
    """Bounds of the scaled reward, beside those that the environment is known to keep."""
    shift: float = 0.0
    """Added after clipping, in [-1e9, 1e9]."""
    weight: Schedule = ((0.0, 1.0),)
    """Weight in the sum of rewards, by epoch."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _in_range("task.scale", self.scale, -1e9, 1e9)
        _bounds("task.clip", self.clip)
        _in_range("task.shift", self.shift, -1e9, 1e9)
        _schedule("task.weight", self.weight)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MusicConfig:
    """Mutual information between agent and surrounding state (arXiv:2103.08107)."""

    gain: float | None = None
    """Reward per nat of the pair bound, before clipping, in [0, 1e9]; unset: the environment's."""
    clip: tuple[float, float] = (0.0, 1.0)
    """Bounds of the scaled bound."""
    shift: float = -1.0
    """Added after clipping; -1 makes every reward a cost, 0 leaves an idle step worth nothing."""
    weight: Schedule = ((0.0, 1.0), (50.0, 1.0), (200.0, 1.0))
    """Weight in the sum of rewards, by epoch."""
    agent: tuple[int, ...] = ()
    """Observation components of the robot itself; empty: the environment's own."""
    surrounding: tuple[int, ...] = ()
    """Observation components of its surroundings; empty: the environment's own."""
    pair_negatives: Literal["random", "swap", "all_pairs"] = "random"
    """Mismatched pairs of a transition: a coin flip between none and both swapped that a whole
    minibatch shares (as released), always swapped, or all four combinations."""
    trajectory_negatives: Literal["shared", "independent"] = "shared"
    """Whether all trajectories of a batch are shuffled by one permutation or each by its own."""
    normalize_inputs: bool = False
    """Feeds the statistics network normalised instead of raw positions; needs another gain."""
    train: bool = True
    """False leaves the statistics network as it starts, at random or as loaded."""
    hidden_size: int = 128
    """Units of the statistics network, in 1..8192."""
    learning_rate: float = 1e-3
    """Adam step size of the statistics network, in [0, 1]."""
    trajectories: int = 256
    """Episodes in a batch of the statistics network, in 1..65536."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        if self.gain is not None:
            _in_range("music.gain", self.gain, 0.0, 1e9)
        _bounds("music.clip", self.clip)
        _require(
            bool(self.agent) == bool(self.surrounding),
            "music.agent and music.surrounding",
            "both or neither",
            (self.agent, self.surrounding),
        )
        _in_range("music.shift", self.shift, -1e9, 1e9)
        _schedule("music.weight", self.weight)
        _in_range("music.hidden_size", self.hidden_size, 1, 8192)
        _in_range("music.learning_rate", self.learning_rate, 0.0, 1.0)
        _in_range("music.trajectories", self.trajectories, 1, 65536)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JointMotionConfig:
    """One where robot and surroundings both move in a step, else zero: nothing is learned.

    Which components those are, `music.agent` and `music.surrounding` say.
    """

    threshold: float = 0.001
    """How far both must move, in the unit of the observation (metres for Fetch), in [0, 1e6]."""
    shift: float = -1.0
    """Added to it, in [-1e9, 1e9]."""
    weight: Schedule = ((0.0, 1.0),)
    """Weight in the sum of rewards, by epoch."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _in_range("joint_motion.threshold", self.threshold, 0.0, 1e6)
        _in_range("joint_motion.shift", self.shift, -1e9, 1e9)
        _schedule("joint_motion.weight", self.weight)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SkillConfig:
    """Log-likelihood of the active skill given the surrounding state (arXiv:1802.06070)."""

    scale: float = 0.5
    """Factor on the reward before clipping, in [0, 1e9]."""
    clip: tuple[float, float] = (-1.0, 0.0)
    """Bounds of the scaled reward."""
    shift: float = 0.0
    """Added after clipping, in [-1e9, 1e9]."""
    weight: Schedule = ((0.0, 1.0),)
    """Weight in the sum of rewards, by epoch."""
    state: Literal["current", "next"] = "current"
    """Whether the discriminator looks at the state before the action (as released) or after."""
    subtract_prior: bool = False
    """Adds log K, so that guessing is worth zero, as in the DIAYN paper."""
    components: tuple[int, ...] = ()
    """Observation components that the discriminator sees; empty: the surroundings, or the whole
    observation where the environment has none."""
    normalize_inputs: bool = False
    """Feeds the discriminator normalised instead of raw components."""
    train: bool = True
    """False leaves the discriminator as it starts."""
    hidden_sizes: tuple[int, ...] = (128, 128, 128)
    """Units of each hidden layer of the discriminator, each in 1..8192."""
    learning_rate: float = 1e-3
    """Adam step size of the discriminator, in [0, 1]."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _in_range("skill.scale", self.scale, 0.0, 1e9)
        _bounds("skill.clip", self.clip)
        _in_range("skill.shift", self.shift, -1e9, 1e9)
        _schedule("skill.weight", self.weight)
        _layers("skill.hidden_sizes", self.hidden_sizes)
        _in_range("skill.learning_rate", self.learning_rate, 0.0, 1.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayConfig:
    """Episode store and hindsight relabelling (arXiv:1707.01495)."""

    capacity: int = 1_000_000
    """Transitions kept per worker, in 1..1e9."""
    overwrite: Literal["random", "oldest"] = "random"
    """Which episodes give way in a full store."""
    batch_size: int = 256
    """Transitions per update and worker, in 1..1e6."""
    strategy: Literal["future", "final", "none"] = "future"
    """Which achieved goal of the same episode replaces the desired one."""
    relabel_k: float = 0.0
    """Relabelled transitions per original one, in [0, 1e6]; 4 relabels four of five."""
    priority: Literal["uniform", "music"] = "uniform"
    """How episodes are drawn for actor and critics: alike, or by the rank of the mutual information
    in their steps, which the statistics network of the reward `music` measured when they came."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _in_range("replay.capacity", self.capacity, 1, 10**9)
        _in_range("replay.batch_size", self.batch_size, 1, 10**6)
        _in_range("replay.relabel_k", self.relabel_k, 0.0, 1e6)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExplorationConfig:
    """How actions are perturbed while data is collected."""

    random_probability: float = 0.3
    """Chance of replacing a whole action by a uniform one, in [0, 1]."""
    noise: float = 0.2
    """Deviation of the Gaussian noise on each component, in [0, 10]."""
    sample: bool = False
    """Draws the action from a stochastic policy instead of taking its mean."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _in_range("exploration.random_probability", self.random_probability, 0.0, 1.0)
        _in_range("exploration.noise", self.noise, 0.0, 10.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormalizerConfig:
    """Running mean and deviation of observations and goals."""

    epsilon: float = 0.01
    """Smallest deviation, in (0, 1e6]."""
    clip: float = 5.0
    """Bound of normalised components, in (0, 1e6]."""
    input_clip: float = 200.0
    """Bound of raw components before they are normalised, in (0, 1e9]."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _positive("normalizer.epsilon", self.epsilon, 1e6)
        _positive("normalizer.clip", self.clip, 1e6)
        _positive("normalizer.input_clip", self.input_clip, 1e9)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """Evaluation after each epoch: deterministic policy, fixed seeds by episode index."""

    episodes: int = 20
    """Episodes over all ranks, in 1..1e6."""
    every: int = 1
    """Epochs between evaluations, in 1..1e6."""

    def __post_init__(self) -> None:
        """Rejects values outside their range."""
        _in_range("evaluation.episodes", self.episodes, 1, 10**6)
        _in_range("evaluation.every", self.every, 1, 10**6)


RewardName: TypeAlias = Literal["task", "music", "joint_motion", "skill"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """One training run."""

    env_id: str = "FetchPush-v4"
    """Gymnasium id of a goal-conditioned environment; `module:Id` imports yours first."""
    seed: int = 0
    """Every random stream derives from this, in 0..2^32 - 1."""
    workers: int = 16
    """Units of data and randomness, in 1..4096; a multiple of the ranks that share them."""
    epochs: int = 50
    """Epochs to train, in 1..1e9."""
    max_minutes: float = math.inf
    """Stops after the epoch in which this much training time has passed, in (0, inf]."""
    hang_after: float = 300.0
    """Seconds without progress after which a run that hangs is ended with its stacks and exit code
    86, in (0, inf]; compiling and saving may take four times as long."""
    cycles: int = 50
    """Rollouts with learning after each, per epoch, in 1..1e6."""
    rollouts: int = 2
    """Episodes per cycle and worker, in 1..4096."""
    updates: int = 40
    """Updates of all networks per cycle, in 0..1e6."""
    goals: Literal["environment", "zero"] = "environment"
    """Goals of training episodes; zero for learning without a task."""
    rewards: tuple[RewardName, ...] = ("task",)
    """Terms that are summed into the reward."""
    skills: int = 1
    """Number of discrete skills K, in 1..4096; the policy sees a one-hot vector of this size."""
    pinned_skill: int | None = None
    """The skill that acts in every episode, in 0..K - 1; unset: each drawn with equal chance."""
    lost_object: Literal["continue", "absorb"] = "continue"
    """What learning makes of an object that has left its support: the episode goes on, or it is
    cut there and every reward term counts as paying its lowest value for ever after. Needs an
    environment whose registered support says when that is; elsewhere nothing is ever lost."""
    threads: int = 0
    """TensorFlow threads per rank, in 0..1024; 0 means all cores for one rank, else one."""
    checkpoint_every: int = 1
    """Epochs between checkpoints, in 1..1e6."""
    agent: AgentConfig = dataclasses.field(default_factory=DdpgConfig)
    task: TaskConfig = dataclasses.field(default_factory=TaskConfig)
    music: MusicConfig = dataclasses.field(default_factory=MusicConfig)
    joint_motion: JointMotionConfig = dataclasses.field(default_factory=JointMotionConfig)
    skill: SkillConfig = dataclasses.field(default_factory=SkillConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    exploration: ExplorationConfig = dataclasses.field(default_factory=ExplorationConfig)
    normalizer: NormalizerConfig = dataclasses.field(default_factory=NormalizerConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        """Rejects values outside their range and settings that contradict each other."""
        _in_range("seed", self.seed, 0, 2**32 - 1)
        _in_range("workers", self.workers, 1, 4096)
        _in_range("epochs", self.epochs, 1, 10**9)
        _require(self.max_minutes > 0.0, "max_minutes", "a number above 0", self.max_minutes)
        _require(self.hang_after > 0.0, "hang_after", "a number above 0", self.hang_after)
        _in_range("cycles", self.cycles, 1, 10**6)
        _in_range("rollouts", self.rollouts, 1, 4096)
        _in_range("updates", self.updates, 0, 10**6)
        _in_range("skills", self.skills, 1, 4096)
        _in_range("threads", self.threads, 0, 1024)
        _in_range("checkpoint_every", self.checkpoint_every, 1, 10**6)
        _require(bool(self.env_id), "env_id", "a Gymnasium id", self.env_id)
        _require(
            bool(self.rewards) and len(set(self.rewards)) == len(self.rewards),
            "rewards",
            f"at least one of {', '.join(get_args(RewardName))}, each once",
            self.rewards,
        )
        if self.exploration.sample and not isinstance(self.agent, SacConfig):
            raise UsageError("exploration.sample: needs a stochastic policy, so a SAC recipe")
        if self.pinned_skill is not None:
            _in_range("pinned_skill", self.pinned_skill, 0, self.skills - 1)
        if "skill" in self.rewards and len(self.acting_skills) < 2:  # noqa: PLR2004
            given = f"skills {self.skills} and pinned_skill {self.pinned_skill}"
            raise UsageError(f"skills: the skill reward needs at least 2 that act, got {given}")
        if self.replay.priority == "music" and (
            "music" not in self.rewards or self.music.gain == 0
        ):
            raise UsageError(
                "replay.priority: 'music' needs the reward music and a gain above 0; a reward that "
                "shall only measure gets --music.weight 0 0"
            )

    @property
    def acting_skills(self) -> tuple[int, ...]:
        """The skills that training and evaluation follow."""
        return tuple(range(self.skills)) if self.pinned_skill is None else (self.pinned_skill,)
