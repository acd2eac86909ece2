"""Methods from files of a user's alone: a learner, a reward with a network, one that adapts."""

import sys
import types

import numpy as np
import pytest

import music_tf
from music_tf import recipes
from music_tf.runs import session
from tests.kit.cases import cases
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.small import OPTIONS

REGRESSION = '''
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from music_tf.config.agents import AgentConfig
from music_tf.config.fields import In
from music_tf.recipes.tasks import ddpg_her


@dataclass(frozen=True, kw_only=True)
class RegressionConfig(AgentConfig):
    """Advantage-weighted regression (arXiv:1910.00177)."""

    learner: ClassVar[str] = "fresh.regression:Regression"
    networks: ClassVar[tuple[str, ...]] = ("value",)
    metrics: ClassVar[dict[str, str]] = {
        **AgentConfig.metrics, "regression/weight": "mean weight of replayed actions",
    }
    spread: Annotated[float, In(0, 1e3, "(]")] = 1.0
    """Advantage that multiplies the weight of an action by e."""


def regression(preset, env_id="music_tf/PointPush-v0"):
    """Advantage-weighted regression with hindsight."""
    return replace(ddpg_her(preset, env_id), agent=RegressionConfig())
'''
LEARNER = '''
import tensorflow as tf

from music_tf.agents.base import Learner, Losses
from music_tf.losses.temporal_difference import critic_loss, td_target
from music_tf.networks.models import critic, deterministic_actor
from music_tf.networks.parameters import Network


class Regression(Learner):
    """Imitates replayed actions, the more the better they did than their state is worth."""

    def __init__(self, config, input_dim, action_dim, return_bounds, seed):
        self._config, self._bounds = config, return_bounds
        actor = deterministic_actor(input_dim, action_dim, config.actor_layers, seed)
        value = critic(config, input_dim, seed)
        self._actor = Network("actor", actor, config.actor_learning_rate)
        self._value = Network("value", value, config.critic_learning_rate)

    @property
    def networks(self):
        return [self._actor, self._value]

    @property
    def target_networks(self):
        return [self._value]

    def draws(self, generators, updates, batch_size):
        return {}

    def losses(self, weights, targets, batch, noise, entropy_weight):
        worth = self._value.rows(weights["value"], batch.inputs)[..., 0]
        later = self._value.rows(targets["value"], batch.next_inputs)[..., 0]
        target = td_target(batch.reward, batch.discount, later[None], self._bounds)
        advantage = target - tf.stop_gradient(worth)
        weight = tf.exp(tf.minimum(advantage / self._config.spread, 3.0))
        apart = self._actor.rows(weights["actor"], batch.inputs) - batch.action
        value_loss = critic_loss(worth[None], target)
        policy_loss = tf.reduce_mean(weight * tf.reduce_sum(tf.square(apart), -1), -1)
        return Losses(value_loss + policy_loss, {
            "train/critic_loss": value_loss,
            "train/actor_loss": policy_loss,
            "train/mean_q": tf.reduce_mean(worth, -1),
            "regression/weight": tf.reduce_mean(weight, -1),
        })
'''
CURIOUS = '''
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from music_tf.config.fields import In
from music_tf.config.terms import TermConfig
from music_tf.config.values import Bounds, Rate
from music_tf.recipes.music import ddpg_music


@dataclass(frozen=True, kw_only=True)
class CuriousConfig(TermConfig):
    """Pays what a model of the object's motion does not foretell (arXiv:1705.05363)."""

    name: ClassVar[str] = "curious"
    term: ClassVar[str] = "fresh.curiosity:Curiosity"
    networks: ClassVar[tuple[str, ...]] = ("model",)
    metrics: ClassVar[dict[str, str]] = {
        "curious/loss": "mean squared error of the model", "curious/heldout": "the same, held out",
    }
    clip: Bounds = (0.0, 1.0)
    units: Annotated[int, In(1, 1000)] = 8
    """Units of the model's hidden layer."""
    learning_rate: Rate = 1e-2
    """Adam step size of the model."""


def curious(preset, env_id="music_tf/PointPush-v0"):
    """DDPG that moves the object as it has not learned to foretell."""
    return replace(ddpg_music(preset, env_id), rewards={"curious": CuriousConfig()})
'''
TERM = '''
import tensorflow as tf

from music_tf.intrinsic.base import RewardTerm
from music_tf.networks.models import plain
from music_tf.networks.parameters import Network
from music_tf.randomness import stream
from music_tf.replay.buffer import all_transitions


class Curiosity(RewardTerm):
    """Squared error in what follows for the object."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self._columns = list(context.split().surrounding)
        size = context.spec.observation_dim + context.spec.action_dim
        seed = stream(context.seed, "initial weights/model")
        model = plain(size, len(self._columns), "change", [config.units], seed)
        self.networks = [Network("model", model, config.learning_rate)]

    def draws(self, replay, updates, cycle):
        return {"picks": replay.pick(updates, cycle, "curious")}

    def looked_up(self, drawn, store):
        batch = store.transitions(drawn["picks"])
        return {
            "before": batch.observation, "action": batch.action, "after": batch.next_observation
        }

    def reward(self, weights, batch, feed):
        steps = batch.observation, batch.action, batch.next_observation
        return tf.stop_gradient(self._errors(weights, *steps))

    def loss(self, weights, feed):
        errors = self._errors(weights, feed["before"], feed["action"], feed["after"])
        loss = tf.reduce_mean(errors, axis=-1)
        return loss, {"curious/loss": loss}

    def heldout(self, weights, episodes):
        steps = all_transitions(episodes)
        errors = self._errors(weights, steps.observation, steps.action, steps.next_observation)
        return {"curious/heldout": float(tf.reduce_mean(errors))}

    def _errors(self, weights, before, action, after):
        foretold = self.networks[0].rows(weights["model"], tf.concat([before, action], axis=-1))
        change = tf.gather(after - before, self._columns, axis=-1)
        return tf.reduce_sum(tf.square(foretold - change), axis=-1)
'''
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

    learner: ClassVar[str] = "fresh.foresight:Foresight"
    networks: ClassVar[tuple[str, ...]] = ("encoder", "decoder")
    collector: ClassVar[str] = "music_tf.training.tasks:TaskCollector"
    parts: ClassVar[tuple[str, ...]] = (
        "music_tf.training.parts:TaskFamily", "fresh.foresight:Visits",
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


def foresight(preset, env_id="fresh.corner:Corner-v0"):
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
    "regression_recipe": REGRESSION,
    "regression": LEARNER,
    "curiosity_recipe": CURIOUS,
    "curiosity": TERM,
    "corner": CORNER,
    "foresight_recipe": FORESIGHT,
    "foresight": FORETELLER,
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Puts the files into a package `fresh`, beside which there is nothing of the user's."""
    (tmp_path / "fresh").mkdir()
    for name, text in {"__init__": "", **FILES}.items():
        (tmp_path / "fresh" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(recipes, "_TRUSTED", set())
    monkeypatch.setattr(session, "compare", lambda *given: {})
    yield
    for name in ("fresh", *(f"fresh.{name}" for name in FILES)):
        sys.modules.pop(name, None)


@pytest.mark.thorough
@cases(
    ("recipe", "options", "networks", "logged"),
    (
        "fresh.curiosity_recipe:curious",
        {"curious": {"units": 5}},
        {"parameters/model": 5, "parameters/actor": 16},
        ("curious/loss", "curious/heldout", "reward/curious_mean"),
    ),
    (
        "fresh.regression_recipe:regression",
        {"agent": {"hidden_sizes": (5, 5), "spread": 0.5}},
        {"parameters/actor": 5, "parameters/value": 5, "targets/value": 5},
        ("train/critic_loss", "regression/weight"),
    ),
    (
        "fresh.foresight_recipe:foresight",
        {"env_id": "fresh.corner:Corner-v0"},
        {"parameters/encoder": 8, "parameters/decoder": 8, "parameters/actor": 16},
        ("foresight/error", "foresight/episodes"),
    ),
)
@pytest.mark.usefixtures("package")
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
        "curiosity_recipe",
        "fresh.curiosity:Curiosity",
        "fresh.curiosty:Curiosity",
        "term of curious: the module 'fresh.curiosty' cannot be imported: ModuleNotFoundError",
    ),
    (
        "regression_recipe",
        "fresh.regression:Regression",
        "fresh.regression:Regresion",
        r"learner of agent: there is no 'Regresion' in fresh.regression\ndid you mean Regress",
    ),
)
@pytest.mark.usefixtures("package")
def test_a_class_that_settings_name_and_no_file_holds_is_refused(file, word, wrong, told, tmp_path):
    path = tmp_path / "fresh" / f"{file}.py"
    path.write_text(path.read_text().replace(word, wrong))
    recipe = f"fresh.{file}:{'curious' if 'curious' in told else 'regression'}"
    with pytest.raises(music_tf.UsageError, match=told):
        music_tf.train(recipe, run_dir=tmp_path / "run", epochs=1, **OPTIONS)
    assert not (tmp_path / "run").exists()


MEASURES = """
    def measures(self, reward, batch, feed):
        return {"curious/odd": tf.reduce_mean(reward, -1)}
"""
HELDOUT = ', "curious/heldout": "the same, held out"'


@pytest.mark.thorough
@pytest.mark.usefixtures("package")
def test_a_metric_of_updates_that_no_settings_declare_ends_the_first_cycle(tmp_path):
    path = tmp_path / "fresh" / "curiosity.py"
    path.write_text(path.read_text() + MEASURES)
    cycles = []
    with pytest.raises(music_tf.UsageError, match="settings declare, got curious/odd\n"):
        music_tf.train(
            "fresh.curiosity_recipe:curious",
            run_dir=tmp_path / "run",
            callbacks=[types.SimpleNamespace(on_cycle=cycles.append)],
            **OPTIONS | {"epochs": 1, "cycles": 3},
        )
    assert not cycles


@pytest.mark.thorough
@pytest.mark.usefixtures("package")
def test_a_metric_of_evaluations_that_no_settings_declare_costs_no_epoch(tmp_path):
    path = tmp_path / "fresh" / "curiosity_recipe.py"
    path.write_text(path.read_text().replace(HELDOUT, ""))
    recipe, run = "fresh.curiosity_recipe:curious", tmp_path / "run"
    with pytest.raises(music_tf.UsageError, match="settings declare, got curious/heldout\n"):
        music_tf.train(recipe, run_dir=run, epochs=2, **OPTIONS)
    path.write_text(CURIOUS)
    for name in ("fresh", "fresh.curiosity_recipe", "fresh.curiosity"):
        sys.modules.pop(name, None)
    resumed = music_tf.load_run(run, allow_import=True).resume()
    assert resumed.metrics["time/epoch"].tolist() == [2]


@pytest.mark.usefixtures("package")
def test_a_recipe_that_raises_says_where(tmp_path):
    path = tmp_path / "fresh" / "curiosity_recipe.py"
    before, _, after = CURIOUS.partition("rewards={")
    path.write_text(f'{before}seed=env_id["none"], rewards={{{after}')
    line = before.count("\n") + 1
    told = rf"the recipe fails: TypeError: string(?s:.*) at {path.name}:{line} in "
    with pytest.raises(music_tf.UsageError, match=told) as caught:
        recipes.resolve("fresh.curiosity_recipe:curious")
    assert isinstance(caught.value.__cause__, TypeError)
    path.write_text(CURIOUS.replace('{"curious": CuriousConfig()}', "[CuriousConfig()]"))
    sys.modules.pop("fresh.curiosity_recipe")
    with pytest.raises(music_tf.UsageError, match=r"rewards: expected settings by name, got \[Cur"):
        recipes.resolve("fresh.curiosity_recipe:curious")
