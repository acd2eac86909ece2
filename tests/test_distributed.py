import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, NumbersFault, UsageError
from tests.kit.started import python


def ranks(rank, size):
    comm = Communicator()
    comm.rank, comm.size = rank, size
    return comm


def test_with_one_process_every_collective_is_the_identity():
    comm = Communicator()
    assert (comm.rank, comm.size, comm.is_root) == (0, 1, True)
    values, total = np.array([1.5, -2.0]), np.zeros(2)
    for collective in (comm.sum_in_place, comm.max_in_place, comm.broadcast):
        assert collective(values) is values
    comm.sum_into(values, total)
    assert values.tolist() == total.tolist() == [1.5, -2.0]
    assert (comm.any(True), comm.any(False)) == (True, False)
    assert (comm.broadcast_object({"a": 1}), comm.allgather([2])) == ({"a": 1}, [[2]])
    comm.barrier()
    assert comm.take_timing() == (0.0, 0.0)


def test_workers_are_shared_out_evenly_and_in_order():
    for size, share in ((1, 12), (2, 6), (3, 4), (12, 1)):
        parts = [ranks(rank, size).local_workers(12) for rank in range(size)]
        assert [len(part) for part in parts] == [share] * size
        assert [worker for part in parts for worker in part] == list(range(12))
    for workers, size, cure in (
        (4, 3, "start 1 or 2 or 4 ranks, or set --workers 3"),
        (1, 4, "start 1 ranks?, or set --workers 4"),
    ):
        says = rf"(?s)multiple of the {size} ranks, got {workers}.*{cure}"
        with pytest.raises(UsageError, match=says):
            ranks(0, size).local_workers(workers)


def test_an_mpi_that_sees_other_ranks_than_the_launcher_or_launch_is_refused(monkeypatch):
    seen = pytest.importorskip("mpi4py.MPI").COMM_WORLD.Get_size()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", str(seen + 4))
    with pytest.raises(EnvironmentFault, match=rf"{seen + 4} ranks, but mpi4py sees {seen}"):
        Communicator()
    monkeypatch.delenv("OMPI_COMM_WORLD_SIZE")
    monkeypatch.setenv("MUSIC_TF_RANKS", "2")
    with pytest.raises(EnvironmentFault, match="2 ranks were asked for, but mpirun started 1"):
        Communicator()
    assert Communicator(alone=True).size == 1


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_output_that_cannot_be_written_does_not_change_the_exit_code(end):
    program = (
        "import sys\nfrom music_tf.distributed import Communicator\n"
        "sys.stdout = sys.stderr = open('/dev/full', 'w')\n"
        f"print('some output')\nCommunicator().{end}(75)"
    )
    assert python(program).returncode == 75


def test_bad_numbers_of_any_rank_are_bad_numbers_of_all(monkeypatch):
    comm = Communicator()
    assert comm.together(lambda: 3) == 3

    def fail():
        raise NumbersFault("nan")

    with pytest.raises(NumbersFault, match=r"^nan$"):
        comm.together(fail)
    monkeypatch.setattr(comm, "allgather", lambda text: [text, "inf"])
    with pytest.raises(NumbersFault, match=r"^rank 1: inf$"):
        comm.together(lambda: 3)


def test_at_the_end_a_missing_rank_is_not_waited_for(monkeypatch):
    pytest.importorskip("mpi4py.MPI")

    def abort(code):
        raise SystemExit(code)

    comm = ranks(0, 2)
    monkeypatch.setattr(comm, "_comm", object())
    monkeypatch.setattr(comm, "exit_codes", lambda code: None)
    monkeypatch.setattr(comm, "abort", abort)
    with pytest.raises(SystemExit) as left:
        comm.finish(75)
    assert left.value.code == 86


def test_one_process_does_not_load_mpi():
    program = (
        "import sys\nfrom music_tf.distributed import Communicator\n"
        "comm = Communicator()\ncomm.any(True)\ncomm.barrier()\nsys.exit('mpi4py' in sys.modules)"
    )
    assert python(program).returncode == 0
