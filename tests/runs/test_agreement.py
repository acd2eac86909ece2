import logging

import pytest

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.runs import agreement
from music_tf.runs.agreement import (
    check_alike,
    describe_differences,
    fail_together,
    warn_of_processors,
)
from tests.kit.cases import cases
from tests.kit.ranks import Beside, same

RECORD = {"recipe": "ddpg", "preset": "laptop", "config": {"seed": 0, "agent": {"polyak": 0.9}}}
INTEL = "processor\t: 0\nmodel name\t: A\nflags\t\t: fpu sse4_2 avx avx2 fma hypervisor\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd evtstrm sve\nCPU implementer\t: 0x41\n"


@cases(
    ("changes", "lines"),
    (
        {"agent.polyak": "0.5", "seed": "1"},
        ["seed: rank 0 has 0, rank 1 has 1", "agent.polyak: rank 0 has 0.9, rank 1 has 0.5"],
    ),
    ({"--resume": "true"}, ["--resume: rank 0 has false, rank 1 has true"]),
)
def test_other_settings_and_software_are_named_with_the_rank_and_both_values(changes, lines):
    with pytest.raises(UsageError) as raised:
        check_alike(RECORD, False, Beside(lambda answer: (answer[0] | changes, answer[1])))
    assert str(raised.value).splitlines() == [*lines, "start all ranks with the same command line"]
    other = Beside(lambda answer: (answer[0], answer[1] | {"numpy": "other"}))
    with pytest.raises(EnvironmentFault, match=r"numpy: rank 0 has .*, rank 1 has other"):
        check_alike(RECORD, False, other)


@pytest.mark.parametrize("kind", [UsageError, EnvironmentFault])
def test_a_fault_of_one_rank_is_raised_on_all_with_its_exit_code(kind):
    def fail():
        raise kind("of a shape")

    broken = Beside(same)
    with pytest.raises(kind, match="of a shape"):
        fail_together(fail, broken)
    with pytest.raises(kind, match="of a shape"):
        fail_together(lambda: None, Beside(lambda well: broken.asked[0]))
    assert fail_together(lambda: 3, Beside(same)) == 3


def test_a_change_of_any_source_file_is_another_code(tmp_path, monkeypatch):
    source, comm = tmp_path / "inner/one.py", Beside(same)
    source.parent.mkdir()
    monkeypatch.setattr(agreement, "PACKAGE", tmp_path)
    for text in ("1", "1", "2"):
        source.write_text(text)
        check_alike(RECORD, False, comm)
    first, again, changed = (software["code of music_tf"] for _, software in comm.asked)
    assert first == again != changed


@cases(
    ("text", "flags"),
    (INTEL + "\n" + INTEL.replace("avx2", "avx512f"), ["avx", "avx2", "fma", "sse4_2"]),
    (ARM, ["asimd", "sve"]),
    ("", []),
)
def test_only_instructions_that_compute_numbers_are_compared(tmp_path, monkeypatch, text, flags):
    cpuinfo, comm = tmp_path / "cpuinfo", Beside(same)
    cpuinfo.write_text(text)
    monkeypatch.setattr(agreement, "CPUINFO", cpuinfo)
    warn_of_processors(comm)
    assert comm.asked == [flags]


OLD, NEW, ODD = ["avx", "fma"], ["avx", "avx512f", "fma"], ["avx", "sse4a"]


@cases(
    ("flags", "text"),
    ([], ""),
    ([["avx", "fma"], ["fma", "avx"], []], ""),
    ([NEW, OLD, NEW, OLD], "ranks [0, 2] have avx512f; ranks [1, 3] have none of these"),
    ([OLD, OLD, ODD], "ranks [0, 1] have fma; ranks [2] have sse4a"),
)
def test_ranks_that_differ_are_named_with_what_not_all_have(flags, text):
    assert describe_differences(flags) == text


def test_the_root_warns_once_and_the_others_are_silent(tmp_path, monkeypatch, caplog):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(INTEL)
    monkeypatch.setattr(agreement, "CPUINFO", cpuinfo)
    with caplog.at_level(logging.WARNING):
        warn_of_processors(Communicator())
        assert not caplog.records
        for rank in range(3):
            warn_of_processors(Beside(same, lambda flags: flags[:-1], rank=rank))
    assert caplog.messages == [
        "processors differ, so ranks may round differently and be found apart: "
        "ranks [0, 1] have sse4_2; ranks [2] have none of these"
    ]
