"""Runs many command lines in one process, each up to its end: `runner.py PACKAGE JOB RESULTS`.

TensorFlow is loaded once. A command ends its process, and MPI where several ranks run: both are
put off to the end here. All that this file knows of the package is `main` of `python -m
music_tf`.
"""

import importlib
import json
import os
import pathlib
import sys
import threading
import traceback

_leave_really = os._exit


class _Left(BaseException):
    """A command has ended with an exit code."""


def _leave(code):
    if threading.current_thread() is threading.main_thread():
        raise _Left(code)
    _leave_really(code)


def _run(main, command):
    try:
        main(command)
    except (_Left, SystemExit) as left:
        return left.args[0] if left.args else 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _captured(main, command, stem):
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    for descriptor, ending in ((1, "out"), (2, "err")):
        file = os.open(f"{stem}.{ending}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    try:
        return _run(main, command)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, old in zip((1, 2), kept, strict=True):
            os.dup2(old, descriptor)
            os.close(old)


def _main(package, job, results):
    ranks = int(os.environ.get("SAME_RANKS", "1"))
    rank, finalize = 0, None
    if ranks > 1:
        mpi = importlib.import_module("mpi4py.MPI")
        rank, finalize = mpi.COMM_WORLD.Get_rank(), mpi.Finalize
        mpi.Finalize = lambda: None
    os._exit = _leave
    entry = importlib.import_module("music_tf.__main__")
    if not pathlib.Path(entry.__file__).is_relative_to(package):
        raise SystemExit(f"expected the package of {package}, got {entry.__file__}")
    for step in json.loads(pathlib.Path(job).read_text()):
        stem = pathlib.Path(results, step["name"])
        codes = []
        for number, command in enumerate(step["commands"]):
            end = f".{number}" if rank == 0 else f".{number}.rank{rank}"
            codes.append(_captured(entry.main, command, f"{stem}{end}"))
            if codes[-1] and not step.get("go_on"):
                break
        if rank == 0:
            pathlib.Path(f"{stem}.json").write_text(json.dumps(codes))
    if finalize is not None:
        finalize()
    sys.stdout.flush()
    sys.stderr.flush()
    _leave_really(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
