import contextlib
import dataclasses
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from music_tf import recipes
from music_tf.config.agents import DdpgConfig, DiscreteSacConfig, SacConfig
from music_tf.config.fields import fields_of, with_fields
from music_tf.config.names import HALF_CIRCLE, HIDDEN_GOALS, KNOWN, POINT_ROBOT, ROBOT_FAMILIES
from music_tf.config.terms import TaskConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from music_tf.intrinsic.base import schedule_value
from music_tf.recipes import releases
from music_tf.recipes.music import MusicConfig
from music_tf.recipes.pearl import PearlConfig
from music_tf.training import build
from tests.kit.cases import cases, every

REACH, PUSH, PICK, SLIDE = (f"Fetch{t}-v4" for t in ("Reach", "Push", "PickAndPlace", "Slide"))
BASES = ("ddpg", "ddpg_her", "ddpg_her_fast", "ddpg_music", "sac", "sac_her", "sac_music")
VARIANTS = tuple(
    f"{learner}_music_{variant}{her}"
    for learner in ("ddpg", "sac")
    for variant in ("finetune", "prioritized", "reward")
    for her in ("", "_her")
)
BY_STEPS = (
    *("sac_csd", "sac_dads", "sac_dads_smerl", "sac_disk", "sac_disk_music", "sac_lsd"),
    *("sac_metra", "sac_pearl", "sac_pearl_music", "sac_place", "sac_smerl"),
)
RELEASED = tuple(name for name in recipes.names() if name not in (*BY_STEPS, "ddpg_rher"))
RELEASED_SAC = tuple(n for n in RELEASED if n.startswith("sac") and not n.endswith("_her"))
CONTROLS = ("ddpg_music_frozen", "ddpg_joint_motion", "ddpg_random_reward")
NAMES = (*BASES, *VARIANTS, "ddpg_music_transfer", *CONTROLS)
POLICY = ("actor", "critic", "targets")
FREE = '{"terminate_when_unhealthy": false}'
BLOCKS = (250, 250, 1000, 1000, *[500] * 4, 250, 250)
PRESETS = pytest.mark.parametrize("preset", recipes.PRESETS)


def released(name, env_id=""):  # what the release of MUSIC has under this name
    return recipes.resolve(name, "music" if name == "sac_diayn" else "paper", env_id)


def test_every_public_function_is_a_recipe():
    texts = [file.read_text() for file in Path(recipes.__file__).parent.glob("[a-z]*.py")]
    found = [name for text in texts for name in re.findall(r"^def ([a-z]\w*)", text, re.MULTILINE)]
    assert recipes.names() == tuple(sorted(found))
    assert set(NAMES) <= set(recipes.names())


@every("name", recipes.names())
def test_a_recipe_says_in_one_sentence_what_it_does_and_names_its_learner(name):
    text = recipes.describe(name)
    assert text.endswith(".")
    assert len(text) <= 100
    config = recipes.resolve(name)
    agents = {"sac": SacConfig, "ddpg": DdpgConfig, "skills": DiscreteSacConfig}
    own = dict.fromkeys(("sac_pearl", "sac_pearl_music"), PearlConfig)
    assert type(config.agent) is own.get(name, agents[name.partition("_")[0]])
    assert config.env_id in KNOWN
    assert recipes.resolve(name, env_id="music_tf/PointPush-v0").env_id == "music_tf/PointPush-v0"
    pick, typed = (recipes.resolve(name, env_id=f"{m}{PICK}") for m in ("", "gymnasium_robotics:"))
    assert dataclasses.replace(typed, env_id=PICK) == pick


@every("name", NAMES)
def test_the_paper_preset_has_the_published_sizes(name):
    config = recipes.resolve(name, "paper", PUSH)
    sizes = (config.workers, config.rollouts, config.cycles, config.updates, config.epochs)
    assert sizes == (16, 2, 50, 40, 50)
    assert config.replay.batch_size == 256
    music = config.rewards.get("music", MusicConfig())
    assert music.trajectories == (32 if name == "ddpg_her_fast" else 256)
    assert music.pair_negatives == ("swap" if name == "ddpg_her_fast" else "random")
    assert (config.agent.polyak, config.agent.polyak_every) == (0.95, "cycle")
    assert config.agent.actor_learning_rate == config.agent.critic_learning_rate == 1e-3


@every("name", RELEASED)
def test_the_laptop_preset_does_less_of_the_same(name):
    paper, laptop = released(name), recipes.resolve(name, "laptop")
    assert laptop.workers % 2 == 0
    assert laptop.workers * laptop.rollouts * laptop.cycles < 1600
    # Without MUSIC the object is let go before there are skills
    kept = ("music",) if name == "sac_music_diayn" else ()
    goals = "zero" if name == "ddpg_cai" else paper.goals  # its authors show goals that pay nothing
    assert (laptop.goals, [*laptop.rewards]) == (goals, [*kept, *paper.rewards])
    assert type(laptop.agent) is type(paper.agent)
    # Goals of these are zero, and hindsight would only vary an input that means nothing
    without_goals = name in ("sac_diayn", "sac_music_diayn")
    relabel_k = 0.0 if without_goals else paper.replay.relabel_k
    assert (laptop.replay.strategy, laptop.replay.relabel_k) == (paper.replay.strategy, relabel_k)


TASK = {"goals": "environment", "rewards": ("task",), "replay.relabel_k": 0.0}
HINDSIGHT = {"goals": "environment", "replay.strategy": "future", "replay.relabel_k": 4.0}
MUSIC = {
    **{"goals": "zero", "rewards": ("music",), "replay.relabel_k": 0.0},
    **{"music.shift": -1.0, "music.pair_negatives": "random"},
}
AS_RELEASED = {"agent.entropy_mode": "batch_mean", "agent.actor_entropy": False, "agent.critics": 1}
SOFT = {
    **{"agent.entropy_mode": "next_state", "agent.actor_entropy": True, "agent.critics": 2},
    **{"agent.learn_temperature": True, "agent.next_action": "main", "exploration.sample": True},
}
FINE_TUNED = ("sac_diayn_finetune", "sac_finetune_skill")
SKILLS = {"env_id": PICK, "skills": 5, "pinned_skill": None}
DIAYN = {
    **{"goals": "zero", "rewards": ("skill",), "replay.relabel_k": 4.0},
    **{"skill.scale": 0.5, "skill.clip": (-1.0, 0.0), "skill.state": "current"},
    **{"skill.subtract_prior": False, "skill.hidden_sizes": (128, 128, 128)},
}


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "FetchPush-v4", "Hopper-v5", "PandaFlip-v3"])
@pytest.mark.parametrize("name", ["ddpg", "sac"])
def test_a_module_before_an_id_changes_no_setting(name, env_id):
    plain, named = (recipes.resolve(name, "laptop", one) for one in (env_id, f"mine.envs:{env_id}"))
    assert dataclasses.replace(named, env_id=env_id) == plain
    assert (plain.collect.steps is None) == (env_id in ("FetchPush-v4", "PandaFlip-v3"))


@cases(
    ("name", "published"),
    ("ddpg", {**TASK, "agent.return_clip": "off"}),
    ("sac", {**TASK, **AS_RELEASED, "agent.return_clip": "off"}),
    ("ddpg_her", {**HINDSIGHT, "agent.return_clip": "auto"}),
    ("ddpg_her_fast", HINDSIGHT),
    ("sac_her", {**HINDSIGHT, **SOFT}),
    ("ddpg_music", MUSIC),
    ("sac_music", {**MUSIC, **AS_RELEASED}),
    ("sac_music_skills", {**MUSIC, **AS_RELEASED, **SKILLS}),
    ("sac_diayn", {**DIAYN, **AS_RELEASED, **SKILLS}),
    ("sac_music_diayn", {**DIAYN, **AS_RELEASED, **SKILLS}),
    ("sac_diayn_finetune", {**TASK, **SKILLS, "pinned_skill": 0}),
    ("sac_finetune_skill", {**TASK, **SKILLS}),
)
def test_the_paper_preset_has_the_published_settings(name, published):
    config = released(name)
    found = {field.name: field.value for field in fields_of(config)}
    assert {setting: found[setting] for setting in published} == published
    if name.startswith("sac"):
        entropy = schedule_value(config.agent.entropy_weight, 10)
        assert entropy == (0.5 if name in FINE_TUNED else 0.2)


@PRESETS
@pytest.mark.parametrize("name", [*FINE_TUNED, "sac_music_diayn"])
def test_recipes_that_follow_on_others_have_their_networks(name, preset):
    source = recipes.resolve(name, preset).start
    assert source.parts[:3] == POLICY
    assert ("normalizer" in source.parts) == (preset == "laptop")
    before = recipes.resolve(source.recipe, source.preset or preset)
    after = recipes.resolve(name, preset)
    assert source.recipe == ("sac_diayn" if name in FINE_TUNED else "sac_music_skills")
    assert after.agent.hidden_sizes == before.agent.hidden_sizes
    assert after.agent.critics == before.agent.critics
    assert (after.skills, after.env_id) == (before.skills, before.env_id)
    assert not source.same_skills  # theirs are typed where there are goals


@PRESETS
@pytest.mark.parametrize("name", ["sac_diayn_finetune", "sac_finetune_skill"])
@pytest.mark.parametrize("env_id", ["Hopper-v5", "music_tf/UnitBox-v0"])
def test_without_goals_fine_tuning_differs_from_skills_by_the_reward_alone(name, preset, env_id):
    source = recipes.resolve(name, preset, env_id).start
    before, after = (recipes.resolve(one, preset, env_id) for one in (source.recipe, name))
    assert ("normalizer" in source.parts) == before.normalizer.running == (preset == "laptop")
    assert source.same_skills
    assert [*after.rewards] == ["task"]
    assert after.collect.random_steps == 0
    same = {field: getattr(before, field) for field in ("rewards", "collect", "evaluation")}
    same |= {"goals": "zero", "pinned_skill": None, "start": None}
    assert dataclasses.replace(after, **same) == before


@every(
    "name", [f"sac_{name}" for name in ("metra", "csd", "lsd", "place", "diayn", "dads", "disk")]
)
def test_skills_without_a_task_see_no_goals_of_an_environment_of_ones_own(name):
    for preset in recipes.presets(name):
        for env_id in () if preset.endswith("_release") else ("mine:Arm-v0", PUSH, "Hopper-v5"):
            assert recipes.resolve(name, preset, env_id).goals == "zero"
    with_task = recipes.resolve("sac_smerl", env_id="mine:Arm-v0")
    assert with_task.goals == recipes.resolve("sac_diayn_finetune", env_id=PUSH).goals
    assert with_task.goals == "environment"


def test_skills_after_music_change_what_is_rewarded_and_nothing_else_on_a_laptop():
    before, after = recipes.resolve("sac_music_skills"), recipes.resolve("sac_music_diayn")
    assert [*after.rewards] == ["music", "skill"]
    music, skill = after.rewards.values()
    assert skill == recipes.resolve("sac_diayn").rewards["skill"]
    quieter = {"music.weight": ((0.0, 0.075),), "agent.action_l2": 0.0}
    assert dataclasses.replace(after, rewards={"music": music}) == with_fields(before, quieter)


@every(("name", "preset"), itertools.product(RELEASED_SAC, recipes.PRESETS))
def test_the_slide_has_a_larger_entropy_scale(name, preset):
    for env_id, scale in ((SLIDE, 0.03), (PUSH, 0.02)):
        laptop = preset == "laptop"
        config = recipes.resolve(name, preset, env_id) if laptop else released(name, env_id)
        assert config.agent.entropy_scale == scale


@cases(
    ("env_id", "before", "middle", "after"),
    (PUSH, 3, 4, 5),
    (PICK, 0.4, 0.475, 0.55),
    (SLIDE, 3, 4.5, 6),
)
def test_the_fast_recipe_passes_from_music_to_the_task(env_id, before, middle, after):
    assert recipes.resolve("ddpg_her_fast", env_id=REACH).rewards == {"task": TaskConfig()}
    assert recipes.resolve("ddpg_her", "paper", REACH).cycles == 10
    both = recipes.resolve("ddpg_her_fast", env_id=env_id).rewards
    weights = [
        [schedule_value(both[name].weight, at) for name in ("task", "music")]
        for at in (before, middle, after, 1000)
    ]
    # MUSIC pays up to 4 a step
    assert np.ravel(weights) == pytest.approx([0.0, 0.25, 0.5, 0.125, 1.0, 0.0, 1.0, 0.0])
    by_level = {(term.weight_by, term.weight_latest) for term in both.values()}
    assert by_level == {("lifted", 12) if env_id == PICK else ("epoch", None)}


def test_a_group_that_a_recipe_has_not_is_refused():
    with pytest.raises(UsageError, match=r"musik\.gain: these settings have no musik"):
        with_fields(recipes.resolve("ddpg_music"), {"musik.gain": 500})


def test_relay_hindsight_takes_16_updates_in_ten_steps_and_bounds_values_by_minus_20():
    config = recipes.resolve("ddpg_rher")
    agent, workers = config.agent, config.workers
    assert config.updates == 1.6 * workers * config.rollouts * 50
    assert workers * config.replay.batch_size == agent.hidden_sizes[0] == 256
    assert (config.replay.relabel_k, config.replay.reach) == (4.0, 0.05)
    assert (agent.critics, agent.polyak, agent.polyak_every) == (1, 0.8, "cycle")
    paid = [build.build_terms(config, LockstepEnvs(PUSH, 1)), agent.discount]
    assert build.return_bounds(agent, *paid) == pytest.approx((-20.0, 0.0))


@every(
    ("name", "preset", "env_id"), itertools.product(VARIANTS, recipes.PRESETS, (PUSH, REACH, SLIDE))
)
def test_a_variant_is_its_baseline_with_what_music_gives(name, preset, env_id):
    learner, _, variant, *her = name.split("_")
    base = recipes.resolve("_".join([learner, *her]), preset, env_id)
    config = recipes.resolve(name, preset, env_id)
    fields = {"rewards": base.rewards, "replay": base.replay}
    if variant == "finetune":
        before = recipes.resolve(f"{learner}_music", preset, env_id)
        assert learner == "sac" or config.agent.critics == before.agent.critics
        fields = {"agent": base.agent} if preset == "laptop" else {}
        entropy = 0.5 if name == "sac_music_finetune" else 0.2  # the release's, on fine-tuning
        if learner == "sac":
            assert schedule_value(config.agent.entropy_weight, 10) == entropy
            fields = {"agent": base.agent}
    assert dataclasses.replace(config, **fields) == base
    assert recipes.resolve(name, preset).start.recipe == f"{learner}_music"


@PRESETS
@pytest.mark.parametrize("name", [name for name in VARIANTS if "finetune" not in name])
def test_added_rewards_and_priorities_come_from_a_frozen_network(name, preset):
    config = recipes.resolve(name, preset, PUSH)
    music = recipes.resolve("ddpg_music", preset, PUSH).rewards["music"]
    assert ([*config.rewards], config.goals) == (["task", "music"], "environment")
    frozen = config.rewards["music"]
    assert not frozen.train
    by_priority = "prioritized" in name
    paid = {"laptop": 0.25, "paper": 1.0}[preset]
    assert schedule_value(frozen.weight, 10) == (0.0 if by_priority else paid)
    assert config.replay.priority == ("music" if by_priority else "uniform")
    assert dataclasses.replace(frozen, train=True, weight=music.weight) == music
    assert recipes.resolve(name, preset).start.parts == ("statistics",)
    slide = recipes.resolve(name, preset, SLIDE).rewards["music"].weight
    assert schedule_value(slide, 10) == (0.0 if by_priority else 0.5 * paid)


@pytest.mark.parametrize("learner", ["ddpg", "sac"])
def test_fine_tuning_starts_from_the_published_policy(learner):
    for env_id, epochs in ((SLIDE, 13), (PUSH, None)):
        source = recipes.resolve(f"{learner}_music_finetune", "paper", env_id).start
        assert (source.parts, source.epochs) == (POLICY, epochs)
    # nothing is published of those with hindsight; sac_her has two critics, sac_music one
    theirs = ("actor",) if learner == "sac" else POLICY
    for name, parts in (("finetune_her", theirs), ("finetune", POLICY)):
        laptop = recipes.resolve(f"{learner}_music_{name}", "laptop", SLIDE).start
        assert (laptop.parts, laptop.epochs) == ((*parts, "normalizer"), None)
    paper = recipes.resolve(f"{learner}_music_finetune_her", "paper", SLIDE).start
    assert (paper.parts, paper.epochs) == (theirs, None)


@PRESETS
@pytest.mark.parametrize("learner", ["ddpg", "sac"])
@pytest.mark.parametrize("env_id", ["mine:Task-v0", "Pendulum-v1"])
def test_without_goals_a_variant_has_what_a_run_of_music_fits(learner, preset, env_id):
    base, music, tuned, ranked = (
        recipes.resolve(f"{learner}{more}", preset, env_id)
        for more in ("", "_music", "_music_finetune", "_music_prioritized")
    )
    assert (tuned.agent.hidden_sizes, tuned.agent.actor) == ((256, 256, 256), music.agent.actor)
    assert tuned.collect == dataclasses.replace(base.collect, random_steps=0)
    soft = learner == "sac"  # of another kind of values than in sac_music
    assert soft or tuned.agent.critics == music.agent.critics
    parts = ("actor",) if soft else POLICY
    assert tuned.start.parts == (*parts, *(["normalizer"] if preset == "laptop" else []))
    steps = {"mine:Task-v0": 1000, "Pendulum-v1": 200}[env_id]
    assert (ranked.collect.steps, ranked.replay.draw) == (None, "episodes")
    assert ranked.cycles * steps == base.cycles * base.collect.steps
    assert (ranked.agent, ranked.collect.updates_per_step) == (base.agent, 1.0)


@PRESETS
@pytest.mark.parametrize("env_id", [PUSH, PICK, SLIDE])
def test_transfer_and_the_frozen_control_differ_by_where_the_network_comes_from(preset, env_id):
    transfer = recipes.resolve("ddpg_music_transfer", preset, env_id)
    assert transfer == recipes.resolve("ddpg_music_reward", preset, env_id)
    source = (transfer.start.recipe, transfer.start.parts, transfer.start.env_id)
    assert source == ("ddpg_music", ("statistics",), PICK)
    frozen = recipes.resolve("ddpg_music_frozen", preset, env_id)
    music = recipes.resolve("ddpg_music", preset, env_id)
    assert frozen == with_fields(music, {"music.train": False})
    assert frozen.start is None


UNIT_BOX, SQUARE = "music_tf/UnitBox-v0", "music_tf/Square-v0"
TOLD_APART = {"rewards": ("skill",), "skill.scale": 1.0, "skill.subtract_prior": True}
BY_HAND = {  # the authors' code, the PyTorch DIAYN, QDax
    "skills": (50, 50, 5),
    "condition.sampler": ("random", "random", "tiled"),
    "collect.steps": (1, 1, 20),
    "collect.random_steps": (0, 0, 0),
    "collect.update_after": (999, 255, 0),
    "collect.updates_per_step": (1.0, 1.0, 0.25),
    "replay.batch_size": (128, 256, 256),
    "agent.hidden_sizes": ((300, 300), (300, 300), (256, 256)),
    "agent.actor_learning_rate": (3e-4, 3e-4, 3e-4),
    "agent.critic_learning_rate": (3e-4, 3e-4, 3e-4),
    "agent.linear_features": (False, False, False),
    "agent.critics": (1, 2, 2),
    "agent.critic_loss": ("half_mean", "sum", "half_mean"),
    "agent.polyak": (0.99, 0.995, 0.995),
    "agent.discount": (0.99, 0.99, 0.97),
    "agent.temperature": (0.1, 0.1, 1.0),
    "agent.learn_temperature": (False, False, True),
    "agent.target_entropy_per_action": (-1.0, -1.0, -0.5),
    "agent.deviation": ("tanh", "clip", "softplus"),
    "agent.squash_correction": ("exact", "epsilon", "exact"),
    "agent.truncated": ("bootstrap", "bootstrap", "masked"),
    "agent.initializer": ("glorot", "he_normal", "lecun_uniform"),
    "skill.initializer": ("glorot", "he_normal", "lecun_uniform"),
    "skill.hidden_sizes": ((300, 300), (300, 300), (256, 256)),
    "skill.learning_rate": (3e-4, 3e-4, 3e-4),
    "skill.batch": ("shared", "shared", "shared"),
    "skill.state": ("current", "next", "next"),
    "skill.trained_on": (None, "current", "current"),
    "skill.prior_offset": (1e-6, 1e-6, 0.0),
    "skill.missing_descriptor": ("observation", "observation", "zeros"),
    "normalizer.running": (False, False, False),
    "normalizer.input_clip": (1e6, 1e6, 1e6),
}


@cases(("code", "preset"), *enumerate(["paper", "diayn_torch", "qdax"]))
def test_skills_have_the_settings_of_each_public_code_on_any_task(code, preset):
    expected = TOLD_APART | {name: values[code] for name, values in BY_HAND.items()}
    expected |= {"goals": "zero", "replay.draw": "steps"}
    for env_id in (UNIT_BOX, "Hopper-v5", PICK):
        found = {f.name: f.value for f in fields_of(recipes.resolve("sac_diayn", preset, env_id))}
        assert {setting: found[setting] for setting in expected} == expected
        assert found.get("agent.value_learning_rate", 3e-4) == 3e-4


@cases(
    # target and margin, scale of the task's reward, weight of the skills', inputs of the dynamics
    ("preset", "gate", "scale", "weight", "omit"),
    ("laptop", (2050.0, 205.0), 1.0, 1.0, 0),
    ("qdax", (800.0, 800.0), 1.0, 2.0, 2),
    ("paper", (2050.0, 205.0), 5.0, 10.0, "all"),  # 5 times the reward, twice QDax's diversity
)
def test_smerl_adds_the_task_and_a_gate_to_rewards_for_skills(preset, gate, scale, weight, omit):
    for name, reward in (("sac_smerl", "skill"), ("sac_dads_smerl", "dads")):
        config = recipes.resolve(name, preset, "HalfCheetah-v5")
        assert [*config.rewards] == ["task", reward]
        task, gated = config.rewards.values()
        assert ((gated.target, gated.margin), task.scale) == (gate, scale)
        assert schedule_value(gated.weight, 0) == weight
        assert config.agent.learn_temperature == (preset != "paper")
    assert (gated.omit, gated.batch) == (omit, "own" if preset == "laptop" else "shared")


@cases(
    ("robot", "gate"),
    ("Walker2d-v5", (1180.0, 118.0, 10.0)),
    ("HalfCheetah-v5", (2050.0, 205.0, 5.0)),
    ("Ant-v5", (1700.0, 170.0, 10.0)),
)
def test_robots_have_the_gates_of_the_published_comparison(robot, gate):
    config = recipes.resolve("sac_smerl", "paper", robot)
    skill, agent = config.rewards["skill"], config.agent
    assert (skill.target, skill.margin, config.rewards["task"].scale) == gate
    assert (agent.discount, agent.temperature, agent.learn_temperature) == (0.99, 0.1, False)
    assert config.collect.updates_per_step == 1.0


@pytest.mark.parametrize("preset", ["laptop", "paper", "qdax"])
@pytest.mark.parametrize("robot", ["HalfCheetah", "Ant"])
def test_a_robot_whose_joints_may_break_has_the_target_of_the_same_robot(preset, robot):
    whole, fragile = (
        recipes.resolve("sac_smerl", preset, env_id)
        for env_id in (f"{robot}-v5", f"music_tf/{robot}-v0")
    )
    # episodes of our ant are shorter
    same = {"env_id": whole.env_id, "env": whole.env, "cycles": whole.cycles}
    assert dataclasses.replace(fragile, **same) == whole
    assert preset == "qdax" or whole.rewards["skill"].target != 1000.0


def test_numbers_of_the_authors_of_disk_are_those_of_any_version_of_a_robot():
    new, old = (recipes.resolve("sac_disk", "released", f"Hopper-v{n}") for n in (5, 4))
    assert (new.rewards, new.incremental) == (old.rewards, old.incremental)
    orders = [recipes.resolve("sac_disk", p).agent.update_order for p in ("released", "seed")]
    assert orders == ["sequential", "actor_first"]  # of the code, and of the pseudocode


@cases(
    # steps of an episode and of an evaluation, collected episodes, random steps, constructor, steps
    # of each skill in thousands, alpha, beta
    ("robot", "expected"),
    ("HalfCheetah-v5", (100, 500, 100, 5_000, "{}", (125,) * 20, 1, 1)),
    ("Hopper-v5", (100, 500, 100, 5_000, FREE, (50,) * 50, 1, 10)),
    ("Swimmer-v5", (200, 500, 100, 5_000, "{}", (250,) * 10, 1000, 1)),
    ("Ant-v5", (100, 500, 100, 5_000, "{}", (500, 500, *[1000] * 8), 60, 1)),
    ("music_tf/AntBlocks-v0", (100, 500, 100, 5_000, "{}", BLOCKS, 60, 1)),
    ("Humanoid-v5", (1000, 1500, 500, 10_000, FREE, (5000,) * 6, 60, 1)),
    ("music_tf/Square-v0", (None, None, 100, 500, "{}", (50, 50), 1, 1)),
    ("Walker2d-v5", (None, None, 100, 5_000, "{}", (125,) * 20, 1, 1)),
)
def test_robots_of_the_authors_of_disk_have_their_numbers(robot, expected):
    config = recipes.resolve("sac_disk", "released", robot)
    steps, random_steps = config.env.max_episode_steps, config.collect.random_steps
    found = (steps, config.evaluation.length, config.incremental.collected, random_steps)
    epoch, disk = config.cycles * config.collect.steps, config.rewards["disk"]
    of_skills = tuple(epoch * epochs / 1000 for epochs in config.incremental.epochs)
    assert (*found, config.env.kwargs, of_skills, disk.alpha, disk.beta) == expected
    assert epoch % (steps or 10) == 0
    agent = config.agent
    assert (agent.polyak, agent.polyak_every, config.replay.batch_size) == (0.995, 2, 1024)
    assert (agent.hidden_sizes, agent.actor_learning_rate) == ((256, 256), 3e-4)  # not theirs
    coded = (config.incremental.replay, disk.balance, disk.descriptor, disk.own_episodes)
    assert coded == ("purge", "released", "velocity", 1)


def test_disk_as_its_paper_states_it_compares_places_at_equal_times():
    config = recipes.resolve("sac_disk", "seed", "HalfCheetah-v5")
    disk = config.rewards["disk"]
    assert (config.skills, disk.k, disk.rows, disk.own_episodes) == (20, 5, 100, 100)
    assert (disk.balance, disk.timesteps, disk.schedule) == ("raw", "equal", False)
    assert (config.incremental.past, config.incremental.collected) == ("append", 100)


def test_our_robots_are_told_apart_by_place_as_those_they_are_made_of():
    for own, known in (("HalfCheetah-v0", "HalfCheetah-v5"), ("AntBlocks-v0", "Ant-v5")):
        ours, theirs = (
            recipes.resolve("sac_disk", "laptop", n) for n in (f"music_tf/{own}", known)
        )
        assert (ours.world, ours.env) == (theirs.world, theirs.env)
        assert ours.world.descriptor in (("plane",), ("xy",))


@pytest.mark.thorough
def test_settings_of_other_programs_are_those_that_their_presets_alone_vary():
    theirs = {"diayn_torch", "qdax", "seed", "released", "oyster", "garage"}
    of_authors = {"sac_diayn", "sac_smerl", "sac_dads_smerl", "sac_pearl"}
    of_authors |= {"sac_diayn_finetune", "sac_finetune_skill"}
    ours, every = {}, {}
    tasks = (PUSH, PICK, SLIDE, "Hopper-v5", "Ant-v5", "HalfCheetah-v5", UNIT_BOX, SQUARE)
    for name in recipes.names():
        for preset in recipes.presets(name):
            foreign = preset in theirs or preset.endswith("_release")
            foreign |= preset == "paper" and name in of_authors
            families = ROBOT_FAMILIES + tuple(HIDDEN_GOALS) + (POINT_ROBOT, HALF_CIRCLE)
            for env_id in families if "pearl" in name else tasks:
                with contextlib.suppress(UsageError):
                    for field in fields_of(recipes.resolve(name, preset, env_id)):
                        every.setdefault(field.name, set()).add(str(field.value))
                        if not foreign:
                            ours.setdefault(field.name, set()).add(str(field.value))
    found = {name for name, values in every.items() if len(values) > 1 and len(ours[name]) == 1}
    assert found - {"env.kwargs"} == releases.OTHER_PROGRAMS
