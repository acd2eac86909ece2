import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from music_tf import recipes
from music_tf.errors import UsageError
from music_tf.intrinsic.joint_motion import JointMotion
from music_tf.recipes.controls import JointMotionConfig
from music_tf.types import SplitSpec
from tests.kit.small import MUSIC, go_on, paying, trainer_of
from tests.kit.terms import context, transitions

SPLIT = SplitSpec(agent=(0, 1, 2), surrounding=(3, 4, 5))
RUN = paying(MUSIC, JointMotionConfig())


def rewards_of(steps, **settings):  # mixed rewards of steps [B, 6] in metres, gripper then object
    term = JointMotion(JointMotionConfig(**settings), context(SPLIT))
    before = np.full([1, len(steps), 25], 0.5, np.float32)
    after = before.copy()
    after[0, :, :6] += np.array(steps, np.float32)
    batch = transitions(before, after)
    return term.mixing(term.reward({}, batch, {}), tf.constant(1.0)).numpy()[0].tolist()


STEPS = [
    (0.002, 0, 0, 0, 0.002, 0),  # both by 2 mm
    (0.002, 0, 0, 0, 0, 0),  # the gripper alone
    (0, 0, 0, 0.002, 0, 0),  # the object alone
    (0.0008, 0.0008, 0, 0, -0.0008, 0.0008),  # both by 1.13 mm, in two directions at once
    (0.0008, 0, 0, 0.0008, 0, 0),  # both by 0.8 mm
    (0, 0, 0, 0, 0, 0),
]


def test_it_pays_where_both_moved_more_than_a_threshold():
    assert rewards_of(STEPS) == [0.0, -1.0, -1.0, 0.0, -1.0, -1.0]
    assert rewards_of(STEPS, shift=0.0, threshold=0.0005) == [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]


@pytest.mark.thorough
def test_a_run_learns_from_it_and_trains_nothing_but_the_agent():
    trainer = trainer_of(RUN)
    metrics = trainer.run_epoch(go_on)
    assert {name.split("/")[0] for name in trainer.update.layout.names} == {"actor", "critic_0"}
    assert -1.0 <= metrics["reward/joint_motion_mean"] <= 0.0
    assert metrics["reward/joint_motion_max"] in (-1.0, 0.0)
    assert trainer.counters.updates == 6


@pytest.mark.parametrize("preset", recipes.PRESETS)
def test_the_recipe_differs_from_music_by_its_reward_alone(preset):
    ours, music = (recipes.resolve(name, preset) for name in ("ddpg_joint_motion", "ddpg_music"))
    assert ours.rewards["joint_motion"].shift == music.rewards["music"].shift
    assert dataclasses.replace(ours, rewards=music.rewards) == music


def test_without_a_split_it_is_said_what_is_missing_and_what_proposes_it():
    with pytest.raises(UsageError, match=r"expected --world.agent COLUMNS --world.surr") as raised:
        context().split()
    assert "music-tf check-env made-up proposes them if it finds" in str(raised.value)
    assert not re.search(r"--world\.\w+ \d", str(raised.value))
