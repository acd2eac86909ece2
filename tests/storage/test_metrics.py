import csv
import io
import math
import os
import re

import imageio.v3
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

from music_tf import recipes
from music_tf.config.settings import Config
from music_tf.config.terms import TaskConfig
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage import metrics
from music_tf.storage.logs import RateLimitedWarning
from music_tf.storage.metrics import METRICS, EvaluationsWriter, MetricsWriter, known_to
from tests.kit.cases import cases


def row(epoch, **values):
    named = {name.replace("__", "/"): value for name, value in values.items()}
    return {"time/epoch": epoch, "time/env_steps": 100 * epoch, **named}


def events(directory):
    accumulator = EventAccumulator(str(directory))
    accumulator.Reload()
    return accumulator


def points(directory, name):
    return [(event.step, event.value) for event in events(directory).Scalars(name)]


def refuse(*arguments, **options):
    raise OSError(28, "No space left on device")


def test_names_follow_the_form_group_slash_quantity_and_every_reward_has_its_own():
    assert all(re.fullmatch(r"[a-z]+/[a-z0-9_]+", name) for name in METRICS)
    assert all(METRICS.values())
    of_rewards = [name.split("/")[1] for name in METRICS if name.startswith("reward/")]
    names = {*recipes.terms(), "entropy"}
    assert {name.rsplit("_", 1)[0] for name in of_rewards} == names


def test_every_metric_of_settings_that_a_recipe_may_have_is_among_ours():
    for kind in (*recipes.agents(), *recipes.terms().values()):
        assert kind.declared().items() <= METRICS.items()
    assert {"train/value_loss", "dads/log_density", "reward/random_reward_gain"} <= METRICS.keys()


@cases(
    ("name", "told"),
    ("train/mean_q", "metrics of task: train/mean_q already means: mean value"),
    ("mine/a,b", "got 'mine/a,b'\nnearest: mine/a_b"),
    ('mine/"a"', "nearest: mine/_a_"),
    ("mine/a\nb", r"got 'mine/a\\nb'"),
)
def test_a_declared_metric_has_a_name_of_its_own_that_a_table_can_hold(name, told):
    declares = type("Declares", (TaskConfig,), {"metrics": {name: "of mine"}})
    with pytest.raises(UsageError, match=told):
        known_to(Config(rewards={"task": declares()}))


def test_evaluations_between_epochs_have_the_mean_of_the_last_four_over_a_resume(tmp_path):
    def add(table, *cells):  # cycle and success rate
        for cycle, rate in cells:
            steps = {"time/env_steps": 400 * cycle, "time/elapsed_s": 0.5 * cycle}
            rated = {} if rate is None else {"eval/success_rate": rate}
            table.write({"cycle": cycle, "eval/return": -50.0, **steps, **rated})

    warn, path = RateLimitedWarning(), tmp_path / "evaluations.csv"
    add(EvaluationsWriter(tmp_path, None, warn), (6, 0.0), (12, 0.5), (18, 0.7), (24, 0.9))
    path.write_bytes(path.read_bytes() + b"30,12")  # a row that was cut off
    add(EvaluationsWriter(tmp_path, 18, warn), (24, 0.8), (30, 1.0))
    header, *rows = path.read_text().splitlines()
    rates = "eval/return,eval/success_rate,eval/success_rate_of_4"
    assert header == f"cycle,time/env_steps,time/elapsed_s,{rates}"
    assert rows == [
        "6,2400,3,-50,0,",
        "12,4800,6,-50,0.5,",
        "18,7200,9,-50,0.7,",
        "24,9600,12,-50,0.8,0.5",  # (0 + 0.5 + 0.7 + 0.8) / 4
        "30,12000,15,-50,1,0.75",
    ]
    path.write_text("\n".join([header, *rows[:2], rows[3][:20]]))  # the row of 24 was cut off
    add(EvaluationsWriter(tmp_path, 24, warn), *((n, 1.0) for n in (30, 36, 42, 48)))
    means = [row.rpartition(",")[2] for row in path.read_text().splitlines()[-4:]]
    assert means == ["", "", "", "1"]  # no four in a row before
    add(EvaluationsWriter(tmp_path, None, warn), *((n, None) for n in range(5)))
    assert {row[-2:] for row in path.read_text().splitlines()[1:]} == {",,"}
    add(EvaluationsWriter(tmp_path, 3, warn), (4, 0.5))
    assert path.read_text().endswith("\n4,1600,2,-50,0.5,\n")
    path.write_bytes(b"#" + path.read_bytes())
    for content in (path.read_bytes(), b"#cycle,\n"):
        path.write_bytes(content)
        with pytest.raises(EnvironmentFault, match=r"expected its header, got '#cycle,"):
            EvaluationsWriter(tmp_path, 3, warn)


def test_a_table_gets_the_columns_that_come_later_and_keeps_those_that_come_no_more(tmp_path):
    ranks = {"mpi__allreduce_ms": 2.5, "mpi__wait_ms_max": 7.0}
    first = {"train/mean_q": 0.5, **row(1, eval__success_rate=math.nan)}  # in another order
    MetricsWriter(tmp_path, resume_after=0).write(first)
    MetricsWriter(tmp_path, resume_after=1).write(row(2, train__mean_q=1.5, **ranks))
    alone = MetricsWriter(tmp_path, resume_after=2)
    alone.write(row(3, train__mean_q=2.5))
    alone.write(row(4, train__mean_q=3.5, train__entropy=None))
    assert (tmp_path / "metrics.csv").read_text() == (
        "epoch,time/epoch,time/env_steps,eval/success_rate,train/mean_q,mpi/allreduce_ms,"
        "mpi/wait_ms_max,train/entropy\n"
        "1,1,100,,0.5,,,\n"
        "2,2,200,,1.5,2.5,7,\n"
        "3,3,300,,2.5,,,\n"
        "4,4,400,,3.5,,,\n"
    )
    assert [path.name for path in tmp_path.glob("metrics*")] == ["metrics.csv"]


def test_a_disk_that_refuses_wider_rows_keeps_the_table_for_a_retry(tmp_path, monkeypatch, caplog):
    writer = MetricsWriter(tmp_path, resume_after=None)
    writer.write(row(1))

    with monkeypatch.context() as patch:
        patch.setattr(metrics, "replace_file", refuse)
        writer.write(row(2, train__mean_q=0.5))
    assert "metrics.csv" in caplog.text
    table = tmp_path / "metrics.csv"
    assert table.read_text() == "epoch,time/epoch,time/env_steps\n1,1,100\n2,2,200\n"
    writer.write(row(3, train__mean_q=1.5))
    assert table.read_text().splitlines()[2:] == ["2,2,200,", "3,3,300,1.5"]
    assert points(tmp_path, "train/mean_q") == [(200, 0.5), (300, 1.5)]


def test_numbers_read_back_as_they_were(tmp_path):
    values = [1 / 3, 1e-300, -2.0, 1e20, math.inf]
    writer = MetricsWriter(tmp_path, resume_after=None)
    for epoch, value in enumerate(values):
        writer.write(row(epoch, train__mean_q=value))
    with (tmp_path / "metrics.csv").open() as file:
        assert [float(line["train/mean_q"]) for line in csv.DictReader(file)] == values


def test_scalars_texts_images_and_histograms_reach_tensorboard_at_environment_steps(tmp_path):
    writer = MetricsWriter(tmp_path, resume_after=None)
    writer.write(row(1, eval__success_rate=None))
    writer.write(row(2, eval__success_rate=0.5))
    writer.write_text("config", "workers: 2")
    writer.write_image("view", np.zeros((3, 5, 3), np.uint8), step=7)
    writer.write_histogram("music/reward", [0.0, 0.0, 1.0], 7)
    assert points(tmp_path, "eval/success_rate") == [(200, 0.5)]
    assert points(tmp_path, "time/epoch") == [(100, 1.0), (200, 2.0)]
    accumulator = events(tmp_path)
    assert accumulator.Tensors("config")[0].tensor_proto.string_val == [b"workers: 2"]
    (image,) = accumulator.Images("view")
    assert (image.step, image.width, image.height) == (7, 5, 3)
    assert not (tmp_path / "videos").exists()
    (event,) = accumulator.Tensors("music/reward")
    assert (event.step, tensor_util.make_ndarray(event.tensor_proto)[:, 2].sum()) == (7, 3.0)


def test_pictures_with_a_file_lie_in_the_run_until_a_resume_drops_later_ones(tmp_path):
    writer = MetricsWriter(tmp_path, resume_after=None)
    for epoch in (1, 2):
        writer.write(row(epoch))
        picture = np.full((3, 5, 3), epoch, np.uint8)
        writer.write_image("eval/object_paths", picture, 100 * epoch, f"paths_{100 * epoch}.png")
    np.testing.assert_array_equal(imageio.v3.imread(tmp_path / "videos/paths_200.png"), picture)
    (tmp_path / "videos/mine.png").touch()
    MetricsWriter(tmp_path, resume_after=1)
    assert {path.name for path in (tmp_path / "videos").iterdir()} == {"paths_100.png", "mine.png"}
    (tmp_path / "videos/paths_300.png").mkdir()
    writer.write_image("eval/object_paths", picture, 300, "paths_300.png")  # a warning, no more


def test_undocumented_names_and_rows_without_a_place_are_refused(tmp_path):
    writer = MetricsWriter(tmp_path, resume_after=None)
    with pytest.raises(ValueError, match="train/critic_los"):
        writer.write(row(1, train__critic_los=1.0))
    with pytest.raises(ValueError, match="time/env_steps"):
        writer.write({"time/epoch": 1})
    assert not (tmp_path / "metrics.csv").exists()


def test_a_resumed_run_drops_later_rows_and_leaves_earlier_bytes_alone(tmp_path):
    writer = MetricsWriter(tmp_path, resume_after=None)
    for epoch in range(1, 6):
        writer.write(row(epoch, eval__success_rate=epoch / 7))
    before = (tmp_path / "metrics.csv").read_bytes().splitlines(keepends=True)
    resumed = MetricsWriter(tmp_path, resume_after=3)
    assert (tmp_path / "metrics.csv").read_bytes() == b"".join(before[:4])
    resumed.write(row(4, eval__success_rate=1.0))
    assert (tmp_path / "metrics.csv").read_bytes() == b"".join(before[:4]) + b"4,4,400,1\n"
    assert points(tmp_path, "eval/success_rate")[2:] == [(300, pytest.approx(3 / 7)), (400, 1.0)]


def test_a_row_torn_by_a_kill_is_dropped_on_resume_with_a_warning(tmp_path, caplog):
    MetricsWriter(tmp_path, resume_after=None).write(row(1))
    with (tmp_path / "metrics.csv").open("a") as file:
        file.write("2,2,20")
    MetricsWriter(tmp_path, resume_after=1)
    assert not caplog.records
    MetricsWriter(tmp_path, resume_after=2).write(row(2))
    assert (tmp_path / "metrics.csv").read_text().splitlines()[1:] == ["1,1,100", "2,2,200"]
    assert caplog.messages == [
        f"no row of 1 of 2 epochs, training continues: {tmp_path / 'metrics.csv'}"
    ]


def test_what_a_disk_took_of_a_failed_row_is_cut_off_before_it_is_whole(tmp_path, monkeypatch):
    writer = MetricsWriter(tmp_path, resume_after=None)
    writer.write(row(1))

    class Torn(io.FileIO):
        def write(self, data):
            super().write(data * 3)
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", Torn)
        writer.write(row(2))
    table = tmp_path / "metrics.csv"
    assert table.read_text().count("2,2,200") == 3
    writer.write(row(3))
    assert table.read_text().splitlines()[1:] == ["1,1,100", "2,2,200", "3,3,300"]


def test_a_failing_disk_costs_one_warning_and_no_row(tmp_path, monkeypatch, caplog):
    writer = MetricsWriter(tmp_path, resume_after=None)
    writer.write(row(1))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        for epoch in (2, 3):
            writer.write(row(epoch))
        assert len([text for text in caplog.messages if "metrics.csv" in text]) == 1
    writer.write(row(4))
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["1", "2", "3", "4"]
    assert [step for step, _ in points(tmp_path, "time/epoch")] == [100, 200, 300, 400]
