import math

from experiments import intervals
from tests.kit.cases import cases

INF = math.inf


@cases(
    ("values", "expected"),
    # deviation 0.3536 over sqrt(2), times t(0.975, 1) = 12.706
    ([0.5, 1.0], "0.75 ± 3.18"),
    ([0.5, 0.5], "0.50"),  # no width: it would say that no other seed could differ
    ([0.5], "0.50"),
    ([0.5, None], ""),
    ([0.5, math.nan], ""),
    ([None], ""),
    ([], ""),
    ([100.0, 300.0], "200 ± 1271"),
)
def test_a_mean_has_its_interval_and_is_blank_where_a_seed_lacks_its_value(values, expected):
    assert intervals.mean(values) == expected


@cases(
    ("shares", "expected"),
    # 0.5 ± 0.25 reaches neither 0 nor 1
    ([0.4, 0.5, 0.6], "0.50 ± 0.25"),
    # 0.9 ± 0.25 would leave them; all of 3: the lower end is 0.025^(1/3)
    ([0.8, 0.9, 1.0], "0.90: 3 of 3 seeds (0.29 to 1.00)"),
    ([1.0, 1.0], "1.00: 2 of 2 seeds (0.16 to 1.00)"),
    ([0.0, 0.0], "0.00: 0 of 2 seeds (0.00 to 0.84)"),
    ([1.0], "1.00"),
)
def test_a_share_at_a_bound_has_counts_of_seeds_in_place_of_an_interval(shares, expected):
    assert intervals.mean(shares, share=True) == expected


@cases(
    ("times", "digits", "expected"),
    ([40.0, 24.0, 72.0], 0, "3 of 3 seeds: 40 (24 to 72)"),
    ([40.0, INF, 24.0], 0, "2 of 3 seeds: 40 (24 to never)"),
    ([INF, INF, 24.0], 0, "1 of 3 seeds: never (24 to never)"),
    ([INF, INF], 0, "0 of 2 seeds"),
    ([1.25], 1, "1 of 1 seeds: 1.2"),
    ([1.0, None], 0, ""),
    ([None], 0, ""),
)
def test_a_seed_that_never_came_to_a_level_is_later_than_all_others(times, digits, expected):
    assert intervals.arrivals(times, digits) == expected


def test_the_least_share_stands_beside_the_mean():
    assert intervals.with_least([1.0, 0.5]) == "0.75 (least 0.50)"
    assert (intervals.with_least([1.0, None]), intervals.with_least([])) == ("", "")


@cases(
    ("values", "others", "expected"),
    # Variances 0.01 / 3 and 0.04 / 3: an error of 0.1291 with 25 / 8.5 degrees, times 3.219
    ([0.4, 0.5, 0.6], [0.1, 0.3, 0.5], "+0.20 ± 0.42"),
    # Variances 1.2 / 6 on either side: an error of 0.6325 with 10 degrees, times 2.228
    ([4.0, 6.0] * 3, [1.0, 3.0] * 3, "+3.00 ± 1.41"),
    # Variances 40 / 39 / 40 on either side: an error of 0.2265 with 78 degrees, times 1.991
    ([4.0, 6.0] * 20, [1.0, 3.0] * 20, "+3.00 ± 0.45"),
    # Variances 0.5 / 2 and 0: an error of 0.5 with 1 degree, times 12.706
    ([2.5, 3.5], [1.0, 1.0, 1.0], "+2.00 ± 6.35"),
    ([1.0, 1.0], [0.5, 0.5, 0.5], "+0.50"),
    ([0.5], [0.1, 0.3], "+0.30"),
    ([0.5], [0.25], "+0.25"),
    ([0.5, None], [0.25, 0.5], ""),
    ([0.5, 1.0], [0.25, math.nan], ""),
)
def test_a_difference_has_its_interval_from_two_runs_of_each_on(values, others, expected):
    assert intervals.difference(values, others) == expected


@cases(
    ("values", "others", "expected"),
    # No bound is near: 0.5 ± 0.25 and 0.3 ± 0.12 by t, so the interval is Welch's
    ([0.4, 0.5, 0.6], [0.25, 0.3, 0.35], "+0.20 ± 0.21"),
    # 0.9 ± 0.25 is over 1; 0.025^(1/3) = 0.29 and 0.025^(1/4) = 0.40
    (
        [0.8, 0.9, 1.0],
        [0.5, 0.6, 0.7, 0.6],
        "+0.30 (3 of 3 seeds (0.29 to 1.00); 4 of 4 seeds (0.40 to 1.00))",
    ),
    # 0.025^(1/5) = 0.478 and its complement; a seed at one half counts
    (
        [1.0] * 4 + [0.5],
        [0.0] * 4 + [0.49],
        "+0.80 (5 of 5 seeds (0.48 to 1.00); 0 of 5 seeds (0.00 to 0.52))",
    ),
    ([0.7, 0.7], [0.2, 0.2], "+0.50"),
    ([1.0], [0.5, 0.5], "+0.50"),
)
def test_a_difference_of_shares_at_a_bound_has_counts_of_seeds(values, others, expected):
    assert intervals.difference(values, others, share=True) == expected


@cases(
    ("count", "seeds", "expected"),
    # all of n: the lower end is 0.025^(1/n)
    (3, 3, "3 of 3 seeds (0.29 to 1.00)"),
    (10, 10, "10 of 10 seeds (0.69 to 1.00)"),
    (0, 5, "0 of 5 seeds (0.00 to 0.52)"),
    # of 4 of 5: 5 p^4 (1 - p) + p^5 = 0.025 at 0.2836, and 1 - p^5 = 0.975 at 0.9949
    (4, 5, "4 of 5 seeds (0.28 to 0.99)"),
)
def test_the_exact_interval_of_a_share_of_seeds_stays_within_its_bounds(count, seeds, expected):
    assert intervals.counted([1.0] * count + [0.0] * (seeds - count)) == expected


@cases(
    ("shares", "expected"),
    ([0.4, 0.5, 0.6], False),
    ([0.8, 0.9, 1.0], True),  # 0.9 ± 0.25
    ([0.98, 1.0, 0.99, 0.99, 0.99], False),  # 0.99 ± 0.009
    ([0.0, 0.0, 0.1], True),
    ([1.0, 1.0], True),
    ([0.5, 0.5], False),
)
def test_a_mean_whose_interval_leaves_the_shares_is_at_a_bound(shares, expected):
    assert intervals.at_a_bound(shares) is expected
