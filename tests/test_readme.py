"""The README's example and commands are tried, so that they stay true."""

import re
import shlex
from pathlib import Path

import pytest

from music_tf import recipes
from music_tf.cli import VERBS
from music_tf.config.command import parse_train

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
LINES = [
    shlex.split(line, comments=True)
    for language, text in BLOCKS
    if not language
    for line in text.splitlines()
    if line.startswith(("music-tf", "mpirun", "make"))
]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_command_of_the_readme_is_one_that_exists(words):
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    if words[0] == "mpirun":
        assert (ROOT / words[words.index("-m") + 2]).is_file()
        words = ["music-tf", "train", *words[words.index("-m") + 3 :]]
    if words[1] == "launch":
        words = ["music-tf", *words[4:]]
    assert words[1] in VERBS
    needs_more = "--resume" in words or "my_" in " ".join(words)  # a run, a user's module
    if words[1] == "train" and not needs_more:
        assert parse_train([word for word in words[2:] if word != "N"]).recipe == words[2]


def test_every_recipe_is_in_the_readme():
    assert [name for name in recipes.names() if f"`{name}`" not in README] == []


def test_every_page_and_picture_that_the_readme_shows_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert len(README.splitlines()) < 200
