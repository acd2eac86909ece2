"""Made-up episodes whose numbers say where they come from."""

import numpy as np

from music_tf.types import EnvSpec, Episodes

STEPS = 5
SPEC = EnvSpec(
    env_id="made up", observation_dim=4, goal_dim=2, action_dim=3, max_episode_steps=STEPS
)


def rng(seed=0):
    return np.random.default_rng(seed)


def make_episodes(first, count=1, lengths=None, terminated=None, lost=None, skills=1, **extras):
    """Episode e has 100 e + t + i / 10 in component i of state t, and -e as its goal.

    Each step pays -7; `extras` are made from the observations by functions of them.
    """
    states, numbers = np.arange(STEPS + 1), np.arange(first, first + count)
    length = np.full(count, STEPS) if lengths is None else np.array(lengths)
    base = 100.0 * numbers[:, None, None] + np.minimum(states, length[:, None])[..., None]
    observation = base + np.arange(SPEC.observation_dim) / 10.0
    steps = base[:, :STEPS] + 0.5 + np.arange(SPEC.action_dim) / 10.0
    over = np.arange(STEPS) >= length[:, None]
    ended = np.zeros(count, np.bool_) if terminated is None else np.array(terminated)
    gone = np.zeros(count, np.bool_) if lost is None else np.array(lost)
    return Episodes(
        observation=observation.astype(np.float32),
        achieved_goal=observation[..., :2].astype(np.float32),
        desired_goal=np.repeat(-numbers[:, None], 2, axis=1).astype(np.float32),
        action=np.where(over[..., None], 0.0, steps).astype(np.float32),
        reward=np.where(over, 0.0, -7.0).astype(np.float32),
        length=length.astype(np.int64),
        terminated=ended,
        truncated=~(ended | gone),
        lost=gone,
        succeeded=np.zeros(count, np.bool_),
        success=ended.copy(),
        skill=np.eye(skills, dtype=np.float32)[numbers % skills],
        earlier_return=np.zeros(count, np.float32),
        seed=np.zeros(count, np.int64),
        task=np.zeros(count, np.int64),
        visit=np.zeros(count, np.int64),
        context=np.zeros(count, np.bool_),
        extras={name: make(observation).astype(np.float32) for name, make in extras.items()},
    )


def places(batch):  # the numbers of the episodes that transitions come from, and their times
    return np.divmod(np.round(batch.observation[..., 0]).astype(int), 100)


def goal_reward(achieved, desired, extras):  # 0 where the goals are equal, else -1
    return np.where((achieved == desired).all(axis=-1), 0.0, -1.0)


def numbers_in(shard):  # which made-up episodes its filled part holds, by slot
    return (-shard.arrays["desired_goal"][: shard.size, 0]).astype(int).tolist()
