"""Distance-maximising skills of a point in the plane, a minute of one core each."""

import dataclasses
import json

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.distributed import Communicator
from music_tf.recipes.distance import sac_csd, sac_lsd, sac_metra
from music_tf.runs.comparison import linearly_explained
from music_tf.training.build import build_trainer
from tests.kit.plane import STEPS, Puck
from tests.kit.small import go_on

SETTINGS = {
    **{"env_id": "Plane-v0", "seed": 100, "workers": 1, "rollouts": 4, "cycles": 30, "updates": 40},
    **{"epochs": 4, "agent.hidden_sizes": (64, 64), "agent.actor_learning_rate": 1e-3},
    **{"agent.critic_learning_rate": 1e-3, "agent.temperature_learning_rate": 1e-3},
    **{"agent.temperature": 0.1, "agent.discount": 0.98, "collect.steps": None},
    **{"collect.random_steps": 1000, "collect.updates_per_step": None, "distance.columns": (0, 1)},
    "evaluation.episodes": 40,
}
"""24,000 steps, an update after every five."""


def trained(recipe, settings, **world):  # a trainer, and the 40 episodes of its last evaluation
    config = with_fields(recipe("laptop", "music_tf/UnitBox-v0"), SETTINGS | settings)
    env = dataclasses.replace(config.env, max_episode_steps=STEPS, kwargs=json.dumps(world))
    trainer, played = build_trainer(dataclasses.replace(config, env=env), Communicator()), []
    for _ in range(config.epochs):
        trainer.run_epoch(go_on, played.append)
    trainer.envs.close()
    return trainer, played[-1]


def learned(recipe, raw=False, **plane):
    """States [E, T + 1, 2], conditions [E, 2] and points in the embedding of 40 episodes."""
    trainer, played = trained(recipe, {"distance.normalize_inputs": not raw}, **plane)
    (term,), states = trainer.terms, played.observation
    origin = np.zeros_like(states.reshape(-1, 2))
    points = term._step(trainer.update.weights(), origin, states.reshape(-1, 2))
    return states, played.skill, points.numpy().reshape(states.shape)


def cosine(states, conditions):
    """Mean cosine of ways through episodes and their conditions, turned or mirrored at best."""
    ways = states[:, -1] - states[:, 0]
    ways /= np.linalg.norm(ways, axis=-1, keepdims=True)
    left, _, right = np.linalg.svd(conditions.T @ ways)
    return float((conditions @ left @ right * ways).sum(axis=-1).mean())


@pytest.mark.parametrize(("disc", "least"), [(False, 0.88), (True, 0.95)])
def test_time_is_embedded_as_a_rotated_plane_and_skills_go_where_they_are_sent(disc, least):
    states, conditions, points = learned(sac_metra, disc=disc)
    points = points.reshape(-1, 2)
    for along in np.moveaxis(states, -1, 0):  # x, and y
        assert linearly_explained(points, along.reshape(-1, 1)) > 0.95
    # a policy whose actions are all at the corners of the box has sin(45 deg) / (pi / 4) = .900
    assert cosine(states, conditions) > least


def along_axes(recipe, slow):  # steps at full speed in the embedding; rms of them in ways; each [2]
    states, _, points = learned(recipe, raw=True, slow=slow, disc=True)
    speeds = np.array([1.0, slow])
    linear = np.linalg.lstsq(states.reshape(-1, 2), points.reshape(-1, 2), rcond=None)[0]
    ways = (states[:, -1] - states[:, 0]) / speeds
    return np.linalg.norm(linear, axis=-1) * speeds, np.sqrt(np.square(ways).mean(axis=0))


def test_a_slow_axis_counts_in_time_as_much_as_a_fast_one_and_in_distance_little():
    paces, (fast, slow) = along_axes(sac_metra, 0.1)
    assert paces[1] > 0.4 * paces[0]
    assert slow > 0.7 * fast
    # a step on a disc is shared by both axes; along (z_x, .1 z_y) squares of steps along y are a
    # tenth of those along x in the mean over directions z: .316 at best
    _, (fast, slow) = along_axes(sac_lsd, 0.1)
    assert slow < 0.65 * fast


PUCK = {
    "env_id": "Puck-v0",
    "seed": 101,
    "cycles": 20,
    "epochs": 12,
    "collect.random_steps": 4000,
    "distance.columns": (0, 1, 2, 3),
    "distance.normalize_inputs": True,
    "distance.sigma_floor": 1e-2,
    "distance.dual_start": 300.0,
    "distance.scale": 5.0,
}


def puck_cells(observation):  # squares of 0.1 where the puck was
    return len(np.unique(np.rint(observation[..., 2:].reshape(-1, 2) / 0.1), axis=0))


def test_skills_under_the_density_distance_push_a_puck_that_random_actions_hardly_meet():
    # on seeds 120 to 122, on which no setting was tried, CSD has 166, 96 and 148 squares and LSD
    # 177, 4 and 14: that CSD is better than LSD is not shown
    _, played = trained(sac_csd, PUCK)
    generator, env, states = np.random.default_rng(0), Puck(), []
    for seed in range(40):  # of random actions
        states.append(env.reset(seed=seed)[0])
        states += [env.step(generator.uniform(-1.0, 1.0, 2))[0] for _ in range(STEPS)]
    assert puck_cells(played.observation) > 2 * puck_cells(np.stack(states))
