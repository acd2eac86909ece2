import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from music_tf.cli import run_verb
from music_tf.errors import UsageError
from music_tf.storage.results import NoEpochError
from music_tf.tools import curves
from music_tf.tools.curves import Curve, RunCurves, by_settings, load, without_repeats
from tests.kit.cases import cases
from tests.kit.recorded import write_run

HEADER = "epoch,time/env_steps,time/elapsed_s,eval/success_rate,train/mean_q\n"
OLD = {"run": "/a/checkpoints", "checkpoint": "epoch_000003", "sha256": "12", "parts": ["actor"]}
"""A record of a start that counts nothing."""
START = OLD | {"epoch": 3, "before": {"time/env_steps": 500.0, "time/elapsed_s": 30.0}}
PUSH = "ddpg_her, PointPush-v0"


def write(path, end=0.5):
    """Writes the `metrics.csv` of three epochs, of which the second has no evaluation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"1,1000,60,0,{end}", f"2,2000,120,,{end}", f"3,3000,180,{end},{end}"]
    path.write_text("# a comment\n" + HEADER + "".join(f"{row}\n" for row in rows))
    return path


def seeds(folder, values):
    return [load(write(folder / f"seed{n}.csv", value)) for n, value in enumerate(values)]


def run_directory(path, *words, start=None):
    write(path / "metrics.csv")
    return write_run(path, "ddpg_her", *words, start=start)


def without(run, metric):  # the run as it would be without a metric
    return run._replace(columns={n: v for n, v in run.columns.items() if n != metric})


def of(**settings):  # a run of a group `g` with some settings
    return RunCurves("run", "g", {}, settings)


def line(name, seed, epochs, **more):  # a run of a group `g` with a seed and a number of epochs
    return RunCurves(name, "g", {"time/env_steps": np.zeros(epochs)}, seed=seed, **more)


def labels(*runs):
    return [run.group for run in by_settings(runs)]


# What is read of a run.


def test_a_run_directory_has_the_seed_of_its_settings_and_a_copy_that_of_its_name(tmp_path):
    run = load(run_directory(tmp_path / "seed9-x", "--seed", "3"))
    assert (run.group, run.name, run.seed) == (PUSH, f"{PUSH}, seed9-x", 3)
    copy = load(write(tmp_path / "music_seed12.csv"))
    assert (copy.group, copy.name, copy.seed) == ("music", "music_seed12", 12)
    assert load(write(tmp_path / "music.csv")).seed is None


def test_steps_and_minutes_count_what_a_run_started_from(tmp_path):
    run = load(run_directory(tmp_path / "run", start=START))
    assert run.columns["time/env_steps"].tolist() == [1500.0, 2500.0, 3500.0]
    assert run.columns["time/elapsed_s"].tolist() == [90.0, 150.0, 210.0]
    assert run.columns["train/mean_q"].tolist() == [0.5] * 3
    old = load(run_directory(tmp_path / "old", start=OLD))
    assert old.columns["time/env_steps"].tolist() == [1000.0, 2000.0, 3000.0]
    with pytest.raises(UsageError, match=r"config\.json: expected numbers by column"):
        load(run_directory(tmp_path / "odd", start=START | {"before": {"time/env_steps": "many"}}))


def test_a_run_without_an_epoch_is_left_out(tmp_path):
    begun, none, empty = (run_directory(tmp_path / name) for name in ("begun", "none", "empty"))
    (none / "metrics.csv").unlink()
    (empty / "metrics.csv").write_text(HEADER)
    runs, early, damaged = curves.load_begun([none, empty, begun])
    assert [run.name for run in runs] == [f"{PUSH}, begun"]
    assert (early, damaged) == ([str(none), str(empty)], {})
    with pytest.raises(NoEpochError, match="no epoch of a run yet"):
        curves.load_begun([none, empty])
    (empty / "metrics.csv").write_text(HEADER + "1,2,3,x,4\n")
    _, early, damaged = curves.load_begun([none, empty, begun])
    assert (early, list(damaged)) == ([str(none)], [str(empty)])


# Which runs share a line, and what it is called.


def test_of_several_runs_of_a_seed_the_longest_is_drawn():
    runs = [line("a", 0, 2), line("b", 1, 3), line("c", 0, 5), line("d", 0, 5), line("e", 1, 1)]
    kept, repeats = without_repeats(runs)
    assert ([run.name for run in kept], repeats) == (["b", "c"], ["a", "d", "e"])
    assert curves.with_count("g", kept) == "g (2 seeds)"
    assert curves.with_count("g", runs) == "g (5 runs)"
    heir, other = line("a", 0, 2, source="12"), line("a", 0, 2)._replace(group="h")
    apart = [line("a", 0, 2), heir, other, line("a", None, 2), line("a", None, 2)]
    assert without_repeats(apart) == (apart, [])
    assert curves.with_count("g", apart[3:]) == "g (2 runs)"


def test_a_run_of_a_start_of_its_own_has_a_line_and_is_no_repeat(tmp_path):
    anew = run_directory(tmp_path / "anew")
    heirs = [run_directory(tmp_path / n, start=START | {"sha256": n}) for n in "ab"]
    runs = by_settings([load(path) for path in (anew, *heirs)])
    assert [run.group for run in runs] == [
        f"{PUSH}, takes over nothing",
        f"{PUSH}, takes over actor",
        f"{PUSH}, takes over actor",
    ]
    again = load(run_directory(tmp_path / "c", start=START | {"sha256": "a"}))
    _, repeats = without_repeats(by_settings([*map(load, heirs), again]))
    assert repeats == [f"{PUSH}, c"]


def test_runs_of_other_settings_have_a_line_of_their_own(tmp_path):
    plain = [
        load(run_directory(tmp_path / f"{n}", "--seed", f"{n}", "--epochs", f"{n + 5}"))
        for n in (0, 1)
    ]
    other = load(run_directory(tmp_path / "other", "--agent.polyak", "0.9"))
    copy = load(write(tmp_path / "copies" / "seed0.csv"))
    polyak = f"{PUSH}, agent.polyak"
    assert labels(*plain, other, copy) == [
        f"{polyak} 0.98",
        f"{polyak} 0.98",
        f"{polyak} 0.9",
        "copies",
    ]
    assert labels(*plain) == [PUSH, PUSH]


def test_a_condition_of_two_studies_has_two_lines(tmp_path):
    files = [tmp_path / study / f"music_seed{n}.csv" for study in ("skills", "far") for n in (0, 1)]
    runs = [load(write(path)) for path in files]
    assert labels(*runs) == 2 * ["music, of skills"] + 2 * ["music, of far"]
    assert labels(*runs[:2]) == ["music", "music"]


def test_a_preset_comes_first_and_alone_makes_no_line_then_the_most_telling_settings():
    laptop, paper = of(preset="laptop", polyak="0.98"), of(preset="paper", polyak="0.9")
    assert labels(laptop, paper) == ["g, preset laptop, polyak 0.98", "g, preset paper, polyak 0.9"]
    assert labels(laptop, of(preset="paper", polyak="0.98")) == ["g", "g"]
    usual = dict.fromkeys("abcde", "0")
    runs = [of(**usual), of(**usual | {"c": "1"}), of(**usual | {"e": "2"})]
    alike = of(**{name: "1" for name in "abcde"})
    assert labels(*runs) == ["g, c 0, e 0", "g, c 1, e 0", "g, e 2, c 0"]
    assert labels(runs[0], alike) == ["g, a 0, b 0, c 0 and 2 more", "g, a 1, b 1, c 1 and 2 more"]


def test_other_settings_always_make_another_label():
    generator = random.Random(0)
    for _ in range(50):
        runs = [of(**{name: str(generator.randrange(2)) for name in "abcdef"}) for _ in range(20)]
        assert len(set(labels(*runs))) == len({tuple(run.settings.items()) for run in runs})


# What is drawn of them.


def summary(*ups):  # middle, low and high of curves from 0 to 1 with these heights at both ends
    middle, interval = curves.summary_of([Curve(np.arange(2.0), np.full(2, up)) for up in ups])
    return (middle.up[0], *(bound[0] for bound in interval))


def test_the_middle_cuts_a_quarter_at_each_end_over_the_range_of_all_seeds():
    assert summary(9, 1, 2, 3, 4, 100, 5, -50)[0] == pytest.approx(3.5)  # of 2, 3, 4, 5
    assert summary(9, 1, 2)[0] == pytest.approx(4.0)  # nothing is cut
    long = Curve(np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    (across, up), *_ = curves.summary_of([long, Curve(np.array([2.0, 6.0]), np.array([0.4, 0.8]))])
    assert (across[0], across[-1]) == (2.0, 6.0)
    # at 2: mean of 0.2 and 0.4; at 6: of 0.6 and 0.8
    assert up[[0, -1]] == pytest.approx([0.3, 0.7])


def test_the_interval_of_four_seeds_goes_from_one_end_to_the_other_and_of_five_it_does_not(
    monkeypatch,
):
    # Three of a resample of four are the lowest in 1 of 20, which is more than 2.5 %; of five four
    # would have to be, which is 1 in 149. So bands begin with five.
    assert curves.LEAST_FOR_BAND == 5
    assert summary(0, 1, 2, 3) == (1.5,)
    monkeypatch.setattr(curves, "LEAST_FOR_BAND", 4)
    assert summary(0, 1, 2, 3)[1:] == (0.0, 3.0)
    _, low, high = summary(*range(5))
    assert (0.0 < low < 1.0, 3.0 < high < 4.0) == (True, True)
    assert summary(*[0.25] * 5) == pytest.approx((0.25, 0.25, 0.25))


def test_epochs_without_the_metric_or_the_axis_are_left_out(tmp_path):
    (run,) = seeds(tmp_path, [0.5])
    run = run._replace(columns=run.columns | {"time/episodes": np.array([4.0, 9.0, 12.0])})
    for axis, expected in (("minutes", [1, 3]), ("steps", [1, 3]), ("episodes", [4, 12])):
        across, up = curves.curve_of(run, "eval/success_rate", axis)
        assert (across.tolist(), up.tolist()) == (expected, [0.0, 0.5])
    assert curves.curve_of(run, "eval/nothing", "steps").up.size == 0


def test_a_metric_without_a_point_over_the_axis_is_refused_and_runs_without_it_are_named(tmp_path):
    first, second = seeds(tmp_path, [0.5, 0.5])
    untimed, timed = without(first, "time/elapsed_s"), without(second, "eval/success_rate")
    both, rate = [untimed, timed], "eval/success_rate"
    text = f"--axis minutes: none of the runs has time/elapsed_s where it has {rate}"
    with pytest.raises(UsageError, match=rf"{text}\nchoose --axis steps\Z"):
        curves.choose_metrics(both, ["train/mean_q", rate], "minutes")
    assert curves.choose_metrics(both, [], "minutes") == ["train/mean_q"]
    assert curves.left_out(both, [rate], "steps") == {f"no {rate}": ["seed1"]}
    assert curves.left_out(both, [rate, "train/mean_q"], "steps") == {}
    missing = {"no time/elapsed_s": ["seed0"], f"no {rate}": ["seed1"]}
    assert curves.left_out(both, [rate], "minutes") == missing


# The picture.


@pytest.fixture
def drawn(monkeypatch):  # the figures that are saved, in order
    figures, save = [], Figure.savefig

    def saved(figure, *arguments, **named):
        figures.append(figure)
        save(figure, *arguments, **named)

    monkeypatch.setattr(Figure, "savefig", saved)
    return figures


@pytest.mark.parametrize("ending", curves.FORMATS)
def test_seeds_of_a_folder_share_a_line(tmp_path, ending):
    runs = seeds(tmp_path / "mine", [n / 10 for n in range(5)])
    out = tmp_path / "new" / f"curves{ending}"
    metrics = ["eval/success_rate", "train/mean_q"]
    assert curves.draw_curves(runs, metrics, "steps", out) == metrics
    assert out.stat().st_size > 3000
    if ending == ".svg":
        assert out.read_text().count("mine (5 seeds)") == 1


@cases(
    ("groups", "count", "thin", "bands"),
    (2, 1, 0, 0),
    (2, 4, 4, 0),
    (2, 5, 5, 2),
    (5, 5, 0, 5),  # too many to see single seeds
)
def test_seeds_of_a_group_have_a_mean_from_five_on_a_band_and_are_thin_lines(
    tmp_path, drawn, groups, count, thin, bands
):
    runs = [run for name in "abcde"[:groups] for run in seeds(tmp_path / name, range(count))]
    curves.draw_curves(runs, [], "steps", tmp_path / "out.png")
    (panel,) = drawn[0].axes
    means = [line for line in panel.lines if "seed" in line.get_label() or count == 1][:groups]
    others = [line for line in panel.lines if line.get_label().startswith("_")]
    assert [line.get_ydata()[-1] for line in means] == pytest.approx([(count - 1) / 2] * groups)
    assert len({line.get_color() for line in means}) == groups
    assert (len(others), len(panel.collections)) == (thin * groups, bands)
    assert all(line.get_linewidth() == 1.0 < means[0].get_linewidth() for line in others)
    order = [artist.zorder for some in (panel.collections, others, means) for artist in some]
    assert order == sorted(order)


def test_a_line_of_any_panel_is_in_the_legend_and_no_name_is_read_as_mathematics(tmp_path, drawn):
    both = load(write(tmp_path / "both" / "seed0.csv"))._replace(group=r"a$\frac$b")
    second = without(load(write(tmp_path / "second" / "seed0.csv")), "eval/success_rate")
    metrics = ["eval/success_rate", "train/mean_q"]
    curves.draw_curves([second, both], metrics, "steps", tmp_path / "curves.svg")
    said = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert sorted(said) == sorted(["second", r"a\$\frac\$b", "success from 0.9 on"])
    assert [panel.get_title() for panel in drawn[0].axes] == ["Success rate", "Mean q"]


def test_the_legend_has_the_highest_end_first_and_random_actions_last(tmp_path, drawn):
    runs = [seeds(tmp_path / name, [end])[0] for name, end in (("low", 0.2), ("high", 0.8))]
    runs[0] = runs[0]._replace(random={curves.LEADING[0]: 0.05}, levels={curves.LEADING[0]: 0.95})
    curves.draw_curves(runs, [], "steps", tmp_path / "out.png")
    said = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert said == ["high", "low", "success from 0.95 on", "random actions"]
    ends = {line.get_label(): set(line.get_ydata()) for line in drawn[0].axes[0].lines}
    assert (ends["random actions"], ends["success from 0.95 on"]) == ({0.05}, {0.95})


@cases(
    ("metric", "column", "ups"),
    ("eval/information", "eval/information_random", [0.25, 0.5]),
    ("music/bound_heldout", "music/bound_random", [0.25, 0.5]),
    ("adapt/return_2", "adapt/random_return", [0.25, 0.5]),
    ("eval/return", "unknown", [-3.0, -3.0]),  # measured in the end
)
def test_random_actions_are_a_line_of_the_same_panel(tmp_path, drawn, metric, column, ups):
    (run,) = seeds(tmp_path, [0.5])
    columns = dict.fromkeys((metric, column), np.array([0.25, np.nan, 0.5]))
    run = run._replace(columns=run.columns | columns, random={"eval/return": -3.0})
    curves.draw_curves([run], [metric], "steps", tmp_path / "out.png")
    (grey,) = (line for line in drawn[0].axes[0].lines if line.get_label() == "random actions")
    assert list(grey.get_ydata()) == ups
    assert (drawn[0].axes[0].get_ylim()[0] == 0.0) == (min(ups) > 0.0)


def test_random_actions_are_read_from_a_run_and_from_a_stored_result(tmp_path):
    run_directory(tmp_path / "run")
    for damaged, read in ((b"{", {}), (b'{"evaluation": 3}', {})):
        (tmp_path / "run/summary.json").write_bytes(damaged)
        assert load(tmp_path / "run").random == read
    measured = {"random": {"eval/return": -3.0, "eval/length": "50"}}
    (tmp_path / "run/summary.json").write_text(json.dumps({"evaluation": measured}))
    assert load(tmp_path / "run").random == {"eval/return": -3.0}
    stored = write(tmp_path / "a_seed0.csv")
    details = json.dumps({"final_100_episodes": measured})
    stored.write_text(f"# music-tf\n# commit\n# {details}\n{stored.read_text()}")
    assert load(stored).random == {"eval/return": -3.0}


# The verb.


def test_the_verb_draws_each_seed_once_and_says_what_it_leaves_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run, seed1, short, early, other, damaged = (
        write(Path(name))
        for name in (
            *("run/seed0.csv", "run/seed1.csv", "short/run/seed0.csv"),
            *("early/seed0.csv", "other/seed0.csv", "damaged.csv"),
        )
    )
    short.write_text(HEADER + "1,1000,60,0,1\n")
    early.write_text(HEADER)
    other.write_text(other.read_text().replace("eval/success_rate", "eval/object_comotion_m"))
    damaged.write_bytes(b"\xff\x00")
    Path("seed0.log").touch()
    Path("link").symlink_to("run")
    twice = [run, "run/../run/seed0.csv", "link/seed0.csv"]
    words = ["plot", *map(str, [*twice, seed1, short, early, other, damaged, "early", "seed0.log"])]
    assert run_verb([*words, "--out", "curves.svg"]) == 0
    assert Path("curves.svg").read_text().count("run (2 seeds)") == 1
    assert capsys.readouterr().err.splitlines() == [
        "music-tf: left out, no run directory and no CSV file: early, seed0.log",
        f"music-tf: left out, no epoch yet: {early}",
        f"music-tf: left out, damaged, plot it alone to see where: {damaged}",
        "music-tf: left out, another run of the same seed is drawn: seed0 (short/run)",
        "music-tf: left out, no eval/success_rate: seed0 (other)",
    ]
    assert run_verb(["plot", *map(str, [run, seed1, short]), "--out", "each.svg", "--each"]) == 0
    assert capsys.readouterr().err == ""
    assert len(re.findall(r"<!-- seed\d", Path("each.svg").read_text())) == 3


@cases(
    ("words", "says"),
    (["early.csv"], "no epoch of a run yet"),
    (["seed0.csv", "nowhere"], "got 'nowhere'"),
    (["seed0.csv", "--metric", "success"], r"has 'success'\ndid you mean eval/success_rate\?"),
    (["seed0.csv", "--out", "folder.svg"], r"--out: .*got the folder 'folder\.svg'"),
    (["seed0.csv", "--axis", "episodes"], "choose --axis steps\nchoose --axis minutes"),
    *(  # a run behind --metric is told where it belongs
        ([*first, "--metric", "epoch", word], f"got the run '{word}'\nput the runs before --metric")
        for first in ([], ["seed0.csv"])
        for word in ("latest", "seed0.csv", "push")
    ),
)
def test_the_verb_refuses_what_is_not_there(tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs/push", "ddpg_her")
    write(tmp_path / "seed0.csv")
    write(tmp_path / "early.csv").write_text(HEADER)
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UsageError, match=says):
        run_verb(["plot", *words])
    assert not (tmp_path / "curves.png").exists()


def test_a_column_is_a_column_whatever_file_has_its_name(tmp_path, monkeypatch):
    write(tmp_path / "seed0.csv")
    (tmp_path / "epoch").touch()
    monkeypatch.chdir(tmp_path)
    assert run_verb(["plot", "seed0.csv", "--metric", "epoch"]) == 0
