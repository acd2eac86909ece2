"""Curves of adaptation and paths of visits, from what a run and its evaluation hold."""

import numpy as np
import pytest
from PIL import Image

from music_tf.cli import main
from music_tf.runs.loaded_run import load_run
from music_tf.tools.adaptation_pictures import (
    PICTURE,
    adaptation_svg,
    curves_of,
    draw_visits,
    paths_of_visits,
)
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
    with pytest.raises(SystemExit) as end:
        main(["evaluate", str(path), "--episodes", "1"])
    assert end.value.code == 0
    return path


def test_curves_are_what_an_evaluation_says():
    (part, curves), *others = curves_of(TOLD, "returns").items()
    assert part == "test"
    assert not others
    assert curves.by_task == [[-3.0, -1.0], [-5.0, -2.0]]
    assert (curves.mean, curves.random) == ([-4.0, -1.5], [-6.0, -7.0])
    svg = adaptation_svg({"test": curves}, 1, "salt")
    assert svg.startswith("<svg")
    assert "random" in svg
    lines = [
        adaptation_svg({part: curves}, 1, "salt").count("<path ") for part in ("test", "train")
    ]
    assert lines[0] > lines[1]  # each task for evaluation has a thin line


@cases(
    "told",
    None,
    [],
    {"test": 3},
    {"test": {"tasks": [], "returns": [1.0]}},
    {"test": {"tasks": [{"returns": [1.0]}], "returns": [1.0, 2.0]}},
    {"test": {"tasks": [{"returns": ["a"]}], "returns": [1.0]}},
    {"test": {"tasks": [{"returns": [float("nan")]}], "returns": [1.0]}},
    {"test": {"tasks": [7], "returns": [1.0]}},
)
def test_a_file_that_says_anything_else_has_no_curves(told):
    assert curves_of(told, "returns") == {}


def test_a_picture_has_a_row_a_task_with_its_goal_and_a_column_an_episode():
    paths, goals = np.random.default_rng(0).normal(size=(2, 3, 5, 2)), np.array([[1, 1], [-1, 0]])
    figure = paths_of_visits(paths, goals, np.arange(6.0).reshape(2, 3), [0, 1, 4])
    for number, panel in enumerate(figure.axes):
        task, episode = divmod(number, 3)
        path, start, end, goal = (line.get_xydata() for line in panel.lines)
        np.testing.assert_array_equal(path, paths[task, episode])
        np.testing.assert_array_equal([start[0], end[0]], path[[0, -1]])
        np.testing.assert_array_equal(goal, goals[[task]])
        assert panel.get_title() == f"{['prior', 'after 1', 'after 4'][episode]}: {number}.0"


def test_paths_are_those_of_the_visits_that_an_evaluation_counts(run):
    loaded = load_run(run, environments=2)
    returns = loaded.adaptation.first_visits(loaded.agent, 3).reward.sum(axis=1).reshape(3, 3)
    np.testing.assert_equal(returns, loaded.adaptation.play(loaded.agent, "test", 1).returns[:, 0])
    loaded.envs.close()


def test_the_goal_of_a_row_is_the_place_that_pays_for_its_paths(run, monkeypatch):
    drawn, draw = [], paths_of_visits
    monkeypatch.setattr(
        "music_tf.tools.adaptation_pictures.paths_of_visits",
        lambda *of: drawn.append(of) or draw(*of),
    )
    loaded = load_run(run, environments=2)
    assert draw_visits(loaded)
    loaded.envs.close()
    ((paths, goals, returns, _),) = drawn
    apart = np.linalg.norm(paths[:, :, 1:] - goals[:, None, None], axis=-1).sum(axis=-1)
    np.testing.assert_allclose(returns, -apart, rtol=1e-5)
    np.testing.assert_array_equal(goals, loaded.adaptation.tasks.test)


def test_an_evaluation_draws_visits_and_a_report_shows_them_with_curves(run, tmp_path):
    with Image.open(run / "videos" / PICTURE) as picture:
        assert picture.size[0] > 300
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit) as end:
        main(["report", str(run), "--out", str(page)])
    assert end.value.code == 0
    text = page.read_text()
    section = text.partition("<h3>Adaptation to tasks</h3>")[2].partition("<h3>")[0]
    assert (section.count("<svg"), section.count("data:image/png;base64,")) == (2, 1)
    assert "1 visits to each task" in section
    assert "measures of control" not in text
    assert "curves of adaptation" not in text
