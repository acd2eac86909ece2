"""Demonstrations are read and checked like any foreign data, and named where they misfit."""

import contextlib
import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from music_tf.config.settings import CollectConfig, ReplayConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.gate import ENVIRONMENT
from music_tf.replay.buffer import empty_store
from music_tf.tools.export import export_minari
from music_tf.training import demonstrations
from music_tf.training.demonstrations import checked, read_demonstrations
from tests.kit.cases import cases
from tests.kit.demonstrated import play_at_random, write_demonstrations
from tests.kit.small import HER, replay_state, trainer_of

HELD = ("observation", "achieved_goal", "desired_goal", "action", "reward", "length", "terminated")


@pytest.fixture(scope="module")
def played():
    return play_at_random()


@pytest.fixture
def file(tmp_path, played):
    return write_demonstrations(tmp_path / "shown.npz", *played)


def run_of(config=HER):  # what of a trainer the checks look at
    envs = LockstepEnvs(config.env_id, 1, config.env, world=config.world)
    shards = {0: empty_store(config, envs.spec)}
    return SimpleNamespace(config=config, envs=envs, replay=SimpleNamespace(shards=shards))


def assert_same_episodes(episodes, played):
    for name in HELD:
        np.testing.assert_array_equal(getattr(episodes, name), getattr(played, name), name)
    assert (episodes.skill == 1.0).all()
    assert (episodes.truncated == ~episodes.terminated).all()


def test_what_evaluate_wrote_comes_back_as_it_was_played(file, played):
    assert_same_episodes(checked(run_of(), read_demonstrations([file])), played[0])


def test_several_sources_add_up_in_their_order(file):
    places = [place for place, _ in read_demonstrations([file, file])]
    assert places == 2 * [f"{file}, episode {n}" for n in range(5)]


def changed(arrays, name, place, value):
    arrays[name] = arrays[name].copy()
    arrays[name][place] = value


def reached(arrays):  # the goal, in a state that a step of -1 led to
    changed(arrays, "achieved_goal", (2, 10), arrays["desired_goal"][2])


def without(arrays, name):
    del arrays[name]


def about(arrays, **entries):
    known = json.loads(str(arrays["about"])) | entries
    arrays["about"] = np.array(json.dumps({n: v for n, v in known.items() if v is not None}))


def pickled(arrays):
    arrays["reward"] = np.array([[None] * 30] * 5)


@cases(
    ("change", "given", "text"),
    (changed, ("reward", (1, 4), -7.0), "1: step 4: reward -7, compute_reward gives -1$"),
    (changed, ("action", (0, 2), 2.0), r"0: step 2: action outside \[-1. -1. -1.\]..\[1. 1. 1.\]"),
    (
        changed,
        ("observation", (3, 9, 1), np.nan),
        r"3: observation: expected \(31, 8\).*non-finite",
    ),
    (reached, (), "2: step 9: reward -1, compute_reward gives 0"),
    (changed, ("length", 2, 31), "cannot be read: ValueError.'episode 2: length 31"),
    (changed, ("length", 2, 0), "cannot be read: ValueError.'episode 2: length 0"),
    (changed, ("length", 2, 10**12), "cannot be read: ValueError.'episode 2: length 10000"),
    (without, ("reward",), "cannot be read: KeyError.*reward"),
    (without, ("desired_goal",), "cannot be read: KeyError.*desired_goal"),
    (pickled, (), "cannot be read: ValueError.*allow_pickle=False"),
    (about, {"env_id": "FetchPush-v4"}, "0: expected music_tf/PointPush-v0, got FetchPush-v4"),
    (about, {ENVIRONMENT: None}, "cannot be read: ValueError.*written by an earlier version"),
)
def test_the_first_step_that_misfits_is_named(file, change, given, text):
    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    change(arrays, **given) if isinstance(given, dict) else change(arrays, *given)
    np.savez(file, **arrays)
    with pytest.raises(UsageError, match=f"(?s)^--demonstrations: {file}.*{text}"):
        checked(run_of(), read_demonstrations([file]))


def test_a_robot_of_fetch_never_ends_an_episode(tmp_path):
    config = dataclasses.replace(HER, env_id="FetchReach-v4", workers=1)
    played, declared = play_at_random(config, episodes=1)
    file = tmp_path / "shown.npz"
    for ended, text in ((False, ""), (True, "step 49: terminated, as no episode of this run")):
        write_demonstrations(file, played._replace(terminated=[ended]), declared, config.env_id)
        with pytest.raises(UsageError, match=text) if ended else contextlib.nullcontext():
            checked(run_of(config), read_demonstrations([str(file)]))


def test_what_would_fill_the_memory_is_refused_before_it_is_read(file, monkeypatch):
    monkeypatch.setattr(demonstrations, "_MOST", 1000)
    with pytest.raises(UsageError, match="more than 1000 bytes"):
        read_demonstrations([file])


def test_no_file_and_no_data_set_say_what_is_expected(tmp_path):
    for source in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(UsageError, match=r"(?s)FILE\.npz of evaluate.*cannot be read"):
            read_demonstrations([f"{source}.npz"])


@cases(
    ("changes", "text"),
    ({"goals": "zero"}, "a recipe with goals"),
    ({"skills": 2}, "one skill, got 2"),
    ({"workers": 6}, "6 episodes or more, one for each worker, got 5"),
    ({"replay": ReplayConfig(capacity=100, relabel_k=4.0)}, "--replay.capacity 150 or more"),
    ({"replay": ReplayConfig(draw="steps", overwrite="oldest")}, "replay of whole episodes"),
    (
        {"collect": CollectConfig(steps=5), "replay": ReplayConfig(overwrite="oldest")},
        "replay of whole episodes",
    ),
)
def test_runs_that_cannot_take_them_are_refused(file, changes, text):
    run = run_of(dataclasses.replace(HER, **changes))
    with pytest.raises(UsageError, match=f"demonstrations: expected {text}"):
        checked(run, read_demonstrations([file]))


def test_zeros_in_place_of_a_goal_need_hindsight_and_no_reward(tmp_path, played):
    episodes, declared = played
    bare = episodes._replace(
        desired_goal=0.0 * episodes.desired_goal, reward=episodes.reward - 5.0 * episodes.step_mask
    )
    stored = read_demonstrations([write_demonstrations(tmp_path / "a.npz", bare, declared)])
    assert_same_episodes(checked(run_of(), stored), bare)
    config = dataclasses.replace(HER, replay=dataclasses.replace(HER.replay, relabel_k=0.0))
    with pytest.raises(UsageError, match=r"episode 0: without a goal .*\n.*--replay\.relabel-k 4"):
        checked(run_of(config), stored)


@pytest.mark.thorough
def test_workers_share_them_and_inputs_are_normalised_by_them(played):
    trainer, (episodes, _) = trainer_of(HER), played
    trainer.demonstrate(episodes)
    for worker, rows in replay_state(trainer).items():
        np.testing.assert_array_equal(rows["action"], episodes.action[worker::2])
    assert trainer.meta()["demonstrations"] == 5
    assert trainer.shared()["normalizer/goal"][-1] == 1.0 + 5 * 30 / 2  # steps a worker
    trainer.run_cycle()
    for worker, rows in replay_state(trainer).items():
        kept = len(episodes.action[worker::2])
        np.testing.assert_array_equal(rows["action"][:kept], episodes.action[worker::2])
        assert len(rows["action"]) == kept + 2


def test_the_moments_of_goals_see_no_zeros_of_goals_that_nobody_had(played):
    trainer, (episodes, _) = trainer_of(HER), played
    there = episodes._replace(
        desired_goal=0.0 * episodes.desired_goal, achieved_goal=0.0 * episodes.achieved_goal + 3.0
    )
    trainer.demonstrate(there)
    total, rows = trainer.shared()["normalizer/goal"][[0, -1]]
    assert total == 3.0 * (rows - 1.0)


@pytest.fixture
def held(played, monkeypatch):  # a stand-in for a data set of Minari that holds the first episode
    first, steps = played[0], played[0].length[0]
    states = {name: getattr(first, name)[0, : steps + 1] for name in HELD[:2]}
    states["desired_goal"] = np.tile(first.desired_goal[0], (steps + 1, 1))
    taken = {"actions": first.action[0, :steps], "rewards": first.reward[0, :steps]}
    taken["terminations"] = np.zeros(steps, np.bool_)
    episode = SimpleNamespace(observations=states, **taken)
    data_set = SimpleNamespace(env_spec=None, iterate_episodes=lambda: [episode])
    minari = SimpleNamespace(load_dataset=lambda name: data_set)
    monkeypatch.setattr(demonstrations, "import_minari", lambda option: minari)
    return data_set


def moved_goal(held, episode):
    episode.observations["desired_goal"][7] += 0.1


def ended(held, episode):
    episode.terminations[11] = True


def vectors(held, episode):
    episode.observations = episode.observations["observation"]


def of_another_task(held, episode):
    held.env_spec = SimpleNamespace(id="music_tf/PointReach-v0")


@cases(
    ("change", "text"),
    (moved_goal, "episode 0: step 7: another desired_goal"),
    (ended, "episode 0: step 11: terminated before"),
    (vectors, "push/music-v0: expected a FILE.npz .*\n.*cannot be read: IndexError"),
    (of_another_task, "expected music_tf/PointPush-v0, got music_tf/PointReach"),
)
def test_a_data_set_is_checked_as_a_file_is(held, change, text):
    change(held, *held.iterate_episodes())
    with pytest.raises(UsageError, match=f"(?s){text}"):
        checked(run_of(dataclasses.replace(HER, workers=1)), read_demonstrations(["push/music-v0"]))


def test_an_episode_that_went_on_after_its_goal_is_none_of_a_task_that_ends_there(held):
    (episode,) = held.iterate_episodes()
    states = episode.observations
    states["achieved_goal"] = states["achieved_goal"].copy()
    states["achieved_goal"][5] = states["desired_goal"][5]
    episode.rewards = np.where(np.arange(len(episode.rewards)) == 4, 0.0, episode.rewards)
    stored, alone = read_demonstrations(["push/music-v0"]), dataclasses.replace(HER, workers=1)
    checked(run_of(alone), stored)
    ends = dataclasses.replace(alone.env, kwargs='{"terminate_when_reached": true}')
    with pytest.raises(UsageError, match="episode 0: step 4: not terminated, as compute_term"):
        checked(run_of(dataclasses.replace(alone, env=ends)), stored)
    episode.terminations[-1] = True
    checked(run_of(alone), stored := read_demonstrations(["push/music-v0"]))
    goes_on = dataclasses.replace(ends, success_ends=False)
    with pytest.raises(UsageError, match="episode 0: step 29: terminated, as no episode of this"):
        checked(run_of(dataclasses.replace(alone, env=goes_on)), stored)


@pytest.mark.thorough
def test_what_evaluate_wrote_with_minari_comes_back(tmp_path, played, monkeypatch):
    pytest.importorskip("minari", reason="the extra 'minari' is not installed")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    about = {"env_id": HER.env_id, "recipe": "ddpg_her"}
    export_minari("push/shown-v0", played[0], about)
    assert_same_episodes(checked(run_of(), read_demonstrations(["push/shown-v0"])), played[0])
