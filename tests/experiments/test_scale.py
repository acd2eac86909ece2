import pytest

from experiments import scale

STEADY = scale.Model(alone_ms=1000.0, spread=0.0, crowd=1.0, pair_reduce_ms=0.25)


def test_predictions_by_hand_for_one_rank_one_node_two_nodes_and_shared_cores():
    # 40 reductions of 4 rounds of 0.25 ms after a cycle of 1000 ms
    assert scale.predict(STEADY, 16) == {"cycle_ms": 1040.0, "reduce_ms": 40.0}
    crowded = STEADY._replace(crowd=1.5, spread=0.2)
    assert scale.predict(crowded, 1) == {"cycle_ms": 1000.0, "reduce_ms": 0.0}
    # 2 * 1/2 * 1.12 MB / 1.25 GB/s = 0.896 ms, and 2 messages of 0.03 ms
    found = scale.predict(STEADY, 32)
    assert found["reduce_ms"] == pytest.approx(40 * (1.0 + 0.896 + 0.06))
    assert found["cycle_ms"] == pytest.approx(1000.0 + found["reduce_ms"])
    # 4 ranks on 2 cores: 2 * 1000 ms, and 40 reductions of 2 rounds of 0.25 ms
    assert scale.predict(STEADY, 4, cores=2)["cycle_ms"] == pytest.approx(2020.0)


def test_the_slowest_of_many_sets_the_pace():
    assert scale.slowest(1) == 0.0
    # Blom: the normal quantile of (2 - 0.375) / 2.25 = 0.7222; exact mean of two is 0.5642
    assert scale.slowest(2) == pytest.approx(0.5894, abs=1e-3)
    assert scale.slowest(16) == pytest.approx(1.77, abs=0.01)  # exact 1.766
    found = scale.predict(STEADY._replace(spread=0.1, pair_reduce_ms=0.0), 16)
    assert found["cycle_ms"] == pytest.approx(1177, abs=1)


def test_the_fit_passes_through_one_and_two_ranks():
    measured = {
        "1": {"cycle_ms": 500.0, "cycle_ms_each": [490.0, 500.0, 510.0], "reduce_ms": 0.0},
        "2": {"cycle_ms": 600.0, "cycle_ms_each": [600.0], "reduce_ms": 0.5},
    }
    model = scale.fit(measured, cores=2)
    assert (model.alone_ms, model.spread) == (500.0, pytest.approx(0.02))
    assert model.crowd == pytest.approx(580.0 / (500.0 * (1 + 0.02 * scale.slowest(2))))
    assert scale.predict(model, 1)["cycle_ms"] == 500.0
    for cores in (1, 2):
        model = scale.fit(measured, cores)
        assert scale.predict(model, 2, cores)["cycle_ms"] == pytest.approx(600.0)
