"""Passes what a run writes to a tracker: `train --track wandb|mlflow`.

A tracker gets config.json, each row of metrics.csv, the files of RUN/videos and summary.json. Its
faults are warnings and never end the run.
"""

import contextlib
import importlib
import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_tf.errors import EXIT_BUG, EXIT_DONE, EXIT_STOPPED, Stopped
from music_tf.files import as_object, read_json, replace_file
from music_tf.reading.stored import flatten, read_record
from music_tf.storage.run_directory import SUMMARY_NAME

TRACKING_NAME = "tracking.json"
"""Holds the id of the run in each tracker, so that a resumed run continues there."""
_LARGEST_FILE = 1_000_000
_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
_PICTURE = ".png"
_SHOWN = (_PICTURE, ".gif", ".mp4")
_PARAMETERS_AT_ONCE = 100
"""MLflow's limit."""
_LONGEST_PARAMETER = 500
_LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def tracking(name: str | None, directory: Path) -> Iterator[Sequence["Tracker"]]:
    """Yields the callback that tracks the run of a directory; none where `name` is None."""
    if name is None:
        yield ()
        return
    tracker = Tracker(name, directory)
    code = EXIT_BUG
    try:
        yield (tracker,)
        code = EXIT_DONE
    except (Stopped, KeyboardInterrupt):
        code = EXIT_STOPPED
        raise
    finally:
        tracker.finish(code)


class Tracker:
    """A callback that passes metrics and films of one run to a service, from the first row on."""

    def __init__(self, name: str, directory: Path) -> None:
        self._name, self._directory = name, directory
        self._service: _Wandb | _Mlflow | None = None
        self._files = self._videos()
        self._warned = False
        self._steps = 0

    def on_epoch(self, row: Mapping[str, float]) -> None:
        self._steps = int(row["time/env_steps"])
        with self._tolerant():
            values = {name: value for name, value in row.items() if math.isfinite(value)}
            self._started().row(values)
            self._hand_over_files()

    def finish(self, code: int) -> None:
        """Logs the summary of a run and its exit code; does nothing if it had no epoch."""
        if self._service is None:
            return
        summary: dict[str, float] = {}
        with self._tolerant():
            self._hand_over_files()
            if code == EXIT_DONE:
                metrics = read_json(self._directory / SUMMARY_NAME, _LARGEST_FILE)["metrics"]
                summary = {name: value for name, value in metrics.items() if value is not None}
        with self._tolerant():
            self._service.end(summary, code)

    def _started(self) -> "_Wandb | _Mlflow":
        if self._service is None:
            service = _SERVICES[self._name]()
            record = read_record(self._directory)
            config = flatten(record["config"])
            config |= {name: record.get(name) for name in ("recipe", "preset", "commit")}
            path = self._directory / TRACKING_NAME
            ids = _stored_ids(path)
            title = f"{record['recipe']}-{config['env_id']}-{self._directory.name}"
            ids[self._name] = service.start(ids.get(self._name), title, config)
            self._service = service
            replace_file(path, (json.dumps(ids) + "\n").encode())
        return self._service

    def _hand_over_files(self) -> None:
        before, self._files = self._files, self._videos()
        for path, changed in self._files.items():
            if before.get(path) != changed:
                self._started().file(path, self._steps)

    def _videos(self) -> dict[Path, int]:
        """Time of the last change of each picture and film, in ns."""
        paths = sorted((self._directory / "videos").glob("*"))
        return {path: path.stat().st_mtime_ns for path in paths if path.suffix in _SHOWN}

    @contextlib.contextmanager
    def _tolerant(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever a package or its server raises
            if not self._warned:
                text = f"{type(error).__name__}: {str(error)[:200]}"
                _LOGGER.warning("--track %s fails, training continues: %s", self._name, text)
            self._warned = True


def _stored_ids(path: Path) -> dict[str, str]:
    """The ids by tracker; empty if the file is missing or not ours."""
    try:
        content = as_object(read_json(path, _LARGEST_FILE))
    except (OSError, ValueError):
        return {}
    return {
        name: run_id
        for name, run_id in content.items()
        if name in _SERVICES and isinstance(run_id, str) and _ID.fullmatch(run_id)
    }


class _Wandb:
    """Weights & Biases; it makes links, so its folder is not in the run directory."""

    def __init__(self) -> None:
        self._wandb = importlib.import_module("wandb")
        self._run: Any = None

    def start(self, run_id: str | None, name: str, config: Mapping[str, Any]) -> str:
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", "music_tf"),
            id=run_id,
            name=name,
            config=dict(config),
            resume="allow",
        )
        self._run.define_metric("time/env_steps")
        self._run.define_metric("*", step_metric="time/env_steps")
        return str(self._run.id)

    def row(self, values: Mapping[str, float]) -> None:
        self._run.log(dict(values))

    def file(self, path: Path, steps: int) -> None:
        kind = self._wandb.Image if path.suffix == _PICTURE else self._wandb.Video
        title = f"videos/{path.stem.partition('_')[0]}"
        self._run.log({title: kind(str(path)), "time/env_steps": steps})

    def end(self, summary: Mapping[str, float], code: int) -> None:
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=code)


class _Mlflow:
    """MLflow, with its variables MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."""

    def __init__(self) -> None:
        self._mlflow = importlib.import_module("mlflow")

    def start(self, run_id: str | None, name: str, config: Mapping[str, Any]) -> str:
        if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
            self._mlflow.set_experiment("music_tf")
        run = self._mlflow.start_run(run_id=run_id, run_name=None if run_id else name)
        texts = {name: str(value)[:_LONGEST_PARAMETER] for name, value in config.items()}
        names = list(texts) if run_id is None else []  # MLflow refuses to change parameters
        for start in range(0, len(names), _PARAMETERS_AT_ONCE):
            some = names[start : start + _PARAMETERS_AT_ONCE]
            self._mlflow.log_params({name: texts[name] for name in some})
        return str(run.info.run_id)

    def row(self, values: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(values), step=int(values["time/env_steps"]))

    def file(self, path: Path, steps: int) -> None:
        del steps  # in the names of pictures
        self._mlflow.log_artifact(str(path), "videos")

    def end(self, summary: Mapping[str, float], code: int) -> None:
        if summary:
            self._mlflow.log_dict(dict(summary), SUMMARY_NAME)
        self._mlflow.end_run({EXIT_DONE: "FINISHED", EXIT_STOPPED: "KILLED"}.get(code, "FAILED"))


_SERVICES: Mapping[str, Callable[[], _Wandb | _Mlflow]] = {"wandb": _Wandb, "mlflow": _Mlflow}
