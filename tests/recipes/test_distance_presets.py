import pytest

from music_tf import recipes
from music_tf.config.fields import fields_of
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from tests.kit.cases import cases

OF_CSD = {
    "workers": 1,
    "epochs": 1002,
    "cycles": 40,
    "rollouts": 2,
    "updates": 10,
    "goals": "zero",
    "lost_object": "continue",
    "collect.random_steps": 200_000,
    "replay.capacity": 100_000,
    "replay.overwrite": "random",
    "replay.relabel_k": 0.0,
    "replay.batch_size": 256,
    "condition.kind": "gaussian",
    "condition.relabel": 0.0,
    "agent.critics": 1,
    "agent.hidden_sizes": (256, 256),
    "agent.linear_features": True,
    "agent.entropy_mode": "batch_mean",
    "agent.entropy_scale": 0.02,
    "agent.entropy_clip": (-1.0, 0.0),
    "agent.squash_correction": "epsilon",
    "agent.action_l2": 1.0,
    "agent.polyak": 0.995,
    "agent.polyak_every": "cycle",
    "agent.discount": None,
    "agent.return_clip": "off",
    "exploration.noise": 0.2,
    "exploration.random_probability": 0.3,
    "exploration.sample": False,
    "evaluation.episodes": 200,
    "evaluation.every": 25,
    "distance.distance": "density",
    "distance.density_loss": "released",
    "distance.density_early": True,
    "distance.sigma_floor": 1e-6,
    "distance.norm": "mean",
    "distance.dual_start": 3000.0,
    "distance.dual_learning_rate": 1e-3,
    "distance.slack": 1e-6,
    "distance.scale": 500.0,
    "distance.hidden_sizes": (128, 128),
    "distance.normalize_inputs": False,
    "distance.columns": tuple(range(25)),
    "distance.batch": "own",
}
OF_METRA = {
    "rollouts": 8,
    "cycles": 50,
    "updates": 50,
    "env.max_episode_steps": 200,
    "collect.random_steps": 0,
    "collect.update_after": 10_000,
    "replay.capacity": 1_000_000,
    "replay.draw": "steps",
    "condition.relabel": 0.0,
    "agent.critics": 2,
    "agent.hidden_sizes": (1024, 1024),
    "agent.linear_features": False,
    "agent.deviation": "clip",
    "agent.squash_correction": "epsilon",
    "agent.actor_learning_rate": 1e-4,
    "agent.critic_learning_rate": 1e-4,
    "agent.temperature_learning_rate": 1e-4,
    "agent.temperature": 0.01,
    "agent.learn_temperature": True,
    "agent.target_entropy_per_action": -0.5,
    "agent.discount": 0.99,
    "agent.polyak": 0.995,
    "agent.polyak_every": "update",
    "agent.truncated": "terminal",
    "agent.update_order": "sequential",
    "exploration.sample": True,
    "evaluation.episodes": 48,
    "distance.distance": "one",
    "distance.norm": "mean",
    "distance.update_order": "first",
    "distance.batch": "shared",
    "distance.scale": 1.0,
    "distance.dual_start": 30.0,
    "distance.dual_learning_rate": 1e-4,
    "distance.learning_rate": 1e-4,
    "distance.slack": 1e-3,
    "distance.hidden_sizes": (1024, 1024),
}
OF_LSD = {
    "rollouts": 10,
    "updates": 64,
    "env.max_episode_steps": 200,
    "replay.capacity": 2000,
    "replay.overwrite": "oldest",
    "replay.batch_size": 1024,
    "condition.kind": "one_hot",
    "skills": 16,
    "agent.critics": 2,
    "agent.hidden_sizes": (512, 512),
    "agent.learn_temperature": False,
    "agent.temperature": 0.003,
    "agent.truncated": "terminal",
    "agent.update_order": "sequential",
    "agent.discount": 0.99,
    "agent.polyak": 0.995,
    "distance.constraint": "spectral",
    "distance.every": 2,
    "distance.scale": 1.0,
    "distance.learning_rate": 1e-4,
    "distance.hidden_sizes": (512, 512),
    "evaluation.episodes": 64,
}
OF_ROBOTS = {
    "Ant-v5": {"distance.columns": tuple(range(29))},
    "HalfCheetah-v5": {"distance.columns": tuple(range(18))},
}


def check(config, expected):
    found = {field.name: field.value for field in fields_of(config)}
    assert {name: found[name] for name in expected} == expected


@cases(("env_id", "size"), ("FetchPickAndPlace-v4", 3), ("FetchPush-v4", 2), ("FetchSlide-v4", 2))
def test_csd_is_as_its_code_for_fetch_has_it(env_id, size):
    config = recipes.resolve("sac_csd", "csd_release", env_id)
    check(config, OF_CSD | {"condition.size": size})
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
    check(config, OF_METRA | OF_ROBOTS[env_id] | conditions)
    steps = config.cycles * config.rollouts * 200
    assert config.evaluation.every * steps == 1_600_000


@pytest.mark.parametrize("env_id", OF_ROBOTS)
def test_lsd_is_as_its_code_has_it(env_id):
    config = recipes.resolve("sac_lsd", "lsd_release", env_id)
    check(config, OF_LSD | OF_ROBOTS[env_id])
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
