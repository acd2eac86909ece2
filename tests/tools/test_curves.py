import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from music_tf.cli import run_verb
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.tools import curves
from music_tf.tools.grouping import load

HEADER = "epoch,time/env_steps,time/elapsed_s,eval/success_rate,train/mean_q\n"


def seed(path, end):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"1,1000,60,0,{end}", f"2,2000,120,,{end}", f"3,3000,180,{end},{end}"]
    path.write_text("# a comment\n" + HEADER + "".join(f"{row}\n" for row in rows))
    return load(path)


def without(run, metric):
    """The run as it would be without a metric."""
    return run._replace(columns={n: v for n, v in run.columns.items() if n != metric})


def test_the_interquartile_mean_cuts_a_quarter_at_each_end():
    values = np.array([[9.0], [1.0], [2.0], [3.0], [4.0], [100.0], [5.0], [-50.0]])
    assert curves.interquartile_mean(values) == pytest.approx([3.5])  # of 2, 3, 4, 5
    assert curves.interquartile_mean(values[:3]) == pytest.approx([4.0])  # nothing is cut


def test_epochs_without_the_metric_are_left_out(tmp_path):
    run = seed(tmp_path / "a" / "seed0.csv", 0.5)
    across, up = curves.curve_of(run, "eval/success_rate", "minutes")
    assert (across.tolist(), up.tolist()) == ([1.0, 3.0], [0.0, 0.5])
    across, _ = curves.curve_of(run, "eval/success_rate", "steps")
    assert across.tolist() == [1.0, 3.0]  # thousands
    assert curves.curve_of(run, "eval/nothing", "steps").up.size == 0


def test_the_mean_covers_the_range_that_all_seeds_have():
    long = curves.Curve(np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    short = curves.Curve(np.array([2.0, 6.0]), np.array([0.4, 0.8]))
    across, values = curves.on_common_range([long, short])
    assert (across[0], across[-1]) == (2.0, 6.0)
    # at 2: mean of 0.2 and 0.4; at 6: of 0.6 and 0.8
    assert curves.interquartile_mean(values)[[0, -1]] == pytest.approx([0.3, 0.7])


def test_the_interval_of_few_seeds_goes_from_one_end_to_the_other_and_of_five_it_does_not():
    values = np.arange(5.0)[:, None]
    # All of a resample are the lowest of three in 1 of 27, of four three are in 1 of 20, and
    # both are more than 2.5 %; of five four would have to be, which is 1 in 149.
    for count in (3, 4):
        assert curves.bootstrap_interval(values[:count]) == (0.0, count - 1.0)
    low, high = curves.bootstrap_interval(values)
    assert 0.0 < low < 1.0
    assert 3.0 < high < 4.0


def test_equal_seeds_have_a_band_without_width():
    low, high = curves.bootstrap_interval(np.array([[0.0, 1.0]] * 5))
    np.testing.assert_allclose(low, high)


def panel_of(*groups):
    """A panel with one metric of groups of seeds, and the labelled lines in it."""
    panel = Figure(curves._FIGURE_INCHES, layout="constrained").add_subplot()
    lines = curves._draw_panel(panel, {g[0].group: g for g in groups}, "train/mean_q", "steps")
    return panel, list(lines.values())


def seeds(folder, values):
    return [seed(folder / f"seed{n}.csv", value) for n, value in enumerate(values)]


@pytest.mark.parametrize(("count", "bands"), [(1, 0), (2, 0), (3, 1), (5, 1)])
def test_a_band_needs_three_seeds(tmp_path, count, bands):
    panel, _ = panel_of(seeds(tmp_path / "mine", range(count)))
    assert len(panel.collections) == bands
    assert len(panel.lines) == (1 if count == 1 else count + 1)


def test_seeds_are_seen_in_front_of_their_band_and_behind_every_mean(tmp_path):
    panel, means = panel_of(seeds(tmp_path / "a", range(3)), seeds(tmp_path / "b", range(3)))
    thin = [line for line in panel.lines if line not in means]
    assert len(thin) == 6
    assert all(line.get_alpha() >= 0.5 and line.get_linewidth() >= 1.0 for line in thin)
    order = [[artist.zorder for artist in some] for some in (panel.collections, thin, means)]
    assert max(order[0]) < min(order[1])
    assert max(order[1]) < min(order[2])
    assert means[0].get_linewidth() > 1.0


def legend_below(panel):
    """The legend of the figure, which lies below its axes and inside of the picture."""
    (legend,) = panel.figure.legends
    panel.figure.draw_without_rendering()
    box, picture = legend.get_window_extent(), panel.figure.bbox
    assert box.y1 <= panel.get_tightbbox().y0
    assert box.y0 >= picture.y0
    assert (box.x0 >= picture.x0, box.x1 <= picture.x1) == (True, True)
    return legend


def test_a_short_legend_stands_where_no_curve_is(tmp_path):
    panel, lines = panel_of(*(seeds(tmp_path / name, [0.1, 0.2]) for name in "abcd"))
    curves._place_legend(panel, lines)
    assert panel.figure.legends == []
    assert not curves._covers(panel.get_legend(), panel)


def test_a_short_legend_without_room_stands_below(tmp_path):
    run = seed(tmp_path / "full" / "seed0.csv", 0.5)
    across, up = np.arange(200.0), np.tile([0.0, 1.0], 100)
    run = run._replace(columns={"time/env_steps": 1000.0 * across, "train/mean_q": up})
    panel, lines = panel_of([run])
    curves._place_legend(panel, lines)
    assert panel.get_legend() is None
    assert [text.get_text() for text in legend_below(panel).get_texts()] == ["full"]


@pytest.mark.parametrize("name", ["short", ", ".join(["agent.polyak 0.9"] * 9)])
def test_a_long_legend_stands_below_and_costs_the_axes_no_height(tmp_path, name):
    groups = [
        [run._replace(group=f"{name} {number}") for run in seeds(tmp_path / str(number), [0.5])]
        for number in range(6)
    ]
    panel, lines = panel_of(*groups)
    panel.figure.draw_without_rendering()
    height = panel.bbox.height
    curves._place_legend(panel, lines)
    assert panel.get_legend() is None
    assert len(legend_below(panel).get_texts()) == 6
    assert panel.bbox.height == pytest.approx(height, rel=0.05)


def test_the_leading_metric_is_drawn_unless_others_are_asked_for(tmp_path):
    run = seed(tmp_path / "seed0.csv", 0.5)
    assert curves.choose_metrics([run], [], "steps") == ["eval/success_rate"]
    assert curves.choose_metrics([run], ["train/mean_q"], "steps") == ["train/mean_q"]
    with pytest.raises(UsageError, match=r"did you mean eval/success_rate\?"):
        curves.choose_metrics([run], ["eval/sucess_rate"], "steps")


def test_a_metric_without_a_point_over_the_axis_is_refused_with_the_other_axis(tmp_path):
    untimed = without(seed(tmp_path / "seed0.csv", 0.5), "time/elapsed_s")
    timed = without(seed(tmp_path / "seed1.csv", 0.5), "eval/success_rate")
    said = (
        r"--axis minutes: none of the runs has time/elapsed_s where it has eval/success_rate\n"
        r"choose --axis steps$"
    )
    for runs, metrics in (
        ([untimed], []),
        ([untimed, timed], ["train/mean_q", "eval/success_rate"]),
    ):
        with pytest.raises(UsageError, match=said):
            curves.choose_metrics(runs, metrics, "minutes")
    assert curves.choose_metrics([untimed, timed], [], "minutes") == ["train/mean_q"]
    nowhere = without(untimed, "time/env_steps")
    with pytest.raises(UsageError, match=r"has eval/success_rate$"):
        curves.choose_metrics([nowhere], [], "minutes")


@pytest.mark.parametrize("ending", curves.FORMATS)
def test_seeds_of_a_folder_share_a_line(tmp_path, ending):
    runs = [seed(tmp_path / "mine" / f"seed{n}.csv", n / 10) for n in range(5)]
    assert {run.group for run in runs} == {"mine"}
    out = tmp_path / "new" / f"curves{ending}"
    curves.draw_curves(runs, ["eval/success_rate", "train/mean_q"], "steps", out)
    assert out.stat().st_size > 3000
    if ending == ".svg":
        assert "mine (5 seeds)" in out.read_text().replace("<!-- ", "")


def test_runs_of_unknown_seed_are_no_seeds(tmp_path):
    runs = [seed(tmp_path / "mine" / name, 0.5) for name in ("a.csv", "b.csv", "seed1.csv")]
    curves.draw_curves(runs, [], "steps", tmp_path / "all.svg")
    assert "mine (3 runs)" in (tmp_path / "all.svg").read_text()
    curves.draw_curves([runs[2], runs[2]], [], "steps", tmp_path / "twice.svg")
    assert "mine (2 runs)" in (tmp_path / "twice.svg").read_text()


def test_a_picture_that_cannot_be_written_is_a_fault_of_the_disk(tmp_path):
    (tmp_path / "file").write_text("")
    run = seed(tmp_path / "seed0.csv", 0.5)
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        curves.draw_curves([run], [], "steps", tmp_path / "file" / "curves.png")


def test_a_line_of_any_panel_is_in_the_legend(tmp_path):
    both = seed(tmp_path / "both" / "seed0.csv", 0.5)
    second = without(seed(tmp_path / "second" / "seed0.csv", 0.5), "eval/success_rate")
    out = tmp_path / "curves.svg"
    curves.draw_curves([second, both], ["eval/success_rate", "train/mean_q"], "steps", out)
    drawn = out.read_text()
    assert drawn.index("<!-- second -->") < drawn.index("<!-- both -->")
    assert drawn.count("<!-- both -->") == 1


def test_a_legend_is_no_wider_than_its_panel(tmp_path):
    run = seed(tmp_path / "seed0.csv", 0.5)._replace(group=", ".join(["agent.polyak 0.9"] * 9))
    curves.draw_curves([run], [], "steps", tmp_path / "curves.svg")
    lines = re.findall("<!-- (agent.*) -->", (tmp_path / "curves.svg").read_text())
    assert [line.count("agent") for line in lines] == [3, 3, 3]


def test_no_name_is_read_as_mathematics(tmp_path):
    run = seed(tmp_path / "a" / "seed0.csv", 0.5)._replace(group=r"a$\frac$b")
    curves.draw_curves([run], [], "steps", tmp_path / "out.svg")
    assert (tmp_path / "out.svg").exists()


def test_runs_without_any_of_the_metrics_are_named(tmp_path):
    runs = [seed(tmp_path / f"{n}.csv", 0.5) for n in "abc"]
    runs[1] = without(runs[1], "eval/success_rate")
    runs[2] = without(runs[2], "time/elapsed_s")
    assert curves.left_out(runs, ["eval/success_rate"], "steps") == {"no eval/success_rate": ["b"]}
    assert curves.left_out(runs, ["eval/success_rate", "train/mean_q"], "steps") == {}
    assert curves.left_out(runs, ["eval/success_rate"], "minutes") == {
        "no eval/success_rate": ["b"],
        "no time/elapsed_s": ["c"],
    }


def test_the_verb_draws_a_run_once_and_says_what_it_leaves_out(tmp_path, capsys):
    for name in ("run", "early", "other"):
        seed(tmp_path / name / "seed0.csv", 0.5)
    run, early, other = (tmp_path / name / "seed0.csv" for name in ("run", "early", "other"))
    early.write_text(HEADER)
    other.write_text(other.read_text().replace("eval/success_rate", "eval/object_comotion_m"))
    (tmp_path / "link").symlink_to(tmp_path / "run")
    out = tmp_path / "curves.svg"
    twice = [run, tmp_path / "run" / ".." / "run" / "seed0.csv", tmp_path / "link" / "seed0.csv"]
    assert run_verb(["plot", *map(str, [*twice, early, other]), "--out", str(out)]) == 0
    assert "<!-- run -->" in out.read_text()
    assert capsys.readouterr().err.splitlines() == [
        f"music-tf: left out, no epoch yet: {early}",
        f"music-tf: left out, no eval/success_rate: seed0 ({other.parent})",
    ]
    with pytest.raises(UsageError, match="no epoch of a run yet"):
        run_verb(["plot", str(early), "--out", str(out)])


def test_the_verb_writes_no_picture_without_a_line(tmp_path, capsys):
    paths = [tmp_path / f"push_{name}.csv" for name in "ab"]
    for path in paths:
        seed(path, 0.5)
    paths[0].write_text(paths[0].read_text().replace("time/elapsed_s", "time/fps"))
    out = tmp_path / "new" / "curves.svg"
    words = ["--axis", "minutes", "--out", str(out)]
    with pytest.raises(UsageError, match="choose --axis steps"):
        run_verb(["plot", str(paths[0]), *words])
    assert not out.parent.exists()
    assert run_verb(["plot", *map(str, paths), *words]) == 0
    assert capsys.readouterr().err == "music-tf: left out, no time/elapsed_s: push_a\n"


def test_the_verb_draws_the_longest_run_of_a_seed_and_names_the_others(tmp_path, capsys):
    paths = [tmp_path / folder / "mine" / "seed0.csv" for folder in ("short", "long")]
    paths.append(tmp_path / "long" / "mine" / "seed1.csv")
    for path in paths:
        seed(path, 0.5)
    lines = paths[0].read_text().splitlines(keepends=True)
    paths[0].write_text("".join(lines[:-1]))
    out = tmp_path / "curves.svg"
    assert run_verb(["plot", *map(str, paths), "--out", str(out)]) == 0
    assert "mine (2 seeds)" in out.read_text()
    assert capsys.readouterr().err == (
        "music-tf: left out, another run of the same seed is drawn: "
        f"seed0 ({tmp_path / 'short' / 'mine'})\n"
    )
    assert run_verb(["plot", *map(str, paths), "--out", str(out), "--each"]) == 0
    assert capsys.readouterr().err == ""
    assert len(re.findall(r"<!-- seed\d", out.read_text())) == 3


@pytest.mark.parametrize("swallowed", ["latest", "FILE", "push"])
@pytest.mark.parametrize("first", [False, True])
def test_a_run_behind_metric_is_told_where_it_belongs(tmp_path, monkeypatch, swallowed, first):
    file = tmp_path / "seed0.csv"
    seed(file, 0.5)
    (tmp_path / "runs" / "push").mkdir(parents=True)
    (tmp_path / "runs" / "push" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    word = swallowed.replace("FILE", str(file))
    before = [str(file)] if first else []
    with pytest.raises(UsageError, match="put the runs before --metric") as caught:
        run_verb(["plot", *before, "--metric", "eval/success_rate", word])
    assert f"got the run {word!r}" in str(caught.value)
    assert not (tmp_path / "curves.png").exists()


def test_a_column_is_a_column_whatever_file_has_its_name(tmp_path, monkeypatch):
    seed(tmp_path / "seed0.csv", 0.5)
    (tmp_path / "epoch").touch()
    monkeypatch.chdir(tmp_path)
    assert run_verb(["plot", "seed0.csv", "--metric", "epoch"]) == 0


def test_what_is_no_run_beside_runs_is_named_and_left_out(tmp_path, monkeypatch, capsys):
    seed(tmp_path / "seed0.csv", 0.5)
    (tmp_path / "seed0.log").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "seed1.csv").write_bytes(b"\xff\x00")
    monkeypatch.chdir(tmp_path)
    assert run_verb(["plot", "seed0.csv", "seed0.log", "folder", "seed1.csv"]) == 0
    assert capsys.readouterr().err == (
        "music-tf: left out, no run directory and no CSV file: seed0.log, folder\n"
        "music-tf: left out, damaged, plot it alone to see where: seed1.csv\n"
    )
    for words in (["seed0.log"], ["seed0.csv", "nowhere"]):
        with pytest.raises(UsageError, match=f"got '{words[-1]}'"):
            run_verb(["plot", *words])
