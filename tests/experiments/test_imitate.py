import numpy as np

from experiments import imitate
from music_tf.config.settings import SkillConfig
from tests.kit.saved_run import save_run


def test_shares_are_of_the_chosen_the_nearest_and_a_random_skill():
    # two skills are shown in two episodes; three may imitate them
    shown = np.array([[[0.0, 0.0], [1.0, 0.0]], [[5.0, 5.0], [0.0, 0.0]]])
    own = np.array([[[0.0, 0.2], [1.0, 0.0]], [[0.0, 0.3], [0.0, 0.25]], [[0.0, 0.0], [9.0, 9.0]]])
    # near (0.25 counts): the first by skills 0 and 2, then 0; the second by none, then 1
    assert imitate.shares(shown, own, np.array([[1, 0], [0, 1]])) == (2 / 4, 3 / 4, 4 / 12)


def test_a_run_that_imitates_itself_could_meet_every_end(tmp_path, capsys):
    run = tmp_path / "run"
    skill = {"skill": SkillConfig(hidden_sizes=(8,), state="next")}
    save_run(run, "sac_diayn", env_id="music_tf/UnitBox-v0", skills=2, rewards=skill)
    assert imitate.main([str(run), str(run), "--episodes", "2"]) == 0
    chosen, nearest, random = [
        float(line.rpartition(": ")[2]) for line in capsys.readouterr().out.splitlines()
    ]
    assert nearest == 1.0  # by itself, in the same episodes
    assert random >= 0.5
    assert 0.0 <= chosen <= 1.0
