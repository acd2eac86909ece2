import pytest

from music_tf.cli import train
from music_tf.config.command import parse_train


@pytest.mark.parametrize(("hang_after", "expected"), [("2", 300.0), ("1000", 1000.0)])
def test_the_start_has_its_time_however_short_that_of_training_is(
    monkeypatch, hang_after, expected
):
    watched = []
    monkeypatch.setattr(train, "watchdog", lambda *arguments: watched.append(arguments))
    train._watch_the_start(parse_train(["ddpg", "--hang-after", hang_after]))
    assert watched == [(expected, "music-tf: rank 0", None)]
