"""push-v3 of Meta-World as a goal environment."""

import gymnasium
import metaworld
import numpy as np
from gymnasium import spaces

import music_tf

TASKS = metaworld.MT1("push-v3", seed=0)  # fifty places of puck and goal
RADIUS = 0.05  # metres within which Meta-World counts a success


class Push(gymnasium.Env):
    """Observes hand (0 to 2), fingers (3), puck (4 to 6) and its turn, now and a step before."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 80}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        make = TASKS.train_classes["push-v3"]
        self.inner = make(render_mode="rgb_array", camera_name="corner2")
        self.action_space = self.inner.action_space  # the hand's x, y, z, and its fingers
        sizes = {"observation": 22, "achieved_goal": 3, "desired_goal": 3}
        self.observation_space = spaces.Dict(
            {name: spaces.Box(-np.inf, np.inf, (size,), np.float64) for name, size in sizes.items()}
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.inner.set_task(TASKS.train_tasks[self.np_random.integers(len(TASKS.train_tasks))])
        state, _ = self.inner.reset()
        return self.observed(state), {}

    def step(self, action):
        state, _, terminated, truncated, info = self.inner.step(action)
        seen = self.observed(state)
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], info))
        return seen, reward, terminated, truncated, {"is_success": reward == 0.0}

    def compute_reward(self, achieved_goal, desired_goal, info):
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distance > RADIUS).astype(np.float64)

    def observed(self, state):
        now, before, goal = state[:11], state[18:29], state[36:]
        return {
            "observation": np.concatenate([now, before]),
            "achieved_goal": state[4:7],
            "desired_goal": goal,
        }

    def render(self):
        return self.inner.render()[::-1, ::-1]  # that camera hangs upside down

    def close(self):
        self.inner.close()


gymnasium.register("MetaWorldPush-v0", Push, max_episode_steps=150)
music_tf.register_world(
    "MetaWorldPush-v0",
    music_tf.World(
        agent=[0, 1, 2],
        surrounding=[4, 5, 6],
        gripper=[0, 1, 2],
        object=[4, 5, 6],
        support=[-0.7, 0.2, 0.7, 1.0, 0.02],
        descriptor=[4, 5],
    ),
)
