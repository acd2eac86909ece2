import json
from pathlib import Path
from typing import ClassVar

import pytest

from experiments import scale

ACTORS = Path(scale.__file__).parent / "results/actors.json"
STEADY = scale.Model(alone_ms=1000.0, spread=0.0, crowd=1.0, pair_reduce_ms=0.25)


def test_within_a_node_the_network_costs_nothing():
    # 40 reductions of 4 rounds of 0.25 ms after a cycle of 1000 ms
    assert scale.predict(STEADY, 16) == {"cycle_ms": 1040.0, "reduce_ms": 40.0}


def test_one_rank_neither_reduces_nor_waits():
    crowded = STEADY._replace(crowd=1.5, spread=0.2)
    assert scale.predict(crowded, 1) == {"cycle_ms": 1000.0, "reduce_ms": 0.0}


def test_two_nodes_pass_the_networks_on_once_each_way():
    # 2 * 1/2 * 1.12 MB / 1.25 GB/s = 0.896 ms, and 2 messages of 0.03 ms
    found = scale.predict(STEADY, 32)
    assert found["reduce_ms"] == pytest.approx(40 * (1.0 + 0.896 + 0.06))
    assert found["cycle_ms"] == pytest.approx(1000.0 + found["reduce_ms"])


def test_the_slowest_of_many_sets_the_pace():
    assert scale.slowest(1) == 0.0
    # Blom: the normal quantile of (2 - 0.375) / 2.25 = 0.7222; exact mean of two is 0.5642
    assert scale.slowest(2) == pytest.approx(0.5894, abs=1e-3)
    assert scale.slowest(16) == pytest.approx(1.77, abs=0.01)  # exact 1.766
    found = scale.predict(STEADY._replace(spread=0.1, pair_reduce_ms=0.0), 16)
    assert found["cycle_ms"] == pytest.approx(1177, abs=1)


def test_ranks_that_share_a_core_take_turns():
    # 4 ranks on 2 cores: 2 * 1000 ms, and 40 reductions of 2 rounds of 0.25 ms
    assert scale.predict(STEADY, 4, cores=2)["cycle_ms"] == pytest.approx(2020.0)


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


def test_with_a_lag_a_cycle_takes_as_long_as_the_slower_side():
    steady = scale.Cycle(acting=100.0, spread=0.0, learning=30.0, messages=2.0)
    for lag, expected in ((0, 132.0), (1, 102.0)):
        assert steady.predicted(4, lag) == steady.simulated(4, lag) == pytest.approx(expected)
    assert steady._replace(learning=150.0).simulated(4, 1) == pytest.approx(152.0)


def test_the_simulation_waits_for_the_slowest_of_all_actors_in_each_cycle():
    # the largest of 4 standard normal numbers is 1.0294 in the mean
    scattered = scale.Cycle(acting=100.0, spread=0.1, learning=30.0, messages=0.0)
    assert scattered.simulated(4, 0) == pytest.approx(140.3, abs=0.3)
    assert scattered.predicted(4, 0) == pytest.approx(140.5, abs=0.3)  # by Blom's quantile
    # where both sides take as long, the closed form leaves out how often the learner is the slower
    even = scattered._replace(learning=110.3)
    assert even.simulated(4, 1) > even.predicted(4, 1) + 1.0


def test_sixteen_workers_of_music_are_what_the_page_says_they_are():
    # 40 updates of 0.322 ms + 4096 rows * 0.206 us, and 16 times 3 ms
    assert scale.Cycle.of_music(16).learning == pytest.approx(40 * (0.322 + 0.844) + 48.0, abs=0.1)


def test_stored_models_are_those_of_today():
    stored = json.loads(ACTORS.read_text())
    for actors, found in stored["ddpg_music on FetchPush, modelled"].items():
        cycle = scale.Cycle.of_music(int(actors))
        for lag in (0, 1):
            expected = cycle.predicted(int(actors), lag)
            assert found[f"lag {lag}"]["predicted_ms"] == pytest.approx(expected)


def test_each_topology_trains_on_one_host_and_on_both_in_turn(monkeypatch):
    class TwoHosts:
        listed = ()
        slowed = None
        variables: ClassVar = {"of": "hosts"}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def slow(self, rate):
            self.slowed = rate

        def launch(self, *program):
            assert self.slowed == "1gbit"
            return self.listed

    def cycle_ms(launch, words, workers, quick, variables):
        assert (workers, quick, variables) == (2, True, {"of": "hosts"})
        ran.append((*launch, *words))
        return float(len(ran))

    ran = []
    monkeypatch.setattr(scale, "Hosts", TwoHosts)
    monkeypatch.setattr(scale, "cycle_ms", cycle_ms)
    found = scale.over_a_network(3, quick=True)
    assert (
        ran[:4]
        == ran[4:8]
        == [
            ("--hosts", "node1:3", "--threads", "1", "--learners", "1"),
            ("--hosts", "node1:2,node2:1", "--threads", "1", "--learners", "1"),
            ("--hosts", "node1:2", "--threads", "1"),
            ("--hosts", "node1:1,node2:1", "--threads", "1"),
        ]
    )
    assert found["cycle_ms_each"]["learner, 2 actors"]["both"] == [2.0, 6.0, 10.0]
    assert found["cycle_ms"]["2 equal ranks"] == {"one host": 7.0, "both": 8.0}
