"""Environment steps a second: ours, through `gymnasium.make`, and of the physics alone."""

import time
from typing import Any, NamedTuple

import gymnasium
import mujoco
import numpy as np
import numpy.typing as npt

from benchmarks.sizes import Sizes
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import import_robotics
from music_tf.types import Array

ENV_ID = "FetchPush-v4"
SUBSTEPS = 20
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class Recording(NamedTuple):
    """The simulator, and the states it was in before each step of an episode."""

    model: Any
    data: Any
    states: list[npt.NDArray[np.float64]]


def measure(sizes: Sizes) -> dict[str, float]:
    """Plays the same episodes of random actions in all three ways, one after the other.

    Returns:
        Rates in steps a second; those of environments with their resets.
    """
    import_robotics()
    envs = LockstepEnvs(ENV_ID, 1)
    environment = gymnasium.make(ENV_ID)
    generator = np.random.default_rng(0)
    shape = (envs.spec.max_episode_steps, envs.spec.action_dim)
    seconds = np.zeros(3)
    for seed in range(sizes.env_episodes + 1):
        actions = generator.uniform(-1.0, 1.0, shape).astype(np.float32)
        recording = record(envs, seed, actions)
        taken = [
            play_ours(envs, seed, actions),
            play_gymnasium(environment, seed, actions),
            step_physics(recording),
        ]
        if seed > 0:  # the first episode warms up
            seconds += taken
    environment.close()
    envs.close()
    ours, theirs, physics = sizes.env_episodes * shape[0] / seconds
    return {
        "env_steps_per_s": float(ours),
        "gymnasium_steps_per_s": float(theirs),
        "mj_step_per_s": float(physics),
    }


def play_ours(envs: LockstepEnvs, seed: int, actions: Array) -> float:
    """Returns the seconds of an episode in our environment, reset included."""
    start = time.perf_counter()
    envs.reset([0], [seed])
    for action in actions:
        envs.step(action[None], [0])
    return time.perf_counter() - start


def play_gymnasium(environment: gymnasium.Env[Any, Any], seed: int, actions: Array) -> float:
    """Returns the seconds of an episode in Gymnasium's environment, reset included."""
    start = time.perf_counter()
    environment.reset(seed=seed)
    for action in actions:
        environment.step(action)
    return time.perf_counter() - start


def record(envs: LockstepEnvs, seed: int, actions: Array) -> Recording:
    """Plays an episode in our environment and keeps what mj_step starts from at each step."""
    states: list[npt.NDArray[np.float64]] = []
    seen: list[Any] = []
    original = mujoco.mj_step

    def step(model: Any, data: Any, nstep: int = 1) -> None:
        state = np.empty(mujoco.mj_stateSize(model, _STATE))
        mujoco.mj_getState(model, data, state, _STATE)
        states.append(state)
        seen[:] = model, data
        original(model, data, nstep=nstep)

    envs.reset([0], [seed])
    mujoco.mj_step = step
    try:
        for action in actions:
            envs.step(action[None], [0])
    finally:
        mujoco.mj_step = original
    return Recording(seen[0], seen[1], states)


def step_physics(recording: Recording) -> float:
    """Returns the seconds inside mj_step alone, over the recorded states."""
    model, data, states = recording
    seconds = 0.0
    for state in states:
        mujoco.mj_setState(model, data, state, _STATE)
        start = time.perf_counter()
        mujoco.mj_step(model, data, nstep=SUBSTEPS)
        seconds += time.perf_counter() - start
    return seconds
