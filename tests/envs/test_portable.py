import gymnasium
import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.envs.making import make_environment
from music_tf.envs.portable import MadeAgain, held_by
from tests.kit.saved_run import ENV_ID, save_run

BOX = gymnasium.spaces.Box(np.array([0.7, -1.0]), np.array([1.0, 0.1]), dtype=np.float64)


def test_rows_are_moved_back_into_their_space_in_its_type_or_refused_with_their_step():
    rows = np.float32([[0.7, 0.1], [0.8, 0.0]])
    assert not BOX.contains(rows[0].astype(np.float64))
    held = held_by(BOX, rows, "observation")
    np.testing.assert_array_equal(held, [[0.7, 0.1], [np.float32(0.8), 0.0]])
    with pytest.raises(ValueError, match=r"the goal of step 1 is not in .*: \[0\.6 0\. \]"):
        held_by(BOX, np.float64([[0.7, 0.1], [0.6, 0.0]]), "goal")
    box = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    assert held_by(box, np.zeros((3, 2)), "action").dtype == np.float32


def test_no_other_process_is_told_to_make_an_environment_whose_actions_choose_skills(tmp_path):
    save_run(tmp_path, "sac_diayn", skills=3)
    with make_environment(ENV_ID, EnvConfig()) as plain:
        assert MadeAgain(plain).spec.id == ENV_ID
    with make_environment(ENV_ID, EnvConfig(skills=str(tmp_path))) as choosing:
        assert MadeAgain(choosing).spec is None
