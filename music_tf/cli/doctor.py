"""Checks the installation: one line a point, and a cause and a cure for each fault.

Every library is tried in a process of its own, so that a broken one cannot take the doctor along;
versions are read from the package records first, which works even if an import does not.
"""

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from music_tf.cli.diagnoses import (
    PACKAGE_RANGES,
    Finding,
    judge_machine,
    judge_packages,
    judge_python,
    judge_rendering,
    judge_simulator,
    judge_tensorboard,
    judge_tensorflow,
)
from music_tf.cli.mpi_diagnosis import MARK, RANKS, judge_mpi
from music_tf.cli.mpirun import ask_version, find_mpirun, flavour, needed, own_sessions, rank_words
from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT, UsageError
from music_tf.process import available_cores, run_command, run_python
from music_tf.tools.gl import candidates, probe_backend

USAGE = "music-tf doctor: checks this installation and says how to mend it; it takes no options\n"
PROBE_SECONDS = 120.0

_COMPUTE = """
import tensorflow as tf, tensorflow_probability as tfp
deviation = float(tfp.distributions.Normal(0.0, 1.0).stddev())
if deviation != 1.0 or float(tf.reduce_sum(tf.ones(3))) != 3.0:
    raise ArithmeticError("wrong sums")
print(f"TensorFlow {tf.__version__}, TensorFlow Probability {tfp.__version__}")
"""
_STEP = """
import contextlib, io, sys, time
with contextlib.redirect_stderr(io.StringIO()) as notices:
    import gymnasium, gymnasium_robotics
gymnasium.register_envs(gymnasium_robotics)
environment = gymnasium.make("FetchPush-v4")
environment.reset(seed=0)
environment.action_space.seed(0)
start = time.perf_counter()
for _ in range(20):
    observation = environment.step(environment.action_space.sample())[0]
rate = 20 / (time.perf_counter() - start)
sys.stdout.write(f"FetchPush-v4 makes {rate:.0f} steps/s")
"""
_MEET = f"""
import sys
from mpi4py import MPI
library = MPI.Get_library_version().splitlines()[0].split(",")[0]
library = " ".join(library.replace(chr(0), "").split())
sys.stdout.write(f"{MARK} {{MPI.COMM_WORLD.Get_size()}} {{library}}\\n")
sys.stdout.flush()
"""


def main(arguments: list[str]) -> int:
    """Prints every check and returns 0, or 3 if any found a fault.

    Raises:
        UsageError: There are arguments other than --help.
    """
    if arguments in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return EXIT_DONE
    if arguments:
        raise UsageError(f"doctor: expected no arguments, got {' '.join(arguments)}")
    all_well = True
    with ThreadPoolExecutor(max_workers=2) as pool:
        for finding in pool.map(_call, CHECKS):
            sys.stdout.write(f"{finding}\n")
            sys.stdout.flush()
            all_well &= finding.ok
    return EXIT_DONE if all_well else EXIT_ENVIRONMENT


def installed_version(package: str) -> str | None:
    """Returns the version in the package's record, without importing it; None if missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def free_memory() -> int:
    """Returns the bytes of memory that this process may still take, container limits included."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return free
    return min(free, int(limit) - used) if limit.isdigit() else free


def _call(check: Callable[[], Finding]) -> Finding:
    return check()


def _python() -> Finding:
    return judge_python(platform.python_version(), sys.executable)


def _packages() -> Finding:
    return judge_packages({name: installed_version(name) for name in PACKAGE_RANGES})


def _tensorflow() -> Finding:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    return judge_tensorflow(run_python(_COMPUTE, seconds=PROBE_SECONDS, environment=quiet))


def _simulator() -> Finding:
    return judge_simulator(
        installed_version("mujoco"),
        installed_version("gymnasium-robotics"),
        os.environ.get("MUJOCO_GL", ""),
        run_python(_STEP, seconds=PROBE_SECONDS),
    )


def _mpi() -> Finding:
    mpirun = find_mpirun()
    if mpirun is None:
        return judge_mpi(None, "", None)
    library = flavour(ask_version(mpirun, PROBE_SECONDS).output)
    ranks = [*rank_words(mpirun, library, RANKS), sys.executable, "-m", "mpi4py", "-c", _MEET]
    with own_sessions(os.environ) as sessions:
        met = run_command(ranks, seconds=60.0, environment={**needed(os.environ), **sessions})
    return judge_mpi(mpirun, library, met)


def _rendering() -> Finding:
    probes = {}
    for backend in candidates():
        probes[backend] = probe_backend(backend)
        if probes[backend].ok:
            break
    return judge_rendering(probes)


def _tensorboard() -> Finding:
    code = "import tensorboard.main, tensorboard.plugins.scalar.scalars_plugin"
    return judge_tensorboard(
        installed_version("tensorboard"), run_python(code, seconds=PROBE_SECONDS)
    )


def _machine() -> Finding:
    runs = Path(os.environ.get("MUSIC_TF_RUNS", "runs")).resolve()
    there = next(folder for folder in (runs, *runs.parents) if folder.exists())
    cores = available_cores()
    return judge_machine(cores, free_memory(), shutil.disk_usage(there).free, str(runs))


CHECKS = (
    _python,
    _packages,
    _machine,
    _tensorflow,
    _simulator,
    _mpi,
    _rendering,
    _tensorboard,
)
