"""Threads run operations side by side, so that their number changes no number."""

import sys

import numpy as np
import pytest

from tests.kit.saved_run import load_weights
from tests.kit.started import ended

WORDS = """
train sac_music --env-id music_tf/PointPush-v0 --epochs 2 --cycles 3 --updates 5 --workers 2
--rollouts 1 --music.trajectories 8 --agent.hidden-sizes 64 64 --evaluation.episodes 4
"""


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_one_thread_and_two_train_the_same_weights(tmp_path):
    found = []
    for threads in ("1", "2"):
        path = tmp_path / threads
        options = ["--threads", threads, "--run-dir", str(path)]
        program = (sys.executable, "-m", "music_tf", *WORDS.split(), *options)
        ended(*program, timeout=120, exits=0)
        found.append(load_weights(path / "checkpoints")[0])
    np.testing.assert_equal(found[1], found[0])
    assert any(name.startswith("parameters/actor/") for name in found[0])
