"""What docs/results.md says of stored results and of what was measured holds for all of them."""

import re
from pathlib import Path

from music_tf import recipes
from music_tf.storage.results import read_result

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments/results"
COMMAND = re.compile(r"(music-tf (launch -n \d+ )?train|python experiments/\w+\.py) \w")
COMMIT = re.compile(r"commit [0-9a-f]{40}\b(?! with uncommitted)")

SETTINGS_OF_A_DRIVER = (
    *("pick_absorb", "pick_absorb_shift", "pick_more_noise", "pick_small_gain"),
    *("pick_small_penalty", "push_absorb", "push_absorb_shift", "push_long_horizon"),
    *("push_no_absorb", "push_small_gain", "push_small_gain_twin_critics"),
    *("push_small_penalty", "push_small_steps"),
)


def has_command_and_commit(path):
    result = read_result(path)
    return bool(COMMAND.match(result.command) and COMMIT.match(result.made_with))


def test_a_stored_result_has_its_command_and_commit_but_for_those_that_are_named():
    without = {
        str(path.relative_to(RESULTS))
        for path in RESULTS.rglob("*.csv")
        if not has_command_and_commit(path)
    }
    assert without == {f"search/{name}.csv" for name in SETTINGS_OF_A_DRIVER}


def test_the_page_names_those_without_and_says_why():
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    assert f"The {len(SETTINGS_OF_A_DRIVER)} files of `search/`" in page


def test_every_recipe_has_stored_results_or_is_named_as_not_measured_yet():
    commands = [read_result(path).command for path in sorted(RESULTS.rglob("*.csv"))]
    used = {word for command in commands for word in command.split() if word in recipes.names()}
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    section = page.partition("\n## Not measured yet\n")[2].partition("\n## ")[0]
    rows = "".join(re.findall(r"^\|.*", section, re.MULTILINE))
    named = set(re.findall(r"\w+", rows))
    assert [name for name in recipes.names() if name not in used | named] == []
