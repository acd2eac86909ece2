import logging

import pytest

from music_tf.distributed import Communicator
from music_tf.storage import logs
from music_tf.storage.run_directory import RunDirectory

LOGGER = logging.getLogger("music_tf.training.somewhere")


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    return now


def test_a_full_disk_costs_log_lines_and_one_warning_in_ten_minutes(tmp_path, clock, capsys):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/rank_0000.log").symlink_to("/dev/full")
    directory = RunDirectory(tmp_path, Communicator(), None)
    for now in (0.0, 1.0, 599.0, 600.0, 601.0):
        clock[0] = now
        LOGGER.info("epoch done")
    directory.close()
    first, second = capsys.readouterr().err.splitlines()
    assert first == second
    assert first.startswith(
        "warning: log not written, training continues: [Errno 28] No space left"
    )


def test_a_log_that_cannot_be_opened_is_said_once_and_warnings_are_still_shown(tmp_path, capsys):
    directory = RunDirectory(tmp_path / "missing", Communicator(), None)
    LOGGER.warning("the disk is slow")
    directory.close()
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("warning: log not written, training continues: [Errno 2]")
    assert second == "warning: the disk is slow"
