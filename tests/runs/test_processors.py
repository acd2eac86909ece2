import logging

import pytest

from music_tf.distributed import Communicator
from music_tf.runs.processors import describe_differences, vector_flags, warn_of_differences

INTEL = "processor\t: 0\nmodel name\t: A\nflags\t\t: fpu sse4_2 avx avx2 fma hypervisor\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd evtstrm sve\nCPU implementer\t: 0x41\n"


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (INTEL + "\n" + INTEL.replace("avx2", "avx512f"), {"sse4_2", "avx", "avx2", "fma"}),
        (ARM, {"asimd", "sve"}),
        ("", set()),
    ],
)
def test_only_instructions_that_compute_with_numbers_are_compared(text, flags):
    assert vector_flags(text) == flags


def test_ranks_that_are_alike_or_unknown_are_not_mentioned():
    assert describe_differences([]) == ""
    assert describe_differences([["avx", "fma"], ["fma", "avx"], []]) == ""
    assert describe_differences([[], []]) == ""


def test_ranks_that_differ_are_named_with_what_they_lack_and_have():
    old, new, odd = ["avx", "fma"], ["avx", "avx512f", "fma"], ["avx", "sse4a"]
    assert (
        describe_differences([new, old, new, old])
        == "ranks [1, 3] lack avx512f unlike ranks [0, 2]"
    )
    assert describe_differences([old, old, odd, new]) == (
        "ranks [2] lack fma have sse4a unlike ranks [0, 1]; "
        "ranks [3] have avx512f unlike ranks [0, 1]"
    )


class OneOfThree(Communicator):
    """A rank of three, of which the last has an old processor."""

    def __init__(self, rank):
        super().__init__()
        self.rank, self.size = rank, 3

    def collect(self, value):
        return [["avx", "avx2"], ["avx", "avx2"], ["avx"]]


def test_the_root_warns_once_and_the_others_are_silent(caplog):
    with caplog.at_level(logging.WARNING):
        for rank in range(3):
            warn_of_differences(OneOfThree(rank))
    assert [record.getMessage() for record in caplog.records] == [
        "processors differ, so ranks may round differently and be found apart: "
        "ranks [2] lack avx2 unlike ranks [0, 1]"
    ]


def test_one_rank_differs_from_nobody(caplog):
    warn_of_differences(Communicator())
    assert not caplog.records
