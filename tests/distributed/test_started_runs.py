import json

import numpy as np
import pytest

from tests.distributed.test_launched_runs import RUN, finish, launch
from tests.kit.saved_run import load_weights

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]
SIZES = RUN[2:]
SHORT = (*SIZES, "--epochs", "1")
OF_MUSIC = SHORT.index("--music.trajectories")
TASK = (*SHORT[:OF_MUSIC], *SHORT[OF_MUSIC + 2 :])
"""The same for a run that is not paid by MUSIC."""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "run"
    code, _, err = finish(launch("train", "ddpg_music", *SHORT, "--run-dir", path))
    assert code == 0, err
    return path


def test_two_ranks_start_from_a_run_of_two_ranks(source, tmp_path):
    path = tmp_path / "run"
    words = ("train", "ddpg_music_finetune_her", *TASK, "--init-from", source, "--run-dir", path)
    code, _, err = finish(launch(*words))
    assert code == 0, err
    before, _ = load_weights(source / "checkpoints")
    first, _ = load_weights(path / "checkpoints/epoch_000000")
    taken = [n for n in first if n.startswith(("parameters/", "targets/", "normalizer/observ"))]
    assert len(taken) == 25
    for name in taken:
        np.testing.assert_array_equal(first[name], before[name], err_msg=name)
    # equal on both ranks too: each epoch compares their parameters bit by bit
    assert json.loads((path / "summary.json").read_text())["updates"] == 12


def test_what_does_not_fit_is_said_once_and_nothing_is_written(source, tmp_path):
    path = tmp_path / "run"
    words = ("train", "ddpg_her", *TASK, "--agent.hidden-sizes", 8, 8)
    start = ("--init-from", source, "--parts", "actor", "--run-dir", path)
    code, _, err = finish(launch(*words, *start))
    assert code == 2
    assert err.count("--parts actor: actor/") == 1
    assert "Traceback" not in err
    assert not path.exists()


def test_a_source_that_is_not_there_is_said_once_and_nothing_is_written(tmp_path):
    path = tmp_path / "run"
    words = ("train", "ddpg_music_reward", *SHORT, "--init-from", tmp_path, "--run-dir", path)
    code, _, err = finish(launch(*words))
    assert code == 2
    assert err.count("--init-from: expected a run directory") == 1
    assert not path.exists()
