import numpy as np
import pytest

from music_tf.losses.prior import effective_skills, learned_prior
from tests.kit.cases import cases


@cases(
    ("chances", "expected"),
    ([0.25, 0.25, 0.25, 0.25], 4.0),
    ([1.0, 0.0], 1.0),
    ([0.5, 0.5, 0.0], 2.0),
    ([0.75, 0.25], np.exp(0.5623351)),
)
def test_the_effective_number_is_that_of_as_many_equal_ones(chances, expected):
    assert effective_skills(chances) == pytest.approx(expected)


def test_the_learned_prior_prefers_what_is_recognised():
    np.testing.assert_allclose(learned_prior(np.log([0.9, 0.9, 0.2])), [0.45, 0.45, 0.1])
    assert learned_prior([-1000.0, -1000.0]).tolist() == [0.5, 0.5]
