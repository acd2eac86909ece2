"""No loss broadcasts what does not belong together."""

import math

import pytest
import tensorflow as tf

from music_tf.losses import temporal_difference
from music_tf.losses.discriminator import skill_hits, skill_log_likelihood
from music_tf.losses.mutual_information import donsker_varadhan, pair_bound
from music_tf.losses.neighbours import kth_nearest
from music_tf.losses.policy import deterministic_policy_loss, entropy_loss, entropy_reward
from tests.kit.cases import cases


@cases(
    ("loss", "shapes", "more"),
    (donsker_varadhan, ([2, 5], [2, 1], [2, 5]), ()),
    (donsker_varadhan, ([2, 5], [2, 5], [5]), ()),
    (pair_bound, ([2, 2, 3, 4], [1]), (False,)),
    (deterministic_policy_loss, ([1, 3], [1, 2, 4]), (1.0,)),
    (entropy_reward, ([3],), (0.02, (-1.0, 0.0), True)),
    (entropy_loss, ([1, 3], [3]), ()),
    (skill_log_likelihood, ([4, 3], [4, 1]), ()),
    (skill_hits, ([4, 3], [4, 1]), ()),
    (temporal_difference.td_target, ([2, 3], [2, 3], [2, 3]), ((-math.inf, math.inf),)),
    (temporal_difference.td_target, ([2, 3], [2, 1], [1, 2, 3]), ((-math.inf, math.inf),)),
    (temporal_difference.critic_loss, ([1, 2, 3], [2, 1]), ()),
    (temporal_difference.half_mean_critic_loss, ([1, 2, 3], [2, 1]), ()),
    (temporal_difference.value_target, ([1, 2, 3], [2, 1], []), ()),
    (kth_nearest, ([2, 5, 3], [1, 7, 3]), (2,)),
    (kth_nearest, ([2, 5, 3], [2, 7, 1]), (2,)),
    (kth_nearest, ([5, 3], [7, 3]), (2,)),
)
def test_shapes_that_would_broadcast_are_refused(loss, shapes, more):
    with pytest.raises(ValueError, match=r"incompatible|shape|rank"):
        loss(*map(tf.zeros, shapes), *more)
