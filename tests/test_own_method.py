"""Methods from files of a user's alone: a learner, a reward with a network, one that adapts."""

import re
import sys
import types

import numpy as np
import pytest

import music_tf
from music_tf import recipes
from music_tf.runs import session
from tests.kit.cases import cases
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import uncompared
from tests.kit.small import OPTIONS
from tests.kit.sources import ROOT

PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"^```python\n# (my_\w+)\.py\n(.*?)^```", PAGE, re.M | re.S))
"""The files that the page shows."""
pytestmark = pytest.mark.usefixtures("package")
CORNER = '''
import gymnasium
import numpy as np


class Corner(gymnasium.Env):
    """Pays a point for its way towards a corner that it is not shown."""

    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    _next = np.ones(2)

    def sample_tasks(self, count, generator):
        return generator.choice([-1.0, 1.0], (count, 2))

    def set_task(self, task):
        self._next = task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._corner, self._place = self._next, np.zeros(2, np.float32)
        return self._place, {}

    def step(self, action):
        self._place = (self._place + 0.1 * action).astype(np.float32)
        return self._place, float(self._place @ self._corner), False, False, {}


gymnasium.register("Corner-v0", Corner, max_episode_steps=5)
'''
FORESIGHT = '''
from dataclasses import dataclass, replace
from typing import ClassVar

from music_tf.config.agents import MLP, DdpgConfig, Inference
from music_tf.config.fields import with_fields
from music_tf.config.settings import ExplorationConfig
from music_tf.recipes.pearl import sac_pearl


@dataclass(frozen=True, kw_only=True)
class ForesightConfig(DdpgConfig):
    """DDPG on a latent that foretells the rewards of a task."""

    learner: ClassVar[str] = "foresight:Foresight"
    networks: ClassVar[tuple[str, ...]] = ("encoder", "decoder")
    collector: ClassVar[str] = "music_tf.training.tasks:TaskCollector"
    parts: ClassVar[tuple[str, ...]] = (
        "music_tf.training.parts:TaskFamily", "foresight:Visits",
    )
    metrics: ClassVar[dict[str, str]] = {
        **DdpgConfig.metrics,
        "foresight/error": "squared error of foretold rewards",
        "foresight/episodes": "episodes so far",
    }
    latent: int = 2
    """Size of a latent."""

    @property
    def inference(self):
        return Inference(MLP, self.latent, True, False, 4, 6, 6, False, "", 1.0, (8,))


def foresight(preset, env_id="corner:Corner-v0"):
    """Adapts to hidden corners by foretelling rewards."""
    told = {"tasks.train": 8, "tasks.test": 3, "tasks.adapt": 2}
    base = replace(sac_pearl(preset, env_id), exploration=ExplorationConfig())
    return with_fields(replace(base, agent=ForesightConfig()), told)
'''
FORETELLER = '''
import numpy as np
import tensorflow as tf

from music_tf.agents.base import Losses
from music_tf.agents.ddpg import Ddpg
from music_tf.networks.belief import Steps, context_rows
from music_tf.networks.models import plain
from music_tf.networks.parameters import Network
from music_tf.training.parts import Part


class Foresight(Ddpg):
    """An encoder and a decoder learn to foretell rewards; the actor and critics get the latent."""

    def __init__(self, config, input_dim, action_dim, return_bounds, seed):
        super().__init__(config, input_dim, action_dim, return_bounds, seed)
        size = input_dim - config.latent + action_dim  # of an observation and an action
        encoder = plain(size + 1, config.latent, "factor", [8], seed)
        decoder = plain(size + config.latent, 1, "reward", [8], seed)
        self._encoder = Network("encoder", encoder, 1e-2)
        self._decoder = Network("decoder", decoder, 1e-2)

    @property
    def networks(self):
        return [*super().networks, self._encoder, self._decoder]

    @property
    def encoder(self):
        return self._encoder

    def feed(self, replay, inputs, updates, cycle):
        drawn = replay.sample_contexts(updates, self._config.inference.rows, cycle)
        steps = Steps(*(getattr(drawn, name) for name in Steps._fields))
        return {"context": context_rows(self._config.inference, inputs, steps)}

    def losses(self, weights, targets, batch, noise, entropy_weight):
        context = noise["context"]  # [W, m, N, observation, action and reward]
        latent = tf.reduce_mean(self._encoder.rows(weights["encoder"], context), axis=-2)
        believed = tf.stop_gradient(tf.repeat(latent, batch.inputs.shape[1] // 2, axis=1))

        def seen(inputs):
            return tf.concat([inputs[..., : -self._config.latent], believed], axis=-1)

        own = batch._replace(inputs=seen(batch.inputs), next_inputs=seen(batch.next_inputs))
        found = super().losses(weights, targets, own, {}, entropy_weight)
        of_steps = tf.repeat(latent[:, :, None], context.shape[2], axis=2)
        rows = tf.concat([context[..., :-1], of_steps], axis=-1)
        foretold = self._decoder.rows(weights["decoder"], rows)[..., 0]
        error = tf.reduce_mean(tf.square(foretold - context[..., -1]), axis=[1, 2])
        return Losses(found.total + error, {**found.metrics, "foresight/error": error})


class Visits(Part):
    """Counts the episodes of each task."""

    def __init__(self, config, envs):
        self._counts = np.zeros(config.tasks.train)

    def take_in(self, run, fresh, cycle):
        own = np.zeros_like(self._counts)
        for episodes in fresh.values():
            np.add.at(own, episodes.task, 1.0)
        self._counts += run.comm.sum_in_place(own)

    def end_epoch(self, run):
        return {"foresight/episodes": float(self._counts.sum())}

    def shared(self):
        return {"foresight/counts": self._counts.copy()}

    def load(self, shared, meta):
        self._counts = shared["foresight/counts"].copy()
'''
FILES = {
    **SHOWN,
    "corner": CORNER,
    "foresight_recipe": FORESIGHT,
    "foresight": FORETELLER,
}


@pytest.fixture
def package(own_modules, monkeypatch):
    """Puts the files into a folder of the user's."""
    own_modules(**FILES)
    monkeypatch.setattr(session, "compare", uncompared)


@pytest.mark.thorough
@cases(
    ("recipe", "options", "networks", "logged"),
    (
        "my_curiosity:curious",
        {"curious": {"units": 5}},
        {"parameters/model": 5, "parameters/actor": 16},
        ("curious/loss", "curious/heldout", "reward/curious_mean"),
    ),
    (
        "my_regression:regression",
        {"agent": {"hidden_sizes": (5, 5), "spread": 0.5}},
        {"parameters/actor": 5, "parameters/value": 5, "targets/value": 5},
        ("train/critic_loss", "regression/weight"),
    ),
    (
        "foresight_recipe:foresight",
        {"env_id": "corner:Corner-v0"},
        {"parameters/encoder": 8, "parameters/decoder": 8, "parameters/actor": 16},
        ("foresight/error", "foresight/episodes"),
    ),
)
def test_a_method_of_new_files_learns_and_goes_on(recipe, options, networks, logged, tmp_path):
    def train(name, epochs):
        return music_tf.train(recipe, run_dir=tmp_path / name, epochs=epochs, **OPTIONS | options)

    def weights_of(run):
        return load_weights(run.path / "checkpoints")[0]

    straight, stopped = train("straight", 2), train("stopped", 1)
    early = weights_of(stopped)
    resumed = music_tf.load_run(stopped.path, allow_import=True).resume(epochs=2)
    late = weights_of(straight)
    np.testing.assert_equal(weights_of(resumed), late)
    assert rows_of(resumed.path) == rows_of(straight.path)
    for network, units in networks.items():
        own = [name for name in late if name.startswith(f"{network}/")]
        assert late[f"{network}/hidden_0/kernel"].shape[1] == units
        assert all((late[name] != early[name]).any() for name in own), network
    for name in logged:
        first, second = straight.metrics[name]
        assert np.isfinite([first, second]).all()
        assert first != second
    policy = resumed.policy()
    told = {"goal": np.zeros(policy.goal_dim)} if policy.goal_dim else {}
    action = policy.act(np.zeros(policy.observation_dim), **told)
    assert (np.abs(action) <= 1.0).all()


@cases(
    ("file", "word", "wrong", "told"),
    (
        "my_curiosity",
        "my_curiosity:Curiosity",
        "my_curiosty:Curiosity",
        "term of curious: the module 'my_curiosty' cannot be imported: ModuleNotFoundError",
    ),
    (
        "my_regression",
        "my_regression:Regression",
        "my_regression:Regresion",
        r"learner of agent: there is no 'Regresion' in my_regression\ndid you mean ",
    ),
)
def test_a_class_that_settings_name_and_no_file_holds_is_refused(file, word, wrong, told, tmp_path):
    path = tmp_path / f"{file}.py"
    path.write_text(path.read_text().replace(word, wrong))
    recipe = f"{file}:{'curious' if 'curious' in told else 'regression'}"
    with pytest.raises(music_tf.UsageError, match=told):
        music_tf.train(recipe, run_dir=tmp_path / "run", epochs=1, **OPTIONS)
    assert not (tmp_path / "run").exists()


MEASURES = """    def measures(self, reward, batch, feed):
        return {"curious/odd": tf.reduce_mean(reward, -1)}

"""
HELDOUT = '        "curious/heldout": "the same in evaluation episodes",\n'
LEARNS = "    def heldout"


@pytest.mark.thorough
def test_a_metric_of_updates_that_no_settings_declare_ends_the_first_cycle(tmp_path):
    path = tmp_path / "my_curiosity.py"
    path.write_text(path.read_text().replace(LEARNS, MEASURES + LEARNS))
    cycles = []
    with pytest.raises(music_tf.UsageError, match="settings declare, got curious/odd\n"):
        music_tf.train(
            "my_curiosity:curious",
            run_dir=tmp_path / "run",
            callbacks=[types.SimpleNamespace(on_cycle=cycles.append)],
            **OPTIONS | {"epochs": 1, "cycles": 3},
        )
    assert not cycles


@pytest.mark.thorough
def test_a_metric_of_evaluations_that_no_settings_declare_costs_no_epoch(tmp_path):
    path = tmp_path / "my_curiosity.py"
    path.write_text(path.read_text().replace(HELDOUT, ""))
    recipe, run = "my_curiosity:curious", tmp_path / "run"
    with pytest.raises(music_tf.UsageError, match="settings declare, got curious/heldout\n"):
        music_tf.train(recipe, run_dir=run, epochs=2, **OPTIONS)
    path.write_text(SHOWN["my_curiosity"])
    sys.modules.pop("my_curiosity", None)
    resumed = music_tf.load_run(run, allow_import=True).resume()
    assert resumed.metrics["time/epoch"].tolist() == [2]


def test_a_recipe_that_raises_says_where(tmp_path):
    path = tmp_path / "my_curiosity.py"
    before, _, after = SHOWN["my_curiosity"].partition("rewards=")
    path.write_text(f'{before}seed=env_id["none"], rewards={after}')
    line = before.count("\n") + 1
    told = rf"the recipe fails: TypeError: string(?s:.*) at {path.name}:{line} in "
    with pytest.raises(music_tf.UsageError, match=told) as caught:
        recipes.resolve("my_curiosity:curious")
    assert isinstance(caught.value.__cause__, TypeError)
    path.write_text(f"{before}rewards=[CuriousConfig()])")
    sys.modules.pop("my_curiosity")
    with pytest.raises(music_tf.UsageError, match=r"rewards: expected settings by name, got \[Cur"):
        recipes.resolve("my_curiosity:curious")
