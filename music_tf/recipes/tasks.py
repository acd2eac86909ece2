"""Learning a task from its own reward, with and without hindsight."""

import dataclasses
from typing import Literal

from music_tf.config import names
from music_tf.config.agents import AgentConfig, DdpgConfig, SacConfig, with_one_rate
from music_tf.config.epochs import whole_epoch
from music_tf.config.fields import with_fields
from music_tf.config.settings import (
    CollectConfig,
    Config,
    EvaluationConfig,
    ExplorationConfig,
    ReplayConfig,
)
from music_tf.recipes import Preset

_SHORT_TASKS = ("Pendulum-v1", "MountainCarContinuous-v0", *names.TOYS_WITHOUT_GOALS)


def ddpg(preset: Preset, env_id: str = names.FETCH_PUSH) -> Config:
    """DDPG on the task reward, without hindsight.

    The released baseline of MUSIC. On tasks without goals it is DDPG as published
    (arXiv:1509.02971), but for noise, normalisation and weight decay: see docs/goals.md.
    """
    if not names.is_one_of(env_id, names.WITH_GOALS):
        published = preset == "paper"
        agent = DdpgConfig(
            hidden_sizes=(400, 300) if published else (256, 256),
            actor_learning_rate=1e-4 if published else 1e-3,
            discount=0.99,
            polyak=0.999 if published else 0.995,
            polyak_every="update",
            action_l2=0.0,
        )
        exploration = ExplorationConfig(noise=0.2 if published else 0.1, random_probability=0.0)
        return _without_goals(preset, env_id, agent, exploration, 64 if published else 256)
    agent = DdpgConfig() if preset == "paper" else DdpgConfig(polyak=0.995, polyak_every="update")
    return _task(preset, env_id, agent)


def ddpg_her(preset: Preset, env_id: str = names.FETCH_PUSH) -> Config:
    """Hindsight (DDPG): tasks with goals, sparse rewards.

    Hindsight experience replay (arXiv:1707.01495) as in its release, k = 4. `laptop` has small
    batches, a shorter horizon, targets that move with every update, and a smaller action penalty.
    """
    if preset == "paper":
        return _task(preset, env_id, DdpgConfig(return_clip="auto"), relabel_k=4.0)
    agent = DdpgConfig(
        discount=0.95, polyak=0.98, polyak_every="update", action_l2=0.1, return_clip="auto"
    )
    return dataclasses.replace(_task(preset, env_id, agent, relabel_k=4.0), updates=80)


def ddpg_rher(preset: Literal["laptop"], env_id: str = names.FETCH_PUSH) -> Config:
    """Hindsight that also sends the hand to the object.

    Relay hindsight (Luo et al., 2022, arXiv:2208.00843): one policy for two goals, a place of the
    object and a place of the hand. It takes as prior knowledge which columns of an observation are
    hand and object (`world.gripper`, `world.object`), and that the hand has to go to the object;
    MUSIC needs columns and the table. docs/goals.md says what differs.
    """
    changes = {
        "workers": 2,
        "rollouts": 1,
        "epochs": 20 if env_id == names.FETCH_PUSH else 50,
        "cycles": 40,
        "updates": 160,
        "agent.polyak": 0.8,
        "agent.polyak_every": "cycle",
        "replay.batch_size": 128,
        "replay.reach": 0.05,
        "exploration.random_probability": 0.2,
    }
    return with_fields(ddpg_her(preset, env_id), changes)


def sac(preset: Preset, env_id: str = names.FETCH_PUSH) -> Config:
    """SAC on the task reward, without hindsight.

    The released "SAC" baseline of MUSIC is DDPG with a Gaussian policy and a small entropy offset
    that is averaged over the batch; `sac_her` is soft actor-critic as published, and so is this on
    tasks without goals (arXiv:1812.05905).
    """
    if not names.is_one_of(env_id, names.WITH_GOALS):
        rate = 1e-3 if preset == "laptop" and names.is_one_of(env_id, _SHORT_TASKS) else 3e-4
        agent = with_one_rate(
            SOFT,
            rate,
            (256, 256),
            temperature=1.0,
            linear_features=False,
            discount=0.99,
            polyak=0.995,
            polyak_every="update",
        )
        return _without_goals(preset, env_id, agent, SAMPLED, 256)
    agent = SacConfig(entropy_scale=0.03 if env_id == names.FETCH_SLIDE else 0.02)
    if preset == "laptop":
        agent = dataclasses.replace(agent, polyak=0.995, polyak_every="update")
    return _task(preset, env_id, agent)


def sac_her(preset: Preset, env_id: str = names.FETCH_PUSH) -> Config:
    """SAC with hindsight: tasks with goals.

    Twin critics, a learned temperature. TD targets are not clipped to (-1/(1 - gamma), 0) as in
    `ddpg_her`, because the entropy in a soft return is unbounded below and may be positive.
    """
    agent = SOFT
    if preset == "laptop":
        agent = dataclasses.replace(agent, polyak=0.995, polyak_every="update")
    return dataclasses.replace(_task(preset, env_id, agent, relabel_k=4.0), exploration=SAMPLED)


SOFT = SacConfig(
    critics=2,
    action_l2=0.0,
    entropy_mode="next_state",
    actor_entropy=True,
    learn_temperature=True,
    next_action="main",
)
SAMPLED = ExplorationConfig(sample=True, noise=0.0, random_probability=0.0)


def _without_goals(
    preset: str, env_id: str, agent: AgentConfig, exploration: ExplorationConfig, batch: int
) -> Config:
    short = names.is_one_of(env_id, _SHORT_TASKS)
    epoch = whole_epoch(
        1 if preset == "paper" else 50, 1_000 if short else 5_000, names.episode_steps(env_id)
    )
    return Config(
        env_id=env_id,
        workers=1,
        rollouts=1,
        epochs=20 if short else 200,
        cycles=epoch.cycles,
        updates=epoch.steps,
        agent=agent,
        collect=CollectConfig(steps=epoch.steps, random_steps=1_000, updates_per_step=1.0),
        replay=ReplayConfig(batch_size=batch),
        exploration=exploration,
        evaluation=EvaluationConfig(episodes=10 if short else 5),
    )


def _task(preset: str, env_id: str, agent: AgentConfig, relabel_k: float = 0.0) -> Config:
    """Returns the settings that all tasks with goals share; FetchReach needs smaller sizes."""
    reaching = env_id == names.FETCH_REACH
    paper = Config(
        env_id=env_id,
        cycles=10 if reaching else 50,
        agent=agent,
        replay=ReplayConfig(relabel_k=relabel_k),
        evaluation=EvaluationConfig(episodes=320),
    )
    if preset == "paper":
        return with_fields(paper, {"agent.gradient_reduce": "sum"})
    return dataclasses.replace(
        paper,
        workers=4,
        epochs=10 if reaching else 150,
        cycles=10 if reaching else 20,
        replay=dataclasses.replace(paper.replay, batch_size=64),
        evaluation=EvaluationConfig(episodes=40),
    )
