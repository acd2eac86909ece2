import os
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

from music_tf import __version__, recipes
from music_tf.cli import VERBS, help_text, run_verb
from music_tf.cli.exits import guarded
from music_tf.envs import lockstep
from music_tf.errors import Finding, UsageError
from music_tf.reading.stored import read_run
from music_tf.runs import inspection, loaded_run
from music_tf.storage.loading import load_policy
from music_tf.tools import adaptation_pictures
from tests.kit.cases import cases
from tests.kit.saved_run import load_weights, save_run, small_config, write_config
from tests.kit.started import ROOT, music_tf, python


def test_help_lists_and_explains_every_verb_and_loads_nothing_heavy():
    lines = [["help"], ["-h"], *([verb, "--help"] for verb in VERBS)]
    code = (
        "import sys\n"
        "from music_tf.cli import run_verb\n"
        f"for words in {lines}:\n"
        "    assert run_verb(words) == 0, words\n"
        "heavy = ('numpy', 'tensorflow', 'mpi4py', 'gymnasium', 'rich')\n"
        "sys.stderr.write(str([m for m in heavy if m in sys.modules]))"
    )
    done = python(code)
    assert done.stderr == "[]"
    assert done.stdout.startswith(2 * help_text())
    assert [verb for verb in VERBS if f"\n  {verb} " not in help_text()] == []
    assert [verb for verb in VERBS if f"music-tf {verb}" not in done.stdout] == []


def test_the_version_is_shown_and_recipes_are_one_name_a_line_off_a_terminal():
    assert music_tf("--version") == (0, f"music-tf {__version__}\n", "")
    assert music_tf("recipes") == (0, "".join(f"{name}\n" for name in recipes.names()), "")


def test_recipes_are_a_table_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    assert run_verb(["recipes"]) == 0
    output = capsys.readouterr().out
    assert [name for name in recipes.names() if recipes.describe(name) not in output] == []
    assert "laptop, paper" in output
    assert "1, -" in output  # sac_disk has no preset paper


def test_a_reader_that_closes_the_pipe_is_no_fault():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "music_tf", "recipes"],
        cwd=ROOT,
        check=False,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_while_environments_are_made_ends_75_without_a_file(tmp_path, monkeypatch, capsys):
    def interrupted(env_id, settings):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    save_run(tmp_path / "run", skills=3)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(lockstep, "make_environment", interrupted)
    assert guarded(lambda: run_verb(["evaluate", "run"])) == 75
    assert guarded(lambda: run_verb(["play", "run", "--out", "film.gif"])) == 75
    assert "Traceback" not in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def stored_run(tmp_path):
    run = tmp_path / "runs" / "run"
    run.mkdir(parents=True)
    (run / "config.json").write_text("{}")
    (tmp_path / "runs" / "latest").symlink_to("run")
    return run


def stand_in(monkeypatch, module, name):
    """Replaces a function that a verb imports late, and returns the list of its calls."""
    calls = []
    stub = types.ModuleType(module)
    setattr(stub, name, lambda *arguments, **named: calls.append((arguments, named)))
    monkeypatch.setitem(sys.modules, module, stub)
    for variable in ("KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    return calls


def stand_in_for_evaluation(monkeypatch):
    """Replaces loading, which then says what it was asked for, and evaluating."""
    calls = []

    def load(run, env_id, env_overrides, stage):
        return run, env_id, env_overrides, stage

    def evaluate(*arguments, export, extras, draw):
        assert draw is adaptation_pictures.draw_visits
        calls.append((arguments, {"export": export, "extras": extras}))

    monkeypatch.setattr(loaded_run, "load_run", load)
    monkeypatch.setattr(loaded_run, "visiting", lambda loaded, parts, explore: loaded)
    monkeypatch.setattr(inspection, "evaluate_run", evaluate)
    for variable in ("KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    return calls


@pytest.mark.parametrize("allowed", [[], ["--allow-import"]], ids=["closed", "allowed"])
def test_another_environment_than_that_of_the_run_is_refused(tmp_path, allowed):
    write_config(tmp_path, small_config())
    words = ["evaluate", str(tmp_path), "--env-id", "FetchReach-v4", *allowed]
    with pytest.raises(UsageError, match=r"^--env-id: the run was trained on .*, got 'FetchReach"):
        run_verb(words)


def test_evaluate_finds_the_latest_run(stored_run, monkeypatch):
    calls = stand_in_for_evaluation(monkeypatch)
    stub = types.ModuleType("music_tf.tools.export")
    stub.exporter = lambda npz, minari: ("exporter", npz, minari)
    monkeypatch.setitem(sys.modules, "music_tf.tools.export", stub)
    none, latest = ("exporter", None, None), stored_run.resolve()
    written = ("exporter", pathlib.Path("a.npz"), "push/music-v0")
    episodes = [str(stored_run), "--episodes", "7"]
    files = [str(stored_run), "--full", "--out", "a.npz", "--minari", "push/music-v0"]
    broken, plain = '{"broken_joint": 1}', inspection.ExtraMeasures()
    full, goals = plain._replace(full=True), plain._replace(zero_shot=True)
    for words, loaded, count, export, extras in (
        (["latest"], (latest, None, "", "now"), None, none, plain),
        (episodes, (stored_run, None, "", "now"), 7, none, plain),
        (files, (stored_run, None, "", "now"), None, written, full),
        (["latest", "--env.kwargs", "{}"], (latest, None, "", "now"), None, none, plain),
        (["latest", "--env.kwargs", broken], (latest, None, broken, "now"), None, none, plain),
        (["latest", "--stage", "1"], (latest, None, "", "1"), None, none, plain),
        (["latest", "--zero-shot"], (latest, None, "", "now"), None, none, goals),
    ):
        assert run_verb(["evaluate", *words]) == 0
        assert calls[-1] == ((loaded, count), {"export": export, "extras": extras})


def test_play_passes_its_options_on(stored_run, monkeypatch):
    calls = stand_in(monkeypatch, "music_tf.tools.film", "play")
    words = ["--episodes", "2", "--skill", "3", "--out", "a.gif", "--env-id", "mine:Task-v0"]
    assert run_verb(["play", str(stored_run)]) == 0
    assert run_verb(["play", str(stored_run), *words, "--stage", "1"]) == 0
    sys.modules["music_tf.tools.film"].Aim = lambda *aim: ("to", *aim)
    with pytest.raises(UsageError, match=r"--reach: expected numbers in .* got \(nan, 1.0\)"):
        run_verb(["play", str(stored_run), "--reach", "nan", "1"])
    with pytest.raises(UsageError, match=r"--reach: expected where to go, .* got no number"):
        run_verb(["play", str(stored_run), "--reach"])
    for where in (["--reach", "-1.5", "2"], ["--zero-shot"], ["--path", "a.csv"]):
        assert run_verb(["play", str(stored_run), *where]) == 0
    others = ["--env.max-episode-steps", "7", "--env.kwargs", '{"mass": 2}']
    assert run_verb(["play", str(stored_run), "--path", "circle", *others]) == 0
    default, plain = stored_run / "videos" / "policy.mp4", {"stage": "learned", "env_overrides": ""}
    longer = [
        plain | {"env_overrides": f'{{{of}"max_episode_steps": {steps}}}'}
        for of, steps in (("", 150), ('"mass": 2, ', 7))
    ]
    assert calls == [
        ((stored_run, default, range(4), [], 6, None), plain),
        (
            (stored_run, pathlib.Path("a.gif"), range(2), [3], 6, "mine:Task-v0"),
            plain | {"stage": "1"},
        ),
        ((stored_run, default, range(4), ("to", (-1.5, 2.0), ""), 6, None), plain),
        ((stored_run, default, range(4), ("to", (), ""), 6, None), plain),
        ((stored_run, default, range(4), ("to", (), "a.csv"), 6, None), longer[0]),
        ((stored_run, default, range(4), ("to", (), "circle"), 6, None), longer[1]),
    ]


def test_evaluate_exports_weights_that_a_run_can_start_from(tmp_path, monkeypatch, capsys):
    calls = stand_in_for_evaluation(monkeypatch)
    save_run(tmp_path / "run")
    folder = str(tmp_path / "weights")
    words = ["evaluate", str(tmp_path / "run"), "--export", folder, "--parts", "actor,normalizer"]
    assert run_verb(words) == 0
    assert f"written: {folder}\n" in capsys.readouterr().out
    assert calls == []  # an export alone measures nothing
    out = str(tmp_path / "a.npz")
    others = ["--episodes", "3"], ["--full"], ["--zero-shot"], ["--out", out], ["--overwrite"]
    for number, other in enumerate(others, 1):
        assert run_verb([*words, *other]) == 0
        assert len(calls) == number
    arrays, meta = load_weights(tmp_path / "weights")
    run = read_run(tmp_path / "run")
    facts = [run.recipe, run.config.env_id, run.config.seed]
    assert [meta[key] for key in ("recipe", "env_id", "seed")] == facts
    assert {name.rsplit("/", 2)[0] for name in arrays} == {"parameters/actor", "normalizer"}
    with pytest.raises(UsageError, match="did you mean actor"):
        run_verb([*words[:-1], "acter"])


def test_an_embedding_is_exported_with_what_acts_so_that_it_still_leads_to_places(
    tmp_path, monkeypatch
):
    stand_in_for_evaluation(monkeypatch)
    save_run(tmp_path / "run", "sac_metra")
    words = ["evaluate", str(tmp_path / "run"), "--export", str(tmp_path / "weights"), "--parts"]
    assert run_verb([*words, "actor,normalizer"]) == 0
    policy = load_policy(tmp_path / "run")
    state, place = np.ones(policy.observation_dim), [1.0, -2.0]
    found = load_policy(tmp_path / "weights").act(state, reach=place)
    np.testing.assert_array_equal(found, policy.act(state, reach=place))
    assert run_verb([*words, "actor"]) == 0
    arrays, _ = load_weights(tmp_path / "weights")
    assert {name.rsplit("/", 2)[0] for name in arrays} == {"parameters/actor"}


def test_a_strip_takes_the_place_of_a_film(stored_run, monkeypatch):
    calls = stand_in(monkeypatch, "music_tf.tools.film", "play")
    words = ["play", str(stored_run), "--strip", "a.png"]
    assert run_verb(words) == 0
    assert run_verb([*words, "--episode", "3", "--frames", "4", "--skill", "1,0"]) == 0
    place = pathlib.Path("a.png")
    assert [arguments for arguments, _ in calls] == [
        (stored_run, place, range(1), [], 6, None),
        (stored_run, place, range(2, 3), [1, 0], 4, None),
    ]


@cases(
    ("cure", "warning", "code", "shown"),
    ("", False, 0, "ok    reward  is -1\n              in all steps\n"),
    ("mend it", True, 0, "warn  reward  is -1\n              in all steps\n"),
    ("mend it", False, 3, "FAIL  reward  is -1\n              in all steps\n"),
)
def test_check_env_shows_findings_and_their_cures(cure, warning, code, shown, monkeypatch, capsys):
    module = types.ModuleType("music_tf.tools.check_env")
    found = Finding("is -1\nin all steps", cure, warning=warning, name="reward")
    module.check_environment = lambda env_id, settings: [found]
    monkeypatch.setitem(sys.modules, "music_tf.tools.check_env", module)
    assert run_verb(["check-env", "FetchPush-v4"]) == code
    output = capsys.readouterr().out
    assert output.startswith(shown)
    assert output[len(shown) :] == (f"{'':14}cure: {cure}\n" if cure else "")
