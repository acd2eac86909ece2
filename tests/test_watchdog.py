import textwrap
import time

import pytest

from tests.kit.cases import cases
from tests.kit.started import python

HANGING = 86


def run(body, limit=30):
    """Runs a program that watches itself, with a limit of one second unless it says otherwise."""
    program = "import math, pathlib, sys, time\n"
    program += "from music_tf.process.signals import *\nfrom music_tf.process.watchdog import *\n"
    program += textwrap.dedent(body)
    start = time.monotonic()
    return python(program, timeout=limit), time.monotonic() - start


def test_a_process_that_hangs_ends_with_its_stacks(tmp_path):
    log = tmp_path / "rank.log"
    done, seconds = run(f"""
        def stuck():
            time.sleep(60)
        with watchdog(1.0, "music-tf: rank 3", pathlib.Path({str(log)!r})):
            stuck()
    """)
    assert done.returncode == HANGING
    assert 2.0 < seconds < 8.0  # a second of longer_timeout, and one for the others
    assert done.stderr.startswith("music-tf: rank 3: no progress for 1 s")
    assert "in stuck" in done.stderr
    assert "in stuck" in log.read_text()


def test_an_interruption_that_a_destructor_drops_is_raised_again():
    done, _ = run("""
        from music_tf.errors import Hanging
        class Deaf:
            def __del__(self):
                while True:
                    time.sleep(0.01)
        try:
            with as_guest(), watchdog(0.3, "me", None):
                Deaf()
                while True:
                    time.sleep(0.01)
        except Hanging:
            print("heard")
    """)
    assert (done.returncode, done.stdout) == (0, "heard\n"), done.stderr
    assert done.stderr.count("no progress") == 2


def test_progress_keeps_it_alive_and_afterwards_or_without_a_limit_nothing_watches():
    done, _ = run("""
        import threading
        with watchdog(math.inf, "me", None):
            assert threading.active_count() == 1
        with watchdog(1.0, "me", None):
            for _ in range(20):
                time.sleep(0.1)
                heartbeat()
        with backstop(0.2), backstop(math.inf):
            pass  # not needed
        time.sleep(1.5)
        print("alive")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


@cases(
    ("handlers", "raised", "signalled"),
    ("install_signal_handlers()", "KeyboardInterrupt()", False),
    ("install_signal_handlers()", "SecondInterrupt()", True),
    ("pass", "KeyboardInterrupt()", True),  # Python's own handler raises it too
)
def test_an_interrupt_is_a_signals_or_comes_of_code(handlers, raised, signalled):
    done, _ = run(f"""
        {handlers}
        print(is_ctrl_c({raised}))
    """)
    assert done.stdout == f"{signalled}\n", done.stderr


@pytest.mark.parametrize(("wait", "code"), [(2.0, 0), (6.0, HANGING)])
def test_patience_is_four_times_as_long(wait, code):
    done, _ = run(f"""
        with watchdog(1.0, "me", None), longer_timeout():
            with longer_timeout():
                pass
            time.sleep({wait})
    """)
    assert done.returncode == code, done.stderr


def test_a_process_that_was_stopped_and_goes_on_is_not_hanging():
    done, _ = run("""
        import os, signal, subprocess
        with watchdog(4.0, "me", None):
            wake = f"sleep 6; kill -CONT {os.getpid()}"
            waker = subprocess.Popen(["sh", "-c", wake])
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(1.0)
        waker.wait()
    """)
    assert done.returncode == 0, done.stderr


@cases(
    ("wait", "after", "says"),
    ("ctypes.PyDLL(None).sleep(60)", 1.0, "Timeout (0:00:02"),
    ("time.sleep(60)", 20.0, "music-tf: rank 1: no progress for 1 s, ending the job"),
    ids=["holds the lock", "lets others run"],
)
def test_an_mpi_that_does_not_come_up_ends_the_rank_with_its_stack(tmp_path, wait, after, says):
    """The import of MPI, where it starts, stands still."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py/__init__.py").touch()
    (tmp_path / "mpi4py/MPI.py").write_text(f"import ctypes, time\n{wait}\n")
    done, _ = run(f"""
        import os
        sys.path.insert(0, {str(tmp_path)!r})
        os.environ |= {{"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}}
        from music_tf.cli import train
        from music_tf.runs import start
        start.START_SECONDS, train._LATER_S = 1.0, {after}
        train.die_with_parent = lambda number: None
        train.main(["ddpg", "--hang-after", "0.5"])
    """)
    assert done.returncode == HANGING, done.stderr
    assert says in done.stderr
    assert "mpi4py/MPI.py" in done.stderr
