"""Runs of a few seconds on the point that pushes a disc."""

import dataclasses
import json

import numpy as np

from music_tf.config.agents import DdpgConfig, SacConfig
from music_tf.config.settings import Config, EvaluationConfig, ExplorationConfig, ReplayConfig
from music_tf.config.terms import TaskConfig
from music_tf.distributed import Communicator
from music_tf.recipes.music import MusicConfig
from music_tf.recipes.skills import SkillConfig
from music_tf.training.build import build_trainer

PUSH = "music_tf/PointPush-v0"
NETWORK = {"hidden_sizes": (16, 16)}
BATCHES = {"batch_size": 32, "capacity": 3000}


def paying(config, *terms, **changes):  # the configuration with these reward terms, in this order
    return dataclasses.replace(config, rewards={term.name: term for term in terms}, **changes)


BASE = Config(
    env_id=PUSH,
    workers=2,
    rollouts=2,
    cycles=2,
    updates=3,
    agent=DdpgConfig(**NETWORK),
    replay=ReplayConfig(**BATCHES),
    evaluation=EvaluationConfig(episodes=5),
)
HER = dataclasses.replace(BASE, replay=ReplayConfig(relabel_k=4.0, **BATCHES))
SMALL_MUSIC = MusicConfig(trajectories=8, hidden_size=16)
SMALL_SKILL = SkillConfig(hidden_sizes=(8,))
MUSIC = paying(BASE, SMALL_MUSIC, goals="zero")
SAC = dataclasses.replace(BASE, agent=SacConfig(**NETWORK))
SOFT = dataclasses.replace(
    HER,
    agent=SacConfig(
        critics=2,
        entropy_mode="next_state",
        actor_entropy=True,
        learn_temperature=True,
        next_action="main",
        **NETWORK,
    ),
    exploration=ExplorationConfig(sample=True),
)
EVERYTHING = paying(
    BASE,
    TaskConfig(),
    dataclasses.replace(SMALL_MUSIC, gain="auto"),
    SMALL_SKILL,
    skills=3,
    agent=SacConfig(**NETWORK),
)
LEARNED_PRIOR = paying(
    BASE,
    dataclasses.replace(SMALL_SKILL, prior="learned", subtract_prior=True, state="next"),
    skills=4,
)
ALL = {"her": HER, "music": MUSIC, "sac": SAC, "soft": SOFT, "everything": EVERYTHING}
OPTIONS = {
    **{"env_id": PUSH, "cycles": 2, "updates": 3, "workers": 2, "rollouts": 2},
    **{"agent": {"hidden_sizes": (16, 16)}, "replay": {"batch_size": 16}},
    "evaluation": {"episodes": 4},
}
"""What `music_tf.train` takes for an epoch of 240 steps."""
TIMES = {"time/fps", "time/updates_per_second", "time/elapsed_s", "time/wall_s"}
"""Metrics that differ between two runs of the same numbers."""


def trainer_of(config=BASE, **changes):
    return build_trainer(dataclasses.replace(config, **changes), Communicator())


def go_on(done):  # what a run without signals answers after each cycle
    del done
    return False


def replay_state(trainer):  # copies of all filled replay rows, by worker and name
    return {
        worker: {name: array[: shard.size].copy() for name, array in shard.arrays.items()}
        for worker, shard in trainer.replay.shards.items()
    }


def assert_same_state(one, other):
    np.testing.assert_equal(other.shared(), one.shared())
    np.testing.assert_equal(*[each.of_workers(everything=True) for each in (other, one)])


def saved(trainer):  # what a checkpoint of it holds, after the way through JSON
    rows = trainer.of_workers()
    arrays = {name: np.copy(array) for name, array in trainer.shared().items()}
    return arrays, json.loads(json.dumps(trainer.meta())), rows


def restored(config, state, **changes):
    arrays, meta, rows = state
    trainer = trainer_of(config, **changes)
    trainer.load(arrays, meta)
    trainer.load_workers({worker: [new] for worker, new in rows.items()})
    return trainer
