import base64
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from music_tf.cli import run_verb
from music_tf.errors import UsageError
from music_tf.storage.lock import RunLock
from music_tf.storage.metrics import MetricsWriter
from music_tf.storage.worlds import WorldsTable
from music_tf.tools import report
from music_tf.tools.report import (
    all_policies,
    missing,
    number,
    read_recorded,
    write_report,
)
from tests.kit.cases import cases
from tests.kit.recorded import TOY, write_run

LABEL = f"ddpg_music on {TOY}, seed 0"
HOSTILE = "</style><script>alert('x')</script>\"&"
OURS = {"eval/object_comotion_m": 0.21, "eval/object_moved_rate": 1.0}
RANDOM = {"eval/object_comotion_m": 0.07, "eval/object_moved_rate": 0.5}
SUCCEEDS = {"eval/success_rate": 0.25}
START = {
    "run": "/runs/push/checkpoints",
    "checkpoint": "epoch_000007",
    "epoch": 7,
    "parts": ["actor", "critic"],
    "before": {"time/env_steps": 5000.0, "time/elapsed_s": 600.0},
}


class Page:  # a page as its reader sees it; it is well-formed XML
    def __init__(self, path):
        self.source = path.read_text("utf-8")
        self.root = ElementTree.fromstring(self.source)
        self.text = text_of(self.root)

    def all(self, path):
        return self.root.findall(f".//{path}")

    def texts(self, path):
        return [text_of(element) for element in self.all(path)]

    @property
    def addresses(self):
        names = {"src", "href", "{http://www.w3.org/1999/xlink}href"}
        return [e.attrib[name] for e in self.root.iter() for name in names & e.attrib.keys()]

    def tiles(self):
        return {text_of(tile[1]): text_of(tile[0]) for tile in self.all("div[@class='tile']")}

    def table(self, title):
        """The texts of a table's cells by the first of their row; the heads are under ''."""
        heads = [element for element in self.root.iter() if element.tag in {"h2", "h3", "table"}]
        at = next(n for n, element in enumerate(heads) if text_of(element) == title)
        found = next(element for element in heads[at:] if element.tag == "table")
        first, *others = ([text_of(cell) for cell in row] for row in found.iter("tr"))
        return {"": first, **{label: cells for label, *cells in others}}


def text_of(element):
    return " ".join("".join(element.itertext()).split())


def make_run(path, *words, epochs=3, recipe="ddpg_music", pictures=False):
    """Writes a run directory as `train` leaves it behind, without a summary."""
    made = {"host": "robot", "versions": {"numpy": "2.9"}, "commit": "c0ffee", "cores": 2}
    write_run(path, recipe, *words, **made)
    writer = MetricsWriter(path, resume_after=None)
    for epoch in range(1, epochs + 1):
        row = {"time/epoch": epoch, "time/env_steps": 100 * epoch, "time/elapsed_s": 60 * epoch}
        writer.write({**row, "eval/object_comotion_m": 0.1 * epoch, "train/mean_q": -1.0 / epoch})
        if pictures:
            Image.new("RGB", (40, 40)).save(path / f"paths_{100 * epoch}.png")
    return path


def change(path, **changes):  # lets the configuration of a run say something else
    stored = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(stored | changes))


def finish(path, epochs=3):
    summary = {"epochs": epochs, "episodes": 100, "evaluation": {"ours": OURS, "random": RANDOM}}
    (path / "summary.json").write_text(json.dumps(summary))
    return path


def evaluate(path, epoch, **more):
    """Writes what `evaluate` leaves behind; ours is half of what training's end measures."""
    evaluation = {
        "episodes": 20,
        "checkpoint": {"epoch": epoch},
        "policies": {"ours": {name: value / 2.0 for name, value in OURS.items()}, "random": RANDOM},
    }
    (path / "evaluation.json").write_text(json.dumps(evaluation | more))


def save(path):  # leaves a checkpoint behind, of which a page looks at the name alone
    (path / "checkpoints" / "epoch_000003").mkdir(parents=True)
    return path


def film(path, **sizes):
    (path / "videos").mkdir()
    for name, size in (sizes or {"policy_gif": 6}).items():
        (path / "videos" / name.replace("_", ".")).write_bytes(b"x" * size)


def page_of(tmp_path, *runs):
    out = tmp_path / "page" / "report.html"
    assert write_report(runs, out) == {}
    return Page(out)


CONTROLLED = {
    "control/coverage": 0.25,
    "control/skill_variance": 0.5,
    "control/skill_variance_chance": 0.04,
    "control/information": 0.75,
    "control/information_null": 0.125,
    "control/information_null_std": 0.01,
    "control/information_p": 1 / 21,
}
WAYS = [[0.0, 0.2, -0.1], [0.01, 0.0, 0.0], ["x", 0, 1]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):  # the page of a run with all that there can be
    folder = tmp_path_factory.mktemp("whole")
    words = ("--seed", "7", "--skills", "3", "--music.gain", "42", "--epochs", "3")
    run = finish(save(make_run(folder / "run", *words, pictures=True)))
    skills = [
        {"skill": skill, "metrics": {"eval/object_comotion_m": 0.1 + skill}, "shift_m": way}
        for skill, way in enumerate(WAYS)
    ]
    control = {"ours": CONTROLLED, "random": {"control/coverage": "?"}}
    covered = {"ours": {"coverage/kept_rate": 0.875}, "random": {"coverage/kept_rate": 1.0}}
    evaluate(run, 3, skills=skills, control=control, coverage=covered, coverage_episodes=200)
    film(run, policy_mp4=600, skills_gif=400)
    return page_of(folder, run)


def test_a_page_says_what_was_run_and_how_far_it_came_with_a_curve_for_each_metric(whole):
    (title,) = whole.texts("h1")
    assert title == "ddpg_music on music_tf/PointPush-v0, seed 7"
    assert whole.texts("p[@class='quiet']")[0] == "finished, 3 epochs"
    assert "A point of an evaluation is the mean of 40 episodes" in whole.text
    assert {"numpy2.9", "commitc0ffee", "hostrobot", "cores2"} <= set(whole.texts("tr"))
    command = f"music-tf train ddpg_music --env-id {TOY} --seed 7 --skills 3 --music.gain 42"
    command += " --epochs 3"
    assert whole.texts("pre") == [command]
    assert whole.tiles() == {
        "Co-motion, m": "0.105",
        "environment steps": "300",
        "training": "3.0 min",
    }
    assert whole.texts("figcaption")[0].startswith("Co-motion, m path of the object")
    assert (len(whole.all("{*}svg")), "1 more curve" in whole.text) == (2, True)


def test_a_run_that_ended_before_its_last_epoch_was_stopped(tmp_path):
    page = page_of(tmp_path, finish(make_run(tmp_path / "run", "--epochs", "5")))
    assert page.texts("p[@class='quiet']")[0] == "stopped by --max-minutes, 3 of 5 epochs"


def test_random_actions_are_a_line_in_the_curve_of_a_policy_and_constants_have_no_curve(tmp_path):
    run = finish(write_run(tmp_path / "run", "ddpg_music"), 2)
    writer = MetricsWriter(run, resume_after=None)
    for epoch in (1, 2):
        row = {"time/epoch": epoch, "time/env_steps": epoch, "eval/object_lift_rate": 0.0}
        row |= {"eval/information": 0.1 * epoch, "eval/information_random": 0.002}
        writer.write({**row, "eval/object_comotion_m": 0.1 * epoch})
    page = page_of(tmp_path, run)
    titles = [text_of(title) for title in page.all("figcaption/b")]
    assert titles == ["Co-motion, m", "Information"]
    assert page.source.count("stroke-dasharray") >= 3  # random twice, and the level of control
    assert page.tiles()["Co-motion, m"] == "0.210"


def test_a_return_that_nothing_pays_has_no_curve_and_what_is_paid_comes_first(tmp_path):
    pays = {"music/bound_heldout": 0.1, "music/bound_random": 0.0, "eval/length": 50.0}
    policies = {"ours": {"eval/return": 0.0, "eval/length": 50.0, "eval/information": 1.0}}
    bounds = {"music/bound_heldout", "music/bound_random"}
    paid = {"eval/return", "eval/length"}
    for recipe, drawn, leading in (("ddpg_music", bounds, bounds), ("ddpg", bounds | paid, paid)):
        run = tmp_path / recipe
        write_run(run, recipe)
        writer = MetricsWriter(run, resume_after=None)
        for epoch in (1, 2):
            row = {"time/epoch": epoch, "time/env_steps": 100 * epoch, "train/mean_q": 0.5}
            writer.write({**row, "eval/return": 0.0, **pays})
        evaluate(run, 2, policies=policies)
        recorded = read_recorded(run)
        telling = report.telling_columns(recorded)
        assert telling - report._TIMES == drawn | {"epoch", "train/mean_q"}
        assert report.leading_columns([recorded]) & telling == leading
        columns = set(recorded.measured.policies["ours"])
        assert columns == {"eval/information"} | (paid & drawn)


def test_behaviour_stands_beside_simple_policies_and_skills_beside_the_random_one(whole):
    table = {name: cells[:2] for name, cells in whole.table("Behaviour").items()}
    assert table == {
        "": ["metric", "policy"],
        "Co-motion, m": ["0.105", "0.070"],  # first, since displacement shows no control
        "Moved rate": ["0.500", "0.500"],
    }
    bars = [cell.attrib["style"] for cell in whole.all("td") if "style" in cell.attrib]
    assert bars[:4] == ["--share:100%", "--share:67%", "--share:100%", "--share:100%"]
    assert "20 episodes with the checkpoint of epoch 3. Each skill plays" in whole.text
    assert whole.table("Skills") == {
        "": ["skill", "Co-motion, m", "Moved rate", "Dx, m", "Dy, m", "Dz, m"],
        "skill 0 ↑ 90°": ["0.100", "-", "0.000", "0.200", "-0.100"],
        "skill 1": ["1.100", "-", "0.010", "0.000", "0.000"],
        "skill 2": ["2.100", "-", "-", "0.000", "1.000"],
        "random": ["0.070", "0.500", "-", "-", "-"],
    }


def test_what_skills_do_in_a_changing_world_is_a_table(tmp_path):
    run = make_run(tmp_path / "run")
    table = WorldsTable(run, print)
    row = {"stage": 0, "next_stage": 1, "world": 0, "skill": 2, "return": 5.0, "end_0": 1.0}
    table.add([row | {"epoch": 1}, row | {"epoch": 3, "end_0": 4.0}])
    table.add([{"epoch": 3, "stage": 1, "next_stage": 1, "world": 1, "return": 7.0}])
    assert read_recorded(run).worlds() == {
        "skill 2 in stage 0, epoch 1": {"return": 5.0, "moved": 0.0},
        "skill 2 in stage 0, epoch 3": {"return": 5.0, "moved": 3.0},
        "policy in stage 1, epoch 3": {"return": 7.0},
    }


def test_control_stands_beside_chance_and_coverage_says_of_how_many_episodes_it_is(whole):
    rows = whole.table("Control")
    assert rows.pop("") == ["measure", "ours", "random", "meaning"]
    assert {name: cells[:2] for name, cells in rows.items()} == {
        "Coverage": ["0.250", "-"],
        "Skill variance": ["0.500 (chance 0.040)", "-"],
        "Information": ["0.750 (chance 0.125 ± 0.010, p = 0.048)", "-"],
    }
    rows = whole.table("Coverage")
    assert rows[""] == ["measure", "ours", "random", "meaning"]
    assert rows["Kept rate"][:2] == ["0.875", "1"]
    assert [text for text in whole.texts("p[@class='quiet']") if text.startswith("200 episodes")]


def test_settings_that_differ_from_the_recipe_come_first_and_all_are_folded(whole, tmp_path):
    changed = whole.table("Settings")
    assert changed.pop("") == ["setting", "here", "recipe", "meaning"]
    words = "seed skills music.gain epochs"
    assert (changed["music.gain"][0], set(changed)) == ("42", {*words.split()})
    assert {"music.clip", "music.gain"} <= set(whole.texts("th[@scope='row']"))
    usual = page_of(tmp_path, make_run(tmp_path / "usual"))
    assert f"All are those of ddpg_music (laptop) on {TOY}." in usual.text


def test_the_page_loads_nothing_and_runs_nothing(whole):
    assert [uri for uri in whole.addresses if not uri.startswith(("data:", "#"))] == []
    assert {"script", "link", "iframe", "object", "base"}.isdisjoint(
        element.tag for element in whole.root.iter()
    )
    assert re.findall(r"url\((?!#)|@import", whole.source) == []
    (policy,) = whole.all("meta[@http-equiv='Content-Security-Policy']")
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.attrib["content"].split(";")}
    assert rules == {
        "default-src": ["'none'"],
        "img-src": ["data:"],
        "media-src": ["data:"],
        "style-src": ["'unsafe-inline'"],
    }


def test_whatever_a_run_says_is_shown_as_text(tmp_path):
    run = make_run(tmp_path / HOSTILE.replace("/", "_"))
    change(run, commit=HOSTILE, host=HOSTILE, versions={HOSTILE: HOSTILE}, arguments=[HOSTILE])
    metrics = {HOSTILE: 1.0}
    evaluation = {
        "episodes": HOSTILE,
        "policies": {HOSTILE: metrics, "ours": metrics},
        "skills": [{"skill": HOSTILE, "metrics": metrics, "shift_m": [HOSTILE, [], {}]}],
        "control": {HOSTILE: {"control/coverage": 1}},
    }
    (run / "evaluation.json").write_text(json.dumps(evaluation))
    (run / "summary.json").write_text(HOSTILE)
    (run / "paths.png").write_text(HOSTILE)
    (run / "videos").mkdir()
    (run / "videos" / f"{HOSTILE.replace('/', '_')}.gif").write_bytes(b"GIF89a")
    page = page_of(tmp_path, run, make_run(tmp_path / "other"))
    assert (page.all("{*}script"), len(page.all("{*}style"))) == ([], 1 + len(page.all("{*}svg")))
    # commit, host, a package and its version, a policy in two tables, a skill, control
    assert page.text.count(HOSTILE) == 8


def test_a_run_says_where_it_started_and_counts_what_was_taken_before(tmp_path):
    run, other = make_run(tmp_path / "run", pictures=True), make_run(tmp_path / "other")
    change(run, init_from=START)
    page = page_of(tmp_path, run)
    assert "starts from /runs/push, epoch 7: actor, critic" in page.texts("p")
    assert "after 5,300 steps" in page.texts("figcaption")
    assert page.texts("div[@class='tile']")[1] == "300environment stepsand 5,000 before it started"
    assert "starts from" not in page_of(tmp_path, other).text
    page = page_of(tmp_path, run, other)
    assert page.tiles()["environment steps"] == "600"
    assert "Steps and minutes count those of the runs that a run started from." in page.text
    rows = [[text_of(cell) for cell in row] for row in page.all("tr")]
    assert [row[2:4] for row in rows if row[0] == LABEL] == [["5,300", "13.0"], ["300", "3.0"]]
    assert "ddpg_music, PointPush-v0, takes over actor,critic" in page.texts("li")


def test_the_newest_of_evaluation_summary_and_training_is_shown(tmp_path):
    run = finish(make_run(tmp_path / "run"))
    evaluate(run, 2, skills=[{"skill": 0, "metrics": RANDOM}])
    recorded = read_recorded(run)
    assert (recorded.measured, recorded.evaluated.epoch) == (recorded.trained, 2.0)
    assert recorded.behaviour == OURS | {"episodes": 100}
    page = page_of(tmp_path, run)
    assert "100 episodes at the end of training, after epoch 3." in page.text
    assert "of epoch 2. Training has gone on since, to epoch 3. Each skill" in page.text
    runs = [finish(make_run(tmp_path / name, epochs=5)) for name in ("one", "two")]
    newest = {"episodes": 40.0, "eval/object_comotion_m": 0.5}
    assert all_policies([*map(read_recorded, runs)]) == {
        **{f"{LABEL} ({run})": newest for run in runs},
        f"random on {TOY}": RANDOM,
    }

    evaluate(make_run(tmp_path / "b", recipe="ddpg_her"), 3, policies={"random": SUCCEEDS})
    her = read_recorded(tmp_path / "b")
    for pair in ((recorded, her), (her, recorded)):
        assert all_policies(pair)[f"random on {TOY}"] == RANDOM | SUCCEEDS
    other = finish(make_run(tmp_path / "other", "--env.kwargs", '{"radius": 1.5}'))
    assert f'random on {TOY} --env.kwargs {{"radius": 1.5}}' in all_policies([read_recorded(other)])


def test_many_runs_are_compared_each_shown_once_with_a_band_only_where_one_is_drawn(tmp_path):
    runs = [make_run(tmp_path / f"seed{n}", "--seed", str(n)) for n in range(5)]
    short = make_run(tmp_path / "short", epochs=2)
    (tmp_path / "latest").symlink_to(runs[0])
    for shown, repeat, bands in ((runs[:1], [], 0), (runs[:3], [short], 0), (runs, [short], 2)):
        page = page_of(tmp_path, *shown, *repeat, tmp_path / "latest")
        assert page.source.count("PolyCollection_1") == bands  # in two panels
        assert ("95 % bootstrap" in page.text) == (bands > 0)
        anchors = [f"run-{n}" for n in range(1, 1 + len(shown + repeat))] if repeat else []
        assert [each.attrib["id"] for each in page.all("details[@class='run']")] == anchors
        links = [uri for uri in page.addresses if uri.startswith("#run")]
        assert links == [f"#{anchor}" for anchor in anchors]
    assert page.texts("h1") == ["6 runs: ddpg_music, PointPush-v0"]
    assert page.texts("li") == ["ddpg_music, PointPush-v0 (5 seeds)"]
    assert f"Left out, another run of the same seed is drawn: {LABEL} ({short})." in page.text


def lacks(*runs):
    return missing([*map(read_recorded, runs)])


def test_a_page_names_the_commands_that_would_add_to_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = finish(make_run(Path("my runs") / "push", "--skills", "2"))
    assert lacks(run) == []  # nothing can be added without a checkpoint
    save(run)
    films = ("films", "music-tf play 'my runs/push'")
    full = "music-tf evaluate 'my runs/push' --full"
    assert lacks(run) == [films, ("a table of skills and measures of control", full)]
    text = page_of(tmp_path, run).texts("p[@class='quiet missing']")[0]
    assert text.startswith(f"Not here yet: films ({films[1]}); a table of skills and")
    skills = [{"skill": skill, "metrics": OURS} for skill in range(2)]
    evaluate(run, 3, control={"ours": CONTROLLED})
    assert lacks(run) == [films, ("a table of skills", "music-tf evaluate 'my runs/push'")]
    evaluate(run, 3, skills=skills, control={"ours": {}, "random": {}})  # there was none to measure
    film(run)
    assert lacks(run) == []
    assert page_of(tmp_path, run).texts("p[@class='quiet missing']") == []


def test_many_runs_share_a_line_about_what_is_missing_and_one_names_a_module_of_yours(tmp_path):
    alone = save(make_run(tmp_path / "run", "--skills", "3", "--pinned-skill", "1"))
    config = json.loads((alone / "config.json").read_text())["config"]
    change(alone, config=config | {"env_id": "mine:Task-v0"})
    assert lacks(alone) == [  # no table of skills, since one acts
        ("films", f"music-tf play {alone} --env-id mine:Task-v0"),
        (
            "a comparison with simple policies and measures of control",
            f"music-tf evaluate {alone} --full --env-id mine:Task-v0",
        ),
    ]
    runs = [finish(save(make_run(tmp_path / f"seed{n}", "--seed", str(n)))) for n in range(3)]
    evaluate(runs[0], 3, control={"ours": CONTROLLED})
    film(runs[0])
    film(runs[1])
    assert lacks(*runs) == [
        ("films", f"music-tf play {runs[2]}"),
        ("measures of control of 2 runs", "music-tf evaluate RUN --full"),
    ]


def test_of_many_pictures_of_paths_the_first_middle_and_last_are_shown(tmp_path):
    run = make_run(tmp_path / "run", epochs=5, pictures=True)
    shown = [(caption, wide) for _, caption, wide in read_recorded(run).pictures()]
    assert shown == [(f"after {steps} steps", False) for steps in (100, 300, 500)]
    (run / "videos").mkdir()
    Image.new("RGB", (848, 278)).save(run / "videos" / "paths.png")  # of several skills
    recorded = read_recorded(run)
    assert recorded.pictures()[2][1:] == ("at the newest evaluation", True)
    assert recorded.films == []


def test_films_are_inside_until_they_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_FILM_BYTES", 1000)
    run = make_run(tmp_path / "run")
    film(run, a_mp4=600, b_gif=401, c_gif=400, _draft_mp4=1, notes_txt=1)
    page = page_of(tmp_path, run)
    kinds = [uri.partition(";")[0] for uri in page.addresses if "," in uri]
    assert kinds == ["data:video/mp4", "data:image/gif"]
    content = [base64.b64decode(uri.partition(",")[2]) for uri in page.addresses if "," in uri]
    assert content == [b"x" * 600, b"x" * 400]
    assert [note for note in page.texts("p[@class='note']") if "b.gif is left out" in note]
    assert "draft" not in page.text


def test_a_run_still_going_is_reported_and_left_alone(tmp_path):
    run = make_run(tmp_path / "run")
    lock = RunLock(run)
    with (run / "metrics.csv").open("a") as file:
        file.write("4,4,40")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.rglob("*")}
    assert "still going, 3 of " in page_of(tmp_path, run).text
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.rglob("*")} == before
    lock.release()
    assert "not finished, 3 of " in page_of(tmp_path, run).text


@cases("content", "{", "[]", '{"policies": 3, "skills": {}, "control": [1]}', "[" * 10**5)
def test_files_that_are_damaged_cost_their_part_of_the_page(tmp_path, content):
    run = make_run(tmp_path / "run\udcff", epochs=0)  # whose name is no Unicode either
    (run / "evaluation.json").write_text(content)
    (run / "summary.json").write_text(content)
    page = page_of(tmp_path, run)
    assert ("evaluation.json cannot be read" in page.text) is not content.startswith('{"')
    assert ("Learning" in page.texts("h2"), "run?" in page.text) == (True, True)
    assert "No epoch is over yet." in page.text


def test_the_verb_names_what_is_no_run_and_what_is_damaged(tmp_path, monkeypatch, capsys):
    make_run(tmp_path / "seed0")
    (tmp_path / "seed0.log").touch()
    (make_run(tmp_path / "seed1") / "config.json").write_text('{"recipe"')
    monkeypatch.chdir(tmp_path)
    assert run_verb(["report", "seed0", "seed0.log", "seed1"]) == 0
    assert capsys.readouterr() == (
        f"{tmp_path}/runs/report.html\n",
        "music-tf: left out, no run directory: seed0.log\n"
        "music-tf: left out, damaged, report it alone to see where: seed1\n",
    )
    assert (tmp_path / "runs/report.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match=r"config\.json"):
        run_verb(["report", "seed1"])
    with pytest.raises(UsageError, match=r"got 'seed0\.log'"):
        run_verb(["report", "seed0.log", "--out", "other.html"])


@cases(
    ("value", "text"),
    (0, "0"),
    (1234567, "1,234,567"),
    (0.25, "0.250"),
    (-1.5, "-1.500"),
    (0.000123, "0.000123"),
    (12345.6, "1.23e+04"),
    (1e20, "1e+20"),
    *((nothing, "-") for nothing in (None, "x", True, np.nan, 10**400, [1])),
)
def test_numbers_are_short(value, text):
    assert number(value) == text
