import numpy as np
import pytest

from music_tf.training.skills import direction, measure_skills, skill_rows
from tests.training.small import EVERYTHING, SAC, trainer_of


def pushes(observation, goal, skill, noise):
    """Skill 0 stays, skill 1 carries the disc to the right, skill 2 to the left and down."""
    del goal, noise
    away = observation[:, 3:5] - observation[:, :2]
    ways = np.float32([[0, 0], [0.2, 0], [-0.2, -0.2]])[skill.argmax(axis=1)]
    far = np.linalg.norm(away, axis=1, keepdims=True) > 0.12
    idle = (ways == 0).all(axis=1, keepdims=True)
    moves = np.where(idle, 0.0, np.where(far, np.clip(away / 0.1, -1, 1), ways))
    return np.concatenate([moves, np.where(far | idle, -1.0, 1.0)], axis=1).astype(np.float32)


def test_each_skill_is_measured_by_what_it_does_to_the_object():
    trainer = trainer_of(EVERYTHING)
    still, right, down_left = measure_skills(trainer, pushes, 6)
    assert [row["skill"] for row in (still, right, down_left)] == [0, 1, 2]
    assert still["metrics"]["eval/object_displacement_m"] == 0.0
    assert still["shift_m"] == [0.0, 0.0, 0.0]
    assert right["metrics"]["eval/object_moved_rate"] == 1.0
    x, y, _ = right["shift_m"]
    assert x > 0.2
    assert abs(y) < x / 3  # the point nudges the disc on its way to it
    x, y, _ = down_left["shift_m"]
    assert x < -0.2
    assert y == pytest.approx(x, abs=0.1)
    played = trainer.played(6, pushes, 1)
    expected = trainer.behaviour(played) | trainer.heldout(played)
    assert right["metrics"] == expected
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
