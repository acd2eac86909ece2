import importlib.metadata
import sys

import pytest

from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT, Finding
from music_tf.process.children import PIP_INSTALL, Probe, run_command, run_python
from music_tf.tools import doctor
from tests.kit.cases import cases
from tests.kit.started import python

FINE = Probe(0, "fine\n", "", 1.0)
VERSIONS = {"mujoco": "3.10.0", "gymnasium-robotics": "1.4.2", "tensorboard": "2.21.0"}
REQUIRED = ["tyro<2,>=1", "mujoco<3.12,>=3.3", "scipy>=1; extra == 'dev'"]


def broken(errors, code=1):
    return Probe(code, "", errors, 1.0)


@pytest.fixture
def machine(monkeypatch):
    """Sets what the doctor finds: versions by package, and how a probing process ends."""

    def found(probe=FINE, python="3.13.1", **versions):
        known = VERSIONS | {"tyro": "1.0"} | {n.replace("_", "-"): v for n, v in versions.items()}
        record = importlib.metadata.metadata("music_tf")
        del record["Requires-Dist"], record["Requires-Python"]
        record["Requires-Python"] = ">=3.11,<3.14"
        for text in REQUIRED:
            record["Requires-Dist"] = text
        monkeypatch.setattr(importlib.metadata, "metadata", lambda name: record)
        monkeypatch.setattr(doctor.platform, "python_version", lambda: python)
        monkeypatch.setattr(doctor, "installed", known.get)
        monkeypatch.setattr(doctor, "run_python", lambda code, **options: probe)
        monkeypatch.setattr(doctor, "run_command", lambda command, **options: probe)
        monkeypatch.setattr(doctor.mpirun, "find_mpirun", lambda: "/usr/bin/mpirun")
        monkeypatch.setattr(doctor.mpirun, "ask_version", lambda *given: Probe(0, "HYDRA"))
        monkeypatch.delenv("MUJOCO_GL", raising=False)

    return found


@cases(
    ("version", "inside"),
    ("3.2.9", False),
    ("3.10.0", True),
    ("3.12.0rc1", False),
    ("3.3.0+local.1", True),
    (None, False),
)
def test_versions_compare_by_number_and_the_upper_end_is_outside(machine, version, inside):
    machine(mujoco=version)
    assert doctor.unmet() == ({} if inside else {"mujoco": "mujoco<3.12,>=3.3"})


@cases(
    ("check", "found", "cause", "cure"),
    ("python", {"python": "3.10.2"}, "got 3.10.2", "PYTHON=python3.11"),
    ("packages", {"tyro": None}, "expected tyro<2,>=1", "pip install 'tyro<2,>=1'"),
    ("tensorflow", broken("Traceback\nImportError: lib.so\n"), "ImportError: lib", "require"),
    ("simulator", broken("ModuleNotFoundError: gymna"), "gymna", "requirements.lock"),
    ("tensorboard", broken("ImportError: a\n"), "ImportError: a", "--force-reinstall tens"),
    (
        *("rendering", broken("OSError: a"), "egl: OSError: a, osmesa: OSError: a"),
        "apt-get install libegl1 libgl1 (egl), or libosmesa6 (osmesa)",
    ),
    (
        *("mpi", Probe(0, "rank of 1 Open MPI v5.0.11\nrank of 1 Open MPI v5.0.11\n")),
        "2 ranks were started by MPICH, each sees a world of 1 through Open MPI v5.0.11",
        "openmpi",
    ),
    ("mpi", Probe(None, "", "", 60.0), "no answer within 60 s", "openmpi"),
    (
        *("mpi", Probe(1, "rank of 2 Open MPI v5\n", "RuntimeError: late\n")),
        *("RuntimeError: late", "openmpi"),
    ),
)
def test_a_fault_has_its_cause_and_its_cure(machine, check, found, cause, cure):
    machine(**({"probe": found} if isinstance(found, Probe) else found))
    finding = doctor.check(check)
    assert (finding.name, finding.ok) == (check, False)
    assert cause in finding.cause
    assert cure in finding.cure
    assert str(finding).startswith(f"FAIL  {check}")
    assert len(str(finding).splitlines()) == 3


def test_a_backend_of_the_user_that_cannot_be_loaded_is_named(machine, monkeypatch):
    machine(broken("in OpenGL/GL\nAttributeError: None"))
    monkeypatch.setenv("MUJOCO_GL", "egl")
    finding = doctor.check("simulator")
    assert "MUJOCO_GL=egl is set and cannot be loaded" in finding.cause
    assert "unset MUJOCO_GL" in finding.cure


@cases(
    ("memory", "disk", "cause", "cure"),
    (5 * 10**8, 10**10, "0.5 GB are free", "fewer ranks"),
    (10**10, 5 * 10**8, "0.5 GB are free in /", "MUSIC_TF_RUNS"),
    (3 * 10**9, 4 * 10**9, "", ""),
)
def test_a_machine_needs_memory_and_disk(monkeypatch, memory, disk, cause, cure):
    monkeypatch.setattr(doctor, "free_memory", lambda: memory)
    usage = type("Usage", (), {"free": disk})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage)
    monkeypatch.setattr(doctor, "available_cores", lambda: 2)
    finding = doctor.check("machine")
    assert (cause in finding.cause, cure in finding.cure) == (True, True)
    assert finding.ok == (cure == "")
    assert f"2 cores, {memory / 1e9:.1f} GB memory free, {disk / 1e9:.1f} GB d" in finding.detail


@cases(
    ("check", "probe", "facts"),
    ("python", FINE, "3.13.1 at /"),
    ("packages", FINE, "2 versions in range"),
    ("tensorflow", FINE, "fine, loaded in 1.0 s"),
    ("simulator", FINE, "mujoco 3.10.0, gymnasium-robotics 1.4.2, FetchPush-v4 steps"),
    ("tensorboard", FINE, "2.21.0"),
    ("rendering", FINE, "MUJOCO_GL=egl"),
    ("mpi", Probe(0, 2 * "rank of 2 Open MPI v5.0.11\n", "", 1.2), "met in 1.2 s through Open"),
)
def test_what_works_takes_one_line_with_its_facts(machine, check, probe, facts):
    machine(probe)
    finding = doctor.check(check)
    assert finding.ok
    assert str(finding).startswith(f"ok    {check}")
    assert facts in str(finding)
    assert "\n" not in str(finding)


def test_without_packaging_versions_are_not_compared_and_that_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    finding = doctor.check("packages")
    assert ("packaging" in finding.cause, finding.cure) == (True, f"{PIP_INSTALL} packaging")
    assert doctor.check("python").ok
    assert "not known" in doctor.check("python").detail


def test_this_installation_has_what_setup_asks_for():
    assert {"tensorflow", "mujoco", "numpy", "tyro", "python"} <= set(doctor.requirements())
    assert "ruff" not in doctor.requirements()  # of an extra


@cases(("cures", "code"), (("", ""), EXIT_DONE), (("", "mend"), EXIT_ENVIRONMENT))
def test_one_fault_sets_the_exit_code_and_every_check_is_printed(cures, code, monkeypatch, capsys):
    checks = {f"point{i}": lambda cure=cure: Finding("facts", cure) for i, cure in enumerate(cures)}
    monkeypatch.setattr(doctor, "CHECKS", checks)
    assert doctor.main([]) == code
    names = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "facts" in line]
    assert names == ["point0", "point1"]


@cases(
    ("code", "seconds", "ended", "reason"),
    ("print('seen'); raise ValueError('bad')\n", 30, (1, "seen\n"), "ValueError: bad"),
    ("import time; time.sleep(60)", 0.5, (None, ""), "no answer within"),
    ("import os, sys; print(os.environ['ADDED'], repr(sys.stdin.read()))", 30, (0, "yes ''\n"), ""),
)
def test_a_probe_tells_output_code_and_the_telling_line(code, seconds, ended, reason):
    probe = run_python(code, seconds=seconds, environment={"ADDED": "yes"})
    assert (probe.code, probe.output) == ended
    assert probe.ok or probe.reason.startswith(reason)
    assert "/nowhere/mpirun" in run_command(["/nowhere/mpirun"], seconds=1).reason


def test_the_first_backend_that_draws_is_chosen(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(doctor, "probe_backend", lambda n: FINE if n == "osmesa" else broken(""))
    assert doctor.working_backend() == "osmesa"
    monkeypatch.setattr(doctor, "probe_backend", lambda name: broken(""))
    assert doctor.working_backend() is None


def test_the_users_backend_is_tried_first_and_once_and_one_that_is_none_draws_nothing(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "OSMesa")
    assert doctor.candidates() == ("osmesa", "egl")
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    assert doctor.candidates() == ("glfw", "egl", "osmesa")
    assert not doctor.probe_backend("crayon").ok


@pytest.mark.parametrize("in_a_clone", [True, False])
def test_the_doctor_says_where_a_copy_is_imported_from(machine, monkeypatch, tmp_path, in_a_clone):
    machine()
    packages = tmp_path / "site-packages"
    for folder in (packages, tmp_path / "clone") if in_a_clone else (packages,):
        (folder / "music_tf").mkdir(parents=True)
        (folder / "music_tf/__init__.py").write_text("")
    here = tmp_path / "clone"
    here.mkdir(exist_ok=True)
    (here / "setup.py").write_text("")
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(here), str(packages)])  # as `python -m` sets it
    finding = doctor.check("packages")
    assert finding.ok
    assert f"music_tf is imported from {packages}" in str(finding)
    assert ("--editable ." in str(finding)) == in_a_clone
    monkeypatch.setattr(sys, "path", [str(here), str(here)])
    assert not in_a_clone or "imported" not in str(doctor.check("packages"))


@pytest.mark.parametrize(("limit", "left"), [("5000\n", 4000), ("max\n", 9000), ("99999", 9000)])
def test_a_container_limits_the_memory_that_is_free(monkeypatch, limit, left):
    files = {"memory.max": limit, "memory.current": "1000"}
    monkeypatch.setattr(doctor, "available_memory", lambda: 9000.0)
    monkeypatch.setattr(doctor.Path, "read_text", lambda path, encoding: files[path.name])
    assert doctor.free_memory() == left


def test_the_doctor_loads_no_library_that_may_be_broken():
    code = (
        "import sys, music_tf.tools.doctor\n"
        "heavy = {'numpy', 'tensorflow', 'mujoco', 'gymnasium', 'mpi4py', 'packaging', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert python(code, exits=0).stdout == "[]\n"


@cases("check", "simulator", pytest.param("mpi", marks=pytest.mark.distributed))
def test_the_simulator_steps_and_two_real_ranks_meet_on_this_installation(monkeypatch, check):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    finding = doctor.check(check)
    assert finding.ok, str(finding)
