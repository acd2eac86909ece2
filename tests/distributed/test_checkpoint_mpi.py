import json

import pytest

from music_tf.distributed import Communicator
from music_tf.storage.checkpoint import Checkpoints
from tests.kit.jobs import mpirun

pytestmark = pytest.mark.distributed
WORKERS = [f"worker_{number:04d}" for number in range(4)]

PROGRAM = """
import errno, json, logging, sys
from pathlib import Path
import numpy as np
from music_tf import gate
from music_tf.distributed import Communicator
from music_tf.errors import MusicError
from music_tf.storage.checkpoint import Checkpoints

logging.basicConfig(level=logging.WARNING)
comm = Communicator()
directory, task = Path(sys.argv[1]), sys.argv[2]
workers = [f"worker_{number:04d}" for number in comm.local_workers(4)]
checkpoints = Checkpoints(directory, comm)

def save(epoch):
    shards = {worker: {"row": np.array([epoch, int(worker[-4:])])} for worker in workers}
    return checkpoints.save(epoch, {"a": np.array(epoch)}, shards, {"epoch": epoch})

def full(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")

result = {}
try:
    restored = checkpoints.restore(workers)
    if restored:
        result["epoch"] = restored.epoch
        rows = {w: [s["row"].tolist() for s in found] for w, found in restored.shards.items()}
        result["rows"] = rows
    if task == "save":
        result["saved"] = [save(1), save(2)]
    if task == "fail":
        written = gate.write_file
        if comm.rank == 1:
            gate.write_file = full
        result["saved"] = [save(3)]
        gate.write_file = written
        result["saved"].append(save(3))
except MusicError as error:
    result["error"] = [type(error).__name__, str(error)]
Path(f"{sys.argv[3]}_{comm.rank}.json").write_text(json.dumps(result))
"""


def run(tmp_path, ranks, task):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    job = mpirun(ranks, program, tmp_path / "checkpoints", task, tmp_path / "result", limit=60)
    return [json.loads((tmp_path / f"result_{r}.json").read_text()) for r in range(ranks)], job


def expected_rows(epochs):
    return {w: [[epoch, number] for epoch in epochs] for number, w in enumerate(WORKERS)}


def test_what_two_ranks_save_other_numbers_of_ranks_restore(tmp_path):
    results, _ = run(tmp_path, 2, "save")
    assert [result["saved"] for result in results] == [[True, True]] * 2
    restored = Checkpoints(tmp_path / "checkpoints", Communicator()).restore(WORKERS)
    assert restored.epoch == 2
    found = {w: [shard["row"].tolist() for shard in s] for w, s in restored.shards.items()}
    assert found == expected_rows([1, 2])

    results, _ = run(tmp_path, 4, "restore")
    for rank, result in enumerate(results):
        assert result["epoch"] == 2
        assert result["rows"] == {WORKERS[rank]: [[1, rank], [2, rank]]}

    results, job = run(tmp_path, 2, "fail")
    assert [result["saved"] for result in results] == [[False, True]] * 2
    assert job.stderr.count("No space left") == 1
    assert sorted(p.name for p in (tmp_path / "checkpoints/replay/worker_0003").iterdir()) == [
        f"epoch_00000{epoch}.npz" for epoch in (1, 2, 3)
    ]


def test_damage_that_one_rank_sees_makes_every_rank_fall_back_or_stop(tmp_path):
    run(tmp_path, 2, "save")
    shards = tmp_path / "checkpoints/replay/worker_0003"
    (shards / "epoch_000002.npz").write_bytes(b"")
    results, job = run(tmp_path, 2, "restore")
    assert [result["epoch"] for result in results] == [1, 1]
    assert {**results[0]["rows"], **results[1]["rows"]} == expected_rows([1])
    assert job.stderr.count("checkpoint skipped") == 1

    (shards / "epoch_000001.npz").unlink()
    results, _ = run(tmp_path, 2, "restore")
    assert results[0] == results[1]
    assert results[0]["error"][0] == "EnvironmentFault"
    assert "worker_0003" in results[0]["error"][1]
