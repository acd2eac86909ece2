"""What the pages under docs/ show is tried, and what they explain is what there is."""

import ast
import dataclasses
import json
import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import music_tf
from experiments import notebook
from experiments.tables import filled
from music_tf import recipes
from music_tf.cli import run_verb
from music_tf.config.fields import fields_of
from music_tf.config.settings import Config
from music_tf.config.terms import ENTROPY, reward_metrics
from music_tf.errors import EnvironmentFault, ModuleNotAllowed, UsageError
from music_tf.reading.command import parse_train
from music_tf.reading.stored import read_record
from music_tf.runs import session
from music_tf.storage.metrics import JUDGED, METRICS
from music_tf.storage.run_directory import link_latest
from tests.kit.pearl import CHANGES as SMALL_PEARL
from tests.kit.saved_run import save_run
from tests.kit.sessions import run_session
from tests.kit.small import OPTIONS

DOCS = Path(__file__).parents[1] / "docs"
VIEWING = (DOCS / "viewing.md").read_text(encoding="utf-8")
ACTING, _, ARCHIVE, MINARI = re.findall(r"^```python\n(.*?)^```", VIEWING, re.M | re.S)
FROM_PYTHON = re.findall(
    r"^```python\n(import .*?)^```", (DOCS / "python.md").read_text(encoding="utf-8"), re.M | re.S
)
OWN_TASKS = re.findall(
    r"^```python\n(# my_tasks.py\n.*?)^```",
    "".join(page.read_text("utf-8") for page in sorted(DOCS.glob("*.md"))),
    re.M | re.S,
)
NOTEBOOK = json.loads((DOCS / "quickstart.ipynb").read_text(encoding="utf-8"))
COMMANDS = re.findall(r"^music-tf (evaluate latest --ep.*)$", VIEWING, re.MULTILINE)
PAGES = [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.fixture
def pushing(tmp_path, monkeypatch):  # a folder with a small run of FetchPush as the latest one
    monkeypatch.chdir(tmp_path)
    for variable in ("OMP_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"):  # evaluate would leave them set
        monkeypatch.setenv(variable, "1")
    run = tmp_path / "runs" / "push"
    save_run(run, "ddpg_music", env_id="FetchPush-v4", rollouts=2)
    link_latest(run)
    return tmp_path


def evaluate(command):
    words = command.split()
    words[words.index("--episodes") + 1] = "2"
    assert run_verb(words) == 0


@pytest.mark.thorough
def test_the_example_of_a_policy_acts_for_an_episode(pushing):
    names = {}
    exec(ACTING, names)
    assert names["policy"].env_id == "FetchPush-v4"
    moved = (
        names["observation"]["observation"][:3]
        - names["environment"].unwrapped.initial_gripper_xpos
    )
    assert np.linalg.norm(moved) > 0.01


@pytest.mark.thorough
def test_the_example_of_an_archive_reads_what_evaluate_wrote_all_of_it_explained(pushing, capsys):
    evaluate(COMMANDS[0])
    names = {}
    exec(ARCHIVE, names)
    assert names["states_after_each_step"].shape == (50, 25)
    assert capsys.readouterr().out.splitlines()[-1].startswith("ddpg_music FetchPush-v4 ")
    with np.load("episodes.npz", allow_pickle=False) as archive:
        assert [name for name in archive if f"| `{name}` |" not in VIEWING] == []


@pytest.mark.thorough
def test_the_example_of_a_dataset_reads_what_evaluate_wrote(pushing, capsys, monkeypatch):
    pytest.importorskip("minari", reason="the extra 'minari' is not installed")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(pushing / "minari"))
    evaluate(COMMANDS[1])
    capsys.readouterr()
    exec(MINARI, {})
    shown = capsys.readouterr().out.splitlines()
    assert [line.startswith("(51, 25) (50, 4) ") for line in shown] == [True, True]


@pytest.mark.thorough
def test_the_example_of_tasks_of_ones_own_trains_and_is_judged_with_consent(
    own_modules, tmp_path, monkeypatch
):
    (own_tasks,) = OWN_TASKS
    own_modules(my_tasks=own_tasks)
    monkeypatch.chdir(tmp_path)
    small = [
        word
        for name, value in SMALL_PEARL.items()
        for word in (f"--{name.replace('_', '-')}", *map(str, np.ravel(value)))
    ]
    env_id = "my_tasks:me/Pendulums-v0"
    run_session(parse_train(["sac_pearl", "--env-id", env_id, *small, "--run-dir", "run"]))
    gravity = np.array(read_record(tmp_path / "run")["tasks"]["train"])
    assert gravity.shape == (6, 1)
    assert 5.0 <= gravity.min() < gravity.max() <= 15.0
    judge = ["evaluate", "run", "--episodes", "2"]
    with pytest.raises(ModuleNotAllowed, match="--allow-import"):
        run_verb(judge)
    assert run_verb([*judge, "--allow-import"]) == 0
    assert len(json.loads(Path("run/evaluation.json").read_text())["adaptation"]["test"]) > 0


@pytest.fixture
def small_training(tmp_path, monkeypatch):
    """Lets examples train for seconds: an epoch, and another one when a run goes on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    train, resume, compare = music_tf.train, music_tf.Run.resume, session.compare
    monkeypatch.setattr(session, "compare", lambda *given: compare(*given, 4))

    def trained(recipe, **options):
        if options["env_id"] == "Spot-v0":  # 50 updates, after 1000 random steps
            return train(recipe, **{**options, "cycles": 21})
        mistyped = options["env_id"] == "FetchPusch-v4"
        return train(recipe, **(options if mistyped else {**options, **OPTIONS, "epochs": 1}))

    def resumed(run, **options):
        return resume(run, **{**options, "epochs": 2})

    monkeypatch.setattr(music_tf, "train", trained)
    monkeypatch.setattr(music_tf.Run, "resume", resumed)
    yield tmp_path
    gymnasium.registry.pop("Spot-v0", None)


@pytest.mark.thorough
@pytest.mark.parametrize("example", FROM_PYTHON, ids=["film", "exit code", "callback"])
def test_the_examples_of_training_from_python_train(small_training, example):
    exec(example, {"__name__": "example"})
    assert (small_training / "push.gif").exists() == ("push.gif" in example)


@pytest.mark.thorough
def test_the_notebook_shows_what_its_cells_show_when_they_run(small_training):
    # If this fails: python -m experiments.notebook
    stored = [cell["outputs"] for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    shown = notebook.executed(notebook.sources(NOTEBOOK))
    assert [kinds(cell) for cell in shown] == [kinds(cell) for cell in stored]
    both = zip(shown, stored, strict=True)
    assert set().union(*(names(new) - names(old) for new, old in both)) == set()
    assert {"image/png", "text/html"} <= {kind for cell in stored for kind in kinds(cell)}
    told = "".join(line for cell in stored for line in lines_of(cell))
    assert re.findall(r"/tmp|/root|/home|/work|[Ww]arning|Traceback", told) == []
    assert (small_training / "push.gif").exists()


def test_a_cell_that_warns_is_not_stored():
    with pytest.raises(EnvironmentFault, match=r"cell 2 warns: beware"):
        notebook.executed(["import sys", "sys.stderr.write('beware')"])


def kinds(outputs):  # what a cell shows: `stdout`, or types of media
    return [kind for one in outputs for kind in (*one.get("data", ()), one.get("name")) if kind]


def lines_of(outputs):  # the lines of all texts that a cell shows
    texts = [one.get("text") or one["data"].get("text/plain", ()) for one in outputs]
    return [line for text in texts for line in text]


def names(outputs):
    """What a cell names: first words of lines, measures of an epoch, keys; environments none."""
    lines = [re.sub(r"\S*Push-v\d\S*", "ENV", line) for line in lines_of(outputs)]
    forms = (r"^\W*([\w/-]+)", r"  ([a-zA-Z(;) -]+) -?\d", r"'(\w+)'")
    return {name for line in lines for form in forms for name in re.findall(form, line)}


def test_every_function_that_a_page_names_is_there():
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md")))
    named = re.findall(r"`([\w/]+\.py): ([\w.]+)`", pages)
    package = DOCS.parent / "music_tf"
    sources = {path: (package / path).read_text(encoding="utf-8") for path, _ in named}
    assert [(path, name) for path, name in named if not _defines(sources[path], name)] == []


def _defines(source, name):  # whether a module defines a function, a class, or a method of a class
    owner, _, method = name.rpartition(".")
    scope = ast.parse(source).body
    if owner:
        (scope,) = [node.body for node in scope if getattr(node, "name", "") == owner]
    return method in [getattr(node, "name", "") for node in scope]


@pytest.fixture(scope="module")
def settings():  # the names of all settings as they are typed, such as `agent.hidden-sizes`
    names = [field.name for field in fields_of(Config())]
    kinds = [*(("agent", kind) for kind in recipes.agents()), *recipes.terms().items()]
    names += [f"{group}.{f.name}" for group, kind in kinds for f in dataclasses.fields(kind)]
    return {name.replace("_", "-") for name in names}


def test_every_setting_that_a_page_shows_as_an_option_is_there(settings):
    groups = {name.partition(".")[0] for name in settings}
    missing = []
    for page in PAGES:
        shown = re.findall(r"--([a-z][a-z-]*\.[a-z][a-z0-9-]*)", page.read_text(encoding="utf-8"))
        wrong = {name for name in shown if name.partition(".")[0] in groups} - settings
        missing += [(page.name, name) for name in sorted(wrong)]
    assert missing == []


METRICS_PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")


def test_the_page_shows_what_the_code_declares_with_one_line_for_each_metric():
    # If this fails: make results
    assert filled(METRICS_PAGE, DOCS / "metrics.md") == METRICS_PAGE
    alike = {name for term in (*recipes.terms(), ENTROPY) for name in reward_metrics(term)}
    judged = [name for part in JUDGED.values() for name in part]
    own = [name for name in METRICS if name not in alike]
    blocks = re.findall(r"<!-- columns: .*? -->\n(.*?)<!-- /columns -->", METRICS_PAGE, re.S)
    shown = re.findall(r"^- `(.*?)`: ", "".join(blocks), re.MULTILINE)
    assert sorted(shown) == sorted([*own, *judged, *reward_metrics("NAME")])
    with pytest.raises(UsageError, match="no list 'controls'\ndid you mean control"):
        filled("<!-- columns: controls -->\n<!-- /columns -->", DOCS / "metrics.md")


def test_every_equation_has_its_place_in_the_code_beneath():
    methods = ("music.md", "skills.md", "goals.md", "pearl.md")
    for page in methods:
        _, *equations = (DOCS / page).read_text(encoding="utf-8").split("\n$$\n")[::2]
        assert len(equations) > 2, page
        beneath = [text.lstrip("\n").partition("\n\n")[0] for text in equations]
        assert [text for text in beneath if not re.search(r"`[\w/]+\.py: \w", text)] == [], page


def test_a_page_is_in_the_navigation_and_begins_with_what_answers_its_title():
    listed = re.findall(
        r"^ +- (?:\w+: )?(\w+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(), re.M
    )
    assert sorted({page.name for page in DOCS.rglob("*.md")} - {*listed}) == []
    for page in sorted(DOCS.glob("*.md")):
        title, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
        assert re.fullmatch("# .+", title), page
        assert re.fullmatch(r"(?!```)[^|#<-].*[.:]", first, re.DOTALL), page  # a paragraph
    texts = {page: page.read_text("utf-8") for page in (*PAGES, DOCS / "quickstart.ipynb")}
    copies = r"pip install '\.\["  # over the editable package
    assert [page for page, text in texts.items() if re.search(copies, text)] == []


def test_pages_are_few_and_short_and_their_code_is_fenced_and_fits_a_screen():
    words, long = 0, []
    for page in {DOCS.parent / "README.md", *DOCS.rglob("*.md")} - {DOCS / "reference.md"}:
        text = page.read_text(encoding="utf-8")
        by_hand = re.sub(r"(?s)<!-- (results|columns): .*?<!-- /\1 -->|<!--.*?-->", "", text)
        words += len(re.findall(r"\S*\w\S*", by_hand))
        parts = re.split(r"^ *```.*$", text, flags=re.MULTILINE)
        assert re.findall(r"\n\n {4}.*", "".join(parts[::2])) == [], page  # no code on some readers
        typed = r"^(?=.{80})(?:music-tf|make|mpirun|git|export|[\w./]*python3?|    --).*"
        long += re.findall(typed, "".join(parts[1::2]), re.MULTILINE)
    assert long == []
    assert len([*DOCS.rglob("*.md")]) <= 17
    assert words <= 25_000


def test_every_link_leads_to_a_page_and_a_heading():
    dead = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^):]*)\)", page.read_text(encoding="utf-8")):
            name, _, heading = link.partition("#")
            path = page.parent / name if name else page
            if not path.exists() or (heading and heading not in _anchors(path)):
                dead.append((page.name, link))
    assert dead == []


def _anchors(page):  # the names under which a page's headings are linked
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
