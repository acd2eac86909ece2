import numpy as np
import pytest

from music_tf.storage.metrics import MetricsWriter
from music_tf.tools.events import read_pictures


def write(directory, steps, resume_after=None):
    writer = MetricsWriter(directory, resume_after=resume_after)
    for step in steps:
        writer.write_image("paths", np.full((4, 4, 3), step, np.uint8), step)
        writer.write({"time/epoch": step, "time/env_steps": step})
    return writer


def test_pictures_come_back_by_environment_steps(tmp_path):
    writer = write(tmp_path, [1, 2])
    writer.write_image("others", np.zeros((4, 4, 3), np.uint8), 3)
    pictures = read_pictures(tmp_path, "paths")
    assert list(pictures) == [1, 2]
    assert all(png.startswith(b"\x89PNG") for png in pictures.values())
    assert pictures[1] != pictures[2]


def test_what_a_resumed_run_dropped_is_left_out(tmp_path):
    write(tmp_path, [1, 2, 3])
    write(tmp_path, [4], resume_after=1)
    assert list(read_pictures(tmp_path, "paths")) == [1, 4]


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_record_that_is_still_being_written_is_left_out(tmp_path, cut):
    write(tmp_path, [1, 2])
    whole = read_pictures(tmp_path, "paths")
    (file,) = tmp_path.glob("events*")
    file.write_bytes(file.read_bytes()[:-cut])
    pictures = read_pictures(tmp_path, "paths")
    assert pictures.items() <= whole.items()
    assert 1 in pictures


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, b"\x08" + b"\0" * 11 + b"\xff" * 12])
def test_a_damaged_file_holds_no_pictures(tmp_path, content):
    (tmp_path / "events.out.tfevents.1").write_bytes(content)
    assert read_pictures(tmp_path, "paths") == {}
