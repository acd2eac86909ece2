"""What pages say of stored results and of what was measured holds for all of them."""

import json
import re

import numpy as np

from experiments.intervals import mean
from experiments.stored import about
from music_tf import recipes
from music_tf.storage.results import read_result
from tests.kit.sources import ROOT

RESULTS = ROOT / "experiments/results"
COMMAND = re.compile(r"(music-tf (launch -n \d+ )?train|python experiments/\w+\.py) \w")
COMMIT = re.compile(r"commit [0-9a-f]{40}\b(?! with uncommitted)")
MUJOCO = re.compile(r", mujoco \d+\.\d+\.\d+\b")


def has_command_and_commit(path):
    result = read_result(path)
    made_with = COMMIT.match(result.made_with) and MUJOCO.search(result.made_with)
    return bool(COMMAND.match(result.command) and made_with)


def test_every_result_has_command_commit_and_mujoco_and_every_recipe_results_or_is_named():
    without = [path for path in RESULTS.rglob("*.csv") if not has_command_and_commit(path)]
    assert [str(path.relative_to(RESULTS)) for path in without] == []
    commands = [read_result(path).command for path in sorted(RESULTS.rglob("*.csv"))]
    used = {word for command in commands for word in command.split() if word in recipes.names()}
    page = (RESULTS / "README.md").read_text(encoding="utf-8").partition("\n## ")[2]
    named = set(re.findall(r"\w+", "".join(re.findall(r"^\|.*", page, re.MULTILINE))))
    assert [name for name in recipes.names() if name not in used | named] == []


def test_all_fifteen_seeds_of_music_together_are_told_as_stored():
    def motion(task):
        files = sorted(RESULTS.glob(f"music_[hf]*/music_{task}-v4_seed*.csv"))
        finals = [read_result(path).details["final_100_episodes"] for path in files]
        found = [final["ours"]["eval/object_comotion_m"] for final in finals]
        assert len(found) == 15
        return mean(found)

    push, pick = motion("FetchPush"), motion("FetchPickAndPlace")
    told = " ".join(about("music_fresh").split())
    assert f"{push} m on FetchPush and {pick} m on FetchPickAndPlace" in told


def test_what_a_broken_joint_leaves_of_returns_is_told_as_stored():
    # means over six joints and three seeds
    returns = json.loads((RESULTS / "broken_joints.json").read_text())["returns"]
    skills, plain = (
        round(np.mean([sides[side] for joint, sides in returns.items() if joint != "none"]))
        for side in ("skills", "plain")
    )
    for text in (about("skills_smerl"), (ROOT / "docs/results.md").read_text(encoding="utf-8")):
        assert {f"{skills}", f"{plain}"} <= {*re.findall(r"\d+", text)}
