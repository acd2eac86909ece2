"""Our policy beside the random policy and a scripted shove, on the same episodes."""

from collections.abc import Mapping

from music_tf.distributed import Communicator
from music_tf.envs.scripted import StraightShove
from music_tf.randomness import stream
from music_tf.rollout import Policy
from music_tf.training.evaluation import random_policy
from music_tf.training.trainer import Trainer
from music_tf.types import Array, Metrics

EPISODES = 100


def compare(trainer: Trainer, comm: Communicator, episodes: int = EPISODES) -> dict[str, Metrics]:
    """Evaluates three policies on the same episodes; every rank must call it together.

    Returns:
        Metrics by policy: `ours`, `random`, and `scripted shove` on Fetch tasks with an object.
    """
    dimension = trainer.envs.spec.action_dim
    policies: dict[str, Policy] = {
        "ours": trainer.policy(),
        "random": random_policy(stream(0, "comparison/random", comm.rank), dimension),
    }
    if trainer.envs.spec.env_id.startswith("Fetch") and trainer.envs.info.object is not None:
        policies["scripted shove"] = _shove(trainer.envs.spec.max_episode_steps)
    return {name: trainer.evaluate(episodes, policy) for name, policy in policies.items()}


def by_metric(rows: Mapping[str, Metrics]) -> dict[str, dict[str, float | None]]:
    """Turns metrics by policy into policies by metric."""
    names = dict.fromkeys(name for row in rows.values() for name in row)
    return {name: {policy: row.get(name) for policy, row in rows.items()} for name in names}


def _shove(steps: int) -> Policy:
    """Returns the scripted shove, planned anew at the first step of each batch of episodes."""
    shove = StraightShove()
    taken = 0

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        nonlocal taken
        del goal, skill, noise
        if taken % steps == 0:
            shove.reset()
        taken += 1
        return shove(observation)

    return act
