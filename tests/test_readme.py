"""The README's commands and results are tried, so that they stay true."""

import importlib
import importlib.util
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import stats

from music_tf import recipes
from music_tf.cli import VERBS
from music_tf.reading.command import parse_train
from music_tf.storage.results import read_result

ROOT = Path(__file__).parents[1]
README = re.sub(r"<!--.*?-->", "", (ROOT / "README.md").read_text(encoding="utf-8"))
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    line
    for language, text in BLOCKS
    if not language
    for line in text.splitlines()
    if line.startswith(("music-tf", "make", "mpirun"))
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
SPEEDS = "pearl_velocity/pearl_music_tf_HalfCheetahVelocity-v0"
LIFT, KEPT = "eval/object_lift_rate", "zero_shot/end"
HOLDS, CONTROLS = "music_holds/music", "music_controls"
RESULTS = {
    "FetchPush, co-motion of `ddpg_music`": (f"{HOLDS}_FetchPush-v4", MOTION),
    "with a frozen network, `ddpg_music_frozen`": (f"{CONTROLS}/frozen_FetchPush-v4", MOTION),
    "with a hand-made reward, `ddpg_joint_motion --joint-motion.threshold 0.005`": (
        f"{CONTROLS}/joint_motion5_FetchPush-v4",
        MOTION,
    ),
    "FetchPickAndPlace, co-motion of `ddpg_music`": (f"{HOLDS}_FetchPickAndPlace-v4", MOTION),
    "episodes that lift, fresh seeds": ("music_fresh/music_FetchPickAndPlace-v4", LIFT),
    "PandaPush, co-motion of `ddpg_music`": (f"{HOLDS}_PandaPush-v3", MOTION),
    "FetchPush, success of `ddpg_her_fast`": ("her_fast/fast_FetchPush-v4", SUCCESS),
    "FetchPush, [unseen goals](docs/results/air.md), `sac_metra`": (
        "air/metra_push_FetchPush-v4",
        KEPT,
    ),
    "FetchPickAndPlace, [unseen goals](docs/results/air.md), `sac_place`": (
        "air/place_pick_FetchPickAndPlace-v4",
        KEPT,
    ),
    "HalfCheetah, return at [new speeds](docs/results/pearl.md)": (SPEEDS, "adapt/return_prior"),
    "after two episodes": (SPEEDS, "adapt/return_last"),
}
"""What the files behind each row of the README's table are called before their seed, and what is
measured of each: on its last 100 episodes, or on goals that it never had."""


def test_the_commands_of_the_readme_and_the_pages_exist():
    assert len(LINES) > 40
    for words in LINES:
        _check_command(words)


def _check_command(words):
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    if words[0] == "mpirun":
        started = words[words.index("mpi4py") + 1 :]
        if started[0] == "-m":
            assert importlib.util.find_spec(f"{started[1]}.__main__")
            words = ["music-tf", *started[2:]]
        else:
            assert (ROOT / started[0]).is_file()
            words = ["music-tf", "train", *started[1:]]
    if words[1] == "launch":
        words = ["music-tf", *words[4:]]
    assert words[1] in VERBS
    needs_more = "--resume" in words or "my_" in " ".join(words)  # a run, a user's module
    if words[1] == "train" and not needs_more:
        assert parse_train([word for word in words[2:] if word != "N"]).recipe == words[2]


def test_every_recipe_is_in_the_page_and_the_file_that_the_readme_names():
    assert "(docs/recipes.md)" in README
    page = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    listed = " ".join(re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE))
    assert [name for name in recipes.names() if f"`{name}`" not in listed] == []
    rows = re.findall(r"^\| (`.*?`) \| .* \| `(\w+)\.py` \|$", README, re.MULTILINE)
    assert len(rows) >= 7
    for names, file in rows:
        module = importlib.import_module(f"music_tf.recipes.{file}")
        for name in re.findall(r"`(\w+)`", names):
            assert getattr(module, name).__module__ == module.__name__


def results_of(name):  # the stored runs of a condition, by seed
    files = sorted((ROOT / "experiments" / "results").glob(f"{name}_seed*.csv"))
    return {int(file.stem.partition("_seed")[2]): read_result(file) for file in files}


def finals_of(name, metric, policy="ours"):  # a measure at the end of each seed
    group = "zero_shot" if metric == KEPT else "final_100_episodes"
    finals = [result.details[group] for result in results_of(name).values()]
    return [final[policy][metric] for final in finals]


def controls(result):
    """Whether some evaluation keeps the object on its support while hand and object travel."""
    moved = result.columns[MOTION] >= 0.2
    return bool(np.any(moved & (result.columns["eval/object_on_support_rate"] >= 0.8)))


def shown_for(values, metric):  # a result as the table shows it, with its 95 % interval
    if metric in (LIFT, KEPT):  # a share of seeds, with the exact interval of Clopper and Pearson
        count, seen = sum(value >= 0.5 for value in values), len(values)
        low = stats.beta.ppf(0.025, count, seen - count + 1)
        high = stats.beta.ppf(0.975, count + 1, seen - count) if count < seen else 1.0
        return f"{np.mean(values):.2f}: {count} of {seen} seeds ({low:.2f} to {high:.2f})"
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    mean = np.mean(values)
    digits = 0 if abs(mean) >= 100.0 else 2
    return f"{mean:.{digits}f} ± {half:.2f}" + " m" * (metric == MOTION)


def test_every_row_of_results_shows_what_is_stored():
    (table,) = re.findall(r"^\| measure \|.*\n\|[-|]+\n((?:\|.*\n)+)", README, re.MULTILINE)
    shown = dict(re.findall(r"^\| (.*?) \| (.*) \|$", table, re.MULTILINE))
    stored = {row: finals_of(name, metric) for row, (name, metric) in RESULTS.items()}
    assert shown == {
        row: f"{shown_for(values, RESULTS[row][1])} | {len(values)}"
        for row, values in stored.items()
    }


def test_what_is_said_below_the_table_is_stored_too():
    random = {
        metric: f"{max(finals_of(name, metric, 'random')):.2f}"
        for name, metric in RESULTS.values()
        if metric in (MOTION, SUCCESS)
    }
    assert f"Random actions: {random[MOTION]} m, success {random[SUCCESS]}." in README
    frozen, hand_made, default = (
        list(map(controls, results_of(f"{CONTROLS}/{kind}_FetchPush-v4").values()))
        for kind in ("frozen", "joint_motion5", "joint_motion")
    )
    assert f"on {sum(frozen)} of {len(frozen)} seeds" in README
    assert f"the hand-made reward on {sum(hand_made)} of {len(hand_made)}." in README
    assert f"m and control on {sum(default)} of {len(default)}." in README
    learned, other = (
        np.mean(finals_of(f"{name}_FetchPickAndPlace-v4", MOTION))
        for name in (HOLDS, f"{CONTROLS}/joint_motion5")
    )
    assert other < learned / 2
    lifted = {
        kind: [value >= 0.5 for value in finals_of(f"{CONTROLS}/{kind}", LIFT)]
        for kind in ("frozen_FetchPickAndPlace-v4", "frozen_mean5_FetchPickAndPlace-v4")
    }
    assert list(map(all, lifted.values())) == [False, True]
    film = results_of(f"{HOLDS}_FetchPush-v4")[200].details["final_100_episodes"]["ours"]
    assert f"{film[MOTION]:.2f} m together here (seed 200)" in README


def test_it_can_be_read_in_five_minutes_and_its_film_is_small_moves_and_travels():
    assert len(README.split()) <= 930
    start = README.partition("## Start\n")[2]
    assert start.lstrip().startswith("`make train` runs the main job, `make test` the tests (")
    assert f"]({FILM.relative_to(ROOT)})" in README
    assert FILM.stat().st_size <= 2_000_000
    with Image.open(FILM) as film:
        assert film.n_frames > 20
    ignored = subprocess.run(["git", "check-ignore", "-q", str(FILM)], cwd=ROOT, check=False)
    assert ignored.returncode != 0
