import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from music_tf.cli import launch
from music_tf.cli.job import Launch, run_job
from music_tf.errors import EnvironmentFault, Hanging, Stopped, UsageError
from music_tf.process.mpirun import needed, own_sessions
from music_tf.reading.command import parse_train
from tests.kit.cases import cases
from tests.kit.seen import SEEN
from tests.kit.started import ROOT, ended, environment, finish, music_tf, python, start

STUB = """
import os, signal, sys, time
got = []
signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
sys.stdout.write("ready\\n"); sys.stdout.flush()
end = time.monotonic() + 30
while not got and time.monotonic() < end:
    time.sleep(0.01)
sys.exit(75 if got else 1)
"""


def launching(stub):
    return (
        "import os, sys\nfrom music_tf.cli.job import run_job\n"
        f"sys.exit(run_job([sys.executable, '-c', {stub!r}], os.environ))"
    )


def launched(stub=STUB):  # a process that launches a job, once that is ready
    process = subprocess.Popen(
        [sys.executable, "-c", launching(stub)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def children_of(pid):
    return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def gone_within(seconds, pids):
    end = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(is_alive, pids))


def test_a_second_ctrl_c_ends_at_once_a_job_that_heeds_no_request():
    deaf = "got = []; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn = STUB.replace("got = []", deaf).replace("got.append(number)", "None")
    process = launched(stubborn)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    began = time.monotonic()
    assert finish(process)[0] == 75
    assert time.monotonic() - began < 5


def test_a_rank_is_not_ended_by_a_signal_before_it_has_a_handler():
    signals = "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\nraise SystemExit(7)"
    ended(*launch._DEAF_UNTIL_READY, sys.executable, "-c", signals, exits=7)


def test_nothing_is_started_once_a_signal_has_come(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "_mpirun", lambda *given: (["mpirun"], ""))
    monkeypatch.setattr(launch, "stop_requested", lambda: True)
    with pytest.raises(Stopped, match=r"before the start$"):
        launch.main(["-n", "2", "recipes"])
    (tmp_path / "config.json").touch()  # as between two jobs of --restarts
    job = Launch("-n 2", 2, {}, 1, ["train", *(words := ["ddpg_her", "--run-dir", str(tmp_path)])])
    with pytest.raises(Stopped, match="before the start; to resume:\nmusic-tf launch -n 2 train "):
        launch._run(job, parse_train(words))


def test_the_job_is_out_of_reach_of_the_terminal_and_dies_with_its_launcher():
    process = launched()
    (job,) = children_of(process.pid)
    assert os.getpgid(job) == job != os.getpgid(process.pid)
    process.kill()
    process.wait(timeout=10)
    assert gone_within(10, [job])


@cases(
    ("code", "again"),
    (137, "music-tf launch -n 2 train --resume"),  # Open MPI
    (9, ""),  # MPICH
)
def test_a_killed_rank_is_told_with_the_command_that_resumes(code, again, tmp_path):
    (tmp_path / "config.json").touch()
    notes = tmp_path / "notes" if again else None
    with pytest.raises(Hanging, match=r"a process was killed \(memory\?\)") as caught:
        run_job(["sh", "-c", f"exit {code}"], os.environ, notes, again)
    assert caught.value.exit_code == 86
    assert str(caught.value).endswith(f"; to resume:\n{again}" if again else "(memory?)")


def test_the_job_reads_nothing_from_the_terminal():
    python(launching("import sys; sys.exit(len(sys.stdin.read()))"), input="typed", exits=0)


@cases(
    ("program", "cause"),
    (None, "mpirun, and it was not found"),
    ("#!/bin/sh\nexec sleep 30\n", "mpirun cannot be used: .*no answer within 0 s"),
    ("#!/no/such/shell\n", "mpirun cannot be used: .*No such file"),
    ("without mpi4py", "mpi4py, and it was not found"),
)
def test_without_an_mpirun_that_answers_the_cure_is_named(program, cause, monkeypatch, tmp_path):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(program or "")
    mpirun.chmod(0o755)
    monkeypatch.setattr(launch.mpirun, "find_mpirun", lambda: str(mpirun) if program else None)
    monkeypatch.setattr(launch, "_VERSION_SECONDS", 0.1)
    if program == "without mpi4py":
        monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    cure = r"install it in this environment: .* -m pip install 'music_tf\[mpi\]'"
    with pytest.raises(EnvironmentFault, match=rf"{cause}.*\n{cure}"):
        launch.main(["-n", "2", "recipes"])


def test_one_rank_needs_no_mpirun(monkeypatch, capsys):
    monkeypatch.setattr(launch.mpirun, "find_mpirun", lambda: None)
    assert launch.main(["-n", "1", "recipes"]) == 0
    assert "ddpg_her\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["-n", "2"], ["-n=2"], ["-np", "2"], ["--ranks", "2"]])
def test_the_number_of_ranks_comes_before_the_verb(words):
    verb = ["train", "ddpg", "-n", "3"]
    read = launch._split([*words, *verb])
    assert (read.ranks, read.hosts, read.command) == (2, {}, verb)


@cases(
    ("words", "told"),
    ("-n 2 play push", "--restarts: expected train, which can be resumed, got play"),
    ("-n 1 train ddpg_her", "--restarts: expected several ranks, got 1"),
    (
        "-n 2 train ddpg_her --restarts 2",
        "unknown option '--restarts'\nthat is an option of launch",
    ),
)
def test_restarts_are_refused_where_nothing_could_be_resumed(words, told):
    with pytest.raises(UsageError, match=told):
        launch.main(["--restarts", "2", *words.split()])


@cases(
    ("own", "more", "rest"),
    (["-n", "2"], [], ""),
    (["-n", "3"], ["--learners", "1", "--device", "cpu"], " --learners 1 --device cpu"),
    (["--hosts", "a:2,b:2", "-np=2"], ["--env-id", SEEN], " --allow-import"),
    (["--hostfile", "our hosts"], [], ""),
)
def test_a_lost_host_brings_the_line_that_resumes_all_ranks(own, more, rest, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("our hosts").write_text("a slots=2\nb slots=2\n")
    begins = ["sh", "-c", "touch run/config.json"]
    monkeypatch.setattr(launch, "_mpirun", lambda *given: (begins, ""))
    words = ["train", "ddpg_her", "--env-id", "music_tf/PointPush-v0", "--run-dir", "run"]
    with pytest.raises(Hanging) as fault:
        launch.main([*own, *words, *more, "--workers", "4"])
    again = f"music-tf launch {shlex.join(own)} train --run-dir {tmp_path / 'run'} --resume{rest}"
    assert str(fault.value).splitlines()[1:] == [again]


@pytest.mark.parametrize(("version", "binds"), [("mpirun (Open MPI) 5", True), ("HYDRA", False)])
def test_only_open_mpi_is_told_not_to_bind(version, binds, monkeypatch, tmp_path):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f"#!/bin/sh\necho '{version}'\n")
    mpirun.chmod(0o755)
    monkeypatch.setattr(launch.mpirun, "find_mpirun", lambda: str(mpirun))
    command, _ = launch._mpirun(job := Launch("-n 3", 3, {}, 0, []), os.environ)
    assert command[:3] == [str(mpirun), "-n", "3"]
    if not binds:
        with pytest.raises(UsageError, match="--restarts: needs the mpirun of Open MPI, got MPICH"):
            launch._mpirun(job._replace(restarts=1), os.environ)
    assert (command[3:7] == ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]) is binds


def test_open_mpi_gets_a_home_and_leave_to_run_as_root():
    found = needed({"PATH": "/bin"})
    assert pathlib.Path(found["HOME"]).is_dir()
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in found) is (os.geteuid() == 0)
    assert "HOME" not in needed({"HOME": "/mine"})


def test_each_mpirun_gets_a_folder_of_its_own_that_is_gone_afterwards(tmp_path, monkeypatch):
    with own_sessions({}) as one, own_sessions({}) as other:
        folders = [pathlib.Path(*found.values()) for found in (one, other)]
        assert folders[0] != folders[1]
        assert all(folder.is_dir() for folder in folders)
        (folders[0] / "left").write_text("over")
        with own_sessions({**one, "PATH": "/bin"}) as more:
            assert more == {}
    assert not any(folder.exists() for folder in folders)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(EnvironmentFault, match="set TMPDIR"), own_sessions({}):
        pass


@pytest.mark.distributed
@pytest.mark.parametrize("victim", ["launcher", "mpirun"])
def test_no_rank_outlives_launcher_or_mpirun(victim):
    process = start("launch", "-n", "2", "train", "sac", mode="stuck")
    assert process.stdout.readline() == "waiting\n"
    (mpirun,) = children_of(process.pid)
    ranks = children_of(mpirun)
    os.kill(process.pid if victim == "launcher" else mpirun, signal.SIGKILL)
    process.wait(timeout=20)
    assert process.returncode == (-9 if victim == "launcher" else 137)
    assert gone_within(10, [mpirun, *ranks])


@pytest.mark.distributed
def test_scripts_take_the_arguments_of_the_verb():
    done = ended(sys.executable, "experiments/train.py", "ddgp", env=environment("fine"))
    assert (done.returncode, done.stderr) == (2, music_tf("train", "ddgp")[2])
