"""The agent of docs/examples/my_sac.py: trained, resumed and read again."""

import numpy as np
import pytest

from music_tf.reading.command import parse_train
from music_tf.reading.stored import config_from_json, config_to_json
from music_tf.runs import session
from tests.kit.counting import COUNTING
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import run_session, uncompared
from tests.kit.started import ROOT

TEXT = (ROOT / "docs" / "examples" / "my_sac.py").read_text(encoding="utf-8")
SMALL = (
    *("my_sac:sac_value", "--env-id", COUNTING, "--cycles", "3", "--updates", "4"),
    *("--agent.hidden-sizes", "8", "8", "--agent.critic-sizes", "6", "--replay.batch-size", "8"),
    *("--collect.steps", "5", "--collect.random-steps", "10", "--evaluation.episodes", "2"),
    *("--replay.capacity", "100"),
)
EITHER = '''

def either(preset, env_id="Pendulum-v1"):
    """One core or the other."""
    return sac_value(preset, env_id) if preset == "paper" else tasks.sac(preset, env_id)
'''


@pytest.fixture
def train(own_modules, tmp_path, monkeypatch):
    own_modules(my_sac=TEXT + EITHER)
    monkeypatch.setattr(session, "compare", uncompared)

    def train(name, *words):
        run_session(parse_train([*SMALL, "--run-dir", str(tmp_path / name), *words]))
        return tmp_path / name

    return train


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_a_run_with_a_state_value_goes_on_where_it_stopped(train, order):
    words = ("--agent.update-order", order, "--agent.polyak-every", "3")
    straight = train("straight", "--epochs", "2", *words)
    stopped = train("stopped", "--epochs", "1", *words)
    train("stopped", "--epochs", "2", "--resume", *words)
    assert rows_of(stopped) == rows_of(straight)
    weights, _ = load_weights(straight / "checkpoints")
    np.testing.assert_equal(load_weights(stopped / "checkpoints")[0], weights)
    assert weights["targets/value/hidden_0/kernel"].shape[1] == 6
    assert float(rows_of(straight)[-1]["train/value_loss"]) > 0.0
    assert "train/temperature_loss" not in rows_of(straight)[-1]  # nothing tunes it


def test_a_preset_may_have_another_agent_and_is_read_as_that(train):
    for preset in ("laptop", "paper"):
        config = parse_train(["my_sac:either", "--preset", preset]).config
        stored = config_to_json(config)
        assert config_from_json(stored, "my_sac:either", None, preset) == (config, ())
