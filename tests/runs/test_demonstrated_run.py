"""A run with demonstrations, from its command to its last bit."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from music_tf.errors import Stopped, UsageError
from music_tf.reading.command import parse_train
from tests.kit.cases import cases
from tests.kit.demonstrated import play_at_random, write_demonstrations
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import command_of, run_session, stop_asked
from tests.kit.small import HER

RUN = dataclasses.replace(
    HER, workers=1, epochs=2, updates=2, replay=dataclasses.replace(HER.replay, capacity=240)
)
"""A store of eight episodes; an epoch plays four."""


def test_the_option_may_be_typed_again_and_places_files_in_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["ddpg_her", "--demonstrations", "a.npz", "push/music-v0", "--demonstrations=b/c.npz"]
    expected = (str(tmp_path / "a.npz"), "push/music-v0", str(tmp_path / "b/c.npz"))
    assert parse_train(words).demonstrations == expected


def test_a_share_without_demonstrations_is_refused():
    with pytest.raises(UsageError, match=r"--replay\.demonstration-share: needs --demonstrations"):
        parse_train(["ddpg_her", "--replay.demonstration-share", "0.5"])


def replay_of(path, label):
    with np.load(path / f"checkpoints/replay/worker_0000/{label}.npz") as rows:
        return dict(rows)


@pytest.mark.thorough
def test_a_run_keeps_them_and_resumes_without_the_file_to_the_same_bits(tmp_path, capsys):
    played, declared = play_at_random(episodes=3)
    played = played._replace(desired_goal=played.desired_goal * [[1], [0], [1]])
    file = write_demonstrations(tmp_path / "shown.npz", played, declared)
    words = ("ddpg_her", "--demonstrations", file)
    new = {"arguments": words, "demonstrations": (file,)}
    run_session(command_of(RUN, tmp_path / "whole", **new))
    with stop_asked(1), pytest.raises(Stopped):
        run_session(command_of(RUN, tmp_path / "parts", **new))
    said = "demonstrations: 3 episodes, 1 without a goal are relabelled only"
    assert capsys.readouterr().out.splitlines().count(said) == 2
    bare = {"resume": True, "without_replay": True, "arguments": words}
    lost = "demonstrations are dropped with replay; --demonstrations reads them again"
    for name, more, text, count in (("emptied", {}, lost, 0), ("filled", new, said, 3)):
        shutil.copytree(tmp_path / "parts", tmp_path / name)
        run_session(command_of(RUN, tmp_path / name, **bare | more))
        assert text in capsys.readouterr().out.splitlines()
        assert load_weights(tmp_path / name / "checkpoints")[1].get("demonstrations", 0) == count
    (tmp_path / "shown.npz").unlink()
    run_session(command_of(RUN, tmp_path / "parts", resume=True, arguments=words))
    paths = [tmp_path / name for name in ("whole", "parts")]
    whole, parts = (load_weights(path / "checkpoints") for path in paths)
    np.testing.assert_equal(parts[0], whole[0])
    assert rows_of(paths[0]) == rows_of(paths[1])
    assert whole[1]["demonstrations"] == parts[1]["demonstrations"] == 3
    first = replay_of(paths[0], "epoch_000000")
    assert first["slots"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(first["action"], played.action)
    for label in ("epoch_000001", "epoch_000002"):  # eight episodes for five slots
        assert not {0, 1, 2} & {*replay_of(paths[0], label)["slots"].tolist()}


@pytest.mark.thorough
@cases("form", "--demonstrations a.npz", "--demonstrations=a.npz")
def test_a_run_that_ended_before_it_had_saved_them_is_not_resumed_without_them(tmp_path, form):
    path, words = tmp_path / "run", ("ddpg_her", *form.split())
    file = write_demonstrations(tmp_path / "a.npz", *play_at_random(episodes=1))
    run_session(command_of(RUN, path, arguments=words, demonstrations=(file,)))
    for folder in sorted(path.glob("checkpoints/*"), reverse=True):
        folder.rename(tmp_path / folder.name)
    again = ["--run-dir", str(path), "--resume", "--demonstrations", file]
    with pytest.raises(UsageError, match="the run has what it began with"):
        parse_train(again)
    assert parse_train([*again, "--without-replay"]).demonstrations == (file,)
    with pytest.raises(UsageError, match="stopped before it had saved what it took over"):
        run_session(command_of(RUN, path, resume=True, arguments=words))
    assert json.loads((path / "config.json").read_text())["arguments"] == list(words)
