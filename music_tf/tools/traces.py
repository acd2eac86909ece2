"""What the learned rewards pay along episodes, for pictures of them."""

from typing import NamedTuple

import tensorflow as tf

from music_tf.replay.buffer import all_transitions
from music_tf.training.trainer import Trainer
from music_tf.types import Array, Episodes


class Trace(NamedTuple):
    """One reward along episodes."""

    name: str
    values: Array  # [E, T]
    lowest: float
    """What it can be at worst, infinite where nothing bounds it."""
    highest: float
    """What it can be at best."""


def reward_traces(trainer: Trainer, played: Episodes) -> list[Trace]:
    """Returns what each learned reward pays for each step; padding beyond an episode's length too.

    Scaled, clipped and shifted as in training, but at full weight, and with swapped negatives
    where training leaves them to a coin.
    """
    weights = trainer.update.weights()
    steps = tf.nest.map_structure(tf.convert_to_tensor, all_transitions(played))
    traces = []
    for term in trainer.terms:
        if term.networks:
            raw = term.reward(weights, steps, term.steady_feed(len(played.length)))
            paid = term.mixing(raw, tf.constant(1.0)).numpy()
            traces.append(Trace(term.name, paid, *term.mixing.range))
    return traces
