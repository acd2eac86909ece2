"""Hands and mazes of gymnasium-robotics train with hindsight, and hands are measured."""

import numpy as np

from music_tf.config.settings import EnvConfig
from tests.kit.cases import cases
from tests.kit.drawn import sample_transitions
from tests.kit.small import HER, go_on, trainer_of


@cases(
    ("env_id", "rewards"),
    ("HandManipulateBlock-v1", {-1.0, 0.0}),
    ("PointMaze_UMaze-v3", {0.0, 1.0}),
    ("AntMaze_UMaze-v5", {0.0, 1.0}),
)
def test_hindsight_meets_some_of_the_goals(env_id, rewards):
    trainer = trainer_of(HER, env_id=env_id, env=EnvConfig(max_episode_steps=12), workers=1)
    metrics = trainer.run_epoch(go_on)
    assert all(map(np.isfinite, metrics.values()))
    assert set(np.unique(sample_transitions(trainer.replay, 10, 0).reward).tolist()) == rewards
    low, high = trainer.envs.info.reward_bounds
    assert {low, high} == rewards
    moved = metrics.get("eval/object_displacement_m")
    assert (moved is not None and moved > 0.0) is env_id.startswith("Hand")
