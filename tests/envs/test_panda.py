"""panda-gym's tasks are stepped really, and train with columns that are typed: no registry."""

import math

import numpy as np
import pytest

from music_tf.config.command import parse_train
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.training.build import build_trainer

pytest.importorskip("panda_gym", reason="the extra 'panda' is not installed")

OBJECT = {"Push": (6, 7, 8), "Slide": (6, 7, 8), "PickAndPlace": (7, 8, 9)}
GRIPPER = (0, 1, 2)
SMALL = """
--workers 1 --rollouts 2 --cycles 2 --updates 2 --replay.batch-size 16 --evaluation.episodes 2
--agent.hidden-sizes 16 16
"""


def env_id(task):
    return f"panda_gym:Panda{task}-v3"


@pytest.mark.parametrize("task", OBJECT)
def test_the_columns_of_the_page_are_gripper_and_object(task):
    envs = LockstepEnvs(env_id(task), 2)
    started = envs.reset([0, 1], [3, 4], None)
    np.testing.assert_allclose(
        started.observation[:, OBJECT[task]], started.achieved_goal, atol=1e-6
    )
    down = np.zeros([2, envs.spec.action_dim], np.float32)
    down[:, 2] = 1.0
    moved = envs.step(down, [0, 1]).observation - started.observation
    envs.close()
    assert (moved[:, GRIPPER[2]] > 0.01).all()
    assert np.abs(moved[:, OBJECT[task][:2]]).max() < 1e-3  # it may fall on the table


@pytest.mark.parametrize(
    ("recipe", "task"),
    [("ddpg_music", "Push"), ("ddpg_her", "Slide"), ("sac_music_skills", "PickAndPlace")],
)
def test_a_recipe_trains_on_it(recipe, task):
    words = [recipe, "--env-id", env_id(task), *SMALL.split()]
    if recipe == "ddpg_her":
        words += ["--task.clip", "-1", "0"]  # what a step of a sparse task pays
    else:
        words += ["--music.trajectories", "2", "--world.agent", *map(str, GRIPPER)]
        words += ["--world.surrounding", *map(str, OBJECT[task])]
    trainer = build_trainer(parse_train(words).config, Communicator())
    metrics = trainer.run_epoch(lambda _: False)
    assert metrics["time/env_steps"] > 0
    assert math.isfinite(metrics["train/critic_loss"])
    learned = "music/bound" if "music" in recipe else "eval/success_rate"
    assert math.isfinite(metrics[learned])
