"""What the recipes for several tasks do on each family of ours."""

import pytest

from music_tf import recipes
from music_tf.config.names import EPISODE_STEPS, HIDDEN_GOALS, POINT_ROBOT, ROBOT_FAMILIES
from music_tf.reading.stored import config_to_json, flatten
from tests.kit.cases import cases

PRESETS = recipes.presets("sac_pearl")
VELOCITY, DIRECTION = (f"music_tf/HalfCheetah{name}-v0" for name in ("Velocity", "Direction"))
PUSH = "music_tf/FetchPushHiddenGoal-v0"


def settings(preset, env_id, recipe="sac_pearl"):
    return flatten(config_to_json(recipes.resolve(recipe, preset, env_id)))


@pytest.mark.parametrize("preset", PRESETS)
def test_each_family_of_ours_has_settings_that_go_together(preset):
    for env_id in (*ROBOT_FAMILIES, *HIDDEN_GOALS):
        config = recipes.resolve("sac_pearl", preset, env_id)
        assert config.tasks.train % config.workers == 0
        assert config.agent.context_rows <= config.context_episodes * EPISODE_STEPS[env_id]
        own = recipes.resolve("sac_pearl", preset, f"mine.envs:{env_id}")
        assert (own.agent, own.tasks) == (config.agent, config.tasks)


@cases(
    # updates an epoch, meta-batch, context, steps of prior and extra, train and test tasks, KL,
    # episodes of a visit under prior and posterior, visits to a task in an evaluation
    ("name", "expected"),
    ("PointRobot", (1000, 16, 64, 200, 200, 80, 20, 0.1, 1, 2, 2)),
    ("PointRobotHalfCircle", (1000, 16, 1024, 100, 0, 80, 20, 1.0, 5, 15, 2)),
    ("HalfCheetahVelocity", (2000, 16, 100, 400, 600, 100, 30, 0.1, 2, 1, 1)),
    ("HalfCheetahDirection", (2000, 4, 256, 1000, 1000, 2, 2, 0.1, 2, 1, 4)),
    ("AntDirection", (4000, 4, 256, 400, 600, 2, 2, 0.1, 2, 1, 4)),
    ("AntHiddenGoal", (4000, 10, 256, 400, 600, 150, 30, 1.0, 2, 1, 1)),
    ("HumanoidDirection", (4000, 16, 256, 400, 600, 100, 30, 0.1, 2, 1, 1)),
    ("Walker2dBodies", (4000, 10, 100, 400, 600, 40, 10, 0.1, 2, 1, 2)),
    ("HopperBodies", (4000, 10, 100, 400, 600, 40, 10, 0.1, 2, 1, 2)),
)
def test_families_of_the_authors_have_their_settings(name, expected):
    config = recipes.resolve("sac_pearl", "oyster", f"music_tf/{name}-v0")
    agent, tasks, steps = config.agent, config.tasks, EPISODE_STEPS[config.env_id]
    found = (
        *(tasks.visits * config.updates, agent.meta_batch, agent.context_rows),
        *(steps * tasks.prior, steps * tasks.extra, tasks.train, tasks.test, agent.kl_weight),
        *(tasks.explore, tasks.adapt, config.evaluation.episodes),
    )
    assert found == expected
    circle = name == "PointRobotHalfCircle"
    assert (config.cycles, tasks.visits) == (1, 10 if circle else 5)
    assert (tasks.posterior, agent.discount) == ((45, 0.9) if circle else (0, 0.99))
    assert config.replay.batch_size == 256 * agent.meta_batch
    assert agent.context_next_observation == name.endswith("Bodies")
    assert (agent.hidden_sizes, config.epochs, config.tasks.seed) == ((300,) * 3, 500, 1337)
    assert config.rewards["task"].scale == (100.0 if name.startswith("Point") else 5.0)
    assert config.env.kwargs == "{}"


def test_garage_asks_for_as_many_steps_of_a_visit_in_each_family():
    config = recipes.resolve("sac_pearl", "garage")
    assert (config.cycles, config.tasks.visits, config.tasks.visits * config.updates) == (
        *(1, 100, 1000),
    )
    agent = config.agent
    assert (agent.hidden_sizes, agent.meta_batch, agent.kl_weight) == ((300,) * 3, 64, 0.1)
    assert (config.replay.batch_size, config.rewards["task"].scale) == (64 * 1024, 1.0)
    assert (config.tasks.explore, config.tasks.adapt, config.tasks.posterior) == (10, 1, 0)
    for env_id, steps in ((POINT_ROBOT, 20), (PUSH, 50), (VELOCITY, 200)):
        tasks = recipes.resolve("sac_pearl", "garage", env_id).tasks
        for episodes in (tasks.initial, tasks.prior, tasks.extra):
            assert episodes == max(1, 100 // steps)
    changed = {"env_id", "tasks.initial", "tasks.prior", "tasks.extra"}
    point, push = (settings("garage", env_id) for env_id in (POINT_ROBOT, PUSH))
    assert {name for name in point if point[name] != push[name]} <= changed


def test_beliefs_of_places_can_say_where_circles_and_spheres_meet():
    kinds = {PUSH: "full", POINT_ROBOT: "full", "mine:Own-v0": "full", VELOCITY: "diagonal"}
    for env_id, posterior in kinds.items():
        assert recipes.resolve("sac_pearl", "laptop", env_id).agent.posterior == posterior
        for published in ("oyster", "paper", "garage"):
            assert recipes.resolve("sac_pearl", published, env_id).agent.posterior == "diagonal"


def test_music_pays_beside_the_task_and_fades_before_the_end():
    plain, both = (settings("laptop", PUSH, recipe) for recipe in ("sac_pearl", "sac_pearl_music"))
    assert recipes.resolve("sac_pearl_music").env_id == PUSH
    assert recipes.presets("sac_pearl_music") == ("laptop",)
    assert {name for name in plain if plain[name] != both[name]} == {"rewards"}
    assert both["rewards"] == ["task", "music"]
    (_, first), (half, weight), (end, last) = both["music.weight"]
    assert (first, last) == (weight, 0.0)
    assert 0.0 < half < end < both["epochs"]
    assert both["lost_object"] == "continue"  # replay of steps forgets which object was lost
    assert both["agent.context_reward"] == ""  # the environment's own
