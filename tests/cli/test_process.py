import contextlib
import logging
import os
import sys
import tempfile
import time
import types

import pytest

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.process import machine, tensorflow_start
from music_tf.process.launcher import check_topology, launched_rank, launched_world_size
from music_tf.process.machine import threads_per_rank
from music_tf.process.signals import as_guest, since_launch
from music_tf.reading.command import parse_train
from music_tf.runs import start
from tests.kit.cases import cases
from tests.kit.started import python

SETTLED = ("KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")


@pytest.fixture
def clean(monkeypatch):
    for name in SETTLED:
        monkeypatch.setenv(name, "unset later")
        monkeypatch.delenv(name)
    return monkeypatch


def test_gpus_are_hidden_threads_limited_and_what_the_user_chose_stays_except_the_backend(clean):
    tensorflow_start.prepare_tensorflow()
    assert [os.environ[name] for name in SETTLED] == ["tensorflow", "2", "1", "-1"]
    for name in SETTLED:
        clean.setenv(name, "0")
    tensorflow_start.prepare_tensorflow()
    assert [os.environ[name] for name in SETTLED] == ["tensorflow", "0", "0", "0"]


def test_kernels_chosen_for_a_gpu_are_kept_with_the_run_and_chosen_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    kept = tmp_path / "autotune.textproto"
    dump = f"--xla_cpu_enable_fast_math=false --xla_gpu_dump_autotune_results_to='{kept}'"
    for content, more in ((None, ""), ("", ""), ("version: 3", "load")):
        if content is not None:
            kept.write_text(content)
        with monkeypatch.context() as inner:
            inner.setenv("XLA_FLAGS", os.environ["XLA_FLAGS"])
            tensorflow_start.keep_autotuning(tmp_path)
            load = more and f" --xla_gpu_load_autotune_results_from='{kept}'"
            assert os.environ["XLA_FLAGS"] == dump + load
    typed = "--xla_gpu_load_autotune_results_from=/kept/elsewhere"
    monkeypatch.setenv("XLA_FLAGS", typed)
    tensorflow_start.keep_autotuning(tmp_path)
    assert os.environ["XLA_FLAGS"] == typed


def test_a_second_run_of_a_process_is_told_that_xla_goes_on_with_the_first(
    monkeypatch, tmp_path, caplog
):
    monkeypatch.setenv("XLA_FLAGS", "")
    for run in ("first", "first"):
        tensorflow_start.keep_autotuning(tmp_path / run)
    assert not caplog.text
    flags = os.environ["XLA_FLAGS"]
    tensorflow_start.keep_autotuning(tmp_path / "second")
    assert os.environ["XLA_FLAGS"] == flags
    assert f"{tmp_path / 'second'}/autotune.textproto: a second run in this process" in caplog.text


@pytest.mark.parametrize(("device", "asked"), [("gpu", True), ("cpu", False), ("auto", False)])
def test_flags_are_there_before_tensorflow_where_a_gpu_learns(monkeypatch, tmp_path, device, asked):
    seen = []

    def import_it():
        seen.append(os.environ["XLA_FLAGS"])
        raise EnvironmentFault("far enough")

    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(tensorflow_start, "load_tensorflow", import_it)
    path = tmp_path / "run"
    words = ["ddpg_her", "--env-id", "music_tf/PointPush-v0", "--run-dir", str(path)]
    with pytest.raises(EnvironmentFault, match="far enough"):
        start.start(parse_train([*words, "--device", device]), Communicator(alone=True))
    assert (f"results_to='{path}/autotune.textproto'" in seen[0]) == asked


@pytest.mark.thorough
def test_the_pinned_tensorflow_knows_the_flags_and_loads_no_matplotlib(tmp_path):
    folder = tmp_path / "a run"
    folder.mkdir()
    (folder / "autotune.textproto").write_text("version: 3\n")
    done = python(
        "from pathlib import Path\nfrom music_tf.process.tensorflow_start import *\n"
        "prepare_tensorflow()\n"
        f"keep_autotuning(Path({str(folder)!r}))\nload_tensorflow()\nimport tensorflow as tf\n"
        "import sys\nassert 'keras' in sys.modules and 'matplotlib' not in sys.modules\n"
        "print(tf.function(lambda x: x + x, jit_compile=True)(tf.ones([])).numpy())\n"
    )
    assert done.stdout.split() == ["2.0"], done.stderr[-1000:]


@pytest.fixture
def stand_in(tmp_path, monkeypatch):  # puts a module in the place of TensorFlow
    def put(text):
        listing = "config = types.SimpleNamespace(list_physical_devices=list)\n"
        (tmp_path / "tensorflow.py").write_text(f"import logging, os, sys, types\n{text}{listing}")

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    yield put
    sys.modules.pop("tensorflow", None)


@pytest.mark.parametrize("broken", [False, True])
def test_chatter_of_imports_is_shown_if_it_fails_without_disk(stand_in, monkeypatch, capfd, broken):
    stand_in("os.write(2, b'chatter\\n')\n" + broken * "raise ImportError('no such symbol')\n")
    failing = pytest.raises(ImportError, match="no such symbol")
    with monkeypatch.context() as inner, failing if broken else contextlib.nullcontext():
        inner.setattr(tempfile, "tempdir", "/missing")
        tensorflow_start.load_tensorflow()
    assert capfd.readouterr().err == ("chatter\n" if broken else "")


def test_what_the_import_logs_to_goes_on_as_standard_error_does(stand_in, monkeypatch, capsys):
    stand_in(
        "logger = logging.getLogger('of tensorflow')\n"
        "logger.propagate = False\n"
        "logger.addHandler(logging.StreamHandler(sys.stderr))\n"
    )
    tensorflow_start.load_tensorflow()
    logging.getLogger("of tensorflow").warning("told later")
    assert capsys.readouterr().err == "told later\n"
    logging.getLogger("of tensorflow").handlers[0].stream.close()  # as `logging.config` does
    sys.stderr.write("still open\n")
    assert capsys.readouterr().err == "still open\n"
    monkeypatch.setattr(sys, "stderr", sys.stdout)  # as a notebook or a test does
    logging.getLogger("of tensorflow").warning("told elsewhere")
    assert capsys.readouterr().out == "told elsewhere\n"


@pytest.mark.thorough
@cases(
    ("end", "texts"),
    ("os.abort()", ["Fatal Python error: Aborted", "tensorflow.py"]),
    ("time.sleep(60)", ["music-tf: rank 0: no progress for ", "tensorflow.py"]),
)
def test_where_the_import_breaks_off_or_stands_still_is_shown(tmp_path, end, texts):
    (tmp_path / "tensorflow.py").write_text(f"import os, time\nos.write(2, b'chatter')\n{end}\n")
    program = (
        "from music_tf.process.tensorflow_start import load_tensorflow\n"
        "from music_tf.process.watchdog import watchdog\n"
        "with watchdog(1.0, 'music-tf: rank 0', None):\n    load_tensorflow()\n"
    )
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    job = python(program, env=found)
    assert job.returncode != 0
    assert [text for text in texts if text not in job.stderr] == []
    assert "chatter" not in job.stderr


@pytest.mark.parametrize(("hang_after", "expected"), [(2.0, 300.0), (1000.0, 1000.0)])
def test_the_start_has_its_time_however_short_training_has(monkeypatch, hang_after, expected):
    watched = []
    monkeypatch.setattr(start, "watchdog", lambda *arguments: watched.append(arguments))
    start.watch_the_start(hang_after)
    assert watched == [(expected, "music-tf: rank 0", None)]


def test_one_rank_takes_all_cores_several_one_each_and_a_learner_what_no_actor_takes(monkeypatch):
    cores = len(os.sched_getaffinity(0))
    assert [threads_per_rank(*each) for each in [(0, 1), (0, 2), (5, 2)]] == [cores, 1, 5]
    monkeypatch.setattr(machine, "available_cores", lambda: 32)
    assert [threads_per_rank(0, 1, here) for here in (0, 16, 31)] == [32, 16, 2]
    ranks = Communicator(alone=True)
    ranks.hosts = ["a"] * 17 + ["b"] * 16  # the first learns
    assert [ranks.actors_here(learners) for learners in (0, 1, 2)] == [0, 16, 15]


@pytest.fixture
def two_gpus(monkeypatch):  # a TensorFlow that sees two GPUs, and what it was told of them
    told = []
    gpus = [types.SimpleNamespace(name=name) for name in ("first", "second")]
    config = types.SimpleNamespace(
        list_physical_devices=lambda kind: gpus,
        set_visible_devices=lambda devices, kind: told.append((kind, [d.name for d in devices])),
        experimental=types.SimpleNamespace(
            set_memory_growth=lambda gpu, grows: told.append((gpu.name, grows)),
            get_device_details=lambda gpu: {"device_name": "H100", "compute_capability": (9, 0)},
            enable_tensor_float_32_execution=lambda allowed: told.append(("TF32", allowed)),
        ),
    )
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(config=config))
    return config, told


def test_the_first_gpu_is_taken_and_where_none_is_allowed_none_is_seen(two_gpus):
    _, told = two_gpus
    assert tensorflow_start.claim_gpu(needed=False) == "H100"
    assert told == [("GPU", ["first"]), ("first", True), ("TF32", False)]
    told.clear()
    assert tensorflow_start.claim_gpu(needed=False, allowed=False) is None
    assert told == [("GPU", [])]


def test_a_gpu_on_which_tensorflow_would_abort_is_not_taken(two_gpus, caplog):
    config, told = two_gpus
    found = {"device_name": "RTX 5090", "compute_capability": (12, 0)}
    config.experimental.get_device_details = lambda gpu: found
    with pytest.raises(EnvironmentFault, match="RTX 5090 is too new for this TensorFlow"):
        tensorflow_start.claim_gpu(needed=True)
    assert not told
    assert tensorflow_start.claim_gpu(needed=False) is None
    assert told == [("GPU", [])]
    assert "RTX 5090 is too new for this TensorFlow; learning on the CPU" in caplog.text


def test_a_gpu_is_not_taken_from_a_tensorflow_that_computes_already(two_gpus, caplog):
    def refuse(devices, kind):
        raise RuntimeError("cannot be modified")

    two_gpus[0].set_visible_devices = refuse
    with pytest.raises(EnvironmentFault, match=r"computes in this process already .*modified"):
        tensorflow_start.claim_gpu(needed=False)
    assert tensorflow_start.claim_gpu(needed=False, allowed=False) is None
    assert "may use a GPU" in caplog.text


@cases(
    ("variables", "rank", "size"),
    ({}, 0, 1),
    ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 1, 2),
    ({"PMI_RANK": "3", "PMI_SIZE": "4"}, 3, 4),
    ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "3"}, 2, 3),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "3"}, 0, 1),  # a batch script, not yet in a step
    ({"OMPI_COMM_WORLD_SIZE": "two"}, 0, 1),
)
def test_launchers_say_who_is_who(variables, rank, size, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("OMPI_", "PMI", "SLURM_")):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (launched_rank(), launched_world_size()) == (rank, size)


def test_seconds_count_from_the_start_of_the_process_and_for_a_guest_from_its_own():
    before = time.time()
    code = (
        "import time; time.sleep(0.3)\nfrom music_tf.process.signals import since_launch as since\n"
    )
    age, then = map(float, python(f"{code}print(since(), time.time())").stdout.split())
    assert 0.3 <= age <= then - before + 0.05  # the clock of processes has ticks of 10 ms
    outside = since_launch()
    with as_guest():
        assert 0.0 <= since_launch() < outside
    assert since_launch() >= outside


@cases(
    ("ranks", "learners", "cure"),
    (3, 0, "start 1 or 2 or 4 ranks"),
    (4, 1, "start 3 ranks, of which 2 act"),
    (8, 2, "start 6 ranks, of which 4 act"),
    (12, 3, "start --learners 1 and 5 ranks, of which 4 act"),
)
def test_ranks_that_do_not_fit_a_resumed_run_are_refused_with_some_that_do(ranks, learners, cure):
    with pytest.raises(UsageError, match="workers: expected a multiple of the") as fault:
        check_topology(4, ranks, learners, fixed=True)
    assert str(fault.value).splitlines()[1:] == [cure]
    with pytest.raises(UsageError, match="set --workers"):
        check_topology(4, ranks, learners)
