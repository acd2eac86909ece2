"""Starts TensorFlow: environment variables, an import without log lines, threads and GPU."""

import contextlib
import faulthandler
import importlib
import logging
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

from music_tf.errors import EnvironmentFault
from music_tf.process.children import PIP_INSTALL

AUTOTUNED_NAME = "autotune.textproto"
"""File of a run with the kernels that XLA has chosen for a GPU."""
NO_GPU = "-1"
"""Value of CUDA_VISIBLE_DEVICES that hides all GPUs."""
_NEWEST = 9, 0
"""Highest compute capability for which TensorFlow 2.21 can compile. For later GPUs (Blackwell) its
XLA aborts the process (https://github.com/tensorflow/tensorflow/issues/111958)."""
_LOGGER = logging.getLogger(__name__)


def hide_gpus() -> None:
    """Hides all GPUs from this process, whatever the user chose; call it before other imports."""
    os.environ["CUDA_VISIBLE_DEVICES"] = NO_GPU


def prepare_tensorflow(shows_gpus: bool = False) -> None:
    """Sets Keras's backend and one thread for numpy; hides GPUs unless the user chose some."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a policy acts on a few rows
    if not shows_gpus:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", NO_GPU)
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # faster matrix products, on AMD too


def keep_autotuning(directory: Path) -> None:
    """Makes XLA store its choice of GPU kernels in the run directory, and reuse it on resume."""
    # XLA chooses by measured time, and kernels round differently: a new choice is not bit-equal. It
    # reads the variable once a process, and the user's own `XLA_FLAGS` have priority.
    flags, file = os.environ.get("XLA_FLAGS", ""), directory.absolute() / AUTOTUNED_NAME
    if f"{os.sep}{AUTOTUNED_NAME}'" in flags and str(file) not in flags:
        _LOGGER.warning("%s: a second run in this process; on a GPU its resume may differ", file)
    if "_autotune_results_" in flags or "'" in str(file) or flags[:1] not in ("", "-", " "):
        return
    added = [f"--xla_gpu_dump_autotune_results_to='{file}'"]
    if file.is_file() and file.stat().st_size:  # XLA fails without a file
        added.append(f"--xla_gpu_load_autotune_results_from='{file}'")
    os.environ["XLA_FLAGS"] = " ".join([flags, *added]).strip()


class _Redirected:
    """A stream to `target`, and to the present standard error once `target` is None."""

    def __init__(self, target: TextIO) -> None:
        self.target: TextIO | None = target

    def write(self, text: str) -> int:
        return (self.target or sys.stderr).write(text)

    def close(self) -> None:
        """Leaves standard error open: `logging.config` closes the handlers of all libraries."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target or sys.stderr, name)


@contextlib.contextmanager
def standard_error_to(target: TextIO) -> Iterator[None]:
    """Redirects Python's standard error; whoever keeps the stream writes to the real one later."""
    redirected = _Redirected(target)
    try:
        with contextlib.redirect_stderr(cast(TextIO, redirected)):
            yield
    finally:
        redirected.target = None


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """Hides what C libraries log to standard error, unless the block fails; Python's is shown."""
    sys.stderr.flush()
    with contextlib.ExitStack() as stack:
        chatter = stack.enter_context(open(os.memfd_create("chatter"), "r+b"))  # needs no disk
        screen = stack.enter_context(open(os.dup(2), "w", encoding="utf-8", errors="replace"))
        stack.enter_context(standard_error_to(screen))
        if not faulthandler.is_enabled():
            faulthandler.enable(screen)
            stack.callback(faulthandler.disable)
        os.dup2(chatter.fileno(), 2)
        try:
            yield
        except BaseException:
            chatter.seek(0)
            os.write(screen.fileno(), chatter.read())
            raise
        finally:
            os.dup2(screen.fileno(), 2)


def load_tensorflow() -> None:
    """Imports TensorFlow without the log lines of its libraries, which are shown if it fails."""
    with without_chatter(), contextlib.ExitStack() as stack:
        if "matplotlib" not in sys.modules:  # hidden from Keras, which saves each rank 20 MB
            sys.modules["matplotlib"] = None  # type: ignore[assignment]
            stack.callback(sys.modules.pop, "matplotlib")
        importlib.import_module("tensorflow").config.list_physical_devices()


def claim_gpu(needed: bool, allowed: bool = True) -> str | None:
    """Claims the first GPU that TensorFlow sees, with memory that grows; returns its name."""
    config = importlib.import_module("tensorflow").config
    gpus = config.list_physical_devices("GPU")
    if needed and not gpus:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        look = "import tensorflow; tensorflow.config.list_physical_devices()"
        raise EnvironmentFault(
            f"--device gpu: TensorFlow sees no GPU (CUDA_VISIBLE_DEVICES is {hidden})\n"
            f"for one of NVIDIA, in this environment: {PIP_INSTALL} 'music_tf[gpu]'; else "
            "--device cpu\n"
            f'what is missing: {shlex.quote(sys.executable)} -c "{look}"'
        )
    used = gpus[:1] if allowed else []
    details = [config.experimental.get_device_details(gpu) for gpu in used]
    if any(each.get("compute_capability", _NEWEST) > _NEWEST for each in details):
        text = f"{details[0].get('device_name', 'the GPU')} is too new for this TensorFlow"
        if needed:
            raise EnvironmentFault(f"--device gpu: {text}\ntake --device cpu")
        _LOGGER.warning("--device auto: %s; learning on the CPU", text)
        used = []
    try:
        config.set_visible_devices(used, "GPU")
        for gpu in used:
            config.experimental.set_memory_growth(gpu, True)
    except RuntimeError as error:
        if not allowed:
            _LOGGER.warning("TensorFlow computes in this process already, and may use a GPU")
            return None
        raise EnvironmentFault(
            f"--device: TensorFlow computes in this process already ({error})\n"
            "start training before anything else uses it, or say --device cpu"
        ) from error
    if not used:
        return None
    # it rounds factors of matrix products to 10 bits, so learning would differ from that on a CPU
    config.experimental.enable_tensor_float_32_execution(False)
    return str(details[0].get("device_name", used[0].name))


def limit_threads(threads: int) -> None:
    """Gives TensorFlow this many threads, once per process and before it computes anything."""
    pools = importlib.import_module("tensorflow").config.threading
    try:
        pools.set_intra_op_parallelism_threads(1)  # so numbers do not depend on `threads`
        pools.set_inter_op_parallelism_threads(threads)
    except RuntimeError:
        _LOGGER.warning("TensorFlow computes in this process already, with the threads that it has")
