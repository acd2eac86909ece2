"""What an environment declared when a run was trained, and declares when it is used again."""

import dataclasses
import functools
import json

import gymnasium
import numpy as np
import pytest

from music_tf.cli import run_verb
from music_tf.cli.exits import guarded
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.runs.loaded_run import load_run
from music_tf.storage.checkpoint import Checkpoints
from music_tf.storage.loading import load_policy
from music_tf.training.build import build_trainer
from music_tf.types import ACTIONS, Declared, refusal
from tests.kit import counting
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.saved_run import save_checkpoint, save_run, small_config
from tests.kit.sessions import command_of, run_session
from tests.kit.small import BASE
from tests.kit.warm import try_skills, try_warm_start

BOUNDS = "actions: trained within -2..2, now -6..6"
HERE = Declared(observation=3, goal=2, low=[-1.0, 0.0], high=[1.0, 0.5], steps=20)


def spec():
    return gymnasium.spec("Counting-v0")


def widen(monkeypatch):
    monkeypatch.setattr(counting, "BOUND", 6.0)


def lengthen(monkeypatch):
    monkeypatch.setattr(spec(), "max_episode_steps", 30)


def show_more(monkeypatch):
    monkeypatch.setattr(spec(), "kwargs", {"size": 5})


changes = cases(
    ("change", "text"),
    (widen, BOUNDS),
    (lengthen, "episode: trained with 8 steps, now 30"),
    (show_more, "observation: trained with 2 numbers, now 5"),
    ids=["bounds", "length", "size"],
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("declared")
    save_run(path, env_id=COUNTING)
    return path


def forget_declaration(path, **config):
    """Saves a run as one of an older version, whose checkpoint does not say what was declared."""
    trainer = save_run(path, **config)
    meta = trainer.meta()
    del meta["environment"]
    trainer.meta = lambda: meta
    save_checkpoint(path, trainer, epoch=2)


@cases(
    ("change", "text"),
    ({}, ""),
    ({"steps": 30}, "episode: trained with 20 steps, now 30"),
    ({"low": [-1.0, 0.1]}, "actions[1]: trained within 0..0.5, now 0.1..0.5"),
    ({"low": [-1.0], "high": [1.0]}, "action: trained with 2 numbers, now 1"),
)
def test_the_first_difference_is_told_in_numbers(change, text):
    told = refusal(HERE, dataclasses.replace(HERE, **change), "run 3")
    assert told.partition("\n")[0] == text
    assert ("run 3: " in told) == bool(text)
    single = Declared(low=[-0.1], high=[float(np.float32(0.7))])
    assert refusal(single, Declared(low=[float(np.float32(-0.1))], high=[0.7]), "") == ""
    other = dataclasses.replace(HERE, steps=30, observation=9)  # which nothing compares here
    assert (refusal(HERE, other, "", ACTIONS), refusal(None, other, "")) == ("", "")


@changes
def test_a_run_is_not_resumed_in_another_environment(tmp_path, monkeypatch, change, text):
    config = dataclasses.replace(BASE, env_id=COUNTING, workers=1, epochs=1, updates=1)
    run_session(command_of(config, tmp_path / "run", recipe="ddpg"))
    change(monkeypatch)
    more = dataclasses.replace(config, epochs=2)
    with pytest.raises(UsageError) as refused:
        run_session(command_of(more, tmp_path / "run", resume=True, recipe="ddpg"))
    assert str(refused.value).startswith(f"{text}\n{tmp_path / 'run'}: ")
    assert "config.json" not in str(refused.value)


@changes
def test_a_run_is_not_shown_in_another_environment(run, monkeypatch, capsys, change, text):
    change(monkeypatch)
    for verb in ("evaluate", "skills", "play"):
        code = guarded(functools.partial(run_verb, [verb, str(run), "--allow-import"]))
        assert (code, capsys.readouterr().err.splitlines()[0]) == (2, f"music-tf: {text}")


def test_arguments_that_are_others_may_change_the_length_and_not_the_actions(run, monkeypatch):
    longer = load_run(run, COUNTING, env_overrides=json.dumps({"max_episode_steps": 30}))
    assert longer.envs.spec.max_episode_steps == 30
    longer.envs.close()
    widen(monkeypatch)
    with pytest.raises(UsageError, match=BOUNDS):
        load_run(run, COUNTING, env_overrides=json.dumps({"max_episode_steps": 30}))


def test_a_run_of_an_older_version_is_still_resumed_and_loaded(tmp_path, monkeypatch):
    forget_declaration(tmp_path, env_id=COUNTING)
    widen(monkeypatch)
    load_run(tmp_path, COUNTING).envs.close()
    assert load_policy(tmp_path, COUNTING).declared is None
    trainer = build_trainer(small_config(env_id=COUNTING), Communicator())
    checkpoints = Checkpoints(tmp_path / "checkpoints", Communicator())
    assert checkpoints.restore(["worker_0000"], trainer.expected()).epoch == 2


def test_an_actor_is_not_taken_over_where_its_actions_mean_something_else(run, monkeypatch):
    config = small_config(env_id=COUNTING)
    lengthen(monkeypatch)
    try_warm_start(config, run / "checkpoints", ("actor", "critic"))
    widen(monkeypatch)
    with pytest.raises(UsageError, match=BOUNDS):
        try_warm_start(config, run / "checkpoints", ("actor",))
    try_warm_start(config, run / "checkpoints", ("normalizer",))


def test_skills_are_not_tried_where_their_actions_mean_something_else(tmp_path, monkeypatch):
    save_run(tmp_path, "sac_diayn", env_id=COUNTING, skills=3)
    widen(monkeypatch)
    config = small_config("sac_finetune_skill", COUNTING, skills=3)
    with pytest.raises(UsageError, match=BOUNDS):
        try_skills(config, tmp_path, 1)
