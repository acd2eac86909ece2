"""Hindsight relabelling after some epochs of MUSIC: learns FetchPush and PickAndPlace in minutes.

A policy that has never moved the object learns little from hindsight: all it sees are goals that
were reached by doing nothing. So the first epochs are paid by the mutual information between
robot and object (MUSIC, arXiv:2103.08107), which moves it within one to five epochs; then the
weights pass linearly to the task's own reward. Goals are relabelled in hindsight
(arXiv:1707.01495) all along. It is one run with one replay buffer, so that its time counts the
pre-training. Once its weight is zero for good, the statistics network is neither trained nor
computed. On FetchReach there is no object to move, and no such phase. `laptop` takes 40 updates a
cycle, 80 on FetchPush. All else is as in `ddpg_her`.
"""

import dataclasses

from music_tf.config.fields import with_fields
from music_tf.config.settings import Config
from music_tf.recipes import ddpg_her, ddpg_music


def _handover(first: float, last: float) -> dict[str, object]:
    """Passes from MUSIC to the task between two epochs."""
    return {
        "task.weight": ((0.0, 0.0), (first, 0.0), (last, 1.0)),
        "music.weight": ((0.0, 1.0), (first, 1.0), (last, 0.0)),
    }


def _fast(config: Config) -> Config:
    both = dataclasses.replace(config, rewards=("task", "music"), music=ddpg_music.LAPTOP.music)
    return with_fields(both, _handover(5.0, 10.0))


CONFIG = _fast(ddpg_her.CONFIG)
LAPTOP = dataclasses.replace(_fast(ddpg_her.LAPTOP), epochs=40, updates=40)
PER_ENVIRONMENT = {
    "FetchReach-v4": {"rewards": ("task",), "task.weight": ((0.0, 1.0),), "cycles": 10},
    "FetchPush-v4": {"music.gain": 1000.0, **_handover(5.0, 8.0)},
    "FetchPickAndPlace-v4": _handover(15.0, 20.0),
    "FetchSlide-v4": {"music.gain": 1000.0, **_handover(3.0, 10.0)},
}
LAPTOP_PER_ENVIRONMENT = {
    "FetchReach-v4": {"epochs": 10},
    "FetchPush-v4": {"epochs": 30, "updates": 80},
    "FetchPickAndPlace-v4": {"epochs": 60},
    "FetchSlide-v4": {"epochs": 150},
}
