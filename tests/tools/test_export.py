import functools
import importlib
import json
import sys

import gymnasium
import numpy as np
import pytest

from music_tf.config.conditioning import ConditionConfig
from music_tf.config.settings import EnvConfig
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.runs.inspection import evaluate_run
from music_tf.runs.loaded_run import load_run
from music_tf.tools import export
from music_tf.tools.export import exporter
from tests.kit import boxed
from tests.kit.counting import COUNTING, LIMIT, Counting
from tests.kit.saved_run import save_run

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    save_run(path, "ddpg_her", skills=2, env_id="music_tf/PointPushTerminating-v0")
    return path


@pytest.fixture(scope="module")
def played(run):
    loaded = load_run(run)
    return loaded.evaluation.play(loaded.policy, 6)


@pytest.fixture(scope="module")
def found(run, tmp_path_factory):  # the archive of six episodes
    path = tmp_path_factory.mktemp("archive") / "episodes.npz"
    evaluate_run(load_run(run), 6, export=exporter(path, None))
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def test_an_archive_holds_what_was_played(found, played):
    steps = played.action.shape[1]
    assert {name: (array.dtype.str, array.shape) for name, array in found.items()} == {
        **{"observation": ("<f4", (6, steps + 1, 8)), "achieved_goal": ("<f4", (6, steps + 1, 3))},
        **{"desired_goal": ("<f4", (6, 3)), "action": ("<f4", (6, steps, 3))},
        **{"reward": ("<f4", (6, steps)), "length": ("<i8", (6,)), "terminated": ("|b1", (6,))},
        **{"success": ("|b1", (6,)), "skill": ("<i8", (6,)), "seed": ("<i8", (6,))},
        **{"about": (found["about"].dtype.str, ()), "skill/return": ("<f4", (6,))},
        **{"skill/descriptor": ("<f4", (steps, 6, 3)), "skill/kept": ("|b1", (steps, 6))},
    }
    for name in ("observation", "achieved_goal", "desired_goal", "action", "reward", "length"):
        np.testing.assert_array_equal(found[name], getattr(played, name))
    assert found["skill"].tolist() == [0, 1, 0, 1, 0, 1]
    about = json.loads(str(found["about"]))
    assert (about["recipe"], about["env_id"], about["epoch"], about["goals"]) == (
        "ddpg_her",
        "music_tf/PointPushTerminating-v0",
        1,
        "environment",
    )


def test_continuous_conditions_are_handed_out_as_they_are(tmp_path):
    save_run(tmp_path, condition=ConditionConfig(kind="box", size=3))
    evaluate_run(load_run(tmp_path), 2, export=exporter(tmp_path / "episodes.npz", None))
    loaded = load_run(tmp_path)
    with np.load(tmp_path / "episodes.npz", allow_pickle=False) as archive:
        expected = loaded.evaluation.play(loaded.policy, 2).skill
        np.testing.assert_array_equal(archive["skill"], expected)
    assert expected.shape == (2, 3)
    said = json.loads((tmp_path / "evaluation.json").read_text())
    assert said["skills"] == []
    assert said["protocol"]["skills"] == "box conditions, fixed by episode index"


def test_a_seed_and_the_actions_give_an_unspoiled_episode_again(run, found, played, tmp_path):
    envs = load_run(run).envs
    first = envs.reset([0], [int(found["seed"][2])])
    np.testing.assert_array_equal(first.observation[0], found["observation"][2, 0])
    np.testing.assert_array_equal(first.desired_goal[0], found["desired_goal"][2])
    for step in range(found["length"][2]):
        taken = envs.step(found["action"][2, step : step + 1], [0])
        np.testing.assert_array_equal(taken.observation[0], found["observation"][2, step + 1])
        assert taken.reward[0] == found["reward"][2, step]
    export.export_npz(tmp_path / "episodes.npz", played._replace(seed=np.arange(6) + 7), {}, {})
    with np.load(tmp_path / "episodes.npz", allow_pickle=False) as archive:
        assert archive["seed"].tolist() == [7, 8, 9, 10, 11, 12]


def test_an_archive_that_cannot_be_written_is_a_fault(run, tmp_path):
    (tmp_path / "taken.npz").mkdir()
    with pytest.raises(EnvironmentFault, match=r"taken\.npz: cannot be written"):
        evaluate_run(load_run(run), 1, export=exporter(tmp_path / "taken.npz", None))


def test_without_minari_the_cure_is_named_before_anything_is_played(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    cure = r"expected the package minari, .*\n.* in this environment: .* 'music_tf\[minari\]'"
    with pytest.raises(EnvironmentFault, match=cure):
        exporter(None, "push/music-v0")


@pytest.fixture
def minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return pytest.importorskip("minari", reason="the extra 'minari' is not installed")


def test_a_minari_dataset_holds_what_was_played(run, played, minari):
    evaluate_run(load_run(run), 6, export=exporter(None, "push/music-v0"))
    dataset = minari.load_dataset("push/music-v0")
    assert dataset.total_episodes == 6
    for index, episode in enumerate(dataset.iterate_episodes()):
        length = played.length[index]
        assert len(episode.actions) == length
        np.testing.assert_array_equal(episode.actions, played.action[index, :length])
        np.testing.assert_array_equal(
            episode.observations["observation"], played.observation[index, : length + 1]
        )
        np.testing.assert_array_equal(
            episode.observations["desired_goal"], played.desired_goal[[index] * (length + 1)]
        )
        np.testing.assert_array_equal(episode.rewards, played.reward[index, :length])
        ends = [bool(episode.terminations[-1]), bool(episode.truncations[-1])]
        assert ends == [played.terminated[index], not played.terminated[index]]
        assert not episode.terminations[:-1].any()
        assert not episode.truncations[:-1].any()
        for name, rows in episode.observations.items():
            assert all(map(dataset.observation_space[name].contains, rows))
        assert all(map(dataset.action_space.contains, episode.actions))
    with pytest.raises(UsageError, match="push/music-v0 exists already"):
        exporter(None, "push/music-v0")


def test_whole_numbers_of_a_minari_dataset_are_those_that_were_taken(tmp_path, minari, monkeypatch):
    taken, step = [], Counting.step

    def noted(self, action):
        taken.append(action.tolist())
        return step(self, action)

    def made(self, *given):
        init(self, *given)
        self.action_space = gymnasium.spaces.Box(-3, 3, (1,), np.int64)

    init = Counting.__init__
    monkeypatch.setattr(Counting, "__init__", made)
    save_run(tmp_path / "run", env_id=COUNTING)
    loaded = load_run(tmp_path / "run", COUNTING, environments=1)
    monkeypatch.setattr(Counting, "step", noted)
    played = loaded.evaluation.play(lambda seen, *_: np.sin(seen[:, :1] + 0.3 * seen[:, 1:]), 1)
    export.export_minari("push/whole-v0", played, {"env_id": COUNTING, "recipe": "ddpg"})
    found = next(minari.load_dataset("push/whole-v0").iterate_episodes()).actions
    assert found.tolist() == taken
    assert len(np.unique(found)) > 2


def test_a_minari_dataset_of_a_task_without_goals_holds_vectors(tmp_path, minari):
    save_run(tmp_path / "run", "sac", env_id="Pendulum-v1", rollouts=1)
    loaded = load_run(tmp_path / "run")
    evaluate_run(loaded, 2, export=exporter(None, "push/pendulum-v0"))
    played = loaded.evaluation.play(loaded.policy, 2)
    dataset = minari.load_dataset("push/pendulum-v0")
    assert dataset.spec.observation_space.shape == (3,)
    for index, episode in enumerate(dataset.iterate_episodes()):
        assert episode.observations.dtype == np.float32
        np.testing.assert_array_equal(episode.observations, played.observation[index])
        np.testing.assert_allclose(episode.actions, 2.0 * played.action[index], atol=1e-6)


def test_an_environment_registered_by_its_class_is_written_and_made_again(tmp_path, minari):
    save_run(tmp_path / "run", env_id=COUNTING, env=EnvConfig(kwargs='{"size": 4}'))
    evaluate_run(load_run(tmp_path / "run", COUNTING), 2, export=exporter(None, "push/class-v0"))
    dataset = minari.load_dataset("push/class-v0")
    assert dataset.spec.observation_space.shape == (4,)
    again = dataset.recover_environment()
    assert isinstance(again.unwrapped, Counting)
    assert again.spec.max_episode_steps == LIMIT
    assert again.reset(seed=5)[0].tolist() == [5.0, 0.0, 5.0, 0.0]


def test_an_environment_that_none_else_can_make_is_left_out(tmp_path, minari, monkeypatch, caplog):
    class Within(Counting):
        pass

    monkeypatch.setattr(gymnasium.spec("Counting-v0"), "entry_point", Within)
    save_run(tmp_path / "run", env_id=COUNTING)
    evaluate_run(load_run(tmp_path / "run", COUNTING), 2, export=exporter(None, "push/within-v0"))
    dataset = minari.load_dataset("push/within-v0")
    assert (dataset.total_episodes, dataset.spec.env_spec) == (2, None)
    assert "does not say how its environment is made" in caplog.text


def test_what_lies_outside_its_space_leaves_nothing(tmp_path, minari, monkeypatch):
    importlib.import_module("minari.namespace").create_namespace("push")
    from_one = functools.partial(gymnasium.spaces.Box, 1.0, np.inf, dtype=np.float64)
    monkeypatch.setattr(boxed, "unbounded", lambda size: from_one((size,)))
    save_run(tmp_path / "run", env_id=COUNTING)
    with pytest.raises(EnvironmentFault, match=r"0: the observation of step 0 .*: \[\d+\. +0\.\]"):
        evaluate_run(load_run(tmp_path / "run", COUNTING), 2, export=exporter(None, "push/out-v0"))
    assert (tmp_path / "minari" / "push").exists()
    assert not (tmp_path / "minari" / "push" / "out-v0").exists()


def test_a_dataset_that_fails_half_way_does_not_block_the_next(run, tmp_path, minari, monkeypatch):
    storage = importlib.import_module("minari.dataset.minari_storage").MinariStorage
    with monkeypatch.context() as failing:
        failing.setattr(storage, "update_metadata", lambda *given: 1 / 0)
        with pytest.raises(EnvironmentFault, match=r"cannot be written .*ZeroDivisionError"):
            evaluate_run(load_run(run), 7, export=exporter(None, "push/again-v0"))
    assert json.loads((run / "evaluation.json").read_text())["episodes"] == 7
    assert list((tmp_path / "minari").iterdir()) == []
    evaluate_run(load_run(run), 1, export=exporter(None, "push/again-v0"))
