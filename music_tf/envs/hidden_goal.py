"""Tasks of gymnasium-robotics with a hidden goal: each goal is a task of a family."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.envs.making import make_environment
from music_tf.envs.member import show_goal
from music_tf.types import Floats

Action = npt.NDArray[np.float32]


class HiddenGoal(gymnasium.Wrapper[Floats, Action, dict[str, Floats], Action]):
    """A goal environment as a family of tasks: the goal is inferred, not observed.

    Task: the goal, drawn as the environment draws it. Observation: that of the environment, then
    the achieved goal. Reward: the environment's own. `info` has `is_success`, and `sparse_reward`:
    the reward of the environment without `Dense` in its name.
    """

    def __init__(self, environment: gymnasium.Env[dict[str, Floats], Action]) -> None:
        """Takes an environment that keeps its goal in `goal`, on Fetch or in a maze."""
        super().__init__(environment)
        spaces: Any = environment.observation_space
        size = spaces["observation"].shape[0] + spaces["achieved_goal"].shape[0]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self._robot: Any = environment.unwrapped
        self._in_maze = hasattr(self._robot, "maze")
        self.task: Floats | None = None
        """The goal [G] that replaces the environment's own; None keeps it."""

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        """Draws goals, [count, G], without changing the environment's own random state."""
        robot, generator_of_robot = self._robot, self._robot.np_random
        robot.np_random = generator
        try:
            return np.array([self._draw() for _ in range(count)])
        finally:
            robot.np_random = generator_of_robot

    def set_task(self, task: Floats) -> None:
        self.task = task

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Starts an episode, then replaces the environment's goal by the task."""
        observed, info = self.env.reset(seed=seed, options=options)
        if self.task is not None:
            show_goal(self._robot, self.task)
        return _without_goal(observed), info

    def step(self, action: Action) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        observed, reward, terminated, truncated, info = self.env.step(action)
        success = bool(info.get("is_success", info.get("success")))
        sparse = float(success) - (0.0 if self._in_maze else 1.0)
        info = {**info, "is_success": success, "sparse_reward": sparse}
        return _without_goal(observed), float(reward), terminated, truncated, info

    def _draw(self) -> Any:
        if self._in_maze:
            return self._robot.add_xy_position_noise(self._robot.generate_target_goal())
        return self._robot._sample_goal()


def hidden_goal(*, shown: str, **options: Any) -> HiddenGoal:
    """Makes the environment of the id `shown` with its goal hidden."""
    return HiddenGoal(make_environment(shown, **options).unwrapped)


def _without_goal(observed: dict[str, Floats]) -> Floats:
    return np.concatenate([observed["observation"], observed["achieved_goal"]])
