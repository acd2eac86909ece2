"""What docs/results.md says about the comments of a stored result holds for each of them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments/results"
COMMAND = re.compile(r"# (music-tf (launch -n \d+ )?train|python experiments/\w+\.py) \w")
RESUMED = "# then music-tf train "
COMMIT = re.compile(r"# commit [0-9a-f]{40}\b")

SETTINGS_OF_A_DRIVER = (
    *("pick_absorb", "pick_absorb_shift", "pick_more_noise", "pick_small_gain"),
    *("pick_small_penalty", "push_absorb", "push_absorb_shift", "push_long_horizon"),
    *("push_no_absorb", "push_small_gain", "push_small_gain_twin_critics"),
    *("push_small_penalty", "push_small_steps"),
)


def has_command_and_commit(path):
    with path.open(encoding="utf-8") as file:
        comments = [line for line in file if line.startswith("#")]
    command, made_with, *_ = [line for line in comments if not line.startswith(RESUMED)]
    return bool(COMMAND.match(command) and COMMIT.match(made_with))


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
