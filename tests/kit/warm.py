"""Warm starts of a moment's trainer."""

import dataclasses
from typing import NamedTuple

from music_tf.config.warm_start import WarmStart
from music_tf.distributed import Communicator
from music_tf.reading.stored import read_run
from music_tf.runs.warm_start import best_skill, read_parts, take_over, with_skills_of
from music_tf.storage.loading import policy_of
from music_tf.training.build import build_trainer


class Tried(NamedTuple):
    arrays: dict
    record: dict


def try_warm_start(config, source, parts):
    loaded = read_parts(config, source, parts)
    if config.agent.inference is None:
        replay = dataclasses.replace(config.replay, capacity=1)
        drawn = dataclasses.replace(config.condition, sampler="random")  # tiles need more episodes
        few = {"workers": 1, "rollouts": 1, "replay": replay, "condition": drawn}
        config = dataclasses.replace(config, **few)
    trainer = build_trainer(config, Communicator(alone=True))
    try:
        take_over(trainer, loaded)
        return Tried(trainer.shared(), loaded.record)
    finally:
        trainer.envs.close()


def try_skills(config, source, episodes):
    policy = policy_of(source, read_run(source, config.env_id))
    return best_skill(config, policy, WarmStart(str(source), (), best_of=episodes))


def followed(config, source):
    return with_skills_of(config, WarmStart(str(source), (), same_skills=True), source)
