"""Trains Stable-Baselines3 on a task: `python experiments/compare_baselines.py DDPG out.csv`.

The learner has its own defaults, except for a few settings that equal ours. On tasks with goals
these are hidden layers 256-256-256, batch 256, and four of five goals relabelled by `future`. On
others they are two layers of 256, batch 256, one update per step, and 1000 random steps first.
DDPG, which does not explore by default, has Gaussian noise of 0.2.

Success, or the return, is that of evaluation episodes without noise, on the same seeds each time;
their time is not counted. The file has the columns of our `metrics.csv`, for `music-tf plot`.

With `--rate EPISODES ROUNDS UPDATES` it measures updates per second instead, for `benchmark.py`.
"""

import argparse
import csv
import importlib
import importlib.metadata
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import gymnasium
import numpy as np

from music_tf.cli.exits import guarded, leave
from music_tf.envs.making import import_robotics
from music_tf.errors import EXIT_DONE, EnvironmentFault
from music_tf.storage.results import header
from music_tf.tools.study_runner import code_version

LEARNERS = ("DDPG", "SAC")
EPISODE_STEPS = 50
COLUMNS = ("epoch", "time/env_steps", "time/elapsed_s")
_PACKAGES = ("stable-baselines3", "torch", "mujoco", "gymnasium-robotics")


def load_library(threads: int) -> Any:
    """Imports Stable-Baselines3 and sets the number of PyTorch's threads."""
    sys.modules["tensorflow"] = None  # type: ignore[assignment] # its logger would load it
    try:
        library = importlib.import_module("stable_baselines3")
        importlib.import_module("torch").set_num_threads(threads)
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0][:160]
        raise EnvironmentFault(
            f"stable-baselines3 cannot be imported ({reason})\n"
            "cure: pip install stable-baselines3 torch"
        ) from error
    return library


def build(library: Any, name: str, env_id: str, **settings: Any) -> Any:
    """Returns an untrained learner of Stable-Baselines3, with hindsight replay on goal tasks."""
    environment = gymnasium.make(env_id)
    policy, layers = "MlpPolicy", 2
    if has_goals(environment):
        policy, layers = "MultiInputPolicy", 3
        relabelling = {"n_sampled_goal": 4, "goal_selection_strategy": "future"}
        settings["replay_buffer_class"] = library.HerReplayBuffer
        settings["replay_buffer_kwargs"] = relabelling
    else:
        settings.update(learning_starts=1000, train_freq=1, gradient_steps=1)
    if name == "DDPG":
        noise = importlib.import_module("stable_baselines3.common.noise")
        actions = np.zeros(environment.action_space.shape or (1,))
        settings["action_noise"] = noise.NormalActionNoise(actions, actions + 0.2)
    return getattr(library, name)(
        policy,
        environment,
        policy_kwargs={"net_arch": [256] * layers},
        batch_size=256,
        device="cpu",
        **settings,
    )


def has_goals(environment: gymnasium.Env[Any, Any]) -> bool:
    """Whether observations are dictionaries with goals."""
    return isinstance(environment.observation_space, gymnasium.spaces.Dict)


def updates_per_s(library: Any, name: str, episodes: int, rounds: int, updates: int) -> float:
    """Times `train` on FetchPush, with our learning rate."""
    unlike = {"learning_rate": 1e-3, "buffer_size": 50_000, "learning_starts": 10**9}
    model = build(library, name, "FetchPush-v4", **unlike)
    model.learn(total_timesteps=episodes * EPISODE_STEPS)
    seconds = 0.0
    for number in range(rounds + 1):
        start = time.perf_counter()
        model.train(gradient_steps=updates, batch_size=256)
        if number > 0:  # the first call warms up
            seconds += time.perf_counter() - start
    return rounds * updates / seconds


def evaluate(model: Any, env_id: str, episodes: int) -> float:
    """Returns the mean return of episodes, or the share that succeeds at the last step."""
    environment = gymnasium.make(env_id)
    total = 0.0
    for episode in range(episodes):
        observation, _ = environment.reset(seed=10_000 + episode)
        over, information = False, {}
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, information = environment.step(action)
            over = terminated or truncated
            total += 0.0 if has_goals(environment) else float(reward)
        total += bool(has_goals(environment) and information["is_success"])
    environment.close()
    return total / episodes


def train(model: Any, env_id: str, limits: argparse.Namespace, out: TextIO) -> None:
    """Trains up to the limits of minutes and steps, and writes a row for each evaluation."""
    writer = csv.writer(out)
    metric = "eval/success_rate" if has_goals(model.get_env().envs[0]) else "eval/return"
    writer.writerow([*COLUMNS, metric])
    seconds = 0.0
    for epoch in range(1, 10**6):
        start = time.monotonic()
        model.learn(limits.every, reset_num_timesteps=epoch == 1)
        seconds += time.monotonic() - start
        value = evaluate(model, env_id, limits.episodes)
        writer.writerow([epoch, model.num_timesteps, seconds, value])
        out.flush()
        sys.stdout.write(f"{seconds / 60:.1f} min, {model.num_timesteps} steps: {value:.3f}\n")
        sys.stdout.flush()
        if seconds >= 60.0 * limits.minutes or model.num_timesteps >= limits.steps:
            break


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the command line, trains or measures, and returns 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("learner", choices=LEARNERS)
    parser.add_argument("out", type=Path, help="the CSV to write, or the JSON of a rate")
    parser.add_argument("--env-id", default="FetchPush-v4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0, help="of training, at most")
    parser.add_argument("--steps", type=float, default=math.inf, help="of training, at most")
    parser.add_argument("--every", type=int, default=4000, help="steps between evaluations")
    parser.add_argument("--episodes", type=int, default=40, help="of an evaluation")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    parser.add_argument("--rate", type=int, nargs=3, metavar=("EPISODES", "ROUNDS", "UPDATES"))
    options = parser.parse_args(arguments)
    library = load_library(options.threads)
    import_robotics()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.rate:
        rate = updates_per_s(library, options.learner, *options.rate)
        options.out.write_text(json.dumps({"updates_per_s": rate}), encoding="utf-8")
        return EXIT_DONE
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python experiments/compare_baselines.py", *words])
    model = build(library, options.learner, options.env_id, seed=options.seed)
    with options.out.open("w", encoding="utf-8", newline="") as out:
        out.write(header(command, ", ".join([code_version(), *versions])))
        train(model, options.env_id, options, out)
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
