import numpy as np
import pytest

from music_tf.measures import skills as measures
from music_tf.measures.skills import (
    Track,
    coverage,
    diversity_returns,
    end_distances,
    hausdorff_distances,
    named_shares,
    separation,
)
from music_tf.types import kept_steps

LOGITS = np.array([2.0, 0.0, -1.0])
LOG_Q = LOGITS - np.log(np.exp(LOGITS).sum())
"""(-0.169846, -2.169846, -3.169846): of three skills the first is by far the likeliest."""
TWO = np.stack([[LOG_Q, LOG_Q], [LOG_Q, LOG_Q[::-1]]])  # [E, T, K]
LINE = np.float32([[0, 0], [1, 0], [2, 0]])


def test_a_diversity_return_subtracts_the_prior_up_to_the_logarithm_of_the_skills():
    one, other = 0.928766, -2.071234
    for skill, length, expected in (
        ((0, 0), (2, 2), (2 * one, one + other)),
        ((0, 2), (1, 2), (one, other + one)),
        ((2, 0), (2, 1), (2 * other, one)),
    ):
        found = diversity_returns(TWO, np.array(skill), np.array(length))
        np.testing.assert_allclose(found, expected, atol=1e-5)
    certain = np.log(np.array([[[1.0, 1e-30, 1e-30, 1e-30]] * 5]))
    assert diversity_returns(certain, np.array([0]), np.array([5])) == pytest.approx(5 * np.log(4))
    guess = np.full([1, 5, 4], -np.log(4))
    assert diversity_returns(guess, np.array([3]), np.array([5])) == pytest.approx(0.0)


def test_a_row_of_the_matrix_counts_what_each_skill_was_named_until_the_first_end():
    assert kept_steps(np.array([1, 3]), 3).tolist() == [[True, False, False], [True, True, True]]
    assert named_shares(TWO, np.array([2, 2])).tolist() == [0.75, 0.0, 0.25]
    assert named_shares(TWO, np.array([2, 1])).tolist() == [1.0, 0.0, 0.0]


def test_ends_are_apart_by_the_distance_of_their_means():
    ends = np.array([[[0.0, 0.0], [2.0, 0.0]], [[1.0, 4.0], [1.0, 4.0]]])
    assert end_distances(ends).tolist() == [[0.0, 4.0], [4.0, 0.0]]


def test_hausdorff_is_the_furthest_place_from_the_other_skill_however_it_is_computed(monkeypatch):
    # (2, 0) is 2 from (0, 0) and sqrt(4 + 9) from (0, 3); (0, 3) is 3 from the line
    corner = np.float32([[0, 0], [0, 3]])
    found = hausdorff_distances([LINE, corner, LINE[::-1]])
    np.testing.assert_allclose(found, [[0, 3, 0], [3, 0, 3], [0, 3, 0]])
    np.testing.assert_allclose(hausdorff_distances([np.float32([[0, 0], [7, 0]]), corner])[0, 1], 7)
    random = np.random.default_rng(0)
    paths = [random.standard_normal([size, 3]).astype(np.float32) for size in (30, 17, 50)]
    expected, covered = hausdorff_distances(paths), coverage(paths[2])
    monkeypatch.setattr(measures, "_TOGETHER", 60)
    np.testing.assert_array_equal(hausdorff_distances(paths), expected)
    assert coverage(paths[2]) == covered


RIGHT = np.float32([[[0], [1], [3]], [[0], [2], [9]]])
"""What a skill sees along two episodes; the second one ends after a step, at 2."""
LEFT = np.float32([[[0], [-1], [-2]], [[0], [-1], [-2]]])
ENDS = (np.array([2, 1]), np.array([2, 2]))


def test_skills_are_apart_by_all_that_counts_of_their_episodes():
    found = separation([*map(Track, [RIGHT, LEFT], ENDS)])
    # 3 is 3 from the start of the other, and -2 is 2 from it
    np.testing.assert_array_equal(found.hausdorff, [[0, 3], [3, 0]])
    np.testing.assert_array_equal(found.spreads, [1, 0])  # 3 and 2; -2 twice
    # 0, 1, 2, 3, -1 and -2 have been visited; the third nearest of each is so far away
    assert found.coverage == pytest.approx(np.log(np.mean([2, 2, 2, 3, 2, 3])))


def test_three_skills_have_a_nearest_one_each_and_a_single_one_is_apart_from_nothing():
    third = Track(np.float32([[[0], [10], [11]]] * 2), ENDS[1])
    found = separation([*map(Track, [RIGHT, LEFT], ENDS), third])
    np.testing.assert_array_equal(found.nearest, [3, 3, 8])
    told = found.metrics()
    assert told["skill/hausdorff_mean"] == pytest.approx((3 + 8 + 11) / 3)
    assert (told["skill/hausdorff_min"], told["skill/spread"]) == (3.0, pytest.approx(1 / 3))
    assert told["disk/coverage"] == found.coverage
    assert sorted(separation([Track(LEFT, ENDS[1])]).metrics()) == ["disk/coverage", "skill/spread"]


@pytest.mark.parametrize(("skills", "each"), [(2, 1000), (50, 200)])
def test_of_very_many_places_some_are_compared(skills, each, monkeypatch):
    sizes = []

    def counted(paths):
        sizes.extend(len(path) for path in paths)
        return np.zeros([len(paths)] * 2)

    monkeypatch.setattr(measures, "hausdorff_distances", counted)
    line = np.arange(1500, dtype=np.float32)[None, :, None]
    separation([Track(line, np.array([1499]))] * skills)
    assert sizes == [each] * skills


def test_many_columns_are_as_far_apart_as_few(monkeypatch):
    random = np.random.default_rng(2)
    seen = [1000 + random.standard_normal([2, 20, 9]).astype(np.float32) for _ in range(3)]
    tracks = [Track(one, np.array([19, 7])) for one in seen]
    products = separation(tracks)
    monkeypatch.setattr(measures, "_FEW_COLUMNS", 9)
    columns = separation(tracks)
    np.testing.assert_allclose(products.hausdorff, columns.hausdorff, rtol=1e-6, atol=1e-6)
    assert products.coverage == pytest.approx(columns.coverage, rel=1e-6)


def test_coverage_is_the_log_of_the_mean_distance_to_the_third_nearest_place():
    # places 0, 1, 2, 4 in a row: the third nearest other is 4, 3, 2, 4 away
    places = np.float32([[0], [1], [2], [4], [1], [1]])
    assert coverage(places) == pytest.approx(np.log((4 + 3 + 2 + 4) / 4))
    assert coverage(np.repeat(places[:2], 9, axis=0)) == pytest.approx(np.log(1e-6))
    places = np.random.default_rng(1).standard_normal([100, 2]).astype(np.float32)
    assert coverage(2 * places) - coverage(places) == pytest.approx(np.log(2), abs=1e-6)
