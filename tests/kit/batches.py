"""Random minibatches and weights for learners of any configuration."""

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch
from music_tf.networks.parameters import Layout

WORKERS, ROWS, INPUTS, ACTIONS = 2, 5, 6, 3


def random(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


def gradients(function, *values, upstream=None):
    variables = [tf.Variable(value, dtype=tf.float32) for value in values]
    with tf.GradientTape() as tape:
        found = function(*map(tf.identity, variables))
    return found, tape.gradient(found, variables, output_gradients=upstream)


class Case:  # a learner with random weights, other target weights and a batch
    def __init__(self, learner, seed=0):
        self.learner = learner
        self.layout = Layout(learner.networks)
        self.targets_layout = Layout(learner.target_networks)
        generator = np.random.default_rng(seed)
        initial = self.layout.initial()
        self.flat = tf.Variable(initial + 0.05 * generator.normal(size=initial.shape).astype("f4"))
        slow = initial[self.layout.span([network.name for network in learner.target_networks])]
        self.target_flat = tf.Variable(slow + 0.05 * generator.normal(size=slow.size).astype("f4"))
        discount = np.full([WORKERS, ROWS], 0.9, np.float32)
        discount[0, 1] = 0.0
        self.batch = Batch(
            inputs=random(WORKERS, ROWS, INPUTS, seed=seed),
            next_inputs=random(WORKERS, ROWS, INPUTS, seed=seed + 1),
            action=tf.tanh(random(WORKERS, ROWS, ACTIONS, seed=seed + 2)),
            reward=random(WORKERS, ROWS, seed=seed + 3),
            discount=tf.constant(discount),
            truncated=tf.constant([[False] * 4 + [True], [True] + [False] * 4]),
        )
        self.noise = {
            "policy": random(WORKERS, ROWS, ACTIONS, seed=seed + 9),
            "next_policy": random(WORKERS, ROWS, ACTIONS, seed=seed + 10),
        }

    def losses(self, entropy_weight=0.5):
        weight = tf.constant(entropy_weight)
        return self.learner.losses(self.weights, self.targets, self.batch, self.noise, weight)

    @property
    def weights(self):
        return self.layout.split(tf.identity(self.flat))

    @property
    def targets(self):
        return self.targets_layout.split(tf.identity(self.target_flat))

    def gradients(self, **changes):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(self.losses(**changes).total)
        on_flat, on_targets = tape.gradient(total, [self.flat, self.target_flat])
        return self.by_network(on_flat), on_targets

    def gradient_of(self, function):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(function(self.weights))
        return self.by_network(tape.gradient(value, self.flat))

    def by_network(self, flat):
        pieces = self.layout.split(tf.convert_to_tensor(flat))
        return {
            name: np.concatenate([np.ravel(piece) for piece in parts])
            for name, parts in pieces.items()
        }

    def network(self, name):
        return next(network for network in self.learner.networks if network.name == name)

    def critic_loss(self, target, weights=None):
        """Mean squared errors [W] to a target [W, B], summed over the critics."""
        q = self.q(weights or self.weights, self.batch.inputs, self.batch.action)
        return tf.reduce_sum(tf.reduce_mean(tf.square(target - q), axis=2), axis=0)

    def q(self, weights, inputs, action):
        names = [name for name in weights if name.startswith("critic")]
        rows = tf.reshape(tf.concat([inputs, action], -1), [-1, INPUTS + ACTIONS])
        return tf.stack(
            [tf.reshape(self.network(n)(weights[n], rows), [WORKERS, ROWS]) for n in names]
        )
