import dataclasses
import math
import random

import keras
import numpy as np
import pytest

from music_tf import recipes
from music_tf.agents.ddpg import Ddpg
from music_tf.config.agents import AgentConfig, DdpgConfig, SacConfig
from music_tf.config.fields import with_fields
from music_tf.config.terms import TaskConfig
from music_tf.config.world import World
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.intrinsic.base import Mixing, RewardTerm
from music_tf.intrinsic.skill import Skill
from music_tf.networks.parameters import Layout, Network
from music_tf.networks.reward_networks import discriminator_of
from music_tf.recipes.music import MusicConfig
from music_tf.recipes.skills import SkillConfig
from music_tf.training.build import build_learner, build_terms, discount
from music_tf.training.rewards import return_bounds
from tests.kit.cases import cases, every
from tests.kit.releases import EVERY_PRESET, RELEASED_ON
from tests.kit.small import BASE, EVERYTHING, MUSIC, PUSH, SAC, paying, trainer_of


class Term:
    def __init__(self, name, scale=1.0, clip=(-1.0, 0.0), shift=0.0, weight=1.0, gated=False):
        self.name, self.gated = name, gated
        self.mixing = Mixing(scale, clip, shift, ((0.0, weight),))


TASK = Term("task")
MUSIC_TERM = Term("music", 5000.0, (0.0, 1.0), -1.0, 0.5)
GATED = Term("gate", clip=(1.0, 2.0), gated=True)


@pytest.fixture(scope="module")
def envs():
    return LockstepEnvs(PUSH, 1)


def test_gamma_looks_one_episode_ahead_unless_it_is_given(envs):
    assert discount(BASE, envs.spec) == pytest.approx(1.0 - 1.0 / 30.0)
    assert discount(dataclasses.replace(BASE, agent=DdpgConfig(discount=0.5)), envs.spec) == 0.5


FREE = math.inf
RISING = ((0.0, 0.0), (20.0, 1.0))


@cases(
    ("agent", "terms", "bounds"),
    (DdpgConfig(return_clip="off"), [TASK], (-FREE, FREE)),
    (DdpgConfig(return_clip="symmetric"), [TASK], (-200.0, 200.0)),  # four terms, as released
    (DdpgConfig(return_clip=(-20.0, FREE)), [Term("free", clip=(-FREE, FREE))], (-20.0, FREE)),
    (SacConfig(return_clip=(-20.0, 0.0), entropy_mode="next_state"), [TASK], (-20.0, 0.0)),
    (DdpgConfig(return_clip="auto"), [TASK], (-50.0, 0.0)),  # (-1, 0) / 0.02
    (DdpgConfig(return_clip="auto"), [TASK, MUSIC_TERM], (-75.0, 0.0)),  # (-1 - 0.5, 0) / 0.02
    (DdpgConfig(return_clip="auto"), [TASK, GATED], (-50.0, 100.0)),  # pays 0, or 1 to 2
    (DdpgConfig(return_clip="auto"), [Term("music", clip=(0.0, 1.0))], (0.0, 50.0)),
    # (-1 + 0.2 * -1, 0) / 0.02: the entropy reward of SAC counts too, if the target has it
    (SacConfig(return_clip="auto"), [TASK], (-60.0, 0.0)),
    (SacConfig(return_clip="auto", entropy_mode="off"), [TASK], (-50.0, 0.0)),
    # with all weights that it has: (-1, 0) times weights from 0 to 1 is (-1, 0)
    (SacConfig(return_clip="auto", entropy_weight=RISING), [TASK], (-100.0, 0.0)),
)
def test_targets_are_clipped_to_what_the_active_rewards_allow(agent, terms, bounds):
    assert return_bounds(agent, terms, 0.98) == pytest.approx(bounds)


SWITCHED = Term("music", clip=(0.0, 1.0))
SWITCHED.mixing = SWITCHED.mixing._replace(weight=((0.0, 1.0), (4.0, 0.0)))
BEGUN = Term("task")
BEGUN.mixing = BEGUN.mixing._replace(weight=((0.0, 0.0), (4.0, 1.0)))


@cases(
    ("epoch", "bounds"),
    (None, (-50.0, 50.0)),  # whatever is ever paid, over 0.02
    (0, (0.0, 50.0)),
    (1, (-12.5, 37.5)),  # a quarter of the task, three of the other
    (4, (-50.0, 0.0)),
    (9, (-50.0, 0.0)),
)
def test_bounds_may_follow_what_is_paid_now(epoch, bounds):
    agent = DdpgConfig(return_clip="paid")
    assert return_bounds(agent, [SWITCHED, BEGUN], 0.98, epoch) == pytest.approx(bounds)
    levels = {"music": 4.0}  # whose weight follows the robot
    low = {None: -50.0, 0: 0.0, 1: -12.5}.get(epoch, -50.0)
    at_levels = return_bounds(agent, [SWITCHED, BEGUN], 0.98, epoch, levels)
    assert at_levels == pytest.approx((low, 0.0))
    soft = SacConfig(return_clip="paid", entropy_weight=RISING)  # -1 times 0.5 at epoch 10
    assert return_bounds(soft, [TASK], 0.98, 10) == pytest.approx((-75.0, 0.0))


def test_updates_get_the_bounds_of_now():
    config = recipes.resolve("ddpg_her_fast", env_id=PUSH)
    paid = with_fields(config, {"agent.return_clip": "paid"})
    for clip, now in ((config, (None, None)), (paid, ([0.0, 20.0], [-20.0, 0.0]))):
        trainer = trainer_of(clip, workers=1, rollouts=1)
        for epoch, bounds in zip((0, 10), now, strict=True):
            trainer.counters.epoch = epoch
            given = trainer.schedules().bounds
            assert given is bounds or [float(each) for each in given] == pytest.approx(bounds)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnConfig(AgentConfig):  # a stochastic learner with a bonus, which knows none of ours
    @property
    def actor(self):
        return "gaussian"

    @property
    def bonus(self):
        return {"spread_clip": (1.0, (0.0, 0.5), ((0.0, 2.0),))}


def test_a_learner_of_ones_own_may_sample_actions_and_pay_a_bonus():
    sampled = dataclasses.replace(BASE.exploration, sample=True)
    assert dataclasses.replace(BASE, agent=OwnConfig(), exploration=sampled)
    assert return_bounds(OwnConfig(return_clip="auto"), [TASK], 0.98) == pytest.approx((-50, 50))


@cases(
    ("terms", "text"),
    (
        [TASK, Term("skill", clip=(-FREE, 0.0))],
        r"'auto'.* but skill\.clip is not finite; give --skill\.clip",
    ),
    (
        [Term("task", clip=(-FREE, 0.0))],
        r"give --world\.reward the range of the environment's reward, or --task\.clip two numbers",
    ),
)
def test_the_automatic_clip_needs_bounded_rewards(terms, text):
    with pytest.raises(UsageError, match=text):
        return_bounds(DdpgConfig(return_clip="auto"), terms, 0.98)


@pytest.mark.thorough
@every(("name", "preset"), EVERY_PRESET)
def test_every_recipe_builds_its_rewards_and_its_learner(name, preset):
    config = recipes.resolve(name, preset, RELEASED_ON.get(preset, PUSH))
    if name == "sac_place":  # its copy of the object's three columns has as many directions
        config = with_fields(config, {"condition.size": 3})
    envs = LockstepEnvs(config.env_id, 1, config.env, world=config.world)
    config = dataclasses.replace(config, agent=dataclasses.replace(config.agent, hidden_sizes=(4,)))
    terms = build_terms(config, envs)
    assert [term.name for term in terms] == list(config.rewards)
    assert not any("own" in seen for term in terms for seen in term.inputs.values())
    assert build_learner(config, envs.spec, terms).networks[0].name == "actor"


def test_networks_see_observation_skill_and_goal_and_an_agent_needs_a_learner(envs):
    # observation 8 + skill 3 + goal 3 = 14 inputs, 3 actions
    learner = build_learner(EVERYTHING, envs.spec, build_terms(EVERYTHING, envs))
    shapes = {network.name: network.shapes[0] for network in learner.networks[:2]}
    assert shapes == {"actor": (14, 16), "critic_0": (17, 16)}
    with pytest.raises(AttributeError, match=r"'AgentConfig' .* no attribute 'learner'"):
        build_learner(dataclasses.replace(BASE, agent=AgentConfig()), envs.spec, [])


class Smooth(Ddpg):
    activation = "tanh"
    hidden = "hidden_0"

    def make_actor(self, input_dim, action_dim, seed):
        dense = keras.layers.Dense
        hidden = dense(16, self.activation, name=self.hidden), dense(16, "relu", name="hidden_1")
        last = dense(action_dim, "tanh", name="action")
        return keras.Sequential([keras.Input([input_dim]), *hidden, last])


class Renamed(Smooth):
    hidden = "first"


class Straight(Smooth):
    activation = "relu"


class SmoothSkill(Skill):
    def __init__(self, config, context):
        super().__init__(config, context)
        dense, (old,) = keras.layers.Dense, self.networks
        hidden = dense(4, "tanh", name="hidden_0"), dense(4, "relu", name="hidden_1")
        layers = keras.Input(old.model.input_shape[1:]), *hidden, dense(3, name="logits")
        self.networks = [Network(old.name, keras.Sequential(layers), old.learning_rate)]


def test_a_discriminator_that_numpy_cannot_copy_is_none_to_a_policy(envs):
    settings = type("Own", (SkillConfig,), {"term": f"{__name__}:SmoothSkill"})
    config = paying(EVERYTHING, settings(hidden_sizes=(4, 4)))
    (term,) = build_terms(config, envs)
    layout = Layout(term.networks)
    arrays = {f"parameters/{n}": a for n, a in layout.name_arrays(layout.initial()).items()}
    (ours,) = build_terms(paying(EVERYTHING, SkillConfig(hidden_sizes=(4, 4))), envs)
    assert discriminator_of(arrays, ours.inputs["discriminator"], (4, 4), 3)
    with pytest.raises(ValueError, match="expected ReLU layers and a linear one, found a model"):
        discriminator_of(arrays, term.inputs["discriminator"], (4, 4), 3)


@cases(
    ("learner", "told"),
    ("Smooth", r"'deterministic'\]: expected the actions .* got others by up to \d"),
    ("Renamed", r"expected the weight .*actor/hidden_0/kernel.* got .*actor/first/kernel"),
)
def test_an_actor_that_a_policy_could_not_copy_is_refused(learner, told, envs):
    def built(name):
        kind = type("Own", (DdpgConfig,), {"learner": f"{__name__}:{name}"})
        agent = kind(hidden_sizes=(16, 16))
        return build_learner(dataclasses.replace(EVERYTHING, agent=agent), envs.spec, [TASK])

    with pytest.raises(UsageError, match=told):
        built(learner)
    assert isinstance(built("Straight"), Straight)


def test_initial_weights_follow_from_the_seed_alone(envs):
    def initial(config):
        networks = build_learner(config, envs.spec, [TASK]).networks
        return np.concatenate([network.initial for network in networks])

    np.testing.assert_array_equal(initial(SAC), initial(dataclasses.replace(SAC, workers=4)))
    assert (initial(SAC) != initial(dataclasses.replace(SAC, seed=1))).any()


def test_the_gain_is_given_or_the_environments_own_and_else_follows_the_bound(envs):
    (term,) = build_terms(MUSIC, envs)
    assert term.mixing.scale == 300.0
    assert build_terms(paying(MUSIC, MusicConfig(gain=7.0)), envs)[0].mixing.scale == 7.0
    fetch = LockstepEnvs("FetchPush-v4", 1)
    assert build_terms(MUSIC, fetch)[0].mixing.scale == 5000.0
    assert [set(term.shared()) for term in build_terms(MUSIC, fetch)] == [set()]
    split = World(agent=(0, 1), surrounding=(2,))
    config = dataclasses.replace(MUSIC, env_id="music_tf/PointReach-v0", world=split)
    (term,) = build_terms(config, LockstepEnvs(config.env_id, 1, world=split))
    assert set(term.shared()) == {"scales/music"}
    assert term.gain == 1.0  # until something is measured
    term.adapt({"music/pair_bound": 0.004}, 1)
    assert term.gain == pytest.approx(0.2 / 0.004)


def test_a_split_given_replaces_the_environments_and_without_any_music_is_refused():
    given = World(agent=(0, 1), surrounding=(3, 4, 6))
    envs = LockstepEnvs(PUSH, 1, world=given)
    (term,) = build_terms(paying(MUSIC, MusicConfig(), world=given), envs)
    assert term.networks[0].shapes[:4:2] == [(2, 128), (3, 128)]
    reach = LockstepEnvs("music_tf/PointReach-v0", 1)
    config = dataclasses.replace(MUSIC, env_id="music_tf/PointReach-v0")
    with pytest.raises(UsageError, match="no object"):
        build_terms(config, reach)
    assert build_terms(paying(config, TaskConfig()), reach)


class Pays(RewardTerm):
    def reward(self, weights, batch, feed):
        return batch.reward


class NoReward(RewardTerm):
    pass


class NoSuper(Pays):
    def __init__(self, config, context):
        self.name = config.name


class Outside(Pays):
    columns = (7, 8)


class Unseeded(Pays):
    def __init__(self, config, context):
        super().__init__(config, context)
        model = keras.Sequential([keras.Input([2]), keras.layers.Dense(3)])
        self.networks = [Network("plain", model, 1e-3)]


def sharing(name, array):
    return type("Sharing", (Pays,), {"shared": lambda self: {name: array}})


Listed, Endless = sharing("count", [1, 2]), sharing("best", np.array(-np.inf))


@cases(
    ("kind", "told"),
    ("Term", "expected a class derived from music_tf.intrinsic.base:RewardTerm, got .*:Term"),
    ("paying", "expected a class derived from"),
    ("NoReward", r"expected a method reward\(weights, batch, feed\), got none"),
    ("NoSuper", r"expected super\(\).__init__\(config, context\) in its __init__"),
    ("Outside", "expected columns of the observation, 0 to 7, got 8"),
    ("Unseeded", r"expected `networks` of its settings to name \['plain'\], .*, got \[\]"),
    ("Listed", r"expected finite arrays from shared\(\), got count: \[1, 2\]"),
    ("Endless", r"expected finite arrays from shared\(\), got best: array\(-inf\)"),
)
def test_a_class_that_is_no_whole_term_is_refused(kind, told, envs):
    settings = type("Own", (TaskConfig,), {"term": f"{__name__}:{kind}"})
    with pytest.raises(UsageError, match=f"term of task: {told}"):
        build_terms(paying(BASE, settings()), envs)


class Spaced(Unseeded):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.networks = [dataclasses.replace(self.networks[0], name="my net")]


Counting = sharing("my count", np.zeros(1))


@cases(("kind", "built", "told"), ("Counting", (), "my count"), ("Spaced", ("my net",), "param"))
def test_a_name_that_no_checkpoint_takes_is_refused_at_the_start(kind, built, told):
    settings = type("Own", (TaskConfig,), {"term": f"{__name__}:{kind}", "networks": built})
    with pytest.raises(UsageError, match=f"names of letters, digits and _ . - /, got '{told}"):
        trainer_of(paying(BASE, settings()))


def test_layers_without_a_seed_follow_that_of_the_run(envs):
    names = {"term": f"{__name__}:Unseeded", "networks": ("plain",)}
    config, state = paying(BASE, type("Own", (TaskConfig,), names)()), random.getstate()
    runs = [dataclasses.replace(config, seed=seed) for seed in (0, 0, 1)]
    layouts = [Layout(build_terms(run, envs)[0].networks) for run in runs]
    first, again, other = (layout.initial() for layout in layouts)
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first[:6], other[:6]).any()
    assert random.getstate() == state


def test_the_input_scale_is_the_spread_under_random_actions(envs):
    config = paying(MUSIC, MusicConfig(normalize_inputs=True))
    (term,) = build_terms(config, envs)
    centre, unit = term.scales["statistics"].numpy()
    assert centre.shape == unit.shape == (6,)
    assert (np.abs(centre[[0, 1, 3, 4]]) < 0.5).all()
    assert ((unit > 0.1) & (unit < 1.0)).all()
    # z never changes, and shares the scale of x and y; the disc is moved less than the point
    assert np.unique(unit[:3]).size == np.unique(unit[3:]).size == 1
    assert unit[0] > unit[3]
    (again,) = build_terms(config, envs)
    np.testing.assert_array_equal(again.scales["statistics"], term.scales["statistics"])


def test_a_lost_object_needs_a_lowest_reward(envs, monkeypatch):
    config = dataclasses.replace(BASE, lost_object="absorb")
    assert build_terms(config, envs)
    unbounded = dataclasses.replace(envs.info, reward_bounds=(-math.inf, math.inf))
    monkeypatch.setattr(envs, "info", unbounded)
    with pytest.raises(UsageError, match=r"--lost-object: absorb.*task has none.*--task.clip -1 0"):
        build_terms(config, envs)
    assert build_terms(paying(config, TaskConfig(clip=(-1.0, 0.0))), envs)
