import pytest

from music_tf import recipes
from music_tf.config.fields import fields_of
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.recipes.releases import DISTANCE
from tests.kit.cases import cases

OF_CSD = {  # beside what releases.py says: of MUSIC's release, and defaults
    **{"goals": "zero", "lost_object": "continue", "replay.relabel_k": 0.0},
    **{"replay.batch_size": 256, "condition.relabel": 0.0, "agent.critics": 1},
    **{"agent.linear_features": True, "agent.entropy_mode": "batch_mean", "agent.action_l2": 1.0},
    **{"agent.polyak_every": "cycle", "agent.discount": None, "agent.return_clip": "off"},
    **{"exploration.noise": 0.2, "exploration.random_probability": 0.3},
    **{"exploration.sample": False, "distance.sigma_floor": 1e-6, "distance.norm": "mean"},
    **{"distance.dual_learning_rate": 1e-3, "distance.batch": "own"},
    "distance.normalize_inputs": False,
}
OF_METRA = {
    **{"replay.capacity": 1_000_000, "condition.relabel": 0.0, "agent.critics": 2},
    **{"agent.learn_temperature": True, "exploration.sample": True, "distance.distance": "one"},
    **{"distance.norm": "mean", "distance.scale": 1.0, "distance.dual_start": 30.0},
    **{"distance.slack": 1e-3, "collect.random_steps": 0},
}
OF_LSD = {"condition.kind": "one_hot", "agent.critics": 2, "distance.scale": 1.0}
OF_BOTH = {"agent.truncated": "terminal", "agent.update_order": "sequential"}
ROBOTS = ("Ant-v5", "HalfCheetah-v5")


def check(config, expected):
    found = {field.name: field.value for field in fields_of(config)}
    assert {name: found[name] for name in expected} == expected


@cases(("env_id", "size"), ("FetchPickAndPlace-v4", 3), ("FetchPush-v4", 2), ("FetchSlide-v4", 2))
def test_csd_is_as_its_code_for_fetch_has_it(env_id, size):
    config = recipes.resolve("sac_csd", "csd_release", env_id)
    check(config, OF_CSD | {"condition.size": size, **DISTANCE["csd_release"][env_id]})
    steps = config.cycles * config.rollouts * 50
    assert config.collect.random_steps == 50 * steps
    assert config.epochs * steps == 4_008_000


@cases(
    ("env_id", "conditions"),
    ("Ant-v5", {"condition.kind": "sphere", "condition.size": 2, "skills": 1}),
    ("HalfCheetah-v5", {"condition.kind": "one_hot", "skills": 16}),
)
def test_metra_is_as_its_code_for_states_has_it(env_id, conditions):
    config = recipes.resolve("sac_metra", "metra_release", env_id)
    check(config, DISTANCE["metra_release"][env_id] | OF_METRA | OF_BOTH | conditions)
    steps = config.cycles * config.rollouts * 200
    assert config.evaluation.every * steps == 1_600_000


@pytest.mark.parametrize("env_id", ROBOTS)
def test_lsd_is_as_its_code_has_it(env_id):
    config = recipes.resolve("sac_lsd", "lsd_release", env_id)
    check(config, DISTANCE["lsd_release"][env_id] | OF_LSD | OF_BOTH)
    cycle = config.rollouts * 200
    assert config.epochs * config.cycles * cycle == 40_000_000
    assert config.evaluation.every * config.cycles == 1000


@cases(
    ("recipe", "env_id", "near"),
    ("sac_csd", "Ant-v5", "FetchPush-v4"),
    ("sac_csd", "FetchReach-v4", "FetchPush-v4"),
    ("sac_lsd", "Walker2d-v5", "Ant-v5"),
    ("sac_metra", "FetchPush-v4", "Ant-v5"),
    ("sac_metra", "HalfCheetah-v4", "HalfCheetah-v5"),
)
def test_a_release_is_refused_where_it_never_ran(recipe, env_id, near):
    preset = recipe.replace("sac_", "") + "_release"
    with pytest.raises(UsageError) as refusal:
        recipes.resolve(recipe, preset, env_id)
    assert f"--preset {preset}: expected an environment of that release" in str(refusal.value)
    assert f"got {env_id}\nnearest: --env-id {near}, or --preset laptop" in str(refusal.value)


@pytest.mark.parametrize("env_id", ["FetchPickAndPlace-v4", "FetchPush-v4", "Hopper-v5"])
def test_the_place_itself_is_metra_with_an_embedding_that_turns_its_columns(env_id):
    task = ("--env-id", env_id, "--seed", "3")
    turned = ("--distance.hidden-sizes", "--distance.train", "False", "--distance.scale", "18")
    at_rest = ("--distance.initializer", "orthogonal", "--distance.rest-until", "-1")
    horizon = ("--agent.discount", "0.95", "--epochs", "11")
    speeds = ("--condition.kind", "ball", "--distance.speed", "auto", *horizon)
    with_speeds = speeds if env_id.startswith("FetchP") else ()
    spelled_out = ("sac_metra", *task, *turned, *at_rest, *with_speeds)
    assert parse_train(["sac_place", *task]).config == parse_train([*spelled_out]).config
