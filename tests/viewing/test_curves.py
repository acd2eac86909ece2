import json

import numpy as np
import pytest

from music_tf.config.parse import parse_train
from music_tf.config.stored import StoredRun, run_to_json
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.viewing import curves

HEADER = "epoch,time/env_steps,time/elapsed_s,eval/success_rate,train/mean_q\n"


def write(path, rows, header=HEADER):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# a comment\n" + header + "".join(f"{row}\n" for row in rows))
    return path


def seed(path, end):
    return curves.load(
        write(path, [f"1,1000,60,0,{end}", f"2,2000,120,,{end}", f"3,3000,180,{end},{end}"])
    )


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


def test_a_line_that_is_still_being_written_is_left_out(tmp_path):
    path = write(tmp_path / "seed0.csv", ["1,1000,60,0.25,1"])
    path.write_text(path.read_text() + "2,20")
    assert curves.load(path).columns["eval/success_rate"].tolist() == [0.25]


def test_the_band_covers_the_range_that_all_seeds_have():
    long = curves.Curve(np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    short = curves.Curve(np.array([2.0, 6.0]), np.array([0.4, 0.8]))
    band = curves.band_of([long, short])
    assert (band.across[0], band.across[-1]) == (2.0, 6.0)
    # at 2: mean of 0.2 and 0.4; at 6: of 0.6 and 0.8; a resample may hold either seed twice
    assert band.middle[[0, -1]] == pytest.approx([0.3, 0.7])
    assert band.low[[0, -1]] == pytest.approx([0.2, 0.6])
    assert band.high[[0, -1]] == pytest.approx([0.4, 0.8])


def test_equal_seeds_have_no_band():
    curve = curves.Curve(np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    band = curves.band_of([curve] * 5)
    np.testing.assert_allclose(band.low, band.high)


def test_the_leading_metric_is_drawn_unless_others_are_asked_for(tmp_path):
    run = seed(tmp_path / "seed0.csv", 0.5)
    assert curves.choose_metrics([run], []) == ["eval/success_rate"]
    assert curves.choose_metrics([run], ["train/mean_q"]) == ["train/mean_q"]
    with pytest.raises(UsageError, match=r"did you mean eval/success_rate\?"):
        curves.choose_metrics([run], ["eval/sucess_rate"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no epoch"),
        (HEADER, "no epoch"),
        ("a,b\n1,2\n", "no epoch"),
        (HEADER + "1,2,3,x,4\n", "expected numbers"),
        ("\0\xff", "no epoch"),
    ],
)
def test_a_file_that_holds_no_run_is_refused(tmp_path, content, says):
    path = tmp_path / "seed0.csv"
    path.write_text(content)
    with pytest.raises(UsageError, match=says):
        curves.load(path)


@pytest.mark.parametrize("ending", curves.FORMATS)
def test_seeds_of_a_folder_share_a_line(tmp_path, ending):
    runs = [seed(tmp_path / "mine" / f"seed{n}.csv", n / 10) for n in range(5)]
    assert {run.group for run in runs} == {"mine"}
    out = tmp_path / "new" / f"curves{ending}"
    curves.draw_curves(runs, ["eval/success_rate", "train/mean_q"], "steps", out)
    assert out.stat().st_size > 3000
    if ending == ".svg":
        assert "mine (5 seeds)" in out.read_text().replace("<!-- ", "")


def test_a_picture_that_cannot_be_written_is_a_fault_of_the_disk(tmp_path):
    (tmp_path / "file").write_text("")
    run = seed(tmp_path / "seed0.csv", 0.5)
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        curves.draw_curves([run], [], "steps", tmp_path / "file" / "curves.png")


def run_directory(path, *words):
    command = parse_train(["ddpg_her", "--env-id", "music_tf/PointPush-v0", *words])
    stored = StoredRun("ddpg_her", "laptop", command.arguments, command.config)
    write(path / "metrics.csv", ["1,1000,60,0.25,1"])
    (path / "config.json").write_text(json.dumps(run_to_json(stored)))
    return path


def test_a_run_directory_is_grouped_by_recipe_and_environment(tmp_path):
    run = curves.load(run_directory(tmp_path / "seed3-x", "--seed", "3"))
    assert (run.group, run.name) == ("ddpg_her, PointPush-v0", "ddpg_her, PointPush-v0, seed3-x")
    assert run.columns["eval/success_rate"].tolist() == [0.25]


def test_runs_of_other_settings_have_a_line_of_their_own(tmp_path):
    plain = [
        run_directory(tmp_path / f"{n}", "--seed", str(n), "--epochs", f"{n + 5}") for n in (0, 1)
    ]
    other = run_directory(tmp_path / "other", "--agent.discount", "0.9")
    copy = write(tmp_path / "copies" / "seed0.csv", ["1,1000,60,0.25,1"])
    runs = curves.by_settings([curves.load(path) for path in (*plain, other, copy)])
    first, second, third, last = (run.group for run in runs)
    assert first == second == "ddpg_her, PointPush-v0, agent.discount 0.95"
    assert third == "ddpg_her, PointPush-v0, agent.discount 0.9"
    assert last == "copies"
    alone = curves.by_settings([curves.load(path) for path in plain])
    assert {run.group for run in alone} == {"ddpg_her, PointPush-v0"}
