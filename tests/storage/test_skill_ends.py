"""Skills that end nearest to a place; `music-tf skills` has written where they end."""

import json

import numpy as np
import pytest

from music_tf.errors import UsageError
from music_tf.runs import inspection
from music_tf.runs.inspection import ExtraMeasures, evaluate_run
from music_tf.runs.loaded_run import load_run
from music_tf.runs.zero_shot import guide_to_goals
from music_tf.storage.loading import load_policy
from tests.kit.cases import cases
from tests.kit.saved_run import save_run

OBSERVATION = np.linspace(-1.0, 1.0, 8, dtype=np.float32)
PLACES = [[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]
NOW = {"epoch": 1, "env_steps": 100}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three skills on the disc; where they end is written anew by each test."""
    folder = tmp_path_factory.mktemp("skilled")
    save_run(folder, "sac_diayn", skills=3).envs.close()
    return folder


def note(run, ends=PLACES, checkpoint=NOW, **other):
    each = [{"skill": skill, "end": end} for skill, end in enumerate(ends)]
    (run / "skills.json").write_text(json.dumps({"checkpoint": checkpoint, "each": each} | other))


def refused(run):
    with pytest.raises(ValueError, match="reach: ") as found:
        load_policy(run).act(OBSERVATION, reach=[0.0, 0.0, 0.0])
    assert str(found.value).endswith(f"music-tf skills {run}")
    return str(found.value)


def test_the_skill_that_ends_nearest_to_a_place_acts(run):
    note(run)
    policy = load_policy(run)
    for skill, place in enumerate([[0.4, 0.1, 0.0], [-9.0, 1.0, 0.0], [0.2, 0.4, 0.0]]):
        expected = policy.act(OBSERVATION, skill=skill)
        np.testing.assert_array_equal(policy.act(OBSERVATION, reach=place), expected)
    both = policy.act([OBSERVATION] * 2, reach=[PLACES[2], PLACES[0]])
    np.testing.assert_array_equal(both, policy.act([OBSERVATION] * 2, skill=[2, 0]))
    with pytest.raises(ValueError, match=r"reach: expected numbers of shape \[3\]"):
        policy.act(OBSERVATION, reach=[0.1, 0.2])
    with pytest.raises(ValueError, match=r"goal: sac_diayn .*, or reach="):
        policy.act(OBSERVATION, goal=[0.1, 0.2, 0.0])


def test_without_a_measurement_of_this_checkpoint_a_place_is_refused_with_what_makes_one(run):
    (run / "skills.json").unlink(missing_ok=True)
    assert "nothing has measured where its skills end" in refused(run)
    note(run, checkpoint={"epoch": 3, "env_steps": 300})
    assert "is of another checkpoint, expected {'epoch': 1, 'env_steps': 100}" in refused(run)
    (run / "skills.json").write_text("{")
    assert "cannot be read" in refused(run)


@cases(
    "ends",
    [*PLACES[:2], [0.0, 0.5]],
    PLACES[:2],
    [*PLACES[:2], ["0", "1", "2"]],
    [*PLACES[:2], [True, 0.0, 0.0]],
    [*PLACES[:2], [1e39, 0.0, 0.0]],
    [[], [], []],
)
def test_ends_that_are_not_there_are_not_made_up(run, ends):
    note(run, ends)
    assert "does not hold an end of each of 3 skills" in refused(run)
    note(run, each=[{"skill": [skill], "end": [0.0, 0.0, 0.0]} for skill in range(3)])
    assert "does not hold an end of each of 3 skills" in refused(run)


def test_ends_of_an_agent_of_the_package_lie_under_the_root_of_all_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    policy = load_policy("cheetah")
    with pytest.raises(ValueError, match=r"nothing has measured (.|\n)*music-tf skills .*cheetah"):
        policy.act(np.zeros(17), reach=[1.0])
    (tmp_path / "runs").mkdir()
    checkpoint = {"epoch": policy.epoch, "env_steps": policy.env_steps}
    note(tmp_path, [[-30.0], [-2.0], [2.0], [30.0]], checkpoint)
    (tmp_path / "skills.json").rename(tmp_path / "runs/cheetah_skills.json")
    found = load_policy("cheetah").act(np.ones(17), reach=[25.0])
    np.testing.assert_array_equal(found, policy.act(np.ones(17), skill=3))


def test_goals_are_led_to_by_the_columns_that_tell_skills_apart(run):
    note(run)
    leads = guide_to_goals(load_run(run, environments=1))
    assert leads.columns == (3, 4, 5)
    np.testing.assert_array_equal(leads.points, np.float32(PLACES))
    assert leads.distance(np.float32([1.0, 0.0, 0.0]), np.float32([1.0, 3.0, 4.0])) == 5.0
    note(run, [[0.0], [1.0], [2.0]])
    other = load_run(run, environments=1)
    with pytest.raises(UsageError, match=r"--zero-shot: .* no column of the observation holds"):
        guide_to_goals(other)


def test_a_run_that_was_trained_on_goals_is_told_how_to_hide_them(tmp_path):
    save_run(tmp_path, "sac_diayn", skills=3, goals="environment").envs.close()
    note(tmp_path)
    with pytest.raises(UsageError, match=r"--zero-shot: .* none of .* new, expected --goals zero"):
        guide_to_goals(load_run(tmp_path, environments=1))


def test_an_environment_without_goals_is_refused_before_skills_are_measured(tmp_path):
    save_run(tmp_path, "sac_diayn", env_id="music_tf/UnitBox-v0", skills=3).envs.close()
    with pytest.raises(UsageError, match=r"--zero-shot: .*UnitBox-v0 has none\n.* --reach X Y"):
        evaluate_run(load_run(tmp_path), 2, extras=ExtraMeasures(zero_shot=True))
    assert not (tmp_path / "skills.json").exists()
    with pytest.raises(UsageError, match=r"--reach: .*: nothing has measured where its skills end"):
        guide_to_goals(load_run(tmp_path), "--reach")


@pytest.mark.thorough
def test_an_evaluation_on_goals_measures_where_skills_end_unless_that_is_known(run, monkeypatch):
    led = []
    monkeypatch.setattr(inspection, "measure_zero_shot", lambda *given: led.append(given[2]) or {})
    (run / "skills.json").unlink(missing_ok=True)
    evaluate_run(load_run(run), 2, extras=ExtraMeasures(zero_shot=True))
    written = json.loads((run / "skills.json").read_text())
    assert (written["episodes"], written["checkpoint"]) == (20, NOW)
    ends = np.float32([row["end"] for row in written["each"]])
    np.testing.assert_array_equal(led[0].points, ends)
    assert led[0].columns == (3, 4, 5)
    policy = load_policy(run)
    expected = policy.act(OBSERVATION, skill=2)
    np.testing.assert_array_equal(policy.act(OBSERVATION, reach=ends[2]), expected)
    note(run)
    evaluate_run(load_run(run), 2, extras=ExtraMeasures(zero_shot=True))
    np.testing.assert_array_equal(led[1].points, np.float32(PLACES))
