"""An environment that writes down what its process has loaded: `tests.kit.seen:InputSpec-v0`."""

import json
import os
import sys
from pathlib import Path

import gymnasium

from music_tf.envs.toys import PointPush

SEEN = "tests.kit.seen:InputSpec-v0"
FOLDER = "MUSIC_TF_TEST_SEEN"
"""Names the folder to write into."""


class InputSpec(PointPush):
    def reset(self, *, seed=None, options=None):
        rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
        peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
        found = {
            "tensorflow": "tensorflow" in sys.modules,
            "keras": "keras" in sys.modules,
            "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "peak_mb": int(peak) / 1024.0,
        }
        Path(os.environ[FOLDER], f"{rank}.json").write_text(json.dumps(found))
        return super().reset(seed=seed, options=options)


gymnasium.register("InputSpec-v0", InputSpec, max_episode_steps=30)
