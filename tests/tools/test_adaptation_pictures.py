"""Curves of adaptation, and paths and films of visits: a row a task, a column an episode."""

import numpy as np
import pytest
from PIL import Image

from music_tf.cli import run_verb
from music_tf.errors import UsageError
from music_tf.runs.loaded_run import load_run
from music_tf.tools import adaptation_pictures
from music_tf.tools.film import film, sheets_of, visit_episodes
from tests.kit.cases import cases
from tests.kit.pearl import small
from tests.kit.sessions import command_of, run_session

pytestmark = pytest.mark.thorough

TOLD = {
    "test": {
        "tasks": [{"returns": [-3.0, -1.0]}, {"returns": [-5.0, -2.0]}],
        "returns": [-4.0, -1.5],
        "random": [-6.0, -7.0],
    }
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("visits") / "run"
    words = {"recipe": "sac_pearl", "arguments": ("sac_pearl",)}
    run_session(command_of(small(epochs=1, cycles=1), path, **words))
    assert run_verb(["evaluate", str(path), "--episodes", "1"]) == 0
    return path


def test_curves_are_what_an_evaluation_says():
    (part, curves), *others = adaptation_pictures.curves_of(TOLD, "returns").items()
    assert part == "test"
    assert not others
    assert curves.by_task == [[-3.0, -1.0], [-5.0, -2.0]]
    assert (curves.mean, curves.random) == ([-4.0, -1.5], [-6.0, -7.0])
    svg = adaptation_pictures.adaptation_svg({"test": curves}, 1, "salt")
    assert svg.startswith("<svg")
    assert "random" in svg
    of_training = adaptation_pictures.adaptation_svg({"train": curves}, 1, "salt")
    assert svg.count("<path ") > of_training.count("<path ")  # a thin line for each task of `test`


@cases(
    "told",
    None,
    [],
    {"test": 3},
    {"test": {"tasks": [{"returns": [1.0]}], "returns": [1.0, 2.0]}},
    {"test": {"tasks": [{"returns": ["a"]}], "returns": [1.0]}},
    {"test": {"tasks": [7], "returns": [1.0]}},
)
def test_a_file_that_says_anything_else_has_no_curves(told):
    assert adaptation_pictures.curves_of(told, "returns") == {}


def test_a_picture_has_a_row_a_task_with_its_goal_and_a_column_an_episode():
    paths, goals = np.random.default_rng(0).normal(size=(2, 3, 5, 2)), np.array([[1, 1], [-1, 0]])
    figure = adaptation_pictures.paths_of_visits(
        paths, goals, np.arange(6.0).reshape(2, 3), [0, 1, 4]
    )
    for number, panel in enumerate(figure.axes):
        task, episode = divmod(number, 3)
        path, start, end, goal = (line.get_xydata() for line in panel.lines)
        np.testing.assert_array_equal(path, paths[task, episode])
        np.testing.assert_array_equal([start[0], end[0]], path[[0, -1]])
        np.testing.assert_array_equal(goal, goals[[task]])
        assert panel.get_title() == f"{['prior', 'after 1', 'after 4'][episode]}: {number}.0"


def test_the_goal_of_a_row_is_the_place_that_pays_for_its_paths(run, monkeypatch):
    drawn, draw = [], adaptation_pictures.paths_of_visits
    monkeypatch.setattr(
        "music_tf.tools.adaptation_pictures.paths_of_visits",
        lambda *of: drawn.append(of) or draw(*of),
    )
    loaded = load_run(run, environments=2)
    assert adaptation_pictures.draw_visits(loaded)
    loaded.envs.close()
    ((paths, goals, returns, _),) = drawn
    apart = np.linalg.norm(paths[:, :, 1:] - goals[:, None, None], axis=-1).sum(axis=-1)
    np.testing.assert_allclose(returns, -apart, rtol=1e-5)
    np.testing.assert_array_equal(goals, loaded.adaptation.tasks.test)


def test_an_evaluation_draws_visits_and_a_report_shows_them_with_curves(run, tmp_path):
    with Image.open(run / "videos" / adaptation_pictures.PICTURE) as picture:
        assert picture.size[0] > 300
    page = tmp_path / "page.html"
    assert run_verb(["report", str(run), "--out", str(page)]) == 0
    text = page.read_text()
    section = text.partition("<h3>Adaptation to tasks</h3>")[2].partition("<h3>")[0]
    assert (section.count("<svg"), section.count("data:image/png;base64,")) == (2, 1)
    assert "1 visits to each task" in section
    assert "measures of control" not in text
    assert "curves of adaptation" not in text


# Films.


def test_a_sheet_has_a_row_for_each_task_and_a_column_for_each_episode():
    config = small()
    ((shots, columns),) = sheets_of(config, range(2), [None])
    assert [(shot.skill, shot.episode) for shot in shots] == [
        *((0, episode) for episode in range(3)),
        *((1, episode) for episode in range(3)),
    ]
    assert columns == 3
    assert visit_episodes(small(tasks__explore=5, tasks__adapt=15)) == [0, 3, 6, 10, 13, 16, 19]
    sheets = sheets_of(config, range(9), [None])
    assert sum(len(shots) for shots, _ in sheets) == 3 * 3  # there are three


def test_what_is_filmed_is_what_an_evaluation_visits(run, monkeypatch):
    loaded, played = load_run(run, environments=6), []
    ((shots, _),) = sheets_of(loaded.config, range(2), [None])
    monkeypatch.setattr(
        "music_tf.tools.film.rewards_along", lambda _, all: played.append(all) or []
    )
    views = list(film(loaded, shots, lambda lengths: np.arange(lengths.max() + 1)))
    visits = loaded.adaptation.play(loaded.agent, "test", 1)
    expected = visits.returns[:2, 0]
    np.testing.assert_allclose(played[0].reward.sum(axis=1).reshape(2, 3), expected, rtol=1e-4)
    sure = np.sqrt(visits.variances[:2, 0].mean(axis=-1))
    for task, first in ((0, 0), (1, 3)):
        for episode, belief in enumerate([1.0, *sure[task, :2]]):  # before an episode, not after it
            text = f"task {task + 1}   episode {episode + 1}   step 0/5   belief ±{belief:.2f}"
            assert views[0][first + episode].caption == text
    assert len(views) == 6  # five steps and the state before them
    assert {view.image.shape for view in views[0]} == {(96, 96, 3)}
    places = [np.argwhere((view.image == (80, 200, 80)).all(axis=-1)) for view in views[0]]
    np.testing.assert_array_equal(places[0], places[2])  # of one task
    assert not np.array_equal(places[0], places[3])


def test_films_and_pictures_are_written(run, tmp_path):
    for option, name in (("--out", "film.gif"), ("--strip", "visit.png")):
        assert run_verb(["play", str(run), option, str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 1_000
    with pytest.raises(UsageError, match="expected a number from 1 to 3, got 4"):
        run_verb(["play", str(run), "--strip", str(tmp_path / "a.png"), "--episode", "4"])
