"""What a process must settle in its environment before TensorFlow is loaded."""

import os


def prepare_tensorflow(threads: int) -> None:
    """Chooses Keras's backend and the number of threads; hides GPUs unless the user chose some."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def available_cores() -> int:
    """Returns how many cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)))
