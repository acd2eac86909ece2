"""Training from Python: runs, callbacks, faults, in a process that goes on."""

import base64
import json
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import music_tf
from music_tf.envs import lockstep
from music_tf.process import signals, watchdog
from music_tf.reading.command import parse_train
from music_tf.runs import session
from tests.kit.cases import cases
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.small import OPTIONS
from tests.kit.started import python

HEAVY = ("numpy", "tensorflow", "gymnasium", "mpi4py", "tyro")
HANDLERS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Diary:  # notes what it hears; raises at the first call of one method
    def __init__(self, fails="", error=None):
        self.heard, self._fails, self._error = [], fails, error or ValueError("enough")

    def __getattr__(self, name):
        if not name.startswith("on_"):
            raise AttributeError(name)

        def note(said):
            self.heard.append((name, said))
            if name == self._fails:
                raise self._error

        return note


@pytest.fixture(scope="module", autouse=True)
def short_comparisons():
    compare = session.compare
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "compare", lambda *given: compare(*given, 4))
        yield


@pytest.fixture(scope="module")
def heard():
    return Diary()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, heard):  # a run of two epochs, of which a callback heard
    place = tmp_path_factory.mktemp("whole") / "run"
    return music_tf.train("ddpg_her", run_dir=place, epochs=2, callbacks=[heard], **OPTIONS)


def weights_of(run):
    return load_weights(run.path / "checkpoints")[0]


def test_importing_the_package_loads_nothing_heavy_and_a_refusal_no_numpy():
    done = python(
        "import sys, music_tf\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
        "try:\n    music_tf.train('ddpg_muzic')\n"
        "except music_tf.UsageError as fault:\n    print(fault, fault.exit_code)\n"
        f"print([name for name in {HEAVY[:-1]} if name in sys.modules])\n"
    )
    first, *told, last = done.stdout.splitlines()
    assert (first, last) == ("[]", "[]"), done.stderr
    assert told[-1] == "did you mean ddpg_music? 2"


def test_a_run_shows_its_table_a_policy_that_acts_and_a_command_line_that_means_it(whole):
    assert list(whole.metrics["epoch"]) == [1.0, 2.0]
    written = [float(row["train/critic_loss"]) for row in rows_of(whole.path)]
    np.testing.assert_array_equal(whole.metrics["train/critic_loss"], written)
    assert "train/entropy" not in whole.metrics  # DDPG has none
    policy = whole.policy()
    assert (policy.recipe, policy.epoch) == ("ddpg_her", 2)
    action = policy.act(np.zeros(policy.observation_dim), goal=np.zeros(policy.goal_dim))
    assert action.shape == (policy.action_dim,)
    again = parse_train(json.loads((whole.path / "config.json").read_text())["arguments"])
    assert again.config.agent.hidden_sizes == (16, 16)
    assert (again.run_dir, again.config.epochs) == (whole.path, 2)


@pytest.mark.parametrize("episodes", [0, 2.0, "3", np.array([3]), True], ids=str)
def test_an_impossible_number_of_episodes_is_refused(whole, episodes):
    with pytest.raises(music_tf.UsageError, match=r"episodes: expected a whole number"):
        whole.evaluate(episodes=episodes)


def test_the_commands_that_are_printed_quote_where_the_run_lies(tmp_path, capsys):
    path = tmp_path / "my runs"
    music_tf.train("ddpg_her", run_dir=path, epochs=1, **OPTIONS)
    lines = [line.partition(":") for line in capsys.readouterr().out.splitlines()]
    words = {name: shlex.split(rest) for name, _, rest in lines if name in ("watch", "play")}
    assert words["watch"][:3] == [sys.executable, "-m", "tensorboard.main"]
    assert words["watch"][3:5] == ["--logdir", str(path)]
    assert words["play"] == ["music-tf", "play", str(path)]


def test_evaluate_returns_what_it_writes_and_shows_nothing(whole, capsys):
    found = whole.evaluate(episodes=np.int64(3))
    assert found == json.loads((whole.path / "evaluation.json").read_text())
    assert (found["episodes"], set(found["policies"]) >= {"ours", "random"}) == (3, True)
    judged = whole.evaluate(episodes=3, full=True)
    assert judged["control_episodes"] == 3
    assert judged == json.loads((whole.path / "evaluation.json").read_text())
    assert whole.evaluate(episodes=2, overwrite=True)["episodes"] == 2
    assert json.loads((whole.path / "evaluation.json").read_text())["episodes"] == 2
    assert capsys.readouterr().out == ""


@pytest.mark.thorough
def test_a_second_run_in_the_process_has_the_same_numbers_and_one_in_a_thread(whole, tmp_path):
    found = []

    def train():
        found.append(music_tf.train("ddpg_her", run_dir=tmp_path / "run", epochs=1, **OPTIONS))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    (run,) = found
    assert rows_of(run.path) == rows_of(whole.path)[:1]
    rows = []  # of a callback that has one of the methods alone
    assert run.resume(epochs=2, callbacks=[SimpleNamespace(on_epoch=rows.append)]) == run
    np.testing.assert_equal(weights_of(run), weights_of(whole))
    assert [row["time/epoch"] for row in rows] == [2.0]


def test_a_run_that_was_trained_before_is_loaded_by_its_path_or_as_the_latest(whole, tmp_path):
    assert music_tf.load_run(whole.path) == whole
    run = music_tf.train("ddpg_her", epochs=1, **OPTIONS)  # under MUSIC_TF_RUNS
    assert music_tf.load_run("latest").path == run.path
    with pytest.raises(music_tf.UsageError, match="expected a run directory"):
        music_tf.load_run(tmp_path / "none")
    for allowed in (False, True):
        with pytest.raises(
            music_tf.UsageError, match=r"^env_id: the run was trained on .*, got 'F"
        ):
            music_tf.load_run(whole.path, "FetchPush-v4", allow_import=allowed)


def test_callbacks_hear_of_cycles_evaluations_saves_and_epochs_in_that_order(whole, heard):
    names = [name for name, _ in heard.heard]
    assert names == ["on_cycle", "on_cycle", "on_evaluation", "on_save", "on_epoch"] * 2
    said = [[one for name, one in heard.heard if name == hook] for hook in names[1:5]]
    cycles, played, saves, rows = said
    assert [(one.epoch, one.cycle) for one in cycles] == [(0, 1), (0, 2), (1, 3), (1, 4)]
    assert cycles[0].env_steps < cycles[1].env_steps  # copies, not the trainer's own
    seconds = [one.wall_s for one in cycles[:2]]
    assert 0.0 < seconds[0] < seconds[1] < rows[0]["time/wall_s"]
    assert [len(one.length) for one in played] == [4, 4]
    assert saves[-1] == whole.path / "checkpoints" / "epoch_000002"
    for name in ("time/env_steps", "train/critic_loss"):
        np.testing.assert_array_equal(whole.metrics[name], [row[name] for row in rows])


@pytest.mark.thorough
@cases(
    ("hook", "error", "cycle"),
    ("on_cycle", ValueError("of the callback"), 1),
    ("on_cycle", KeyboardInterrupt("of the callback"), 1),
    ("on_evaluation", music_tf.NumbersFault("of the callback"), 2),
    ("on_save", MemoryError("of the callback"), 2),
    ("on_epoch", SystemExit("of the callback"), 2),
    ("on_epoch", music_tf.Stopped("of the callback"), 2),
)
def test_what_a_callback_raises_ends_the_run_saved_to_go_on(whole, tmp_path, hook, error, cycle):
    diary, path = Diary(hook, error), tmp_path / "run"
    epochs = 1 if isinstance(error, music_tf.Stopped) else 2  # the last one is heard, too
    with pytest.raises(type(error), match="of the callback") as caught:
        music_tf.train("ddpg_her", run_dir=path, epochs=epochs, callbacks=[diary], **OPTIONS)
    assert caught.value is error
    assert f"--run-dir {path} --resume" in error.__notes__[0]
    assert diary.heard[-1][0] == hook  # it is called no more
    assert load_weights(path / "checkpoints")[1]["counters"]["cycle"] == cycle
    assert not (path / "summary.json").exists()
    run = music_tf.load_run(path).resume(epochs=2)
    np.testing.assert_equal(weights_of(run), weights_of(whole))


def test_an_environment_that_interrupts_its_own_start_leaves_no_directory(tmp_path, monkeypatch):
    def interrupted(env_id, settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(lockstep, "make_environment", interrupted)
    with pytest.raises(KeyboardInterrupt):
        music_tf.train("ddpg_her", run_dir=tmp_path / "runs/mine", epochs=1, **OPTIONS)
    assert not (tmp_path / "runs").exists()


def test_a_second_ctrl_c_within_a_callback_leaves_at_once_without_saving(tmp_path):
    class Presses:
        def on_cycle(self, counters):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        music_tf.train("ddpg_her", run_dir=tmp_path / "run", callbacks=[Presses()], **OPTIONS)
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_a_callback_that_hangs_is_interrupted(monkeypatch, tmp_path):
    class Stuck:
        def on_cycle(self, counters):
            while True:
                time.sleep(0.01)

    monkeypatch.setattr(watchdog, "LONGER", 1e-3)  # within a callback the limit is 0.1 s
    with pytest.raises(music_tf.Hanging):
        music_tf.train(
            "ddpg_her", run_dir=tmp_path / "run", hang_after=100, callbacks=[Stuck()], **OPTIONS
        )


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_signal_stops_and_saves_and_afterwards_means_what_it_did(tmp_path, number):
    raises = SimpleNamespace(on_cycle=lambda counters: signal.raise_signal(number))
    before = [signal.getsignal(one) for one in HANDLERS]
    with pytest.raises(music_tf.Stopped, match="to resume:"):
        music_tf.train("ddpg_her", run_dir=tmp_path / "run", callbacks=[raises], **OPTIONS)
    assert [signal.getsignal(one) for one in HANDLERS] == before
    assert not signals.stop_requested()
    assert music_tf.load_run(tmp_path / "run").resume(epochs=1).metrics["epoch"] == [1.0]


@cases(
    ("recipe", "options", "words"),
    ("ddpg_muzic", {}, "ddpg_muzic"),
    ("ddpg", {"epochs": "many"}, "ddpg --epochs many"),
    ("ddpg_music", {"music": {"gian": 5}}, "ddpg_music --music.gian 5"),
    ("ddpg", {"resume": True}, "ddpg --resume"),
)
def test_what_the_command_line_refuses_is_refused_in_its_words(recipe, options, words):
    with pytest.raises(music_tf.UsageError) as of_command:
        parse_train(words.split())
    with pytest.raises(music_tf.UsageError) as of_python:
        music_tf.train(recipe, **options)
    assert (str(of_python.value), of_python.value.exit_code) == (str(of_command.value), 2)


@cases(
    ("callbacks", "told"),
    (print, "in a list, got <built-in function print>"),
    ([print], "expected objects with any of on_cycle, on_epoch, on_evaluation, on_save, got"),
    ([type("Rows", (), {"on_epoch": print})], "got the class Rows: make one of it"),
    ([type("Typo", (), {"on_epoh": print})()], "with on_epoh\ndid you mean on_epoch?"),
    (
        [type("Half", (), {"on_save": print, "on_epoh": print})()],
        "with on_epoh\ndid you mean on_epoch?",
    ),
)
def test_a_callback_that_would_not_hear_what_it_means_to_is_refused(callbacks, told):
    with pytest.raises(music_tf.UsageError) as caught:
        music_tf.train("ddpg_her", callbacks=callbacks, **OPTIONS)
    assert told in str(caught.value)


def test_several_ranks_are_refused_with_the_command_for_them(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(music_tf.UsageError, match="for several: music-tf launch -n N train"):
        music_tf.train("ddpg_her", **OPTIONS)


def test_another_backend_of_keras_is_refused_before_anything_is_written(monkeypatch, tmp_path):
    import keras

    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(music_tf.UsageError, match=r"expected the backend tensorflow, .* has jax"):
        music_tf.train("ddpg_her", run_dir=tmp_path / "run", **OPTIONS)
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_a_film_is_made_in_another_process_and_shows_itself(whole, tmp_path):
    film = whole.play(tmp_path / "push.gif", episodes=1)
    assert Path(film).read_bytes()[:4] == b"GIF8"
    shown = film._repr_html_()
    assert shown.startswith('<img src="data:image/gif;base64,')
    assert base64.b64decode(shown.partition("base64,")[2][:8])[:4] == b"GIF8"
    with pytest.raises(music_tf.UsageError, match="--out"):
        whole.play(tmp_path / "push.txt")
    with pytest.raises(music_tf.UsageError, match="has no embedding"):
        whole.play(tmp_path / "push.gif", reach=np.array([1.0, 2.0]))
