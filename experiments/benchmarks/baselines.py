"""Updates a second of Stable-Baselines3 on the same task with the same sizes."""

import importlib
import sys
import time
from typing import Any

import gymnasium

from benchmarks.arithmetic import COMPARED_THREADS, DDPG_BATCH, DDPG_HIDDEN
from benchmarks.sizes import Sizes
from music_tf.envs.making import import_robotics
from music_tf.errors import EnvironmentFault

_EPISODE_STEPS = 50
_CRITICS = {"SAC": 2, "DDPG": 1}


def measure_theirs(sizes: Sizes, name: str) -> dict[str, Any]:
    """Times `train` of a learner with hindsight replay, on as many threads as ours.

    Args:
        sizes: Counts.
        name: SAC or DDPG.

    Returns:
        The rate, or why there is none.
    """
    try:
        library = load_theirs(COMPARED_THREADS)
    except EnvironmentFault as fault:
        return {"left_out": str(fault).splitlines()[0]}
    import_robotics()
    model = getattr(library, name)(
        "MultiInputPolicy",
        gymnasium.make("FetchPush-v4"),
        replay_buffer_class=library.HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": list(DDPG_HIDDEN), "n_critics": _CRITICS[name]},
        learning_rate=1e-3,
        buffer_size=1_000_000 // 20,
        batch_size=DDPG_BATCH,
        learning_starts=10**9,
        device="cpu",
    )
    model.learn(total_timesteps=sizes.stored_episodes * _EPISODE_STEPS)
    seconds = 0.0
    for number in range(sizes.rounds + 1):
        start = time.perf_counter()
        model.train(gradient_steps=sizes.updates, batch_size=DDPG_BATCH)
        if number > 0:  # the first call warms up
            seconds += time.perf_counter() - start
    return {"updates_per_s": sizes.rounds * sizes.updates / seconds}


def load_theirs(threads: int) -> Any:
    """Returns Stable-Baselines3, with so many threads of PyTorch.

    Raises:
        EnvironmentFault: One of them cannot be imported.
    """
    try:
        library = without_tensorflow("stable_baselines3")
        without_tensorflow("torch").set_num_threads(threads)
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0][:160]
        raise EnvironmentFault(
            f"stable-baselines3 cannot be imported ({reason})\n"
            "cure: pip install stable-baselines3 torch"
        ) from error
    return library


def without_tensorflow(module: str) -> Any:
    """Imports a module of Stable-Baselines3 or PyTorch; its logger would load TensorFlow too."""
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    return importlib.import_module(module)
