"""This process among others: its launcher, threads, signals, heartbeat, and how TensorFlow starts.

Standard library only: signal handlers are installed in the first lines of an entry point. A signal
that arrives during the imports would otherwise end the process.
"""

import contextlib
import contextvars
import ctypes
import dataclasses
import faulthandler
import importlib
import logging
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, cast

from music_tf.errors import EXIT_HANGING, EnvironmentFault, Hanging, UsageError

ASKED_VARIABLE = "MUSIC_TF_RANKS"
"""Set by `music-tf launch` to the number of ranks that it asked for."""
LAUNCH_VARIABLE = "MUSIC_TF_LAUNCH"
"""Set by `music-tf launch` to its own options, as typed: how its ranks can be started again."""
END_VARIABLE = "MUSIC_TF_END"
"""Set by `music-tf launch` to the file in which the first rank proves that it came to its end."""
AUTOTUNED_NAME = "autotune.textproto"
"""File of a run in which XLA keeps the kernels that it has chosen for a GPU."""
NO_GPU = "-1"
"""What CUDA_VISIBLE_DEVICES says where a process shall see none."""
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE")
_received: list[int] = []
_SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
_guest = contextvars.ContextVar("guest", default=False)
"""Whether this thread trains inside a process that the caller owns."""
_guest_since: contextvars.ContextVar[float | None] = contextvars.ContextVar("since", default=None)
"""When it began to, by the monotonic clock."""
_START_TICKS = 19
"""Place of the start, in ticks since the machine was booted, behind the name in /proc/PID/stat."""
_LOGGER = logging.getLogger(__name__)
_SET_PARENT_DEATH_SIGNAL = 1
LONGER = 4.0
"""How many times longer than usual compiling and saving may take."""
_TIME_FOR_OTHERS_S = 1.0
_LOOKS = 10.0
_STOPPED_S = 2.0
_WEEK = 604800.0
_IN_A_THREAD = 2
"""SIGEV_THREAD of a timer."""


PIP_INSTALL = f"{shlex.quote(sys.executable)} -m pip install"
"""What installs a package beside this one: the pip of the environment that is running."""


def launched_world_size() -> int:
    """Returns how many ranks the launcher says it started; 1 outside a launcher."""
    of_slurm = ("SLURM_STEP_NUM_TASKS",) if "SLURM_PROCID" in os.environ else ()
    return _number(*_SIZE_VARIABLES, *of_slurm) or 1


def asked_world_size() -> int | None:
    """Returns how many ranks `music-tf launch` asked for; None outside of it."""
    return _number(ASKED_VARIABLE)


def launched_rank() -> int:
    """Returns this process's rank as the launcher says it; else 0."""
    of_slurm = ("SLURM_PROCID",) if launched_world_size() > 1 else ()
    return _number(*_RANK_VARIABLES, *of_slurm) or 0


def launch_words(ranks: int) -> str:
    """Returns the options of `music-tf launch` that start so many ranks where they are now."""
    return os.environ.get(LAUNCH_VARIABLE) or f"-n {ranks}"


def _number(*names: str) -> int | None:
    """Returns the first of these environment variables that is a number."""
    found = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in found if text.isdigit()), None)


def available_cores() -> int:
    """Returns how many cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def workers_per_rank(workers: int, ranks: int, fixed: bool = False) -> int:
    """Returns how many workers each rank has; those of a run that is resumed are `fixed`.

    Raises:
        UsageError: The ranks do not divide the workers.
    """
    if workers % ranks:
        fitting = [number for number in range(1, workers + 1) if workers % number == 0]
        other = f", or set --workers {ranks * max(1, round(workers / ranks))}"
        raise UsageError(
            f"workers: expected a multiple of the {ranks} ranks, got {workers}\n"
            f"start {' or '.join(map(str, fitting[-4:]))} ranks{'' if fixed else other}"
        )
    return workers // ranks


def check_topology(
    workers: int, ranks: int, learners: int, device: str = "auto", fixed: bool = False
) -> None:
    """Checks that the ranks can share the workers: all alike, or those that act while one learns.

    Several ranks that learn cannot use a GPU: they meet between updates. The workers of a run that
    is resumed are `fixed`: then only another number of ranks is advised.

    Raises:
        UsageError: They cannot; the text names the nearest number that can.
    """
    if device == "gpu" and (learners or ranks) > 1:
        raise UsageError(
            f"--device gpu: expected one rank that learns, got {learners or ranks}\n"
            "for example: --learners 1 --device gpu"
        )
    if not learners:
        workers_per_rank(workers, ranks, fixed)
        return
    actors = ranks - learners
    if actors < 1:
        raise UsageError(
            f"--learners: expected fewer than there are ranks, since the others act, got "
            f"{learners} of {ranks}\n"
            f"for example: music-tf launch -n {2 * learners} train ... --learners {learners}"
        )
    if actors % learners:
        near = learners * max(1, round(actors / learners))
        raise UsageError(
            f"--learners: expected a multiple of the {learners} learners to act, got {actors}\n"
            f"start {learners + near} ranks, of which {near} act"
        )
    if workers % actors:
        learn = 1 if fixed and workers % learners else learners
        fitting = [n for n in range(learn, workers + 1, learn) if workers % n == 0]
        near = min(fitting, key=lambda number: abs(number - actors), default=0)
        fewer = "" if learn == learners else f" --learners {learn} and"
        cures = [f"start{fewer} {learn + near} ranks, of which {near} act"] if near else []
        if not fixed:
            cures.append(f"set --workers {actors * max(1, round(workers / actors))}")
        raise UsageError(
            f"workers: expected a multiple of the {actors} actors, got {workers}\n"
            + ", or ".join(cures)
        )


def asked_learners(arguments: Sequence[str]) -> int:
    """Returns how many ranks shall learn, by a command line that nobody has checked yet."""
    found = 0
    for word, after in zip(arguments, (*arguments, "")[1:], strict=True):
        option, equals, value = word.partition("=")
        text = value if equals else after
        if option == "--learners" and text.isdecimal():
            found = int(text)
    return found


def prove_end(code: int) -> None:
    """Writes this process's exit code where the launcher looks for it, just before it leaves."""
    place = os.environ.get(END_VARIABLE)
    if place:
        with contextlib.suppress(OSError):
            Path(place).write_text(f"{code}\n", encoding="ascii")


def hide_gpus() -> None:
    """Hides all GPUs from this process, whatever the user chose; before anything is imported."""
    os.environ["CUDA_VISIBLE_DEVICES"] = NO_GPU


def threads_per_rank(asked: int, ranks: int, actors: int = 0) -> int:
    """Returns the threads asked for; for 0 one of several ranks that learn has 1.

    A single one has all cores of this process but those of its actors, and at least two then.
    """
    cores = available_cores()
    return asked or (1 if ranks > 1 else max(2, cores - actors) if actors else cores)


def available_memory() -> float:
    """Returns the bytes that this machine can still give, swap included; infinity if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return 1024.0 * (sizes["MemAvailable"] + sizes.get("SwapFree", 0))
    except (OSError, ValueError, KeyError, IndexError):
        return math.inf


def install_signal_handlers() -> None:
    """Turns SIGUSR1, SIGTERM and Ctrl-C into a request to save and stop.

    A second Ctrl-C ends the process at once.
    """
    for number in _SIGNALS:
        signal.signal(number, _note)


def _note(number: int, frame: FrameType | None) -> None:
    del frame
    if number == signal.SIGINT and signal.SIGINT in _received:
        raise SecondInterrupt
    _received.append(number)


def end_as_ctrl_c() -> None:
    """Lets the first SIGTERM end this process as Ctrl-C does, so that drafts are removed."""

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


def is_ctrl_c(raised: KeyboardInterrupt) -> bool:
    """Whether a signal has raised it, and not code of the user's by itself.

    Under handlers of ours only a second Ctrl-C raises anything.
    """
    return isinstance(raised, SecondInterrupt) or signal.getsignal(signal.SIGINT) is not _note


def stop_requested() -> bool:
    """Whether a signal has asked this process to save and stop."""
    return bool(_received)


def request_stop() -> None:
    """Asks this process to save and stop, as a signal does that another rank got."""
    _received.append(signal.SIGUSR1)


def forget_signals() -> None:
    """Forgets a request to stop, so that another run in this process can begin."""
    _received.clear()


class SecondInterrupt(KeyboardInterrupt):
    """A second Ctrl-C: arrives in the main thread, wherever it is."""


class Interruption(BaseException):
    """Arrives in the thread of a guest that stands still, wherever it is."""


def since_launch() -> float:
    """Returns the seconds since this process was started, or since it became a guest's."""
    if (began := _guest_since.get()) is not None:
        return time.monotonic() - began
    stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    ticks = int(stat.rpartition(")")[2].split()[_START_TICKS])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return max(0.0, age)


@contextlib.contextmanager
def as_guest() -> Iterator[None]:
    """Trains inside a process that the caller owns, such as a notebook.

    Signals ask the run to stop while it lasts, and afterwards do what they did before. Outside of
    the main thread, where Python handles none, they do that all the time. A watchdog ends the run
    and not the process.

    Raises:
        Hanging: The watchdog has interrupted the run.
    """
    forget_signals()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        install_signal_handlers()
    token, began = _guest.set(True), _guest_since.set(time.monotonic())
    try:
        yield
    except Interruption as interruption:
        raise Hanging(
            "no progress for longer than --hang-after; the log of the run shows where it stood"
        ) from interruption
    finally:
        _guest.reset(token)
        _guest_since.reset(began)
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        forget_signals()


def prepare_tensorflow(shows_gpus: bool = False) -> None:
    """Chooses Keras's backend, one thread for numpy, and hides GPUs unless the user chose some.

    With `shows_gpus` nothing is hidden.
    """
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a policy acts on a few rows
    if not shows_gpus:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", NO_GPU)
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # its products are faster, on AMD too


def keep_autotuning(directory: Path) -> None:
    """Lets XLA keep which kernels it chooses for a GPU with the run, and choose them again.

    It chooses by the clock, and other kernels round differently: a resume that chose anew could not
    be bit-equal. XLA reads this once in a process, when it compiles first. What the user's
    `XLA_FLAGS` say of it counts instead.
    """
    flags, file = os.environ.get("XLA_FLAGS", ""), directory.absolute() / AUTOTUNED_NAME
    if "_autotune_results_" in flags or "'" in str(file):
        return
    added = [f"--xla_gpu_dump_autotune_results_to='{file}'"]
    if file.is_file() and file.stat().st_size:  # XLA fails where there is none
        added.append(f"--xla_gpu_load_autotune_results_from='{file}'")
    os.environ["XLA_FLAGS"] = " ".join([flags, *added]).strip()


class _Passing:
    """A stream to one place, and later to wherever standard error is by then."""

    def __init__(self, target: TextIO) -> None:
        self.target: TextIO | None = target

    def write(self, text: str) -> int:
        return (self.target or sys.stderr).write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target or sys.stderr, name)


@contextlib.contextmanager
def standard_error_to(target: TextIO) -> Iterator[None]:
    """Sends elsewhere what Python writes to standard error within.

    What keeps that stream for longer, as handlers of logging do that a library makes while it is
    imported, writes to standard error afterwards.
    """
    passing = _Passing(target)
    try:
        with contextlib.redirect_stderr(cast(TextIO, passing)):
            yield
    finally:
        passing.target = None


def load_tensorflow() -> None:
    """Imports TensorFlow without the lines that its libraries write before anybody can stop them.

    What they wrote is shown after all if the import fails. What Python itself says meanwhile, such
    as where a process that stands still or breaks off does so, is shown at once.

    Keras draws galleries if it finds matplotlib; here it does not, which saves each rank 20 MB.
    """
    sys.stderr.flush()
    with contextlib.ExitStack() as stack:
        chatter = stack.enter_context(open(os.memfd_create("chatter"), "r+b"))  # needs no disk
        screen = stack.enter_context(open(os.dup(2), "w", encoding="utf-8", errors="replace"))
        stack.enter_context(standard_error_to(screen))
        if not faulthandler.is_enabled():
            faulthandler.enable(screen)
            stack.callback(faulthandler.disable)
        os.dup2(chatter.fileno(), 2)
        if "matplotlib" not in sys.modules:
            sys.modules["matplotlib"] = None  # type: ignore[assignment]
            stack.callback(sys.modules.pop, "matplotlib")
        try:
            tensorflow = importlib.import_module("tensorflow")
            tensorflow.config.list_physical_devices()
        except BaseException:
            chatter.seek(0)
            os.write(screen.fileno(), chatter.read())
            raise
        finally:
            os.dup2(screen.fileno(), 2)


def claim_gpu(needed: bool, allowed: bool = True) -> str | None:
    """Takes the first GPU that TensorFlow sees, whose memory is taken as it is needed.

    Where none is allowed, TensorFlow leaves all of them alone, also those that the user's
    CUDA_VISIBLE_DEVICES names. To be called before TensorFlow computes anything; once more is fine.

    Products are those of single precision from then on, in the whole process: TensorFlow would
    round their factors to the 10 bits of TensorFloat-32, and what is learned would be another
    than on a CPU.

    Returns:
        Its name; None where there is none.

    Raises:
        EnvironmentFault: There is none, and one is needed; or it cannot be taken any more.
    """
    config = importlib.import_module("tensorflow").config
    gpus = config.list_physical_devices("GPU")
    if needed and not gpus:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise EnvironmentFault(
            f"--device gpu: TensorFlow sees none (CUDA_VISIBLE_DEVICES is {hidden})\n"
            f"for one of NVIDIA's: {PIP_INSTALL} 'music_tf[gpu]'; else --device cpu"
        )
    taken = gpus[:1] if allowed else []
    try:
        config.set_visible_devices(taken, "GPU")
        for gpu in taken:
            config.experimental.set_memory_growth(gpu, True)
    except RuntimeError as error:
        if not allowed:
            _LOGGER.warning("TensorFlow computes in this process already, and may use a GPU")
            return None
        raise EnvironmentFault(
            f"--device: TensorFlow computes in this process already ({error})\n"
            "start training before anything else uses it, or say --device cpu"
        ) from error
    if not taken:
        return None
    config.experimental.enable_tensor_float_32_execution(False)
    details = config.experimental.get_device_details(taken[0])
    return str(details.get("device_name", taken[0].name))


def limit_threads(threads: int) -> None:
    """Gives TensorFlow this many threads, once per process and before it computes anything.

    They run independent operations side by side, such as the losses of actor, critics and
    statistics network. They do not share the work of a single one: products of 256 rows are too
    small for that. So the numbers do not depend on how many there are.
    """
    pools = importlib.import_module("tensorflow").config.threading
    try:
        pools.set_intra_op_parallelism_threads(1)
        pools.set_inter_op_parallelism_threads(threads)
    except RuntimeError:
        _LOGGER.warning("TensorFlow computes in this process already, with the threads that it has")


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


@dataclasses.dataclass
class _Heart:
    last: float
    """When it beat last."""
    factor: float = 1.0
    """On the timeout."""


_heart = _Heart(time.monotonic())


def heartbeat() -> None:
    """Tells the watchdog that this process works: at each environment step, every few updates."""
    _heart.last = time.monotonic()


@contextlib.contextmanager
def longer_timeout() -> Iterator[None]:
    """Multiplies the watchdog's timeout by `LONGER` within, for compiling and saving."""
    heartbeat()
    _heart.factor = LONGER
    try:
        yield
    finally:
        _heart.factor = 1.0
        heartbeat()


@contextlib.contextmanager
def watchdog(seconds: float, speaker: str, log: Path | None) -> Iterator[None]:
    """Ends this process with exit code 86 when it stands still, with the stacks of its threads.

    A rank waits for ever for one that is stuck or gone: MPI has no timeouts. So every rank watches
    itself. Ranks move in step, so that all of them notice within a moment. Each first shows where
    it stands, and a second later the first to leave ends the job. A thread that holds Python's
    interpreter lock for ever is not seen. The process of others (`as_guest`) goes on: its thread is
    interrupted once it comes back to Python.

    Args:
        seconds: Longest time between two heartbeats; infinity watches nothing.
        speaker: Begins the message, such as `music-tf: rank 1`.
        log: File that the stacks are added to, beside standard error.
    """
    if math.isinf(seconds):
        yield
        return
    over = threading.Event()
    watched = ctypes.c_ulong(threading.get_ident()) if _guest.get() else None
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def tell(message: str, file: TextIO) -> None:
        file.write(message)
        file.flush()
        faulthandler.dump_traceback(file, all_threads=True)

    def watch() -> None:
        interval = min(1.0, seconds / _LOOKS)
        looked = time.monotonic()
        while not over.wait(interval):
            now = time.monotonic()
            if now - looked > interval + _STOPPED_S:  # the whole process stood still, as in Ctrl-Z
                heartbeat()
            looked = now
            idle = now - _heart.last
            if idle > seconds * _heart.factor:
                ending = "ending the job" if watched is None else "interrupting the run"
                message = f"{speaker}: no progress for {idle:.0f} s, {ending}; stacks:\n"
                with contextlib.suppress(OSError, ValueError):
                    tell(message, sys.stderr)
                if log is not None:
                    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
                        tell(message, file)
                if watched is not None:
                    raise_in(watched, ctypes.py_object(Interruption))
                    return
                time.sleep(_TIME_FOR_OTHERS_S)
                os._exit(EXIT_HANGING)

    heartbeat()
    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if watched is not None:
            raise_in(watched, None)  # one that comes too late


class _Event(ctypes.Structure):
    """What a POSIX timer does once its time is up: call a function in a thread of its own."""

    _fields_ = (
        ("argument", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("rest", ctypes.c_byte * 40),
    )


class _Times(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "in_s", "in_ns"))


@contextlib.contextmanager
def backstop(seconds: float) -> Iterator[None]:
    """Ends this process with exit code 86 after `seconds`, whatever holds the interpreter lock.

    MPI starts within an import, which a `watchdog` in Python cannot interrupt. So stacks are shown
    by faulthandler's thread, and the C library's timer calls `_exit`. Where there is no such timer,
    or the time is longer than a week, nothing is done.
    """
    library = ctypes.CDLL(None)
    if seconds > _WEEK or sys.platform != "linux" or not hasattr(library, "timer_create"):
        yield
        return
    end = ctypes.cast(library._exit, ctypes.c_void_p).value
    timer = ctypes.c_void_p()
    event = _Event(argument=EXIT_HANGING, kind=_IN_A_THREAD, function=end)
    library.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer))
    whole = int(seconds)
    due = _Times(in_s=whole + 1, in_ns=int(1e9 * (seconds - whole)))
    library.timer_settime(timer, 0, ctypes.byref(due), None)
    faulthandler.dump_traceback_later(seconds, file=sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        library.timer_delete(timer)


@dataclasses.dataclass(frozen=True)
class Probe:
    """How a probing process ended, and what it wrote."""

    code: int | None
    """Exit code, negative for a signal; None where it ran out of time or could not start."""
    output: str
    errors: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the process ended by itself and without a fault."""
        return self.code == 0

    @property
    def reason(self) -> str:
        """The line that tells best why the process failed, at most 160 characters."""
        if self.code is None and not self.errors:
            return f"no answer within {self.seconds:.0f} s"
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
        return (named or lines or [f"exit code {self.code}"])[-1][:160]


def run_command(
    command: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None
) -> Probe:
    """Runs `command` without input for at most `seconds`, with `environment` added to ours.

    A command that cannot be started is a failed probe, not an exception.
    """
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={**os.environ, **(environment or {})},
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return Probe(None, "", "", seconds)
    except OSError as error:
        return Probe(None, "", f"{type(error).__name__}: {error}", time.monotonic() - start)
    return Probe(done.returncode, done.stdout, done.stderr, time.monotonic() - start)


def run_python(code: str, *, seconds: float, environment: Mapping[str, str] | None = None) -> Probe:
    """Runs `code` with this interpreter, as `run_command` does."""
    return run_command([sys.executable, "-c", code], seconds=seconds, environment=environment)
