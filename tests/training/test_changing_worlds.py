"""A world that changes while a run learns: when, for whom, and to the same bits whoever plays."""

import json
from dataclasses import replace

import numpy as np
import pytest

from music_tf import recipes
from music_tf.config.fields import with_fields
from music_tf.config.settings import CollectConfig, EvaluationConfig, ReplayConfig
from music_tf.distributed import Communicator
from music_tf.training.build import build_trainer
from tests.kit.small import HER, assert_same_state, go_on, trainer_of
from tests.kit.wires import actors_of

pytestmark = pytest.mark.thorough

SQUARE = "music_tf/Square-v0"
OPENS = json.dumps([{"set": {"wall": True}}, {"at": {"steps": 50}, "set": {"wall": False}}])
"""In the middle of the second epoch of 40 steps, so for the third."""
SAC = recipes.resolve("sac", "laptop", SQUARE)
CONFIG = with_fields(
    replace(
        SAC,
        epochs=4,
        cycles=2,
        workers=2,
        rollouts=2,
        updates=2,
        agent=replace(SAC.agent, hidden_sizes=(8,)),
        collect=CollectConfig(steps=5, updates_per_step=0.2, random_steps=0),
        replay=ReplayConfig(batch_size=8, capacity=1000),
        evaluation=EvaluationConfig(episodes=2),
    ),
    {"env.changes": OPENS},
)


def seen_by_epoch(trainer, epochs):  # the stage and the largest x of what is played in each epoch
    found, add = [], trainer.replay.add

    def added(kept, cycle, priorities=None):
        furthest.append(max(own.observation[..., 0].max() for own in kept.values()))
        add(kept, cycle, priorities)

    trainer.replay.add = added
    for _ in range(epochs):
        furthest, world = [], trainer.world
        trainer.run_epoch(go_on)
        found.append((world, max(furthest) > 0.0))
    return found


@pytest.mark.parametrize("collect", [{}, {"collect.steps": None, "cycles": 1}])
def test_the_wall_opens_with_the_first_epoch_that_begins_after_the_steps(collect):
    trainer = trainer_of(with_fields(CONFIG, {"collect.random_steps": 10**6} | collect))
    assert seen_by_epoch(trainer, 4) == [(0, False), (0, False), (1, True), (1, True)]


def test_an_epoch_is_evaluated_in_the_world_that_it_was_played_in():
    trainer = trainer_of(with_fields(CONFIG, {"collect.random_steps": 10**6}))
    trainer.policy = lambda: lambda observation, goal, skill, noise: np.ones_like(noise)
    ends = []

    def on_evaluation(played):
        ends.append(played.observation[:, -1].tolist())

    for _ in range(3):
        trainer.run_epoch(go_on, on_evaluation)
    closed, opened = [[0.0, 10.0]] * 2, [[10.0, 10.0]] * 2
    assert ends == [closed, closed, opened]
    for world, end in ((0, closed), (1, opened)):
        played = trainer.evaluation._replace(world=world).play(trainer.policy(), 2)
        assert played.observation[:, -1].tolist() == end


@pytest.mark.parametrize("lag", [0, 1])
def test_actors_play_the_world_of_each_order_to_the_bits_of_one_process(lag):
    config = replace(CONFIG, lag=lag, workers=4, rollouts=1)
    one = trainer_of(config)
    seen = seen_by_epoch(one, 3)
    with actors_of(config, 2) as actors:
        trainer = build_trainer(config, Communicator(), actors)
        assert [world for world, _ in seen_by_epoch(trainer, 3)] == [0, 0, 1]
        assert_same_state(one, trainer)
    assert seen == [(0, False), (0, False), (1, True)]


def test_stages_that_change_nothing_leave_every_bit_as_it_is():
    never = '[{}, {"at": {"steps": 1}, "gravity": 1.0}]'
    for config in (HER, replace(CONFIG, env=replace(CONFIG.env, changes="[]"))):
        one, other = trainer_of(config), trainer_of(with_fields(config, {"env.changes": never}))
        for trainer in (one, other):
            trainer.run_epoch(go_on)
        assert_same_state(one, other)
        assert (one.world, other.world) == (0, 1)
