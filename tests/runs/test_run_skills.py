import contextlib
import dataclasses
import json
import sys

import numpy as np
import pytest
import tensorflow as tf

from music_tf.cli import run_verb
from music_tf.errors import UsageError
from music_tf.measures.skills import Track, end_spreads, separation
from music_tf.recipes.skills import DadsConfig, SkillConfig
from music_tf.replay.buffer import all_transitions
from music_tf.runs import skills
from music_tf.runs.inspection import evaluate_run
from music_tf.runs.learned_rewards import LearnedRewards
from music_tf.runs.loaded_run import load_run
from music_tf.storage.loading import load_policy
from music_tf.tools.export import exporter
from tests.kit.cases import cases
from tests.kit.saved_run import save_run, write_config

BROKEN = "_broken_joint_3"
SKILL = {"skill": SkillConfig(hidden_sizes=(8,), state="next")}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("skills")
    save_run(path, "sac_diayn", skills=3, rewards=SKILL)
    return path


@pytest.fixture(scope="module")
def followed(run):
    loaded = load_run(run)
    with contextlib.closing(loaded.envs):
        return list(skills.play_each_skill(loaded, 2))


def test_each_skill_plays_the_same_episodes_and_is_named_as_the_run_names_it(run, followed):
    assert [one.skill for one in followed] == [0, 1, 2]
    policy = load_policy(run)
    for one in followed:
        steps = one.length.max()
        assert one.seen.shape == (2, 31, 3)
        assert one.named.sum() == pytest.approx(1.0)
        seen = np.zeros([steps, 8])
        seen[:, 3:6] = one.seen[0, 1 : steps + 1]
        found = policy.skill_log_likelihood(seen)
        paid = found[: one.length[0], one.skill] + np.log(3)
        assert one.diversity[0] == pytest.approx(paid.sum(), rel=1e-4)
        assert policy.nearest_skill(seen) == found.sum(axis=0).argmax()
    for states, text in (
        (np.zeros([3, 7]), r"shape \[8\] or"),
        (np.full([2, 8], np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=f"states: expected .*{text}"):
            policy.nearest_skill(states)


RIGHTWARDS = """
import numpy as np

def to_the_right(observation, action, next_observation):
    assert len(observation) == len(action) == len(next_observation)
    next_observation -= observation  # in a copy
    return next_observation[:, 0]

def one_number(observation, action, next_observation):
    return 1.0

def no_number(observation, action, next_observation):
    return np.full(len(action), np.nan)

def in_words(observation, action, next_observation):
    return ["far"] * len(action)

def raises(observation, action, next_observation):
    return observation[:, 10**6]
"""


def test_skills_are_judged_by_a_reward_of_the_users(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(RIGHTWARDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    words = ["skills", str(run), "--episodes", "2", "--reward"]
    assert run_verb([*words, "mine:to_the_right"]) == 0
    found = json.loads((run / "skills_mine_to_the_right.json").read_text())
    assert (run / "videos/skills_mine_to_the_right.png").stat().st_size
    loaded = load_run(run)
    ways = []
    for skill in range(3):
        played = loaded.evaluation.play(loaded.policy, 2, skill)
        ends = played.observation[np.arange(2), played.length, 0]
        ways.append(float((ends - played.observation[:, 0, 0]).mean()))
    loaded.envs.close()
    assert [one["return"] for one in found["each"]] == pytest.approx(ways, abs=1e-5)
    assert (found["best"], found["reward"]) == (int(np.argmax(ways)), "mine:to_the_right")
    assert f"best by mine:to_the_right: skill {found['best']}" in capsys.readouterr().out
    assert not (run / "skills.json").exists()


@cases(
    ("words", "told"),
    ("--reward upright", "--reward: expected module:function, got 'upright'"),
    ("--reward mine:to_the_rigth", r"in mine\ndid you mean to_the_right"),
    ("--reward mine:one_number", r"--reward: expected \d+ finite numbers for an episode"),
    ("--reward mine:no_number", r"finite numbers for an episode of \d+ steps, got non-finite"),
    ("--reward mine:in_words", "got .*far"),
    ("--reward mine:raises", r"--reward: fails on an episode of \d+ steps: IndexError: index 1000"),
    ("--only 3", "this run has 3 skills, expected 0 to 2, got 3"),
    ("--env.kwargs joint", "env.kwargs: expected text, a JSON object such as"),
    ('--env.kwargs {"joint":3}', "env.kwargs: music_tf/PointPush-v0 does not take"),
)
def test_what_cannot_be_judged_or_played_is_refused(run, tmp_path, monkeypatch, words, told):
    (tmp_path / "mine.py").write_text(RIGHTWARDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    with pytest.raises(UsageError, match=told):
        run_verb(["skills", str(run), "--episodes", "2", *words.split()])


@pytest.mark.parametrize("env_id", ["music_tf/PointPush-v0", "Pendulum-v1"])
def test_numpy_and_the_network_agree_on_what_an_episode_earned(tmp_path, env_id):
    reward = dataclasses.replace(SKILL["skill"], missing_descriptor="zeros")  # as of Pendulum
    save_run(tmp_path, "sac_diayn", env_id=env_id, skills=3, rewards={"skill": reward})
    loaded = load_run(tmp_path)
    played = loaded.evaluation.play(loaded.policy, 2, 1)
    expected = LearnedRewards(loaded.evaluation, loaded.learned).heldout(played, 1)
    described = skills.describe_episodes(loaded, played)
    loaded.envs.close()
    earned, likelihood = (
        expected[f"skill/{name}"] for name in ("diversity_return", "log_likelihood_heldout")
    )
    assert described.diversity.mean() == pytest.approx(earned, rel=1e-3, abs=1e-4)
    assert described.log_likelihood == pytest.approx(likelihood, rel=1e-4)
    named = load_policy(tmp_path).skill_log_likelihood(played.observation[0, 1:])
    np.testing.assert_array_equal(named, named[:1].repeat(len(named), axis=0))  # the disc rests


def test_the_diversity_return_of_dads_is_the_sum_of_what_it_pays(tmp_path):
    rewards = {"dads": DadsConfig(hidden_sizes=(8,), omit=0)}
    trainer = save_run(tmp_path, "sac_dads", skills=3, rewards=rewards)
    loaded = load_run(tmp_path)
    followed = list(skills.play_each_skill(loaded, 2))
    (term,) = trainer.terms
    for one in followed:
        played = loaded.evaluation.play(loaded.policy, 2, one.skill)
        steps = tf.nest.map_structure(tf.convert_to_tensor, all_transitions(played))
        paid = term.reward(trainer.update.weights(), steps, term.steady_feed(2)).numpy()
        counted = np.arange(paid.shape[1]) < one.length[:, None]
        np.testing.assert_allclose(one.diversity, (paid * counted).sum(axis=1), rtol=1e-5)
        np.testing.assert_array_equal(
            skills.skill_arrays(loaded, played)["skill/diversity_return"], one.diversity
        )
        assert one.named is None
    loaded.envs.close()
    found = skills.summarize_skills(followed)
    assert found["matrix"] is None
    assert found["each"][1]["diversity_return"] == pytest.approx(followed[1].diversity.mean())


def test_the_summary_of_skills(followed):
    found = skills.summarize_skills(followed)
    assert 1.0 <= found["effective"] <= 3.0
    likelihood = np.mean([one.log_likelihood for one in followed])
    assert found["recognised"] == pytest.approx(3 * np.exp(likelihood))
    assert np.shape(found["matrix"]) == np.shape(found["end_distances"]) == (3, 3)
    apart = separation([Track(each.seen, each.length) for each in followed])
    np.testing.assert_array_equal(found["hausdorff"], apart.hausdorff)
    assert found["coverage"] == apart.coverage
    assert 0.0 <= found["explained"] <= 1.0
    assert found["best"] == max(found["each"], key=lambda row: row["return"])["skill"]
    for one, row in zip(followed, found["each"], strict=True):
        assert row["spread"] == pytest.approx(end_spreads(one.ends[None])[0])
        assert row["best_return"] == one.returns.max() >= row["return"]


def test_one_episode_a_skill_says_nothing_of_spread(run, capsys):
    run_verb(["skills", str(run), "--episodes", "1"])
    found = json.loads((run / "skills.json").read_text())
    assert found["explained"] is None
    assert [row["return_std"] for row in found["each"]] == [None] * 3
    shown = capsys.readouterr().out
    assert "that skills explain" not in shown
    assert "deviation" not in shown
    assert np.shape(found["end_distances"]) == (3, 3)  # which one episode does show


def test_the_verb_writes_a_table_a_file_and_a_picture(run, capsys):
    (run / "skills.json").write_text("of all skills")
    assert run_verb(["skills", str(run), "--episodes", "2", "--only", "0", "2"]) == 0
    shown = capsys.readouterr().out
    for text in (
        "skill 2",
        "best return",
        "diversity",
        "effective number of skills exp(H)",
        "skills_only_0_2.png",
    ):
        assert text in shown
    assert "skill 1 " not in shown.replace("else as", "")[: shown.index("best by")].split("│")[1]
    assert (run / "skills.json").read_text() == "of all skills"  # where their ends are read
    (run / "skills.json").unlink()
    found = json.loads((run / "skills_only_0_2.json").read_text())
    assert (found["episodes"], found["skills"], len(found["each"])) == (2, 3, 2)
    assert (run / "videos" / "skills_only_0_2.png").read_bytes().startswith(b"\x89PNG")


def test_skills_without_a_discriminator_are_measured_without_a_matrix(tmp_path):
    save_run(tmp_path, skills=2)
    loaded = load_run(tmp_path)
    found = skills.summarize_skills(list(skills.play_each_skill(loaded, 2)))
    loaded.envs.close()
    assert (found["matrix"], found["effective"], found["recognised"]) == (None, None, None)
    assert np.shape(found["end_distances"]) == (2, 2)
    with pytest.raises(ValueError, match="has no discriminator; expected a run with"):
        load_policy(tmp_path).nearest_skill(np.zeros([4, 8]))


def test_exported_episodes_have_returns_and_descriptors_by_skill(run, tmp_path):
    evaluate_run(load_run(run), 4, export=exporter(tmp_path / "a.npz", None), shown=False)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        arrays = dict(file)
    assert arrays["skill"].tolist() == [0, 1, 2, 0]
    assert arrays["skill/descriptor"].shape == (30, 4, 3)
    np.testing.assert_array_equal(arrays["skill/return"], arrays["reward"].sum(axis=1))
    found = load_policy(run).skill_log_likelihood(arrays["observation"][1, 1:])
    paid = found[: arrays["length"][1], 1] + np.log(3)
    assert arrays["skill/diversity_return"][1] == pytest.approx(paid.sum(), rel=1e-3)
    np.testing.assert_array_equal(arrays["skill/kept"], np.arange(30)[:, None] < arrays["length"])


@pytest.mark.thorough
def test_a_run_is_measured_under_other_arguments_of_its_environment(tmp_path, capsys):
    save_run(tmp_path, "sac_diayn", env_id="music_tf/HalfCheetah-v0", skills=2, rewards=SKILL)
    config = (tmp_path / "config.json").read_bytes()
    other = ["--env.kwargs", '{"broken_joint": 3}']
    short = ["--episodes", "2"]
    assert run_verb(["skills", str(tmp_path), *short]) == 0
    assert run_verb(["skills", str(tmp_path), *short, *other]) == 0
    found = [json.loads((tmp_path / f"skills{n}.json").read_text()) for n in ("", BROKEN)]
    assert [one["env_kwargs"] for one in found] == [{}, {"broken_joint": 3}]
    returns = [[row["return"] for row in one["each"]] for one in found]
    assert returns[0] != returns[1]
    assert (tmp_path / "videos" / f"skills{BROKEN}.png").exists()
    assert "music_tf/HalfCheetah-v0, broken_joint 3, seed" in capsys.readouterr().out
    assert (tmp_path / "config.json").read_bytes() == config


@cases("changes", {}, {"skills": 3, "pinned_skill": 1})
def test_a_run_without_skills_or_with_a_pinned_one_is_refused(tmp_path, changes):
    save_run(tmp_path, **changes)
    told = (
        r"several skills, \S+ acts with one\nagents with several: ant, cheetah, hopper; .*sac_diayn"
    )
    with pytest.raises(UsageError, match=told):
        run_verb(["skills", str(tmp_path)])


def test_a_skill_may_be_one_hot(run):
    policy = load_policy(run)
    state = np.linspace(-1.0, 1.0, 8)
    for skill in range(3):
        expected = policy.act(state, skill=skill)
        np.testing.assert_array_equal(policy.act(state, skill=np.eye(3)[skill]), expected)
    both = policy.act([state, state], skill=np.eye(3)[[2, 0]])
    np.testing.assert_array_equal(both, policy.act([state, state], skill=[2, 0]))
    with pytest.raises(ValueError, match="expected one-hot vectors"):
        policy.act(state, skill=[0.5, 0.5, 0.0])


def test_a_discriminator_of_other_sizes_keeps_no_policy_from_acting(tmp_path):
    trainer = save_run(tmp_path, "sac_diayn", skills=3, rewards=SKILL)
    larger = {"skill": SkillConfig(hidden_sizes=(16,), state="next")}
    write_config(tmp_path, dataclasses.replace(trainer.config, rewards=larger), "sac_diayn")
    policy = load_policy(tmp_path)
    assert policy.act(np.zeros(8), skill=1).shape == (3,)
    with pytest.raises(ValueError, match=r"hidden_0/kernel: expected \(3, 16\), found \(3, 8\)"):
        policy.nearest_skill(np.zeros([4, 8]))
