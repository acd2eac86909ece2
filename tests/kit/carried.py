"""Made-up trajectories of a gripper that may carry an object, as a MUSIC term sees them."""

import numpy as np
import tensorflow as tf

from music_tf.config.settings import MusicConfig, ReplayConfig
from music_tf.intrinsic.music import Music
from music_tf.networks.parameters import Layout
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.training.update import AdamState, adam_step
from music_tf.types import EnvSpec, Episodes, SplitSpec, Transition
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


def weights_of(term, seed=None):
    layout = Layout(term.networks)
    flat = layout.initial()
    if seed is not None:
        flat = np.random.default_rng(seed).normal(size=flat.shape).astype(np.float32)
    return layout.split(tf.constant(flat))


def transitions(before, after):
    """Transitions between observations [W, B, O]."""
    empty = Transition(*[None] * len(Transition._fields))
    return empty._replace(
        observation=tf.constant(before, tf.float32), next_observation=tf.constant(after, tf.float32)
    )


def train(term, replay, updates, learning_rate=1e-3):
    """Takes Adam steps and returns the weights and the bound of each update."""
    layout = Layout(term.networks)
    feed = term.feed(replay, updates, 0)

    parameters = tf.Variable(layout.initial())
    state = AdamState.zeros(parameters.numpy())

    @tf.function(reduce_retracing=True)
    def step(number, now):
        flat = tf.convert_to_tensor(parameters)
        with tf.GradientTape() as tape:
            tape.watch(flat)
            loss, metrics = term.loss(layout.split(flat), now)
            loss = tf.reduce_sum(loss)
        gradient = tape.gradient(loss, flat)
        adam_step(parameters, gradient, state, number, tf.fill([layout.size], learning_rate))
        return metrics["music/bound"]

    bounds = []
    for index in range(updates):
        now = {name: tf.constant(values[index]) for name, values in feed.items()}
        bounds.append(step(tf.constant(index + 1.0), now).numpy())
    return layout.split(parameters), np.array(bounds)
