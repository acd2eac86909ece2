"""Made-up trajectories of a gripper that may carry an object, as a MUSIC term sees them."""

import numpy as np

from music_tf.config.settings import MusicConfig, ReplayConfig
from music_tf.intrinsic.music import Music
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.types import EnvSpec, Episodes, SplitSpec
from tests.kit.terms import context

STEPS = 50
SPLIT = SplitSpec(agent=(0, 1, 2), surrounding=(3, 4, 5))
SPEC = EnvSpec(
    env_id="carried", observation_dim=25, goal_dim=3, action_dim=4, max_episode_steps=STEPS
)
STEP_LENGTH = 0.03
CENTRE = np.array([1.3, 0.75, 0.45])


def carried_episodes(count, share, generator, length=STEPS):
    """The gripper walks at random; a share of the objects is carried from mid-episode on."""
    moves = generator.normal(0.0, STEP_LENGTH, (count, STEPS, 3))
    start = CENTRE + generator.normal(0.0, 0.05, (count, 2, 3))
    gripper = np.concatenate([start[:, :1], start[:, :1] + np.cumsum(moves, axis=1)], axis=1)
    carried = (generator.random(count) < share)[:, None, None]
    held = carried & (np.arange(STEPS) >= STEPS // 2)[:, None]
    follows = np.cumsum(np.where(held, moves, 0.0), axis=1)
    block = np.concatenate([start[:, 1:], start[:, 1:] + follows], axis=1)
    rest = generator.normal(size=(count, STEPS + 1, SPEC.observation_dim - 6))
    observation = np.concatenate([gripper, block, rest], axis=-1).astype(np.float32)
    flags = np.zeros(count, np.bool_)
    return Episodes(
        observation=observation,
        achieved_goal=observation[..., 3:6],
        desired_goal=np.zeros([count, 3], np.float32),
        action=np.zeros([count, STEPS, 4], np.float32),
        reward=np.zeros([count, STEPS], np.float32),
        length=np.full(count, length),
        terminated=flags,
        lost=flags,
        success=flags,
        skill=np.ones([count, 1], np.float32),
        seed=np.zeros(count, np.int64),
        extras={},
    )


def replay_of(*shares, count=60, length=STEPS):
    """A replay buffer with a worker for each share of carried objects."""
    config = ReplayConfig(capacity=count * STEPS)
    shards = {}
    for worker, share in enumerate(shares):
        shard = Shard(SPEC, 1, config, (*SPLIT.agent, *SPLIT.surrounding))
        generator = np.random.default_rng(worker)
        shard.add(carried_episodes(count, share, generator, length), generator)
        shards[worker] = shard
    return ReplayBuffer(shards, config, lambda achieved, desired: np.zeros(len(achieved)), 0.98, 0)


def music(scale=None, seed=0, **config):
    settings = MusicConfig(
        trajectories=32, gain=5000.0, normalize_inputs=scale is not None, **config
    )
    return Music(settings, context(SPLIT, scale=scale, seed=seed))
