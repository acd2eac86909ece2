"""Trackers, stood in for by modules of the same calls: `wandb` and `mlflow`."""

import json
import sys
import types

import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, Stopped
from music_tf.reading.command import as_typed, parse_train
from music_tf.runs import session, start, tracking
from music_tf.tools import new_drawing
from tests.kit.cases import cases
from tests.kit.small import OPTIONS

pytestmark = pytest.mark.thorough

TINY = ("ddpg_her", "--epochs", "2", *as_typed(OPTIONS))
LARGEST_BATCH = 100


class Wandb(types.ModuleType):  # keeps what the calls of W&B that we use were given
    def __init__(self):
        super().__init__("wandb")
        self.runs, self.logged, self.summary, self.defined, self.ends = [], [], {}, [], []
        self.Image = self.Video = lambda path: ("file", path)

    def init(self, *, project, id, name, config, resume):
        assert resume == "allow"
        self.runs.append({"project": project, "id": id, "name": name, "config": config})
        self.id = id or "abc123"
        return self

    def define_metric(self, name, step_metric=None):
        self.defined.append((name, step_metric))

    def log(self, values):
        self.logged.append(values)

    def finish(self, exit_code):
        self.ends.append(exit_code)


class Mlflow(types.ModuleType):
    """Keeps what the calls of MLflow that we use were given, within its limits."""

    def __init__(self):
        super().__init__("mlflow")
        self.experiments, self.runs, self.params, self.logged = [], [], {}, []
        self.files, self.dicts, self.ends = [], {}, []
        self.set_experiment = self.experiments.append

    def start_run(self, run_id=None, run_name=None):
        self.runs.append((run_id, run_name))
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=run_id or "f" * 32))

    def log_params(self, params):
        assert len(params) <= LARGEST_BATCH
        assert all(len(value) <= 500 for value in params.values())
        self.params |= params

    def log_metrics(self, values, step):
        assert np.isfinite(list(values.values())).all()
        self.logged.append((step, values))

    def log_artifact(self, path, folder):
        self.files.append((folder, path))

    def log_dict(self, values, file):
        self.dicts[file] = values

    def end_run(self, status):
        self.ends.append(status)


@pytest.fixture
def standing_in(monkeypatch):  # puts a module in the place of a package
    compare = session.compare
    monkeypatch.setattr(session, "compare", lambda *given: compare(*given, 4))
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)

    def put(module):
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(start, "check_extra", lambda *asked: None)
        return module

    return put


def train(run, *words):
    start.start(parse_train([*words, "--run-dir", str(run)]), Communicator(alone=True), new_drawing)


def test_wandb_gets_settings_rows_pictures_and_the_end(tmp_path, standing_in):
    wandb, run = standing_in(Wandb()), tmp_path / "run"
    train(run, *TINY, "--track", "wandb")
    (began,) = wandb.runs
    assert (began["project"], began["id"]) == ("music_tf", None)
    assert began["name"] == "ddpg_her-music_tf/PointPush-v0-run"
    assert began["config"]["replay.relabel_k"] == 4.0
    assert (began["config"]["recipe"], wandb.defined[-1]) == ("ddpg_her", ("*", "time/env_steps"))
    rows = [values for values in wandb.logged if "train/critic_loss" in values]
    assert [row["time/epoch"] for row in rows] == [1.0, 2.0]
    pictures = [values["videos/paths"][1] for values in wandb.logged if "videos/paths" in values]
    assert pictures == [str(run / "videos" / f"paths_{steps}.png") for steps in (240, 480)]
    stored = json.loads((run / "summary.json").read_text())["metrics"]
    assert wandb.summary == {name: value for name, value in stored.items() if value is not None}
    assert wandb.ends == [0]
    again = standing_in(Wandb())
    train(run, "--resume", "--epochs", "3", "--track", "wandb")
    assert again.runs[0]["id"] == "abc123"
    shown = [values for values in again.logged if "videos/paths" in values]
    assert [values["time/env_steps"] for values in shown] == [720]


def test_mlflow_gets_the_same_within_its_limits(tmp_path, standing_in):
    mlflow, run = standing_in(Mlflow()), tmp_path / "run"
    train(run, *TINY, "--track", "mlflow")
    assert (mlflow.experiments, mlflow.ends) == (["music_tf"], ["FINISHED"])
    assert mlflow.params["replay.relabel_k"] == "4.0"
    assert [step for step, _ in mlflow.logged] == [240, 480]
    assert mlflow.files[0] == ("videos", str(run / "videos" / "paths_240.png"))
    assert mlflow.dicts["summary.json"]["time/epoch"] == 2.0
    again = standing_in(Mlflow())
    train(run, "--resume", "--epochs", "3", "--track", "mlflow")
    assert again.runs == [("f" * 32, None)]
    assert [step for step, _ in again.logged] == [720]
    assert again.files == [("videos", str(run / "videos" / "paths_720.png"))]


def test_a_tracker_that_breaks_is_warned_of_once_and_costs_nothing(tmp_path, standing_in, caplog):
    def refuse(*given, **named):
        raise ConnectionError("no route")

    standing_in(Wandb()).log = refuse
    train(tmp_path / "run", *TINY, "--track", "wandb")
    assert (tmp_path / "run" / "summary.json").exists()
    warned = [record.getMessage() for record in caplog.records if "--track" in record.getMessage()]
    assert warned == ["--track wandb fails, training continues: ConnectionError: no route"]


@cases(("error", "code"), (Stopped("stopped"), 75), (RuntimeError("bug"), 1), ids=["stop", "bug"])
def test_the_end_of_a_run_that_did_not_finish_says_so(tmp_path, standing_in, error, code):
    wandb, run = standing_in(Wandb()), tmp_path / "run"
    train(run, *TINY)

    def ended():
        with tracking.tracking("wandb", run) as (tracker,):
            tracker.on_epoch({"time/env_steps": 5.0, "train/entropy": float("nan")})
            raise error

    with pytest.raises(type(error)):
        ended()
    assert (wandb.ends, wandb.logged[0]) == ([code], {"time/env_steps": 5.0})


@pytest.mark.parametrize("content", ["[]", "{", '{"wandb": "../../x"}', '{"wandb": 3}', ""])
def test_ids_that_are_not_ours_are_not_followed(tmp_path, standing_in, content):
    wandb, run = standing_in(Wandb()), tmp_path / "run"
    (run / "videos").mkdir(parents=True)
    stored = {"recipe": "ddpg", "preset": "laptop", "arguments": [], "config": {"env_id": "x"}}
    (run / "config.json").write_text(json.dumps(stored))
    (run / "tracking.json").write_text(content)
    with tracking.tracking("wandb", run) as (tracker,):
        tracker.on_epoch({"time/env_steps": 5.0})
    assert wandb.runs[0]["id"] is None


def test_a_package_that_is_missing_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(EnvironmentFault, match=r"pip install 'music_tf\[mlflow\]'"):
        train(tmp_path / "run", *TINY, "--track", "mlflow")
    assert list(tmp_path.iterdir()) == []
