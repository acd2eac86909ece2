import dataclasses

import numpy as np
import pytest

import music_tf
from music_tf.config.conditioning import ConditionConfig
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.reading.stored import read_run
from music_tf.runs.loaded_run import load_run
from music_tf.storage.loading import load_policy
from music_tf.training.evaluation import Evaluation
from tests.kit.cases import cases
from tests.kit.saved_run import ENV_ID, save_run, small_config, write_config
from tests.kit.warm import followed, try_skills

BOX = "music_tf/UnitBox-v0"
CONTINUOUS = {"condition": ConditionConfig(kind="sphere", size=3), "skills": 1}


def test_the_best_skill_is_the_one_with_the_highest_return_in_the_task(tmp_path):
    save_run(tmp_path, "sac_diayn", skills=3)
    config = small_config("sac_finetune_skill", skills=3)
    best, returns = try_skills(config, tmp_path, 3)
    assert (best, len(returns)) == (int(np.argmax(returns)), 3)
    loaded = load_run(tmp_path)
    evaluation = Evaluation(loaded.envs, config, Communicator(alone=True))
    policy = load_policy(tmp_path)

    def act(observation, goal, skill, noise):
        return policy.act(observation, np.zeros(3), skill.argmax(axis=-1))

    expected = [evaluation.play(act, 3, skill).reward.sum(axis=1).mean() for skill in range(3)]
    loaded.envs.close()
    np.testing.assert_allclose(returns, expected)


@cases(
    ("source", "env_id", "skills", "text"),
    (3, ENV_ID, 4, "expected a run with 4 skills, .* is sac_diayn with 3 as one_hot"),
    (3, "music_tf/PointReach-v0", 3, "observation: trained with 8 numbers, now 3"),
    (1, ENV_ID, 3, "with 3 skills, .* with 1 as one_hot\nfirst: music-tf train sac_diayn --env-id"),
)
def test_skills_that_cannot_be_tried_are_refused(tmp_path, source, env_id, skills, text):
    save_run(tmp_path, "sac_diayn" if source > 1 else "ddpg_her", skills=source)
    with pytest.raises(UsageError, match=text):
        try_skills(small_config("sac_finetune_skill", env_id, skills=skills), tmp_path, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("recipe", ["sac_finetune_skill", "sac_diayn_finetune"])
def test_there_are_as_many_skills_as_before_unless_some_are_typed(tmp_path, recipe, capsys):
    first, tuned = tmp_path / "skills", tmp_path / "tuned"
    short = {"env_id": BOX, "cycles": 1, "epochs": 1, "updates": 1, "collect": {"steps": 50}}
    sizes = {"agent": {"hidden_sizes": (8, 8)}, "evaluation": {"episodes": 3}}
    music_tf.train("sac_diayn", run_dir=first, skills=3, **short, **sizes)
    other = {"best_of": 1} if recipe == "sac_finetune_skill" else {}
    run = music_tf.train(recipe, run_dir=tuned, init_from=first, **short, **sizes, **other)
    config = read_run(tuned).config
    assert config.skills == run.policy().skills == 3
    shown = f"skill {config.pinned_skill} is best at the task; mean returns: "
    assert (shown in capsys.readouterr().out) == bool(other)
    run.resume(epochs=2)
    assert read_run(tuned).config == dataclasses.replace(config, epochs=2)
    text = "expected a run with 4 skills" if other else "actor/hidden_0/kernel does not fit"
    with pytest.raises(UsageError, match=text):
        music_tf.train(recipe, run_dir=tmp_path / "none", init_from=first, skills=4, **short)
    with pytest.raises(UsageError, match=r"expected a number in \[0, 2\], got 7"):
        music_tf.train(recipe, run_dir=tmp_path / "none", init_from=first, pinned_skill=7, **short)
    assert not (tmp_path / "none").exists()


@cases(("before", "skills"), ({"skills": 3}, 3), ({"skills": 1}, 5), (CONTINUOUS, 5), ({}, 5))
def test_a_run_follows_another_one_that_says_how_many_skills_it_has(tmp_path, before, skills):
    ours = small_config("sac_finetune_skill", skills=5)
    if before:
        write_config(tmp_path, small_config("ddpg_her", **before), "ddpg_her")
    assert followed(ours, tmp_path) == dataclasses.replace(ours, skills=skills)
