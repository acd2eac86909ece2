import dataclasses
import json
import re

import numpy as np
import pytest

from experiments import benchmark
from music_tf.errors import UsageError
from tests.kit.cases import cases

PEAK = 70.320128e9
MEASURED = {
    "simulation": dict(env_steps_per_s=800.0, gymnasium_steps_per_s=400.0, mj_step_per_s=1000.0),
    "update_1t": dict(updates_per_s=50.0, peak_flop_per_s=PEAK),
    "update_2t": dict(updates_per_s=50.0, peak_flop_per_s=2 * PEAK),
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
    "update_vs_sb3_sac": 3.0,
    "update_vs_sb3_ddpg": 2.5,
    "mi_update_ms_1t": 3.0,
    "pair_update_ms_1t": 16.0,
    "feed_her_ms_1t": 3.5,
    "feed_music_ms_1t": 9.0,
    "nearest_k3_ms_1t": 1.0,
    "nearest_k5_ms_1t": 1.7,
    "square_s_1t": 40.0,
    "cycle_vs_limit_np2": 2.0,  # 100 / 1000 s of physics and 40 / 100 s of products
    "mpi_overhead_np2": 0.05,
    "guarded_cycle_np2": 1.01,
    "startup_help_s": 0.1,
    "startup_first_step_s": 4.0,
    "memory_mb_per_rank": 500.0,
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
    found = {name: key.of(MEASURED) for name, key in benchmark.KEYS.items()}
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


def test_numbers_of_a_busy_machine_are_not_to_be_quoted():
    quiet = {"median": 10.0, "min": 9.0, "max": 11.0}  # 20 % apart
    record = {"mi_update_ms_1t": quiet, "startup_help_s": {**quiet, "max": 11.1}}
    assert benchmark.spread_warning(record).startswith("do not quote startup_help_s: ")
    assert benchmark.spread_warning({"mi_update_ms_1t": quiet}) == ""


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


def test_physics_is_repeated_from_the_states_of_the_episode():
    from experiments import measure

    envs = measure.LockstepEnvs(measure.ENV_ID, 1)
    actions = np.random.default_rng(3).uniform(-1, 1, (5, 4)).astype(np.float32)
    model, data, states = measure.record(envs, 7, actions)
    object_pose, clock = data.qpos[-7:].copy(), data.time
    envs.reset([0], [8])
    assert len(states) == len(actions)
    assert measure.step_physics(measure.Recording(model, data, states)) > 0.0
    assert data.time == clock
    np.testing.assert_array_equal(data.qpos[-7:], object_pose)


def test_updates_are_timed_on_the_path_of_several_ranks():
    from experiments import measure

    class Counting(measure.LoneRank):
        calls = 0

        def sum_into(self, values, total):
            self.calls += 1
            super().sum_into(values, total)

    sizes = dataclasses.asdict(benchmark.QUICK)
    config = measure.configuration("ddpg_music", sizes, {"workers": 2})
    comm = Counting()
    trainer = measure.filled_trainer(config, sizes, comm)
    comm.calls = 0
    before = trainer.update.parameters.numpy()
    assert measure.updates_per_s(trainer, sizes) > 0.0
    assert comm.calls == (sizes["rounds"] + 1) * sizes["updates"]
    assert not np.array_equal(trainer.update.parameters.numpy(), before)


def test_a_quick_run_writes_the_record(tmp_path, capsys):
    out = tmp_path / "deep" / "benchmark.json"
    names = ["env_fetch_vs_gymnasium", "env_fetch_vs_mjstep", "startup_help_s"]
    words = ["--quick", "--repetitions", "2", "--only", *names, "--out", str(out)]
    assert benchmark.main(words) == 0
    shown = capsys.readouterr().out
    record = json.loads(out.read_text())
    assert {"versions", "machine", "date"} <= set(record["header"])
    assert record["header"]["command"] == " ".join(["python experiments/benchmark.py", *words])
    assert re.fullmatch("[0-9a-f]{40}", record["header"]["commit"])
    assert record["header"]["quick"] is True
    assert set(record) == {"header", "left_out", "measured", *names}
    assert len(record["measured"]) == 2
    for name in names:
        assert 0.0 < record[name]["min"] <= record[name]["median"] <= record[name]["max"]
        assert name in shown
    assert benchmark.main(["--table", "--out", str(out)]) == 0
    assert "not a measurement" in capsys.readouterr().out


@pytest.mark.distributed
def test_two_ranks_are_measured(tmp_path):
    out = tmp_path / "benchmark.json"
    names = ["mpi_overhead_np2", "guarded_cycle_np2"]
    assert benchmark.main(["--quick", "--only", *names, "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    guards = found["measured"][0]["guards"]
    assert found["measured"][0]["ranks"]["ranks"] == guards["ranks"] == 2
    assert 0.0 < found["mpi_overhead_np2"]["median"] < 1.0
    assert guards["unguarded_s"] > 0.0
    assert 0.1 < found["guarded_cycle_np2"]["median"] < 10.0


@cases(
    ("words", "says"),
    (["--only", "env_fetch_vs_mujoco"], "env_fetch_vs_mjstep"),
    (["--repetitions", "0"], "at least 1"),
    (["--table", "--out", "missing.json"], "make bench"),
)
def test_a_mistake_is_explained(words, says):
    with pytest.raises(UsageError, match=says):
        benchmark.main(words)
