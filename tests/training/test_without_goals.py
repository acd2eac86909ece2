"""Tasks without goals: steps, random first ones, a ratio of updates, returns, and exact resumes."""

import contextlib
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from music_tf import load_policy, recipes
from music_tf.config.fields import with_fields
from music_tf.config.settings import CollectConfig, EvaluationConfig, ReplayConfig
from music_tf.distributed import Communicator
from music_tf.errors import Stopped, UsageError
from music_tf.training.build import build_trainer
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import command_of, run_session, stop_asked

pytestmark = pytest.mark.thorough

AGENT = replace(recipes.resolve("sac", "laptop", COUNTING).agent, hidden_sizes=(8, 8))
CONFIG = replace(
    recipes.resolve("sac", "laptop", COUNTING),
    agent=AGENT,
    epochs=3,
    cycles=3,
    updates=4,
    collect=CollectConfig(steps=5, random_steps=10, updates_per_step=0.8),
    replay=ReplayConfig(batch_size=8, capacity=100),
    evaluation=EvaluationConfig(episodes=2),
)
"""Epochs of 15 steps in one environment, whose episodes have 8."""

RING_OF_WHOLE = {"collect": CollectConfig(), "replay": ReplayConfig(draw="steps")}
ABSORBED = {"env_id": "music_tf/PointPush-v0", "lost_object": "absorb"}


def run(path, resume=False, **changes):
    run_session(command_of(replace(CONFIG, **changes), path, resume, recipe="sac"))
    return rows_of(path)


def column(rows, name):
    return [float(row[name]) if row[name] else None for row in rows]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    path = tmp_path_factory.mktemp("straight") / "run"
    return path, run(path)


def test_steps_episodes_updates_and_returns_are_counted(straight):
    _, rows = straight
    assert column(rows, "time/env_steps") == [15, 30, 45]
    assert column(rows, "time/episodes") == [1, 2, 3]
    assert column(rows, "time/episodes_cut") == [1, 2, 3]  # the second of each epoch, after 7 of 8
    assert column(rows, "time/updates") == [4, 16, 28]  # 0.8 for each step after the first ten
    assert column(rows, "eval/return") == [sum(range(1, 9))] * 3
    assert column(rows, "eval/length") == [8] * 3
    assert not {"eval/success_rate", "stats/goal_mean", "rollout/success_rate"} & {
        name for name, cell in rows[-1].items() if cell
    }


@pytest.mark.parametrize("looks", [4, 6])
def test_a_stop_within_an_epoch_plays_it_again_to_the_same_bits(looks, straight, tmp_path):
    within = contextlib.nullcontext() if looks % 4 == 0 else None
    told = "stopped and saved" if within else "stopped in epoch 2, which will be repeated"
    with stop_asked(looks), pytest.raises(Stopped, match=told):
        run(tmp_path / "run")
    assert run(tmp_path / "run", resume=True) == straight[1]
    arrays, meta = load_weights(tmp_path / "run" / "checkpoints")
    expected, _ = load_weights(straight[0] / "checkpoints")
    np.testing.assert_equal(arrays, expected)
    assert (meta["counters"]["episodes"], meta["counters"]["episodes_cut"]) == (3, 3)


def test_a_stop_within_an_epoch_loses_no_epoch_that_was_finished(straight, tmp_path, caplog):
    rare = {"checkpoint_every": 50}
    with stop_asked(6), pytest.raises(Stopped, match="stopped and saved after 30 steps"):
        run(tmp_path / "run", **rare)
    told = [each.getMessage() for each in caplog.records if "finished first" in each.getMessage()]
    assert told == ["to stop, epoch 2 is finished first: then it can be saved"]
    assert run(tmp_path / "run", resume=True, **rare) == straight[1]
    with stop_asked(2), pytest.raises(Stopped, match="stopped in epoch 1, which will be repeated"):
        run(tmp_path / "other", **rare)  # nothing is lost but this epoch


@pytest.mark.parametrize(("random_steps", "update_after"), [(10, 10), (0, 10), (10, 4)])
def test_updates_begin_after_random_steps_or_others_whichever_are_more(random_steps, update_after):
    collect = CollectConfig(
        steps=1, random_steps=random_steps, update_after=update_after, updates_per_step=1.0
    )
    trainer = build_trainer(replace(CONFIG, collect=collect, cycles=16, updates=1), Communicator())
    done, moved = [], []
    start = trainer.shared()["parameters/actor/hidden_0/kernel"]
    for _ in range(13):
        trainer.run_cycle()
        done.append(trainer.counters.updates)
        moved.append(
            not np.array_equal(trainer.weights()["parameters/actor/hidden_0/kernel"], start)
        )
    assert done == [0] * 10 + [1, 2, 3]  # none is made up for
    assert moved == [False] * 10 + [True] * 3


def test_updates_of_whole_cycles_begin_after_as_many_steps(tmp_path):
    collect = CollectConfig(update_after=17)
    rows = run(tmp_path / "run", collect=collect, epochs=1)  # cycles of an episode of 8 steps
    assert (column(rows, "time/env_steps"), column(rows, "time/updates")) == ([3 * 8], [4])
    assert "time/episodes_cut" not in rows[-1]  # nothing could be cut


def test_evaluation_can_go_by_episodes(tmp_path):
    rows = run(tmp_path / "run", evaluation=EvaluationConfig(episodes=1, every_episodes=2))
    assert column(rows, "eval/length") == [None, 8, 8]  # the last epoch in any case


@pytest.mark.parametrize("ends", [{"epochs": 1}, {"max_minutes": 1e-9}], ids=str)
def test_the_last_epoch_is_evaluated_which_a_resumed_run_forgets(tmp_path, ends):
    rare = {"evaluation": EvaluationConfig(episodes=2, every=2)}
    whole = run(tmp_path / "whole", **rare)
    assert column(whole, "eval/length") == [None, 8, 8]
    first = run(tmp_path / "half", **rare, **ends)
    assert column(first, "eval/length") == [8]
    assert run(tmp_path / "half", resume=True, **rare) == whole
    arrays, meta = load_weights(tmp_path / "half" / "checkpoints")
    expected, straight = load_weights(tmp_path / "whole" / "checkpoints")
    np.testing.assert_equal(arrays, expected)
    assert set(meta["unevaluated"]) == set(straight["unevaluated"])


def test_a_run_says_at_its_start_what_its_epochs_cut(tmp_path, capfd):
    run(tmp_path / "cut", epochs=1)
    told = "an epoch has 15 steps of each environment, an episode up to 8: one that is open"
    assert told in capfd.readouterr().out
    run(tmp_path / "whole", epochs=1, cycles=8)
    assert "an episode up to" not in capfd.readouterr().out


def test_a_policy_without_goals_acts_on_observations_alone(straight):
    policy = load_policy(straight[0], env_id=COUNTING)
    assert policy.act(np.zeros(2)).shape == (1,)
    with pytest.raises(ValueError, match=r"has no goals; leave goal= out"):
        policy.act(np.zeros(2), goal=[0.0])


@cases(
    ("changes", "told"),
    ({"replay": ReplayConfig(relabel_k=4.0)}, "^--env-id: hindsight needs goals, and .* has none"),
    ({"replay": ReplayConfig(draw="episodes")}, "collect.steps: replay.draw episodes needs whole"),
    ({"env_id": "music_tf/PointReach-v0", "replay": ReplayConfig(relabel_k=4.0)}, "collect.steps"),
    (ABSORBED, "needs whole episodes"),
    (ABSORBED | RING_OF_WHOLE, r"forgets which object was lost\nuse .*-object continue$"),
)
def test_what_needs_goals_or_whole_episodes_is_refused(changes, told):
    with pytest.raises(UsageError, match=told):
        build_trainer(replace(CONFIG, **changes), Communicator())


def test_a_run_goes_on_without_its_replay_and_its_discriminator_rests_first(tmp_path):
    terms = recipes.resolve("sac_diayn", "laptop", COUNTING).rewards
    config = replace(CONFIG, rewards=terms, skills=2, cycles=4)
    config = with_fields(config, {"skill.hidden_sizes": (8,), "skill.resume_rows": 30})
    weights = []
    for epochs, changes in ((2, {}), (3, {"without_replay": True}), (4, {})):
        own = replace(config, epochs=epochs)
        if changes:  # which needs no file of replay
            shutil.rmtree(tmp_path / "checkpoints" / "replay")
        run_session(command_of(own, tmp_path, epochs > 2, recipe="sac_diayn", **changes))
        weights.append(load_weights(tmp_path / "checkpoints")[0])
    assert column(rows_of(tmp_path), "time/env_steps") == [20, 40, 60, 80]
    for name, rests in (
        ("parameters/discriminator/hidden_0/kernel", True),
        ("parameters/actor/hidden_0/kernel", False),
    ):
        moved = [np.abs(after[name] - before[name]).max() for before, after in pairwise(weights)]
        # ten steps or less are left in Adam's moments, and fewer after the second resume
        assert (moved[1] < 0.4 * moved[0]) == rests
        assert min(moved) > 0.0
