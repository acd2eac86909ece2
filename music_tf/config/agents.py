"""Settings of the learners and of their networks."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from music_tf.config import values
from music_tf.config.fields import In, Settings, Where, with_fields
from music_tf.config.terms import ENTROPY, reward_metrics
from music_tf.errors import UsageError

MLP, GRU, LSTM = "mlp", "gru", "lstm"  # encoders of the package
RECURRENT = GRU, LSTM
LEAST_VARIANCE = 1e-7
"""Lower bound of the variance that an encoder gives a latent for one row of a context."""
LEAST_PRECISION = 5e-7
"""Lower bound of the precision of a full belief along any direction, as a share of its sum."""
OUTCOME_VARIANCES = 1e-8, 200.0
"""Bounds of the variance that a transition model predicts."""
ONE_OF_SOFTPLUS = math.log(math.e - 1.0)  # softplus of this is 1


class Inference(NamedTuple):
    """How a belief over tasks is inferred from a context, the latest steps in a task."""

    encoder: str  # MLP, GRU, LSTM, or a function of the user's as `module:function`
    latent: int  # numbers L in a latent, the condition of the policy
    deterministic: bool  # whether a latent has no variance
    full: bool  # whether a belief has a full covariance; without effect for deterministic latents
    tasks: int  # of an update, over all workers
    rows: int  # steps in a context
    chunk: int  # steps of a context from one belief to the next; equal to `rows`: one belief
    next_observation: bool  # whether a context holds the next observation of each step
    reward: str  # the extra that is the reward in a context; empty: the environment's own
    reward_scale: float  # factor of the rewards in a context
    sizes: tuple[int, ...]  # units of each hidden layer of the encoder

    @property
    def ordered(self) -> bool:
        """Whether a context is a sequence of successive steps instead of a set of single ones."""
        return self.encoder != MLP

    @property
    def beliefs(self) -> int:
        """Number of beliefs from each context in training."""
        return self.rows // self.chunk

    @property
    def inputs(self) -> Mapping[str, str | float]:
        """What rewards in contexts mean, as `RewardTerm.inputs` of reward networks."""
        return {"reward": self.reward, "reward_scale": self.reward_scale}

    def row_dim(self, observation_dim: int, action_dim: int) -> int:
        """Returns the number C of inputs of an encoder for each step."""
        after = observation_dim if self.next_observation else 0
        return observation_dim + action_dim + 1 + after

    @property
    def observations(self) -> int:
        """Directions of a latent that an output observes; a recurrent state sums up all of them."""
        return self.latent if self.encoder in RECURRENT else 1

    @property
    def outputs(self) -> int:
        if self.deterministic:
            return self.latent
        return self.observations * (self.latent + 1) if self.full else 2 * self.latent


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig(Settings):
    """Settings of all learners: actor, critics and learning rates.

    A subclass names the learner that is built from it; no list of learners exists.
    """

    name: ClassVar[str] = "agent"
    learner: ClassVar[str]
    """The `Learner` that is built from it, as `module:Class`."""
    networks: ClassVar[Sequence[str]] = ()
    """Names of networks beside actor and critics that a warm start can take over."""
    collector: ClassVar[str] = "music_tf.training.collect:Collector"
    """The `Collector` that plays what is learned from, as `module:Class`."""
    parts: ClassVar[Sequence[str]] = ()
    """Each further `Part` of a run, as `module:Class`; it is made from `Config` and environments
    and comes before the parts of the package."""
    metrics: ClassVar[Mapping[str, str]] = {
        "train/critic_loss": "squared TD error, summed over critics, or half their mean",
        "train/actor_loss": "loss of the actor",
        "train/mean_q": "mean value of replayed actions in minibatches",
    }

    hidden_sizes: values.Layers = (256, 256, 256)
    """Units of each hidden layer of actor and critics, unless they have sizes of their own."""
    actor_sizes: values.OwnLayers = ()
    """Units of each hidden layer of the actor; empty: `agent.hidden_sizes`."""
    critic_sizes: values.OwnLayers = ()
    """Units of each hidden layer of the critics; empty: `agent.hidden_sizes`."""
    initializer: values.Initializer = "glorot"
    """Initial kernels; biases are 0. Glorot-uniform, uniform within sqrt(3 / fan-in), hidden
    layers normal with deviation sqrt(2 / fan-in) and Glorot-uniform heads, or orthogonal."""
    actor_learning_rate: values.Rate = 1e-3
    """Adam step size of the actor."""
    critic_learning_rate: values.Rate = 1e-3
    """Adam step size of the critics."""
    gradient_reduce: Literal["sum", "mean"] = "mean"
    """Gradients of the workers are averaged, or summed (as released); Adam nearly hides it."""
    critics: Annotated[int, In(1, 10)] = 1
    """Members of the critic ensemble."""
    target_critics: Annotated[int | Literal["lowest", "mean"], In(1, 9)] = "lowest"
    """Whose value a TD target takes: the lowest critic, the lowest of so many that are drawn for
    each update (2 in REDQ, arXiv:2101.05982), or their mean. With `lowest` the actor climbs the
    lowest critic, else the mean of all."""
    layer_norm: bool = False
    """Normalises hidden layers of critics and state value before their ReLU (arXiv:2110.02034)."""
    critic_loss: Literal["sum", "half_mean"] = "sum"
    """Squared errors, averaged over the batch: summed over critics, or half their mean. Those of a
    state value are halved with them."""
    truncated: Literal["bootstrap", "masked", "terminal"] = "bootstrap"
    """How critics treat a step at the time limit: its value is bootstrapped, it is left out of
    their loss, or it counts as a termination."""
    update_order: Literal["simultaneous", "sequential", "actor_first"] = "simultaneous"
    """Whether all networks step from the same weights, or each from the networks that were updated
    before it: critics, then value, actor and temperature, or the actor before all others. The
    temperature follows the entropy before the actor's step."""
    actor_every: Annotated[int, In(1, 10**6)] = 1
    """Updates of the critics for each of actor and temperature; above 1 in sequential order."""
    polyak: Annotated[float, In(0, 1)] = 0.95
    """Share of the old target weights that a target update keeps."""
    polyak_every: Annotated[int | Literal["cycle", "update"], In(1, 10**6)] = "cycle"
    """When target networks move: after each or every n-th update, or with `cycle` after each turn
    of `updates`. A cycle has one turn, or as many as `collect.updates_per_step` asks for."""
    action_l2: Annotated[float, In(0, 1e6)] = 1.0
    """Weight of the mean squared action in the actor's loss."""
    discount: Annotated[float | None, In(0, 1, "[)")] = None
    """Gamma per environment step; unset means 1 - 1/T for episodes of T steps."""
    return_clip: Annotated[
        Literal["off", "symmetric", "auto", "paid"] | tuple[float, float],
        Where("the lower first (inf allowed)", lambda v: isinstance(v, str) or v[0] < v[1]),
    ] = "off"
    """Bounds of the TD target: none, +-4/(1 - gamma), what all rewards allow with the weights of
    any epoch, or with those of now (`paid`), or given."""

    @property
    def actor(self) -> str:
        """Kind of its policy: one of `networks.acting.ACTORS`."""
        return "deterministic"

    @property
    def inference(self) -> "Inference | None":
        """How the condition of its policy is inferred; None where conditions are drawn."""
        return None

    @property
    def bonus(self) -> Mapping[str, tuple[float, values.Bounds, values.Schedule]]:
        """What it adds to rewards: factor, bounds and weight, by the setting of the bounds."""
        return {}

    @property
    def functions(self) -> tuple[str, ...]:
        """The user's functions that it names, as `module:function`."""
        return ()

    @property
    def actor_layers(self) -> tuple[int, ...]:
        return self.actor_sizes or self.hidden_sizes

    @property
    def critic_layers(self) -> tuple[int, ...]:
        return self.critic_sizes or self.hidden_sizes

    def check(self, run: Any) -> None:
        if self.actor_every > 1 and self.update_order != "sequential":
            turn = f"for agent.actor_every {self.actor_every}, got {self.update_order}"
            raise UsageError(f"agent.update_order: expected sequential {turn}")
        if isinstance(self.target_critics, int) and self.target_critics >= self.critics:
            below = f"below agent.critics, {self.critics}, got {self.target_critics}"
            raise UsageError(f"agent.target_critics: expected lowest, mean or a number {below}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DdpgConfig(AgentConfig):
    """Deep deterministic policy gradient (arXiv:1509.02971)."""

    learner: ClassVar[str] = "music_tf.agents.ddpg:Ddpg"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SoftConfig(AgentConfig):
    """Settings of all variants of soft actor-critic: the temperature is the weight of entropy."""

    metrics: ClassVar[Mapping[str, str]] = {
        **AgentConfig.metrics,
        "train/entropy": "mean of -log pi in nats, for stochastic policies",
        "train/temperature": "weight of the entropy, for SAC",
        "train/temperature_loss": "loss of the temperature, where it is learned",
    }

    temperature: Annotated[float, In(0, 1e3, "(]")] = 0.2
    """Alpha at the start."""
    learn_temperature: bool = False
    """Tunes alpha towards the target entropy."""
    temperature_learning_rate: values.Rate = 1e-3
    """Adam step size of log alpha."""

    @property
    def soft_values(self) -> bool:
        """Whether values include entropy beside rewards."""
        return True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.soft_values and self.return_clip in ("auto", "paid"):
            raise UsageError(
                f"agent.return_clip: {self.return_clip!r} follows from the rewards, but soft "
                "values include entropy; choose 'off', 'symmetric' or two numbers"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GaussianConfig(SoftConfig):
    """Settings of the variants with a squashed Gaussian policy."""

    linear_features: bool = True
    """A linear layer, as wide as the last hidden one, before the actor's heads, as released."""
    deviation: Literal["tanh", "softplus", "clip"] = "tanh"
    """Deviation from the actor's output w: a tanh scales log sigma to [-5, 2], sigma is
    softplus(w) + 0.001, or log sigma is w, clipped to [-20, 2]."""
    squash_correction: Literal["exact", "epsilon"] = "exact"
    """Log-slope of the tanh that squashes actions a: exact, or log(1 - a^2 + 1e-6)."""
    target_entropy_per_action: Annotated[float, In(-100, 100)] = -1.0
    """Target entropy in nats for each component of the action."""

    @property
    def actor(self) -> str:
        plain = "" if self.linear_features else "_plain"
        return f"gaussian{plain}" + ("" if self.deviation == "tanh" else f"_{self.deviation}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SacConfig(GaussianConfig):
    """Soft actor-critic (arXiv:1801.01290); the defaults are the released MUSIC variant.

    That variant is a stochastic DDPG. A clipped entropy reward at o_t is averaged over the batch
    before it enters the target, and the actor's loss has none.
    """

    learner: ClassVar[str] = "music_tf.agents.sac:Sac"
    entropy_clip: ClassVar[values.Bounds] = (-1.0, 0.0)
    """Bounds of the scaled entropy reward."""
    metrics: ClassVar[Mapping[str, str]] = {**GaussianConfig.metrics, **reward_metrics(ENTROPY)}

    entropy_mode: Literal["batch_mean", "per_sample", "next_state", "off"] = "batch_mean"
    """Where entropy enters the TD target. `batch_mean` is the released broadcast, a constant that
    cannot steer the policy; `per_sample` each transition's own entropy; `next_state` the soft
    Bellman target of the SAC paper, scaled by the temperature."""
    entropy_scale: Annotated[float, In(0, 1e6)] = 0.02
    """Factor on -log pi before clipping."""
    entropy_weight: values.Schedule = ((0.0, 0.2), (24.0, 0.2), (200.0, 0.2))
    """Weight of the entropy reward, by epoch."""
    actor_entropy: bool = False
    """Adds alpha log pi to the actor's loss, as in the SAC paper."""
    next_action: Literal["target", "main"] = "target"
    """Which actor proposes the next action of the TD target."""

    @property
    def soft_values(self) -> bool:
        return self.entropy_mode == "next_state"

    @property
    def bonus(self) -> Mapping[str, tuple[float, values.Bounds, values.Schedule]]:
        paid = (self.entropy_scale, self.entropy_clip, self.entropy_weight)
        return {} if self.entropy_mode == "off" else {"entropy_clip": paid}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SacValueConfig(GaussianConfig):
    """Soft actor-critic as first published (arXiv:1801.01290): critics learn from a state value.

    The core of DIAYN (arXiv:1802.06070). Entropy is in the state value and in the actor's loss,
    and only the state value has a target network.
    """

    learner: ClassVar[str] = "music_tf.agents.sac_value:SacValue"
    metrics: ClassVar[Mapping[str, str]] = {
        **GaussianConfig.metrics,
        "train/value_loss": "squared error of the state value, for SAC that has one",
    }

    target_critics: Literal["lowest"] = "lowest"
    """The state value, from which TD targets follow, follows the lowest critic."""
    value_learning_rate: values.Rate = 1e-3
    """Adam step size of the state value."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiscreteSacConfig(SoftConfig):
    """Soft actor-critic over K choices (arXiv:1910.07207); the argmax of an action is taken."""

    learner: ClassVar[str] = "music_tf.agents.discrete_sac:DiscreteSac"

    action_l2: Annotated[float, In(0, 0)] = 0.0
    """0: a discrete choice has no size to penalise."""
    learn_temperature: bool = True
    """Tunes alpha towards the wanted entropy."""
    target_entropy: Annotated[float, In(0, 1)] = 0.98
    """Target entropy as a share of log K, its maximum."""

    @property
    def actor(self) -> str:
        return "categorical"

    def check_training(self, run: Any) -> None:
        if run.env.skills:
            return
        first = f"{run.env_id} --skills 5"
        if run.env_id == "music_tf/AntGoals-v0":
            first = "music_tf/Ant-v0 --skills 5 --world.descriptor 0 1"
        raise UsageError(
            "env.skills: a controller chooses among the skills of an earlier run, and --env.skills "
            f"RUN is missing\nfirst: music-tf train sac_diayn --env-id {first}\n"
            "then add: --env.skills latest"
        )


def with_one_rate(
    agent: AgentConfig, rate: float, sizes: tuple[int, ...], **others: object
) -> AgentConfig:
    """Returns an agent with these hidden layers, and one step size for all that it learns."""
    rates = {f"{name}_learning_rate": rate for name in ("actor", "critic", "temperature")}
    return with_fields(agent, {"hidden_sizes": sizes, **rates, **others})
