"""What an environment observes and shows is checked before training, and by `check-env`."""

import dataclasses
import json
import re

import pytest

from music_tf.config.settings import EnvConfig
from music_tf.tools.check_env import check_environment
from music_tf.training.checks import TrialResult, try_environment
from tests.kit.cases import cases
from tests.kit.small import MUSIC
from tests.kit.troubles import TROUBLED

TOLD = {
    "bounds": ("narrow", 1.0, r"observation\[\d\] is -?0\.3\d*, outside .* -0\.3 to 0\.3"),
    "units": (
        "",
        1e-6,
        r"columns 0, 1, 2 and 1 more of the observation differ by at most \d\S*e-0[67];",
    ),
    "last step": ("next", 1.0, "the last step of an episode changes columns more than 3 times"),
    "render": ("blind", 1.0, "it has no method render"),
}


def settings(trouble, unit=1.0):
    return EnvConfig(kwargs=json.dumps({"trouble": trouble, "unit": unit}))


@pytest.mark.parametrize(("name", "trouble", "unit", "says"), [(n, *t) for n, t in TOLD.items()])
def test_what_is_wrong_with_observations_is_told_before_training_and_by_check_env(
    name, trouble, unit, says
):
    config = dataclasses.replace(MUSIC, env_id=TROUBLED, env=settings(trouble, unit))
    (text,) = try_environment(config).warnings
    assert re.search(says, text)
    assert "\ncure: " in text
    (check,) = [check for check in check_environment(TROUBLED, config.env) if check.cure]
    assert (check.name, check.state) == (name, "warn")


def test_nothing_is_told_without_trouble():
    assert (
        try_environment(dataclasses.replace(MUSIC, env_id=TROUBLED, env=settings("")))
        == TrialResult()
    )


@cases(
    ("trouble", "name", "state", "says", "cure"),
    ("alone", "reset", "warn", "the simulator is in use", "--workers 1 --rollouts 1"),
    ("options", "episode", "FAIL", "not subscriptable", r"run without options\['course'\]"),
    ("objects", "episode", "warn", "is object", "return floating point numbers"),
)
def test_the_cause_and_the_cure_stand_in_one_line(trouble, name, state, says, cure):
    (check,) = [check for check in check_environment(TROUBLED, settings(trouble)) if check.cure]
    assert (check.name, check.state) == (name, state)
    assert says in check.detail
    assert re.search(cure, check.cure)


def test_nothing_is_sure_where_one_seed_begins_differently():
    checks = {check.name: check for check in check_environment(TROUBLED, settings("unseeded"))}
    assert not checks["reset"].ok
    assert checks["world"].detail.startswith("likely: one seed begins differently")
    checks = {check.name: check for check in check_environment(TROUBLED, settings(""))}
    assert checks["world"].detail.startswith("likely\nagent 0 1")
