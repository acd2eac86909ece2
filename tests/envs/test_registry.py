import gymnasium
import numpy as np
import pytest

from music_tf import recipes
from music_tf.config.fields import with_fields
from music_tf.config.settings import EnvConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import goal_environments, make_environment
from music_tf.envs.registry import UNKNOWN, check_split, lookup
from music_tf.envs.toys import PointPush
from music_tf.errors import UsageError
from tests.kit.cases import cases, every
from tests.kit.points import Point


def test_fetch_is_known_in_any_module_and_version_and_what_only_starts_like_it_is_not():
    info = lookup("FetchPush-v4")
    assert info.split is not None
    assert (info.split.agent, info.split.surrounding) == ((0, 1, 2), (3, 4, 5))
    assert (info.gripper, info.object, info.music_gain) == ((0, 1, 2), (3, 4, 5), 5000.0)
    assert lookup("my.module:FetchSlide-v4") == lookup("FetchSlide-v4")
    assert lookup("FetchPush-v9").split is not None  # whatever its version
    assert lookup("FetchPushMine-v4") == lookup("Mine-v0")


@every(
    "env_id", ["FetchReach-v4", "HandReach-v3", "PointMaze_UMaze-v3", "AntMaze_Large-v5", "Mine-v0"]
)
def test_without_an_object_what_needs_a_split_is_refused_and_told_what_would_do(env_id):
    info, music = lookup(env_id), recipes.resolve("ddpg_music", env_id=env_id)
    assert (info.split, info.object) == (None, None)
    told = rf"^{env_id} has no (known robot and )?object, whose motion is to be "
    with pytest.raises(UsageError, match=rf"{told}rewarded\nmusic-tf check-env {env_id} looks"):
        check_split(music)
    check_split(with_fields(music, {"world.agent": (0,), "world.surrounding": (1,)}))
    check_split(recipes.resolve("sac", env_id=env_id))


def test_each_environment_of_gymnasium_robotics_with_goals_has_an_entry():
    families = ("Fetch", "HandReach", "HandManipulate", "PointMaze", "AntMaze", "music_tf/")
    ids = [env_id for env_id in goal_environments() if env_id.startswith(families)]
    assert len(ids) > 100
    assert not [env_id for env_id in ids if lookup(env_id) is UNKNOWN]


@pytest.mark.parametrize("env_id", ["FetchPush-v4", "FetchSlide-v4", "FetchPickAndPlace-v4"])
def test_the_table_is_where_the_model_has_it(env_id):
    environment = make_environment(env_id)
    environment.reset(seed=0)
    table = environment.unwrapped.model.body("table0")
    geom = environment.unwrapped.model.geom(table.geomadr[0])
    support = lookup(env_id).support
    np.testing.assert_allclose(support.low, table.pos[:2] - geom.size[:2], atol=1e-4)
    np.testing.assert_allclose(support.high, table.pos[:2] + geom.size[:2], atol=1e-4)
    for _ in range(10):
        observation = environment.step(np.zeros(4, np.float32))[0]["observation"]
    assert abs(observation[5] - support.rest_height) < 1e-4


@cases("env_id", "HandManipulateEgg-v1", "HandManipulateBlockRotateZ_BooleanTouchSensors-v1")
def test_hand_splits_into_joint_angles_and_pose_of_the_object(env_id):
    environment = make_environment(env_id)
    state, _ = environment.reset(seed=0)
    info = lookup(env_id)
    observation = state["observation"]
    joints = environment.unwrapped.data.qpos[: len(info.split.agent)]
    assert len(joints) == environment.unwrapped.model.njnt - 2  # all but object and target
    np.testing.assert_array_equal(observation[list(info.split.agent)], joints)
    np.testing.assert_array_equal(observation[list(info.split.surrounding)], state["achieved_goal"])
    np.testing.assert_array_equal(observation[list(info.object)], state["achieved_goal"][:3])


def info_of(env_id, kwargs="{}"):
    envs = LockstepEnvs(env_id, 1, EnvConfig(kwargs=kwargs))
    envs.close()
    return envs.info


@cases(
    ("env_id", "kwargs", "bounds"),
    ("HandManipulateBlock-v1", '{"reward_type": "dense"}', (-np.inf, 0.0)),
    ("FetchReach-v4", '{"reward_type": "dense"}', (-np.inf, 0.0)),
    ("FetchReach-v4", "{}", (-1.0, 0.0)),
    ("FetchReachDense-v4", "{}", (-np.inf, 0.0)),
    ("PointMaze_UMaze-v3", "{}", (0.0, 1.0)),
    ("PointMaze_UMazeDense-v3", "{}", (0.0, 1.0)),
    ("music_tf/UnitBox-v0", "{}", (-1.0, 1.0)),
)
def test_arguments_decide_which_bounds_of_a_known_reward_hold(env_id, kwargs, bounds):
    assert info_of(env_id, kwargs).reward_bounds == bounds
    assert lookup("Mine-v0").reward_bounds == (-np.inf, np.inf)


def test_a_hand_that_ignores_a_turn_has_its_rewards_one_by_one():
    kwargs = '{"ignore_z_target_rotation": true}'
    assert not info_of("HandManipulateBlock-v1", kwargs).batched_reward
    assert info_of("HandManipulateBlock-v1").batched_reward
    assert not lookup("HandManipulatePenRotate_ContinuousTouchSensors-v1").batched_reward
    assert lookup("HandManipulateEggRotate-v1").batched_reward


class TenTimes(PointPush):  # pays ten times as much
    def compute_reward(self, achieved_goal, desired_goal, info):
        return 10.0 * super().compute_reward(achieved_goal, desired_goal, info)


@cases(
    ("make", "split"),
    (lambda: gymnasium.wrappers.TransformReward(PointPush(), lambda reward: 9 * reward), True),
    (TenTimes, True),
    (Point, False),
    (lambda: gymnasium.wrappers.FlattenObservation(PointPush()), False),
    ids=["wrapped", "derived", "somebody else's", "changed"],
)
def test_what_an_id_says_holds_as_far_as_the_environment_is_that_one(make, split, monkeypatch):
    env_id = "music_tf/PointPush-v77"
    spec = gymnasium.envs.registration.EnvSpec(env_id, make, max_episode_steps=5)
    monkeypatch.setitem(gymnasium.registry, env_id, spec)
    info = info_of(env_id)
    assert (lookup(env_id).reward_bounds, info.reward_bounds) == ((-1.0, 0.0), (-np.inf, np.inf))
    assert (info.split is not None) == split
