"""A quarter of replay leads the hand to the object: goals, rewards and ends by hand."""

import dataclasses

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.config.settings import ReplayConfig
from music_tf.config.world import World
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.networks.acting import Snapshot
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.replay.rows import Picks, transition
from music_tf.rollout import Leads
from music_tf.training.checks import try_environment
from music_tf.training.collect import _reach
from music_tf.types import A_PLACE, Reach
from tests.kit.cases import cases
from tests.kit.episodes import SPEC, goal_reward, make_episodes
from tests.kit.small import HER, MUSIC, PUSH, trainer_of

REACHING = with_fields(HER, {"replay.reach": 0.3, "replay.draw": "episodes"})
ALONE = "music_tf/PointReach-v0"
# state t of episode 7 has the hand at (700 + t, 700.1 + t), the object at (700.2 + t, 700.3 + t)
REACH = Reach(hand=(0, 1), object=(2, 3), within=1.2, rewards=(-3.0, 5.0))
LED = dataclasses.replace(SPEC, reach=REACH)
PICKED = {  # goal of a pick of step 1: the goal, reward and whether another goal would end it
    -1: ((-7, -7, 0, 0), -1.0, False),
    2: ((702, 702.1, 0, 0), 0.0, True),
    4: ((704, 704.1, 0, 0), -1.0, True),
    -2: ((0, 0, 701.2, 701.3), 5.0, False),  # the object before the step, 0.8 sqrt(2) = 1.13 away
    -5: ((0, 0, 702, 702.1), 5.0, False),  # the hand after the step
    -6: ((0, 0, 703, 703.1), -3.0, False),  # a step later, 1.41 away
}


def filled(count=1, **config):
    shard = Shard(LED, 1, ReplayConfig(capacity=100, **config))
    shard.add(make_episodes(7, count), np.random.default_rng(0))
    return shard


@pytest.mark.parametrize(("goal", "expected"), PICKED.items())
def test_a_row_has_one_goal_and_is_paid_and_ended_under_it(goal, expected):
    drawn = filled().look_up(Picks(*np.array([[0], [1], [goal]])))
    batch = transition(drawn, 0.9, goal_reward, lambda *goals: np.ones(len(goals[0]), bool))
    np.testing.assert_array_equal(batch.desired_goal, np.float32([expected[0]]))
    assert (batch.reward[0], batch.discount[0] == 0.0) == expected[1:]
    assert (drawn.as_taken[0], drawn.reaches[0]) == (goal == -1, goal < -1)
    unpaid = transition(drawn, 0.9, None)
    np.testing.assert_array_equal(unpaid.desired_goal, batch.desired_goal)
    assert unpaid.reward[0] == 0.0


def test_a_quarter_of_the_rows_reach_four_fifths_of_these_for_later_places_of_the_hand():
    config = ReplayConfig(batch_size=5000, relabel_k=4.0)
    shard, alone = filled(3, relabel_k=4.0), Shard(SPEC, 1, ReplayConfig(relabel_k=4.0))
    alone.add(make_episodes(7, 3), np.random.default_rng(0))
    replays = [ReplayBuffer({0: each}, config, goal_reward, 0.9, 1) for each in (shard, alone)]
    picks, without = (replay.pick(2, 0) for replay in replays)
    reaches = picks.goal < -1
    goals = np.where(reaches, -3 - picks.goal, picks.goal)
    for found, expected in zip(picks._replace(goal=goals), without, strict=True):
        np.testing.assert_array_equal(found, expected)  # the other draws stay as they were
    assert reaches.mean() == pytest.approx(0.25, abs=0.02)
    assert (goals[reaches] >= 0).mean() == pytest.approx(0.8, abs=0.02)
    batch = replays[0].transitions(picks)
    half = (batch.desired_goal[..., 2:] != 0.0).all(axis=-1)
    np.testing.assert_array_equal(half, reaches)
    assert not batch.desired_goal[~reaches][:, 2:].any()
    assert not batch.desired_goal[reaches][:, :2].any()
    seen = np.round(replays[0].sample_fresh({0: make_episodes(7, 200)}, 0)[1], 1)
    ahead = seen[..., 2]  # moments see both offsets of each row: of the hand 0.2, or 1 to 5
    assert np.unique(ahead).tolist() == pytest.approx([0.2, 1, 2, 3, 4, 5])
    later = ahead > 0.5
    assert later.mean() == pytest.approx(0.8, abs=0.05)
    np.testing.assert_allclose(seen[later, 0], ahead[later] - 0.2, atol=0.15)
    assert (seen[~later, 0] < -700.0).all()


def test_drawn_steps_lead_to_the_object_as_long_as_the_hand_is_far():
    leads = Leads(REACH, np.array([[True, True, False], [False, True, True]]))
    # the object is 2, 1.67 and 2 away from the hand; from 1.4 * 1.2 = 1.68 on none is led
    seen = np.float32([[0, 0, 2, 0], [0, 0, 0, 1.67], [0, 2, 2, 2]])
    goal = np.float32([[5, 6]] * 3)
    found = leads(goal, 0, seen)
    np.testing.assert_array_equal(
        found, np.float32([[0, 0, 2, A_PLACE], [5, 6, 0, 0], [5, 6, 0, 0]])
    )
    np.testing.assert_array_equal(leads(goal, 1, seen)[2], [0, 0, 2, 2])


@cases(
    ("env_id", "world", "told"),
    (ALONE, World(), "PointReach-v0 has no known columns of hand and object\n.*one: ddpg_her$"),
    ("HandManipulateBlock-v1", World(), "have 7 numbers\nexpected .* at most 3, got 3; ddpg_her"),
    (ALONE, World(gripper=(0, 1)), "PointReach-v0 has no known columns of the object"),
    (ALONE, World(object=(0, 1)), "PointReach-v0 has no known columns of the hand"),
    (
        ALONE,
        World(gripper=(0,), object=(1,)),
        "those of .*PointReach-v0 have 3 numbers\nexpected .* got 1",
    ),
    (PUSH, World(gripper=(3, 4, 5)), "world.object: expected other columns than world.gripper"),
    (
        "Pendulum-v1",
        World(gripper=(0,), object=(1,)),
        "^--replay.reach: .* needs goals, and 'Pendulum-v1' has none",
    ),
    (
        "FetchPushDense-v4",
        World(),
        "bounds of .* FetchPushDense-v4 are not known\nexpected",
    ),
)
def test_it_needs_goals_and_the_columns_of_hand_and_object(env_id, world, told):
    with pytest.raises(UsageError, match=told) as fault:
        trainer_of(REACHING, env_id=env_id, world=world)
    assert str(fault.value).count("\n") <= 2


@cases(("columns", "warned"), ((3, 4, 5), 0), ((5, 4, 3), 1))
def test_it_warns_where_goals_are_not_the_places_of_the_object(columns, warned):
    world = World(gripper=(0, 1, 2), object=columns)
    warnings = try_environment(dataclasses.replace(REACHING, env_id=PUSH, world=world)).warnings
    assert sum("networks would see wrong distances" in text for text in warnings) == warned


def test_it_needs_no_bounds_where_the_task_is_not_paid():
    envs = LockstepEnvs("FetchPushDense-v4", 1)
    unpaid = dataclasses.replace(MUSIC, replay=REACHING.replay, env_id="FetchPushDense-v4")
    assert _reach(unpaid, envs.info, 3).hand == (0, 1, 2)


@cases(
    ("env_id", "world", "reach"),
    (PUSH, World(), Reach((0, 1, 2), (3, 4, 5), 0.3, (-1.0, 0.0))),
    (
        PUSH,
        World(gripper=(0, 1, 2), object=(5, 4, 3), reward=(-2, 0)),
        Reach((0, 1, 2), (5, 4, 3), 0.3, (-2.0, 0.0)),
    ),
)
def test_policies_are_led_while_they_learn_and_follow_the_tasks_goal_alone(env_id, world, reach):
    trainer = trainer_of(REACHING, env_id=env_id, world=world, cycles=1)
    spec = trainer.envs.spec
    assert spec.reach == reach
    assert (len(trainer.inputs.now.goal.mean), spec.goal_dim) == (3 + len(reach.hand), 3)
    act, seen = Snapshot.act, []

    def noted(snapshot, observation, goal, *others):
        seen.append(goal.shape[-1])
        return act(snapshot, observation, goal, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Snapshot, "act", noted)
        trainer.collect()
        led = {*seen}
        seen.clear()
        trainer.evaluate()
    assert (led, {*seen}) == ({spec.seen_goal}, {3})
    shards = trainer.replay.shards.values()
    assert all(shard.arrays["desired_goal"].shape[-1] == 3 for shard in shards)
