import dataclasses

import numpy as np
import pytest

import music_tf
from music_tf.config.conditioning import ConditionConfig
from music_tf.config.terms import TaskConfig
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.reading.stored import read_run
from music_tf.runs.loaded_run import load_run
from music_tf.storage.loading import load_policy
from music_tf.training.evaluation import Evaluation
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
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
    ("env_id", "skills", "text"),
    (ENV_ID, 4, "expected a run with 4 skills, .* is sac_diayn with 3 as one_hot"),
    ("music_tf/PointReach-v0", 3, "acts on 8 columns with 3 numbers, .* has 3 and 2"),
)
def test_skills_that_cannot_be_tried_are_refused(tmp_path, env_id, skills, text):
    save_run(tmp_path, "sac_diayn", skills=3)
    with pytest.raises(UsageError, match=text):
        try_skills(small_config("sac_finetune_skill", env_id, skills=skills), tmp_path, 1)


def test_a_best_skill_of_networks_that_do_not_fit_leaves_no_run(tmp_path):
    save_run(tmp_path, "sac_diayn", skills=3)
    begun = {"run_dir": tmp_path / "tuned", "init_from": tmp_path, "best_of": 1, "env_id": ENV_ID}
    with pytest.raises(UsageError, match=r"--parts actor: .* does not fit"):
        music_tf.train("sac_finetune_skill", skills=3, agent={"hidden_sizes": (9,)}, **begun)
    assert not (tmp_path / "tuned").exists()


def test_a_run_without_skills_names_what_trains_some(tmp_path):
    save_run(tmp_path, "ddpg_her")
    with pytest.raises(UsageError, match=r"skills to try, .* with 1 as one_hot\n") as fault:
        try_skills(small_config("sac_finetune_skill", skills=3), tmp_path, 1)
    assert str(fault.value).endswith(f"first: music-tf train sac_diayn --env-id {ENV_ID}")


@pytest.mark.thorough
@pytest.mark.parametrize("preset", ["laptop", "paper"])
def test_without_goals_the_best_skill_goes_on_from_its_networks(tmp_path, preset):
    short = {"env_id": BOX, "skills": 3, "cycles": 2, "epochs": 1}
    short |= {"collect": {"random_steps": 50, "steps": 50}, "updates": 2, "preset": preset}
    first = music_tf.train("sac_diayn", run_dir=tmp_path / "skills", **short)
    short["collect"] = {"steps": 50}
    tuned = music_tf.train(
        "sac_finetune_skill", run_dir=tmp_path / "best", init_from=first.path, best_of=2, **short
    )
    config = read_run(tuned.path).config
    assert config.pinned_skill in range(3)
    assert ([*config.rewards], config.collect.random_steps) == (["task"], 0)


@pytest.mark.thorough
@pytest.mark.parametrize("recipe", ["sac_finetune_skill", "sac_diayn_finetune"])
def test_without_goals_there_are_as_many_skills_as_before_unless_some_are_typed(tmp_path, recipe):
    first, tuned = tmp_path / "skills", tmp_path / "tuned"
    short = {"env_id": BOX, "cycles": 1, "epochs": 1, "updates": 1, "collect": {"steps": 50}}
    sizes = {"agent": {"hidden_sizes": (8, 8)}, "evaluation": {"episodes": 3}}
    music_tf.train("sac_diayn", run_dir=first, skills=3, **short, **sizes)
    other = {"best_of": 1} if recipe == "sac_finetune_skill" else {}
    run = music_tf.train(recipe, run_dir=tuned, init_from=first, **short, **sizes, **other)
    config = read_run(tuned).config
    assert config.skills == run.policy().skills == 3
    assert config.pinned_skill in range(3)
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


def test_skills_are_tried_in_an_environment_of_the_user_s_that_is_typed(tmp_path):
    trainer = save_run(tmp_path, "sac_diayn", env_id=COUNTING, skills=3)
    ours = dataclasses.replace(trainer.config, rewards={"task": TaskConfig()}, skills=5)
    again = followed(ours, tmp_path)
    assert again.skills == 3
    best, _ = try_skills(again, tmp_path, 1)
    assert best in range(3)


@pytest.mark.thorough
def test_fine_tuning_pins_the_best_skill_unless_the_user_does(tmp_path, capsys):
    small = {"env_id": ENV_ID, "workers": 1, "rollouts": 2, "cycles": 1, "updates": 1, "epochs": 1}
    small |= {"agent": {"hidden_sizes": (8, 8)}, "evaluation": {"episodes": 2}, "skills": 3}
    first = music_tf.train("sac_diayn", run_dir=tmp_path / "skills", **small)
    capsys.readouterr()
    tuned = music_tf.train(
        "sac_finetune_skill", run_dir=tmp_path / "best", init_from=first.path, best_of=2, **small
    )
    best = read_run(tuned.path).config.pinned_skill
    assert f"skill {best} is best at the task; mean returns: " in capsys.readouterr().out
    assert tuned.policy().act(np.zeros(8), goal=np.zeros(3)).shape == (3,)
    tuned.resume(epochs=2)
    other = music_tf.train(
        "sac_finetune_skill",
        run_dir=tmp_path / "own",
        init_from=first.path,
        pinned_skill=1,
        **small,
    )
    assert read_run(other.path).config.pinned_skill == 1
    for words, text in (
        ({"best_of": 2}, "--best-of: needs --init-from RUN"),
        ({"best_of": 2, "pinned_skill": 1, "init_from": first.path}, "pinned_skill is 1; leave"),
    ):
        recipe = "sac_finetune_skill" if "init_from" in words else "sac"
        with pytest.raises(UsageError, match=text):
            music_tf.train(recipe, run_dir=tmp_path / "none", **small, **words)
