import math
import pathlib
import sys

import pytest
from scipy import stats

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "experiments"))
import cells


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 1.0], "0.75 (0.50, 1.00)"),
        ([0.5, None, 1.0], "0.75 (0.50, -, 1.00)"),
        ([0.5, math.nan], "0.50 (0.50, -)"),
        ([0.5], "0.50"),
        ([None, math.nan], ""),
        ([], ""),
    ],
)
def test_a_seed_without_a_value_is_a_dash_in_its_place(values, expected):
    assert cells.each_seed(values) == expected


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        # Squares 0.02 over 1 degree of freedom, times 1 + 1/2: an error of 0.1732, times 12.706
        ([0.5], [0.1, 0.3], "+0.30 ± 2.20"),
        # Squares 2 * 0.1^2 + 2 * 0.2^2 = 0.1 over 4, times 2/3: an error of 0.1291, times 2.776
        ([0.4, 0.5, 0.6], [0.1, 0.3, 0.5], "+0.20 ± 0.36"),
        # Squares 12 over 10, times 2/6: an error of 0.6325, times 2.228
        ([4.0, 6.0] * 3, [1.0, 3.0] * 3, "+3.00 ± 1.41"),
        # Squares 80 over 78, times 2/40: an error of 0.2265, times 2.042 of 30
        ([4.0, 6.0] * 20, [1.0, 3.0] * 20, "+3.00 ± 0.46"),
        ([0.5], [0.25], "+0.25"),
        ([0.5, None], [0.25, 0.5], ""),
        ([0.5, 1.0], [0.25, math.nan], ""),
    ],
)
def test_a_difference_has_its_interval_from_three_runs_on(values, others, expected):
    assert cells.difference(values, others) == expected


def test_the_quantiles_are_those_of_student():
    freedoms = range(1, len(cells.STUDENT) + 1)
    expected = stats.t.ppf(0.975, freedoms)
    assert list(cells.STUDENT) == [pytest.approx(quantile, abs=5e-4) for quantile in expected]
    assert len(cells.STUDENT) == 30
    assert cells.STUDENT[-1] < 1.042 * stats.norm.ppf(0.975)  # as `difference` says of more
