import numpy as np
import pytest

from music_tf.conditions import fresh_conditions
from music_tf.config.conditioning import ConditionConfig
from music_tf.config.settings import Config, ExplorationConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EnvironmentFault
from music_tf.rollout import Conditions, ConditionSampler, Perturbation, perturbation, play
from tests.kit.cases import cases

STEPS = 30
PUSH = "music_tf/PointPush-v0"


def conditions(count, goals=None, skills=1, seed=0):
    return Conditions(np.arange(seed, seed + count), goals, np.eye(skills, dtype="f4")[[0] * count])


def constant(*components):
    def act(observation, goal, skill, noise):
        return np.tile(np.float32(components), (len(observation), 1))

    return act


def exploration(episodes=4, seed=0, size=3, **config):
    return perturbation(
        ExplorationConfig(**config), [np.random.default_rng(seed)], (STEPS, episodes, size)
    )


class Faulty(LockstepEnvs):  # spoils the chosen episodes in step 5 for their first tries
    def __init__(self, count, spoiled):
        super().__init__(PUSH, count)
        self.spoiled, self.resets = dict(spoiled), []

    def reset(self, indices, seeds, goals=None, tasks=None):
        self.resets.append((list(indices), list(seeds), goals))
        return super().reset(indices, seeds, goals)

    def step(self, actions, indices):
        taken = super().step(actions, indices)
        for row, index in enumerate(indices):
            if self.spoiled.get(index, 0) > 0 and self._elapsed[index] == 5:
                self.spoiled[index] -= 1
                taken.faults[row], taken.truncated[row] = f"environment {index} burns", True
        return taken


def test_an_episode_is_what_the_environment_says_step_by_step():
    envs, other = LockstepEnvs(PUSH, 2), LockstepEnvs(PUSH, 1)
    played = play(envs, constant(0.5, -0.25, 1.0), conditions(2, seed=3), None)
    first = other.reset([0], [4])
    np.testing.assert_array_equal(played.observation[1, 0], first.observation[0])
    np.testing.assert_array_equal(played.desired_goal[1], first.desired_goal[0])
    for step in range(STEPS):
        taken = other.step(np.float32([[0.5, -0.25, 1.0]]), [0])
        np.testing.assert_array_equal(played.observation[1, step + 1], taken.observation[0])
        np.testing.assert_array_equal(played.achieved_goal[1, step + 1], taken.achieved_goal[0])
        assert played.reward[1, step] == taken.reward[0]
    assert (played.success[1], played.length.tolist()) == (taken.success[0], [STEPS, STEPS])
    assert not played.terminated.any()
    np.testing.assert_equal(played.action[0], np.tile(np.float32([0.5, -0.25, 1]), (STEPS, 1)))


def test_the_policy_sees_state_goal_skill_and_its_own_noise():
    seen = []

    def act(observation, goal, skill, noise):
        seen.append((observation.copy(), goal.copy(), skill.copy(), noise.copy()))
        return np.zeros([2, 3], np.float32)

    chosen = conditions(2)._replace(skills=np.eye(3, dtype=np.float32)[[2, 0]])
    explore = exploration(2, noise=0.0, random_probability=0.0)
    played = play(LockstepEnvs(PUSH, 2), act, chosen, explore)
    assert len(seen) == STEPS
    for step, (observation, goal, skill, noise) in enumerate(seen):
        np.testing.assert_array_equal(observation, played.observation[:, step])
        np.testing.assert_array_equal(goal, played.desired_goal)
        np.testing.assert_array_equal(skill, chosen.skills)
        np.testing.assert_array_equal(noise, explore.policy[step])
    np.testing.assert_array_equal(played.skill, chosen.skills)


@cases(
    ("env_id", "reach", "moves"),
    (PUSH, 0.1, (0.0, 0.0, 0.0)),
    ("FetchPush-v4", 0.05, (1.0, 0.0, 0.0, 0.0)),
)
def test_zero_goals_are_stored_and_are_what_success_is_measured_by(env_id, reach, moves):
    sampler = ConditionSampler(Config(goals="zero"), 3)
    drawn = sampler.begin_episodes(np.random.default_rng(0), np.arange(4))
    played = play(LockstepEnvs(env_id, 4), constant(*moves), drawn, None)
    np.testing.assert_array_equal(played.desired_goal, np.zeros([4, 3]))
    distance = np.linalg.norm(played.achieved_goal[:, -1], axis=-1)
    np.testing.assert_array_equal(played.success, distance <= reach)
    assert (played.reward[~played.success] == -1.0).all()
    assert env_id == PUSH or not played.success.any()  # the table is far from the origin


def test_an_episode_that_terminates_early_is_padded():
    def to_goal(observation, goal, skill, noise):
        """Takes hold of the disc and carries it to the goal."""
        point, disc = observation[:, :2], observation[:, 3:5]
        far = np.linalg.norm(disc - point, axis=-1, keepdims=True) > 0.12
        way = np.where(far, disc - point, goal[:, :2] - disc)
        return np.concatenate([np.clip(way / 0.1, -1, 1), np.where(far, -1.0, 1.0)], axis=-1)

    envs = LockstepEnvs("music_tf/PointPushTerminating-v0", 6)
    played = play(envs, to_goal, conditions(6, seed=10), None)
    short = played.terminated
    assert short.any()
    assert (played.length[short] < STEPS).any()
    assert (played.length[~short] == STEPS).all()
    np.testing.assert_array_equal(played.success[short], True)
    for episode in np.flatnonzero(short):
        length = played.length[episode]
        last = played.observation[episode, length]
        assert played.reward[episode, length - 1] == 0.0
        np.testing.assert_array_equal(
            played.observation[episode, length:], np.tile(last, (STEPS + 1 - length, 1))
        )
        assert not played.action[episode, length:].any()
        assert not played.reward[episode, length:].any()


def test_a_spoiled_episode_is_played_again_under_the_next_seed_and_its_skill():
    envs = Faulty(3, {1: 2})
    chosen = conditions(3, seed=7)._replace(skills=np.eye(2, dtype=np.float32)[[0, 1, 0]])
    played = play(envs, constant(0.3, 0.3, 0.0), chosen, None)
    assert envs.resets == [([0, 1, 2], [7, 8, 9], None), ([1], [9], None), ([1], [10], None)]
    undisturbed = play(LockstepEnvs(PUSH, 3), constant(0.3, 0.3, 0.0), chosen, None)
    np.testing.assert_array_equal(played.observation[[0, 2]], undisturbed.observation[[0, 2]])
    np.testing.assert_array_equal(played.skill, chosen.skills)
    assert (played.length.tolist(), played.seed.tolist()) == ([STEPS] * 3, [7, 10, 9])
    again = LockstepEnvs(PUSH, 1).reset([0], [10])
    np.testing.assert_array_equal(played.observation[[1], 0], again.observation)
    np.testing.assert_array_equal(played.desired_goal[[1]], again.desired_goal)


def test_goals_that_were_given_survive_a_retry_and_four_failures_end_the_run():
    goals = np.float32([[0.1, 0.2, 0.0], [0.0, 0.0, 0.0]])
    played = play(Faulty(2, {0: 1}), constant(0, 0, 0), conditions(2, goals), None)
    np.testing.assert_array_equal(played.desired_goal, goals)
    with pytest.raises(EnvironmentFault, match=r"(?s)4 tries at one episode .*environment 1 burns"):
        play(Faulty(2, {1: 4}), constant(0, 0, 0), conditions(2), None)
    play(Faulty(2, {1: 3}), constant(0, 0, 0), conditions(2), None)


def test_exploration_adds_noise_of_its_size_clips_and_replaces_whole_actions():
    explore = Perturbation(
        gaussian=np.float32([[[0.3, -0.2], [0.3, -0.2]]]),
        replaced=np.array([[False, True]]),
        uniform=np.float32([[[0.5, 0.5], [-0.7, 0.9]]]),
        policy=np.zeros([1, 2, 2], np.float32),
    )
    # (0.9 + 0.3 -> 1, 0.1 - 0.2 = -0.1) is kept, the other row is replaced altogether
    found = explore(np.float32([[0.9, 0.1], [0.9, 0.1]]), 0, np.zeros([2, 1]))
    np.testing.assert_allclose(found, [[1.0, -0.1], [-0.7, 0.9]], rtol=1e-6)
    drawn = exploration(500, noise=0.2, random_probability=0.3)
    assert drawn.gaussian.std() == pytest.approx(0.2, rel=0.02)
    assert drawn.replaced.mean() == pytest.approx(0.3, abs=0.02)
    assert drawn.uniform.std() == pytest.approx(1 / np.sqrt(3), rel=0.02)
    assert np.abs(drawn.uniform).max() <= 1.0
    assert drawn.policy.std() == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("amount", [0.0, 0.5])
def test_what_is_stored_is_the_action_that_was_taken_without_noise_the_policys(amount):
    explore = exploration(2, noise=amount, random_probability=amount)
    played = play(LockstepEnvs(PUSH, 2), constant(0.5, 0.0, -0.5), conditions(2), explore)
    own = np.tile(np.float32([0.5, 0.0, -0.5]), (2, 1))
    for step in range(STEPS):
        np.testing.assert_array_equal(
            played.action[:, step], explore(own, step, played.observation[:, step])
        )
    assert (played.action == own[:, None]).all() == (amount == 0.0)


def test_a_random_action_is_held_but_not_where_steps_are_collected():
    drawn = exploration(4000, random_probability=0.3, random_hold=5.0)
    assert (drawn.uniform != exploration(4000, random_hold=1.0).uniform).any()
    again = (drawn.uniform[1:] == drawn.uniform[:-1]).all(axis=-1)
    assert not (again & ~(drawn.replaced[1:] & drawn.replaced[:-1])).any()
    share = drawn.replaced.mean(axis=1)
    np.testing.assert_allclose(share, 0.3, atol=0.03)  # 0.0072 is one deviation
    # Of the steps after a random one, 4 in 5 hold it.
    assert again[drawn.replaced[:-1]].mean() == pytest.approx(0.8, abs=0.02)


def test_fresh_conditions_come_as_often_as_skills_act():
    generator = np.random.default_rng(0)
    drawn = fresh_conditions(ConditionConfig(), 3, generator, (40, 50), np.float32([0.7, 0.0, 0.3]))
    assert drawn.shape == (40, 50, 3)
    np.testing.assert_array_equal(drawn.sum(axis=-1), 1.0)
    np.testing.assert_allclose(drawn.mean(axis=(0, 1)), [0.7, 0.0, 0.3], atol=0.03)
    alike = fresh_conditions(ConditionConfig(), 4, generator, (4000,))
    np.testing.assert_allclose(alike.mean(axis=0), 0.25, atol=0.03)
    sphere = ConditionConfig(kind="sphere", size=2)
    lengths = np.linalg.norm(fresh_conditions(sphere, 2, generator, (5, 6)), axis=-1)
    np.testing.assert_allclose(lengths, 1.0, rtol=1e-6)
