import numpy as np
import pytest

from music_tf.config.conditioning import ConditionConfig
from music_tf.config.fields import with_fields
from music_tf.recipes.distance import DistanceConfig
from tests.kit.small import SAC, paying, trainer_of

FAR = paying(
    SAC,
    DistanceConfig(columns=(3, 4), hidden_sizes=(8,)),
    goals="zero",
    condition=ConditionConfig(kind="sphere", size=2),
)


def fed(share, **changes):  # what updates are fed after a cycle, and what conditions replay holds
    trainer = trainer_of(with_fields(FAR, {"condition.relabel": share, **changes}))
    trainer.collect()
    shards = trainer.replay.shards.values()
    acted = np.concatenate([shard.arrays["skill"][: shard.size] for shard in shards])
    feed = trainer.feed()
    trainer.envs.close()
    return feed, acted


def acting(conditions, acted):  # which conditions [..., K] are among those that acted [E, K]
    return np.abs(conditions[..., None, :] - acted).max(axis=-1).min(axis=-1) < 1e-6


def test_a_share_of_steps_is_seen_under_fresh_conditions_and_else_nothing_is_drawn():
    feed, acted = fed(0.5)
    seen = feed.transitions.skill
    np.testing.assert_allclose(np.linalg.norm(seen, axis=-1), 1.0, rtol=1e-5)
    assert acting(seen, acted).mean() == pytest.approx(0.5, abs=0.15)
    feed, acted = fed(0.0)
    assert acting(feed.transitions.skill, acted).all()
    assert not {"fresh_condition", "relabelled"} & set(feed.noise)


def test_actor_critics_and_rewards_see_the_same_condition_and_the_embedding_the_one_that_acted():
    feed, acted = fed(1.0)
    seen = feed.transitions.skill
    assert not acting(seen, acted).any()
    columns = feed.transitions.observation.shape[-1]
    for inputs in (feed.inputs, feed.next_inputs):
        np.testing.assert_array_equal(inputs[..., columns : columns + 2], seen)
    assert acting(feed.terms["distance"]["condition"], acted).all()


def test_conditions_that_are_places_become_those_where_episodes_ended():
    places = DistanceConfig(
        columns=(0, 1), normalize_inputs=True, hidden_sizes=(), train=False, reach=4.0
    )
    ball = ConditionConfig(kind="ball", size=2, relabel=1.0)
    trainer = trainer_of(paying(SAC, places, goals="zero", condition=ball))
    trainer.collect()
    feed, picks = trainer.feed(), trainer.replay.pick(trainer.config.updates, 0)
    shards = trainer.replay.shards.values()
    ends = [s.arrays["observation"][picks.slot[:, i], -1, :2] for i, s in enumerate(shards)]
    (term,), (phi, _) = trainer.terms, trainer.update.weights()["phi"]
    mean, deviation = term.scales["phi"].numpy()
    trainer.envs.close()
    expected = (np.stack(ends, axis=1) - mean) / deviation @ phi.numpy() / 4.0
    np.testing.assert_allclose(feed.transitions.skill, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_a_density_learns_early_while_actions_are_random_and_nothing_else_does():
    density = {"distance.distance": "density", "distance.density_early": True}
    config = with_fields(FAR, {**density, "collect.random_steps": 200})
    trainer = trainer_of(config)
    before = trainer.update.shared()
    trainer.run_cycle()
    after = trainer.update.shared()
    changed = {name for name in before if (before[name] != after[name]).any()}
    assert {name.split("/")[1] for name in changed} == {"change_mean", "change_deviation"}
    assert trainer.counters.updates == 0
    assert "distance/weight_spread" in trainer.log.averages()
    trainer.run_cycle()
    trainer.envs.close()
    assert trainer.counters.updates == config.updates
    kernel = "parameters/phi/point/kernel"
    assert (trainer.update.shared()[kernel] != before[kernel]).any()
