import dataclasses
import json
import re
import shlex

import pytest

from music_tf.config.fields import with_fields
from music_tf.config.settings import EnvConfig
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault
from music_tf.reading.command import parse_train
from music_tf.tools.check_env import check_environment
from music_tf.training.build import build_trainer
from music_tf.training.checks import CHECKS, concerns_of, try_environment
from tests.kit.arm import ARM, ARM_WITH_GOALS
from tests.kit.cases import cases
from tests.kit.counting import COUNTING, FORGETFUL, NORMALIZED, NORMALIZED_REWARD, RAISING, SHARING
from tests.kit.layouts import LAYOUT
from tests.kit.liberties import Quits
from tests.kit.odd import ODD
from tests.kit.small import HER
from tests.kit.tidying import TIDYING
from tests.kit.troubles import TROUBLED

DECLARED = ["goal keys", "actions", "episode length"]
LAST = ["columns", "world", "next"]
GOALS = {check.name for check in CHECKS if check.goals}
NAMES = [check.name for check in CHECKS if check.name not in ("stages", "split", "family")]


@pytest.mark.thorough
@cases("env_id", "music_tf/PointPush-v0", "FetchReach-v4", "HandManipulatePen-v1")
def test_a_good_environment_passes_every_check(env_id):
    checks = check_environment(env_id)
    pushes = env_id == "music_tf/PointPush-v0"  # goals are places of an object
    names = [name for name in NAMES if pushes or name != "place"]
    assert [check.name for check in checks] == [*DECLARED, *names, *LAST]
    assert all(check.ok and check.detail and not check.cure for check in checks)


@cases(
    "env_id",
    *(
        f"tests.kit.points:{name}-v0"
        for name in (
            *("Lies", "Moves", "MovesUnpaid", "Shows", "ShowsHidden", "KnowsHit", "FineFarAway"),
            *("EndsSilently", "EndsUnsaid", "NoSuccess", "Together", "KnowsGoal", "Point"),
        )
    ),
    *("tests.kit.ends:Counts-v0", "tests.kit.tasks:Moods-v0", "tests.kit.tasks:Restless-v0"),
)
def test_train_refuses_and_warns_of_what_check_env_shows(points, env_id):
    config = dataclasses.replace(HER, env_id=env_id)
    concerned = [check.name for check in CHECKS if check.concerns in concerns_of(config)]
    rows = [row for row in check_environment(env_id) if row.cure and row.name in concerned]
    failed = [row for row in rows if not row.ok]
    refusal, warnings = "", ()
    try:
        warnings = try_environment(config).warnings
    except EnvironmentFault as fault:
        refusal = str(fault)
    texts = tuple(f"{env_id}: {row.detail}\ncure: {row.cure}" for row in failed or rows)
    assert refusal.startswith(texts[0]) if failed else (refusal, warnings) == ("", texts)


@cases(
    ("fault", "failed"),
    ("", set()),
    ("nan", {"episode"}),
    ("no info", {"episode"}),
    ("degree", {"episode"}),
    ("goal", {"constant goal"}),
    ("wrong reward", {"reward"}),
    ("axis", {"batched reward", "reward"}),
    ("leftover", {"reset"}),
    ("exception", {"episode"}),
    ("reset", {"episode"}),
    ("reset alone", {"episode"}),
    ("four", {"episode"}),
)
def test_a_fault_fails_its_check_with_a_cure(odd, fault, failed):
    odd.fault = fault
    checks = check_environment(ODD)
    assert {check.name for check in checks if not check.ok} == failed
    assert all(check.cure for check in checks if not check.ok)


@cases(
    ("fault", "says"),
    ("exception", "step 90: .*the motor burns"),
    ("nan", r"step 90: observation\[1\]: expected a finite number, got nan"),
    ("no info", "step 1: info: expected a dict, got None"),
    ("four", r"values to unpack \(expected.*reset must .*n, info\), step \(.*, rew"),
)
def test_a_fault_is_told_by_findings_alone_even_late(odd, fault, says, capfd):
    odd.fault, odd.at_step = fault, 90
    *_, last = check_environment(ODD, EnvConfig(max_episode_steps=100))
    assert re.search(says, last.detail)
    assert (last.name, last.ok, capfd.readouterr().err) == ("episode", False, "")


def test_whole_numbers_are_observations_with_a_warning(odd):
    odd.fault = "dtype"
    found = {check.name: check for check in check_environment(ODD)}
    assert (found["episode"].state, found["next"].state) == ("warn", "ok")


@cases(
    ("env_id", "name", "says"),
    ("ShyOfCorners-v0", "corners", r"at \[-1. -1.\]: .*the joint is at its end"),
    ("OwnObservation-v0", "fresh arrays", "observation of step 0 changed when later steps"),
    ("PaysInArrays-v0", "episode", r"step 1: reward: expected a number, got shape \(1,\)"),
)
def test_liberties_with_actions_and_arrays_are_found(points, env_id, name, says):
    found, *others = [check for check in check_environment(env_id) if check.cure]
    assert found.ok == (name == "fresh arrays")  # which training copies
    assert found.name == name
    assert [check.name for check in others] == (["columns"] if name == "corners" else [])
    assert re.search(says, found.detail)
    assert found.cure


def test_what_is_not_learned_from_is_told(points):
    assert check_environment("Touches-v0")[0].detail.endswith("; not learned from: touch")


@cases("where", "step", "reset", "compute_reward")
def test_an_environment_that_ends_the_process_is_a_finding(points, monkeypatch, where):
    monkeypatch.setattr(Quits, "where", where)
    checks = check_environment("Quits-v0")
    assert {check.name for check in checks if not check.ok} == {"episode"}
    assert "SystemExit: 0" in checks[-1].detail


def test_unbounded_actions_fail_before_anything_is_played(odd):
    odd.high = float("inf")
    assert [check.ok for check in check_environment(ODD)] == [True, False, True]


def test_a_task_without_goals_is_checked_for_what_it_has():
    checks = check_environment("Pendulum-v1")
    rows = [name for name in NAMES if name not in GOALS]
    assert [check.name for check in checks] == [*DECLARED, *rows, *LAST]
    assert all(check.ok for check in checks)
    assert "no goals" in checks[0].detail
    assert [check.name for check in check_environment("CartPole-v1") if not check.ok] == ["actions"]


@cases(
    ("env_id", "says", "cure"),
    (FORGETFUL, "differ from step 0 on", "--env.remake True"),
    (RAISING, "with the same seed, rewards differ from step 1 on", ""),
    (SHARING, "", "share nothing with other environments of the process"),
    (NORMALIZED, "the statistics of Normalize", "leave the wrapper out: inputs of net"),
    (NORMALIZED_REWARD, "go on from episode to episode", "leave the wrapper out: --task.scale"),
)
def test_an_environment_that_does_not_repeat_itself_is_told_what_cures_it(env_id, says, cure):
    (check,) = [check for check in check_environment(env_id) if check.name == "reset"]
    assert (check.ok, says in check.detail, cure in check.cure) == (False, True, True)


def told_of(env_id):
    return {check.name: check for check in check_environment(env_id)}


def commands(check):  # what is to be pasted, by recipe
    lines = [line.split() for line in check.detail.splitlines() if "music-tf train" in line]
    return {words[2]: words[2:] for words in lines}


def test_a_world_is_proposed_as_lines_that_train():
    checks = told_of(TIDYING)
    assert [name for name, check in checks.items() if not check.ok] == []
    assert checks["goal set"].warning
    found = commands(checks["next"])
    assert list(found) == ["ddpg_music", "ddpg_her", "sac_diayn"]
    world = parse_train(found["ddpg_music"]).config.world
    assert (world.agent, world.surrounding) == ((5, 6), (2, 3))
    assert (world.gripper, world.object) == ((5, 6), (2, 3))
    assert parse_train(found["sac_diayn"]).config.world.descriptor == (2, 3)
    assert parse_train(found["ddpg_her"]).config.agent.return_clip == "off"
    assert "rewards seen from" in checks["next"].detail


@pytest.mark.thorough
def test_hindsight_needs_no_flag_for_an_arm_with_goals_and_has_no_line_without():
    checks = told_of(ARM_WITH_GOALS)
    assert "rewards of -1 and 0 (measured)" in checks["next"].detail
    words = commands(checks["next"])["ddpg_her"]
    assert [word for word in words if word.startswith("--")] == ["--env-id", "--epochs"]
    skills = parse_train(commands(checks["next"])["sac_diayn"])
    assert skills.config.world.reward == (-1.0, 0.0)  # for goals, which it does not see in training
    without = commands(told_of(ARM)["next"])
    assert list(without) == ["ddpg_music", "sac_diayn"]
    assert "--world.reward" not in without["sac_diayn"]


@pytest.mark.thorough
def test_a_known_world_may_have_nothing_that_moves():
    checks = told_of("FetchReach-v4")
    assert checks["world"].ok
    assert checks["world"].detail.startswith("no object seen: ")
    assert "known: it has no object" in checks["world"].detail
    assert list(commands(checks["next"])) == ["ddpg_her", "sac_diayn"]


def test_what_no_action_moves_and_short_episodes_fail_with_what_came():
    check = told_of(COUNTING)["columns"]
    assert not check.ok
    assert check.cure.startswith("observe what the actions move")
    kwargs = EnvConfig(kwargs='{"groups": ["point", "disc"], "ends": 3}')
    *_, check = check_environment(LAYOUT, kwargs)
    assert (check.name, check.ok) == ("columns", False)
    assert check.detail == "expected episodes of more than 5 steps, got 3"


def test_episodes_that_mostly_end_too_early_tell_nothing_of_columns_and_fail_nothing():
    checks = told_of("InvertedPendulum-v5")
    assert all(check.ok for check in checks.values())
    assert re.match(
        r"cannot tell: \d+ of 48 episodes went on for more than 5 steps after their actions "
        r"parted, and 32 are needed\n",
        checks["world"].detail,
    )
    assert list(commands(checks["next"])) == ["sac"]  # its episodes are paid by their lengths


@pytest.mark.thorough
@cases(
    ("env_id", "kwargs", "recipes"),
    ("tests.kit.hanging:Hanging-v0", {"axes": 1, "shown": [0, 2, 3, 4]}, ["sac", "sac_diayn"]),
    (TROUBLED, {}, ["sac", "ddpg_music", "sac_diayn"]),
    (TROUBLED, {"unit": 1e-6}, ["sac", "ddpg_music", "sac_diayn"]),
    (LAYOUT, {"groups": ["point", "disc"]}, ["ddpg_music", "sac_diayn"]),
    ("tests.kit.layouts:Palm-v0", {}, ["ddpg_music", "sac_diayn"]),
    (ARM_WITH_GOALS, {}, ["ddpg_music", "ddpg_her", "sac_diayn"]),
    ("Pendulum-v1", {}, ["sac", "sac_diayn"]),
    ("FetchReach-v4", {}, ["ddpg_her", "sac_diayn"]),
    ("FetchPush-v4", {}, ["ddpg_music", "ddpg_her_fast", "sac_diayn"]),
    ("tests.kit.points:Shows-v0", {}, ["sac_diayn"]),
    ("tests.kit.points:Lies-v0", {}, ["sac_diayn"]),
    ("tests.kit.points:Point-v0", {}, ["ddpg_her", "sac_diayn"]),
    ids=lambda value: str(value)[-12:],
)
def test_every_command_that_is_proposed_is_accepted(points, env_id, kwargs, recipes):
    settings = EnvConfig(kwargs=json.dumps(kwargs))
    checks = check_environment(env_id, settings)
    lines = [one.strip() for one in checks[-1].detail.splitlines() if "music-tf train" in one]
    configs = [parse_train(shlex.split(line)[2:]).config for line in lines]
    assert [shlex.split(line)[2] for line in lines] == recipes
    for config in configs:
        assert config.env.kwargs == settings.kwargs
        few = dataclasses.replace(config, workers=1, rollouts=1)
        found = try_environment(few)
        bounds = {} if found.reward_bounds is None else {"world.reward": found.reward_bounds}
        build_trainer(with_fields(few, bounds), Communicator(alone=True)).envs.close()


def test_what_training_refuses_is_said_in_place_of_a_command(points):
    detail = told_of("tests.kit.points:Shows-v0")["next"].detail
    assert "ddpg_her is refused, tests.kit.points:Shows-v0: columns 0, 1 of the obs" in detail
