"""The comparison with Stable-Baselines3, with a stand-in for that library."""

import importlib.metadata
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from experiments import compare_baselines
from music_tf.storage.results import read_result

ENV_ID = "music_tf/PointReach-v0"


class StandIn:  # a learner that learns for 25 seconds at a time, and knows the way after 8000 steps
    def __init__(self, clock, policy, environment, **settings):
        self._clock = clock
        self.num_timesteps = 0
        self._environment = environment
        self.made_with = {"policy": policy, "env_id": environment.spec.id, **settings}

    def get_env(self):
        return SimpleNamespace(envs=[self._environment])

    def learn(self, steps, reset_num_timesteps):
        self.num_timesteps = steps + (0 if reset_num_timesteps else self.num_timesteps)
        self._clock.seconds += 25.0

    def predict(self, observation, deterministic):
        assert deterministic
        self._clock.seconds += 1.0  # what an evaluation takes
        way = observation["desired_goal"] - observation["achieved_goal"]
        knows = self.num_timesteps >= 8000
        return np.clip(10.0 * way[:2], -1.0, 1.0) if knows else np.zeros(2), None


@pytest.fixture
def library(monkeypatch):
    """The stand-in; `threads` notes what PyTorch was told. TensorFlow is given back afterwards."""
    monkeypatch.setitem(sys.modules, "tensorflow", sys.modules.get("tensorflow"))
    clock = SimpleNamespace(seconds=100.0)
    stand_in = ModuleType("stable_baselines3")
    stand_in.DDPG = stand_in.SAC = lambda *given, **settings: StandIn(clock, *given, **settings)
    stand_in.HerReplayBuffer = "hindsight"
    stand_in.threads = []
    noise = ModuleType("stable_baselines3.common.noise")
    noise.NormalActionNoise = lambda mean, deviation: (mean.tolist(), deviation.tolist())
    torch = ModuleType("torch")
    torch.set_num_threads = stand_in.threads.append
    for module in (stand_in, noise, torch):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(compare_baselines, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "2.0")
    return stand_in


def test_a_row_is_written_for_each_evaluation_until_the_time_is_over(library, tmp_path, capsys):
    out = tmp_path / "deep" / "sac.csv"
    words = ["SAC", str(out), "--env-id", ENV_ID, "--minutes", "1", "--threads", "3"]
    assert (compare_baselines.main(words), library.threads) == (0, [3])
    result = read_result(out)
    assert result.command == f"python experiments/compare_baselines.py {' '.join(words)}"
    assert result.made_with.startswith("commit ")
    packages = ("stable-baselines3", "torch", "mujoco", "gymnasium-robotics")
    assert result.made_with.endswith(", ".join(f"{package} 2.0" for package in packages))
    assert {name: values.tolist() for name, values in result.columns.items()} == {
        "epoch": [1.0, 2.0, 3.0],
        "time/env_steps": [4000.0, 8000.0, 12000.0],
        "time/elapsed_s": [25.0, 50.0, 75.0],  # the third is the first to reach 60
        "eval/success_rate": [pytest.approx(0.0, abs=0.2), 1.0, 1.0],
    }
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("name", compare_baselines.LEARNERS)
def test_the_learners_are_compared_like_for_like(library, name):
    made = compare_baselines.build(library, name, ENV_ID, seed=7).made_with
    assert made.pop("action_noise", None) == (([0.0, 0.0], [0.2, 0.2]) if name == "DDPG" else None)
    assert made == {
        "policy": "MultiInputPolicy",
        "env_id": ENV_ID,
        "replay_buffer_class": "hindsight",
        "replay_buffer_kwargs": {"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        "policy_kwargs": {"net_arch": [256, 256, 256]},
        "batch_size": 256,
        "seed": 7,
        "device": "cpu",
    }


def test_tasks_without_goals_are_compared_by_the_return(library, tmp_path, monkeypatch):
    monkeypatch.setattr(StandIn, "predict", lambda *given, **how: (np.zeros(1), None))
    out = tmp_path / "sac.csv"
    words = ["--env-id", "MountainCarContinuous-v0", "--steps", "300", "--every", "200"]
    assert compare_baselines.main(["SAC", str(out), *words, "--episodes", "2"]) == 0
    columns = read_result(out).columns
    assert columns["time/env_steps"].tolist() == [200.0, 400.0]
    assert columns["eval/return"].tolist() == [0.0, 0.0]  # a car that rests pays nothing
    assert "eval/success_rate" not in columns
    made = compare_baselines.build(library, "SAC", "MountainCarContinuous-v0").made_with
    assert made["policy_kwargs"] == {"net_arch": [256, 256]}
    assert [made[n] for n in ("learning_starts", "train_freq", "gradient_steps")] == [1000, 1, 1]
