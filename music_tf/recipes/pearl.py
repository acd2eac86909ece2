"""Robots that adapt to a new task from a few episodes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from music_tf.config import names, settings
from music_tf.config.agents import MLP, RECURRENT, Inference, SacValueConfig
from music_tf.config.conditioning import ConditionConfig, TasksConfig
from music_tf.config.fields import In, Where, with_fields
from music_tf.config.values import Layers, Rate
from music_tf.config.world import is_function
from music_tf.errors import UsageError
from music_tf.recipes import releases
from music_tf.recipes.music import ddpg_music
from music_tf.recipes.releases import Changes

Encoder: TypeAlias = Annotated[
    str,
    Where(
        "mlp, gru, lstm or module:function",
        lambda word: word in (MLP, *RECURRENT) or is_function(word),
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PearlConfig(SacValueConfig):
    """SAC with a state value on a latent that is inferred from a context (arXiv:1903.08254)."""

    learner: ClassVar[str] = "music_tf.agents.pearl:Pearl"
    networks: ClassVar[Sequence[str]] = ("encoder",)
    collector: ClassVar[str] = "music_tf.training.tasks:TaskCollector"
    parts: ClassVar[Sequence[str]] = ("music_tf.training.parts:TaskFamily",)
    metrics: ClassVar[Mapping[str, str]] = {
        "pearl/kl": "divergence of a posterior from the prior in nats, mean over tasks",
        "pearl/latent_mean": "mean of posterior latents; 0 under the prior",
        "pearl/latent_std": "standard deviation of posterior latents; 1 under the prior",
    }

    latent_size: Annotated[int, In(1, 4096)] = 5
    """Size L of a latent."""
    deterministic_latent: bool = False
    """Takes the mean of the encoder's outputs over a context as the latent, without variance or
    KL."""
    posterior: Literal["diagonal", "full"] = "diagonal"
    """Covariance of a belief. `diagonal`: a product of diagonal Gaussians, as published. `full`: a
    product of the prior and of observations of one direction each. Deterministic latents have
    neither."""
    encoder: Encoder = MLP
    """Network that infers a latent from a context. `mlp` reads each step by itself, and the belief
    is the product over steps. `gru` and `lstm` read consecutive steps, and their last state gives
    the belief. `module:function` is a function of yours that makes a Keras model."""
    encoder_sizes: Layers = (200, 200, 200)
    """Units of each hidden layer of the encoder; the last number is also that of a `gru` or
    `lstm`."""
    encoder_learning_rate: Rate = 3e-4
    """Adam step size of the encoder."""
    meta_batch: Annotated[int, In(1, 10**5)] = 16
    """Tasks of each update, over all workers, drawn with replacement; each has an even share of
    `replay.batch_size`."""
    context_rows: Annotated[int, In(1, 10**6)] = 100
    """Steps of a context in training, drawn with replacement from the latest visit to the task;
    consecutive steps for encoders other than `mlp`."""
    context_chunk: Annotated[int | None, In(1, 10**6)] = None
    """For `gru` and `lstm`: a latent is inferred after every so many steps of a context, without a
    gradient into earlier chunks; the latents share the steps of critics and actor. Unset: one
    latent, after all steps."""
    context_next_observation: bool = False
    """Adds the next observation of each step to the encoder's inputs, for tasks whose dynamics
    differ."""
    context_reward: str = ""
    """Extra that is the reward in contexts, such as `sparse_reward`; empty: the environment's own
    reward."""
    context_reward_scale: Annotated[float, In(0, 1e6, "(]")] = 1.0
    """Factor of the rewards in contexts (`task.scale` has no effect there). Encoders learn fastest
    from inputs that vary by about 1."""
    kl_weight: Annotated[float, In(0, 1e6)] = 0.1
    """Weight of the KL divergence, summed over the tasks of an update. Tune it with `task.scale`:
    the critics' loss grows with the square of the scale."""
    mean_l2: Annotated[float, In(0, 1e6)] = 1e-3
    """Weight of the mean squared mean of the policy, before squashing."""
    log_deviation_l2: Annotated[float, In(0, 1e6)] = 1e-3
    """Weight of the mean squared log-deviation of the policy."""
    raw_action_l2: Annotated[float, In(0, 1e6)] = 0.0
    """Weight of the mean squared norm of the policy's samples, before squashing."""

    @property
    def functions(self) -> tuple[str, ...]:
        return (self.encoder,) if is_function(self.encoder) else ()

    @property
    def inference(self) -> Inference:
        return Inference(
            encoder=self.encoder,
            latent=self.latent_size,
            deterministic=self.deterministic_latent,
            full=self.posterior == "full",
            tasks=self.meta_batch,
            rows=self.context_rows,
            chunk=self.context_chunk or self.context_rows,
            next_observation=self.context_next_observation,
            reward=self.context_reward,
            reward_scale=self.context_reward_scale,
            sizes=self.encoder_sizes,
        )

    def check(self, run: settings.Config) -> None:
        super().check(run)
        if self.update_order == "actor_first":
            raise UsageError(
                "agent.update_order: the encoder learns with the critics, whose step comes first, "
                "expected simultaneous or sequential, got actor_first"
            )
        tasks, workers, batch = self.meta_batch, run.workers, run.replay.batch_size
        rows, chunk = self.context_rows, self.inference.chunk
        if tasks % workers:
            raise UsageError(
                f"agent.meta_batch: expected a multiple of workers {workers}, got {tasks}; "
                f"nearest: {max(workers, workers * round(tasks / workers))}"
            )
        if chunk != rows and self.encoder not in RECURRENT:
            raise UsageError(
                f"agent.context_chunk: expected {rows}, as agent.context_rows says, for the "
                f"encoder {self.encoder}, got {chunk}; leave it out, or add --agent.encoder gru"
            )
        if rows % chunk:
            divisors = [each for each in range(1, rows + 1) if rows % each == 0]
            raise UsageError(
                f"agent.context_chunk: expected a divisor of {rows}, the rows of a context, got "
                f"{chunk}; nearest: {min(divisors, key=lambda each: abs(each - chunk))}"
            )
        each = tasks // workers * self.inference.beliefs
        if batch % each:
            raise UsageError(
                f"replay.batch_size: expected a multiple of {each}, the beliefs of a worker in an "
                f"update, got {batch}; nearest: {max(each, each * round(batch / each))}"
            )


HIDDEN_PUSH, HIDDEN_REACH = "music_tf/FetchPushHiddenGoal-v0", "music_tf/FetchReachHiddenGoal-v0"

_ROBOT: Changes = {
    "epochs": 60,
    "cycles": 20,
    "updates": 100,
    "agent.discount": 0.97,
    "agent.polyak": 0.98,
    "agent.latent_size": 5,
    "agent.posterior": "diagonal",
    "agent.kl_weight": 1.0,
    "agent.meta_batch": 4,
    "agent.context_rows": 100,
    "replay.batch_size": 256,
    "task.scale": 30.0,
    "tasks.initial": 4,
    "tasks.prior": 1,
    "tasks.posterior": 1,
    "tasks.adapt": 2,
    "evaluation.every": 5,
}
_TWO_TASKS: Changes = {"workers": 2, "replay.batch_size": 512, "tasks.train": 2, "tasks.test": 2}
"""Forward and backward, which are both training tasks and evaluation tasks."""
_OTHER_BODY: Changes = {"agent.context_next_observation": True}
_GOAL: Changes = {
    "epochs": 40,
    "cycles": 8,
    "updates": 100,
    "agent.context_rows": 100,
    "task.scale": 100.0,
    "tasks.train": 32,
    "tasks.initial": 4,
    "evaluation.every": 5,
}
"""Rewards in metres are small, so that their scale is larger."""
_FAR_GOAL: Changes = {**_GOAL, "agent.discount": 0.95}
_IN_DECIMETRES: Changes = {
    "normalizer": settings.NormalizerConfig(),
    "agent.context_reward_scale": 10.0,
    "agent.context_rows": 50,
    "agent.kl_weight": 0.2,
    "tasks.posterior": 0,
    "tasks.extra": 2,
}
"""On Fetch, places and rewards differ by about 0.1 m, too little for an encoder to learn fast.
Contexts come from episodes under the prior alone, as at the start of an adaptation."""
_FAR_FETCH: Changes = {**_FAR_GOAL, **_IN_DECIMETRES}
_OF_FAMILIES: Mapping[str, Changes] = {
    **dict.fromkeys(names.ROBOT_FAMILIES, _ROBOT),
    names.CHEETAH_DIRECTION: {**_ROBOT, **_TWO_TASKS},
    names.WALKER_BODIES: {**_ROBOT, **_OTHER_BODY},
    names.HOPPER_BODIES: {**_ROBOT, **_OTHER_BODY},
    **dict.fromkeys(names.HIDDEN_GOALS, _FAR_GOAL),
    **dict.fromkeys(names.FETCH_HIDDEN_GOALS, _FAR_FETCH),
    HIDDEN_REACH: {**_GOAL, **_IN_DECIMETRES, "epochs": 15},
}
"""By environment; all other settings are those of the point robot."""
_LAPTOP: Changes = {
    "workers": 4,
    "epochs": 10,
    "cycles": 16,
    "updates": 25,
    "agent.hidden_sizes": (128, 128),
    "agent.encoder_sizes": (128, 128),
    **{f"agent.{name}_learning_rate": 1e-3 for name in ("actor", "critic", "value", "encoder")},
    "agent.discount": 0.9,
    "agent.latent_size": 10,
    "agent.posterior": "full",
    "agent.kl_weight": 0.02,
    "agent.meta_batch": 8,
    "agent.context_rows": 40,
    "replay.batch_size": 128,
    "replay.capacity": 200_000,
    "task.scale": 20.0,
    "tasks.train": 20,
    "tasks.test": 10,
    "evaluation.episodes": 2,
    "evaluation.every": 2,
}
_PRESETS: Mapping[str, tuple[Changes, Mapping[str, Changes]]] = {
    "laptop": (_LAPTOP, _OF_FAMILIES),
    "oyster": (releases.OYSTER, releases.OYSTER_FAMILIES),
    "garage": (releases.GARAGE, releases.GARAGE_FAMILIES),
}
"""Settings in which presets differ, for all environments and by environment."""
_MUSIC_WEIGHT = 4.0
"""Weight of MUSIC; its highest pay of 4 is then the cost of 16 cm from a goal under `laptop`."""


def sac_pearl(
    preset: Literal["laptop", "paper", "oyster", "garage"], env_id: str = names.POINT_ROBOT
) -> settings.Config:
    """Adapts to a new task of a family in a few episodes.

    PEARL (arXiv:1903.08254): soft actor-critic on a latent, whose encoder is trained by the
    critics' loss. `oyster` is the authors' code, `paper` the same with the next observation in
    contexts and a KL weight of 1, `garage` garage's defaults with contexts no longer than a visit.
    """
    agent = PearlConfig(
        actor_learning_rate=3e-4,
        critic_learning_rate=3e-4,
        value_learning_rate=3e-4,
        critics=2,
        temperature=1.0,
        linear_features=False,
        deviation="clip",
        squash_correction="epsilon",
        action_l2=0.0,
        discount=0.99,
        polyak=0.995,
        polyak_every="update",
        update_order="sequential",
    )
    usual, by_family = _PRESETS["oyster" if preset == "paper" else preset]
    changes = {**usual, **names.of_family(env_id, by_family, {})}
    if preset == "paper":
        changes |= releases.PEARL_PAPER
    config = settings.Config(
        env_id=env_id,
        workers=1,
        rollouts=1,
        agent=agent,
        condition=ConditionConfig(kind="belief"),
        tasks=TasksConfig(train=1, test=1),
        replay=settings.ReplayConfig(batch_size=agent.meta_batch, draw="steps"),
        exploration=settings.ExplorationConfig(random_probability=0.0, noise=0.0, sample=True),
        normalizer=settings.NormalizerConfig(running=False, clip=1e6, input_clip=1e6),
        evaluation=settings.EvaluationConfig(episodes=1),
    )
    return with_fields(config, changes)


def sac_pearl_music(preset: Literal["laptop"], env_id: str = HIDDEN_PUSH) -> settings.Config:
    """Adapts to hidden goals of an object that it moves.

    Mutual information is an added reward of meta-training: constant in the first half of a run,
    then falling to zero. Contexts hold the environment's reward alone.
    """
    config = sac_pearl(preset, env_id)
    music = ddpg_music(preset, env_id).rewards["music"]
    half, end = config.epochs // 2, config.epochs - config.epochs // 4
    paid = ((0.0, _MUSIC_WEIGHT), (float(half), _MUSIC_WEIGHT), (float(end), 0.0))
    both = dataclasses.replace(config, rewards={**config.rewards, "music": music})
    return with_fields(both, {"music.weight": paid})
