import base64
import html
import html.parser
import json
import re
from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image

from music_tf.cli import run_verb
from music_tf.config.command import parse_train
from music_tf.config.stored import StoredRun, run_to_json
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.metrics import CONTROL, PATHS_TAG, MetricsWriter
from music_tf.storage.run_lock import RunLock
from music_tf.tools import report
from music_tf.tools.report import write_report
from tests.kit.browser import MISSING, PROGRAM, Browser

ENV_ID = "music_tf/PointPush-v0"
HOSTILE = "<script>alert('x')</script>&"
EMPTY = {"meta", "img"}
OURS = {"eval/object_comotion_m": 0.21, "eval/object_moved_rate": 1.0}
RANDOM = {"eval/object_comotion_m": 0.07, "eval/object_moved_rate": 0.5}
START = {
    "run": "/runs/push/checkpoints",
    "checkpoint": "epoch_000007",
    "epoch": 7,
    "parts": ["actor", "critic"],
    "before": {"time/env_steps": 5000.0, "time/elapsed_s": 600.0},
}


class Outline(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects tags, texts and addresses."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts, self.addresses = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in EMPTY:
            self.open.append(tag)
        self.addresses += [v for k, v in attributes if k in {"src", "href", "xlink:href"}]

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def make_run(path, *words, epochs=3, recipe="ddpg_music"):
    """Writes a run directory as `train` leaves it behind, without a summary."""
    path.mkdir(parents=True)
    arguments = (recipe, "--env-id", ENV_ID, *words)
    stored = StoredRun(recipe, "laptop", arguments, parse_train(arguments).config)
    made = {"host": "robot", "versions": {"numpy": "2.9"}, "commit": "c0ffee", "cores": 2}
    (path / "config.json").write_text(json.dumps(run_to_json(stored) | made))
    writer = MetricsWriter(path, resume_after=None)
    for epoch in range(1, epochs + 1):
        writer.write_image(PATHS_TAG, np.full((40, 40, 3), epoch, np.uint8), 100 * epoch)
        row = {"time/epoch": epoch, "time/env_steps": 100 * epoch, "time/elapsed_s": 60 * epoch}
        writer.write({**row, "eval/object_comotion_m": 0.1 * epoch, "train/mean_q": -1.0 / epoch})
    return path


def start_from(path, **changes):
    """Lets a run say that it started from another."""
    stored = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(stored | {"init_from": START | changes}))


def finish(path, epochs=3):
    summary = {"epochs": epochs, "evaluation": {"ours": OURS, "random": RANDOM}}
    (path / "summary.json").write_text(json.dumps(summary))


def evaluate(path, epoch, **more):
    """Writes what `evaluate` leaves behind; ours is half of what training's end measures."""
    ours = {name: value / 2.0 for name, value in OURS.items()}
    evaluation = {
        "episodes": 20,
        "checkpoint": {"epoch": epoch},
        "policies": {"ours": ours, "random": RANDOM},
    }
    (path / "evaluation.json").write_text(json.dumps(evaluation | more))


def save(path):
    """Leaves a checkpoint behind, of which a page looks at the name alone."""
    (path / "checkpoints" / "epoch_000003").mkdir(parents=True)
    return path


def not_here(page):
    """Returns what a page says could be added, which it does in one line at most."""
    lines = re.findall(r"<p[^>]*>Not here yet: (.*?)</p>", page)
    assert len(lines) <= 1
    return html.unescape(re.sub(r"</?code>", "`", "".join(lines)))


def rows_of(page, title):
    """Returns the texts of a table's cells by the first of their row; the heads are under ''."""
    table = page[page.index(f">{title}<") :].partition("</table>")[0]
    rows = [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in re.findall(r"<tr>.*?</tr>", table)
    ]
    return {"": rows[0], **{first: cells for first, *cells in rows[1:]}}


def tile_of(page):
    return re.search(r'class="tile"><b>([^<]*)', page).group(1)


def tiles_of(page):
    """Returns number and note of each tile by its name."""
    tiles = re.findall(r"<b>([^<]*)</b><span>([^<]*)</span><small>([^<]*)</small>", page)
    return {name: (value, note) for value, name, note in tiles}


def page_of(tmp_path, *runs):
    out = tmp_path / "page" / "report.html"
    write_report(runs, out)
    return out.read_text("utf-8")


def test_one_page_shows_curves_behaviour_paths_settings_and_versions(tmp_path):
    run = make_run(tmp_path / "run", "--seed", "7", "--music.gain", "42")
    finish(run)
    page = page_of(tmp_path, run)
    outline = Outline(page)
    text = " ".join(outline.texts)
    assert "ddpg_music on music_tf/PointPush-v0, seed 7" in text
    assert "finished, 3 epochs" in text
    assert outline.tags.count("svg") == 2  # two metrics beside times
    for said in ("0.210", "0.070", "random", "numpy", "2.9", "c0ffee", "robot", "2 cores"):
        assert said in text
    assert "music-tf train ddpg_music --env-id music_tf/PointPush-v0 --seed 7" in text
    pictures = [uri for uri in outline.addresses if uri.startswith("data:image/png")]
    assert len(pictures) == 3
    assert base64.b64decode(pictures[0].partition(",")[2]).startswith(b"\x89PNG")


def test_a_run_says_where_it_started_and_counts_what_was_taken_before(tmp_path):
    run = make_run(tmp_path / "run")
    start_from(run)
    page = page_of(tmp_path, run)
    assert "<p>starts from /runs/push, epoch 7: actor, critic</p>" in page
    assert "after 5,300 steps" in page
    assert tiles_of(page)["environment steps"] == ("300", "and 5,000 before it started")
    assert tiles_of(page)["training"] == ("3.0 min", "2 steps/s")
    other = make_run(tmp_path / "other")
    assert "starts from" not in page_of(tmp_path, other)
    page = page_of(tmp_path, run, other)
    assert tiles_of(page)["environment steps"] == ("600", "of all runs together")
    assert "Steps and minutes count those of the runs that a run started from." in page
    steps = re.findall(r"</th><td>[^<]*</td><td>([\d,]+)</td><td>([\d.]+)</td>", page)
    assert steps == [("5,300", "13.0"), ("300", "3.0")]
    assert ">ddpg_music, PointPush-v0, takes over actor,critic<" in page


def test_a_start_that_is_damaged_costs_the_curves(tmp_path):
    run = make_run(tmp_path / "run")
    start_from(run, before={"time/env_steps": "many"}, parts=HOSTILE, epoch=HOSTILE)
    page = page_of(tmp_path, run)
    assert "expected numbers by column" in page
    assert "No epoch is over yet." in page
    assert "<p>starts from /runs/push, checkpoint epoch_000007: </p>" in page


def test_a_seed_has_one_curve_and_the_other_run_is_named(tmp_path):
    runs = [make_run(tmp_path / "long"), make_run(tmp_path / "short", epochs=2)]
    runs.append(make_run(tmp_path / "other", "--seed", "1"))
    page = page_of(tmp_path, *runs)
    assert "ddpg_music, PointPush-v0 (2 seeds)" in page
    assert (
        "Left out, another run of the same seed is drawn: "
        f"ddpg_music on {ENV_ID}, seed 0 ({runs[1]})." in page
    )
    assert page.count('id="run-') == 3
    assert "Left out" not in page_of(tmp_path, runs[0], runs[2])


def test_settings_that_differ_from_the_recipe_come_first_and_all_are_folded(tmp_path):
    run = make_run(tmp_path / "run", "--music.gain", "42")
    page = page_of(tmp_path, run)
    before, _, folded = page[page.index(">Settings<") :].partition("<details")
    assert re.findall(r"<code>([^<]*)</code></td><td>([^<]*)</td>", before) == [
        ("music.gain", "42")
    ]
    assert "<code>music.clip</code>" in folded
    assert "<code>music.gain</code>" in folded
    assert "Settings" in page_of(tmp_path, make_run(tmp_path / "usual"))


def test_the_page_needs_nothing_from_elsewhere(tmp_path):
    run = make_run(tmp_path / "run")
    outline = Outline(page_of(tmp_path, run))
    assert [uri for uri in outline.addresses if not uri.startswith(("data:", "#"))] == []
    assert {"script", "link", "iframe", "object", "base"}.isdisjoint(outline.tags)


def test_whatever_a_run_says_is_shown_as_text(tmp_path):
    run = make_run(tmp_path / HOSTILE.replace("/", "_"))
    stored = json.loads((run / "config.json").read_text())
    changed = {"commit": HOSTILE, "host": HOSTILE, "versions": {HOSTILE: HOSTILE}}
    changed["arguments"] = [HOSTILE]
    (run / "config.json").write_text(json.dumps(stored | changed))
    metrics = {HOSTILE: 1.0}
    evaluation = {
        "episodes": HOSTILE,
        "policies": {HOSTILE: metrics, "ours": metrics},
        "skills": [{"skill": HOSTILE, "metrics": metrics, "shift_m": [HOSTILE, [], {}]}],
        "control": {HOSTILE: {"control/coverage": 1}},
    }
    (run / "evaluation.json").write_text(json.dumps(evaluation))
    (run / "summary.json").write_text(HOSTILE)
    (run / "videos").mkdir()
    (run / "videos" / f"{HOSTILE.replace('/', '_')}.gif").write_bytes(b"GIF89a")
    outline = Outline(page_of(tmp_path, run, make_run(tmp_path / "other")))
    assert "script" not in outline.tags
    # commit, host, a package and its version, a policy in two tables, a skill, control
    assert "".join(outline.texts).count(HOSTILE) == 8


def test_skills_and_the_random_policy_are_a_table(tmp_path):
    run = make_run(tmp_path / "run", "--skills", "2")
    skills = [
        {"skill": number, "metrics": {"eval/object_comotion_m": 0.1 + number}, "shift_m": shift}
        for number, shift in enumerate([[0.0, 0.2, -0.1], [0.01, 0.0, 0.0]])
    ]
    evaluate(run, 3, skills=[*skills, {"skill": 2, "metrics": RANDOM, "shift_m": ["x", 0, 1]}])
    page = page_of(tmp_path, run)
    assert "20 episodes with the checkpoint of epoch 3. Each skill plays" in page
    assert rows_of(page, "Skills") == {
        "": ["skill", "object moved rate", "object comotion m", "dx m", "dy m", "dz m"],
        "skill 0 ↑ 90°": ["-", "0.100", "0.000", "0.200", "-0.100"],
        "skill 1": ["-", "1.100", "0.010", "0.000", "0.000"],
        "skill 2": ["0.500", "0.070", "-", "0.000", "1.000"],
        "random": ["0.500", "0.070", "-", "-", "-"],
    }


def test_control_stands_beside_chance(tmp_path):
    measures = {
        "control/coverage": 0.25,
        "control/skill_variance": 0.5,
        "control/skill_variance_chance": 0.04,
        "control/information": 0.75,
        "control/information_null": 0.125,
        "control/information_null_std": 0.01,
        "control/information_p": 1 / 21,
    }
    run = make_run(tmp_path / "run")
    evaluate(run, 3, control={"ours": measures, "random": {"control/coverage": "?"}})
    rows = rows_of(page_of(tmp_path, run), "Control")
    assert rows.pop("") == ["measure", "ours", "random", "meaning"]
    assert {name: cells[:2] for name, cells in rows.items()} == {
        "coverage": ["0.250", "-"],
        "skill variance": ["0.500 (chance 0.040)", "-"],
        "information": ["0.750 (chance 0.125 ± 0.010, p = 0.048)", "-"],
    }


def test_the_newer_of_evaluation_and_summary_is_shown(tmp_path):
    run = make_run(tmp_path / "run")
    finish(run)
    evaluate(run, 3)
    page = page_of(tmp_path, run)
    assert tile_of(page) == "0.105"
    assert rows_of(page, "Behaviour")["ours"] == ["0.500", "0.105"]
    evaluate(run, 2, skills=[{"skill": 0, "metrics": RANDOM}])
    page = page_of(tmp_path, run)
    assert tile_of(page) == "0.210"
    assert rows_of(page, "Behaviour")["ours"] == ["1.000", "0.210"]
    assert "Measured at the end of training, after epoch 3." in page
    assert "of epoch 2. Training has gone on since, to epoch 3. Each skill" in page


def test_training_that_has_evaluated_since_is_what_leads(tmp_path):
    runs = [make_run(tmp_path / name, epochs=5) for name in ("one", "two")]
    for run in runs:
        finish(run, 3)
    page = page_of(tmp_path, runs[0])
    assert tile_of(page) == "0.500"
    assert "after epoch 3. Training has gone on since, to epoch 5." in page
    page = page_of(tmp_path, *runs)
    assert rows_of(page, "Behaviour of all runs") == {
        "": ["policy", "object moved rate", "object comotion m"],
        **{f"ddpg_music on {ENV_ID}, seed 0 ({run})": ["-", "0.500"] for run in runs},
        f"random on {ENV_ID}": ["0.500", "0.070"],
    }


def test_a_simple_policy_has_the_metrics_that_any_run_measured(tmp_path):
    music, her = make_run(tmp_path / "a"), make_run(tmp_path / "b", recipe="ddpg_her")
    finish(music)
    random = RANDOM | {"eval/success_rate": 0.25}
    evaluate(her, 3, policies={"ours": OURS, "random": random})
    for runs in ((music, her), (her, music)):
        rows = rows_of(page_of(tmp_path, *runs), "Behaviour of all runs")
        assert rows[f"random on {ENV_ID}"] == ["0.250", "0.500", "0.070"]


def test_a_page_names_the_commands_that_would_add_to_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = save(make_run(Path("my runs") / "push", "--skills", "2"))
    finish(run)
    path = "'my runs/push'"
    films = f"films (`music-tf play {path}`)"
    control = f"measures of control (`music-tf evaluate {path} --full`)"
    assert not_here(page_of(tmp_path, run)) == (
        f"{films}; a table of skills and, with --full, {control}"
    )
    skills = [{"skill": skill, "metrics": OURS} for skill in range(2)]
    evaluate(run, 3, skills=skills)
    assert not_here(page_of(tmp_path, run.resolve())) == f"{films}; {control}"
    evaluate(run, 3, control=control_of(0.5))
    assert not_here(page_of(tmp_path, run)) == (
        f"{films}; a table of skills (`music-tf evaluate {path}`)"
    )
    evaluate(run, 3, skills=skills, control={"ours": {}, "random": {}})  # there was none to measure
    (run / "videos").mkdir()
    (run / "videos" / "policy.gif").write_bytes(b"GIF89a")
    assert not_here(page_of(tmp_path, run)) == ""


def test_a_run_of_one_skill_is_not_asked_for_a_table_of_them(tmp_path):
    run = save(make_run(tmp_path / "run", "--skills", "3", "--pinned-skill", "1"))
    control = f"measures of control (`music-tf evaluate {run} --full`)"
    films = f"films (`music-tf play {run}`)"
    assert not_here(page_of(tmp_path, run)) == (
        f"{films}; a comparison with simple policies and, with --full, {control}"
    )
    finish(run)
    assert not_here(page_of(tmp_path, run)) == f"{films}; {control}"


def test_a_run_without_a_checkpoint_can_add_nothing(tmp_path):
    run = make_run(tmp_path / "run")
    assert not_here(page_of(tmp_path, run)) == ""
    (run / "checkpoints" / "best").mkdir(parents=True)
    assert not_here(page_of(tmp_path, run)) == ""


def test_your_own_environment_is_named_in_the_commands(tmp_path):
    run = save(make_run(tmp_path / "run"))
    stored = json.loads((run / "config.json").read_text())
    stored["config"]["env_id"] = "mine:Task-v0"
    (run / "config.json").write_text(json.dumps(stored))
    said = not_here(page_of(tmp_path, run))
    assert f"`music-tf play {run} --env-id mine:Task-v0`" in said
    assert f"`music-tf evaluate {run} --full --env-id mine:Task-v0`" in said


def test_many_runs_share_a_line_about_what_is_missing(tmp_path):
    runs = [save(make_run(tmp_path / f"seed{n}", "--seed", str(n))) for n in range(3)]
    for run in runs:
        finish(run)
    evaluate(runs[0], 3, control=control_of(0.5))
    (runs[0] / "videos").mkdir()
    (runs[0] / "videos" / "policy.gif").write_bytes(b"GIF89a")
    (runs[1] / "videos").mkdir()
    (runs[1] / "videos" / "policy.gif").write_bytes(b"GIF89a")
    assert not_here(page_of(tmp_path, *runs)) == (
        f"films (`music-tf play {runs[2]}`); "
        "measures of control of 2 runs (`music-tf evaluate RUN --full`)"
    )


def test_the_page_claims_a_band_only_where_one_is_drawn(tmp_path):
    runs = [make_run(tmp_path / f"seed{n}", "--seed", str(n)) for n in range(3)]
    for shown, bands in ((runs[:1], 0), (runs[:2], 0), (runs, 2)):
        page = page_of(tmp_path, *shown)
        assert page.count("PolyCollection_1") == bands  # in two panels
        assert ("bootstrap" in page) == (bands > 0)
        assert ("Thick: interquartile mean" in page) == (len(shown) > 1)


def test_pictures_of_several_skills_have_more_room(tmp_path):
    run = make_run(tmp_path / "run")
    assert 'class="pictures"' in page_of(tmp_path, run)
    writer = MetricsWriter(run, resume_after=None)
    writer.write_image(PATHS_TAG, np.zeros((278, 848, 3), np.uint8), 400)
    writer.write({"time/epoch": 4, "time/env_steps": 400})
    assert 'class="pictures wide"' in page_of(tmp_path, run)


def test_films_are_inside_until_they_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_FILM_BYTES", 1000)
    run = make_run(tmp_path / "run")
    (run / "videos").mkdir()
    files = {"a.mp4": 600, "b.gif": 401, "c.gif": 400, ".draft.mp4": 1, "notes.txt": 1}
    for name, size in files.items():
        (run / "videos" / name).write_bytes(b"x" * size)
    outline = Outline(page_of(tmp_path, run))
    found = [uri for uri in outline.addresses if not uri.startswith("data:image/png")]
    content = [base64.b64decode(uri.partition(",")[2]) for uri in found]
    assert [uri.partition(";")[0] for uri in found] == ["data:video/mp4", "data:image/gif"]
    assert content == [b"x" * 600, b"x" * 400]
    assert [text for text in outline.texts if "b.gif is left out" in text]
    assert "draft" not in " ".join(outline.texts)


def test_a_run_still_going_is_reported_and_left_alone(tmp_path):
    run = make_run(tmp_path / "run")
    lock = RunLock(run)
    with (run / "metrics.csv").open("a") as file:
        file.write("4,4,40")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.rglob("*")}
    assert "still going, 3 of " in page_of(tmp_path, run)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.rglob("*")} == before
    lock.release()
    assert "not finished, 3 of " in page_of(tmp_path, run)


def test_a_run_before_its_first_epoch_is_reported(tmp_path):
    run = make_run(tmp_path / "run", epochs=0)
    page = page_of(tmp_path, run)
    assert "No epoch is over yet." in page
    (run / "metrics.csv").write_text("epoch,time/env_steps\n")
    assert "holds no epoch of a run yet" in page_of(tmp_path, run)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"policies": 3, "skills": {}, "control": [1]}', "[" * 10**5]
)
def test_files_that_are_damaged_cost_their_part_of_the_page(tmp_path, content):
    run = make_run(tmp_path / "run")
    (run / "evaluation.json").write_text(content)
    (run / "summary.json").write_text(content)
    page = page_of(tmp_path, run)
    assert ("evaluation.json cannot be read" in page) is not content.startswith('{"')
    assert "Learning" in page


def test_many_runs_are_compared_and_one_given_twice_is_shown_once(tmp_path):
    runs = [make_run(tmp_path / f"seed{n}", "--seed", str(n)) for n in range(4)]
    for run in runs:
        finish(run)
    (tmp_path / "latest").symlink_to(runs[0])
    page = page_of(tmp_path, *runs, tmp_path / "latest")
    outline = Outline(page)
    assert "4 runs: ddpg_music, PointPush-v0" in outline.texts
    assert "ddpg_music, PointPush-v0 (4 seeds)" in outline.texts
    assert [uri for uri in outline.addresses if uri.startswith("#run")] == [
        f"#run-{n}" for n in (1, 2, 3, 4)
    ]
    assert page.count('id="run-') == 4
    assert outline.texts.count("random on music_tf/PointPush-v0") == 1


@pytest.mark.parametrize(
    "words",
    [["FOLDER"], ["RUN", "x" * 300], [], ["RUN", "--out", "page.htlm"]],
)
def test_bad_input_writes_nothing(tmp_path, monkeypatch, words):
    run, folder = make_run(tmp_path / "run"), tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    named = {"RUN": str(run), "FOLDER": str(folder)}
    with pytest.raises(UsageError) as caught:
        run_verb(["report", *(named.get(word, word) for word in words)])
    assert len(str(caught.value).splitlines()) <= 3
    assert list(folder.iterdir()) == []


def test_the_verb_writes_a_page_where_it_is_told(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert run_verb(["report", str(run)]) == 0
    assert capsys.readouterr().out == "report.html\n"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_the_verb_names_what_is_no_run_and_what_is_damaged(tmp_path, monkeypatch, capsys):
    make_run(tmp_path / "seed0")
    (tmp_path / "seed0.log").touch()
    (make_run(tmp_path / "seed1") / "config.json").write_text('{"recipe"')
    monkeypatch.chdir(tmp_path)
    assert run_verb(["report", "seed0", "seed0.log", "seed1"]) == 0
    assert capsys.readouterr().err == (
        "music-tf: left out, no run directory: seed0.log\n"
        "music-tf: left out, damaged, report it alone to see where: seed1\n"
    )
    with pytest.raises(UsageError, match=r"config\.json"):
        run_verb(["report", "seed1"])
    with pytest.raises(UsageError, match=r"got 'seed0\.log'"):
        run_verb(["report", "seed0.log", "--out", "other.html"])


def test_the_module_of_your_own_environment_is_named_and_not_imported(tmp_path):
    run = make_run(tmp_path / "run")
    stored = json.loads((run / "config.json").read_text())
    stored["config"]["env_id"] = "mine:Task-v0"
    (run / "config.json").write_text(json.dumps(stored))
    out = tmp_path / "report.html"
    write_report([run], out)
    assert "mine:Task-v0" in out.read_text()


def test_a_page_that_cannot_be_written_is_a_fault_of_the_disk(tmp_path):
    run = make_run(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        write_report([run], tmp_path / "file" / "report.html")
    with pytest.raises(EnvironmentFault, match="File name too long"):
        write_report([run], tmp_path / f"{'x' * 300}.html")


def control_of(share):
    """Measures of control as `evaluate --full` writes them."""
    measures = {name: share / number for number, name in enumerate(CONTROL, start=1)}
    return {"ours": measures, "random": {name: value / 9 for name, value in measures.items()}}


def whole_run(path):
    """A run of three skills with all that can be on a page, its film encoded as by `play`."""
    run = make_run(path, "--skills", "3")
    finish(run)
    rows = [
        {"skill": skill, "metrics": OURS, "shift_m": [0.1 * skill, 0.1, 0.0]} for skill in range(3)
    ]
    evaluate(run, 3, skills=rows, control=control_of(0.5))
    frames = [Image.new("RGB", (64, 48), (40 * number, 90, 160)) for number in range(6)]
    (run / "videos").mkdir()
    coded = {"format": "FFMPEG", "fps": 10, "codec": "libx264", "pixelformat": "yuv420p"}
    with imageio.get_writer(run / "videos" / "policy.mp4", **coded) as film:
        for frame in frames:
            film.append_data(np.asarray(frame))
    frames[0].save(run / "videos" / "skills.gif", save_all=True, append_images=frames[1:])
    return run


@pytest.mark.skipif(PROGRAM is None, reason=MISSING)
def test_a_browser_shows_all_of_a_page_and_plays_its_films_without_complaint(tmp_path):
    whole, page = whole_run(tmp_path / "whole"), tmp_path / "whole.html"
    write_report([whole], page)
    with Browser(tmp_path) as browser:
        for width in (1280, 500):
            browser.open(page, width)
            media = browser.media()
            # paths at three times, then the films
            assert [one["kind"] for one in media] == ["IMG", "IMG", "IMG", "VIDEO", "IMG"]
            assert [one for one in media if one["fault"] or not one["width"]] == []
            assert media[3]["seconds"] == pytest.approx(0.6, abs=0.05)
            assert browser.complaints() == []
            heads = browser.ask("[...document.querySelectorAll('h3')].map(h => h.innerText)")
            assert {"Behaviour", "Skills", "Control", "Films", "Settings"} <= set(heads)
            assert browser.ask("document.documentElement.scrollWidth") == width
        picture = browser.screenshot()
        assert picture.shape == (browser.ask("document.documentElement.scrollHeight"), 500, 3)
        assert len(np.unique(picture @ np.array([65536, 256, 1]))) > 100  # colours
        assert picture.std() > 10


@pytest.mark.skipif(PROGRAM is None, reason=MISSING)
def test_a_browser_shows_a_page_about_several_runs_without_complaint(tmp_path):
    runs = [make_run(tmp_path / f"seed{n}", "--seed", str(n)) for n in range(4)]
    write_report(runs, tmp_path / "runs.html")
    with Browser(tmp_path) as browser:
        browser.open(tmp_path / "runs.html", 500)
        assert browser.complaints() == []
        assert [one["fault"] for one in browser.media()] == [""] * 3 * len(runs)
        assert browser.ask("document.documentElement.scrollWidth") == 500


@pytest.mark.skipif(PROGRAM is None, reason=MISSING)
def test_a_browser_would_tell_of_scripts_and_of_films_that_do_not_play(tmp_path):
    whole, page = whole_run(tmp_path / "whole"), tmp_path / "wrong.html"
    (whole / "videos" / "policy.mp4").write_bytes(b"no film")
    write_report([whole], page)
    page.write_text(page.read_text().replace("</main>", "<script>x()</script></main>"))
    with Browser(tmp_path) as browser:
        browser.open(page, 500)
        assert [one["kind"] for one in browser.media() if one["fault"]] == ["VIDEO"]
        assert any("Content Security Policy" in said for said in browser.complaints())
