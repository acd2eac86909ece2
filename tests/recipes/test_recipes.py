import dataclasses
import re
from pathlib import Path

import pytest

from music_tf import recipes
from music_tf.config.fields import with_fields
from music_tf.config.names import KNOWN
from music_tf.config.settings import DdpgConfig, MusicConfig, SacConfig, SkillConfig, TaskConfig
from music_tf.errors import UsageError
from music_tf.intrinsic.base import schedule_value

BASES = ("ddpg", "ddpg_her", "ddpg_her_fast", "ddpg_music", "sac", "sac_her", "sac_music")
VARIANTS = tuple(
    f"{learner}_music_{variant}{her}"
    for learner in ("ddpg", "sac")
    for variant in ("finetune", "prioritized", "reward")
    for her in ("", "_her")
)
ADDED = tuple(name for name in VARIANTS if "_reward" in name)
RELEASED_SAC = tuple(
    name for name in recipes.names() if name.startswith("sac") and not name.endswith("_her")
)
NAMES = (
    *BASES,
    *VARIANTS,
    "ddpg_music_transfer",
    "ddpg_music_frozen",
    "ddpg_joint_motion",
)


def test_every_public_function_is_a_recipe():
    texts = [file.read_text() for file in Path(recipes.__file__).parent.glob("[a-z]*.py")]
    found = [name for text in texts for name in re.findall(r"^def ([a-z]\w*)", text, re.MULTILINE)]
    assert recipes.names() == tuple(sorted(found))
    assert set(NAMES) <= set(recipes.names())


def test_the_release_of_music_is_a_preset_of_skills_beside_the_two_that_all_have():
    presets = {name: recipes.presets(name) for name in recipes.names()}
    assert presets.pop("sac_diayn") == ("laptop", "paper", "music")
    assert set(presets.values()) == {("laptop", "paper")}
    assert recipes.resolve("sac_diayn", "music") == recipes.resolve("sac_diayn", "paper")


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_says_in_one_sentence_what_it_does(name):
    text = recipes.describe(name)
    assert text.endswith(".")
    assert len(text) <= 100


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_preset_has_the_published_sizes(name):
    config = recipes.resolve(name, "paper", "FetchPush-v4")
    sizes = (config.workers, config.rollouts, config.cycles, config.updates, config.epochs)
    assert sizes == (16, 2, 50, 40, 50)
    assert config.replay.batch_size == 256
    music = config.rewards.get("music", MusicConfig())
    assert music.trajectories == (32 if name == "ddpg_her_fast" else 256)
    assert music.pair_negatives == ("swap" if name == "ddpg_her_fast" else "random")
    assert (config.agent.polyak, config.agent.polyak_every) == (0.95, "cycle")
    assert config.agent.actor_learning_rate == config.agent.critic_learning_rate == 1e-3


@pytest.mark.parametrize("name", recipes.names())
def test_the_laptop_preset_does_less_of_the_same(name):
    paper, laptop = recipes.resolve(name, "paper"), recipes.resolve(name, "laptop")
    assert laptop.workers % 2 == 0
    assert laptop.workers * laptop.rollouts * laptop.cycles < 1600
    # Without MUSIC the object is let go before there are skills
    kept = ("music",) if name == "sac_music_diayn" else ()
    assert (laptop.goals, [*laptop.rewards]) == (paper.goals, [*kept, *paper.rewards])
    assert type(laptop.agent) is type(paper.agent)
    # Goals of these are zero, and hindsight would only vary an input that means nothing
    without_goals = name in ("sac_diayn", "sac_music_diayn")
    relabel_k = 0.0 if without_goals else paper.replay.relabel_k
    assert (laptop.replay.strategy, laptop.replay.relabel_k) == (paper.replay.strategy, relabel_k)


@pytest.mark.parametrize("name", ["ddpg", "sac"])
def test_baselines_take_the_task_reward_without_hindsight(name):
    config = recipes.resolve(name, "paper")
    assert (config.goals, [*config.rewards]) == ("environment", ["task"])
    assert config.replay.relabel_k == 0
    assert config.agent.return_clip == "off"


@pytest.mark.parametrize("name", ["ddpg_music", "sac_music"])
def test_music_sees_no_task(name):
    config = recipes.resolve(name, "paper")
    assert (config.goals, [*config.rewards], config.replay.relabel_k) == ("zero", ["music"], 0)
    assert config.rewards["music"].shift == -1.0
    assert config.rewards["music"].pair_negatives == "random"


@pytest.mark.parametrize("name", ["ddpg_her", "ddpg_her_fast", "sac_her"])
def test_hindsight_relabels_four_of_five(name):
    config = recipes.resolve(name, "paper")
    assert (config.replay.strategy, config.replay.relabel_k) == ("future", 4.0)


def test_learners_are_what_the_names_say():
    for name in NAMES:
        kind = SacConfig if name.startswith("sac") else DdpgConfig
        assert type(recipes.resolve(name).agent) is kind
    assert recipes.resolve("ddpg_her").agent.return_clip == "auto"


def test_the_released_sac_is_not_soft_and_sac_her_is():
    released = recipes.resolve("sac", "paper").agent
    assert (released.entropy_mode, released.actor_entropy, released.critics) == (
        "batch_mean",
        False,
        1,
    )
    soft = recipes.resolve("sac_her", "paper")
    assert (soft.agent.entropy_mode, soft.agent.actor_entropy) == ("next_state", True)
    assert (soft.agent.critics, soft.agent.learn_temperature) == (2, True)
    assert soft.agent.next_action == "main"
    assert soft.exploration.sample


@pytest.mark.parametrize(
    ("name", "rewards", "relabel_k", "goals", "pinned"),
    [
        ("sac_music_skills", ("music",), 0, "zero", None),
        ("sac_diayn", ("skill",), 4, "zero", None),
        ("sac_diayn_finetune", ("task",), 0, "environment", 0),
        ("sac_music_diayn", ("skill",), 4, "zero", None),
    ],
)
def test_recipes_with_skills_are_the_released_ones(name, rewards, relabel_k, goals, pinned):
    config = recipes.resolve(name, "paper")
    assert config.env_id == "FetchPickAndPlace-v4"
    assert (config.skills, config.pinned_skill) == (5, pinned)
    assert ((*config.rewards,), config.replay.relabel_k) == (rewards, relabel_k)
    assert config.goals == goals
    assert isinstance(config.agent, SacConfig)
    entropy = schedule_value(config.agent.entropy_weight, 10)
    assert entropy == (0.5 if name == "sac_diayn_finetune" else 0.2)
    skill = config.rewards.get("skill", SkillConfig())
    assert (skill.scale, skill.clip, skill.state) == (0.5, (-1.0, 0.0), "current")
    assert (skill.subtract_prior, skill.hidden_sizes) == (False, (128, 128, 128))


@pytest.mark.parametrize("preset", recipes.PRESETS)
@pytest.mark.parametrize("name", ["sac_diayn_finetune", "sac_music_diayn"])
def test_recipes_that_follow_on_others_have_their_networks(name, preset):
    source = recipes.source(name, preset)
    assert source.parts[:3] == ("actor", "critic", "targets")
    assert ("normalizer" in source.parts) == (preset == "laptop")
    before, after = (recipes.resolve(each, preset) for each in (source.recipe, name))
    assert source.recipe == {"sac_diayn_finetune": "sac_diayn"}.get(name, "sac_music_skills")
    assert after.agent.hidden_sizes == before.agent.hidden_sizes
    assert after.agent.critics == before.agent.critics
    assert (after.skills, after.env_id) == (before.skills, before.env_id)


def test_skills_after_music_change_what_is_rewarded_and_nothing_else_on_a_laptop():
    before, after = recipes.resolve("sac_music_skills"), recipes.resolve("sac_music_diayn")
    assert [*after.rewards] == ["music", "skill"]
    music, skill = after.rewards.values()
    assert skill == recipes.resolve("sac_diayn").rewards["skill"]
    assert music.weight == ((0.0, 0.3),)
    assert after.agent.action_l2 == 0.0
    unchanged = dataclasses.replace(after, rewards=before.rewards, agent=before.agent)
    assert unchanged == before
    assert dataclasses.replace(after.agent, action_l2=before.agent.action_l2) == before.agent
    was = before.rewards["music"]
    assert dataclasses.replace(music, weight=was.weight) == was


@pytest.mark.parametrize("preset", recipes.PRESETS)
@pytest.mark.parametrize("name", RELEASED_SAC)
def test_the_slide_has_a_larger_entropy_scale(name, preset):
    assert recipes.resolve(name, preset, "FetchSlide-v4").agent.entropy_scale == 0.03
    assert recipes.resolve(name, preset, "FetchPush-v4").agent.entropy_scale == 0.02


def test_reaching_has_short_epochs():
    assert recipes.resolve("ddpg_her", "paper", "FetchReach-v4").cycles == 10


def test_the_environment_is_the_one_asked_for():
    assert recipes.resolve("sac", env_id="music_tf/PointPush-v0").env_id == "music_tf/PointPush-v0"
    assert recipes.resolve("sac").env_id in KNOWN


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("ddgp",), "ddpg"),
        (("ddpg.py",), "ddpg"),
        (("",), "RECIPE"),
        (("ddpg", "labtop"), "did you mean laptop"),
    ],
)
def test_unknown_names_are_refused(arguments, part):
    with pytest.raises(UsageError, match=part):
        recipes.resolve(*arguments)


def test_dotted_names_replace_settings_at_any_depth():
    before = recipes.resolve("ddpg")
    after = with_fields(before, {"seed": 1, "agent.polyak": 0.5, "agent.critics": 2})
    assert after == dataclasses.replace(
        before, seed=1, agent=dataclasses.replace(before.agent, polyak=0.5, critics=2)
    )
    with pytest.raises(UsageError, match="polyak"):
        with_fields(before, {"agent.polyak": 3.0})


@pytest.mark.parametrize(
    ("env_id", "before", "middle", "after"),
    [
        ("FetchPush-v4", 5, 6.5, 8),
        ("FetchPickAndPlace-v4", 15, 17.5, 20),
        ("FetchSlide-v4", 3, 6.5, 10),
    ],
)
def test_the_fast_recipe_passes_from_music_to_the_task(env_id, before, middle, after):
    config = recipes.resolve("ddpg_her_fast", env_id=env_id)
    weights = [
        tuple(schedule_value(config.rewards[name].weight, epoch) for name in ("task", "music"))
        for epoch in (before, middle, after, 1000)
    ]
    assert weights == [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0), (1.0, 0.0)]


def test_the_fast_recipe_only_reaches_where_nothing_can_be_moved():
    config = recipes.resolve("ddpg_her_fast", env_id="FetchReach-v4")
    assert config.rewards == {"task": TaskConfig()}


@pytest.mark.parametrize("env_id", ["FetchPush-v4", "FetchReach-v4", "FetchSlide-v4"])
@pytest.mark.parametrize("preset", recipes.PRESETS)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_its_baseline_with_what_music_gives(name, preset, env_id):
    learner, _, variant, *her = name.split("_")
    base = recipes.resolve("_".join([learner, *her]), preset, env_id)
    config = recipes.resolve(name, preset, env_id)
    fields = {"rewards": base.rewards, "replay": base.replay}
    if variant == "finetune":
        fields = {}
        entropy = 0.5 if name == "sac_music_finetune" else 0.2  # the release's, on fine-tuning
        if learner == "sac":
            assert schedule_value(config.agent.entropy_weight, 10) == entropy
            fields = {"agent": base.agent}
    assert dataclasses.replace(config, **fields) == base
    assert recipes.source(name, preset).recipe == f"{learner}_music"


@pytest.mark.parametrize("preset", recipes.PRESETS)
@pytest.mark.parametrize("name", [name for name in VARIANTS if "finetune" not in name])
def test_added_rewards_and_priorities_come_from_a_frozen_network(name, preset):
    config = recipes.resolve(name, preset, "FetchPush-v4")
    music = recipes.resolve("ddpg_music", preset, "FetchPush-v4").rewards["music"]
    assert ([*config.rewards], config.goals) == (["task", "music"], "environment")
    frozen = config.rewards["music"]
    assert not frozen.train
    by_priority = "prioritized" in name
    assert schedule_value(frozen.weight, 10) == (0.0 if by_priority else 1.0)
    assert config.replay.priority == ("music" if by_priority else "uniform")
    assert dataclasses.replace(frozen, train=True, weight=music.weight) == music
    assert recipes.source(name, preset).parts == ("statistics",)


def test_fine_tuning_starts_from_policy_critic_and_targets():
    released = ("actor", "critic", "targets")
    for name in ("ddpg_music_finetune", "sac_music_finetune", "ddpg_music_finetune_her"):
        assert recipes.source(name, "paper").parts == released
        assert recipes.source(name, "laptop").parts == (*released, "normalizer")
    # sac_her has two critics, sac_music one
    assert recipes.source("sac_music_finetune_her").parts == ("actor", "normalizer")


def test_the_slide_is_fine_tuned_from_13_epochs_under_paper():
    for name in ("ddpg_music_finetune", "sac_music_finetune"):
        slide = "FetchSlide-v4"
        assert recipes.source(name, "paper", slide).epochs == 13
        assert recipes.source(name, "paper", "FetchPush-v4").epochs is None
        assert recipes.source(name, "laptop", slide).epochs is None
        # nothing is published of it
        assert recipes.source(f"{name}_her", "paper", slide).epochs is None


@pytest.mark.parametrize("preset", recipes.PRESETS)
def test_the_slide_halves_the_added_reward(preset):
    for name in (*ADDED, "ddpg_music_transfer"):
        config = recipes.resolve(name, preset, "FetchSlide-v4")
        assert schedule_value(config.rewards["music"].weight, 10) == 0.5


def test_transfer_takes_its_reward_from_picking_and_placing():
    assert recipes.resolve("ddpg_music_transfer") == recipes.resolve("ddpg_music_reward")
    source = recipes.source("ddpg_music_transfer")
    assert (source.recipe, source.parts) == ("ddpg_music", ("statistics",))
    assert source.env_id == "FetchPickAndPlace-v4"


@pytest.mark.parametrize("preset", recipes.PRESETS)
@pytest.mark.parametrize("env_id", ["FetchPush-v4", "FetchPickAndPlace-v4", "FetchSlide-v4"])
def test_the_frozen_control_is_music_that_does_not_learn(preset, env_id):
    frozen = recipes.resolve("ddpg_music_frozen", preset, env_id)
    music = recipes.resolve("ddpg_music", preset, env_id)
    assert frozen == with_fields(music, {"music.train": False})
    assert recipes.source("ddpg_music_frozen", preset) is None
