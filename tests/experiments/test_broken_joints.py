import json

import numpy as np
import pytest

from experiments import broken_joints
from experiments.stored import RESULTS, ROOT
from music_tf.errors import UsageError
from tests.kit.cases import cases
from tests.kit.saved_run import save_run

CHEETAH = "music_tf/HalfCheetah-v0"


def test_the_skill_that_is_best_in_one_half_counts_by_the_other():
    # the second is best in the first half (3 against 2), and gets 1 and 0 in the other
    assert broken_joints.best_return(np.array([[2.0, 2.0, 9.0, 9.0], [3.0, 3.0, 1.0, 0.0]])) == 0.5


def test_returns_are_of_each_skill_with_the_joint_broken(tmp_path):
    run = tmp_path / "run"
    save_run(run, "sac_diayn", env_id=CHEETAH, skills=2, rollouts=2)
    sound, broken = (broken_joints.returns_of(run, joint, 2) for joint in (None, 1))
    assert sound.shape == broken.shape == (2, 2)
    assert not np.array_equal(sound, broken)


def test_joints_have_a_row_each_with_the_difference(tmp_path, monkeypatch, capsys):
    def returns_of(run, joint, episodes):
        seed, skilled = int(run.name[-1]), run.parent.name == "smerl"
        value = {None: 100.0, 0: 50.0 if skilled else 10.0}[joint] + seed
        return np.full((2 if skilled else 1, episodes), value)

    for name in ("smerl/seed0", "smerl/seed1", "sac/seed0", "sac/seed1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").touch()
    monkeypatch.setattr(broken_joints, "returns_of", returns_of)
    monkeypatch.chdir(tmp_path)
    words = ["smerl/seed*", "sac/seed*", "--joints", "0", "--episodes", "4", "--out", "found.json"]
    assert broken_joints.main(words) == 0
    # half of the interval: t(0.975, 2) = 4.303, times the deviation 0.707 * sqrt(1/2 + 1/2)
    assert capsys.readouterr().out.splitlines()[2:] == [
        # and of a mean 12.706 times 0.707 / sqrt(2)
        "| none | 100 ± 6.35 | 100 ± 6.35 | +0.00 ± 3.04 |",
        "| 0 | 50.50 ± 6.35 | 10.50 ± 6.35 | +40.00 ± 3.04 |",
    ]
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept["command"].startswith("python -m experiments.broken_joints 'smerl/seed*' 'sac/")
    assert kept["returns"]["0"] == {"skills": [50.0, 51.0], "plain": [10.0, 11.0]}


def test_the_page_tells_what_was_found():
    # means over six joints and three seeds
    returns = json.loads((RESULTS / "broken_joints.json").read_text())["returns"]
    skills, plain = (
        round(np.mean([sides[side] for joint, sides in returns.items() if joint != "none"]))
        for side in ("skills", "plain")
    )
    page = " ".join((ROOT / "docs/results/robots.md").read_text(encoding="utf-8").split())
    assert f"the best of five skills returns {skills} on average, `sac` {plain} " in page


@cases(
    ("words", "text"),
    (["none*", "none*"], r"none\*: names no run"),
    (["a", "b", "--episodes", "3"], "expected an even number from 2 on, got 3"),
)
def test_wrong_words_are_refused(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=text):
        broken_joints.main(words)
