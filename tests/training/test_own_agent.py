"""The agent of docs/examples/my_sac.py: trained, resumed, read again and exported."""

import sys

import numpy as np
import pytest

from music_tf import load_policy, recipes
from music_tf.config.agents import SacValueConfig
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.reading.stored import allow_modules, config_from_json, config_to_json
from music_tf.runs import session
from tests.kit.counting import COUNTING
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import run_session
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
def train(tmp_path, monkeypatch):
    (tmp_path / "my_sac.py").write_text(TEXT + EITHER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(recipes, "_TRUSTED", set())
    monkeypatch.setattr(session, "compare", lambda *given: {})

    def train(name, *words):
        run_session(parse_train([*SMALL, "--run-dir", str(tmp_path / name), *words]))
        return tmp_path / name

    yield train
    sys.modules.pop("my_sac", None)


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


@pytest.mark.thorough
def test_a_stored_policy_knows_how_its_actor_makes_deviations(train):
    run = train("run", "--epochs", "1", "--agent.deviation", "softplus")
    allow_modules(run)
    policy = load_policy(run, env_id=COUNTING)
    assert policy.snapshot.actor == "gaussian_plain_softplus"
    quiet, noise = np.zeros([1, 2], np.float32), np.float32([[0.3]])
    drawn = policy.snapshot.act(quiet, np.zeros([1, 0]), np.ones([1, 1]), noise)
    weights = list(policy.snapshot.weights.values())
    hidden = policy.snapshot.inputs(quiet, np.zeros([1, 0]), np.ones([1, 1]))
    for layer in (0, 2):
        hidden = np.maximum(hidden @ weights[layer] + weights[layer + 1], 0.0)
    deviation = np.log1p(np.exp(hidden @ weights[4] + weights[5])) + 0.001
    expected = np.tanh(hidden @ weights[6] + weights[7] + 0.3 * deviation)
    np.testing.assert_allclose(drawn, expected, rtol=1e-5)


def test_settings_of_one_core_are_unknown_to_the_other(train):
    with pytest.raises(UsageError, match="has no such setting"):
        parse_train([*SMALL, "--agent.entropy-mode", "off"])
    assert isinstance(parse_train(list(SMALL)).config.agent, SacValueConfig)
    with pytest.raises(UsageError, match=r"the recipe sac has no such setting"):
        parse_train(["sac", "--agent.value-learning-rate", "1e-3"])


def test_a_preset_may_have_another_agent_and_is_read_as_that(train):
    for preset in ("laptop", "paper"):
        config = parse_train(["my_sac:either", "--preset", preset]).config
        stored = config_to_json(config)
        assert config_from_json(stored, "my_sac:either", None, preset) == (config, ())
