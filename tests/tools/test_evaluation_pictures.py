import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from music_tf import recipes
from music_tf.config.fields import with_fields
from music_tf.config.settings import EvaluationConfig
from music_tf.envs.registry import EnvironmentInfo
from music_tf.storage.metrics import SKILLS_TAG
from music_tf.tools import evaluation_pictures
from music_tf.tools.report import write_report
from music_tf.tools.skill_pictures import skills_in_training
from tests.kit.episodes import make_episodes
from tests.kit.saved_run import rows_of
from tests.kit.sessions import command_of, run_session


@pytest.mark.thorough
def test_a_run_shows_returns_by_skill_and_how_log_q_grows(tmp_path):
    config = recipes.resolve("sac_diayn", env_id="music_tf/UnitBox-v0")
    small = {"agent.hidden_sizes": (8, 8), "skill.hidden_sizes": (8,), "collect.random_steps": 50}
    config = dataclasses.replace(
        with_fields(config, small),
        skills=3,
        epochs=2,
        cycles=3,
        updates=5,
        threads=1,
        evaluation=EvaluationConfig(episodes=6),
    )
    run = tmp_path / "run"
    run_session(command_of(config, run, recipe="sac_diayn"))
    for row in rows_of(run):
        assert float(row["skill/log_likelihood_running"]) < 0.0
    seen = EventAccumulator(str(run), {"images": 0}).Reload()
    first_picture, second_picture = seen.Images("skill/in_training")
    assert (first_picture.step, second_picture.step) == (150, 300)
    assert second_picture.width == 2 * first_picture.width  # by then log q has grown for an epoch
    assert (run / "videos" / "skills_in_training.png").read_bytes().startswith(b"\x89PNG")
    write_report([run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "skills_in_training.png" in page
    assert "music-tf play" in page  # a picture is no film


def test_one_skill_and_continuous_conditions_have_no_such_picture(tmp_path):
    assert skills_in_training(tmp_path, make_episodes(0, 3)) is None
    episodes = make_episodes(0, 3, skills=2)
    assert skills_in_training(tmp_path, episodes).shape[-1] == 3
    between = episodes._replace(skill=np.full_like(episodes.skill, 0.5))
    assert skills_in_training(tmp_path, between) is None


def test_pictures_of_skills_take_a_small_share_of_the_time(tmp_path, monkeypatch):
    clock, drawn = iter([100.0, 100.3, 109.0, 111.0, 111.2]), []
    monkeypatch.setattr(evaluation_pictures, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    draw = evaluation_pictures.Drawing()  # 3 %, so ten seconds after one that took 0.3
    episodes, info = make_episodes(0, 3, skills=2), EnvironmentInfo()
    for _ in range(3):
        drawn.append([one.tag for one in draw(tmp_path, episodes, info)])
    assert drawn == [[SKILLS_TAG], [], [SKILLS_TAG]]


def test_a_damaged_table_costs_no_run(tmp_path):
    (tmp_path / "metrics.csv").write_text("nothing")
    alone = skills_in_training(tmp_path, make_episodes(0, 3, skills=2))
    (tmp_path / "metrics.csv").unlink()
    np.testing.assert_equal(skills_in_training(tmp_path, make_episodes(0, 3, skills=2)), alone)
