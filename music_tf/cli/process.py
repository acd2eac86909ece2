"""What a process settles about itself before anything heavy is loaded."""

import ctypes
import os
import sys

_SET_PARENT_DEATH_SIGNAL = 1


def prepare_tensorflow(threads: int) -> None:
    """Chooses Keras's backend and the number of threads; hides GPUs unless the user chose some."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def available_cores() -> int:
    """Returns how many cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def die_with_parent(number: int) -> None:
    """Asks Linux to send this process a signal once its parent has died; elsewhere does nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0)
