import os

import pytest
from hypothesis import settings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
settings.register_profile("music_tf", deadline=None, derandomize=True, database=None)
settings.load_profile("music_tf")


@pytest.fixture(autouse=True)
def runs_go_to_a_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSIC_TF_RUNS", str(tmp_path / "runs"))
