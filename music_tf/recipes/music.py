"""MUSIC (arXiv:2103.08107): learning to control an object without any task reward."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from music_tf.config.agents import DdpgConfig, SacConfig
from music_tf.config.fields import In
from music_tf.config.key_metrics import KeyMetric
from music_tf.config.names import FETCH_PICK, FETCH_PUSH, FETCH_SLIDE
from music_tf.config.settings import Config, EvaluationConfig, ExplorationConfig, ReplayConfig
from music_tf.config.terms import ScaledConfig
from music_tf.config.values import Rate, Schedule
from music_tf.recipes import Preset


@dataclasses.dataclass(frozen=True, kw_only=True)
class MusicConfig(ScaledConfig):
    """Mutual information between agent and surrounding state (arXiv:2103.08107)."""

    name: ClassVar[str] = "music"
    term: ClassVar[str] = "music_tf.intrinsic.music:Music"
    networks: ClassVar[Sequence[str]] = ("statistics",)
    needs_split: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {
        "music/bound": "bound on the mutual information in nats, on training trajectories",
        "music/bound_heldout": "bound in nats on trajectories that the network was not trained on",
        "music/bound_random": "the same bound on episodes of random actions",
        "music/paid_heldout": "mean reward of a step in evaluation episodes, at full weight",
        "music/paid_random": "the same in episodes of random actions",
        "music/pair_bound": "mean positive pair bound in minibatches, in nats; with gain auto",
        "music/gain": "reward per nat; with gain auto",
    }
    measured: ClassVar[tuple[str, str]] = ("music/pair_bound", "music/gain")

    gain: Annotated[float | Literal["auto"] | None, In(0, 1e9)] = None
    """Reward per nat of the pair bound. auto: `mean` divided by a running mean of the bound, which
    is independent of units. Unset: the gain of the environment, auto if it has none."""
    shift: Annotated[float, In(-1e9, 1e9)] = -1.0
    """Added after clipping; with -1 every reward is a cost, with 0 an idle step earns nothing."""
    weight: Schedule = ((0.0, 1.0), (50.0, 1.0), (200.0, 1.0))
    pair_negatives: Literal["random", "swap", "all_pairs"] = "random"
    """Mismatched pairs of the two states of a transition: swapped or not by one random draw for
    each minibatch (as released), always swapped, or all four combinations."""
    trajectory_negatives: Literal["shared", "independent"] = "shared"
    """Whether one permutation shuffles all trajectories of a batch, or each has its own."""
    normalize_inputs: bool = False
    """Normalises the inputs of the statistics network, which needs another gain, such as auto. Each
    column is divided by its deviation; x, y and z of gripper or object share one."""
    train: bool = True
    """False: the statistics network keeps its initial or loaded weights."""
    hidden_size: Annotated[int, In(1, 8192)] = 128
    """Units of the statistics network."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation of these units. The pair bound is a second difference, so it is 0 for a step
    within a linear piece of a ReLU network; tanh is curved everywhere."""
    learning_rate: Rate = 1e-3
    """Adam step size of the statistics network."""
    trajectories: Annotated[int, In(1, 65536)] = 256
    """Episodes in a batch of the statistics network."""

    @property
    def ranks(self) -> bool:
        """Whether a nat is paid at all, since a priority sums what steps are paid."""
        return self.gain != 0.0

    def key_metrics(self, run: Config) -> Sequence[KeyMetric]:
        bounded = "lower bound of the mutual information in nats"
        return (
            *super().key_metrics(run)[:1],
            KeyMetric("music/paid_heldout", "pay", random="music/paid_random", scale=self._paid),
            KeyMetric("music/bound_heldout", "bound", random="music/bound_random", scale=bounded),
        )


def ddpg_music(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC: control of an object, without a task.

    DDPG on mutual information alone (arXiv:2103.08107). `paper` is the release, `laptop` is tuned
    for minutes on two cores, with the same settings for every task: see docs/music.md.
    """
    paper = Config(
        env_id=env_id,
        goals="zero",
        agent=DdpgConfig(gradient_reduce="sum"),
        rewards={"music": MusicConfig()},
        evaluation=EvaluationConfig(episodes=320),
    )
    if preset == "paper":
        return paper
    return dataclasses.replace(
        paper,
        workers=4,
        epochs=20,
        cycles=20,
        updates=80,
        lost_object="absorb",
        agent=DdpgConfig(
            critics=2, polyak=0.99, polyak_every="update", action_l2=0.3, return_clip="auto"
        ),
        rewards={
            "music": MusicConfig(
                learning_rate=1e-4,
                gain="auto",
                mean=15.0,
                pay="log",
                clip=(0.0, 4.0),
                shift=0.0,
                normalize_inputs=True,
                activation="tanh",
                pair_negatives="swap",
                trajectories=32,
            )
        },
        exploration=ExplorationConfig(random_hold=4.0),
        replay=ReplayConfig(batch_size=64),
        evaluation=EvaluationConfig(episodes=40),
    )


def sac_music(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC with a stochastic actor.

    MUSIC with the released "SAC", a Gaussian policy with a small entropy offset that is averaged
    over the batch. `laptop` has no offset: as its rewards are never negative, the offset would pay
    the robot for losing the object.
    """
    config = ddpg_music(preset, env_id)
    agent = SacConfig(
        **vars(config.agent),
        entropy_mode="batch_mean" if preset == "paper" else "off",
        entropy_scale=0.03 if env_id == FETCH_SLIDE else 0.02,
    )
    return dataclasses.replace(config, agent=agent)


def sac_music_skills(preset: Preset, env_id: str = FETCH_PICK) -> Config:
    """MUSIC with five skills: a random one-hot input.

    Skills are not rewarded for being different. `sac_music_diayn` starts from its weights, which
    have room for skills in their inputs.
    """
    return dataclasses.replace(sac_music(preset, env_id), skills=5)
