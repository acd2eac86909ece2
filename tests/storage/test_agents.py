"""Agents that come with the package: found by name, and as good as what is written of them."""

import dataclasses
import json
import shlex
from statistics import fmean

import numpy as np
import pytest

import music_tf
from music_tf.cli import run_verb
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.reading.stored import read_run
from music_tf.runs.evaluation_file import brake_distance
from music_tf.runs.loaded_run import load_run
from music_tf.runs.zero_shot import guide_to_goals, reached_states, reaching
from music_tf.storage.results import read_result
from music_tf.storage.run_paths import AGENTS, agents, find_agent
from tests.kit.saved_run import save_run
from tests.kit.sources import ROOT

pytestmark = pytest.mark.thorough

OF_MUSIC = ("pick", "push", "push_sac")
WITH_SKILLS = ("ant", "hopper")
ONE_BY_ONE = ("cheetah",)
ADAPTING = {"cheetah_ways": 100.0, "point": 2.0}
"""How far the mean return of four visits to a task may lie from that of all 20."""
REACHING = ("reach_pick", "reach_push")
NAMES = tuple(sorted((*OF_MUSIC, *WITH_SKILLS, *ONE_BY_ONE, *ADAPTING, *REACHING)))
EPISODES = 20
TOLERANCES = {
    "eval/object_moved_rate": {"abs": 0.15},
    "eval/object_on_support_rate": {"abs": 0.2},
    "eval/object_comotion_m": {"rel": 0.25},
    "eval/object_lift_rate": {"abs": 0.25},
}
"""How far the mean of the first 20 evaluation episodes may lie from that of all 100."""
ABOUT = {"does", "command", "seed", "commit", "versions", "machine", "published", "evaluation"}


def published(name):
    return agents()[name]["evaluation"]["policies"]["ours"]


def of_skills(name, metric):
    return [skill[metric] for skill in agents()[name]["evaluation"]["skills"]]


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    """A current folder of its own, and variables that verbs would leave set."""
    monkeypatch.chdir(tmp_path)
    for variable in ("OMP_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"):
        monkeypatch.setenv(variable, "1")
    return tmp_path


@pytest.mark.parametrize("name", WITH_SKILLS)
def test_its_skills_do_in_a_few_episodes_what_is_published_of_each(name, in_a_folder):
    assert run_verb(["skills", name, "--episodes", "4", "--only", *"01234"]) == 0
    written = in_a_folder / f"runs/{name}_skills_only_0_1_2_3_4.json"
    found = json.loads(written.read_text())
    diverse, paid = of_skills(name, "skill/diversity_return"), of_skills(name, "eval/return")
    assert found["skills"] == len(diverse)
    few = {m: [one[m] for one in found["each"]] for m in ("diversity_return", "return")}
    assert fmean(few["diversity_return"]) == pytest.approx(fmean(diverse[:5]), rel=0.3)
    assert fmean(few["return"]) == pytest.approx(fmean(paid[:5]), rel=0.3)
    assert np.corrcoef(few["return"], paid[:5])[0, 1] > 0.6  # single ones differ much
    assert written.with_suffix(".png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_its_skills_lie_as_far_apart_as_is_published(name, in_a_folder):
    assert run_verb(["skills", name, "--episodes", "3"]) == 0
    found = json.loads((in_a_folder / f"runs/{name}_skills.json").read_text())
    paid = of_skills(name, "eval/return")
    distances = np.array(found["hausdorff"])[np.triu_indices(len(paid), 1)]
    published = read_result(ROOT / agents()[name]["published"]).columns
    assert distances.mean() == pytest.approx(published["skill/hausdorff_mean"][-1], rel=0.25)
    assert [skill["return"] for skill in found["each"]] == pytest.approx(paid, rel=0.3, abs=60.0)


@pytest.mark.parametrize("name", OF_MUSIC)
def test_it_does_in_a_few_episodes_what_its_stored_evaluation_says(name):
    loaded = load_run(find_agent(name), environments=EPISODES)
    played = loaded.evaluation.play(loaded.policy, EPISODES)
    found = loaded.evaluation.behaviour(played)
    total, weights = loaded.learned["scales/music"]  # mean over steps of 100 episodes
    raw = loaded.networks.raw("music", played) * total / weights / 15.0  # gain times reward
    loaded.envs.close()
    assert np.maximum(raw, 0.0).mean() == pytest.approx(total / weights, rel=0.2)
    shown = {
        metric: pytest.approx(published(name)[metric], **within)
        for metric, within in TOLERANCES.items()
    }
    assert {metric: found[metric] for metric in TOLERANCES} == shown


@pytest.mark.parametrize("name", ADAPTING)
def test_it_adapts_in_a_few_visits_as_its_stored_evaluation_says(name):
    loaded = load_run(find_agent(name), environments=EPISODES)
    found = loaded.adaptation.by_episode(loaded.adaptation.play(loaded.agent, "test", 4))
    loaded.envs.close()
    for metric in ("adapt/return_prior", "adapt/return_2", "adapt/return_last"):
        assert found[metric] == pytest.approx(published(name)[metric], abs=ADAPTING[name])


@pytest.mark.parametrize("name", REACHING)
def test_it_goes_where_it_is_told_as_often_as_its_stored_evaluation_says(name):
    loaded = load_run(find_agent(name), environments=EPISODES)
    leads = guide_to_goals(loaded)
    shown, policy = reaching(loaded.evaluation, loaded.saved.snapshot, leads, name)
    stored = agents()[name]["evaluation"]["zero_shot"]["ours"]
    assert brake_distance(loaded) == stored["zero_shot/stop"]
    stopping = dataclasses.replace(policy, stop=stored["zero_shot/stop"])
    reached = reached_states(shown, shown.play(stopping, EPISODES))
    loaded.envs.close()
    assert reached[:, -1].mean() == pytest.approx(stored["zero_shot/end_with_brake"], abs=0.25)


@pytest.mark.parametrize("name", NAMES)
def test_what_made_it_is_written_beside_it_as_it_was_published(name):
    about = agents()[name]
    assert about.keys() - {"note"} == ABOUT
    verb, *words = shlex.split(about["command"])[1:]
    stored, asked = read_run(AGENTS / name), parse_train(words)
    assert (verb, stored.recipe, stored.arguments) == ("train", asked.recipe, tuple(words))
    assert stored.config.seed == asked.config.seed == about["seed"]
    assert stored.config.env_id == asked.config.env_id
    result = read_result(ROOT / about["published"])
    assert about["evaluation"]["episodes"] == (20 if name in ADAPTING else 100)
    assert about["evaluation"]["policies"] == result.details["final_100_episodes"]
    skills = [skill["metrics"] for skill in result.details.get("skills", [])]
    several = name in (*WITH_SKILLS, *ONE_BY_ONE)
    assert about["evaluation"].get("skills", []) == (skills if several else [])
    assert about["evaluation"].get("zero_shot") == result.details.get("zero_shot")
    header = (ROOT / about["published"]).read_text(encoding="utf-8")
    assert about["command"] in header
    assert about["commit"] in header
    for package, version in about["versions"].items():
        assert version == "unknown" or f"{package} {version}" in header


def test_a_page_lists_them():
    page = (ROOT / "docs/viewing.md").read_text(encoding="utf-8")
    assert tuple(agents()) == NAMES
    assert [name for name in NAMES if f"\n| `{name}` | " not in page] == []


def test_agents_are_small_and_loaded_by_name_and_each_of_their_skills_acts_by_itself():
    assert sum(path.stat().st_size for path in AGENTS.rglob("*")) < 25e6
    policy = music_tf.load_policy("cheetah")
    acted = np.array([policy.act(np.zeros(17), skill=skill) for skill in range(policy.skills)])
    assert (acted.shape, len(np.unique(acted.round(3), axis=0))) == ((4, 6), 4)
    policy = music_tf.load_policy("pick")
    assert (policy.recipe, policy.env_id) == ("ddpg_music", "FetchPickAndPlace-v4")
    assert (policy.env_steps, policy.observation_dim, policy.goal_dim) == (160_000, 25, 3)
    assert abs(policy.act([0.0] * 25)).max() <= 1.0


def test_a_path_wins_over_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_agent("push") == AGENTS / "push"
    save_run(tmp_path / "push")
    assert music_tf.load_policy("push").env_id == "music_tf/PointPush-v0"
    (tmp_path / "pick").mkdir()
    listed = f"agents that come with the package: {', '.join(NAMES)}"
    for typed, told in (
        ("pick", "the path pick wins over the agent of that name"),
        ("pusch", "did you mean push?"),
        ("Ant", "did you mean ant?"),
    ):
        with pytest.raises(UsageError, match=rf"config\.json, got '{typed}'\n") as refused:
            find_agent(typed)
        assert str(refused.value).splitlines()[-2:] == [listed, told]


def test_what_is_found_out_about_one_goes_under_the_root(in_a_folder, capsys):
    before = sorted(AGENTS.rglob("*"))
    assert run_verb(["evaluate", "push", "--episodes", "2"]) == 0
    assert "older version" not in capsys.readouterr().err
    written = json.loads((in_a_folder / "runs/push_evaluation.json").read_text())
    assert (written["recipe"], written["episodes"]) == ("ddpg_music", 2)
    assert sorted(AGENTS.rglob("*")) == before
