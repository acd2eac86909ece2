"""What somebody with a GPU would run, tried on the CPU."""

import json
import sys

import numpy as np
import pytest

from experiments.gpu import kernels_of
from tests.kit.jobs import environment
from tests.kit.started import ended, python

pytestmark = pytest.mark.timeout(600)


def test_everything_is_measured_and_written_with_the_hardware(tmp_path):
    out = tmp_path / "gpu.json"
    words = ["-m", "experiments.gpu", "--device", "cpu", "--quick", "--out", str(out)]
    done = ended(sys.executable, *words, env=environment(real=True), timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
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


def test_kernels_are_products_and_fusions():
    text = "a = f32[2]{0} fusion(b)\n  c = f32[] dot(d, e)\n g = f32[2]{0} add(h, i)"
    assert kernels_of(text) == 2


@pytest.mark.parametrize(("tf32", "precision"), [(False, 2), (True, 0)])
def test_an_exported_program_holds_arguments_and_precision_of_products(tmp_path, tf32, precision):
    words = "from pathlib import Path; from experiments.gpu_programs import export\n"
    words += f"export(Path({str(tmp_path)!r}), {tf32}, [('ddpg_her', 8)])"
    done = python(words, env=environment(real=True) | {"CUDA_VISIBLE_DEVICES": "-1"}, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    program = (tmp_path / "ddpg_her_8.hlo.pb").read_bytes()
    # of each product: its opcode, field 2, and the precision of both operands, 0 default, 2 highest
    products = program.count(b"\x12\x03dot")
    assert products == program.count(bytes([0x0A, 2, precision, precision])) > 0
    with np.load(tmp_path / "ddpg_her_8.npz") as stored:
        updates = json.loads((tmp_path / "programs.json").read_text())["ddpg_her_8"]["updates"]
        assert len(stored["metrics"]) == updates
        assert np.isfinite(stored["metrics"]).all()
        assert sorted(stored.files)[:2] == ["a000", "a001"]
    assert (tmp_path / "gpu_programs.py").exists()
