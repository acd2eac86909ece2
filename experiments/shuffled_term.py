"""The reward of `shuffled.py`."""

import numpy as np

from music_tf.intrinsic.skill import Skill
from music_tf.randomness import stream
from music_tf.replay.buffer import ReplayBuffer


class Shuffled(Skill):
    """Log q of a discriminator that learns from skills in another order."""

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Samples states, each beside the skill of another one."""
        feed = super().feed(replay, updates, cycle)
        others = stream(0, "shuffled skills", 0, cycle).permutation(feed["skill"], axis=2)
        return feed | {"skill": others}
