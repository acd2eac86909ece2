import pytest

from music_tf.config.settings import EnvConfig
from music_tf.envs.columns import Certainty, PlayResult, Proposal
from music_tf.envs.kinds import Kind
from music_tf.envs.registry import EnvironmentInfo, lookup
from music_tf.tools.proposals import CheckedEnv, columns_text, first_look, ranges, world_text
from music_tf.types import SplitSpec
from tests.kit.cases import cases

SPLIT = {"agent": Proposal((0, 1), "they answer"), "surrounding": Proposal((3, 4), "they rest")}
FOUND = PlayResult(
    [Kind.ROBOT] * 3 + [Kind.OBJECT] * 2, {2: "3 minus 0"}, Certainty.SURE, "", SPLIT
)


def known(agent, surrounding):
    return EnvironmentInfo(split=SplitSpec(agent=agent, surrounding=surrounding))


def test_columns_are_listed_by_what_they_do():
    lines = [line.split(None, 1) for line in columns_text(FOUND).splitlines()[1:]]
    assert lines == [["0-2", Kind.ROBOT], ["3-4", Kind.OBJECT], ["2", "3 minus 0"]]
    assert ranges([9, 0, 1, 2, 5]) == "0-2 5 9"


@cases(
    ("split", "says"),
    (((0, 1, 2), (3, 4, 5)), "playing agrees"),
    (((0, 1), (3, 4)), "playing agrees"),
    (((3, 4), (0, 1)), "playing shows other columns: is that split right?"),
)
def test_a_split_that_is_known_is_compared(split, says):
    assert world_text(FOUND, known(*split)).splitlines()[-1].endswith(f"; {says}")


def test_where_playing_shows_nothing_that_is_said_of_a_known_split():
    nothing = FOUND._replace(verdict=Certainty.CANNOT_TELL, why="3 4 rest", proposed={})
    first, last = world_text(nothing, known((0,), (3,))).splitlines()
    assert (first, last[-11:]) == ("cannot tell: 3 4 rest", "nor another")
    for verdict in (Certainty.CANNOT_TELL, Certainty.NO_OBJECT):
        text = world_text(nothing._replace(verdict=verdict), lookup(""), "My-v0")
        assert "ddpg_music --env-id My-v0 --world.agent COLUMNS" in text.splitlines()[1]


def test_each_proposal_comes_with_its_reason():
    lines = world_text(FOUND._replace(others=[(5, 6)]), lookup("")).splitlines()
    assert lines == [
        *("sure", "agent 0 1: they answer", "surrounding 3 4: they rest"),
        "5 6: another object; name it instead, or beside",
    ]


@cases(
    ("rate", "epochs", "minutes"),
    # An epoch is 20 cycles of 8 episodes and 80 updates of 9 ms, 14.4 s, and 40 episodes of 50
    # steps to evaluate: 10,000 steps, 1 s or 100 s. All 20 epochs, or 5 of 114.4 s.
    (10_000.0, None, 20 * 15.4 / 60),
    (100.0, 5, 5 * 114.4 / 60),
)
def test_a_first_look_is_the_whole_preset_or_what_ten_minutes_hold(rate, epochs, minutes):
    task = CheckedEnv("FetchPush-v4", EnvConfig(), lookup(""), 50, None)
    assert first_look("ddpg_music", task, rate) == (epochs, pytest.approx(minutes))
