"""MUSIC (arXiv:2103.08107): learning to control an object without any task reward."""

import dataclasses

from music_tf.config.settings import (
    Config,
    DdpgConfig,
    EvaluationConfig,
    ExplorationConfig,
    MusicConfig,
    ReplayConfig,
    SacConfig,
)
from music_tf.recipes import Preset

_PUSH, _PICK, _SLIDE = "FetchPush-v4", "FetchPickAndPlace-v4", "FetchSlide-v4"


def ddpg_music(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG on mutual information alone: learns to control an object without any task reward.

    Unsupervised MUSIC (arXiv:2103.08107). The preset `paper` is the release: 16 workers, training
    goals of zero, and nothing relabelled. The only reward is the mutual information between agent
    and surrounding state. The preset `laptop` is tuned for minutes on two cores, the same on every
    task; docs/music.md says what each of its differences does. Needs an environment with an object.
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


def sac_music(preset: Preset, env_id: str = _PUSH) -> Config:
    """Stochastic actor on mutual information alone: learns control without any task reward.

    Unsupervised MUSIC (arXiv:2103.08107) with the released "SAC", a Gaussian policy with a small
    entropy offset that is averaged over the batch. Training goals are zero and nothing is
    relabelled. Needs an environment with an object. The preset `paper` has the released sizes;
    on FetchSlide the entropy scale is the release's larger one. The preset `laptop` has the
    settings of `ddpg_music`, and no entropy offset: beside rewards that are never negative it
    would make losing the object pay.
    """
    config = ddpg_music(preset, env_id)
    agent = SacConfig(
        **vars(config.agent),
        entropy_mode="batch_mean" if preset == "paper" else "off",
        entropy_scale=0.03 if env_id == _SLIDE else 0.02,
    )
    return dataclasses.replace(config, agent=agent)


def sac_music_skills(preset: Preset, env_id: str = _PICK) -> Config:
    """Unsupervised MUSIC with five skills: a random constant input beside what `sac_music` sees.

    Nothing rewards the skills for being different. The release (arXiv:2103.08107) has this recipe
    so that skill discrimination can start from its weights, as `sac_music_diayn` does: an agent
    with skills has larger inputs.
    """
    return dataclasses.replace(sac_music(preset, env_id), skills=5)
