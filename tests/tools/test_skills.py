import numpy as np
import pytest

from music_tf.measures.behaviour import direction
from music_tf.tools.skills import measure_skills, skill_rows
from tests.kit.small import EVERYTHING, SAC, trainer_of


def pushes(observation, goal, skill, noise):
    """Skill 0 stays; skills 1 and 2 run against the disc, the latter more slowly."""
    del goal, noise
    away = observation[:, 3:5] - observation[:, :2]
    speed = np.float32([0.0, 1.0, 0.5])[skill.argmax(axis=1), None]
    moves = speed * away / np.linalg.norm(away, axis=1, keepdims=True)
    return np.concatenate([moves, np.full_like(speed, -1.0)], axis=1)


def test_each_skill_is_measured_by_what_it_does_to_the_object():
    trainer = trainer_of(EVERYTHING)
    still, fast, slow = measure_skills(trainer, pushes, 6)
    assert [row["skill"] for row in (still, fast, slow)] == [0, 1, 2]
    assert still["metrics"]["eval/object_displacement_m"] == 0.0
    assert still["shift_m"] == [0.0, 0.0, 0.0]
    assert fast["metrics"]["eval/object_moved_rate"] == 1.0
    displacements = [row["metrics"]["eval/object_displacement_m"] for row in (fast, slow)]
    assert displacements[0] > displacements[1] > 0.1
    played = trainer.played(6, pushes, 1)
    places = [
        path[[0, steps], 3:6] for path, steps in zip(played.observation, played.length, strict=True)
    ]
    expected_shift = np.mean([end - start for start, end in places], axis=0)
    np.testing.assert_allclose(fast["shift_m"], expected_shift, atol=1e-6)
    assert np.abs(expected_shift).max() > 0.05
    expected = trainer.behaviour(played) | trainer.heldout(played)
    assert fast["metrics"] == expected
    assert "skill/accuracy_heldout" in expected


@pytest.mark.parametrize("config", [{}, {"skills": 3, "pinned_skill": 1}])
def test_a_run_in_which_one_skill_acts_has_no_table(config):
    assert measure_skills(trainer_of(SAC, **config), pushes, 1) == []


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (0.3, 0.0, "→ 0°"),
        (0.3, 0.3, "↗ 45°"),
        (-0.1, 0.0, "← 180°"),
        (0.0, -0.2, "↓ 270°"),
        (0.2, -0.001, "→ 0°"),
        (0.03, -0.03, "-"),
    ],
)
def test_a_direction_is_an_arrow_seen_from_above(x, y, text):
    assert direction(x, y) == text


def test_the_table_names_skills_and_ends_with_the_random_policy():
    measured = [
        {
            "skill": 4,
            "metrics": {"eval/object_moved_rate": 0.5, "skill/accuracy_heldout": 0.9},
            "shift_m": [0.0, 0.2, 0.1],
        },
        {"skill": 5, "metrics": {"eval/success_rate": 1.0}, "shift_m": None},
    ]
    rows = skill_rows(measured, {"eval/object_moved_rate": 0.25, "eval/object_coverage": 9.0})
    assert list(rows) == ["skill 4", "skill 5", "random"]
    assert rows["skill 4"] == {
        "accuracy": 0.9,
        "moved": 0.5,
        "dx m": 0.0,
        "dy m": 0.2,
        "dz m": 0.1,
        "mean direction": "↑ 90°",
    }
    assert rows["skill 5"] == {"success": 1.0}
    assert rows["random"] == {"moved": 0.25}
