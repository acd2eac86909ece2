"""Films of runs that adapt: a row a task, a column an episode of the first visit to it."""

import numpy as np
import pytest

from music_tf.cli import main
from music_tf.conditions import continuous_conditions
from music_tf.errors import UsageError
from music_tf.runs.loaded_run import load_run
from music_tf.tools.film import film, sheets_of, visit_episodes
from tests.kit.pearl import small
from tests.kit.sessions import command_of, run_session

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("filmed") / "run"
    words = {"recipe": "sac_pearl", "arguments": ("sac_pearl",)}
    run_session(command_of(small(epochs=1, cycles=1), path, **words))
    return path


def test_a_sheet_has_a_row_for_each_task_and_a_column_for_each_episode():
    config = small()
    ((shots, columns),) = sheets_of(config, range(2), [None])
    assert [(shot.skill, shot.episode) for shot in shots] == [
        *((0, episode) for episode in range(3)),
        *((1, episode) for episode in range(3)),
    ]
    assert columns == 3
    assert visit_episodes(small(tasks__explore=5, tasks__adapt=15)) == [0, 3, 6, 10, 13, 16, 19]
    assert (
        sum(len(shots) for shots, _ in sheets_of(config, range(9), [None])) == 3 * 3
    )  # there are three


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


@pytest.mark.parametrize("words", [["--out", "film.gif"], ["--strip", "visit.png"]])
def test_films_and_pictures_are_written(run, tmp_path, words):
    option, name = words
    file = tmp_path / name
    with pytest.raises(SystemExit) as end:
        main(["play", str(run), option, str(file)])
    assert end.value.code == 0
    assert file.stat().st_size > 1_000


def test_a_strip_of_a_task_that_is_not_there_is_refused_with_those_that_are(run, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["play", str(run), "--strip", str(tmp_path / "a.png"), "--episode", "4"])
    assert end.value.code == 2
    assert "expected a number from 1 to 3, got 4" in capsys.readouterr().err


def test_a_belief_is_never_drawn_by_itself():
    with pytest.raises(UsageError, match="a belief is inferred from episodes of a task"):
        continuous_conditions(small().condition, np.random.default_rng(0), 3)
