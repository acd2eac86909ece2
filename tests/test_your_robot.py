"""The page for people's own robots: its environment and its lines are tried as they stand there."""

import re
from pathlib import Path

import gymnasium
import pytest

from music_tf.cli import run_verb
from music_tf.reading.command import parse_train
from tests.kit.saved_run import rows_of
from tests.kit.sessions import run_session

PAGE = (Path(__file__).parents[1] / "docs" / "your_robot.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
MODULE = next(text for kind, text in BLOCKS if kind == "python" and text.startswith("# arm.py"))
CHECKED, LINE = (text for kind, text in BLOCKS if kind == "text")
TYPED = "".join(text for kind, text in BLOCKS if not kind).replace("\\\n", " ")
COMMANDS = [line.split()[1:] for line in TYPED.splitlines() if line.startswith("music-tf ")]
SMALL = (
    *("--epochs", "1", "--cycles", "2", "--updates", "3", "--workers", "1", "--rollouts", "2"),
    *("--agent.hidden-sizes", "16", "16", "--replay.batch-size", "16", "--run-dir", "runs/arm"),
    *("--evaluation.episodes", "4"),
)


@pytest.fixture
def folder(own_modules, tmp_path, monkeypatch):  # a folder of a user's with the page's module
    monkeypatch.chdir(tmp_path)
    own_modules(arm=MODULE)
    yield tmp_path
    gymnasium.registry.pop("ArmPush-v0", None)


def of_clocks(text):  # a text without the seconds that something took
    return re.sub(r"in \d+ s", "in S s", text)


def test_check_env_says_of_the_arm_what_the_page_shows(folder, capsys):
    assert len(MODULE.splitlines()) <= 60
    assert run_verb(COMMANDS[0]) == 0
    shown = of_clocks(capsys.readouterr().out)
    assert [line for line in CHECKED.splitlines() if of_clocks(line) not in shown] == []
    assert " ".join(["music-tf", *COMMANDS[1][: COMMANDS[1].index("--epochs")]]) in shown


@pytest.mark.thorough
def test_what_is_pasted_trains_measures_and_films_the_arm(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    train, evaluate, play, report = COMMANDS[1:]
    run_session(parse_train([*train[1:], *SMALL]))
    shown = capsys.readouterr().out
    (told,) = [line for line in shown.splitlines() if line.startswith("epoch 1/1")]
    names = re.findall(r"  ([a-zA-Z(;) -]+) -?\d[\d.]*", LINE.partition("steps 8,000")[2])
    assert names == ["co-motion", "I(dx; dy)", "pay", "bound"]
    assert [name for name in names if f"  {name} " not in told] == []
    assert rows_of(folder / "runs" / "arm")
    assert run_verb([*evaluate, "--episodes", "3"]) == 0
    assert run_verb([*play, "--episodes", "1", "--out", "film.gif"]) == 0
    assert run_verb([*report, "--out", "page.html"]) == 0
    assert (folder / "film.gif").stat().st_size > 0


def test_every_option_of_a_remedy_is_one_that_exists():
    table = PAGE[PAGE.index("| symptom |") :].partition("\n\n")[0]
    tried = [words.split() for words in re.findall(r"`(--[a-z][^`]* [^`]*)`", table)]
    numbers = {"LOW_X": "0", "LOW_Y": "0", "HIGH_X": "1", "HIGH_Y": "1", "HEIGHT": "0.4"}
    assert len(tried) > 8
    for words in tried:
        recipe = "sac_diayn" if words[0] == "--skills" else "ddpg_music"
        parse_train([recipe, *(numbers.get(word, word) for word in words)])
