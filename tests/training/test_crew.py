"""Actors that are lost or hang: who plays their shares, and what is said and noted."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.errors import RankLost
from music_tf.process import launcher
from music_tf.training import crew as crew_module
from music_tf.training.build import build_trainer
from music_tf.training.crew import Crew
from music_tf.training.messages import PLAY, OrderHeader, header_in
from music_tf.training.team import Team
from tests.kit.cases import cases
from tests.kit.pearl import small as small_pearl
from tests.kit.small import HER, assert_same_state, go_on, trainer_of
from tests.kit.wires import Between, Wires, actors_of

FOUR = {"workers": 4, "rollouts": 1, "cycles": 3}
CONFIGS = {"her": replace(HER, **FOUR), "pearl": small_pearl(**FOUR, tasks__train=8)}


@pytest.fixture
def crew(monkeypatch):
    """The crew of three actors, of which each answers with its own number at each `play`."""
    between = Between(4)
    team = Team(Wires(0, between), Communicator(), replace(HER, workers=6), 1, 0)
    crew = Crew(team, team.config)
    crew.between = between
    crew.now = itertools.count(1000.0)
    monkeypatch.setattr(crew_module.time, "monotonic", lambda: next(crew.now))
    looks = iter([lambda: None] * 500)  # after so many, a learner that waits for ever is ended
    monkeypatch.setattr(crew_module.time, "sleep", lambda seconds: next(looks)())
    return crew


def play(crew, *ranks):
    """Lets actors answer each order that has come, and returns the shares of these."""
    played = []
    for rank in ranks:
        posts = crew.between.posts[0, rank]
        while not posts.empty():
            played.append(header_in(posts.get(), OrderHeader).share)
            assert posts.get().tobytes() == b"weights"
            crew.between.posts[rank, 0].put(np.array([rank], np.uint8))
    return played


def order(crew):
    crew.send(OrderHeader(PLAY), b"weights")


def test_answers_come_by_share_and_orders_of_lost_actors_go_to_who_plays_least(crew, monkeypatch):
    order(crew)
    assert play(crew, 3, 1) == [3, 1]  # in another order than that of the shares
    crew.between.lost.add(2)
    monkeypatch.setattr(crew_module.time, "sleep", lambda seconds: play(crew, 1, 3))
    assert [(rank, *data) for rank, data in crew.receive()] == [(1, 1), (1, 1), (3, 3)]
    assert [(loss["rank"], loss["host"]) for loss in crew.losses] == [(2, "here")]
    crew.between.lost.add(3)
    order(crew)
    assert play(crew, 1) == [1, 2, 3]
    assert [rank for rank, _ in crew.receive()] == [1, 1, 1]


@cases(
    ("lost", "steps", "says"),
    ({1, 2, 3}, None, "rank 3 on here, an actor, was lost, and no other actor of its learner"),
    ({2}, 5, "rank 2 on here, an actor, was lost, and with it episodes that go on beyond a cycle"),
)
def test_a_loss_that_nobody_can_make_good_ends_the_run(crew, lost, steps, says):
    collect = replace(crew._config.collect, steps=steps)
    crew._config = replace(crew._config, collect=collect)
    order(crew)
    crew.between.lost |= lost
    with pytest.raises(RankLost, match=says):
        crew.receive()


def test_an_actor_that_hangs_is_killed_after_four_times_the_slowest_answer_but_not_the_last(
    crew, monkeypatch, tmp_path
):
    monkeypatch.setenv(launcher.END_VARIABLE, str(notes := tmp_path / "notes"))
    crew._config = replace(crew._config, hang_after=600.0)
    monkeypatch.setenv("OMPI_MCA_mpi_ft_enable", "1")
    crew.now = itertools.count(0.0, 0.5)
    order(crew)
    play(crew, 1, 2, 3)
    crew.receive()
    order(crew)
    play(crew, 1, 3)

    def kill(seconds):
        if launcher.notes_in(notes):
            crew.between.lost.add(2)
            play(crew, 1)

    monkeypatch.setattr(crew_module.time, "sleep", kill)
    assert [rank for rank, _ in crew.receive()] == [1, 1, 3]
    assert launcher.notes_in(notes) == {launcher.KILL: ["2 0"]}


def test_actors_that_are_all_late_are_left_alone(crew, monkeypatch, tmp_path):
    monkeypatch.setenv(launcher.END_VARIABLE, str(notes := tmp_path / "notes"))
    monkeypatch.setenv("OMPI_MCA_mpi_ft_enable", "1")
    crew._config = replace(crew._config, hang_after=5.0)
    crew.now = itertools.count(0.0, 0.5)
    order(crew)
    late = iter([lambda: None] * 50 + [lambda: play(crew, 1, 2, 3)])
    monkeypatch.setattr(crew_module.time, "sleep", lambda seconds: next(late)())
    assert [rank for rank, _ in crew.receive()] == [1, 2, 3]
    assert not notes.exists()


@pytest.mark.thorough
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("lag", [0, 1])
def test_a_lost_actor_changes_no_bit(name, lag):
    config = replace(CONFIGS[name], lag=lag)
    whole = trainer_of(config)
    for _ in range(3):
        whole.run_epoch(go_on)
    with actors_of(config, 2) as actors:
        trainer = build_trainer(config, Communicator(), actors)
        rows = [trainer.run_epoch(go_on)]
        actors.between.lost.add(1)
        rows += [trainer.run_epoch(go_on) for _ in range(2)]
        assert_same_state(whole, trainer)
        assert [row["mpi/actors"] for row in rows] == [2.0, 1.0, 1.0]
        actors.between.lost.clear()
        heir = actors.crew.left[0]
        heir.plays.remove(1)
        actors.crew.left.append(heir.__class__(1, [1]))  # whom the end is told
