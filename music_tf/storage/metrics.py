"""One row of metrics per epoch, in `metrics.csv` and as TensorBoard events."""

import contextlib
import io
import itertools
import logging
import math
import os
import re
import socket
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf import recipes
from music_tf.config.fields import Settings, groups_of
from music_tf.config.key_metrics import INFORMATION
from music_tf.config.settings import Config
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.files import read_at_most, replace_file
from music_tf.storage.logs import RateLimitedWarning

CSV_NAME, EVALUATIONS_NAME = "metrics.csv", "evaluations.csv"
WINDOW = 4
"""Successive evaluations between epochs whose mean success rate is stored."""
_RATE = "eval/success_rate"
_EVALUATED = ("cycle", "time/env_steps", "time/elapsed_s", "eval/return", _RATE, f"{_RATE}_of_4")
PATHS_TAG = "eval/object_paths"
"""The image of the object's paths, seen from above, at each evaluation."""
SKILLS_TAG = "skill/in_training"
"""The image of returns by skill, and of the running log q over episodes and steps."""
LARGEST_TABLE = 50_000_000  # bytes
MOST_ROWS = 1_000_000
_START = b"epoch,time/epoch,"  # of metrics.csv
_PENDING_BYTES = 2**26
_LARGEST_INTEGER = 1e15
_NO_COLUMN = re.compile(r'[,"\r\n]')
_EPOCH = re.compile(rb"(\d{1,10}),.*\n")
_PICTURE = re.compile(r"paths_(\d{1,15})\.png")
_EVENT_FILES = itertools.count()
_LOGGER = logging.getLogger(__name__)

_OF_EVERY_RUN = {
    "time/epoch": "epochs done",
    "time/env_steps": "environment steps so far, over all ranks",
    "time/updates": "gradient updates so far",
    "time/fps": "environment steps per second of this epoch, over all ranks",
    "time/updates_per_second": "updates per second of training, rollouts included",
    "time/elapsed_s": "seconds of training and evaluation so far, over resumes; without "
    "start-up and checkpoints",
    "time/wall_s": "seconds from the launch to the end of this evaluation, over resumes; with "
    "start-up, compiling and checkpoints",
}
_WITHOUT_GOALS = {
    "eval/return": "mean sum of the environment's own rewards over an evaluation episode; of tasks "
    "with goals only where rewards are others than -1, 0 and 1",
    "eval/length": "mean number of steps of an evaluation episode",
    "time/episodes": "training episodes that came to their end so far, over all ranks",
    "time/episodes_cut": "training episodes that the end of an epoch cut off so far",
}
_OF_TASKS = {
    "eval/success_rate": "share of evaluation episodes that succeed at their last step",
    "eval/goal_distance": "mean distance of achieved and desired goal at that step, in their unit",
    "eval/goal_moved_rate": "share of episodes that move the achieved goal by more than a tenth of "
    "the mean distance at the start",
    "rollout/success_rate": "share of training episodes that succeed at their last step",
}
_OF_OBJECTS = {
    "eval/object_displacement_m": "length from the object's first to its last position; metres, or "
    "the environment's unit",
    "eval/object_moved_rate": "share of episodes that move the object by more than 5 cm, or 0.05",
    "eval/object_on_support_rate": "share of episodes that end with the object supported or held",
    "eval/object_coverage": "cells of 5 cm, or 0.05, that the object visits, on its support if any",
    "rollout/object_coverage": "the same cells in this epoch's rollouts",
    "eval/object_comotion_m": "path of the object with the gripper; metres, or the "
    "environment's unit",
    "eval/object_lift_rate": "share of episodes that hold the object over 5 cm for 10 steps",
}
_OF_MOTION = {
    INFORMATION: "I(dx; dy) over 500 steps of the first 40 evaluation episodes in nats, less the "
    "mean of 5 shuffles; its noise is some 0.05",
    f"{INFORMATION}_random": "the same in episodes of random actions",
}
_OF_LEARNING = {
    "train/grad_norm": "norm of the gradient of all networks, reduced over ranks, as Adam gets it",
    "stats/observation_mean": "mean over components of the running observation mean",
    "stats/observation_std": "mean over components of the running observation deviation",
}
_OF_GOALS = {
    "stats/goal_mean": "mean over components of the running goal mean",
    "stats/goal_std": "mean over components of the running goal deviation",
}
_OF_RANKS = {
    "mpi/allreduce_ms": "milliseconds of an all-reduce, waiting included: mean of the epoch, on "
    "the rank where it is largest",
    "mpi/wait_ms_max": "longest all-reduce of the epoch on any rank, in milliseconds",
}
OF_ACTORS = {
    "time/act_s": "seconds that an actor played in this epoch, mean over actors",
    "time/take_in_s": "seconds that the learner stored and counted what actors had played",
    "time/feed_s": "seconds that the learner drew minibatches",
    "time/learn_s": "seconds that the learner took updates",
    "time/learner_wait_s": "seconds that the learner waited for actors; near 0 where it limits",
    "time/actors_wait_s": "seconds that an actor waited for the learner, mean over actors",
    "time/actors_wait_s_max": "the same, of the actor that waited longest",
    "time/staleness_cycles": "cycles by which acting weights are older than learning ones: `--lag`",
    "train/replay_ratio": "transitions learned from for each environment step",
    "mpi/actors": "actors of the first learner that are left",
    "mpi/broadcast_ms": "milliseconds to send all actors an order; epoch mean",
    "mpi/gather_ms": "milliseconds to read what all actors sent, waiting excluded; epoch mean",
}
"""Metrics of runs in which one rank learns and others act."""


def _sections() -> dict[str, Mapping[str, str]]:
    """Returns every metric of the package, grouped by what a run must have to write it."""
    settings: list[Settings | type[Settings]] = [*recipes.agents(), *recipes.terms().values()]
    settings += groups_of(Config())
    declared: dict[str, dict[str, str]] = {}
    for each in settings:
        declared.setdefault(each.name, {}).update(each.declared())
    return {
        "every run": _OF_EVERY_RUN,
        "tasks without goals": _WITHOUT_GOALS,
        "tasks with goals": _OF_TASKS,
        "an object": _OF_OBJECTS,
        "MUSIC or a baseline of it": _OF_MOTION,
        **{f"`{name}`": metrics for name, metrics in declared.items() if metrics},
        "learning": _OF_LEARNING,
        "goals": _OF_GOALS,
        "several ranks that learn": _OF_RANKS,
        "actors": OF_ACTORS,
    }


SECTIONS = _sections()
"""Every metric of the package with its meaning, by what a run must have to write it."""
METRICS = {name: meaning for part in SECTIONS.values() for name, meaning in part.items()}
"""The same in the order of columns; the names are public."""


def known_to(config: Config) -> dict[str, str]:
    meanings = dict(METRICS)
    for group in groups_of(config):
        for name, meaning in group.declared().items():
            if (plain := _NO_COLUMN.sub("_", name)) != name:
                raise UsageError(
                    f"metrics of {group.name}: expected a name without commas, quotes and line "
                    f"breaks, which metrics.csv cannot hold, got {name!r:.80}\n"
                    f"nearest: {plain[:80]}"
                )
            if meanings.setdefault(name, meaning) != meaning:
                raise UsageError(
                    f"metrics of {group.name}: {name} already means: {meanings[name]}\n"
                    f"choose another name, such as {group.name}/{name.rpartition('/')[2]}"
                )
    return meanings


CONTROL = {
    "control/coverage": "share of the support's cells of 5 cm that the object visits",
    "control/rollout_coverage": "the same in training, in the epoch of the checkpoint",
    "control/descriptor_cells": "cells of side 1 that `world.descriptor` visits in any state, "
    "without an object",
    "control/contact_rate": "share of episodes with a step in which the object moves over 1 mm "
    "with the gripper within 10 cm before and after",
    "control/steps_to_contact": "median over all episodes of the first such step, from 1; blank if "
    "half of the episodes or more have none",
    "control/rotation_rad": "mean angle between the object's first and last orientation, 0 to pi",
    "control/end_spread_m": "spread of end positions when a start is repeated 8 times with noise "
    "of 0.05 on actions: root mean square distance from the mean of the start",
    "control/skill_variance": "share of the variance of end positions (of the object, else of "
    "`world.descriptor`) that lies between skills, from the same starts, or that a linear map of "
    "continuous conditions explains; blank with one skill or one start",
    "control/skill_variance_chance": "the same if conditions were dealt out at random: (K - 1) / "
    "(S K - 1) for K skills and S starts, K / (E - 1) for K numbers and E episodes",
    "control/information": "I(dx; dy) of a step in nats, robot and object, k nearest neighbours",
    "control/information_null": "the same with dy of another episode at the same time step, mean "
    "over 20 shuffles",
    "control/information_null_std": "standard deviation over these shuffles",
    "control/information_p": "(1 + shuffles that give as much) / 21: how often chance does",
}
"""Metrics of `evaluate --full`, in the order of its table."""

COVERAGE = {
    "coverage/kept_rate": "share of episodes that end with the object no more than 2 cm below its "
    "rest height",
    "coverage/moved_and_kept_rate": "share of episodes that end so over the support, or held, over "
    "5 cm from the first position",
    "coverage/displacement_cells": "cells of 5 cm, over x and y, of the object's position less its "
    "first one, of states above the support in kept episodes",
    "coverage/direction_entropy": "entropy of the directions of moved and kept episodes in 8 "
    "sectors, over log 8: 0 to 1",
    "coverage/object_cells": "cells of 10 cm that the object visits in any state, floor and air "
    "included; a shove off the table has most",
}
"""Its metrics on more episodes, by which a shove is not best, in the order of its table."""

ZERO_SHOT = {
    "zero_shot/ever": "share of goals that are reached at any step",
    "zero_shot/end": "share of goals that are reached at the last step",
    "zero_shot/end_air": "the same of goals more than 3 cm above where the object rests",
    "zero_shot/end_table": "the same of all other goals, if some goals are in the air",
    "zero_shot/end_with_brake": "the same where the robot does nothing as long as it is within "
    "`zero_shot/stop` of the goal",
    "zero_shot/stop": "that distance, in the embedding or between places, chosen on 48 other goals",
    "zero_shot/end_with_hold": "with conditions that have opposites, share at the last step if the "
    "robot acts within `zero_shot/hold` of the goal as the mean of both does",
    "zero_shot/hold": "that distance, chosen in the same way",
}
FOLLOWED = {"follow_slow": 0.25, "follow": 0.5, "follow_fast": 1.0}
"""Speeds of a goal that moves, in shares of a policy's own v."""
ZERO_SHOT |= {
    f"zero_shot/{name}{end}": f"{text} at {share:g} v on a circle"
    for name, share in FOLLOWED.items()
    for end, text in (
        ("_m", "with speeds, mean distance to a goal that moves from step 40 to 150"),
        ("_lost", "share of 100 such episodes in which the object leaves its support,"),
    )
}
"""Metrics of `evaluate --zero-shot`."""

JUDGED = {"control": CONTROL, "coverage": COVERAGE, "zero_shot": ZERO_SHOT}
"""These three by their names in `evaluation.json`, which also holds `NAME_episodes`."""


class EvaluationPicture(NamedTuple):
    """A picture of an evaluation, for `MetricsWriter.write_image`."""

    tag: str
    """Its name in TensorBoard."""
    file: str
    """Its name in `videos/` of the run; `{steps}` stands for the environment steps."""
    pixels: npt.NDArray[np.uint8]  # [height, width, 3]


class MetricsWriter:
    """Writes metrics on the root; a failing disk is a warning and never ends the run."""

    def __init__(
        self,
        directory: Path,
        *,
        resume_after: int | None,  # last epoch whose rows and events are kept; None: a new run
        warn: RateLimitedWarning | None = None,  # of a failing disk
        metrics: Mapping[str, str] = METRICS,  # name: meaning, in the order of columns
    ) -> None:
        """Starts metrics files, or continues those of a resumed run."""
        path = directory / CSV_NAME
        self._warn = warn or RateLimitedWarning()
        kept = b"" if resume_after is None else _kept_rows(path, _START, resume_after, self._warn)
        if (lost := (resume_after or 0) - max(kept.count(b"\n") - 1, 0)) > 0:
            text = "no row of %d of %d epochs, training continues: %s"
            _LOGGER.warning(text, lost, resume_after, path)
        self._metrics = metrics
        self._csv = _AppendFile(path, len(kept), self._warn)
        self._header = _cells(kept.partition(b"\n")[0])
        steps = _last_steps(self._header, kept)
        # TensorBoard recognises this form of name, and reads files in its order
        stamp = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        events = f"events.out.tfevents.{stamp}.{next(_EVENT_FILES):06d}"
        self._events = _AppendFile(directory / events, 0, self._warn)
        self._put_event(file_version="brain.Event:2")
        # TensorBoard drops the events of an interrupted run from this step on
        self._put_event(session_log={"status": "START"}, step=steps + 1)
        self._pictures = directory / "videos"
        for picture in self._pictures.glob("*.png"):
            name = _PICTURE.fullmatch(picture.name)
            if name and int(name[1]) > steps:
                with contextlib.suppress(OSError):
                    picture.unlink()

    def write(self, row: Mapping[str, float | None]) -> None:
        """Adds the metrics of an epoch, `time/epoch` and `time/env_steps` among them."""
        # None and nan are left blank. The CSV gets columns for names that it lacks, at its end.
        unknown = sorted(set(row) - set(self._metrics))
        if unknown:
            raise ValueError(f"metrics without a documented name: {', '.join(unknown)}")
        epoch, steps = row.get("time/epoch"), row.get("time/env_steps")
        if epoch is None or steps is None:
            raise ValueError("a row needs time/epoch and time/env_steps")
        more = [name for name in self._metrics if name in row and name not in self._header]
        if not self._header:
            self._header = ("epoch", *more)
            self._csv.append(_csv_line(self._header))
        elif more and self._csv.extend_lines(",".join(["", *more]).encode(), b"," * len(more)):
            self._header = (*self._header, *more)  # if the disk fails, the next row tries again
        self._csv.append(_csv_line(_cell(n, row) for n in ("time/epoch", *self._header[1:])))
        values = [
            {"tag": name, "simple_value": float(value)}
            for name in self._metrics
            if (value := row.get(name)) is not None and not math.isnan(value)
        ]
        self._put_event(summary={"value": values}, step=int(steps))

    def write_text(self, name: str, text: str) -> None:
        from tensorboard.plugins.text.summary_v2 import text_pb  # noqa: PLC0415 - heavy

        self._put_event(summary=text_pb(name, text), step=0)

    def write_histogram(self, name: str, values: npt.ArrayLike, step: int = 0) -> None:
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb  # noqa: PLC0415 - heavy

        self._put_event(summary=histogram_pb(name, np.asarray(values)), step=step)

    def write_image(
        self, name: str, image: npt.NDArray[np.uint8], step: int = 0, file: str = ""
    ) -> None:
        """Shows an image, [height, width, 3], in TensorBoard; with `file` also in `videos/FILE`."""
        # `step` counts environment steps.
        from PIL import Image  # noqa: PLC0415 - heavy

        encoded = io.BytesIO()
        Image.fromarray(image).save(encoded, "PNG")
        size = dict(zip(("height", "width", "colorspace"), image.shape, strict=True))
        picture = {**size, "encoded_image_string": encoded.getvalue()}
        self._put_event(summary={"value": [{"tag": name, "image": picture}]}, step=step)
        if file:
            path = self._pictures / file
            try:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(encoded.getvalue())
            except OSError as error:
                self._warn("picture", error, path)

    def _put_event(self, **fields: Any) -> None:  # messages within may be dictionaries
        # TensorBoard's own writer never recovers from a full disk
        from tensorboard.compat.proto import event_pb2  # noqa: PLC0415 - heavy
        from tensorboard.summary.writer.record_writer import RecordWriter  # noqa: PLC0415

        event = event_pb2.Event(wall_time=time.time(), **fields)
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        self._events.append(record.getvalue())


class EvaluationsWriter:
    """Writes evaluations between those of epochs, on the root; resumes after a cycle."""

    def __init__(self, directory: Path, resume_after: int | None, warn: RateLimitedWarning) -> None:
        path, header = directory / EVALUATIONS_NAME, _csv_line(_EVALUATED)
        kept = b"" if resume_after is None else _kept_rows(path, header, resume_after, warn)
        self._file, self._newest = _AppendFile(path, len(kept), warn), list[tuple[int, float]]()
        with contextlib.suppress(ValueError, IndexError):  # blank without goals
            rows = map(_cells, kept.splitlines()[1:])
            self._newest = [(int(row[0]), float(row[-2])) for row in rows]
        if not kept:
            self._file.append(header)

    def write(self, row: Mapping[str, float]) -> None:
        """Adds a row, with the mean success rate of the last `WINDOW` rows if none is missing."""
        now = int(row["cycle"]), row.get(_RATE, math.nan)
        self._newest = [*self._newest, now][-WINDOW:]
        cycles, rates = zip(*self._newest, strict=True)
        apart = {after - before for before, after in itertools.pairwise(cycles)}
        mean = statistics.fmean(rates) if len(rates) == WINDOW and len(apart) == 1 else None
        cells = {**row, _EVALUATED[-1]: mean}
        self._file.append(_csv_line(_cell(name, cells) for name in _EVALUATED))


class _AppendFile:
    """A file that grows by whole records; after a full disk, later calls write the missing ones."""

    def __init__(self, path: Path, size: int, warn: RateLimitedWarning) -> None:
        self._path = path
        self._size = size
        self._pending = b""
        self._warn = warn

    def append(self, data: bytes) -> None:
        """Adds a record, whole or not at all."""
        self._pending += data
        try:
            with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
                file.truncate(self._size)
                file.seek(self._size)
                file.write(self._pending)
        except OSError as error:
            if len(self._pending) > _PENDING_BYTES:
                self._pending = b""
            self._warn("metrics", error, self._path)
            return
        self._size += len(self._pending)
        self._pending = b""

    def extend_lines(self, first: bytes, others: bytes) -> bool:
        """Appends to the first line and to all others, all or none; returns whether it worked."""
        try:
            whole = read_at_most(self._path, LARGEST_TABLE)[: self._size] + self._pending
            ends = itertools.chain([first], itertools.repeat(others))
            lines = zip(whole.splitlines(), ends, strict=False)
            whole = b"".join(line + end + b"\n" for line, end in lines)
            replace_file(self._path, whole)
        except OSError as error:
            self._warn("metrics", error, self._path)
            return False
        self._size, self._pending = len(whole), b""
        return True


def _kept_rows(path: Path, start: bytes, last: int, warn: RateLimitedWarning) -> bytes:
    """Returns the header and, as they are, the rows whose first number is not above `last`."""
    try:
        content = read_at_most(path, LARGEST_TABLE)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be read ({error.strerror})") from error
    if content.count(b"\n") > MOST_ROWS:
        raise EnvironmentFault(f"{path}: more than {MOST_ROWS} rows")
    header, *rows = content.splitlines(keepends=True) or [b""]
    if header.endswith(b"\n") and not header.startswith(start):
        was = header[:60].decode(errors="replace").strip()
        raise EnvironmentFault(f"{path}: expected its header, got {was!r}\nmove the file away")
    early = [row for row in rows if (of := _EPOCH.match(row)) and int(of[1]) <= last]
    kept = b"".join(line for line in (header, *early) if line.endswith(b"\n"))
    if kept != content:
        try:
            replace_file(path, kept)
        except OSError as error:
            warn("metrics", error, path)  # the next row that is written drops these rows
    return kept


def _last_steps(header: Sequence[str], content: bytes) -> int:
    """Returns the environment steps of the last row, or -1 without one."""
    last = _cells(content.rstrip(b"\n").rpartition(b"\n")[2])
    row = dict(zip(header, last, strict=False))
    try:
        steps = float(row.get("time/env_steps", ""))
    except ValueError:
        return -1
    return int(steps) if 0.0 <= steps < _LARGEST_INTEGER else -1


def _cells(line: bytes) -> tuple[str, ...]:
    text = line.decode(errors="replace").strip()
    return tuple(text.split(",")) if text else ()


def _csv_line(cells: Iterable[str]) -> bytes:
    return (",".join(cells) + "\n").encode()


def _cell(name: str, row: Mapping[str, float | None]) -> str:
    """Returns the shortest text that reads back as the same number."""
    value = row.get(name)
    if value is None or math.isnan(value):
        return ""
    if math.isfinite(value) and value == int(value) and abs(value) < _LARGEST_INTEGER:
        return str(int(value))
    return repr(float(value))
