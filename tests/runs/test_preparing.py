import pytest

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, NumbersFault, Stopped, UsageError
from music_tf.reading.command import parse_train
from music_tf.runs import start


@pytest.mark.parametrize("kind", [EnvironmentFault, NumbersFault, Stopped, UsageError])
def test_a_fault_of_the_root_before_a_run_begins_keeps_its_kind_and_text(kind, monkeypatch):
    def faulty(command):
        raise kind("as the root says")

    monkeypatch.setattr(start, "prepare_directory", faulty)
    with pytest.raises(kind, match="as the root says"):
        start._prepared(parse_train(["ddpg_music"]), Communicator(alone=True))
