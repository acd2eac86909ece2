"""How often a run brings each block of FetchPushTwo to its goal, and what the other one does.

    .venv/bin/python experiments/two_blocks.py RUN

Goals are of one block or of both, 200 each; a block counts as left alone if it is less than 3 cm
from where it began, at the end of the episode.
"""

import argparse
import sys

import gymnasium
import numpy as np

import music_tf
import music_tf.envs

GOALS, NEAR, ALONE = 200, 0.05, 0.03


def main() -> None:
    """Prints a row for each kind of goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--goals", type=int, default=GOALS)
    options = parser.parse_args()
    policy = music_tf.load_policy(options.run)
    for moves in ("first", "second", "both"):
        environment = gymnasium.make("music_tf/FetchPushTwo-v0", moves=moves)
        ways, ends = [], []
        for seed in range(10**6, 10**6 + options.goals):
            seen, over = environment.reset(seed=seed)[0], False
            begun, goal = seen["achieved_goal"], seen["desired_goal"]
            while not over:
                action = policy.act(seen["observation"], reach=goal[[0, 1, 3, 4]])
                seen, _, _, over, _ = environment.step(action)
            ways.append(np.linalg.norm((seen["achieved_goal"] - begun).reshape(2, 3), axis=1))
            ends.append(np.linalg.norm((seen["achieved_goal"] - goal).reshape(2, 3), axis=1) < NEAR)
        at_goal, alone = np.mean(ends, axis=0), np.mean(np.array(ways) < ALONE, axis=0)
        both = np.all(ends, axis=1).mean()
        sys.stdout.write(f"{moves}: at its goal {at_goal}, both {both}, left alone {alone}\n")


if __name__ == "__main__":
    main()
