import pathlib
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
from music_tf.storage.run_paths import agents
from music_tf.tools import adaptation_pictures
from tests.kit.cases import cases
from tests.kit.saved_run import load_weights, save_run
from tests.kit.started import music_tf, python


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


def test_recipes_and_agents_have_a_line_of_eighty_letters_each_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run_verb(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = dict(line.split(maxsplit=1) for line in lines[1:-1] if line != "agents:")
    assert list(shown) == [*recipes.names(), *agents()]
    assert [name for name in recipes.names() if shown[name] != recipes.describe(name)] == []
    assert [name for name, about in agents().items() if shown[name][:-1] not in about["does"]] == []


def test_a_checker_explains_no_option_of_controllers_and_changing_worlds(capsys):
    assert run_verb(["check-env", "--help"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  --")]
    options = ["--env.max-episode-steps", "--env.kwargs  (default: {})"]
    assert shown == [f"  {line}" for line in (*options, "--env.remake  (default: False)")]


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


def stand_in_for_film(monkeypatch):
    """Replaces the module that films, and returns the list of its calls."""
    calls = []
    stub = types.ModuleType("music_tf.tools.film")
    stub.play = stub.show = lambda *arguments, **named: calls.append((arguments, named))
    stub.Aim = lambda *aim: ("to", *aim)
    monkeypatch.setitem(sys.modules, stub.__name__, stub)
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


def test_evaluate_passes_its_options_on(stored_run, monkeypatch):
    calls = stand_in_for_evaluation(monkeypatch)
    stub = types.ModuleType("music_tf.tools.export")
    stub.exporter = lambda npz, minari: ("exporter", npz, minari)
    monkeypatch.setitem(sys.modules, stub.__name__, stub)
    words = ["--episodes", "7", "--zero-shot", "--out", "a.npz", "--minari", "push/music-v0"]
    broken = '{"broken_joint": 1}'
    assert run_verb(["evaluate", "latest", *words, "--env.kwargs", broken, "--stage", "1"]) == 0
    assert run_verb(["evaluate", str(stored_run), "--full", "--overwrite"]) == 0
    extras, written = inspection.ExtraMeasures, ("exporter", pathlib.Path("a.npz"), "push/music-v0")
    assert calls == [
        (
            ((stored_run.resolve(), None, broken, "1"), 7),
            {"export": written, "extras": extras(zero_shot=True)},
        ),
        (
            ((stored_run, None, "", "now"), None),
            {"export": ("exporter", None, None), "extras": extras(full=True, overwrite=True)},
        ),
    ]


def test_play_passes_its_options_on(stored_run, monkeypatch):
    calls = stand_in_for_film(monkeypatch)
    for words in (
        "",
        "--episodes 2 --skill 3 --out a.gif --env-id mine:Task-v0 --stage 1",
        "--reach -1.5 2",
        "--zero-shot",
        "--path a.csv",
        "--path circle --env.max-episode-steps 7",
        "--strip a.png --episode 3 --frames 4 --skill 1,0",
        "--live --episodes 1",
    ):
        assert run_verb(["play", str(stored_run), *words.split()]) == 0
    film, plain = (
        stored_run / "videos/policy.mp4",
        {"stage": "learned", "env_overrides": "", "beside": ""},
    )
    longer = [plain | {"env_overrides": f'{{"max_episode_steps": {steps}}}'} for steps in (150, 7)]
    gif, png = pathlib.Path("a.gif"), pathlib.Path("a.png")
    assert calls == [
        ((stored_run, film, range(4), [], 6, None), plain),
        ((stored_run, gif, range(2), [3], 6, "mine:Task-v0"), plain | {"stage": "1"}),
        ((stored_run, film, range(4), ("to", (-1.5, 2.0), ""), 6, None), plain),
        ((stored_run, film, range(4), ("to", (), ""), 6, None), plain),
        ((stored_run, film, range(4), ("to", (), "a.csv"), 6, None), longer[0]),
        ((stored_run, film, range(4), ("to", (), "circle"), 6, None), longer[1]),
        ((stored_run, png, range(2, 3), [1, 0], 4, None), plain),
        ((stored_run, range(1), [], None), {"stage": "learned", "env_overrides": ""}),
    ]
    for place, text in (
        ("nan 1", r"numbers .* got \(nan, 1.0\)"),
        ("", "where .* no number"),
    ):
        with pytest.raises(UsageError, match=f"--reach: expected {text}"):
            run_verb(["play", str(stored_run), "--reach", *place.split()])


def test_evaluate_exports_weights_that_a_run_can_start_from(tmp_path, monkeypatch, capsys):
    calls = stand_in_for_evaluation(monkeypatch)
    save_run(tmp_path / "run", "sac_metra")
    folder, out = str(tmp_path / "weights"), str(tmp_path / "a.npz")
    words = ["evaluate", str(tmp_path / "run"), "--export", folder, "--parts"]
    assert run_verb([*words, "actor,normalizer"]) == 0
    assert f"written: {folder}\n" in capsys.readouterr().out
    assert calls == []  # an export alone measures nothing
    run, (_, meta) = read_run(tmp_path / "run"), load_weights(tmp_path / "weights")
    facts = [run.recipe, run.config.env_id, run.config.seed]
    assert [meta[key] for key in ("recipe", "env_id", "seed")] == facts
    policy = load_policy(tmp_path / "run")  # whose embedding goes along, for places to reach
    state, place = np.ones(policy.observation_dim), [1.0, -2.0]
    exported = load_policy(tmp_path / "weights").act(state, reach=place)
    np.testing.assert_array_equal(exported, policy.act(state, reach=place))
    others = (["--full"], ["--out", out], ["--overwrite"], ["--stage", "0"])
    for number, other in enumerate(others, 1):
        assert run_verb([*words, "actor", *other]) == 0
        assert len(calls) == number
    arrays, _ = load_weights(tmp_path / "weights")
    assert {name.rsplit("/", 2)[0] for name in arrays} == {"parameters/actor"}
    with pytest.raises(UsageError, match="did you mean actor"):
        run_verb([*words, "acter"])


@cases(
    ("cure", "warning", "code", "shown"),
    ("", False, 0, "ok    reward          is -1\n"),
    ("mend it", True, 0, "warn  reward          is -1\n"),
    ("mend it", False, 3, "FAIL  reward          is -1\n"),
)
def test_check_env_shows_findings_and_their_cures(cure, warning, code, shown, monkeypatch, capsys):
    module = types.ModuleType("music_tf.tools.check_env")
    found = Finding("is -1\nin all steps", cure, warning=warning, name="reward")
    module.check_environment = lambda env_id, settings: [found]
    monkeypatch.setitem(sys.modules, "music_tf.tools.check_env", module)
    assert run_verb(["check-env", "FetchPush-v4"]) == code
    more = f"      cure:  {cure}\n" if cure else ""
    assert capsys.readouterr().out == f"{shown}{'':22}in all steps\n{more}"
