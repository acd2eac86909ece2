import math

from experiments import intervals
from tests.kit.cases import cases

INF = math.inf


@cases(
    ("share", "values", "expected"),
    # deviation 0.3536 over sqrt(2), times t(0.975, 1) = 12.706
    (False, [0.5, 1.0], "0.8 ± 3.2"),
    (False, [0.5, 0.5], "0.50"),  # no width: it would say that no other seed could differ
    (False, [0.5], "0.50"),
    (False, [0.5, None], ""),
    (False, [0.5, math.nan], ""),
    (False, [], ""),
    (False, [100.0, 300.0], "200 ± 1271"),  # digits before the point stay
    # two digits of the half: 36.33, 12.77 and 23.57 from -223.03; 31.93 / sqrt(3) times 4.303
    (False, [-186.7, -235.8, -246.6], "-223 ± 79"),
    (False, [10.0, 12.0], "11 ± 13"),
    (False, [1.0, 1.02], "1.01 ± 0.13"),
    (False, [1.0, 1.002], "1.00 ± 0.01"),  # two decimals at most
    (False, [0.0, 1.568], "1 ± 10"),  # 9.96 rounds to 10, which has no decimal
    (False, [-2.5, 1.9], "0 ± 28"),  # -0.3, without the sign
    # 0.5 ± 0.25 reaches neither 0 nor 1
    (True, [0.4, 0.5, 0.6], "0.50 ± 0.25"),
    # 0.9 ± 0.25 would leave them; all of 3: the lower end is 0.025^(1/3)
    (True, [0.8, 0.9, 1.0], "0.90: 3 of 3 seeds (0.29 to 1.00)"),
    (True, [1.0, 1.0], "1.00: 2 of 2 seeds (0.16 to 1.00)"),
    (True, [0.0, 0.0], "0.00: 0 of 2 seeds (0.00 to 0.84)"),
    # of 4 of 5: 5 p^4 (1 - p) + p^5 = 0.025 at 0.2836, and 1 - p^5 = 0.975 at 0.9949
    (True, [1.0] * 4 + [0.0], "0.80: 4 of 5 seeds (0.28 to 0.99)"),
    (True, [0.98, 1.0, 0.99, 0.99, 0.99], "0.99 ± 0.01"),  # whole within the bounds
    (True, [0.5, 0.5], "0.50"),
    (True, [1.0], "1.00"),
)
def test_a_mean_has_its_interval_and_a_share_at_a_bound_counts_of_seeds(share, values, expected):
    assert intervals.mean(values, share=share) == expected


@cases(
    ("times", "digits", "expected"),
    ([40.0, 24.0, 72.0], 0, "3 of 3 seeds: 40 (24 to 72)"),
    ([40.0, INF, 24.0], 0, "2 of 3 seeds: 40 (24 to never)"),
    ([INF, INF, 24.0], 0, "1 of 3 seeds: never (24 to never)"),
    ([INF, INF], 0, "0 of 2 seeds"),
    ([1.25], 1, "1 of 1 seeds: 1.2"),
    ([1.0, None], 0, ""),
)
def test_a_seed_that_never_came_to_a_level_is_later_than_all_others(times, digits, expected):
    assert intervals.arrivals(times, digits) == expected


@cases(
    ("values", "others", "expected"),
    # Variances 0.01 / 3 and 0.04 / 3: an error of 0.1291 with 25 / 8.5 degrees, times 3.219
    ([0.4, 0.5, 0.6], [0.1, 0.3, 0.5], "+0.20 ± 0.42"),
    # Variances 1.2 / 6 on either side: an error of 0.6325 with 10 degrees, times 2.228
    ([4.0, 6.0] * 3, [1.0, 3.0] * 3, "+3.0 ± 1.4"),
    # Variances 40 / 39 / 40 on either side: an error of 0.2265 with 78 degrees, times 1.991
    ([4.0, 6.0] * 20, [1.0, 3.0] * 20, "+3.00 ± 0.45"),
    # Variances 0.5 / 2 and 0: an error of 0.5 with 1 degree, times 12.706
    ([2.5, 3.5], [1.0, 1.0, 1.0], "+2.0 ± 6.4"),
    ([1.0, 1.0], [0.5, 0.5, 0.5], "+0.50"),
    ([0.5], [0.25], "+0.25"),
    ([0.5, None], [0.25, 0.5], ""),
    ([0.5, 1.0], [0.25, math.nan], ""),
)
def test_a_difference_has_its_interval_from_two_runs_of_each_on(values, others, expected):
    assert intervals.difference(values, others) == expected


def test_a_difference_of_shares_at_a_bound_has_counts_of_seeds():
    # 0.5 ± 0.25 and 0.3 ± 0.12 are near no bound: Welch's interval
    within = intervals.difference([0.4, 0.5, 0.6], [0.25, 0.3, 0.35], share=True)
    assert within == "+0.20 ± 0.21"
    # all of n: the lower end is 0.025^(1/n); a seed at one half counts
    beyond = intervals.difference([1.0] * 4 + [0.5], [0.0] * 4 + [0.49], share=True)
    assert beyond == "+0.80 (5 of 5 seeds (0.48 to 1.00); 0 of 5 seeds (0.00 to 0.52))"
