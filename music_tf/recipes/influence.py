"""Causal action influence as a reward, as a bonus, and for exploration (arXiv:2106.03443)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from music_tf.config.agents import DdpgConfig, DiscreteSacConfig
from music_tf.config.fields import In
from music_tf.config.key_metrics import INFORMATION, KeyMetric
from music_tf.config.names import FETCH_PUSH
from music_tf.config.settings import CollectConfig, Config, EvaluationConfig, ReplayConfig
from music_tf.config.terms import ScaledConfig
from music_tf.config.values import Bounds, Layers, Rate
from music_tf.config.world import Columns
from music_tf.errors import UsageError
from music_tf.recipes import Preset
from music_tf.recipes.music import ddpg_music
from music_tf.recipes.tasks import ddpg_her


@dataclasses.dataclass(frozen=True, kw_only=True)
class InfluenceConfig(ScaledConfig):
    """Causal influence of the action on the object's next move (arXiv:2106.03443), in nats.

    A Gaussian model predicts the object's move after each of some random actions. The reward is the
    mean divergence of each prediction from the mixture of all.
    """

    name: ClassVar[str] = "influence"
    term: ClassVar[str] = "music_tf.intrinsic.influence:Influence"
    networks: ClassVar[Sequence[str]] = ("influence_model",)
    action_scorer: ClassVar[str] = "music_tf.networks.influence:influences"
    metrics: ClassVar[Mapping[str, str]] = {
        "influence/loss": "minus the log-density of the object's moves in replayed steps",
        "influence/heldout": "mean influence of actions in evaluation episodes, in nats",
        "influence/random": "the same in episodes of random actions",
        "influence/moving": "the same in evaluation steps in which the object moves",
        "influence/resting": "the same in evaluation steps in which the object rests",
        "influence/mean": "mean influence in minibatches, in nats; with gain auto",
        "influence/gain": "reward per nat; with gain auto",
    }
    measured: ClassVar[tuple[str, str]] = ("influence/mean", "influence/gain")
    change_scale: ClassVar[float] = 50.0
    """Factor on the change of columns in a step, for the model."""

    clip: Bounds = (0.0, 10.0)
    """Bounds of the scaled reward."""
    columns: Annotated[Columns, In(0, 10**6)] = ()
    """Columns of the observation that actions may influence; empty: those of `world.object`, else
    the surroundings."""
    candidates: Annotated[int, In(0, 1024)] = 0
    """Active exploration: each random action (`exploration.random_probability`) is the most
    influential of so many candidates, also if the weight is 0. 0: off."""
    samples: Annotated[int, In(2, 1024)] = 32
    """Random actions K over which the influence is averaged; it is at most log K."""
    sigma_floor: Annotated[float, In(0, 1e6)] = 0.0
    """Noise added to the model: its deviation in the unit of the columns. Effects that are far
    smaller earn nothing. Without it, errors of the model count as influence where an object
    rests."""
    hidden_sizes: Layers = (256, 256, 256, 256)
    """Units of each hidden layer of the model."""
    learning_rate: Rate = 8e-4
    """Adam step size of the model."""
    times: Annotated[int, In(1, 1000)] = 1
    """Steps of the model at an update, each on its own minibatch. The authors' code takes
    about ten for each update of the agent."""

    @property
    def counts(self) -> bool:
        return super().counts or self.candidate_actions > 0

    @property
    def candidate_actions(self) -> int:
        return self.candidates

    @property
    def variance_floor(self) -> float:
        return (self.sigma_floor * self.change_scale) ** 2

    @property
    def scorer_arguments(self) -> Mapping[str, float]:
        return {"floor": self.variance_floor}

    def key_metrics(self, run: Config) -> Sequence[KeyMetric]:
        motion = [shown for shown in super().key_metrics(run) if shown.metric == INFORMATION]
        random, scale = "influence/random", "nats that an action decides of the object's next move"
        return (*motion, KeyMetric("influence/heldout", "influence", random=random, scale=scale))

    def check(self, run: Config) -> None:
        hold = run.exploration.random_hold
        if self.candidates and hold > 1.0:
            raise UsageError(
                "influence.candidates: random actions are drawn in each step, expected "
                f"--exploration.random-hold 1, got {hold:g}"
            )
        if self.candidates and run.agent.inference is not None:
            raise UsageError(
                "influence.candidates: a visit to a task does not choose its random actions, "
                f"expected --influence.candidates 0, got {self.candidates}"
            )
        if self.candidates and not run.exploration.random_probability:
            raise UsageError(
                "influence.candidates: are tried in place of random actions, expected "
                "exploration.random_probability above 0, got 0\n"
                "for example: --exploration.random-probability 0.3"
            )
        if isinstance(run.agent, DiscreteSacConfig):
            raise UsageError(
                "influence: compares random actions of a box, expected an agent with continuous "
                f"actions, got {type(run.agent).__name__}\nnearest: a recipe of ddpg or sac"
            )


_SMALL = InfluenceConfig(samples=8, hidden_sizes=(128, 128), learning_rate=1e-3, sigma_floor=1e-3)
"""Its model needs less time than the agent."""


def ddpg_cai(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Influence of actions on an object, without a task.

    Causal action influence (CAI, arXiv:2106.03443), as its authors use it without a task.
    """
    if preset == "paper":
        return _as_released(env_id)
    return dataclasses.replace(ddpg_music("laptop", env_id), rewards={"influence": _SMALL})


def ddpg_cai_her(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Hindsight, with the influence of actions added.

    A bonus of at most 0.4 a step, in a task that costs 1 a step. The authors' code also caps the
    sum at 0, so that influence at the goal would not be paid.
    """
    bonus = InfluenceConfig(times=10) if preset == "paper" else _SMALL
    config, weight = ddpg_her(preset, env_id), ((0.0, 0.2),)
    bonus = dataclasses.replace(bonus, clip=(0.0, 2.0), weight=weight)
    return dataclasses.replace(config, rewards={**config.rewards, "influence": bonus})


def _as_released(env_id: str) -> Config:
    """Returns the settings of the authors' code: 5000 episodes, evaluated every 100 episodes."""
    return Config(
        env_id=env_id,
        workers=1,
        rollouts=1,
        epochs=50,
        cycles=100,
        updates=20,
        agent=DdpgConfig(
            hidden_sizes=(192, 192),
            actor_learning_rate=3e-3,
            critic_learning_rate=3e-3,
            discount=0.95,
            polyak=0.99,
            polyak_every="update",
            action_l2=1.0,
        ),
        rewards={"influence": InfluenceConfig(times=10)},
        collect=CollectConfig(random_steps=5000),
        replay=ReplayConfig(capacity=500_000),
        evaluation=EvaluationConfig(episodes=100),
    )
