"""Trackers, stood in for by modules of the same calls: `wandb` and `mlflow`."""

import json
import sys
from unittest.mock import MagicMock

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


def wandb():
    """A W&B that keeps the calls that it gets; one run."""
    module = MagicMock(__name__="wandb", Image=str, Video=str)
    module.init.return_value.id = "abc123"
    return module


def mlflow():
    module = MagicMock(__name__="mlflow")
    module.start_run.return_value.info.run_id = "f" * 32
    return module


def logged(module):
    """What a run has logged to W&B."""
    return [call.args[0] for call in module.init.return_value.log.call_args_list]


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


def pictures(run, *steps):
    return [str(run / "videos" / f"paths_{count}.png") for count in steps]


def test_wandb_gets_settings_rows_pictures_and_the_end(tmp_path, standing_in):
    module, run = standing_in(wandb()), tmp_path / "run"
    train(run, *TINY, "--track", "wandb")
    began = module.init.call_args.kwargs
    assert (began["project"], began["id"], began["resume"]) == ("music_tf", None, "allow")
    assert began["name"] == "ddpg_her-music_tf/PointPush-v0-run"
    assert (began["config"]["recipe"], began["config"]["replay.relabel_k"]) == ("ddpg_her", 4.0)
    service = module.init.return_value
    service.define_metric.assert_called_with("*", step_metric="time/env_steps")
    rows = [values for values in logged(module) if "train/critic_loss" in values]
    assert [row["time/epoch"] for row in rows] == [1.0, 2.0]
    shown = [values["videos/paths"] for values in logged(module) if "videos/paths" in values]
    assert shown == pictures(run, 240, 480)
    stored = json.loads((run / "summary.json").read_text())["metrics"]
    finite = {name: value for name, value in stored.items() if value is not None}
    service.summary.update.assert_called_once_with(finite)
    service.finish.assert_called_once_with(exit_code=0)
    again = standing_in(wandb())
    train(run, "--resume", "--epochs", "3", "--track", "wandb")
    assert again.init.call_args.kwargs["id"] == "abc123"
    shown = [values for values in logged(again) if "videos/paths" in values]
    assert [values["time/env_steps"] for values in shown] == [720]


def test_mlflow_gets_the_same_within_its_limits(tmp_path, standing_in):
    module, run = standing_in(mlflow()), tmp_path / "run"
    train(run, *TINY, "--track", "mlflow")
    module.set_experiment.assert_called_once_with("music_tf")
    module.end_run.assert_called_once_with("FINISHED")
    batches = [call.args[0] for call in module.log_params.call_args_list]
    assert max(map(len, batches)) <= 100
    parameters = {name: value for batch in batches for name, value in batch.items()}
    assert max(map(len, parameters.values())) <= 500
    assert parameters["replay.relabel_k"] == "4.0"
    rows = module.log_metrics.call_args_list
    assert [call.kwargs["step"] for call in rows] == [240, 480]
    assert all(np.isfinite(list(call.args[0].values())).all() for call in rows)
    files = [call.args for call in module.log_artifact.call_args_list]
    assert files == [(path, "videos") for path in pictures(run, 240, 480)]
    (summary, name) = module.log_dict.call_args.args
    assert (name, summary["time/epoch"]) == ("summary.json", 2.0)
    again = standing_in(mlflow())
    train(run, "--resume", "--epochs", "3", "--track", "mlflow")
    again.start_run.assert_called_once_with(run_id="f" * 32, run_name=None)
    assert [call.kwargs["step"] for call in again.log_metrics.call_args_list] == [720]


def test_a_tracker_that_breaks_is_warned_of_once_and_costs_nothing(tmp_path, standing_in, caplog):
    standing_in(wandb()).init.return_value.log.side_effect = ConnectionError("no route")
    train(tmp_path / "run", *TINY, "--track", "wandb")
    assert (tmp_path / "run" / "summary.json").exists()
    warned = [record.getMessage() for record in caplog.records if "--track" in record.getMessage()]
    assert warned == ["--track wandb fails, training continues: ConnectionError: no route"]


def tracked(run, error=None):  # an epoch of a run, and its end
    (run / "videos").mkdir(parents=True)
    stored = {"recipe": "ddpg", "preset": "laptop", "arguments": [], "config": {"env_id": "x"}}
    (run / "config.json").write_text(json.dumps(stored))
    with tracking.tracking("wandb", run) as (tracker,):
        tracker.on_epoch({"time/env_steps": 5.0, "train/entropy": float("nan")})
        if error is not None:
            raise error


@cases(("error", "code"), (Stopped("stopped"), 75), (RuntimeError("bug"), 1), ids=["stop", "bug"])
def test_the_end_of_a_run_that_did_not_finish_says_so(tmp_path, standing_in, error, code):
    module = standing_in(wandb())
    with pytest.raises(type(error)):
        tracked(tmp_path / "run", error)
    assert logged(module) == [{"time/env_steps": 5.0}]
    module.init.return_value.finish.assert_called_once_with(exit_code=code)


@pytest.mark.parametrize("content", ["[]", "{", '{"wandb": "../../x"}', '{"wandb": 3}'])
def test_ids_that_are_not_ours_are_not_followed(tmp_path, standing_in, content):
    module, run = standing_in(wandb()), tmp_path / "run"
    run.mkdir()
    (run / "tracking.json").write_text(content)
    (run / "summary.json").write_text('{"metrics": {}}')
    tracked(run)
    assert module.init.call_args.kwargs["id"] is None


def test_a_package_that_is_missing_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(EnvironmentFault, match=r"pip install 'music_tf\[mlflow\]'"):
        train(tmp_path / "run", *TINY, "--track", "mlflow")
    assert list(tmp_path.iterdir()) == []
