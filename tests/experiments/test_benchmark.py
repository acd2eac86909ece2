import json
import re
import sys

import pytest

from experiments import benchmark
from tests.kit.cases import cases
from tests.kit.jobs import environment
from tests.kit.started import ended

PEAK = 70.320128e9
MEASURED = {
    "simulation": dict(env_steps_per_s=800.0, gymnasium_steps_per_s=400.0, mj_step_per_s=1000.0),
    "update_1t": dict(updates_per_s=50.0, peak_flop_per_s=PEAK),
    "update_2t": dict(updates_per_s=50.0, peak_flop_per_s=2 * PEAK),
    "critics": {"two_ms": 10.0, "normalized_ms": 12.5, "five_ms": 18.0},
    "meta": {"updates_per_s": 100.0, "peak_flop_per_s": 166.8530176e9},
    "our_sac": {"updates_per_s": 90.0},
    "their_sac": {"updates_per_s": 30.0},
    "our_ddpg": {"updates_per_s": 100.0},
    "their_ddpg": {"updates_per_s": 40.0},
    "music": {"mi_update_ms": 3.0, "pair_update_ms": 16.0},
    "feeding": {"ddpg_her_ms": 3.5, "ddpg_music_ms": 9.0},
    "neighbours": {"k3_ms": 1.0, "k5_ms": 1.7},
    "one_by_one": {"seconds": 40.0},
    "ranks": {"cycle_s": 1.0, "mpi_share": 0.05, "ranks": 2},
    "guards": {"guarded_s": 1.01, "unguarded_s": 1.0, "ratio": 1.01, "ranks": 2},
    "help": {"seconds": 0.1},
    "first_step": {"seconds": 4.0},
    "memory": {"mb": 500.0},
}
WORTH = {
    "env_fetch_vs_gymnasium": 2.0,
    "env_fetch_vs_mjstep": 0.8,
    "update_vs_peak_1t": 0.5,  # 50 updates of 0.70320128 GFLOP, of 70.320128 GFLOP/s
    "update_vs_peak_2t": 0.25,
    "meta_update_vs_peak_1t": 0.5,  # 100 updates of 0.834265088 GFLOP
    "layer_norm_vs_two_1t": 1.25,
    "five_critics_vs_two_1t": 1.8,
    "update_vs_sb3_sac": 3.0,
    "update_vs_sb3_ddpg": 2.5,
    "cycle_vs_limit_np2": 2.0,  # 100 / 1000 s of physics and 40 / 100 s of products
}


@cases(
    ("sizes", "flop"),
    # Actor 1-1-1: 2, critic 2-1-1: 3. Target 2 + 3; value loss 3, its weights 3, inputs of its
    # second layer 1; policy loss 2 + 3, back through the critic 1 + 1; actor's weights 2,
    # inputs 1.
    ({"inputs": 1, "actions": 1, "hidden": [1], "batch": 1}, 2 * 22),
    # Per row: actor 29*256 + 2*256*256 + 256*4 = 139520, critic 33*256 + 2*256*256 + 256 =
    # 139776; 3 actors + 132096 without its first layer + 4 critics + 2 * 131328 + 4*256.
    ({}, 2 * 256 * 1_373_440),
)
def test_an_update_takes_the_products_of_its_layers(sizes, flop):
    assert benchmark.ddpg_update_flop(**sizes) == flop


def test_a_meta_update_takes_the_products_of_its_three_steps():
    # Actor 2-1-2: 4, critic 3-1-1: 4, value 2-1-1: 3, encoder 3-1-2: 5; without the first layer 2,
    # 1, 1, 2. Critics and encoder: 3, 2 * (4 + 4 + 1, and 1 for the latent), 5 + 5 + 2; value:
    # 4 + 2 * 4 + 3 + 3 + 1; policy: 4 + 2 * 4, 2 * (1 + 1) through the critics, 4 + 2.
    one = {"observed": 1, "actions": 1, "latent": 1, "hidden": [1], "rows": 1, "context": 1}
    assert benchmark.meta_update_flop(**one) == 2 * (35 + 19 + 22)


def test_keys_follow_from_what_was_measured():
    found = {name: benchmark.KEYS[name].of(MEASURED) for name in WORTH}
    assert found == pytest.approx(WORTH, rel=1e-12)


@pytest.fixture
def taken(monkeypatch):
    """The measurements that were asked for, in order; each finds what MEASURED says, times n."""
    probes = []

    def take(probe, quick):
        probes.append(probe)
        return {name: value * probes.count(probe) for name, value in MEASURED[probe].items()}

    monkeypatch.setattr(benchmark, "take", take)
    monkeypatch.setattr(benchmark, "why_not", lambda probe: "no torch" if "sac" in probe else "")
    return probes


def test_repetitions_are_interleaved_and_what_cannot_be_had_is_left_out_with_its_reason(taken):
    names = ["env_fetch_vs_gymnasium", "env_fetch_vs_mjstep", "startup_help_s"]
    found = benchmark.measure([*names, "update_vs_sb3_sac"], 3, quick=True)
    assert taken == ["simulation", "help"] * 3  # shared by two keys
    assert found["startup_help_s"] == pytest.approx({"median": 0.2, "min": 0.1, "max": 0.3})
    assert found["left_out"] == {"update_vs_sb3_sac": "no torch"}
    assert "update_vs_sb3_sac" not in found


def test_a_partial_run_leaves_the_stored_results_alone(taken, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path / "benchmark.json")
    assert benchmark.main(["--only", "startup_help_s"]) == 0
    assert not benchmark.RESULTS.exists()
    assert benchmark.main([]) == 0
    record = json.loads(benchmark.RESULTS.read_text())
    assert len(record["measured"]) == 5
    assert set(benchmark.KEYS) - set(record) == {"update_vs_sb3_sac"}
    text = benchmark.markdown(record)
    assert "| `cycle_vs_limit_np2` | 18 | 2 | 50 | x | lower |" in text
    assert "- `update_vs_sb3_sac` left out: no torch" in text
    assert record["header"]["machine"]["cpu"] in text
    assert "do not quote mi_update_ms_1t, " in benchmark.spread_warning(record)
    quiet = {"median": 10.0, "min": 9.0, "max": 11.0}
    assert benchmark.spread_warning({"startup_help_s": quiet}) == ""


@pytest.mark.distributed
@pytest.mark.timeout(600)
def test_a_quick_run_writes_the_record(tmp_path, capsys):
    out = tmp_path / "deep" / "benchmark.json"
    names = ["env_fetch_vs_gymnasium", "mpi_overhead_np2", "guarded_cycle_np2", "startup_help_s"]
    words = ["--quick", "--repetitions", "1", "--only", *names, "--out", str(out)]
    assert benchmark.main(words) == 0
    shown = capsys.readouterr().out
    record = json.loads(out.read_text())
    assert {"versions", "machine", "date"} <= set(record["header"])
    assert record["header"]["command"] == " ".join(["python experiments/benchmark.py", *words])
    assert re.fullmatch("[0-9a-f]{40}", record["header"]["commit"])
    assert record["header"]["quick"] is True
    assert set(record) == {"header", "left_out", "measured", *names}
    (first,) = record["measured"]
    assert first["ranks"]["ranks"] == first["guards"]["ranks"] == 2
    for name in names:
        assert 0.0 < record[name]["min"] <= record[name]["median"] <= record[name]["max"]
        assert name in shown
    assert benchmark.main(["--table", "--out", str(out)]) == 0
    assert "not a measurement" in capsys.readouterr().out


@pytest.mark.timeout(600)
def test_what_a_gpu_would_take_is_measured_and_written_with_the_hardware(tmp_path):
    out = tmp_path / "gpu.json"
    words = ["-m", "experiments.gpu", "--device", "cpu", "--quick", "--out", str(out)]
    words += ["--recipes", "ddpg_her", "--rows", "256"]
    ended(sys.executable, *words, env=environment(real=True), timeout=500, exits=0)
    found = json.loads(out.read_text())
    assert found["header"]["machine"]["gpu"] is None
    row = found["ddpg_her/256"]
    assert 0 < row["kernels"] <= 150
    assert min(row[name] for name in ("update_ms", "feed_ms", "host_feed_ms")) > 0.0
    assert row["model_ms"] == pytest.approx(row["kernels"] * 1.7e-3 + 256 * 2.75e6 / 30e9)
    assert found["topologies"].pop("actors") >= 1
    assert sorted(found["topologies"]) == ["equal_ranks_ms", "learner_lag_0_ms", "learner_lag_1_ms"]
    assert min(found["topologies"].values()) > 0.0
    assert found["same_bits"] == {"two_runs": True, "resumed": True}
