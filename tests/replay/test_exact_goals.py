"""Goals of more digits than single precision has are rewarded as they were achieved."""

import numpy as np
import pytest

from music_tf.config.settings import EnvConfig, ReplayConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.replay.ring import StepRing
from music_tf.rollout import Conditions, play
from tests.kit.points import STEPS

FAR = 5e6


def replayed(env_id, exact, kind=Shard):
    """Rewards of a batch, what its steps paid, and which of them kept their goal."""
    envs = LockstepEnvs(env_id, 1, EnvConfig(exact_goals=exact))
    config, random = ReplayConfig(relabel_k=4.0, batch_size=1000), np.random.default_rng(0)
    store = kind(envs.spec, 1, config, **({"longest": STEPS} if kind is StepRing else {}))

    def act(*_):
        return random.uniform(-1, 1, (1, 2)).astype(np.float32)

    for seed in range(10):
        conditions = Conditions(np.array([seed]), None, np.ones((1, 1), np.float32))
        store.add(play(envs, act, conditions, None), random)
    replay = ReplayBuffer({0: store}, config, envs.goal_reward, 0.98, 0)
    picks = replay.pick(1, 0)
    return replay.transitions(picks), store.look_up(picks)


@pytest.mark.parametrize("kind", [Shard, StepRing])
def test_steps_are_paid_what_they_were_paid(points, kind):
    batch, drawn = replayed("Far-v0", exact=True, kind=kind)
    own = drawn.own
    assert own.sum() > 100
    np.testing.assert_allclose(batch.reward[own], drawn.reward[own], atol=1e-6)
    rounded, same = replayed("Far-v0", exact=False, kind=kind)
    assert np.abs(rounded.reward - same.reward)[own].max() > 0.1


def test_hindsight_far_away_pays_what_it_pays_at_home(points):
    far, drawn = replayed("Far-v0", exact=True)
    home, _ = replayed("Point-v0", exact=False)
    assert (~drawn.own).sum() > 500
    np.testing.assert_allclose(far.reward, home.reward, atol=1e-6)
    np.testing.assert_allclose(far.desired_goal, home.desired_goal + FAR, atol=0.5)
