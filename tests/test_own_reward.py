"""Files of a user's make a reward: one beside the package, or two that may lie in it."""

import importlib
import json
import os
import re
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from music_tf import intrinsic, recipes
from music_tf.cli import run_verb
from music_tf.errors import UsageError
from music_tf.reading.command import as_typed, parse_train
from music_tf.reading.stored import StoredRun, run_to_json
from music_tf.runs import session
from music_tf.storage.metrics import METRICS
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import run_session, uncompared
from tests.kit.small import OPTIONS
from tests.kit.started import ROOT, ended
from tests.kit.terms import context, made_transition

README = (ROOT / "README.md").read_text(encoding="utf-8")
(LEFT,) = re.findall(r"^```python\n(# my_left\.py\n.*?)^```", README, re.M | re.S)
"""The README's example: a term `left` with its recipe."""
RECIPE = '''
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from music_tf.config.fields import In
from music_tf.config.terms import TermConfig
from music_tf.config.values import Bounds
from music_tf.recipes.music import ddpg_music


@dataclass(frozen=True, kw_only=True)
class NoveltyConfig(TermConfig):
    """Pays for states of the object that lie far from those of late."""

    name: ClassVar[str] = "novelty"
    term: ClassVar[str] = "novelty:Novelty"
    metrics: ClassVar[dict[str, str]] = {"novelty/high": "share of states over the table"}
    clip: Bounds = (0.0, 5.0)
    neighbours: Annotated[int, In(1, 100)] = 3
    """How many of the nearest states count."""
    kept: Annotated[int, In(1, 10**6)] = 40
    """States of each worker that are remembered."""


def ddpg_novelty(preset, env_id):
    """DDPG that goes where the object has not been."""
    return replace(ddpg_music(preset, env_id), rewards={"novelty": NoveltyConfig()})
'''
NOVELTY = '''
import numpy as np
import tensorflow as tf

from music_tf.intrinsic.base import RewardTerm


class Novelty(RewardTerm):
    """Log of the mean distance to the nearest of the object's late states; learns nothing."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self._config, self._columns = config, list(context.split().surrounding)
        self._late = {}

    def observe(self, episodes, cycle):
        for worker, own in episodes.items():
            states = own.observation[:, -1][:, self._columns]
            late = self._late.get(worker, np.zeros([0, len(self._columns)], np.float32))
            self._late[worker] = np.concatenate([late, states])[-self._config.kept:]

    def feed(self, replay, updates, cycle):
        late = [self._late[worker] for worker in replay.shards]
        far = np.full([len(late), self._config.kept, len(self._columns)], 1e3, np.float32)
        for row, states in zip(far, late, strict=True):
            row[:len(states)] = states
        return {"late": np.broadcast_to(far, [updates, *far.shape])}

    def reward(self, weights, batch, feed):
        here = tf.gather(batch.next_observation, self._columns, axis=-1)
        apart = tf.norm(here[:, :, None] - feed["late"][:, None], axis=-1)  # [W, B, kept]
        nearest = -tf.math.top_k(-apart, self._config.neighbours).values
        return tf.math.log1p(tf.reduce_mean(nearest, axis=-1))

    def of_worker(self, worker):
        return {"late": self._late.get(worker, np.zeros([0, len(self._columns)], np.float32))}

    def load_worker(self, worker, kept):
        self._late[worker] = kept["late"]

    def heldout(self, weights, episodes):
        return {"novelty/high": float((episodes.observation[..., 5] > 0.42).mean())}

    def histograms(self, weights, episodes):
        return {"novelty/height": episodes.observation[..., 5]}

    def pictures(self, weights, episodes):
        return {"novelty/picture": np.zeros([4, 6, 3], np.uint8)}
'''
SMALL = ("--epochs", "1", *as_typed(OPTIONS))
FILES = {"my_left": LEFT, "my_novelty": RECIPE, "novelty": NOVELTY}


@pytest.fixture
def outside(own_modules):
    """Puts the files of both rewards beside the package."""
    own_modules(**FILES)
    return "my_novelty:ddpg_novelty"


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """Puts the two files of a reward into the package's folders; returns their recipe."""
    for package, name in ((recipes, "my_novelty"), (intrinsic, "novelty")):
        folder = tmp_path / package.__name__
        folder.mkdir()
        text = FILES[name].replace('"novelty:', '"music_tf.intrinsic.novelty:')
        (folder / "novelty.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    yield "ddpg_novelty"
    for package in (recipes, intrinsic):
        sys.modules.pop(f"{package.__name__}.novelty", None)
        vars(package).pop("novelty", None)


@pytest.mark.usefixtures("outside")
def test_the_readmes_reward_is_paid_from_the_middle_to_the_left():
    config = parse_train(["my_left:ddpg_left"]).config.rewards["left"]
    module, _, name = config.term.partition(":")
    term = getattr(importlib.import_module(module), name)(config, context())
    after = np.zeros([1, 4, 25], np.float32)
    after[0, :, 4] = [0.60, 0.75, 0.875, 1.10]  # right of the middle, there, half way, beyond
    batch = made_transition(next_observation=after)
    paid = term.mixing(term.reward({}, batch, term.feed(None, 1, 0)), tf.constant(1.0))
    np.testing.assert_allclose(paid, [[0.0, 0.0, 0.5, 1.0]], atol=1e-5)
    loss, metrics = term.loss({}, {})
    assert (float(loss), metrics) == (0.0, {})


@pytest.mark.thorough
@pytest.mark.usefixtures("outside")
def test_the_readmes_command_trains_without_lines_of_tensorflow(tmp_path):
    (typed,) = re.findall(r"`music-tf (train my_left:ddpg_left) ", README)
    command = [*typed.split(), *SMALL, "--run-dir", "run"]
    found = {**os.environ, "PYTHONPATH": str(ROOT)}
    found.pop("TF_CPP_MIN_LOG_LEVEL", None)
    done = ended(sys.executable, "-m", "music_tf", *command, cwd=tmp_path, env=found, timeout=300)
    assert (done.returncode, re.findall(r"absl|^I0000", done.stderr, re.M)) == (0, []), done.stderr
    (row,) = rows_of(tmp_path / "run")
    own = [f"reward/left_{part}" for part in ("mean", "std", "min", "max")]
    assert all(0.0 <= float(row[name]) <= 1.0 for name in own)
    ours = [name for name in METRICS if name in row]
    assert list(row) == ["epoch", *ours, *own]
    assert {name for name in ours if name.startswith("reward/")} == set()


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_reward_that_keeps_a_buffer_goes_on_where_it_was(where, request, tmp_path, monkeypatch):
    recipe = request.getfixturevalue(where)
    monkeypatch.setattr(session, "compare", uncompared)

    def train(run, *words):
        run_session(parse_train([recipe, *SMALL, "--run-dir", str(tmp_path / run), *words]))
        return rows_of(tmp_path / run), load_weights(tmp_path / run / "checkpoints")[0]

    straight, weights = train("straight", "--epochs", "2", "--novelty.neighbours", "2")
    train("stopped", "--epochs", "1", "--novelty.neighbours", "2")
    stored = json.loads((tmp_path / "stopped/config.json").read_text())["config"]["rewards"]
    assert stored["novelty"]["neighbours"] == 2
    assert (recipe in recipes.names()) is (where == "inside")
    resumed, again = train("stopped", "--epochs", "2", "--resume")
    assert resumed == straight
    np.testing.assert_equal(again, weights)
    paid = [float(row["reward/novelty_mean"]) for row in straight]
    assert all(0.0 < value <= 5.0 for value in paid)
    assert paid[0] != paid[1]
    assert [float(row["novelty/high"]) for row in straight] == [0.0, 0.0]
    shown = EventAccumulator(str(tmp_path / "straight"))
    shown.Reload()
    assert [event.step for event in shown.Images("novelty/picture")] == [240, 480]
    assert [event.step for event in shown.Tensors("novelty/height")] == [240, 480]


@pytest.mark.parametrize("verb", ["plot", "report"])
def test_a_run_of_ones_own_recipe_is_no_damaged_one(verb, outside, tmp_path, monkeypatch, capsys):
    for name, recipe in (("own", outside), ("ours", "ddpg")):
        config = parse_train([recipe, *SMALL]).config
        record = run_to_json(StoredRun(recipe, "laptop", (recipe,), config))
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(record))
        table = "epoch,time/env_steps,eval/success_rate\n1,1000,0.5\n"
        (tmp_path / name / "metrics.csv").write_text(table)
    monkeypatch.setattr(recipes, "_TRUSTED", set())
    monkeypatch.chdir(tmp_path)
    out = {"plot": "curves.svg", "report": "page.html"}[verb]
    assert run_verb([verb, "own", "ours", "--out", out]) == 0
    told = "music-tf: left out, it names a module of yours, add --allow-import: own\n"
    assert capsys.readouterr().err == (told if verb == "report" else "")  # a table is a table
    assert run_verb([verb, "own", "ours", "--out", out, "--allow-import"]) == 0
    assert capsys.readouterr().err == ""


def test_a_users_recipe_and_its_options_are_taken_or_refused_by_name(outside):
    config = parse_train(["--seed", "7", outside, "--rewards", "task", "novelty"]).config
    assert (config.seed, list(config.rewards)) == (7, ["task", "novelty"])
    for words, part in (
        ([outside, "--novelty.ketp", "1"], "did you mean --novelty.kept?"),
        ([outside, "--rewards", "task", "--novelty.kept", "1"], "--rewards task novelty"),
        ([outside, "--rewards", "novetly"], "did you mean novelty?"),
        ([outside, "--novelty.kept", "0"], "novelty.kept: expected"),
        (["my_lfet:ddpg_left"], "cannot be imported: ModuleNotFoundError"),
        (["my_left:ddpg_lfet"], "did you mean ddpg_left?"),
        (["my_left:replace"], "expected one of 1 that my_left defines"),
        ([":ddpg"], "cannot be imported"),
        (["os:system"], "expected one of 0 that os defines"),
    ):
        with pytest.raises(UsageError, match=re.escape(part)):
            parse_train(words)
    with pytest.raises(UsageError, match=r"unknown option '--novelty\.kept'"):
        parse_train(["ddpg", "--novelty.kept", "1"])
