"""Collecting by steps: episodes go on from call to call, and nothing of them is lost or doubled."""

import json

import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EnvironmentFault
from music_tf.rollout import Conditions, OpenEpisodes, Perturbation
from tests.kit.counting import COUNTING, LIMIT


def opened(count=2, steps=5, every=None, **options):
    envs = LockstepEnvs(COUNTING, count, EnvConfig(kwargs=json.dumps(options)))
    episodes = OpenEpisodes(envs, 3, steps, every)
    seeds = iter(range(1, 1000))

    def begin(env):
        seed = next(seeds)
        return Conditions(np.array([seed]), None, np.eye(3, dtype=np.float32)[[seed % 3]])

    nothing = np.zeros([steps, count, 1], np.float32)
    explore = Perturbation(nothing, np.zeros([steps, count], bool), nothing, nothing)

    def act(observation, goal, skill, noise):
        return observation[:, 1:] / 100

    def play():
        parts, succeeded = episodes.play(act, begin, explore)
        assert all(len(own[0].length) == 0 for own in parts)
        return [own[1:] for own in parts], succeeded

    return episodes, play


def steps_of(part):
    return part.observation[0, : part.length[0] + 1, 1].astype(int).tolist()


def test_an_episode_goes_on_in_the_next_call_from_its_last_state():
    _, play = opened(count=1)
    calls = [play() for _ in range(4)]
    found = [[steps_of(part) for part in parts[0]] for parts, _ in calls]
    assert found == [
        [[0, 1, 2, 3, 4, 5]],
        [[5, 6, 7, 8], [0, 1, 2]],
        [[2, 3, 4, 5, 6, 7]],
        [[7, 8], [0, 1, 2, 3, 4]],
    ]
    assert [part.earlier_return[0] for parts, _ in calls for part in parts[0]] == [
        *(0, 1 + 2 + 3 + 4 + 5, 0),
        *(1 + 2, sum(range(1, 8)), 0),
    ]
    seeds = [part.observation[0, 0, 0] for parts, _ in calls for part in parts[0]]
    assert seeds == [1, 1, 2, 2, 2, 3]
    assert [int(p.skill[0].argmax()) for parts, _ in calls for p in parts[0]] == [1, 1, 2, 2, 2, 0]
    assert [len(succeeded) for _, succeeded in calls] == [0, 1, 0, 1]
    (part,) = calls[0][0][0]
    np.testing.assert_allclose(part.action[0, :, 0], np.arange(5) / 100)
    np.testing.assert_array_equal(part.reward[0], np.arange(1, 6))


def test_episodes_that_go_on_are_counted_and_a_cut_begins_every_episode_anew():
    episodes, play = opened()
    counts = []
    for _ in range(8):
        play()
        counts.append(episodes.unfinished)
    assert counts == [2, 2, 2, 2, 2, 2, 2, 0]  # 40 steps are five whole episodes of 8
    play()
    episodes._part.length[:] = 3  # as a fault leaves it
    episodes.cut()
    assert episodes.unfinished == 0
    parts, _ = play()
    assert [steps_of(parts[env][0])[0] for env in (0, 1)] == [0, 0]
    assert [parts[env][0].earlier_return[0] for env in (0, 1)] == [0, 0]


def test_an_end_of_the_task_is_kept_apart_from_a_limit_of_time():
    _, play = opened(count=1, steps=LIMIT + 1, end=3)
    parts, succeeded = play()
    assert [steps_of(part)[-1] for part in parts[0]] == [3, 3, 3]
    assert [bool(part.terminated[0]) for part in parts[0]] == [True] * 3
    assert not any(part.truncated[0] for part in parts[0])
    assert len(succeeded) == 3
    _, play = opened(count=1, steps=LIMIT + 1)
    parts, _ = play()
    assert [bool(part.terminated[0]) for part in parts[0]] == [False, False]
    assert [bool(part.truncated[0]) for part in parts[0]] == [True, False]  # the second goes on


def test_another_condition_every_few_steps_begins_a_part_of_its_own():
    _, play = opened(count=1, every=3)
    calls = [play()[0][0] for _ in range(3)]
    assert [[steps_of(part) for part in parts] for parts in calls] == [
        [[0, 1, 2, 3], [3, 4, 5]],
        [[5, 6], [6, 7, 8], [0, 1, 2]],  # what acts goes on into the next call
        [[2, 3], [3, 4, 5, 6], [6, 7]],  # and its steps count from the first of the episode
    ]
    parts = [part for own in calls for part in own]
    assert [int(part.skill[0].argmax()) for part in parts] == [1, 2, 2, 0, 1, 1, 2, 0]
    assert [part.seed[0] for part in parts] == [1, 1, 1, 1, 4, 4, 4, 4]
    assert [part.earlier_return[0] for part in parts] == [0, 6, 15, 21, 0, 3, 6, 21]
    assert not any(part.terminated[0] for part in parts)


def test_what_breaks_costs_its_episode_and_step_and_again_and_again_the_run():
    _, play = opened(count=1, spoiled=4)
    parts, succeeded = play()
    assert [steps_of(part) for part in parts[0]] == [[0, 1, 2, 3], [0, 1]]
    assert not any(part.terminated[0] for part in parts[0])
    assert len(succeeded) == 0
    _, play = opened(count=1, steps=30, spoiled=2)
    with pytest.raises(EnvironmentFault, match=r"4 episodes in a row failed.*\n.*a cable snaps"):
        play()
