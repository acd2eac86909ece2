"""The README's commands and results are tried, so that they stay true."""

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from music_tf import recipes
from music_tf.cli import VERBS
from music_tf.config.command import parse_train
from music_tf.storage.results import read_result

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    line
    for language, text in BLOCKS
    if not language
    for line in text.splitlines()
    if line.startswith(("music-tf", "make"))
]
COMMANDS += re.findall(r"`((?:music-tf|make) [^`]+)`", README)
COMMANDS += [
    line
    for page in sorted((ROOT / "docs").glob("*.md"))
    for line in re.findall(
        r"^    ((?:mpirun|music-tf train) .*[^\\\n])$", page.read_text(), re.MULTILINE
    )
]
LINES = [shlex.split(command, comments=True) for command in dict.fromkeys(COMMANDS)]
FILM = ROOT / "docs" / "images" / "push.gif"
MOTION, SUCCESS = "eval/object_comotion_m", "eval/success_rate"
LIFT = "eval/object_lift_rate"
RESULTS = {
    ("FetchPush", "`ddpg_music`"): ("music_holds/music_FetchPush-v4_", MOTION, range(200, 210)),
    ("FetchPush, network never learns", "`ddpg_music_frozen`"): (
        "music_controls/frozen_FetchPush-v4_",
        MOTION,
        range(200, 210),
    ),
    ("the same, as its search chose", "`ddpg_music_frozen`, `random-hold 8`"): (
        "music_controls/frozen_hold8_FetchPush-v4_",
        MOTION,
        range(200, 203),
    ),
    ("FetchPush, reward made by hand, from 5 mm", "`ddpg_joint_motion`"): (
        "music_controls/joint_motion5_FetchPush-v4_",
        MOTION,
        range(200, 203),
    ),
    ("FetchPickAndPlace", "`ddpg_music`"): (
        "music_holds/music_FetchPickAndPlace-v4_",
        MOTION,
        range(200, 210),
    ),
    ("the same", "`ddpg_music`"): (
        "music_holds/music_FetchPickAndPlace-v4_",
        LIFT,
        range(200, 210),
    ),
    ("the same, five more seeds", "`ddpg_music`"): (
        "music_fresh/music_FetchPickAndPlace-v4_",
        LIFT,
        range(210, 215),
    ),
    ("the same, network never learns", "`ddpg_music_frozen`"): (
        "music_controls/frozen_FetchPickAndPlace-v4_",
        LIFT,
        range(200, 205),
    ),
    ("the same, network never learns, smaller gain", "`ddpg_music_frozen`, `mean 5`"): (
        "music_controls/frozen_mean5_FetchPickAndPlace-v4_",
        LIFT,
        range(200, 203),
    ),
    ("FetchPush, table unknown", "`ddpg_music`, `continue`"): (
        "music_controls/continue_FetchPush-v4_",
        MOTION,
        range(200, 205),
    ),
    ("FetchPickAndPlace, table unknown", "`ddpg_music`, `continue`"): (
        "music_controls/continue_FetchPickAndPlace-v4_",
        LIFT,
        range(200, 203),
    ),
    ("FetchSlide", "`ddpg_music`"): ("music_holds/music_FetchSlide-v4_", MOTION, range(200, 203)),
    ("PandaPush", "`ddpg_music`"): ("music_holds/music_PandaPush-v3_", MOTION, range(200, 203)),
    ("FetchReach", "`ddpg_her_fast`"): (
        "her_fast/fast_FetchReach-v4_",
        SUCCESS,
        range(200, 205),
    ),
    ("FetchPush", "`ddpg_her_fast`"): ("her_fast/fast_FetchPush-v4_", SUCCESS, range(200, 210)),
    ("FetchPickAndPlace", "`ddpg_her_fast`"): (
        "her_fast/fast_FetchPickAndPlace-v4_",
        SUCCESS,
        range(200, 205),
    ),
    ("FetchSlide", "`ddpg_her_fast`"): ("her_fast/fast_FetchSlide-v4_", SUCCESS, range(200, 203)),
}
"""The folder, or the beginning of the names, behind each row of the README's table.

A row is about the last 100 episodes.
"""


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


def test_every_recipe_is_in_the_page_that_the_readme_names():
    assert "(docs/recipes.md)" in README
    page = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    listed = " ".join(re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE))
    assert [name for name in recipes.names() if f"`{name}`" not in listed] == []


def half_of(values):
    """Half of the 95 % interval of Student's t."""
    return stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def mean_of(values):
    return f"{np.mean(values):.2f} ± {half_of(values):.2f}"


@pytest.mark.parametrize("row", RESULTS, ids=" ".join)
def test_a_row_of_results_shows_the_stored_ones(row):
    name, metric, seeds = RESULTS[row]
    folder = ROOT / "experiments" / "results"
    beginning = f"{name}seed" if "/" in name else f"{name}/seed"
    results = [read_result(folder / f"{beginning}{seed}.csv") for seed in seeds]
    finals = [result.details["final_100_episodes"] for result in results]
    found = [final["ours"][metric] for final in finals]
    shown, listed = (
        " and ".join(map(str, each)) for each in ([f"{value:.2f}" for value in found], seeds)
    )
    if len(found) > 2:  # two seeds have no interval worth the name
        shown, listed = mean_of(found), f"{seeds[0]} to {seeds[-1]}"
        low, high = np.mean(found) - half_of(found), np.mean(found) + half_of(found)
        if metric != MOTION and (low < 0.0 or high > 1.0 or np.std(found) == 0.0):
            count, seen = sum(value >= 0.5 for value in found), len(found)
            # Clopper and Pearson, by the quantiles of the beta distribution
            least = stats.beta.ppf(0.025, count, seen - count + 1) if count else 0.0
            most = stats.beta.ppf(0.975, count + 1, seen - count) if count < seen else 1.0
            shown = f"{np.mean(found):.2f}: {count} of {seen} seeds ({least:.2f} to {most:.2f})"
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {row[0]} | {row[1]} |")]
    assert line.split(" | ")[3:] == [shown, listed, f"{finals[0]['random'][metric]:.2f} |"]


def test_fresh_seeds_and_all_fifteen_together_are_told_as_stored():
    def motion(study, task, seeds):
        folder = ROOT / "experiments" / "results" / study
        files = [folder / f"music_{task}-v4_seed{seed}.csv" for seed in seeds]
        finals = [read_result(file).details["final_100_episodes"] for file in files]
        return [final["ours"][MOTION] for final in finals]

    push, pick = (
        (motion("music_holds", task, range(200, 210)), motion("music_fresh", task, range(210, 215)))
        for task in ("FetchPush", "FetchPickAndPlace")
    )
    all_push, all_pick = (mean_of([*chosen, *fresh]) for chosen, fresh in (push, pick))
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert f"co-motion of the five: {mean_of(pick[1])} m" in README
    assert f"All 15 seeds together have {all_push} and {all_pick} m" in README
    assert f"The end has {mean_of(push[1])} m, as on the ten." in page
    assert f"The end has {mean_of(pick[1])} m." in page
    assert f"{all_push} m on FetchPush, {all_pick} m on FetchPickAndPlace" in page


def test_it_can_be_read_in_five_minutes():
    assert len(README.splitlines()) <= 120


def test_the_film_is_small_moves_and_travels_with_the_repository():
    assert f"]({FILM.relative_to(ROOT)})" in README
    assert FILM.stat().st_size <= 2_000_000
    with Image.open(FILM) as film:
        assert film.n_frames > 20
    ignored = subprocess.run(["git", "check-ignore", "-q", str(FILM)], cwd=ROOT, check=False)
    assert ignored.returncode != 0
