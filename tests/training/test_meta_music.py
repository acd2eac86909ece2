"""Mutual information as an added reward of meta-training: what it pays, and what contexts hold."""

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.distributed import Communicator
from music_tf.recipes.pearl import sac_pearl_music
from music_tf.training.build import build_trainer
from music_tf.training.parts import TaskFamily
from tests.kit.pearl import CHANGES
from tests.kit.small import go_on

SMALL = {
    **{"music.trajectories": 4, "music.hidden_size": 8, "agent.context_next_observation": True},
    **{"normalizer.running": False, "agent.context_reward_scale": 1.0},  # contexts in metres
}
GOAL, OBSERVED, ACTIONS = 3, 28, 4


@pytest.mark.thorough
def test_both_rewards_pay_contexts_hold_the_environments_and_trajectories_are_of_all_tasks():
    config = with_fields(sac_pearl_music("laptop"), CHANGES | SMALL)
    trainer = build_trainer(config, Communicator(alone=True))
    before, metrics = trainer.weights(), trainer.run_epoch(go_on)
    assert {"reward/task_mean", "reward/music_mean", "music/bound", "pearl/kl"} <= set(metrics)
    assert metrics["reward/task_mean"] < 0.0 <= metrics["reward/music_min"]
    after = trainer.weights()
    for layer in ("actor/hidden_0", "encoder/hidden_0", "statistics/agent"):
        name = f"parameters/{layer}/kernel"
        assert np.abs(after[name] - before[name]).max() > 1e-6
    feed = trainer.feed()
    rows = feed.noise["context"].reshape(-1, 2 * OBSERVED + ACTIONS + 1)
    paid, reached = rows[:, OBSERVED + ACTIONS], rows[:, -GOAL:]  # what is achieved comes last
    distance = np.linalg.norm(reached[:, None] - trainer.part(TaskFamily).tasks.train, axis=-1)
    np.testing.assert_allclose(np.abs(paid[:, None] + distance).min(axis=1), 0.0, atol=1e-5)
    assert trainer.envs.spec.split.surrounding == (3, 4, 5)
    trajectories = feed.terms["music"]["trajectories"]
    assert trajectories.shape == (3, 2, 4, 5 + 1, 6)  # updates, workers, and so on
    store = next(iter(trainer.replay.shards.values()))
    slots, _ = store.pick_trajectories((20, 20), np.random.default_rng(0))
    assert len(np.unique(slots % len(store.numbers))) == len(store.numbers)
