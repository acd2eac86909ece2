"""Reward terms without an environment: what they are built with, see and learn."""

import numpy as np
import tensorflow as tf

from music_tf.config.settings import ReplayConfig
from music_tf.envs.registry import EnvironmentInfo
from music_tf.intrinsic.base import TermContext
from music_tf.networks.parameters import Layout
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.training.adam import AdamState, adam_step
from music_tf.types import EnvSpec, Transition
from tests.kit.episodes import SPEC, STEPS, goal_reward


def context(split=None, columns=(), skills=1, scale=None, seed=0, same=(), **info):
    """What a term is built with; `scale` is what measuring its inputs would give.

    Columns in `same` never change.
    """
    return TermContext(
        spec=EnvSpec(
            env_id="made-up",
            observation_dim=25,
            goal_dim=3,
            action_dim=4,
            max_episode_steps=50,
            split=split,
        ),
        info=EnvironmentInfo(descriptor=tuple(columns), **info),
        seed=seed,
        skills=skills,
        measure=lambda measured: scale,
        constant=lambda measured: np.isin(measured.columns, same),
    )


def made_transition(**fields):  # a minibatch that has these fields and nothing else
    return Transition(*[None] * len(Transition._fields))._replace(**fields)


def transitions(before, after):  # transitions between observations [W, B, O]
    return made_transition(
        observation=tf.constant(before, tf.float32), next_observation=tf.constant(after, tf.float32)
    )


def filled_replay(*episodes, batch_size=64):
    """A replay with a worker for the made-up episodes of each argument, which it keeps."""
    shards = {}
    for worker, played in enumerate(episodes):
        config = ReplayConfig(capacity=len(played.length) * STEPS)
        shards[worker] = Shard(SPEC, played.skill.shape[-1], config)
        shards[worker].add(played, np.random.default_rng(0))
    return ReplayBuffer(shards, ReplayConfig(batch_size=batch_size), goal_reward, 0.9, seed=1)


def first_update(values):  # what the first of some updates gets, as tensors
    return tf.nest.map_structure(lambda array: tf.constant(array[0]), values)


def weights_of(term, seed=None):  # its initial weights, or random ones
    layout = Layout(term.networks)
    flat = layout.initial()
    if seed is not None:
        flat = np.random.default_rng(seed).normal(size=flat.shape).astype(np.float32)
    return layout.split(tf.constant(flat))


def train(term, replay, updates):
    """Takes Adam steps and returns the weights and the losses [W] of each update."""
    layout = Layout(term.networks)
    feed = term.feed(replay, updates, 0)
    parameters, rate = tf.Variable(layout.initial()), layout.learning_rates()
    state = AdamState.zeros(layout.initial())

    @tf.function(reduce_retracing=True)
    def step(number, now):
        with tf.GradientTape() as tape:
            loss, _ = term.loss(layout.split(tf.identity(parameters)), now)
            total = tf.reduce_sum(loss)
        adam_step(parameters, tape.gradient(total, parameters), state, number, rate)
        return loss

    losses = []
    for index in range(updates):
        now = {name: tf.constant(values[index]) for name, values in feed.items()}
        losses.append(step(tf.constant(index + 1.0), now).numpy())
    return layout.split(tf.convert_to_tensor(parameters)), np.array(losses)


def gradient_of(term, function):
    """The gradient of a function of its weights at the initial ones; None where none passes."""
    layout = Layout(term.networks)
    flat = tf.Variable(layout.initial())
    with tf.GradientTape() as tape:
        value = function(layout.split(tf.identity(flat)))
    return tape.gradient(value, flat)


def gradient_of_reward(term, batch, feed):
    return gradient_of(term, lambda weights: term.reward(weights, batch, feed))


def gradient_of_loss(term, feed):  # of the mean over workers
    return gradient_of(term, lambda weights: tf.reduce_mean(term.loss(weights, feed)[0]))
