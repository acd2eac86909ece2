"""What a process settles about itself before anything heavy is loaded."""

import contextlib
import ctypes
import faulthandler
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

_SET_PARENT_DEATH_SIGNAL = 1


def prepare_tensorflow() -> None:
    """Chooses Keras's backend, one thread for numpy, and hides GPUs unless the user chose some."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a policy acts on a few rows
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # its products are faster, on AMD too


def load_tensorflow() -> None:
    """Imports TensorFlow without the lines that its libraries write before anybody can stop them.

    What they wrote is shown after all if the import fails. What Python itself says meanwhile, such
    as where a process that stands still or breaks off does so, is shown at once.
    """
    sys.stderr.flush()
    with (
        open(os.memfd_create("chatter"), "r+b") as chatter,  # needs no disk
        open(os.dup(2), "w", encoding="utf-8", errors="replace") as screen,
        contextlib.redirect_stderr(screen),
        _stacks_on(screen),
    ):
        os.dup2(chatter.fileno(), 2)
        try:
            tensorflow = importlib.import_module("tensorflow")
            tensorflow.config.list_physical_devices()
        except BaseException:
            chatter.seek(0)
            os.write(screen.fileno(), chatter.read())
            raise
        finally:
            os.dup2(screen.fileno(), 2)


@contextlib.contextmanager
def _stacks_on(screen: TextIO) -> Iterator[None]:
    """Shows the stacks where a library ends the process, unless somebody else does so already."""
    if faulthandler.is_enabled():
        yield
        return
    faulthandler.enable(screen)
    try:
        yield
    finally:
        faulthandler.disable()


def die_with_parent(number: int) -> None:
    """Asks Linux to send this process a signal once its parent has died; elsewhere does nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0)


def death_follower() -> Callable[[], None]:
    """Returns what a child runs first: once this process dies, the child gets SIGTERM.

    SIGUSR1 does not end it before it has installed a handler of its own.
    """
    parent = os.getpid()

    def follow() -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(0)

    return follow
