import pytest

from music_tf import recipes
from music_tf.config.fields import fields_of
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from tests.kit.cases import cases

BY_HAND = {  # METRA on the ant, LSD on the ant, CSD on FetchPush; None: the default of its agent
    "epochs": (75, 500, 1002),
    "cycles": (50, 40, 40),
    "rollouts": (8, 10, 2),
    "updates": (50, 64, 10),
    "skills": (1, 16, 1),
    "condition.kind": ("sphere", "one_hot", "gaussian"),
    "condition.relabel": (0.0, 0.0, 0.0),
    "env.max_episode_steps": (200, 200, None),
    "collect.random_steps": (0, 0, 200_000),
    "collect.update_after": (10_000, 0, 0),
    "replay.capacity": (1_000_000, 2000, 100_000),
    "replay.draw": ("steps", "episodes", None),
    "replay.overwrite": (None, "oldest", "random"),
    "replay.batch_size": (256, 1024, 256),
    "evaluation.episodes": (48, 64, 200),
    "evaluation.every": (20, 25, 25),
    "exploration.sample": (True, True, False),
    "agent.hidden_sizes": ((1024, 1024), (512, 512), (256, 256)),
    "agent.critics": (2, 2, 1),
    "agent.linear_features": (False, False, True),
    "agent.actor_learning_rate": (1e-4, 1e-4, 1e-3),
    "agent.critic_learning_rate": (1e-4, 1e-4, 1e-3),
    "agent.temperature_learning_rate": (1e-4, 1e-4, 1e-3),
    "agent.temperature": (0.01, 0.003, 0.2),
    "agent.learn_temperature": (True, False, False),
    "agent.target_entropy_per_action": (-0.5, -1.0, -1.0),
    "agent.entropy_mode": ("next_state", "next_state", "batch_mean"),
    "agent.critic_loss": ("half_mean", "half_mean", "sum"),
    "agent.deviation": ("clip", "clip", "tanh"),
    "agent.squash_correction": ("epsilon", "epsilon", "epsilon"),
    "agent.discount": (0.99, 0.99, None),
    "agent.polyak": (0.995, 0.995, 0.995),
    "agent.polyak_every": ("update", "update", "cycle"),
    "agent.truncated": ("terminal", "terminal", "bootstrap"),
    "agent.update_order": ("sequential", "sequential", "simultaneous"),
    "distance.columns": (tuple(range(29)), tuple(range(29)), tuple(range(25))),
    "distance.distance": ("one", "one", "density"),
    "distance.constraint": ("dual", "spectral", "dual"),
    "distance.density_loss": ("nll", "nll", "released"),
    "distance.density_early": (False, False, True),
    "distance.hidden_sizes": ((1024, 1024), (512, 512), (128, 128)),
    "distance.learning_rate": (1e-4, 1e-4, 1e-3),
    "distance.dual_learning_rate": (1e-4, 1e-3, 1e-3),
    "distance.dual_start": (30.0, 30.0, 3000.0),
    "distance.slack": (1e-3, 1e-3, 1e-6),
    "distance.scale": (1.0, 1.0, 500.0),
    "distance.norm": ("mean", "mean", "mean"),
    "distance.every": (1, 2, 1),
    "distance.update_order": ("first", "simultaneous", "simultaneous"),
    "distance.batch": ("shared", "own", "own"),
    "distance.normalize_inputs": (True, True, False),
}
OF_METRA, OF_LSD, OF_CSD = (
    {name: values[code] for name, values in BY_HAND.items()} for code in range(3)
)
OF_MUSIC = {  # whose release CSD's code for Fetch began with
    **{"goals": "zero", "lost_object": "continue", "replay.relabel_k": 0.0},
    **{"agent.action_l2": 1.0, "agent.entropy_scale": 0.02, "agent.return_clip": "off"},
    **{"agent.entropy_weight": ((0.0, 0.2),), "distance.sigma_floor": 1e-6},
    **{"exploration.noise": 0.2, "exploration.random_probability": 0.3},
}
OF_CHEETAH = {"distance.columns": tuple(range(18))}


@cases(
    ("name", "env_id", "expected"),
    ("csd", "FetchPickAndPlace-v4", OF_CSD | OF_MUSIC | {"condition.size": 3}),
    ("csd", "FetchPush-v4", OF_CSD | OF_MUSIC | {"condition.size": 2}),
    ("csd", "FetchSlide-v4", OF_CSD | OF_MUSIC | {"condition.size": 2}),
    ("metra", "Ant-v5", OF_METRA | {"condition.size": 2}),
    (
        "metra",
        "HalfCheetah-v5",
        OF_METRA | OF_CHEETAH | {"condition.kind": "one_hot", "skills": 16},
    ),
    ("lsd", "Ant-v5", OF_LSD),
    ("lsd", "HalfCheetah-v5", OF_LSD | OF_CHEETAH),
)
def test_a_release_is_as_its_code_has_it(name, env_id, expected):
    config = recipes.resolve(f"sac_{name}", f"{name}_release", env_id)
    found = {field.name: field.value for field in fields_of(config)}
    assert {setting: found[setting] for setting in expected} == expected


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
