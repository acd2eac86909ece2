import functools
import socket
import sys

import pytest

from music_tf import recipes
from music_tf.cli.exits import guarded, report
from music_tf.errors import EnvironmentFault, NoMpi, NumbersFault, UsageError, place_of
from tests.kit.cases import cases
from tests.kit.saved_run import write_config
from tests.kit.started import ALONE, LACKING, PLAIN, ROOT, WITH_MPI4PY, ended, music_tf

MPI = functools.partial(pytest.param, marks=pytest.mark.distributed)


def raising(error):
    def action():
        raise error

    return action


@cases(
    ("error", "code", "told"),
    (UsageError("x"), 2, "music-tf: x\n"),
    (EnvironmentFault("x"), 3, "music-tf: x\n"),
    (NumbersFault("x"), 4, "music-tf: x\n"),
    (KeyboardInterrupt(), 75, ""),
)
def test_a_fault_is_told_once_and_keeps_its_code_and_ctrl_c_is_no_bug(error, code, told, capsys):
    assert guarded(raising(error)) == code
    assert capsys.readouterr() == ("", told)


def test_a_bug_shows_its_traceback_and_any_fault_is_reported_in_ten_lines(capsys):
    assert guarded(raising(KeyError("lost"))) == 1
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("music-tf: KeyError: 'lost' at test_exits.py:")
    assert second.startswith("Traceback")
    assert last == "KeyError: 'lost'"
    assert guarded(functools.partial(place_of, None)) == 1  # raised in a file of ours
    assert capsys.readouterr().err.startswith("Traceback")
    report(UsageError("\n".join("x" * 10_000 for _ in range(50))))
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 10
    assert len(errors) < 4000


@pytest.mark.thorough
def test_a_run_beyond_memory_says_what_to_lower_and_to_remove_or_how_to_go_on(tmp_path):
    run = tmp_path / "run"
    words = ("train", "ddpg", "--run-dir", str(run))
    code, _, errors = music_tf(*words, mode="no memory")
    assert code == 3
    assert errors.splitlines() == [
        "music-tf: out of memory: Unable to allocate 9 TiB",
        f"lower --replay.capacity or --workers, and remove {run}: it holds nothing yet",
    ]
    write_config(run, recipes.resolve("ddpg"))
    (run / "checkpoints/epoch_000001").mkdir(parents=True)
    words = ("train", "--run-dir", str(run), "--resume")
    assert f"--run-dir {run} --resume" in music_tf(*words, mode="no memory")[2]


@pytest.mark.thorough
@cases(
    ("words", "redirected", "code", "told"),
    ("recipes", ">&-", 0, ""),
    ("nothing", "<&- >&- 2>&-", 2, ""),
    ("recipes", "> /dev/full", 3, "music-tf: the output cannot be written: no space left on the"),
    ("recipes", "| true", 0, ""),
)
def test_an_output_that_is_closed_or_full_gives_no_traceback(words, redirected, code, told):
    line = f"set -o pipefail; {sys.executable} -m music_tf {words} {redirected}"
    done = ended("bash", "-c", line, exits=code)
    assert done.stderr.startswith(told)
    assert len(done.stderr.splitlines()) == bool(told)


@pytest.mark.distributed
@cases(
    ("how", "words", "text"),
    (PLAIN, ("train", "ddgp"), "did you mean ddpg?"),
    (WITH_MPI4PY, ("train", "ddpg", "--workers", "3"), "multiple of the 2 ranks, got 3"),
    (PLAIN, ("trian",), "did you mean train?"),
)
def test_ranks_refuse_a_wrong_command_line_once_and_without_an_abort(how, words, text):
    code, output, errors = music_tf(*words, how=how, mode="fine")
    assert (code, output) == (2, "")
    assert errors.count(text) == 1
    assert len(errors.splitlines()) <= 3


@pytest.mark.distributed
def test_ranks_show_help_once():
    code, output, errors = music_tf("train", "--help", how=WITH_MPI4PY)
    assert (code, errors) == (0, "")
    assert output.count("music-tf train RECIPE trains") == 1


@pytest.mark.thorough
@cases(("how", "ranks"), (ALONE, 1), MPI(WITH_MPI4PY, 2), ids=["one", "two"])
def test_ranks_train_in_one_new_directory(how, ranks, tmp_path):
    code, output, errors = music_tf("train", "ddpg", how=how, mode="fine")
    assert (code, errors) == (0, "")
    assert output.startswith(f"ddpg {ranks} {tmp_path}/runs/FetchPush-v4/ddpg/seed0-")
    assert len(list((tmp_path / "runs/FetchPush-v4/ddpg").iterdir())) == 1


@pytest.mark.thorough
@cases(
    ("how", "mode"),
    (ALONE, "fault"),
    MPI(PLAIN, "fault"),
    MPI(WITH_MPI4PY, "fault"),
    MPI(WITH_MPI4PY, "lone fault"),  # the other rank waits for this one,
    MPI(WITH_MPI4PY, "last fault"),  # or has already come to its end
)
def test_a_fault_ends_the_job_with_its_code_and_is_told_once(how, mode):
    code, _, errors = music_tf("train", "ddpg", how=how, mode=mode)
    assert code == 4
    if mode == "fault":
        assert errors == "music-tf: bad numbers\nin the actor\n"
    else:
        assert errors.count("bad numbers") == 1
        assert "music-tf: rank 1: bad numbers\n" in errors  # before or behind mpirun's own notice


@pytest.mark.thorough
@cases(("how", "mode"), (ALONE, "interrupt"), MPI(WITH_MPI4PY, "lone interrupt"))
def test_an_interrupt_that_no_signal_has_raised_is_the_fault_of_whose_code_raises_it(how, mode):
    code, _, errors = music_tf("train", "ddpg", how=how, mode=mode)
    assert code == 3
    assert errors.count("raises KeyboardInterrupt without a signal") == 1
    assert "sitecustomize.py, line " in errors
    assert "Traceback" not in errors


@pytest.mark.thorough
@cases(
    ("how", "mode", "speaker"),
    (ALONE, "bug", ""),
    (ALONE, "thread bug", ""),
    MPI(WITH_MPI4PY, "bug", "[rank 0] "),
    MPI(WITH_MPI4PY, "last bug", "[rank 1] "),
    MPI(WITH_MPI4PY, "thread bug", "[rank 1] "),
)
def test_a_bug_ends_the_job_with_one_traceback_that_names_its_rank(how, mode, speaker):
    code, _, errors = music_tf("train", "ddpg", how=how, mode=mode)
    assert code == 1
    assert errors.count("Traceback") == 1
    assert f"{speaker}Traceback" in errors
    assert ("[rank" in errors) is bool(speaker)


@pytest.mark.distributed
@pytest.mark.parametrize("how", [PLAIN, ["launch", "-n", "2"]], ids=["mpirun", "launch"])
@pytest.mark.parametrize("lacking", ["0", "1", "0,1"])
def test_ranks_that_cannot_load_mpi_say_so_and_end_the_job(monkeypatch, tmp_path, how, lacking):
    monkeypatch.setenv("RANKS_WITHOUT_MPI", lacking)
    monkeypatch.setenv("PYTHONPATH", f"{LACKING}:{ROOT}")
    words = ["train", "ddpg", "--env-id", "music_tf/PointPush-v0"]
    if how is PLAIN:
        code, _, errors = music_tf(*words, how=how)
    else:
        code, _, errors = music_tf(*how, *words)
    assert code == 3, errors
    named = [line for line in errors.splitlines() if "mpi4py cannot load an MPI library" in line]
    host = socket.gethostname()
    assert {line.partition(": 2 ranks")[0] for line in named} <= {
        f"music-tf: rank {rank} on {host}" for rank in lacking.split(",")
    }
    assert named
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("rank", ["1", "5"])
def test_a_rank_without_mpi_is_silent_where_the_first_spoke(monkeypatch, tmp_path, capsys, rank):
    def fault():
        raise NoMpi("lacking")

    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "6")
    monkeypatch.setenv("PMIX_SERVER_TMPDIR", str(tmp_path))
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert guarded(fault) == 3
    assert capsys.readouterr().err == f"music-tf: rank 0 on {socket.gethostname()}: lacking\n"
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
    assert guarded(fault) == 3
    assert capsys.readouterr() == ("", "")
