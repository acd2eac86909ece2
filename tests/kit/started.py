"""Starts processes: the command line, also with a stub for a training session, and code."""

import contextlib
import os
import pathlib
import subprocess
import sys

from music_tf.process.mpirun import own_sessions

ROOT = pathlib.Path(__file__).parents[2]
SITE = ROOT / "tests" / "cli" / "stub_site"
LACKING = ROOT / "tests" / "cli" / "lacking_site"
MPIRUN = [
    str(pathlib.Path(sys.executable).parent / "mpirun"),
    *("--allow-run-as-root", "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", "-n", "2"),
]
WITH_MPI4PY = [*MPIRUN, sys.executable, "-m", "mpi4py"]
PLAIN = [*MPIRUN, sys.executable]
ALONE = [sys.executable]
SECONDS = 60


def environment(mode):
    extra = {"STUB_MODE": mode, "PYTHONPATH": f"{SITE}:{ROOT}"} if mode else {}
    return {**os.environ, **extra}


def start(*words, how=ALONE, mode="", sessions=()):  # a running `music-tf WORDS`
    return subprocess.Popen(
        [*how, "-m", "music_tf", *words],
        cwd=ROOT,
        env={**environment(mode), **dict(sessions)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(*program, exits=None, **options):  # a program that has run, to any exit code or to this
    given = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": SECONDS, **options}
    done = subprocess.run(list(map(str, program)), check=False, **given)
    assert exits in (None, done.returncode), f"{done.stdout}{done.stderr}"
    return done


def python(code, *words, **options):  # the same of a process that runs this code
    return ended(sys.executable, "-c", code, *words, **options)


def finish(process, seconds=SECONDS):  # exit code, standard output and error
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, output, errors


def music_tf(*words, how=ALONE, mode="", seconds=SECONDS):  # what `finish` gives of it
    own = contextlib.nullcontext(()) if how is ALONE else own_sessions(os.environ)
    with own as sessions:
        return finish(start(*words, how=how, mode=mode, sessions=sessions), seconds)
