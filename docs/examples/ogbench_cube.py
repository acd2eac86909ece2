"""cube-single-v0 of OGBench as a goal environment."""

import gymnasium
import numpy as np
from gymnasium import spaces
from ogbench.manipspace.envs.cube_env import CubeEnv

import music_tf

RADIUS = 0.04  # metres within which OGBench counts a success
SEEN = (
    "proprio/effector_pos",  # 0 to 2
    "proprio/gripper_opening",  # 3
    "privileged/block_0_pos",  # 4 to 6
    "privileged/block_0_quat",
    "proprio/gripper_contact",
    "proprio/joint_pos",
    "proprio/joint_vel",
)


class Cube(gymnasium.Env):
    """Observes gripper, cube and arm in metres and radians; the cube and its goal lie anywhere."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.inner = CubeEnv(
            "single", mode="data_collection", terminate_at_goal=False, width=480, height=480
        )
        self.action_space = spaces.Box(-1.0, 1.0, (5,))  # the gripper's x, y, z, turn and opening
        _, info = self.inner.reset(seed=0)
        self.observation_space = spaces.Dict(
            {
                name: spaces.Box(-np.inf, np.inf, part.shape, np.float64)
                for name, part in self.observed(info).items()
            }
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        _, info = self.inner.reset(seed=seed)
        return self.observed(info), {}

    def step(self, action):
        *_, info = self.inner.step(action)
        seen = self.observed(info)
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], info))
        return seen, reward, False, False, {"is_success": reward == 0.0}

    def compute_reward(self, achieved_goal, desired_goal, info):
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distance > RADIUS).astype(np.float64)

    def observed(self, info):
        return {
            "observation": np.concatenate([info[name] for name in SEEN]),
            "achieved_goal": info["privileged/block_0_pos"],
            "desired_goal": info["privileged/target_block_pos"],
        }

    def render(self):
        return self.inner.render()

    def close(self):
        self.inner.close()


gymnasium.register("OGBenchCube-v0", Cube, max_episode_steps=100)
music_tf.register_world(
    "OGBenchCube-v0",
    music_tf.World(
        agent=[0, 1, 2],
        surrounding=[4, 5, 6],
        gripper=[0, 1, 2],
        object=[4, 5, 6],
        support=[0.25, -0.35, 0.6, 0.35, 0.02],
        descriptor=[4, 5],
    ),
)
