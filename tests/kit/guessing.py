"""A reward of one's own that learns: its network guesses the first component of a state."""

import dataclasses
from typing import ClassVar

import keras
import tensorflow as tf

from music_tf.config.terms import TermConfig
from music_tf.intrinsic.base import RewardTerm
from music_tf.networks.models import plain
from music_tf.networks.parameters import Network
from music_tf.randomness import stream
from music_tf.recipes.tasks import ddpg
from tests.kit.drawn import sample_transitions


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuessConfig(TermConfig):
    """Pays what its network says of a state."""

    name: ClassVar[str] = "guess"
    term: ClassVar[str] = "tests.kit.guessing:Guess"
    networks: ClassVar[tuple[str, ...]] = ("guesser",)


class Guess(RewardTerm):  # pays what its network says of a state
    def __init__(self, config, context):
        super().__init__(config, context)
        seed = stream(context.seed, "initial weights/guesser")
        model: keras.Model = plain(context.spec.observation_dim, 1, "logits", (8,), seed)
        self.networks = [Network("guesser", model, 1e-3)]
        self.inputs = {"guesser": {"of": "the state after"}}

    def reward(self, weights, batch, feed):
        return tf.stop_gradient(self._guess(weights, batch.next_observation))

    def feed(self, replay, updates, cycle):
        return {"state": sample_transitions(replay, updates, cycle, "guess").observation}

    def loss(self, weights, feed):
        error = self._guess(weights, feed["state"]) - feed["state"][..., 0]
        return tf.reduce_sum(tf.reduce_mean(error**2, axis=1)), {}

    def _guess(self, weights, state):
        flat = tf.reshape(state, [-1, state.shape[-1]])
        return tf.reshape(self.networks[0](weights["guesser"], flat), tf.shape(state)[:-1])


def guessing(preset, env_id):
    """DDPG that is paid for guesses."""
    return dataclasses.replace(ddpg(preset, env_id), rewards={"guess": GuessConfig()})
