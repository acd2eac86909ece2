"""A run that adapts to tasks, from its first line to what is said of it and done with it."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from music_tf.cli import main
from music_tf.config.world import _TRUSTED, trust
from music_tf.errors import ModuleNotAllowed, UsageError
from music_tf.networks import own_encoder as own_encoder_module
from music_tf.runs.adapting import adaptation_rows, measure_adaptation
from music_tf.runs.inspection import ExtraMeasures, evaluate_run
from music_tf.runs.loaded_run import load_run
from music_tf.storage.loading import load_policy
from music_tf.storage.policy import AdaptivePolicy
from music_tf.storage.results import read_metrics
from music_tf.storage.run_directory import CONFIG_NAME
from music_tf.training import adaptation as adaptation_module
from tests.kit import encoders
from tests.kit.cases import cases
from tests.kit.pearl import small
from tests.kit.saved_run import save_run
from tests.kit.sessions import command_of, run_session
from tests.kit.warm import try_warm_start

WORDS = {"recipe": "sac_pearl", "arguments": ("sac_pearl",)}
OWN = f"{encoders.HERE}:pooled"


def trained(path, **changes):
    run_session(command_of(small(**changes), path, **WORDS))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("adapting") / "run")


def exit_code(words):  # what a command line ends with
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code


def recorded(run):
    return json.loads((run / CONFIG_NAME).read_text())


def test_a_run_records_its_tasks_and_what_adapting_brings(run):
    tasks = recorded(run)["tasks"]
    assert [np.shape(tasks[part]) for part in ("train", "test")] == [(6, 2), (3, 2)]
    row = read_metrics(run, 2)
    for name in ("prior", "1", "2", "last"):
        assert row[f"adapt/return_{name}"] < 0.0
        assert 0.0 <= row[f"adapt/success_{name}"] <= 1.0
    assert row["eval/return"] == row["adapt/return_last"]
    assert row["adapt/train_return"] < 0.0
    assert row["pearl/kl"] > 0.0
    assert set(json.loads((run / "summary.json").read_text())["evaluation"]) == {"ours", "random"}
    # the first cycle: three tasks, two episodes, two workers; then three episodes of each
    assert (row["time/episodes"], row["time/updates"]) == (3 * 2 * 2 + 3 * 3 * 2, 12)


@pytest.mark.thorough
@cases(
    "changes",
    {},
    {"normalizer__running": True, "agent__context_reward_scale": 10.0},
    {"tasks__visits": 2},
    ids=["raw", "scaled", "visits"],
)
def test_a_resumed_run_is_the_run_that_was_never_stopped(run, tmp_path, changes):
    whole = trained(tmp_path / "whole", **changes) if changes else run
    half, heard = trained(tmp_path / "half", epochs=1, **changes), []
    hearing = SimpleNamespace(on_evaluation=heard.append)
    run_session(command_of(small(**changes), half, resume=True, **WORDS), callbacks=[hearing])
    for part in ("weights", "encoder"):
        one, other = (getattr(load_policy(path).snapshot, part) for path in (whole, half))
        assert one
        np.testing.assert_equal(other, one)
    one, other = (read_metrics(path, 2) for path in (whole, half))
    timed = ("time/fps", "time/updates_per_second", "time/elapsed_s", "time/wall_s")
    for name in set(one) - set(timed):
        assert one[name] == other[name], name
    (adapted,) = heard  # callbacks hear how it adapts, and change nothing
    assert (adapted.test.returns.shape, adapted.train.returns.shape) == ((3, 2, 3), (6, 2, 3))
    assert adapted.test.returns[..., -1].mean() == other["adapt/return_last"]


@pytest.mark.thorough
def test_a_run_goes_on_without_its_replay_by_visiting_every_task_anew_and_no_others(tmp_path):
    half = trained(tmp_path / "half", epochs=1)
    run_session(command_of(small(), half, resume=True, without_replay=True, **WORDS))
    assert read_metrics(half, 2)["time/episodes"] == 2 * (3 * 2 * 2 + 3 * 2)
    record = recorded(half)
    record["tasks"]["test"][0][0] += 0.5
    (half / CONFIG_NAME).write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"holds other tasks than music_tf/PointRobot-v0 draws"):
        run_session(command_of(small(), half, resume=True, **WORDS))


@pytest.mark.thorough
def test_bodies_are_recorded_exponent_by_exponent_and_a_resume_plays_in_the_same(tmp_path):
    bodies = {"env_id": "music_tf/HopperBodies-v0", "agent__context_next_observation": True}
    half = trained(tmp_path / "half", epochs=1, **bodies)
    tasks = recorded(half)["tasks"]
    assert [np.shape(tasks[part]) for part in ("train", "test")] == [(6, 34), (3, 34)]
    run_session(command_of(small(**bodies), half, resume=True, **WORDS))
    assert recorded(half)["tasks"] == tasks


@pytest.mark.thorough
def test_an_evaluation_says_how_each_task_is_learned_and_what_stands_beside_it(run):
    result = evaluate_run(load_run(run), 2, extras=ExtraMeasures(full=True), shown=False)
    assert json.loads((run / "evaluation.json").read_text())["adaptation"] == result["adaptation"]
    found = result["adaptation"]
    tasks = recorded(run)["tasks"]
    for part in ("test", "train"):
        assert [row["task"] for row in found[part]["tasks"]] == tasks[part]
        returns = np.array([row["returns"] for row in found[part]["tasks"]])
        assert returns.shape == (len(tasks[part]), 3)
        np.testing.assert_allclose(found[part]["returns"], returns.mean(axis=0))
        errors = returns.std(axis=0, ddof=1) / np.sqrt(len(returns))
        np.testing.assert_allclose(found[part]["standard_errors"], errors, rtol=1e-6)
    assert (found["leak"], set(found["probe_r2"])) == (0.0, {"2", "3"})
    assert result["policies"]["ours"]["eval/return"] == pytest.approx(found["test"]["returns"][-1])
    ours, random = (result["policies"][name] for name in ("ours", "random"))
    assert ours["adapt/return_prior"] == pytest.approx(found["test"]["returns"][0])
    assert ours["adapt/probe_r2"] == found["probe_r2"]["2"]
    for seen, name in enumerate(("prior", "1", "last")):
        assert random[f"adapt/return_{name}"] == pytest.approx(found["test"]["random"][seen])
    rows = adaptation_rows(found, "test")
    assert (len(rows), list(rows["mean"])) == (5, ["0", "1", "2", "random"])
    assert rows["mean"]["2"] == found["test"]["returns"][2]
    assert rows["mean"]["random"] == found["test"]["random"][2]


@pytest.mark.thorough
def test_steps_of_another_task_in_a_context_are_found_as_a_leak(run, monkeypatch):
    loaded, of_row = load_run(run), adaptation_module.context_of
    monkeypatch.setattr(adaptation_module, "context_of", lambda *given: of_row(*given[:-1], 0))
    found, _ = measure_adaptation(loaded.adaptation, loaded.agent, 2, full=True)
    assert found["leak"] > 0.0


def evaluated(run, words):  # what `evaluate` writes
    assert exit_code(["evaluate", str(run), "--episodes", "1", *words.split()]) == 0
    return json.loads(
        (run / f"evaluation{words.replace(' --', '_').replace(' ', '_')}.json").read_text()
    )


@pytest.mark.thorough
def test_one_kind_of_tasks_is_visited_where_it_is_asked_for_and_explored_as_long(run):
    found = evaluated(run, " --tasks train --explore 3")
    adaptation, ours = found["adaptation"], found["policies"]["ours"]
    assert "test" not in adaptation
    assert adaptation["explored"] == 3
    assert [len(row["returns"]) for row in adaptation["train"]["tasks"]] == [5] * 6
    assert ours["adapt/return_last"] == pytest.approx(adaptation["train"]["returns"][4])
    assert "adapt/return_1" not in ours  # still explores
    assert "adapt/probe_r2" not in ours
    assert set(evaluated(run, " --tasks test")["adaptation"]) == {"visits", "explored", "test"}


@cases(
    ("words", "text"),
    ("evaluate {run} --full --tasks test", "expected --tasks both, got test"),
    ("evaluate {run} --tasks all", "got 'all'"),
    ("evaluate {run} --explore 0", "expected a whole number in [1, 10000]"),
    ("evaluate {run} --out {new}.npz", "episodes of a visit depend on each other"),
    ("evaluate {skilled} --explore 2", "expected a run that adapts to tasks, got one of"),
    ("skills {run}", "adapts to tasks how well: music-tf evaluate {run}"),
    ("train sac_pearl --agent.encoder rnn", "mlp, gru, lstm or module:function"),
    ("train sac_pearl --agent.encoder a:b --learners 1", "no TensorFlow, which a:b needs"),
)
def test_impossible_visits_are_refused_and_nothing_is_written(run, tmp_path, capsys, words, text):
    places = {"run": run, "new": tmp_path / "new", "skilled": tmp_path / "skilled"}
    if "{skilled}" in words:
        save_run(places["skilled"])
    before = sorted((*run.rglob("*"), *tmp_path.rglob("*")))
    assert exit_code(words.format(**places).split()) == 2
    assert text.format(**places) in " ".join(capsys.readouterr().err.split())
    assert sorted((*run.rglob("*"), *tmp_path.rglob("*"))) == before


@pytest.mark.thorough
def test_an_exported_agent_visits_the_tasks_of_its_run(run, tmp_path):
    moved = tmp_path / "run"
    shutil.copytree(run, moved)
    record = recorded(moved)
    record["tasks"]["test"][0] = [0.25, -0.5]  # another draw than that of the seed
    (moved / CONFIG_NAME).write_text(json.dumps(record))
    folder = str(tmp_path / "weights")
    words = ["--export", folder, "--parts", "actor,encoder,normalizer", "--episodes", "1"]
    assert exit_code(["evaluate", str(moved), *words]) == 0
    loaded = load_run(tmp_path / "weights")
    loaded.envs.close()
    assert loaded.adaptation.tasks.record() == record["tasks"]


def episodes(count=2, steps=5):
    g = np.random.default_rng(0)

    return [
        (g.normal(size=(steps + 1, 2)), g.uniform(-1.0, 1.0, (steps, 2)), g.normal(size=steps))
        for _ in range(count)
    ]


def test_a_saved_policy_explores_adapts_and_forgets(run):
    agent = load_policy(run)
    assert isinstance(agent, AdaptivePolicy)
    first, second = (agent.begin_episode(seed) for seed in (1, 2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(agent.begin_episode(1), first)
    state = np.float32([0.3, -0.2])
    action = agent.act(state)
    np.testing.assert_array_equal(agent.act(state), action)  # deterministic
    given = agent.snapshot.act(state[None], np.zeros([1, 0], np.float32), first[None], None)
    np.testing.assert_array_equal(action, given[0])
    assert agent.act(np.stack([state, state])).shape == (2, 2)

    seen = episodes(2)
    assert agent.adapt(seen[:1]) is agent
    assert agent.context.shape == (5, 5)
    agent.adapt(seen[1:])
    np.testing.assert_array_equal(agent.belief.mean, agent.exploration().adapt(seen).belief.mean)
    assert (agent.belief.variance < 1.0).all()
    fresh = agent.exploration()
    assert fresh.belief.mean.tolist() == [0.0] * 3
    assert (fresh.context.shape, agent.context.shape) == ((0, 5), (10, 5))
    agent.reset()
    assert agent.belief.variance.tolist() == [1.0] * 3
    np.testing.assert_array_equal(agent.begin_episode(1), first)
    assert agent.sizes("encoder") == (5, 6)
    assert (agent.sizes("actor"), set(agent.networks())) == ((5, 2), {"actor", "encoder"})
    with pytest.raises(ValueError, match="expected actor or encoder, got 'critic'"):
        agent.sizes("critic")
    with pytest.raises(ValueError, match="leave skill= out"):  # it infers its condition
        agent.act([0.0, 0.0], skill=[0.0, 0.0, 0.0])


@cases(
    ("given", "text"),
    ([], "episodes: expected at least one, got none"),
    (5, "episodes: expected a list, got 5"),
    (episodes()[0], "expected observations, actions and rewards of each, got 6 in a ndarray"),
    ([episodes()[0][:2]], "expected observations, actions and rewards of each, got 2"),
    (
        [dict(zip(("observations", "actions", "rewards"), episodes()[0], strict=True))],
        "observations, actions and rewards of each, got 3 in a dict",
    ),
    ([(np.zeros((6, 3)), *episodes()[0][1:])], r"observations: expected numbers of shape \[2\]"),
    ([(np.zeros((5, 2)), *episodes()[0][1:])], r"T \+ 1 observations.*got 5, 5 and \[5\]"),
    ([(*episodes()[0][:1], np.full((5, 2), 2.0), np.zeros(5))], "actions within their bounds"),
    ([(*episodes()[0][:2], np.full(5, np.nan))], "finite rewards"),
    ([(*episodes()[0][:2], {})], r"rewards: expected numbers of shape \[T\], got {}"),
    ([(*episodes()[0][:2], np.full(5, 3e38))], "numbers as in training, these give no belief"),
    ([(np.zeros((1, 2)), np.zeros((0, 2)), [])], "at least one step, got 1, 0 and"),
)
def test_episodes_that_do_not_fit_are_refused(run, given, text):
    agent = load_policy(run)
    with pytest.raises(ValueError, match=text):
        agent.adapt(given)
    assert agent.context.shape == (0, 5)


def test_what_acts_and_infers_is_exported_together_or_says_what_it_lacks(run, tmp_path):
    agent = load_policy(run)
    for parts in ("actor,encoder,normalizer", "actor,normalizer"):
        folder = str(tmp_path / parts)
        words = ["evaluate", str(run), "--episodes", "1", "--export", folder, "--parts", parts]
        assert exit_code(words) == 0
        other = load_policy(folder)
        np.testing.assert_equal(other.snapshot.weights, agent.snapshot.weights)
        if "encoder" in parts:
            found, expected = (one.exploration().adapt(episodes()) for one in (other, agent))
            np.testing.assert_array_equal(found.belief.mean, expected.belief.mean)
        else:
            with pytest.raises(ValueError, match="--parts actor,encoder,normalizer"):
                other.adapt(episodes())
            with pytest.raises(UsageError, match="--parts actor,encoder,normalizer"):
                load_run(tmp_path / parts)


@pytest.mark.thorough
@cases(
    "changes",
    {"agent__encoder": "lstm", "agent__context_chunk": 3, "replay__batch_size": 16},
    {"agent__encoder": OWN, "agent__posterior": "full", "tasks__resample_belief": "step"},
    ids=["lstm", "own"],
)
def test_other_encoders_train_resume_and_adapt_as_the_published_one(tmp_path, changes):
    trust([OWN])
    run = trained(tmp_path / "run", epochs=1, **changes)
    run_session(command_of(small(**changes), run, resume=True, **WORDS))
    row = read_metrics(run, 2)
    assert row["pearl/kl"] > 0.0
    assert np.isfinite(row["adapt/return_last"])
    agent = load_policy(run).adapt(episodes(3))
    assert not np.allclose(agent.belief.mean, load_policy(run).adapt(episodes(3)[:1]).belief.mean)
    assert agent.act([0.1, 0.2]).shape == (2,)
    found = evaluate_run(load_run(run), 1, extras=ExtraMeasures(full=True), shown=False)
    assert found["adaptation"]["leak"] == 0.0


@pytest.mark.thorough
def test_a_file_may_not_import_an_encoder_until_it_is_allowed(tmp_path):
    word = f"{encoders.HERE}:rowwise"
    trust([word])
    run = trained(tmp_path / "run", epochs=1, agent__encoder=word)
    _TRUSTED.discard(word)
    own_encoder_module._remembered.cache_clear()
    agent = load_policy(run)
    assert agent.act([0.1, 0.2]).shape == (2,)  # which needs no encoder
    with pytest.raises(ModuleNotAllowed, match=r"agent\.encoder: a file may not import a module"):
        agent.adapt(episodes(1))
    assert load_policy(run, allow_import=True).adapt(episodes(1)).belief.mean.any()


def test_a_run_begins_with_the_encoder_of_another_one_that_reads_the_same(run):
    config = small(rollouts=2, tasks__initial=1)
    found = try_warm_start(config, run / "checkpoints", ["actor", "encoder"]).arrays
    saved = load_policy(run).snapshot
    for name, weights in {**saved.weights, **saved.encoder}.items():
        np.testing.assert_array_equal(found[f"parameters/{name}"], weights)


@cases(
    "changes",
    {"agent__context_next_observation": True},
    {"agent__encoder": "gru"},
    {"agent__posterior": "full"},
    {"agent__context_reward_scale": 10.0},
    ids=["following", "gru", "full", "scaled"],
)
def test_an_encoder_that_reads_or_says_something_else_is_not_taken_over(run, changes):
    with pytest.raises(UsageError, match=r"encoder"):
        try_warm_start(small(**changes), run / "checkpoints", ["encoder"])
