import hashlib
import re

import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, NumbersFault, UsageError
from music_tf.runs import agreement
from music_tf.runs.agreement import check_alike
from music_tf.training.update import check_same_state

RECORD = {"recipe": "ddpg", "preset": "laptop", "config": {"seed": 0, "agent": {"polyak": 0.9}}}


class Beside(Communicator):
    """A rank beside one that answers otherwise: `change` is made to a copy of its answer."""

    def __init__(self, change):
        super().__init__()
        self._change = change

    def collect(self, value):
        return [value, self._change(value)]


class Several(Communicator):
    """A rank beside others, which hold what is given instead of its own arrays."""

    def __init__(self, *others):
        super().__init__()
        self.size = 1 + len(others)
        self._others = others

    def collect(self, value):
        digests = [
            {
                name: hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
                for name, array in held.items()
            }
            for held in self._others
        ]
        return [value, *(value | changed for changed in digests)]


def test_ranks_that_are_alike_pass():
    check_alike(RECORD, False, Communicator())
    check_alike(RECORD, False, Beside(lambda answer: answer))


def test_other_settings_are_named_with_the_rank_and_both_values():
    other = Beside(lambda answer: (answer[0] | {"agent.polyak": "0.5", "seed": "1"}, answer[1]))
    with pytest.raises(UsageError) as raised:
        check_alike(RECORD, False, other)
    text = str(raised.value)
    assert "agent.polyak: rank 0 has 0.9, rank 1 has 0.5" in text
    assert "seed: rank 0 has 0, rank 1 has 1" in text
    assert "recipe" not in text


def test_resuming_on_one_rank_alone_is_another_command_line():
    other = Beside(lambda answer: (answer[0] | {"--resume": "true"}, answer[1]))
    with pytest.raises(UsageError, match="--resume: rank 0 has false, rank 1 has true\nstart all"):
        check_alike(RECORD, False, other)


@pytest.mark.parametrize("name", ["numpy", "code of music_tf"])
def test_other_software_is_named(name):
    other = Beside(lambda answer: (answer[0], answer[1] | {name: "other"}))
    with pytest.raises(EnvironmentFault, match=f"{name}: rank 0 has .*, rank 1 has other"):
        check_alike(RECORD, False, other)


STATE = {"a": np.zeros([2, 3], np.float32), "b": np.array([1.0, 2.0]), "step": np.int64(7)}


def test_ranks_that_hold_the_same_bits_pass():
    check_same_state(STATE, 7, Communicator())
    check_same_state(STATE, 7, Several(STATE))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("a", np.full([2, 3], -0.0, np.float32)),
        ("b", np.array([1.0, np.nextafter(2.0, 3.0)])),
        ("step", np.int64(8)),
    ],
)
def test_one_bit_of_difference_is_named_with_the_ranks(name, other):
    text = f"differs after 7 updates: {name} on ranks [1, 3] is not what rank 0 holds"
    ranks = Several(*({name: held} for held in (other, STATE[name], other)))
    with pytest.raises(NumbersFault, match=re.escape(text)):
        check_same_state(STATE, 7, ranks)


def test_a_change_of_any_source_file_is_another_code(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/one.py").write_text("1")
    monkeypatch.setattr(agreement, "_PACKAGE", tmp_path)
    before = agreement._software()
    assert agreement._software() == before
    (tmp_path / "inner/one.py").write_text("2")
    assert agreement._software()["code of music_tf"] != before["code of music_tf"]
