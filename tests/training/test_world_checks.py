"""What must hold from one copy, stage or task of a world to another, before training."""

import json
import re

import pytest

from music_tf.config.fields import with_fields
from music_tf.config.settings import EnvConfig
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.tools.check_env import check_environment
from music_tf.training import world_checks as worlds
from music_tf.training.checks import try_environment
from music_tf.training.environment_trial import EnvironmentTrial
from tests.kit import pearl
from tests.kit.cases import cases
from tests.kit.small import SAC

NO_EFFECT = "8 tasks give the same 12 random steps, bit for bit: they have no "


def seen_by(row, env_id, changes=()):
    settings = EnvConfig(changes=json.dumps(list(changes)))
    with EnvironmentTrial(env_id, settings) as stage:
        return row(stage)


@cases(
    ("name", "state", "says", "cure"),
    ("Places", "ok", "tasks change episodes and repeat them, 12 random steps$", ""),
    ("Forgets", "FAIL", f"{NO_EFFECT}effect$", "draw different tasks, let reset keep what set_"),
    ("Ignoring", "FAIL", f"{NO_EFFECT}effect$", "draw different tasks"),
    ("OneTask", "FAIL", f"{NO_EFFECT}effect$", "draw different tasks"),
    ("TooSparse", "warn", f"{NO_EFFECT}effect, or rewards are too sparse", "draw different tasks"),
    ("Late", "FAIL", "a task takes effect one reset late$", "let set_task hold at the"),
    ("LateFromItsOwn", "FAIL", "a task takes effect one reset late$", "let set_task hold at the"),
    ("Restless", "warn", "a task does not repeat its episode of one seed$", "restore everything"),
    ("WithStatistics", "warn", "seed: the statistics of NormalizeObs", "leave the wrapper out"),
    ("Moods", "ok", "^$", ""),
)
def test_tasks_of_a_family_change_episodes_and_repeat_them(name, state, says, cure):
    finding = seen_by(worlds.family, f"tests.kit.tasks:{name}-v0")
    assert finding.state == state
    assert re.search(says, finding.detail)
    assert finding.cure.startswith(cure)


def test_a_family_is_checked_before_its_tasks_are_visited_and_by_check_env():
    def config(name):
        return pearl.small(env_id=f"tests.kit.tasks:{name}-v0", env__max_episode_steps=9)

    with pytest.raises(EnvironmentFault, match="Forgets-v0: 8 tasks give the same 9 random steps"):
        try_environment(config("Forgets"))
    (text,) = try_environment(config("TooSparse")).warnings
    assert "they have no effect, or rewards are too sparse" in text
    assert not try_environment(config("Places")).warnings
    assert not try_environment(with_fields(SAC, {"env_id": "tests.kit.tasks:Forgets-v0"})).warnings
    checks = {check.name: check for check in check_environment("tests.kit.tasks:Forgets-v0")}
    assert checks["family"].state == "FAIL"
    assert "\nadaptation to new tasks: sac_pearl is refused, tests.kit" in checks["next"].detail
    *_, check = check_environment("tests.kit.tasks:Places-v0")
    assert "\n  music-tf train sac_pearl --env-id tests.kit.tasks:Places-v0" in check.detail
    assert "family" not in {check.name for check in check_environment("tests.kit.tasks:Moods-v0")}


def test_copies_whose_constructor_draws_are_other_worlds(monkeypatch):
    env_id = "tests.kit.tasks:Moods-v0"
    (text,) = try_environment(with_fields(SAC, {"env_id": env_id})).warnings
    assert "two copies of the environment play different episodes" in text
    checks = {check.name: check for check in check_environment(env_id)}
    assert checks["copies"].state == "warn"
    monkeypatch.setattr("tests.kit.tasks.Moods.draw", lambda self, low, high: low)
    assert seen_by(worlds.copies, env_id).state == "ok"
    restless = seen_by(worlds.copies, "tests.kit.tasks:Restless-v0")
    assert restless.state == "ok"  # which does not repeat itself in one copy either


@cases(
    ("name", "state"),
    *(("Counts", "warn"), ("OldEnd", "warn")),
    *(("OldLimit", "ok"), ("FinalObs", "ok"), ("Varies", "ok"), ("Bandit", "ok")),
)
def test_a_limit_of_time_that_comes_as_termination_is_asked_about(name, state):
    finding = seen_by(worlds.time_limit, f"tests.kit.ends:{name}-v0")
    assert finding.state == state
    if state == "warn":
        assert finding.detail.startswith("5 episodes of random actions all terminate at step 6: is")


MASS = {"at": {"steps": 1}, "mass": {"cart": 4.0}}
BACK = {"at": {"steps": 2}}
STRENGTH = {"at": {"steps": 1}, "set": {"strength": 2.0}}


@cases(
    ("name", "changes", "state", "says"),
    ("Cart", [{}, MASS, BACK], "ok", "each changes episodes"),
    ("Cart", [], "ok", "^$"),
    ("OwnNumbers", [{}, MASS], "FAIL", "stage 1: body_mass: OwnNumbers-v0: reset overwrites what"),
    ("ReadOnce", [{}, MASS, BACK], "warn", "40 random steps in stage 1 are those in stage 0, bit"),
    ("ReadOnce", [{}, STRENGTH], "ok", "each changes episodes"),
)
def test_stages_are_tried_before_training(name, changes, state, says):
    finding = seen_by(worlds.stages, f"tests.kit.carts:{name}-v0", changes)
    assert finding.state == state
    assert re.search(says, finding.detail)


def test_rows_are_told_before_a_run_of_any_environment_that_is_not_known():
    changes = {"env.changes": json.dumps([{}, MASS])}
    config = with_fields(SAC, {"env_id": "tests.kit.carts:OwnNumbers-v0", **changes})
    with pytest.raises(
        EnvironmentFault, match=r"stage 1: body_mass: OwnNumbers-v0: .*\ncure: let res"
    ):
        try_environment(config)
    with pytest.raises(UsageError, match="stage 0: reset: Anew-v0: builds its model anew"):
        try_environment(with_fields(config, {"env_id": "tests.kit.carts:Anew-v0"}))
    settings = EnvConfig(changes=changes["env.changes"])
    (failed,) = [
        one for one in check_environment("tests.kit.carts:Anew-v0", settings) if not one.ok
    ]
    assert failed.name == "stages"
    (text,) = try_environment(with_fields(SAC, {"env_id": "tests.kit.ends:Counts-v0"})).warnings
    assert "is that a limit of time?" in text
    assert try_environment(with_fields(SAC, {"env_id": "tests.kit.ends:Varies-v0"})).warnings == ()
