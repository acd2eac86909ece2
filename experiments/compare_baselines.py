"""Trains Stable-Baselines3's HER on a task: `python experiments/compare_baselines.py DDPG out.csv`.

Its learner with its own defaults, except for what is compared like for like (hidden layers
256-256-256, batch 256, four of five goals relabelled with the future) and Gaussian noise of 0.2
for DDPG, which explores not at all by default. Success is that of 40 episodes without noise, at
the same seeds each time, every 4000 steps; their time is not counted. The file has the columns of
our `metrics.csv`, so that `music-tf plot` draws both.
"""

import argparse
import csv
import importlib.metadata
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import gymnasium
import numpy as np
from benchmarks.arithmetic import DDPG_BATCH, DDPG_HIDDEN
from benchmarks.baselines import load_theirs, without_tensorflow

from music_tf.cli.exits import guarded, leave
from music_tf.envs.making import import_robotics
from music_tf.errors import EXIT_DONE
from music_tf.storage.results import header
from music_tf.tools.study import code_version

LEARNERS = ("DDPG", "SAC")
EVALUATION_STEPS = 4000
EVALUATION_EPISODES = 40
COLUMNS = ("epoch", "time/env_steps", "time/elapsed_s", "eval/success_rate")
_PACKAGES = ("stable-baselines3", "torch", "mujoco", "gymnasium-robotics")


def build(library: Any, name: str, env_id: str, seed: int) -> Any:
    """Returns an untrained learner of Stable-Baselines3 with hindsight replay."""
    environment = gymnasium.make(env_id)
    extra: dict[str, Any] = {}
    if name == "DDPG":
        noise = without_tensorflow("stable_baselines3.common.noise")
        actions = np.zeros(environment.action_space.shape or (1,))
        extra["action_noise"] = noise.NormalActionNoise(actions, actions + 0.2)
    return getattr(library, name)(
        "MultiInputPolicy",
        environment,
        replay_buffer_class=library.HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": list(DDPG_HIDDEN)},
        batch_size=DDPG_BATCH,
        seed=seed,
        device="cpu",
        **extra,
    )


def success_rate(model: Any, env_id: str) -> float:
    """Returns the share of evaluation episodes that succeed at their last step."""
    environment = gymnasium.make(env_id)
    succeeded = 0
    for episode in range(EVALUATION_EPISODES):
        observation, _ = environment.reset(seed=10_000 + episode)
        over, information = False, {}
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, information = environment.step(action)
            over = terminated or truncated
        succeeded += bool(information["is_success"])
    environment.close()
    return succeeded / EVALUATION_EPISODES


def train(model: Any, env_id: str, minutes: float, out: TextIO) -> None:
    """Trains for so many minutes and writes a row for each evaluation."""
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    seconds = 0.0
    for epoch in range(1, 10**6):
        start = time.monotonic()
        model.learn(EVALUATION_STEPS, reset_num_timesteps=epoch == 1)
        seconds += time.monotonic() - start
        rate = success_rate(model, env_id)
        writer.writerow([epoch, model.num_timesteps, seconds, rate])
        out.flush()
        sys.stdout.write(f"{seconds / 60:.1f} min, {model.num_timesteps} steps: {rate:.3f}\n")
        sys.stdout.flush()
        if seconds >= 60.0 * minutes:
            break


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the command line, trains, and returns 0.

    Raises:
        EnvironmentFault: Stable-Baselines3 or PyTorch is not installed.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("learner", choices=LEARNERS)
    parser.add_argument("out", type=Path, help="the CSV to write")
    parser.add_argument("--env-id", default="FetchPush-v4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0, help="of training")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    given = parser.parse_args(arguments)
    library = load_theirs(given.threads)
    import_robotics()
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    made_with = ", ".join([code_version(), *versions])
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python experiments/compare_baselines.py", *words])
    model = build(library, given.learner, given.env_id, given.seed)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", encoding="utf-8", newline="") as out:
        out.write(header(command, made_with))
        train(model, given.env_id, given.minutes, out)
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
