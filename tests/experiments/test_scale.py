import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))

import scale


def test_within_a_node_the_network_costs_nothing():
    # 40 reductions of 1 ms after a cycle of 1000 ms
    assert scale.predict(16, 1000.0, 0.0, 1.0) == {"cycle_ms": 1040.0, "reduce_ms": 40.0}


def test_two_nodes_pass_the_networks_on_once_each_way():
    # 2 * 1/2 * 1.12 MB / 1.25 GB/s = 0.896 ms, and 2 messages of 0.03 ms
    found = scale.predict(32, 1000.0, 0.0, 1.0)
    assert found["reduce_ms"] == pytest.approx(40 * (1.0 + 0.896 + 0.06))
    assert found["cycle_ms"] == pytest.approx(1000.0 + found["reduce_ms"])


def test_the_slowest_of_many_sets_the_pace():
    assert scale.slowest(1) == 0.0
    # Blom: the normal quantile of (2 - 0.375) / 2.25 = 0.7222; exact mean of two is 0.5642
    assert scale.slowest(2) == pytest.approx(0.5894, abs=1e-3)
    assert scale.slowest(16) == pytest.approx(1.77, abs=0.01)  # exact 1.766
    assert scale.predict(16, 1000.0, 0.1, 0.0)["cycle_ms"] == pytest.approx(1177, abs=1)


def test_predictions_follow_from_one_and_two_ranks():
    one = {"cycle_ms": 500.0, "cycle_ms_min": 500.0, "cycle_ms_max": 500.0, "reduce_ms": 0.0}
    found = scale.predictions({"1": one, "2": {"reduce_ms": 0.5}})
    # four doublings to 16 ranks, 2 ms a reduction
    assert found["16"] == {"cycle_ms": pytest.approx(580.0), "reduce_ms": pytest.approx(80.0)}
    assert found["256"]["cycle_ms"] > found["64"]["cycle_ms"] > found["16"]["cycle_ms"]
