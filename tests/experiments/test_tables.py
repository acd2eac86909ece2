import json
import math
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from experiments import stored, study_pictures, study_readme, study_table, tables
from music_tf.errors import UsageError
from music_tf.storage.results import header
from tests.kit.cases import cases

COMMAND = "music-tf train ddpg_her --env-id FetchPush-v4 --seed {} --threads 1"
ROWS = """epoch,time/env_steps,time/elapsed_s,eval/success_rate
1,1000,60,0.25
2,2000,120,0.5
3,3000,180,{}
"""
STUDY = """
from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Which?",
    role="looked at",
    tasks=(Task(env_id="FetchPush-v4", seeds=(0, 1), level={"eval/success_rate": 0.9}),),
    conditions=(
        Condition(name="her", recipe="ddpg_her"),
        Condition(name="more", label="with more", recipe="ddpg_her"),
    ),
    shown={"eval/success_rate": "success", "level/steps": "0.9 after"},
    compared_with="her",
    followed=("eval/success_rate",),
)
"""
MADE = "commit 0123456789012345678901234567890123456789, tensorflow 2, 2 cores of Some(R) Chip, one"


@pytest.fixture
def place(tmp_path, monkeypatch):  # a folder with the study `mine`, and where its results lie
    monkeypatch.setattr(stored, "STUDIES", tmp_path)
    monkeypatch.setattr(study_pictures, "STUDIES", tmp_path)
    (tmp_path / "mine.py").write_text(STUDY)
    return tmp_path


def store(place, condition, successes, made=MADE, **more):
    """Stores a condition on FetchPush: each seed ends with the success that is given."""
    for seed, last in successes.items():
        policies = {"ours": {"eval/success_rate": last}, "random": {"eval/success_rate": 0.07}}
        path = place / "mine" / f"{condition}_FetchPush-v4_seed{seed}.csv"
        path.parent.mkdir(exist_ok=True)
        comments = header(COMMAND.format(seed), made, {"final_100_episodes": policies, **more})
        path.write_text(comments + ROWS.format(last))


def lines_of(place):
    text = "a\n<!-- results: mine -->\nold\n<!-- /results -->\nb\n"
    return tables.filled(text, place / "page.md", place).splitlines()[2:-2]


def test_pages_readmes_and_pictures_show_the_stored_results():
    # Every cell of every table is compared. If this fails after a new result: make results
    assert sorted(str(path) for path in tables.outdated()) == []
    assert study_pictures.outdated_pictures() == []


def test_every_study_and_agent_has_a_page_of_results():
    index = (stored.RESULTS / "README.md").read_text(encoding="utf-8")
    for name in tables.studies_in(stored.RESULTS):
        assert f"]({name}/README.md)" in index
        lines = stored.about(name).splitlines()
        assert lines[0] in (stored.RESULTS / name / "README.md").read_text(encoding="utf-8")
    agents = (stored.ROOT / "music_tf/weights").glob("*/agent.json")
    published = [json.loads(about.read_text())["published"] for about in agents]
    assert [path for path in published if not (stored.ROOT / path).exists()] == []


def test_tables_of_results_have_few_columns_and_rows_that_can_be_told_apart():
    text = (stored.ROOT / "docs/results.md").read_text(encoding="utf-8")
    found = re.findall(r"<!-- results: .*?<!-- /results -->", text, re.DOTALL)
    assert len(found) > 5
    for table in found:
        assert max(line.count(" | ") for line in table.splitlines()) < 5, table
        titles = re.findall(r"^\| (.*?) \| ", table, re.MULTILINE)
        assert sorted(titles) == sorted({*titles})


@cases(
    ("versions", "said"),
    (["3.10.0", "3.10.0"], ""),
    (["3.17.0", "3.17.0"], "; MuJoCo 3.17.0"),
    (["3.10.0", "3.17.0"], "; MuJoCo 3.10.0, 3.17.0"),
)
def test_a_page_names_another_mujoco_than_the_usual_one(place, versions, said):
    for seed, version in enumerate(versions):
        store(place, "her", {seed: 0.5}, f"{MADE}, mujoco {version}")
    assert study_table.made_by("mine", stored.groups_of("mine", place)).endswith(f"Chip{said}")


def test_a_time_is_shown_with_the_seeds_that_came_to_the_level():
    group = SimpleNamespace(final=lambda metric: [40.0, math.inf, 24.0])
    for metric in (stored.FIRST, stored.WINDOW):
        assert study_table.cell(group, metric) == "2 of 3 seeds: 40 (24 to never)"


def test_a_page_leaves_single_seeds_and_waiting_conditions_to_the_readme(place):
    assert lines_of(place) == ["Not measured yet: `music-tf study experiments/studies/mine.py`."]
    store(place, "her", {0: 0.9})
    assert lines_of(place) == ["Rows of single seeds: [mine](mine/README.md)."]
    readme = study_readme.readme("mine", place)
    assert "; Some Chip. Not run yet on FetchPush: with more." in readme
    assert "| her | 0.90 |" in readme
    (place / "mine.py").write_text(STUDY.replace("seeds=(0, 1)", "seeds=(0, 1, 2)"))
    store(place, "her", {0: 0.9, 1: 0.8})
    store(place, "more", {0: 0.9})
    assert [row.rpartition(" | ")[2] for row in lines_of(place)[2:-2]] == ["2 of 3 |", "2 |"]


def test_random_actions_of_conditions_that_share_a_row_agree():
    # on a seed, within two goals of 200; explained variance depends on the number of conditions
    for name in tables.studies_in(stored.RESULTS):
        study, groups = stored.planned(name), stored.groups_of(name, stored.RESULTS)
        seen = {}
        for metric in {*study.shown, *study.overview} - {"control/skill_variance"}:
            for group in groups:
                for seed, one in zip(group.runs, group.beside("random"), strict=True):
                    if metric in one:
                        row = (metric, group.place, f"{group.played}", seed)
                        first = seen.setdefault(row, one[metric])
                        assert one[metric] == pytest.approx(first, abs=0.011), (name, row)


def test_a_value_is_the_mean_of_a_condition_as_in_a_table(place):
    store(place, "her", {0: 0.25, 1: 0.5})
    text = "| a | <!-- value: mine/her_FetchPush-v4 {} -->9<!-- /value --> m |\n"

    def stated(metric):
        return tables.filled(text.format(metric), place / "README.md", place)

    assert ">0.38: 1 of 2 seeds (0.01 to 0.99)<" in stated("eval/success_rate")
    assert ">0.38 (least 0.25)<" in stated("eval/success_rate least")
    assert ">0.07<" in stated("eval/success_rate random")
    with pytest.raises(UsageError) as fault:
        stated("eval/success_rat")
    assert str(fault.value) == (
        "README.md, line 1, '| a | <!-- value: mine/her_FetchPush-v4 eval/success_rat -->"
        "9<!-- /value --> m |': mine: a seed of 'her_FetchPush-v4' lacks 'eval/success_rat'\n"
        "did you mean eval/success_rate?"
    )
    with pytest.raises(UsageError, match="no run of 'his_FetchPush-v4'\ndid you mean her_Fetch"):
        tables.filled(text.replace("/her", "/his"), place / "README.md", place)


@cases(
    ("change", "text"),
    (("mine -->", "mien -->"), "there is no study 'mien'\ndid you mean mine?"),
    (('"eval/success_rate": "success", "level/steps": "0.9 after"', ""), "mine: does not say"),
    (('"eval/success_rate": "s', '"eval/succes": "s'), "mine: no run has 'eval/succes', which"),
    (('"success"', "1"), "Study : shown: expected Mapping[str, str]"),
)
def test_what_a_page_states_and_no_run_has_is_refused_with_page_and_row(place, change, text):
    store(place, "her", {0: 0.9, 1: 0.9})
    (place / "mine.py").write_text(STUDY.replace(*change))
    marked = "a\n<!-- results: mine -->\n<!-- /results -->\n".replace(*change)
    with pytest.raises(UsageError, match=re.escape(text)) as fault:
        tables.filled(marked, place / "page.md", place)
    assert str(fault.value).startswith("page.md, line 2, '<!-- results: mi")


def test_a_picture_is_outdated_when_its_results_or_its_content_change(monkeypatch, tmp_path):
    known = study_pictures.pictures()
    study, picture = known["push_success.png"]
    assert study_pictures.levels_of(study, picture) == {"eval/success_rate": 0.95}
    changed = {**known, "push_success.png": (study, replace(picture, axis="steps"))}
    with monkeypatch.context() as patch:
        patch.setattr(study_pictures, "pictures", lambda: changed)
        assert study_pictures.outdated_pictures() == ["push_success.png"]
    (tmp_path / "push_success.png").write_bytes(b"another picture")
    for name in known.keys() - {"push_success.png"}:
        (tmp_path / name).write_bytes((study_pictures.IMAGES / name).read_bytes())
    monkeypatch.setattr(study_pictures, "IMAGES", tmp_path)
    assert study_pictures.outdated_pictures() == ["push_success.png"]


def test_checking_writes_nothing_and_says_what_differs(place, monkeypatch, capsys):
    store(place, "her", {0: 0.25, 1: 0.5})
    (place / "docs").mkdir()
    home = place / "README.md"
    home.write_text("<!-- results: mine -->\n<!-- /results -->\n")
    monkeypatch.setattr(tables, "ROOT", place)
    monkeypatch.setattr(tables, "RESULTS", place)
    monkeypatch.setattr(study_pictures, "ORIGINS", place / "made_from.json")
    monkeypatch.setattr(tables, "filled", partial(tables.filled, results=place))
    monkeypatch.setattr(tables, "readme", partial(tables.readme, results=place))
    assert tables.main(["--check"]) == 1
    assert capsys.readouterr().out.split() == ["mine/README.md", "README.md"]
    assert "her" not in home.read_text()
    assert tables.main([]) == 0
    assert "| her, FetchPush | 0.38: 1 of 2 seeds" in home.read_text()
    assert "### her, FetchPush" in (place / "mine/README.md").read_text()
    assert tables.main(["--check"]) == 0
