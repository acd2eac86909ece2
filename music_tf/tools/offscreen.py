"""Has episodes drawn without a screen, by a process that has not loaded TensorFlow."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from music_tf.envs.registry import is_known
from music_tf.errors import EnvironmentFault
from music_tf.tools.gl import DEBIAN_PACKAGES, working_backend
from music_tf.tools.painter import HEADER, Picture, Take

_DRAW_THEMSELVES = "music_tf/"
_SHOWN_LINES = 6
_LARGEST_SIDE = 16384


def drawing_variables(env_id: str) -> dict[str, str]:
    """Returns the environment variables with which an environment can be drawn here.

    Raises:
        EnvironmentFault: The environment is one of MuJoCo's, no OpenGL library loads without a
            screen, and there is none.
    """
    name = env_id.rpartition(":")[2]
    if name.startswith(_DRAW_THEMSELVES):
        return {}
    backend = working_backend() or ("glfw" if _has_screen() else None)
    if backend is None and is_known(name):
        packages = [f"  apt-get install {names}   ({gl})" for gl, names in DEBIAN_PACKAGES.items()]
        raise EnvironmentFault(
            f"{name}: nothing can be drawn here: there is no screen, and neither EGL nor OSMesa "
            "loads\ncure, as root on Debian or Ubuntu, one of:\n"
            + "\n".join(packages)
            + "\ntraining and evaluate draw nothing and work without; to check: music-tf doctor"
        )
    return {} if backend is None else {"MUJOCO_GL": backend}


def paint(env_id: str, take: Take, variables: Mapping[str, str]) -> Iterator[list[Picture]]:
    """Yields pictures of all episodes: first states, then those after each step.

    Episodes that are over stand still.

    Args:
        env_id: Which environment.
        take: Its episodes.
        variables: What `drawing_variables` returned.

    Raises:
        EnvironmentFault: They cannot be drawn.
    """
    with tempfile.TemporaryDirectory(prefix="music_tf-") as folder:
        job, errors = Path(folder) / "take.npz", Path(folder) / "errors.txt"
        take.save(job)
        reading, writing = os.pipe()
        module = ["-P", "-m", "music_tf.tools.painter"]
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with os.fdopen(reading, "rb") as pipe, errors.open("wb") as complaints:
            painter = subprocess.Popen(
                [sys.executable, *module, env_id, str(job), str(writing)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                env={**os.environ, **path, **variables},
                pass_fds=(writing,),
            )
            os.close(writing)
            try:
                yield from _receive(pipe, take)
            except EOFError:
                _end(painter)
                raise _fault(env_id, painter.returncode, errors) from None
            finally:
                pipe.close()
                _end(painter)


def _receive(pipe: BinaryIO, take: Take) -> Iterator[list[Picture]]:
    height, width = HEADER.unpack(_read(pipe, HEADER.size))
    if not 0 < height <= _LARGEST_SIDE or not 0 < width <= _LARGEST_SIDE:
        raise EOFError
    current: list[Picture] = [np.empty([0, 0, 3], np.uint8)] * len(take.length)
    for step in range(int(take.length.max()) + 1):
        for index in np.flatnonzero(take.length >= step):
            data = np.frombuffer(_read(pipe, height * width * 3), np.uint8)
            current[index] = data.reshape(height, width, 3)
        yield list(current)


def _read(pipe: BinaryIO, size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError
    return data


def _end(painter: subprocess.Popen[bytes]) -> None:
    """Waits a moment for the painter, which sends no more, then stops it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        painter.wait(5.0)
    if painter.poll() is None:
        painter.kill()
        painter.wait()


def _fault(env_id: str, code: int, errors: Path) -> EnvironmentFault:
    """Returns the painter's own words, or how it died."""
    lines = [line for line in errors.read_text("utf-8", "replace").splitlines() if line.strip()]
    if code < 0:
        lines = [f"the drawing process died of {signal.Signals(-code).name}", *lines[-1:]]
    shown = "\n".join(lines[-_SHOWN_LINES:])
    return EnvironmentFault(f"{env_id}: drawing failed\n{shown}")


def _has_screen() -> bool:
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
