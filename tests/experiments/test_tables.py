import json
import math
import re
from functools import partial
from pathlib import Path

import pytest

from experiments import tables
from music_tf.errors import UsageError
from music_tf.storage.results import FINAL, header, read_result
from music_tf.tools.study import Condition, Study, Task

MARKER = re.compile(r"<!-- results: (\w+) -->")
COMMAND = "music-tf train ddpg_her --env-id FetchPush-v4 --seed {} --threads 1"
ROWS = """epoch,time/env_steps,time/elapsed_s,eval/success_rate
1,1000,60,0.25
2,2000,120,0.5
3,3000,180,{}
"""
SPARSE = """epoch,time/env_steps,time/elapsed_s,eval/success_rate,skill/accuracy_heldout
1,1000,60,,
2,2000,120,0.5,0.25
3,3000,180,,
4,4000,240,{},0.75
5,5000,300,,
"""
NO_TASK = """epoch,time/env_steps,time/elapsed_s,eval/success_rate
1,1000,60,
2,2000,120,
"""


@pytest.fixture
def store(tmp_path):
    """Stores a condition of the study `mine` on FetchPush.

    Each seed has three epochs, or other rows; the last ends with the success that is given.
    """

    def store(condition, successes, rows=ROWS, names="mine/{}_FetchPush-v4_seed{}.csv", **more):
        for seed, last in successes.items():
            policies = {"ours": {"eval/success_rate": last}, "random": {"eval/success_rate": 0.07}}
            details = {"final_100_episodes": policies, **more}
            path = tmp_path / names.format(condition, seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            comments = header(COMMAND.format(seed), "commit 1", details)
            path.write_text(comments + rows.format(last))

    return store


def test_tables_and_pictures_show_the_stored_results():
    # If this fails: make results
    texts = {page: page.read_text() for page in tables.pages()}
    assert [page.name for page, text in texts.items() if tables.filled(text) != text] == []
    assert tables.outdated_pictures() == []


def test_every_table_and_every_study_with_results_is_shown():
    marked = {name for page in tables.pages() for name in MARKER.findall(page.read_text())}
    assert sorted(tables.TABLES.keys() - marked) == []
    read = [file for picture in tables.PICTURES.values() for file in picture.files]
    for names in (argument for table in tables.TABLES.values() for argument in table.args):
        read += [names] if isinstance(names, str) else names
    folders = {str(name).partition("/")[0] for name in read}
    for about in (tables.ROOT / "music_tf" / "weights").glob("*/agent.json"):  # agents are shown
        folders.add(Path(json.loads(about.read_text())["published"]).parent.name)
    assert sorted(tables.studies_in(tables.RESULTS) - marked - folders) == []


def test_a_study_shows_each_condition_with_every_seed_and_what_came_before(store, tmp_path):
    store("her", {0: 0.9, 1: 0.4})
    store("tuned", {0: 1.0}, before={"time/env_steps": 5000.0, "time/elapsed_s": 600.0})
    page = "a\n<!-- results: mine -->\nold\n<!-- /results -->\nb\n"
    lines = tables.filled(page, tmp_path).splitlines()
    assert lines[:2] == ["a", "<!-- results: mine -->"]
    # Two minutes and 2000 steps until 0.5 of both, three and 3000 until 0.9 of the first.
    assert lines[4:6] == [
        "| her on FetchPush | 2 | 3 | 3.0 (3.0, 3.0) | 2.0 min, 2 k steps | "
        "3.0 min, 3 k steps; never | 0.65 (0.90, 0.40) |",
        "| tuned on FetchPush | 1 | 8 | 13.0 | 12.0 min, 7 k steps | 13.0 min, 8 k steps | 1.00 |",
    ]
    assert lines[6:] == [
        "| random policy on FetchPush |  |  |  |  |  | 0.07 |",
        "<!-- /results -->",
        "b",
    ]


def test_a_difference_is_blank_where_a_later_seed_lacks_the_measure(store, tmp_path):
    store("her", {0: 0.5, 1: 0.5})
    store("tuned", {0: 0.5})
    store("tuned", {1: 0.5}, final_100_episodes={"ours": {"eval/object_moved_rate": 0.5}})
    text = tables.difference_table("mine", "her", tmp_path)
    assert text.splitlines()[2:] == ["| tuned on FetchPush, minus `her` |  |  |"]
    shown = tables.study_table("mine", tmp_path).splitlines()[3]
    assert shown.endswith(" | 0.50 (0.50, -) | 0.50 (-, 0.50) |")


def test_control_is_shown_with_every_seed_and_once_for_each_simple_policy(store, tmp_path):
    coverage = {"shove": {"coverage/kept_rate": 0.125}, "wave": {"coverage/object_cells": 7.0}}
    for seed, nats in ((0, 0.5), (1, 1.0)):
        control = {"ours": {"control/information": nats}, "random": {"control/information": 0.25}}
        store("music", {seed: 0.5}, control=control, coverage=coverage)
    store("old", {0: 0.5})
    columns = {"control/information": "nats", "coverage/kept_rate": "kept"}
    assert tables.measures_table("mine", columns, tmp_path).splitlines() == [
        "|  | nats | kept |",
        "|---|---|---|",
        "| music on FetchPush | 0.75 (0.50, 1.00) |  |",
        "| old on FetchPush |  |  |",
        "| random policy on FetchPush | 0.25 |  |",
        "| shove on FetchPush |  | 0.12 |",
    ]


def test_skills_have_a_row_each(store, tmp_path):
    metrics = {"skill/accuracy_heldout": 0.9, "eval/object_moved_rate": 1.0}
    skills = [
        {"skill": 0, "metrics": metrics, "shift_m": [0.0, -0.1, 0.2]},
        {"skill": 1, "metrics": {"eval/object_lift_rate": 0.25}, "shift_m": None},
    ]
    store("diayn", {3: 0.5}, skills=skills)
    assert tables.skills_table("mine", tmp_path).splitlines()[2:] == [
        "| diayn on FetchPush | 3 | 0 | 0.90 | 1.00 |  |  |  | +0.00, -0.10, +0.20 | ↓ 270° |",
        "| diayn on FetchPush | 3 | 1 |  |  |  |  | 0.25 |  |  |",
    ]


def test_what_skills_return_leaves_out_runs_without_any(store, tmp_path):
    metrics = {"eval/return": 300.0, "skill/accuracy_heldout": 0.5}
    skills = [{"metrics": metrics}, {"metrics": {**metrics, "eval/return": -2.0}}]
    store("smerl", {0: 0.0}, skills=skills)
    store("sac", {0: 0.0}, skills=[])
    assert tables.means_over_skills("mine", tmp_path).splitlines()[2:] == [
        "| smerl on FetchPush |  | 0.50 |  |  | -2.00 to 300 |"
    ]


def test_progress_is_shown_by_condition_with_every_seed(store, tmp_path):
    store("her", {0: 0.9, 1: 0.4})
    # So that its second thousand is the third in all
    store("tuned", {0: 1.0}, before={"time/env_steps": 1000.0})
    store("free", {0: 1.0}, rows=NO_TASK)
    assert tables.progress_table("mine", (2000, 3000, 4000), tmp_path).splitlines() == [
        "|  | seeds | success after 2 | 3 | 4 thousand steps |",
        "|---|---|---|---|---|",
        "| her on FetchPush | 2 | 0.50 (0.50, 0.50) | 0.65 (0.90, 0.40) |  |",
        "| tuned on FetchPush | 1 | 0.25 | 0.50 | 1.00 |",
    ]


def test_progress_of_what_has_another_name_is_shown_beside_it(store, tmp_path):
    for term, pay in (("music", 1.0), ("task", 2.0), ("entropy", 3.0)):
        rows = f"epoch,time/env_steps,time/elapsed_s,reward/{term}_mean\n1,1000,60,{{}}\n"
        store(term, {0: pay}, rows=rows)
    pay = partial(tables.progress_table, metric="reward/music_mean", others=["reward/task_mean"])
    assert pay("mine", (1000, 2000), tmp_path).splitlines() == [
        "|  | seeds | mean reward after 1 | 2 thousand steps |",
        "|---|---|---|---|",
        "| music on FetchPush | 1 | 1.00 |  |",
        "| task on FetchPush | 1 | 2.00 |  |",
    ]


def test_a_metric_is_read_off_between_epochs_by_training_episodes(store, tmp_path):
    titles = "epoch,time/env_steps,time/elapsed_s,time/episodes,skill/log_likelihood_running\n"
    rows = titles + "1,1000,60,100,-2.0\n2,2000,120,300,{}\n"
    store("twenty", {0: -1.0, 1: 0.0}, rows=rows)
    assert tables.episodes_table("mine", (100, 200, 400), tmp_path).splitlines() == [
        "|  | seeds | after 100 | 200 | 400 episodes |",
        "|---|---|---|---|---|",
        "| twenty on FetchPush | 2 | -2.00 (-2.00, -2.00) | -1.25 (-1.50, -1.00) |  |",
    ]


def test_an_average_is_shown_without_what_it_began_with(store, tmp_path):
    titles = "epoch,time/env_steps,time/elapsed_s,time/episodes,skill/log_likelihood_running\n"
    # begins with -1, then each episode brings -3: -1 * 0.99^n - 3 * (1 - 0.99^n) after n more
    values = [-1.0, *(-3.0 + 2.0 * 0.99**more for more in (1, 40))]
    numbers = (1, 2, 41)
    rows = "".join(
        f"{row},{row},{row},{seen},{value}\n"
        for row, (seen, value) in enumerate(zip(numbers, values, strict=True))
    )
    store("car", {0: 0.0}, rows=titles + "9,9,9,0,\n" + rows)
    found = tables.episodes_table("mine", (1, 2, 41), tmp_path, debiased=True).splitlines()[2:]
    assert found == ["| car on FetchPush | 1 |  | -3.00 | -3.00 |"]


def test_a_task_table_names_the_lag_of_a_command(tmp_path):
    (tmp_path / "mine").mkdir()
    for lag, said in enumerate(("", " --lag 0", " --lag 1")):
        comments = header(COMMAND.format(5) + said, "commit 1", {})
        (tmp_path / f"mine/seed{lag}.csv").write_text(comments + ROWS.format(0.75))
    rows = tables.task_table({"mine": 0.5}, tmp_path).splitlines()[2:]
    named = ["| FetchPush | 5", "| FetchPush, lag 0 | 5", "| FetchPush, lag 1 | 5"]
    assert [row[: len(name)] for row, name in zip(rows, named, strict=True)] == named


def test_returns_and_speed_stand_beside_those_of_another_library(tmp_path):
    # ours 3000 steps in 10 + 20 s of training, theirs 3000 in 60 s; returns 500 and 250
    ours = "time/env_steps,time/elapsed_s,time/fps,eval/return\n1000,70,100,1\n3000,90,100,2\n"
    theirs = "time/env_steps,time/elapsed_s,eval/return\n1000,20,1\n3000,60,{}\n"
    for folder in ("mine", "other"):
        (tmp_path / folder).mkdir()
    for seed, (mine, other) in enumerate([(400.0, 200.0), (600.0, 300.0)]):
        details = {"final_100_episodes": {"ours": {"eval/return": mine}}}
        name = f"Hopper-v5_seed{seed}.csv"
        (tmp_path / "mine" / f"sac_{name}").write_text(header(COMMAND, "commit 1", details) + ours)
        (tmp_path / "other" / f"sb3_{name}").write_text(header(COMMAND, "1") + theirs.format(other))
    assert tables.library_table("mine", "other", tmp_path).splitlines()[2:] == [
        "| Hopper-v5 | 500 (400, 600) | 250 (200, 300) | 2.00 (1.33 to 3.00) | 6000 | 3000 | 2.0 |"
    ]


def test_a_task_table_shows_when_a_level_was_reached(store, tmp_path):
    sparse = {"rows": SPARSE, "names": "mine/seed{1}.csv"}  # epochs without an evaluation
    store("", {3: 0.75}, names="mine/seed{1}.csv")
    store("", {4: 0.75}, **sparse)
    store("", {5: 0.75}, **sparse | {"rows": SPARSE.replace("0.5,", ",").replace("{}", "")})
    text = tables.task_table({"mine": 0.5}, tmp_path)
    # mean of the last five, of three: (0.25 + 0.5 + 0.75) / 3, and of two: (0.5 + 0.75) / 2
    assert text.splitlines()[2:] == [
        "| FetchPush | 3 | one core | 0.5 | 2.0 min, 2 k steps | 0.75 | 0.50 | 0.75 | 3.0 |",
        "| FetchPush | 4 | one core | 0.5 | 2.0 min, 2 k steps | 0.75 | 0.62 | 0.75 | 5.0 |",
        "| FetchPush | 5 | one core | 0.5 |  |  |  | 0.75 | 5.0 |",
    ]


def test_a_seed_that_never_came_to_a_level_is_later_than_all_others(store, tmp_path):
    store("", {3: 0.75, 4: 0.25, 5: 0.5}, names="mine/seed{1}.csv")

    def row(level):
        return tables.arrivals_table({"mine/seed*.csv": level}, tmp_path).splitlines()[2]

    begins = "| FetchPush, `ddpg_her` | one core | success"
    assert row({"eval/success_rate": 0.5}) == f"{begins} 0.5 | 2 (2, 2, 2) | 2.0 (2.0, 2.0, 2.0) |"
    assert row({"eval/success_rate": 0.7}) == f"{begins} 0.7 | - (3, -, -) | - (3.0, -, -) |"
    store("", {4: 0.75}, names="mine/seed{1}.csv")
    assert row({"eval/success_rate": 0.7}) == f"{begins} 0.7 | 3 (3, 3, -) | 3.0 (3.0, 3.0, -) |"
    first = tmp_path / "mine" / "seed3.csv"
    made = "commit 1, 2 cores of Some(R) Chip, alone"
    first.write_text(first.read_text().replace("commit 1", made))
    assert row({"eval/success_rate": 0.7}).split(" | ")[1] == "one core, Some Chip"


def test_skills_are_told_apart_as_in_the_last_evaluation(store, tmp_path):
    store("diayn", {3: 0.5}, rows=SPARSE)
    store("diayn", {4: 0.5})
    rows = tables.measures_table("mine", tables.TOLD_APART, tmp_path, False).splitlines()[2:]
    assert rows == ["| diayn on FetchPush | 0.75 (0.75, -) |  |  |  |"]


def test_how_skills_are_told_apart_is_compared_with_control_too(store, tmp_path):
    for name, variance, recognised in (("diayn", 0.0, (0.3, 0.32)), ("both", 1.0, (0.8, 0.82))):
        control = {"ours": {"control/skill_variance": variance}, "random": {}}
        for seed, last in enumerate(recognised):
            store(name, {seed: 0.5}, rows=SPARSE.replace("0.75", str(last)), control=control)
    assert tables.difference_table("mine", "diayn", tmp_path, tables.TOLD_APART).splitlines() == [
        "|  | recognised | object moved | variance of ends by skill | by chance |",
        "|---|---|---|---|---|",
        # 4.303 (2 degrees) x sqrt((0.0002 + 0.0002) / 2); all of 2: the lower end is 0.025^(1/2)
        "| both on FetchPush, minus `diayn` | +0.50 ± 0.06 |  "
        "| +1.00 (2 of 2: 0.16 to 1.00, 0 of 2: 0.00 to 0.84) |  |",
    ]


def test_a_marker_without_results_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean music_push"):
        tables.filled("<!-- results: music_psh -->\n<!-- /results -->")


def test_a_picture_is_outdated_when_its_results_or_its_content_change(monkeypatch, tmp_path):
    noted = dict(tables.PICTURES)
    changed = noted["search_push.png"]._replace(axis="minutes")
    monkeypatch.setattr(tables, "PICTURES", {**noted, "search_push.png": changed})
    assert tables.outdated_pictures() == ["search_push.png"]
    monkeypatch.setattr(tables, "PICTURES", noted)
    with monkeypatch.context() as patch:
        patch.setitem(tables.METRICS, "eval/object_lift_rate", "another title")
        assert sorted(tables.outdated_pictures()) == ["music_controls_pick.png", "search_pick.png"]
    (tmp_path / "push_success.png").write_bytes(b"another picture")
    for name in noted.keys() - {"push_success.png"}:
        (tmp_path / name).write_bytes((tables.IMAGES / name).read_bytes())
    monkeypatch.setattr(tables, "IMAGES", tmp_path)
    assert tables.outdated_pictures() == ["push_success.png"]


def test_checking_writes_nothing_and_says_what_differs(monkeypatch, tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    page = tmp_path / "README.md"
    page.write_text("<!-- results: her_fast -->\n<!-- /results -->\n")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "PICTURES", {})
    assert tables.main(["--check"]) == 1
    assert capsys.readouterr().out == "README.md\n"
    assert "FetchReach" not in page.read_text()
    assert tables.main([]) == 0
    assert "| FetchReach | 0 | one core |" in page.read_text()
    assert tables.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 1.0], "0.75 (0.50, 1.00)"),
        ([0.5, None, 1.0], "0.75 (0.50, -, 1.00)"),
        ([0.5, math.nan], "0.50 (0.50, -)"),
        ([0.5], "0.50"),
        ([None, math.nan], ""),
        ([], ""),
    ],
)
def test_a_seed_without_a_value_is_a_dash_in_its_place(values, expected):
    assert tables.each_seed(values) == expected


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        # Variances 0.01 / 3 and 0.04 / 3: an error of 0.1291 with 25 / 8.5 degrees, times 3.219
        ([0.4, 0.5, 0.6], [0.1, 0.3, 0.5], "+0.20 ± 0.42"),
        # Variances 1.2 / 6 on either side: an error of 0.6325 with 10 degrees, times 2.228
        ([4.0, 6.0] * 3, [1.0, 3.0] * 3, "+3.00 ± 1.41"),
        # Variances 40 / 39 / 40 on either side: an error of 0.2265 with 78 degrees, times 1.991
        ([4.0, 6.0] * 20, [1.0, 3.0] * 20, "+3.00 ± 0.45"),
        # Variances 0.5 / 2 and 0: an error of 0.5 with 1 degree, times 12.706
        ([2.5, 3.5], [1.0, 1.0, 1.0], "+2.00 ± 6.35"),
        ([1.0, 1.0], [0.5, 0.5, 0.5], "+0.50"),
        ([0.5], [0.1, 0.3], "+0.30"),
        ([0.5], [0.25], "+0.25"),
        ([0.5, None], [0.25, 0.5], ""),
        ([0.5, 1.0], [0.25, math.nan], ""),
    ],
)
def test_a_difference_has_its_interval_from_two_runs_of_each_on(values, others, expected):
    assert tables.difference(values, others) == expected


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        # No bound is near: 0.5 ± 0.25 and 0.3 ± 0.12 by t, so the interval is Welch's
        ([0.4, 0.5, 0.6], [0.25, 0.3, 0.35], "+0.20 ± 0.21"),
        # 0.9 ± 0.25 is over 1; both sides are at least one half on all seeds
        ([0.8, 0.9, 1.0], [0.5, 0.6, 0.7, 0.6], "+0.30 (3 of 3, 4 of 4)"),
        # (0.025)^(1/5) = 0.478 and its complement; a seed at one half counts
        (
            [1.0] * 4 + [0.5],
            [0.0] * 4 + [0.49],
            "+0.80 (5 of 5: 0.48 to 1.00, 0 of 5: 0.00 to 0.52)",
        ),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], "+0.00 (3 of 3, 3 of 3)"),
        ([0.7, 0.7], [0.2, 0.2], "+0.50"),
        ([1.0], [0.5, 0.5], "+0.50"),
    ],
)
def test_a_difference_of_shares_at_a_bound_has_counts_of_seeds(values, others, expected):
    assert tables.difference(values, others, shares=True) == expected


@pytest.mark.parametrize(
    ("count", "seeds", "expected"),
    [
        # all of n: the lower end is 0.025^(1/n)
        (3, 3, "0.29 to 1.00"),
        (5, 5, "0.48 to 1.00"),
        (10, 10, "0.69 to 1.00"),
        (0, 5, "0.00 to 0.52"),
        # of 4 of 5: 5 p^4 (1 - p) + p^5 = 0.025 at 0.2836, and 1 - p^5 = 0.975 at 0.9949
        (4, 5, "0.28 to 0.99"),
    ],
)
def test_the_exact_interval_of_a_share_of_seeds_stays_within_its_bounds(count, seeds, expected):
    assert tables.exact(count, seeds) == expected


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0.4, 0.5, 0.6], False),
        ([0.8, 0.9, 1.0], True),  # 0.9 ± 0.25
        ([0.98, 1.0, 0.99, 0.99, 0.99], False),  # 0.99 ± 0.009
        ([0.0, 0.0, 0.1], True),
        ([1.0, 1.0], True),
        ([0.5, 0.5], False),
    ],
)
def test_a_mean_whose_interval_leaves_the_shares_is_at_a_bound(shares, expected):
    assert tables.at_a_bound(shares) is expected


TITLES = "epoch,time/env_steps,time/elapsed_s,eval/object_on_support_rate,eval/object_comotion_m"
SEED = f"""# music-tf launch -n 2 train ddpg_music --seed 2
{TITLES},eval/success_rate
1,1000,60,0.9,0.1,
2,2000,120,0.9,0.3,
3,3000,180,,0.4,0.5
4,4000,240,0.5,0.3,
5,5000,300,,,
6,6000,360,1.0,0.25,
7,7000,420,,,
"""
SUPPORT, MOTION = "eval/object_on_support_rate", "eval/object_comotion_m"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "seed10.csv").write_text(SEED.replace("--seed 2", "--seed 10"))
    (tmp_path / "seed2.csv").write_text(SEED)
    return tmp_path


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        # Epoch 2, in row 1, is the first to meet both; of epochs 4 and 6, evaluated, one does.
        ({SUPPORT: 0.8, MOTION: 0.2}, (1, 0.5)),
        ({SUPPORT: 0.8, MOTION: 0.1}, (0, 2 / 3)),
        ({SUPPORT: 1.0}, (5, None)),  # nothing was evaluated after
        ({MOTION: 0.4}, (2, 0.0)),
        ({MOTION: 0.5}, (None, None)),
        ({SUPPORT: 0.0, "eval/success_rate": 0.0}, (None, None)),  # never in the same epoch
        ({"eval/object_lift_rate": 0.0}, (None, None)),  # no such column
    ],
)
def test_epochs_without_an_evaluation_count_neither_way(folder, conditions, expected):
    columns = read_result(folder / "seed2.csv").columns
    assert tables.first_time(columns, conditions) == expected


POLICIES = {"ours": {MOTION: 0.9}, "random": {MOTION: 0.1}}
THEN = "# then music-tf train --run-dir ... --resume --max-minutes 7\n"


@pytest.mark.parametrize(
    ("budget", "then", "rows"),
    [
        ("--max-minutes 7", "", 7),
        ("--max-minutes 4", "", 7),  # nobody prolonged it, so minutes were counted otherwise
        ("--max-minutes 4", THEN, 4),
        ("--max-minutes 3.5", THEN, 4),  # the epoch in which they pass is the last
        ("--epochs 3 --max-minutes 9", THEN, 3),
        ("--max-minutes 9", THEN, 7),  # cut off, and taken to its end
        ("", THEN, 7),
    ],
)
def test_a_prolonged_run_counts_at_the_budget_of_its_first_command(tmp_path, budget, then, rows):
    path = tmp_path / "seed2.csv"
    comments = header(f"music-tf train ddpg_music {budget}", "1", {FINAL: POLICIES})
    path.write_text(then + comments + SEED.partition("\n")[2])
    result = tables.read(path)
    assert result.resumed == ((THEN[7:-1],) if then else ())
    assert {len(values) for values in result.columns.values()} == {rows}
    assert tables.final_of(result) == ({MOTION: 0.9} if rows == 7 else {})
    assert tables.final_of(result, "random") == {MOTION: 0.1}


def test_coverage_is_shown_where_it_was_measured_with_every_shove(store, tmp_path):
    ours = {"coverage/kept_rate": 0.9, "coverage/displacement_cells": 83.0}
    coverage = {
        "ours": ours,
        "random": {"coverage/kept_rate": 1.0},
        "shove in random directions": {"coverage/kept_rate": 0.25},
    }
    store("music", {0: 0.5}, coverage=coverage)
    store("old", {0: 0.5}, coverage={})
    header, _, music, old, *beside = tables.study_table("mine", tmp_path).splitlines()
    assert header.endswith(" | success | kept | displacement cells |")
    assert music.endswith(" | 0.50 | 0.90 | 83 |")
    assert old.endswith(" | 0.50 |  |  |")
    assert beside == [
        "| random policy on FetchPush |  |  |  |  |  | 0.07 | 1.00 |  |",
        "| shove in random directions on FetchPush |  |  |  |  |  |  | 0.25 |  |",
    ]
    shown = tables.difference_table("mine", "old", tmp_path).splitlines()
    assert shown[0] == "|  | success | kept | displacement cells |"
    header, _, music, _, *beside = tables.control_table({"mine": "{seed}"}, tmp_path).splitlines()
    assert header.endswith(" | cells | kept | displacement cells |")
    assert music.endswith(" |  | 0.90 | 83 |")
    assert beside[-1].startswith("| shove in random directions |")
    assert beside[-1].endswith(" | 0.25 |  |")
    store("other", {0: 0.5}, names="other/{}_FetchPush-v4_seed{}.csv")
    assert "kept" not in tables.study_table("other", tmp_path)


def test_minutes_are_those_since_the_launch_where_they_are_known(store, tmp_path):
    launched = ROWS.replace("time/elapsed_s", "time/elapsed_s,time/wall_s")
    for minute in (1, 2, 3):
        launched = launched.replace(f",{60 * minute},", f",{60 * minute},{60 * minute + 30},")
    store("her", {0: 0.9}, rows=launched)
    store("old", {0: 0.9})
    her, old = tables.study_table("mine", tmp_path).splitlines()[2:4]
    assert "| 3.5 | 2.5 min, 2 k steps |" in her
    assert "| 3.0 | 2.0 min, 2 k steps |" in old


def test_control_that_nothing_follows_has_no_share_that_held(tmp_path):
    rows = "1,1000,60,{},0.3\n2,2000,120,,\n3,3000,180,0.9,0.36\n"
    for seed, first in ((3, 0.5), (4, 0.9)):
        text = f"# music-tf train\n{TITLES}\n{rows.format(first)}"
        (tmp_path / f"seed{seed}.csv").write_text(text)
    _, _, *rows = tables.control_table({"*.csv": "seed {seed}"}, tmp_path).splitlines()
    assert [row.split(" | ")[2:6] for row in rows] == [
        ["3.0 min, 3 k steps", "", "0.36", "3.0"],
        ["1.0 min, 1 k steps", "100%", "0.33", "3.0"],
    ]
    higher = {"eval/object_comotion_m": 0.34}
    header, _, *rows = tables.control_table(
        {"*.csv": "seed {seed}"}, tmp_path, wanted=higher, name="carries"
    ).splitlines()
    assert header.split(" | ")[2] == "carries"
    assert [row.split(" | ")[2] for row in rows] == ["3.0 min, 3 k steps"] * 2


def test_a_setting_is_judged_by_its_share_of_evaluations_with_control_on_each_task(tmp_path):
    header = f"# music-tf train\n{TITLES}\n"
    motions = {"Push": (0.2, 0.3, 0.1, 0.2, 0.2, 0.3), "Pick": (0.1, 0.2, 0.0, 0.1, 0.1, 0.0)}
    for task, values in motions.items():
        rows = [f"{i},{i}000,{i}0,1.0,{value}\n" for i, value in enumerate(values, 1)]
        for seed, kept in ((102, [*rows[:4], "5,5000,50,,\n", *rows[4:]]), (103, rows[2:])):
            path = tmp_path / f"mine/a_{task}-v4_seed{seed}.csv"
            path.parent.mkdir(exist_ok=True)
            path.write_text(header + "".join(kept))
    shown = {"Push-v4": [MOTION], "Pick-v4": []}
    (tmp_path / "mine/b_Pick-v4_seed102.csv").write_text(header + "1,1000,10,0.9,0.2\n")
    labels = {"a": "this", "b": "that"}
    assert tables.search_table("mine", labels, shown, tmp_path).splitlines() == [
        "|  | had control | on Push | co-motion (m) on Push | on Pick |",
        "|---|---|---|---|---|",
        # (5/6 + 3/4) / 2, of the last five (0.3 + 0.1 + 0.2 + 0.2 + 0.3) / 5, of four 0.8 / 4
        "| this | 0.44 | 0.79 (0.83, 0.75) | 0.21 (0.22, 0.20) | 0.08 (0.17, 0.00) |",
        "| that |  |  |  | 1.00 |",
    ]
    joined = tables.search_table("mine", dict.fromkeys(labels, "both"), shown, tmp_path)
    # (19/24 + (1/6 + 0 + 1) / 3) / 2
    assert joined.splitlines()[2:] == [
        "| both | 0.59 | 0.79 (0.83, 0.75) | 0.21 (0.22, 0.20) | 0.39 (0.17, 0.00, 1.00) |"
    ]


def test_seeds_stand_in_the_order_of_their_numbers(folder):
    (runs,) = tables.runs_of(folder.name, folder.parent).values()
    assert [tables.option_of(run, "seed") for run in runs] == ["2", "10"]
    with pytest.raises(UsageError, match="holds no stored result"):
        tables.runs_of("mistyped", folder)


def test_a_study_says_itself_what_its_table_shows(store, tmp_path):
    store("plain", {0: 0.9, 1: 0.4})
    store("plain_more", {0: 1.0})
    tasks = (Task(env_id="FetchPush-v4", seeds=(0, 1)),)
    conditions = (
        Condition(name="plain", recipe="ddpg"),
        Condition(name="plain_more", label="with more", recipe="ddpg"),
    )
    study = Study(
        question="Which?",
        role="looked at",
        tasks=tasks,
        conditions=conditions,
        shown={"eval/success_rate": "success"},
    )
    # deviation of 0.9 and 0.4 over sqrt(2) is 0.25, and t of one degree of freedom 12.706
    assert tables.shown_table("mine", study, tmp_path).splitlines() == [
        "|  | success | seeds |",
        "|---|---|---|",
        "| plain, FetchPush | 0.65 ± 3.18 | 2 |",
        "| with more, FetchPush | 1.00 | 1 |",
        "| random actions, FetchPush | 0.07 | 1 |",
    ]


def test_what_was_measured_at_the_end_of_a_run_comes_before_its_last_epoch(store, tmp_path):
    for seed, last in ((0, -9.0), (1, -8.0)):
        ours = {"adapt/return_last": last, "eval/success_rate": 0.25}
        adaptation = {"ours": ours, "random": {"adapt/return_last": 2.0 * last}}
        store("pearl", {seed: 0.5}, adaptation=adaptation)
    study = Study(
        question="?",
        role="tuning",
        tasks=(),
        conditions=(Condition(name="pearl", recipe="sac_pearl"),),
        shown={"eval/success_rate": "success", "adapt/return_last": "after 6"},
    )
    assert tables.shown_table("mine", study, tmp_path).splitlines() == [
        "|  | success | after 6 | seeds |",
        "|---|---|---|---|",
        "| pearl, FetchPush | 0.25 | -8.50 ± 6.35 | 2 |",
        "| random actions, FetchPush | 0.07 | -17.00 ± 12.71 | 2 |",
    ]


def in_world(epoch, world, skill, learned_in, x, moved=0.0):
    """A row of `worlds.csv`, of a run whose world changes after an epoch."""
    now = {"epoch": epoch, "stage": epoch - 1, "next_stage": 1, "world": world, "skill": skill}
    return now | {"learned_in": learned_in, "return": x, "end_0": x, "end_1": 2.0, "moved": moved}


CHANGED = [
    *(in_world(1, 0, 0, 0, -3.0), in_world(1, 1, 0, 0, 9.0)),
    *(in_world(2, 0, 0, 0, -5.0, 2.0), in_world(2, 1, 0, 0, 8.0, 1.0)),
    *(in_world(2, 0, 1, 1, 0.0), in_world(2, 1, 1, 1, 7.5)),
]
"""A skill of the first stage that trains on, and one of the second."""


def worlds_study(store, rows):
    store("plain", {0: 0.9}, worlds=rows)
    return Study(
        question="Which?",
        role="looked at",
        tasks=(Task(env_id="FetchPush-v4", seeds=(0,)),),
        conditions=(Condition(name="plain", label="DISk", recipe="ddpg"),),
        shown={"worlds/furthest": "furthest", "worlds/moved": "moved"},
    )


def test_what_was_learned_after_a_change_counts_as_new_and_what_moved_in_the_old_world_as_lost(
    store, tmp_path
):
    study = worlds_study(store, CHANGED)
    # the first skill ends further off in the new world, but was not learned there; that of the
    # second has moved by 0, but was not there before the change
    assert tables.shown_table("mine", study, tmp_path).splitlines()[2:] == [
        "| DISk, FetchPush | 7.50 | 2.00 | 1 |"
    ]
    worlds_study(store, CHANGED[2:])  # of a world that never changed
    (row,) = tables.shown_table("mine", study, tmp_path).splitlines()[2:]
    assert row == "| DISk, FetchPush | 7.50 |  | 1 |"


def test_a_table_shows_each_skill_in_each_world_at_first_and_at_the_end(store, tmp_path):
    study = worlds_study(store, CHANGED)
    assert tables.worlds_table("mine", study, tmp_path).splitlines() == [
        "|  | skill | learned in | played in | return first | return at the end | "
        "ends first; at the end | moved | nearest |",
        "|---|---|---|---|---|---|---|---|---|",
        "| DISk, FetchPush | 0 | 0 | 0 | -3.00 | -5.00 | -3.00, 2.00; -5.00, 2.00 | 2.00 |  |",
        "| DISk, FetchPush | 0 | 0 | 1 | 9.00 | 8.00 | 9.00, 2.00; 8.00, 2.00 | 1.00 |  |",
        "| DISk, FetchPush | 1 | 1 | 0 | 0.00 | 0.00 | 0.00, 2.00; 0.00, 2.00 | 0.00 |  |",
        "| DISk, FetchPush | 1 | 1 | 1 | 7.50 | 7.50 | 7.50, 2.00; 7.50, 2.00 | 0.00 |  |",
    ]


def test_a_study_without_results_has_a_line_that_says_so(tmp_path, store, monkeypatch):
    monkeypatch.setattr(tables, "STUDIES", tmp_path)
    page = "<!-- results: {} -->\nold\n<!-- /results -->\n"
    (tmp_path / "mine.py").write_text(STUDY_FILE)
    for name in ("mine", "mine_worlds"):
        assert tables.filled(page.format(name), tmp_path) == page.format(name).replace(
            "old", "Not measured yet."
        )
    worlds_study(store, CHANGED)
    assert "| 0.90 | 1 |" in tables.filled(page.format("mine"), tmp_path)
    assert "7.50, 2.00" in tables.filled(page.format("mine_worlds"), tmp_path)
    with pytest.raises(UsageError, match="no table miner"):
        tables.filled(page.format("miner"), tmp_path)


STUDY_FILE = """
from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Which?",
    role="looked at",
    tasks=(Task(env_id="FetchPush-v4", seeds=(0,)),),
    conditions=(Condition(name="plain", recipe="ddpg"),),
    shown={"eval/success_rate": "success"},
)
"""


def test_a_study_shows_what_was_measured_at_the_end_or_a_blank(store, tmp_path):
    apart = "skill/hausdorff_mean"
    for seed, value in enumerate((3.0, 5.0)):
        final = {"ours": {apart: value}, "random": {apart: 1.5 + seed}}
        store("plain", {seed: 0.9}, final_100_episodes=final)
    store("old", {0: 0.9})
    study = Study(
        question="Which?",
        role="looked at",
        tasks=(Task(env_id="FetchPush-v4", seeds=(0, 1)),),
        conditions=(
            Condition(name="old", recipe="ddpg"),
            Condition(name="plain", recipe="ddpg"),
        ),
        shown={apart: "apart"},
    )
    assert tables.shown_table("mine", study, tmp_path).splitlines()[2:] == [
        "| old, FetchPush |  | 1 |",
        "| plain, FetchPush | 4.00 ± 12.71 | 2 |",
        "| random actions, FetchPush | 2.00 ± 6.35 | 2 |",
    ]
