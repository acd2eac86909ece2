"""What somebody with a GPU would run, tried on the CPU."""

import json
import sys

import pytest

from tests.kit.jobs import environment
from tests.kit.started import ended

pytestmark = pytest.mark.timeout(600)


def test_everything_is_measured_and_written_with_the_hardware(tmp_path):
    out = tmp_path / "gpu.json"
    words = ["-m", "experiments.gpu", "--device", "cpu", "--quick", "--out", str(out)]
    words += ["--recipes", "ddpg_her", "--rows", "256"]
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
