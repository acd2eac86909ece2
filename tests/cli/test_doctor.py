import os
import subprocess
import sys

import pytest

from music_tf.cli import doctor
from music_tf.cli.diagnoses import (
    Finding,
    in_range,
    judge_machine,
    judge_packages,
    judge_python,
    judge_rendering,
    judge_simulator,
    judge_tensorboard,
    judge_tensorflow,
)
from music_tf.cli.mpi_diagnosis import judge_mpi
from music_tf.cli.mpirun import flavour
from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT, UsageError
from music_tf.process import Probe, run_command, run_python
from music_tf.tools import gl

FINE = Probe(0, "fine\n", "", 1.0)
OPEN_MPI_MEETING = Probe(0, "rank of 2 Open MPI v5.0.11\nrank of 2 Open MPI v5.0.11\n", "", 1.2)


def broken(errors, code=1):
    return Probe(code, "", errors, 1.0)


@pytest.mark.parametrize(
    ("version", "inside"),
    [
        ("3.3", True),
        ("3.2.9", False),
        ("3.10.0", True),
        ("3.11.9", True),
        ("3.12.0", False),
        ("3.12.0rc1", False),
        ("4.0.0", False),
        ("3.3.0+local.1", True),
    ],
)
def test_versions_compare_by_number_and_the_upper_end_is_outside(version, inside):
    assert in_range(version, ("3.3", "3.12")) is inside


@pytest.mark.parametrize(
    ("finding", "cause", "cure"),
    [
        (judge_python("3.10.2", "/usr/bin/python3"), "got 3.10.2", "PYTHON=python3.11"),
        (judge_python("3.14.0", "/usr/bin/python3"), "got 3.14.0", "PYTHON=python3.11"),
        (
            judge_packages({"numpy": "2.4.6", "tyro": None}),
            "expected tyro>=1,<2",
            "pip install 'tyro>=1,<2'",
        ),
        (
            judge_tensorflow(broken("Traceback\nImportError: libtensorflow.so\n")),
            "ImportError: libtensorflow.so",
            "requirements.lock",
        ),
        (
            judge_tensorflow(Probe(None, "", "", 120.0)),
            "no answer within 120 s",
            "requirements.lock",
        ),
        (
            judge_simulator("4.0.0", "1.4.2", "", FINE),
            "mujoco 4.0.0 does not work with gymnasium-robotics 1.4.2",
            "pip install 'mujoco>=3.3,<3.12'",
        ),
        (
            judge_simulator("3.10.0", "1.4.2", "egl", broken("in OpenGL/GL\nAttributeError: None")),
            "MUJOCO_GL=egl is set and cannot be loaded",
            "unset MUJOCO_GL",
        ),
        (
            judge_simulator("3.10.0", None, "", broken("ModuleNotFoundError: gymnasium_robotics")),
            "gymnasium_robotics",
            "requirements.lock",
        ),
        (
            judge_tensorboard(None, broken("")),
            "not installed",
            "pip install 'tensorboard>=2.20'",
        ),
        (
            judge_tensorboard("2.21.0", broken("ImportError: protobuf\n")),
            "ImportError: protobuf",
            "--force-reinstall tensorboard",
        ),
        (
            judge_rendering({"egl": broken("OSError: a"), "osmesa": broken("OSError: b")}),
            "egl: OSError: a, osmesa: OSError: b",
            "apt-get install libegl1 libgl1 (egl), or libosmesa6 (osmesa)",
        ),
        (judge_machine(2, 5 * 10**8, 10**10, "/runs"), "0.5 GB are free", "fewer ranks"),
        (judge_machine(2, 10**10, 5 * 10**8, "/runs"), "0.5 GB are free in /runs", "MUSIC_TF_RUNS"),
    ],
    ids=lambda value: value.name if isinstance(value, Finding) else "",
)
def test_a_fault_has_its_cause_and_its_cure(finding, cause, cure):
    assert not finding.ok
    assert cause in finding.cause
    assert cure in finding.cure
    assert len(str(finding).splitlines()) == 3


@pytest.mark.parametrize(
    ("mpirun", "probe", "cause", "cure"),
    [
        (None, None, "mpirun was not found", "openmpi"),
        (
            "/usr/bin/mpirun",
            Probe(0, "rank of 1 Open MPI v5.0.11\nrank of 1 Open MPI v5.0.11\n"),
            "2 ranks were started by MPICH, each sees a world of 1 through Open MPI v5.0.11",
            "openmpi",
        ),
        (
            "/usr/bin/mpirun",
            broken("Runtime environment uses unsupported PMI version PMIx. Aborting."),
            "different MPI libraries",
            "openmpi",
        ),
        (
            "/usr/bin/mpirun",
            broken("prterun has detected an attempt to run as root."),
            "refuses to run as root",
            "OMPI_ALLOW_RUN_AS_ROOT=1",
        ),
        (
            "/usr/bin/mpirun",
            broken("There are not enough slots available in the system"),
            "fewer slots than ranks",
            ":OVERSUBSCRIBE",
        ),
        (
            "/usr/bin/mpirun",
            broken("ModuleNotFoundError: No module named 'mpi4py'"),
            "mpi4py is not installed",
            "mpi4py",
        ),
        (
            "/usr/bin/mpirun",
            broken("RuntimeError: cannot load MPI library"),
            "finds no MPI library",
            "openmpi",
        ),
        (
            "/usr/bin/mpirun",
            broken("Failed initializing opal: -1"),
            "HOME or TMPDIR",
            "export HOME",
        ),
        ("/usr/bin/mpirun", Probe(None, "", "", 60.0), "no answer within 60 s", "openmpi"),
        (
            "/usr/bin/mpirun",
            Probe(1, "rank of 2 Open MPI v5\nrank of 2 Open MPI v5\n", "RuntimeError: late\n"),
            "RuntimeError: late",
            "openmpi",
        ),
    ],
)
def test_ranks_that_do_not_meet_have_a_cause_and_a_cure(mpirun, probe, cause, cure):
    finding = judge_mpi(mpirun, "MPICH", probe)
    assert not finding.ok
    assert cause in finding.cause
    assert cure in finding.cure
    assert len(str(finding).splitlines()) == 3


@pytest.mark.parametrize(
    ("finding", "facts"),
    [
        (judge_python("3.13.1", "/py"), "3.13.1 at /py"),
        (judge_packages({"numpy": "2.4.6"}), "1 versions in range"),
        (judge_tensorflow(FINE), "fine, loaded in 1.0 s"),
        (judge_simulator("3.10.0", "1.4.2", "", FINE), "mujoco 3.10.0, gymnasium-robotics 1.4.2"),
        (judge_tensorboard("2.21.0", FINE), "2.21.0"),
        (judge_rendering({"egl": broken("no"), "osmesa": FINE}), "MUJOCO_GL=osmesa"),
        (judge_machine(2, 3 * 10**9, 4 * 10**9, "/r"), "2 cores, 3.0 GB memory free, 4.0 GB disk"),
        (judge_mpi("/b/mpirun", "Open MPI", OPEN_MPI_MEETING), "met in 1.2 s through Open MPI v5"),
    ],
)
def test_what_works_takes_one_line_with_its_facts(finding, facts):
    assert finding.ok
    assert str(finding).startswith("ok ")
    assert facts in str(finding)
    assert "\n" not in str(finding)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("mpirun (Open MPI) 5.0.11\n", "Open MPI"),
        ("HYDRA build details:\n    Version: 5.0.2\n", "MPICH"),
        ("", "unknown MPI"),
    ],
)
def test_mpirun_tells_its_flavour(answer, expected):
    assert flavour(answer) == expected


@pytest.mark.parametrize(
    ("causes", "code"), [(("", ""), EXIT_DONE), (("", "broken"), EXIT_ENVIRONMENT)]
)
def test_one_fault_sets_the_exit_code_and_every_check_is_printed(causes, code, monkeypatch, capsys):
    findings = [Finding(f"point{i}", "facts", cause, "mend") for i, cause in enumerate(causes)]
    monkeypatch.setattr(doctor, "CHECKS", [lambda f=finding: f for finding in findings])
    assert doctor.main([]) == code
    names = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "facts" in line]
    assert names == ["point0", "point1"]


def test_arguments_are_refused():
    with pytest.raises(UsageError, match="--fix"):
        doctor.main(["--fix"])


def test_a_probe_tells_output_code_and_the_telling_line():
    probe = run_python("print('seen'); raise ValueError('bad')\n", seconds=30)
    assert (probe.ok, probe.code, probe.output) == (False, 1, "seen\n")
    assert probe.reason == "ValueError: bad"


def test_a_probe_that_hangs_is_ended():
    probe = run_python("import time; time.sleep(60)", seconds=0.5)
    assert probe.code is None
    assert probe.reason.startswith("no answer within")


def test_a_command_that_is_not_there_is_a_failed_probe():
    probe = run_command(["/nowhere/mpirun"], seconds=1)
    assert not probe.ok
    assert "/nowhere/mpirun" in probe.reason


def test_a_probe_reads_no_input_and_sees_the_added_environment():
    code = "import os, sys; print(os.environ['ADDED'], repr(sys.stdin.read()))"
    probe = run_python(code, seconds=30, environment={"ADDED": "yes"})
    assert probe.output == "yes ''\n"


def test_the_first_backend_that_draws_is_chosen(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(gl, "probe_backend", lambda name: FINE if name == "osmesa" else broken(""))
    assert gl.working_backend() == "osmesa"
    monkeypatch.setattr(gl, "probe_backend", lambda name: broken(""))
    assert gl.working_backend() is None


def test_the_users_backend_is_tried_first_and_once(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "OSMesa")
    assert gl.candidates() == ("osmesa", "egl")
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    assert gl.candidates() == ("glfw", "egl", "osmesa")


def test_a_backend_that_does_not_exist_does_not_draw():
    assert not gl.probe_backend("crayon").ok


def test_free_memory_is_positive_and_below_what_the_machine_has():
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < doctor.free_memory() <= total


def test_the_doctor_loads_no_library_that_may_be_broken():
    code = (
        "import sys, music_tf.cli.doctor\n"
        "heavy = {'numpy', 'tensorflow', 'mujoco', 'gymnasium', 'mpi4py', 'tensorboard'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.distributed
def test_two_real_ranks_meet_on_this_installation():
    finding = next(check for check in doctor.CHECKS if check.__name__ == "_mpi")()
    assert finding.ok, str(finding)


def test_the_simulator_steps_on_this_installation(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    finding = next(check for check in doctor.CHECKS if check.__name__ == "_simulator")()
    assert finding.ok, str(finding)
