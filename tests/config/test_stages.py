"""Stages of a changing world, as a user writes them in `env.changes`."""

import json

import pytest

from music_tf.config.changes import stage_at, stages_of
from music_tf.config.settings import EnvConfig
from music_tf.errors import UsageError
from tests.kit.cases import cases

FULL = [
    {"set": {"wall": True}},
    {"at": {"skill": 2}, "gear": {"hip_4": 0, "ankle_4": -1}},
    {
        "at": {"steps": 400},
        "gravity": 0.8,
        "mass": {"torso": 2},
        "friction": {"floor": 0.3},
        "damping": {"*": 1.5},
        "place": {"block_0": [10, 0, -4]},
    },
]


def test_all_that_a_stage_may_say_is_read():
    first, second, third = stages_of(json.dumps(FULL))
    assert (first.at, first.attributes, first.factors, first.gravity) == ({}, {"wall": True}, {}, 1)
    assert (second.at, second.factors) == ({"skill": 2}, {"gear": {"hip_4": 0, "ankle_4": -1}})
    assert (third.at, third.gravity, third.place) == ({"steps": 400}, 0.8, {"block_0": (10, 0, -4)})
    assert third.factors == {
        "mass": {"torso": 2.0},
        "friction": {"floor": 0.3},
        "damping": {"*": 1.5},
    }
    assert stages_of("[]") == EnvConfig().stages == ()


def test_the_last_stage_that_is_reached_holds():
    stages = stages_of('[{}, {"at": {"steps": 100}}, {"at": {"skill": 2}}, {"at": {"steps": 300}}]')
    cases = ((0, 0, 0), (99, 0, 0), (100, 0, 1), (100, 2, 2), (0, 2, 2), (300, 1, 3))
    assert [stage_at(stages, steps, skill) for steps, skill, _ in cases] == [c[2] for c in cases]
    assert stage_at((), 10**9) == 0


@cases(
    ("text", "says"),
    ("{", "expected stages as JSON, got '{'"),
    ("{}", r"expected a list of stages, got {}\nfor example: \[{}, "),
    ("[1]", "stage 0: expected an object with at, mass, friction, .*, got 1"),
    ('[{"masses": {}}]', "stage 0: expected at, .*, got 'masses'\ndid you mean mass?"),
    ('[{"at": {"steps": 1}}]', "stage 0: at: the first stage holds from the start"),
    ("[{}, {}]", r'stage 1: at: expected {"steps": N} or, .*; got None'),
    ('[{}, {"at": {"steps": 0}}]', "stage 1: at: expected .*, of at least 1; got 0"),
    ('[{}, {"at": {"step": 5}}]', "stage 1: at: expected .*; got {'step': 5}"),
    (
        '[{}, {"at": {"steps": 5}}, {"at": {"steps": 5}}]',
        "stage 2: at: expected steps after 5, got 5",
    ),
    ('[{"gravity": -1}]', "stage 0: gravity: expected a factor of at least 0, got -1"),
    ('[{"mass": {"torso": 0}}]', "stage 0: mass: torso: expected a factor above 0, got 0"),
    ('[{"mass": 2}]', "stage 0: mass: expected an object of names and values, got 2"),
    (
        '[{"damping": {"*": true}}]',
        "stage 0: damping: .*: expected a factor of at least 0, got True",
    ),
    ('[{"gear": {"hip": NaN}}]', "stage 0: gear: hip: expected a number, got nan"),
    (f'[{{"gravity": {10**400}}}]', "stage 0: gravity: expected a factor of at least 0, got 1000"),
    ('[{"place": {"a": [1, 2]}}]', "stage 0: place: a: expected x, y and z in metres, got"),
)
def test_what_is_no_stage_is_refused_with_its_number(text, says):
    with pytest.raises(UsageError, match=f"env.changes: {says}"):
        EnvConfig(changes=text)
