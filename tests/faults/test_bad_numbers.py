import json

import numpy as np
import pytest

from music_tf.runs.session import OTHER_CYCLES
from tests.faults.poison import WAYS
from tests.kit.jobs import REPOSITORY, mpirun, rows_of, state_of

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """The folder of all runs, what they said, and how they ended by way, one entry a rank."""
    folder = tmp_path_factory.mktemp("poisoned")
    job = mpirun(2, REPOSITORY / "tests/faults/poison.py", folder, limit=300)
    ends = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    return folder, job.stderr, ends


@pytest.mark.parametrize("way", WAYS)
def test_a_bad_number_on_one_rank_sends_all_back_to_the_last_checkpoint(poisoned, way):  # F15
    folder, _, ends = poisoned
    assert [end[way] for end in ends] == [[0, ""]] * 2
    assert [row["epoch"] for row in rows_of(folder / way)] == ["1", "2", "3"]
    arrays, meta = state_of(folder / way)
    assert all(np.isfinite(array).all() for array in arrays.values())
    assert meta["step_scale"] == 0.5
    # back from the fourth cycle to the second, then four more
    assert meta["counters"]["cycle"] == OTHER_CYCLES + 6


@pytest.mark.parametrize("way", WAYS)
def test_what_was_bad_is_dumped_and_never_stored(poisoned, way):  # F15
    folder, _, _ = poisoned
    dumps = sorted((folder / way / "logs").glob("rank_*.bad_numbers.npz"))
    arrays = [array for dump in dumps for array in np.load(dump, allow_pickle=False).values()]
    assert arrays
    # a gradient is made bad behind the minibatch that is dumped
    assert way == "gradient" or any(not np.isfinite(array).all() for array in arrays)
    replayed = sorted((folder / way / "checkpoints/replay").rglob("*.npz"))
    assert replayed
    for path in replayed:
        with np.load(path, allow_pickle=False) as arrays:
            assert all(np.isfinite(array).all() for array in arrays.values())


def test_every_way_back_is_told_once(poisoned):
    _, said, _ = poisoned
    assert said.count("back to the checkpoint of epoch 1") == len(WAYS)
    assert said.count("rank 1: ") >= 1


def test_numbers_that_are_bad_from_the_start_end_the_run_on_all_ranks(poisoned):  # F15
    folder, _, ends = poisoned
    assert [end["always"][0] for end in ends] == [4, 4]
    for _, text in (end["always"] for end in ends):
        assert "non-finite" in text
        assert "train/critic_loss" in text
    assert rows_of(folder / "always") == []
