from music_tf.training.counters import EpochLog


def test_an_epoch_has_means_extremes_and_deviations_over_all_its_cycles():
    low, high = "reward/a_min", "reward/a_max"
    cycles = [{"a": 1.0, low: 3.0, high: 1.0}, {"a": 2.0, low: 1.0, high: 5.0}]
    expected = {"a": 1.5, low: 1.0, high: 5.0, "b": 4.0}
    assert EpochLog(totals=[*cycles, {"b": 4.0}]).averages() == expected
    # of 1 and 3: the mean of squares 5 less the square of the mean 4
    log = EpochLog(totals=[{"r_mean": n, "r_square": n * n} for n in (1.0, 3.0)])
    assert log.averages() == {"r_mean": 2.0, "r_std": 1.0}


def test_a_term_may_call_its_means_as_it_likes():
    mine = ("mine/error_square", "mine/error_max", "mine/error_min")
    log = EpochLog(totals=[dict.fromkeys(mine, 1.0), dict.fromkeys(mine, 3.0)])
    assert log.averages() == dict.fromkeys(mine, 2.0)
