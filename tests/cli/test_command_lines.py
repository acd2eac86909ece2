"""Each command line of the table that `make same` uses too answers with its code and its words."""

import pathlib

import pytest

from music_tf.cli import main
from tests.same import command_lines

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def places(tmp_path, monkeypatch):
    command_lines.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", command_lines.LIGHT, ids=lambda line: line.words or "nothing")
def test_a_command_line_answers_as_the_table_says(line, places, capfd):
    with pytest.raises(SystemExit) as left:
        main(line.command(places))
    assert line.faults(left.value.code or 0, *capfd.readouterr()) == []


def test_a_run_from_its_start_to_its_page_answers_as_the_table_says(places):
    answers = command_lines.session(ROOT, places)
    faults = {
        line.words: line.faults(*answer)
        for line, answer in zip(command_lines.SESSION, answers, strict=True)
    }
    assert {words: found for words, found in faults.items() if found} == {}
