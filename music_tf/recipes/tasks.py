"""Learning a task from its own reward, with hindsight and without."""

import dataclasses

from music_tf.config.settings import (
    AgentConfig,
    Config,
    DdpgConfig,
    EvaluationConfig,
    ExplorationConfig,
    ReplayConfig,
    SacConfig,
)
from music_tf.recipes import Preset

_PUSH, _REACH, _SLIDE = "FetchPush-v4", "FetchReach-v4", "FetchSlide-v4"


def ddpg(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG on the task reward, without hindsight: the released baseline of MUSIC.

    The preset `paper` is the release (arXiv:2103.08107): 16 workers, 50 cycles of 2 episodes and 40
    updates per epoch, no relabelling, no return clip. `laptop` is for two cores.
    """
    agent = DdpgConfig() if preset == "paper" else DdpgConfig(polyak=0.995, polyak_every="update")
    return _task(preset, env_id, agent)


def ddpg_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG with hindsight relabelling: learns goal-reaching tasks from sparse rewards.

    Hindsight experience replay (arXiv:1707.01495) as in its release: four of five goals are
    relabelled with the future of their episode (k = 4), and TD targets are clipped to what the
    task can pay, (-1/(1 - gamma), 0). The preset `paper` has the sizes of the MUSIC release;
    `laptop` has small batches, a shorter horizon (gamma 0.95), targets that move with every
    update, and a smaller action penalty.
    """
    if preset == "paper":
        return _task(preset, env_id, DdpgConfig(return_clip="auto"), relabel_k=4.0)
    agent = DdpgConfig(
        discount=0.95, polyak=0.98, polyak_every="update", action_l2=0.1, return_clip="auto"
    )
    return dataclasses.replace(_task(preset, env_id, agent, relabel_k=4.0), updates=80)


def sac(preset: Preset, env_id: str = _PUSH) -> Config:
    """Stochastic actor on the task reward, without hindsight: the released "SAC" baseline of MUSIC.

    As released (arXiv:2103.08107), this is DDPG with a Gaussian policy and a small entropy offset
    that is averaged over the batch; `sac_her` is soft actor-critic as published. The preset
    `paper` has the released sizes. On FetchSlide the entropy scale is the release's larger one.
    """
    agent = SacConfig(entropy_scale=0.03 if env_id == _SLIDE else 0.02)
    if preset == "laptop":
        agent = dataclasses.replace(agent, polyak=0.995, polyak_every="update")
    return _task(preset, env_id, agent)


def sac_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """Soft actor-critic with hindsight relabelling: twin critics, learned temperature.

    Soft actor-critic (arXiv:1801.01290, with the learned temperature of arXiv:1812.05905) on
    hindsight relabelling (arXiv:1707.01495, k = 4). Exploration samples the policy, so no noise is
    added, and the action penalty of DDPG is off: entropy takes its place. Nor are TD targets
    clipped: the entropy in a soft return is unbounded below and may be positive, so that the
    bounds (-1/(1 - gamma), 0) of `ddpg_her` do not hold.
    """
    agent = SacConfig(
        critics=2,
        action_l2=0.0,
        entropy_mode="next_state",
        actor_entropy=True,
        learn_temperature=True,
        next_action="main",
    )
    if preset == "laptop":
        agent = dataclasses.replace(agent, polyak=0.995, polyak_every="update")
    return dataclasses.replace(
        _task(preset, env_id, agent, relabel_k=4.0),
        exploration=ExplorationConfig(sample=True, noise=0.0, random_probability=0.0),
    )


def _task(preset: str, env_id: str, agent: AgentConfig, relabel_k: float = 0.0) -> Config:
    """Returns the sizes that all of them share; reaching needs less of everything."""
    reaching = env_id == _REACH
    paper = Config(
        env_id=env_id,
        cycles=10 if reaching else 50,
        agent=agent,
        replay=ReplayConfig(relabel_k=relabel_k),
        evaluation=EvaluationConfig(episodes=320),
    )
    if preset == "paper":
        return paper
    return dataclasses.replace(
        paper,
        workers=4,
        epochs=10 if reaching else 150,
        cycles=10 if reaching else 20,
        replay=dataclasses.replace(paper.replay, batch_size=64),
        evaluation=EvaluationConfig(episodes=40),
    )
