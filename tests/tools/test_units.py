"""What leaves the package acts in the units of the environment, as evaluations in training do."""

import functools
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import music_tf
from music_tf.cli import run_verb
from music_tf.config.settings import EnvConfig
from music_tf.errors import UsageError
from music_tf.runs.loaded_run import load_run
from music_tf.tools.film import play
from music_tf.tools.portable import write_onnx, write_robot
from tests.kit.saved_run import save_run
from tests.kit.winches import SPACES, TAKEN, WINCHES
from tests.test_declared import forget_declaration

pytestmark = pytest.mark.thorough


def given_to_the_environment(action):
    """Runs `action` and returns what it gave to environments, [T, A]."""
    TAKEN.clear()
    action()
    return np.array(TAKEN)


@pytest.fixture(scope="module", params=list(SPACES))
def trained(tmp_path_factory, request):
    """A run, its bounds, and the observations and actions of one of its evaluation episodes."""
    path, space = tmp_path_factory.mktemp(request.param), SPACES[request.param]
    env = EnvConfig(kwargs=json.dumps({"units": request.param}))
    trainer = save_run(path, "sac", env_id=WINCHES, env=env, rollouts=1)
    evaluation, policy = trainer.final_policy()
    played = []
    taken = given_to_the_environment(lambda: played.append(evaluation.play(policy, 1)))
    trainer.envs.close()
    return path, space, played[0].observation[0, :-1], taken


def file_of_python(policy, folder):
    """The class of an exported file, loaded as another program loads it."""
    write_robot(policy, folder)
    spec = importlib.util.spec_from_file_location("policy", folder / "policy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Policy()


def test_every_door_gives_what_an_evaluation_in_training_gives(trained, tmp_path):
    path, space, observations, taken = trained
    near = 1e-5 * (space.high.astype(float) - space.low)
    policy = music_tf.load_policy(path, WINCHES)
    exported = file_of_python(policy, tmp_path)
    assert np.ptp(taken[:, 0]) > 0
    for door in (policy, exported):
        actions = np.array([door.act(observation) for observation in observations])
        assert actions.dtype == space.dtype
        assert all(map(space.contains, actions))
        assert (np.abs(actions - taken) <= near).all()
        np.testing.assert_array_equal(door.act(observations), policy.act(observations))
        unit = door.act(observations, unit=True)
        assert (unit.dtype, np.abs(unit).max() <= 1.0) == (np.float32, True)
        if (space.low == -1).all():
            np.testing.assert_array_equal(unit, door.act(observations))
    assert json.loads(json.dumps(exported.about))["environment"]["high"] == space.high.tolist()


def test_onnx_gives_it_too(trained, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    path, space, observations, taken = trained
    write_onnx(music_tf.load_policy(path, WINCHES), tmp_path / "a.onnx")
    session = runtime.InferenceSession(tmp_path / "a.onnx")
    (actions,) = session.run(["action"], {"observation": np.float32(observations)})
    assert (np.abs(actions - taken) <= 1e-5 * (space.high.astype(float) - space.low)).all()
    assert (actions >= space.low).all()
    assert (actions <= space.high).all()


def test_evaluate_and_play_give_it_and_an_archive_holds_it(trained, tmp_path):
    path, space, observations, taken = trained

    def evaluate():
        loaded = load_run(path, WINCHES, environments=1)
        loaded.evaluation.play(loaded.policy, 1)
        loaded.envs.close()

    np.testing.assert_array_equal(given_to_the_environment(evaluate), taken)
    film = functools.partial(play, path, tmp_path / "a.gif", range(1), (), 6, WINCHES)
    filmed = given_to_the_environment(film)  # played, and repeated for its pictures
    np.testing.assert_array_equal(filmed[-len(taken) :], taken)
    out = ["--episodes", "1", "--out", str(tmp_path / "a.npz"), "--env-id", WINCHES]
    assert run_verb(["evaluate", str(path), *out]) == 0
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        archive = dict(file)
    about = json.loads(str(archive["about"]))["environment"]
    assert (about["low"], about["type"]) == (space.low.tolist(), space.dtype.name)
    assert archive["action"].dtype == space.dtype
    np.testing.assert_allclose(archive["action"][0], taken, rtol=1e-6)
    np.testing.assert_array_equal(archive["observation"][0, :-1], observations)


def test_what_stores_no_bounds_names_the_way_to_its_actions(tmp_path):
    forget_declaration(tmp_path / "run", recipe="sac", env_id=WINCHES)
    policy = music_tf.load_policy(tmp_path / "run", WINCHES)
    exported = file_of_python(policy, tmp_path)
    for door in (policy, exported):
        with pytest.raises(ValueError, match=r"act: the bounds of actions are unknown.*unit=True"):
            door.act(np.zeros(3))
        assert np.abs(door.act(np.zeros(3), unit=True)).max() <= 1.0
    with pytest.raises(UsageError, match="--onnx: the bounds of actions are unknown"):
        write_onnx(policy, Path("a.onnx"))
