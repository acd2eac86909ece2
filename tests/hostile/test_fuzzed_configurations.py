"""Command lines and stored configurations of any kind are taken, or refused in a few lines.

MUSIC_TF_LONG_TESTS=1 tries more of each.
"""

import contextlib
import copy
import io
import json
import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from music_tf import recipes
from music_tf.cli import run_verb
from music_tf.cli import train as train_verb
from music_tf.cli.exits import guarded
from music_tf.config.fields import fields_of, show_option
from music_tf.reading.stored import StoredRun, config_to_json, read_run, run_to_json
from tests.kit.started import python

LONG = "MUSIC_TF_LONG_TESTS" in os.environ
EXAMPLES = 1000 if LONG else 200
SECONDS = 2.0
FIELDS = {f.name: f for name in recipes.names() for f in fields_of(recipes.resolve(name))}
OPTIONS = [show_option(name) for name in (*FIELDS, "preset", "run_dir", "resume", "allow_import")]
JUNK = st.one_of(
    st.text(st.characters(exclude_characters="\0"), max_size=30),
    st.floats().map(str),
    st.integers().map(str),
    st.sampled_from(
        ["nan", "NaN", "-inf", "1e999", "-1", "0", "None", "True", "[]", "{}", "9" * 5000, "-9e300"]
    ),
    st.sampled_from(["--", "-", "=", "--=", "---", "..", "../..", "/dev/null", "é" * 99, "\u202e"]),
)


@pytest.fixture(autouse=True, scope="module")
def nothing_is_trained():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_verb, "run_together", lambda comm, action: None)
        yield


def answer(*words):
    """Exit code and standard error of a command line, after the checks that hold for all."""
    errors = io.StringIO()
    start = time.process_time()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        if words[0] == "train":
            code = guarded(lambda: train_verb.main(list(words[1:])) or 0)
        else:
            code = guarded(lambda: run_verb(list(words)))
    text = errors.getvalue()
    assert time.process_time() - start <= SECONDS
    assert code in (0, 2), text
    assert "Traceback" not in text
    assert len(text.splitlines()) <= 10
    assert bool(text) is (code == 2)
    return code, text


@st.composite
def option(draw):
    name = draw(st.one_of(st.sampled_from(OPTIONS), JUNK.map("--{}".format), JUNK))
    if draw(st.booleans()):
        name = draw(
            st.sampled_from([name + ".x", name.replace("-", "_"), "--agent" + name[1:], name])
        )
    values = draw(st.lists(JUNK, max_size=3))
    return [f"{name}={values[0]}"] if values and draw(st.booleans()) else [name, *values]


@settings(max_examples=EXAMPLES)
@given(st.one_of(st.sampled_from(recipes.names()), JUNK), st.lists(option(), max_size=4))
def test_a_command_line_of_train_is_taken_or_refused(recipe, options):
    words = [word for one in options for word in one]
    if "-h" not in words and "--help" not in words:
        answer("train", recipe, *words)


@settings(max_examples=EXAMPLES // 4)
@given(
    st.one_of(st.sampled_from(["evaluate", "play", "plot", "recipes", "launch"]), JUNK),
    st.lists(st.one_of(JUNK, option().map(lambda words: words[0])), max_size=4),
)
def test_a_command_line_of_another_verb_is_taken_or_refused(verb, words):
    if verb != "train":
        answer(verb, *words)


def stored_run(recipe="sac_her"):
    return run_to_json(StoredRun(recipe, "laptop", (recipe,), recipes.resolve(recipe)))


def places(tree, path=()):  # every place in a JSON document, the outermost first
    yield path
    if isinstance(tree, dict | list):
        entries = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in entries:
            yield from places(value, (*path, key))


def put(tree, path, value):
    if not path:
        return value
    changed = copy.deepcopy(tree)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


ANY_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10),
        st.sampled_from([10**400, -1, "inf", "nan", "os:system", "../x", 1e308]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(list(places(stored_run()))), ANY_JSON, st.booleans())
def test_a_stored_configuration_is_taken_or_refused(tmp_path_factory, place, value, add):
    directory = tmp_path_factory.getbasetemp() / "fuzzed"
    directory.mkdir(exist_ok=True)
    if add and place:
        place = (*place[:-1], f"{place[-1]}_") if isinstance(place[-1], str) else place
    text = json.dumps(put(stored_run(), place, value))
    (directory / "config.json").write_text(text, encoding="utf-8")
    code, _ = answer("train", "--run-dir", str(directory), "--resume")
    if code == 0:
        run = read_run(directory)
        assert config_to_json(run.config) == json.loads(json.dumps(config_to_json(run.config)))
        assert "os:system" not in run.config.env_id
    answer("plot", str(directory))


def test_reading_and_refusing_loads_nothing_heavy(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(put(stored_run(), ("config", "seed"), -1)))
    lines = [
        *("train ddgp", "train sac --agent.polyak nan", "train sac --env-id FetchPsh-v4"),
        *(f"train --run-dir {tmp_path} --resume", "evaluate nowhere", "launch -n 2 train ddgp"),
        f"play {tmp_path} --out a.avi",
    ]
    done = python(
        "import sys\n"
        "from music_tf.cli import run_verb\n"
        "from music_tf.cli.exits import guarded\n"
        "from music_tf.reading.command import parse_train, train_help\n"
        "train_help([parse_train(['ddpg']).recipe])\n"
        f"assert {{guarded(lambda: run_verb(line.split())) for line in {lines!r}}} == {{2}}\n"
        "heavy = ('numpy', 'tensorflow', 'keras', 'mpi4py', 'gymnasium', 'mujoco')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert done.stdout.endswith("\n[]\n"), done.stderr
