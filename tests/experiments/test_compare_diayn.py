import subprocess
import sys

import pytest

from experiments import compare_diayn
from music_tf.errors import EnvironmentFault


def test_both_sides_take_turns_and_the_median_ratio_is_told(monkeypatch, capsys):
    rates = iter(["90", "60", "100", "50", "80", "80"])

    def run(words, **_):
        side, updates = words[words.index("--side") + 1], words[-1]
        asked.append((side, updates))
        return subprocess.CompletedProcess(words, 0, stdout=f"noise\n{next(rates)}\n")

    asked = []
    monkeypatch.setattr(subprocess, "run", run)
    assert compare_diayn.main(["--rounds", "3", "--updates", "70"]) == 0
    assert asked == [("ours", "70"), ("plain", "70")] * 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "round 1: ours 90, PyTorch 60 updates a second, ratio 1.50"
    assert lines[-1] == "median ratio 1.50, from 1.00 to 2.00"


def test_a_side_that_fails_is_told_with_its_last_words(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="out of luck")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(EnvironmentFault, match="ours: out of luck"):
        compare_diayn.main(["--rounds", "1"])


def test_without_pytorch_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EnvironmentFault, match="torch cannot be imported"):
        compare_diayn.plain(1)


def test_ours_is_timed_over_as_many_updates_as_asked(monkeypatch):
    monkeypatch.setattr(compare_diayn, "STORED", 2000)
    monkeypatch.setattr(compare_diayn, "TURN", 2)
    assert compare_diayn.ours(4) > 0.0
