import json

import numpy as np
import pytest

from music_tf.errors import UsageError
from music_tf.storage import results
from music_tf.storage.results import group_and_seed, header, read_metrics, read_result
from tests.kit.cases import cases

METRICS = "epoch,time/env_steps,eval/success_rate\n1,1000,\n2,2000,0.5\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "music_seed3.csv"


def test_what_a_header_says_is_read_again_but_for_how_a_run_was_resumed(path):
    before = {"time/env_steps": 500.0, "time/elapsed_s": 5.0, "epoch": 7.0}
    details = {"wall_s": 7.5, "before": before}
    path.write_text(header("music-tf train ddpg", "commit 1, tensorflow 2", details) + METRICS)
    result = read_result(path)
    assert result.command == "music-tf train ddpg"
    assert (result.made_with, result.details) == ("commit 1, tensorflow 2", details)
    np.testing.assert_array_equal(result.columns["eval/success_rate"], [np.nan, 0.5])
    counted = result.counted_in_all()
    assert list(counted) == ["epoch", "time/env_steps", "eval/success_rate"]
    assert counted["time/env_steps"].tolist() == [1500.0, 2500.0]
    assert counted["epoch"].tolist() == [1.0, 2.0]  # no number of steps or seconds
    resumed = "music-tf train ddpg\n# then music-tf train --run-dir ... --resume\n# then again"
    path.write_text(header(resumed, "commit 1", {"wall_s": 7.5}) + METRICS)
    result = read_result(path)
    assert (result.command, result.made_with) == ("music-tf train ddpg", "commit 1")
    assert result.details == {"wall_s": 7.5}


def test_header_and_details_may_be_missing_and_a_line_being_written_is_left_out(path):
    assert header("a", "b") == "# a\n# b\n"
    path.write_text(METRICS)
    result = read_result(path)
    assert (result.command, result.made_with, result.details) == ("", "", {})
    for begun in ("3,30", "3,3000,0.9"):
        path.write_text(METRICS + begun)
        assert read_result(path).columns["epoch"].tolist() == [1.0, 2.0]


def test_the_metrics_of_an_epoch_are_those_that_are_not_blank(tmp_path):
    assert read_metrics(tmp_path, 2) == {}
    (tmp_path / "metrics.csv").write_text("time/epoch,time/env_steps,a,b\n1,9,5,6\n2,18,,7\n")
    assert read_metrics(tmp_path, 2) == {"time/epoch": 2.0, "time/env_steps": 18.0, "b": 7.0}
    assert read_metrics(tmp_path, 3) == {}
    (tmp_path / "metrics.csv").write_text(METRICS)  # without time/epoch
    assert read_metrics(tmp_path, 1) == {}


@cases(
    ("text", "expected"),
    ("", "no epoch"),
    ("a,b\n1,2\n", "no epoch"),
    (METRICS + "3,3000,\n" * 4, "more than 6 rows"),
    (METRICS.replace("1000", "many"), "expected numbers"),
    (f"# a\n# b\n# {json.dumps({'c': 1})[:-1]}\n{METRICS}", "expected JSON"),
    *(
        (f"# {json.dumps({'before': before})}\n{METRICS}", "expected objects under 'before'")
        for before in (3, [], None, {"time/env_steps": "1"}, {"time/env_steps": 10**400})
    ),
    (f"# {json.dumps({'final_100_episodes': [1]})}\n{METRICS}", "and 'final_100_episodes'"),
)
def test_another_file_is_refused(path, monkeypatch, text, expected):
    monkeypatch.setattr(results, "MOST_ROWS", 6)
    with pytest.raises(UsageError, match="cannot read"):
        read_result(path)
    path.write_text(text)
    with pytest.raises(UsageError, match=expected):
        read_result(path)


def test_the_name_of_a_file_says_group_and_seed(tmp_path):
    folder = tmp_path / "mine"
    assert group_and_seed(folder / "seed4.csv") == ("mine", 4)
    assert group_and_seed(folder / "music_FetchPush-v4_seed12.csv") == ("music_FetchPush-v4", 12)
    assert group_and_seed(folder / "push_absorb.csv") == ("mine", None)
