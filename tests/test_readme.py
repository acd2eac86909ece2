"""The README's commands, numbers and films are tried, and the commands of all pages parsed."""

import importlib.util
import itertools
import re
import shlex
import subprocess

from PIL import Image

from experiments.tables import filled
from music_tf import recipes
from music_tf.cli import VERBS, verbs
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.reading.options import read
from tests.kit.sources import ROOT

PAGE = ROOT / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = re.sub(r"<!--.*?-->", "", TEXT)
PAGES = {page: page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")}
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
FILMS = [ROOT / path for path in re.findall(r"!\[.*?\]\((.*?\.gif)\)", SHOWN)]


def commands_of(text):
    """The lines of fenced and of indented code that type a command, each with its next lines."""
    joined = re.sub(r" *\\\n *", " ", text)
    lines = re.findall(r"^ *((?:make|mpirun|music-tf) .*)$", joined, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines if "`" not in line]


def fault_of(words):
    """What is wrong with a command, as far as it can be told without a run or a user's module."""
    if words[0] == "make":
        return "" if words[1] in TARGETS else "no such target"
    if words[0] == "mpirun":
        module, *rest = words[words.index("mpi4py") + 2 :]
        if importlib.util.find_spec(f"{module}.__main__") is None:
            return "no such module"
        words = ["music-tf", *rest]
    verb, *rest = words[1:]
    if verb == "launch":
        verb, *rest = itertools.dropwhile(lambda word: word not in VERBS, rest)
    if verb not in VERBS:
        return "no such verb"
    if any(re.search(r"^[A-Z]+$|^runs/|my_|--resume", word) for word in rest):
        return ""
    try:
        if verb == "train":
            parse_train(rest)
        elif verb in verbs.VERBS:
            read(verbs.VERBS[verb], verb, rest)
    except UsageError as fault:
        return str(fault)
    return ""


def test_the_commands_of_the_readme_and_of_the_pages_exist():
    inline = re.findall(r"`((?:music-tf|make) [^`]+)`", SHOWN)
    typed = [*commands_of(SHOWN), *map(shlex.split, inline)]
    typed += [words for text in PAGES.values() for words in commands_of(text)]
    assert len(typed) > 60
    assert {" ".join(words): fault for words in typed if (fault := fault_of(words))} == {}


def test_the_recipes_that_the_readme_names_exist_and_each_is_on_a_page():
    table = "".join(re.findall(r"^\| .*? \| (`.*?`) \| \[", SHOWN, re.MULTILINE))
    named = set(re.findall(r"`(\w+)`", table))
    assert len(named) > 10
    assert named - {*recipes.names()} == set()
    pages = "".join(PAGES.values())
    assert [name for name in recipes.names() if f"`{name}`" not in pages] == []


def test_its_numbers_are_those_of_the_stored_results():
    # If this fails: make results
    assert filled(TEXT, PAGE) == TEXT


def test_it_is_short_and_begins_with_the_two_commands():
    words = SHOWN.split()
    assert len(words) <= 1150
    start = " ".join(words[:150])
    assert {"make train", "make test"} == set(re.findall(r"make (?:train|test)\b", start))


def test_its_films_are_small_move_and_travel():
    assert len(FILMS) == 2
    for path in FILMS:
        assert path.stat().st_size <= 2_000_000
        with Image.open(path) as film:
            assert film.n_frames > 20
        ignored = subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False)
        assert ignored.returncode != 0
