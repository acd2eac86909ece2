"""What replay computes is compared with what was paid for as long as a run goes on."""

import logging

import gymnasium
import numpy as np
import pytest

from music_tf.errors import EnvironmentFault
from music_tf.replay.rows import Drawn, explained_by_rounding, packed, reward_gaps
from music_tf.replay.watch import RewardMismatches, RewardWatch
from tests.kit.points import STEPS, Point
from tests.kit.small import HER, MUSIC, go_on, trainer_of


def near(achieved, goal, extras):
    return np.where(np.linalg.norm(achieved - goal, axis=-1) <= 0.5, 0.0, -1.0)


def drawn(achieved, paid, as_taken):  # steps that achieved places on a line, with the goal at 0
    after = np.zeros(len(achieved), packed(achieved_goal=1))
    after["achieved_goal"][:, 0] = achieved
    nothing = np.zeros(len(achieved), np.float32)
    parts = dict.fromkeys(Drawn._fields, nothing) | {
        "after": after,
        "reward": np.array(paid, np.float32),
        "goal": np.zeros((len(achieved), 1), np.float32),
        "as_taken": np.array(as_taken),
    }
    return Drawn(**parts)


def test_steps_that_kept_their_goal_are_counted_and_one_at_an_edge_may_be_rounded():
    watch = RewardWatch(near)
    rows = drawn([0.1, 0.9, 0.9], [0.0, 0.0, 0.0], [True, True, False])
    watch.see(rows, near(rows.after["achieved_goal"], rows.goal, {}))
    assert watch.example == "a step paid 0, and replay computes -1 under the same goal"
    assert (watch.take(), watch.take()) == ((2, 1), (0, 0))
    watch = RewardWatch(near)
    rows = drawn([np.nextafter(np.float32(0.5), np.float32(1)), 0.501], [0.0, 0.0], [True, True])
    watch.see(rows, near(rows.after["achieved_goal"], rows.goal, {}))
    assert watch.take() == (2, 1)


def test_one_large_reward_hides_no_error_of_others():
    paid, computed = np.float32([1000.0, -1.0, 0.0]), np.float32([1000.5, -1.5, 0.01])
    assert reward_gaps(paid, computed).tolist() == [False, True, True]
    assert reward_gaps(paid[1:], computed[1:]).tolist() == [True, True]
    within = np.float32([0.0, -1.0005, 5e-4])  # a thousandth of its own, or rounded in a sum
    assert reward_gaps(paid, within + np.float32([1000.0, 0.0, 0.0])).tolist() == [False] * 3
    assert reward_gaps(np.float32([0.0]), np.float32([5e-4])).tolist() == [True]
    assert reward_gaps(np.float32([np.nan]), np.float32([0.0])).tolist() == [True]


def test_goals_that_are_rounded_explain_what_lies_among_their_rewards():
    goal = np.zeros((3, 1), np.float32) + np.float32(1.0)
    achieved = goal + np.float32([[0.0], [0.0], [0.25]])

    def root(moved):
        return -np.sqrt(np.abs(moved - goal)).sum(axis=-1)

    # a millionth of a millimetre away pays -3e-4; a hundredth, or a distance of its own, does not
    paid = np.float32([-3e-4, -1e-2, -0.51])
    computed = root(achieved)
    assert reward_gaps(paid, computed).all()
    found = explained_by_rounding(root, (achieved, goal), paid, computed)
    assert found.tolist() == [True, False, False]


def test_what_differs_is_common_from_one_step_in_a_hundred_on():
    compared = ((1000, 10), (1000, 11), (10, 9), (10, 10), (10**6, 5000))
    common = [RewardMismatches(*counts).common for counts in compared]
    assert common == [False, True, False, True, False]


class Turns(Point):  # begins to pay something else in its third episode
    def reset(self, **options):
        self.begun = getattr(self, "begun", 0) + 1
        return super().reset(**options)

    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward - float(self.begun > 2 and self.wrong()), *rest

    def wrong(self):
        return True


class TurnsRarely(Turns):
    def wrong(self):
        return self.steps == 3 and self.begun % 8 == 0


@pytest.fixture
def turning():
    for kind in (Turns, TurnsRarely):
        gymnasium.register(f"{kind.__name__}-v0", kind, max_episode_steps=STEPS)
    yield
    for kind in (Turns, TurnsRarely):
        del gymnasium.registry[f"{kind.__name__}-v0"]


@pytest.mark.thorough
def test_a_reward_that_turns_wrong_ends_the_run(turning):
    trainer = trainer_of(HER, env_id="Turns-v0", cycles=20)
    with pytest.raises(EnvironmentFault, match=r"Turns-v0: a step paid .* of .* steps that were"):
        trainer.run_epoch(go_on)
    assert 2 <= trainer.log.cycles < 10


@pytest.mark.thorough
def test_a_reward_that_is_rarely_wrong_is_warned_of_once(turning, caplog):
    trainer = trainer_of(HER, env_id="TurnsRarely-v0", cycles=40, updates=20)
    with caplog.at_level(logging.WARNING):
        trainer.run_epoch(go_on)
    told = [each.getMessage() for each in caplog.records if "drawn with" in each.getMessage()]
    assert len(told) == 1
    assert "the run continues as long as they are few" in told[0]


@pytest.mark.thorough
def test_rewards_are_watched_where_the_task_is_paid_under_its_goal_and_change_no_number():
    assert trainer_of(HER).replay.watch is not None
    assert trainer_of(HER, goals="zero").replay.watch is None
    assert trainer_of(MUSIC, goals="environment").replay.watch is None
    watched, alone = trainer_of(HER), trainer_of(HER)
    alone.replay.watch = None
    for trainer in (watched, alone):
        trainer.run_epoch(go_on)
    assert watched.replay.watch.take().steps > 0
    np.testing.assert_equal(watched.shared(), alone.shared())
