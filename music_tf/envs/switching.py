"""The user's own families of tasks, from a function that makes the environment of a task."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import gymnasium
import numpy as np

from music_tf.envs import simulator
from music_tf.errors import UsageError
from music_tf.types import Floats

Make: TypeAlias = Callable[[Floats], gymnasium.Env[Any, Any]]
Draw: TypeAlias = Callable[[int, np.random.Generator], Floats]

_KEPT = 8
"""Most environments that are kept; the least recently used one is closed first."""


class _Kept(NamedTuple):
    """The environment of a task, and the state in which it was made."""

    environment: gymnasium.Env[Any, Any]
    beginning: simulator.Beginning


class SwitchedTasks(gymnasium.Env[Any, Any]):
    """A family of tasks with an environment for each task."""

    def __init__(
        self, make: Make, draw: Draw, draw_test: Draw | None = None, render_mode: str | None = None
    ) -> None:
        """Makes the environment of some task; all others must have the same spaces."""
        self._make, self._draw = make, draw
        if draw_test is not None:
            self.sample_test_tasks = draw_test
        self.render_mode = render_mode
        self._kept: dict[bytes, _Kept] = {}
        self.current, self._beginning = self._kept_for(
            np.array(draw(1, np.random.default_rng(0))[0], np.float64)
        )
        self.observation_space = self.current.observation_space
        self.action_space = self.current.action_space
        self.metadata = self.current.metadata

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        """Draws tasks, [count, D]."""
        return self._draw(count, generator)

    def set_task(self, task: Floats) -> None:
        """Switches to the environment of a task, [D]; refuses other spaces than the first has."""
        environment, beginning = self._kept_for(task)
        for name in ("observation_space", "action_space"):
            here, first = getattr(environment, name), getattr(self, name)
            if here != first:
                raise UsageError(
                    f"register_tasks: make: expected the same {name} for all tasks, {first!s:.120}"
                    f", got {here!s:.120} for the task {task.tolist()!s:.80}"
                )
        self.current, self._beginning = environment, beginning

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of the task."""
        self._beginning.restore()
        observation, info = self.current.reset(seed=seed, options=options)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes a step in the environment of the task."""
        observation, reward, terminated, truncated, info = self.current.step(action)
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """Renders the environment of the task."""
        unwrapped = self.current.unwrapped
        unwrapped.render_mode = self.render_mode
        return unwrapped.render()

    def close(self) -> None:
        """Closes all environments that are kept."""
        for kept in self._kept.values():
            kept.environment.close()
        self._kept.clear()

    def _kept_for(self, task: Floats) -> _Kept:
        """Returns the environment of a task, and marks it as the most recently used one."""
        key = task.tobytes()
        kept = self._kept.pop(key, None)
        if kept is None:
            made = self._make(task.copy())
            if not isinstance(made, gymnasium.Env):
                raise UsageError(
                    "register_tasks: make: expected a gymnasium environment, got "
                    f"{made!r:.80} for the task {task.tolist()!s:.80}"
                )
            if any(made.unwrapped is other.environment.unwrapped for other in self._kept.values()):
                raise UsageError(
                    "register_tasks: make: expected an environment of its own for each task, got "
                    "the same one twice\na family with set_task is registered with Gymnasium"
                )
            kept = _Kept(made, simulator.Beginning(made.unwrapped))
        self._kept[key] = kept
        if len(self._kept) > _KEPT:
            self._kept.pop(next(iter(self._kept))).environment.close()
        return kept


def register_tasks(
    env_id: str,
    *,
    make: Make,
    draw: Draw,
    draw_test: Draw | None = None,
    max_episode_steps: int | None = None,
) -> None:
    """Registers a family of tasks with Gymnasium, for agents that adapt to tasks.

    Up to eight environments are kept for tasks that come again.

    Args:
        env_id: Such as `me/Family-v0`; `module:me/Family-v0` on a command line imports the module.
        make: Returns the environment of a task [D]; all must have the same spaces.
        draw: Returns tasks [count, D] that depend on a count and a generator alone.
        draw_test: Draws the tasks of evaluation in the same way; unset: `draw`.
        max_episode_steps: Steps of an episode; unset: a run must set them.

    Raises:
        UsageError: The id has another form or belongs to another environment, or a function is
            none.
    """
    for name, function in (("make", make), ("draw", draw), ("draw_test", draw_test or draw)):
        if not callable(function):
            raise UsageError(f"register_tasks: {name}: expected a function, got {function!r:.80}")
    entry = getattr(gymnasium.registry.get(env_id), "entry_point", None)
    if env_id in gymnasium.registry and getattr(entry, "func", None) is not SwitchedTasks:
        raise UsageError(f"register_tasks: {env_id[:80]} is the id of another environment")
    gymnasium.registry.pop(env_id, None)
    try:
        gymnasium.register(
            id=env_id,
            entry_point=functools.partial(SwitchedTasks, make, draw, draw_test),
            max_episode_steps=max_episode_steps,
        )
    except (gymnasium.error.Error, TypeError) as error:
        raise UsageError(
            f"register_tasks: expected an id such as me/Family-v0, got {env_id!r:.80}"
        ) from error
