import math

import numpy as np
import tensorflow as tf

from music_tf.losses.discriminator import gaussian_log_likelihood


def test_the_log_deviation_of_a_continuous_skill_lies_between_minus_five_and_two():
    outputs = tf.constant([[0.3, -9.0], [0.3, 0.0], [0.3, 9.0]])
    at_the_mean = gaussian_log_likelihood(outputs, tf.fill([3, 1], 0.3))
    log_deviations = -at_the_mean - 0.5 * math.log(2.0 * math.pi)
    np.testing.assert_allclose(log_deviations, [-5.0, -1.5, 2.0], atol=1e-5)
