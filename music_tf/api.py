"""The Python API: `train`, and the `Run` that it returns.

import music_tf

run = music_tf.train("ddpg_music", env_id="FetchPush-v4", max_minutes=3)
run.play("push.gif")
"""

import base64
import contextlib
import dataclasses
import importlib
import operator
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_tf.config.changes import LEARNED, NOW
from music_tf.config.names import check_env_id, is_local, names_a_module
from music_tf.errors import UsageError, fault_of
from music_tf.process.children import run_command
from music_tf.process.launcher import launched_world_size
from music_tf.process.signals import as_guest
from music_tf.process.tensorflow_start import prepare_tensorflow
from music_tf.reading.command import as_typed, parse_train
from music_tf.reading.stored import allowed_env_id, check_same_env, read_run
from music_tf.runs.callbacks import checked
from music_tf.runs.start import start
from music_tf.storage.run_paths import film_path, find_run
from music_tf.tools import new_drawing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from music_tf.storage.policy import SavedPolicy

_DAY = 86400.0


def train(
    recipe: str,
    *,
    run_dir: str | os.PathLike[str] | None = None,
    callbacks: Iterable[object] = (),
    **options: Any,
) -> "Run":
    """Trains a recipe in this process, as `music-tf train RECIPE` does, and returns the run.

    Args:
        recipe: Name of a recipe, such as `ddpg_music` (`music-tf recipes` lists all), or
            `module:function` of yours.
        run_dir: The run directory; by default runs/ENV/RECIPE/seedN-TIME.
        callbacks: Objects with any of the methods of `Callback`.
        options: Options of the command line, with underscores, as in `max_minutes=3`; a group of
            settings is a dictionary, as in `music={"gain": 5}`.

    Raises:
        UsageError: An option or a callback is wrong; nothing was written.
        EnvironmentFault: Something outside this package is missing or broken, such as the
            environment.
        NumbersFault: An action, loss, gradient or weight is not finite.
        Stopped: Ctrl-C, the stop button of a notebook, or a signal; the run was saved and can be
            resumed.
        Hanging: No progress for longer than `hang_after`.
        Exception: The exception of a callback, after the run was saved.
    """
    place = {} if run_dir is None else {"run_dir": os.fspath(run_dir)}
    return _trained([str(recipe), *as_typed({**place, **options})], callbacks)


def load_run(
    path: str | os.PathLike[str], env_id: str | None = None, *, allow_import: bool = False
) -> "Run":
    """Returns a run that was trained before, or is still training.

    Args:
        path: The run directory, or `latest`.
        env_id: The id of your own environment, as `module:Id`; a run directory may not import it.
        allow_import: Lets the run import the modules of your own recipe and environment.

    Raises:
        UsageError: There is no run, its configuration is damaged, or `env_id` is not its
            environment.
    """
    directory = find_run(os.fspath(path)).resolve()
    if env_id is not None:
        check_env_id(env_id)
    if allow_import:
        env_id = allowed_env_id(directory, env_id)
    check_same_env("env_id", read_run(directory, env_id), env_id)
    return Run(directory, env_id)


@dataclasses.dataclass(frozen=True)
class Run:
    """A stored run; reads its directory anew at each call, so it may still be training."""

    path: Path
    """The run directory."""
    env_id: str | None = None
    """The environment, if the user gave it as `module:Id`."""

    @property
    def metrics(self) -> "dict[str, npt.NDArray[np.float64]]":
        """The columns of metrics.csv, with a value for each epoch; nan where there is none.

        Such as `{"eval/object_comotion_m": array([0.002, 0.11]), ...}`; docs/metrics.md lists all.

        Raises:
            UsageError: No epoch is finished yet, or the table is damaged.
        """
        from music_tf.storage.metrics import CSV_NAME  # noqa: PLC0415 - numpy
        from music_tf.storage.results import read_result  # noqa: PLC0415 - numpy

        return dict(read_result(self.path / CSV_NAME).columns)

    def evaluate(
        self,
        episodes: int | None = None,
        full: bool = False,
        stage: int | str = NOW,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Measures the latest policy and baselines; writes the result to evaluation.json.

        Fewer episodes than that file holds of the same checkpoint are returned, but not stored, and
        a warning says so.

        Args:
            episodes: Number of episodes for each policy and each skill, by default 100; for a run
                that adapts to tasks, number of visits to each task, by default 20.
            full: Whether to measure control too, under `control` and `coverage`, which takes a
                minute or two longer.
            stage: Stage of a changing world, counted from 0, or `now`, or `learned`.
            overwrite: Whether to store fewer episodes, too.

        Raises:
            UsageError: No checkpoint yet, one that does not fit config.json, or no such stage.
            EnvironmentFault: All checkpoints are damaged, or the environment cannot be made.
        """
        count = None if episodes is None else 0
        with contextlib.suppress(TypeError):
            count = count if episodes is None else operator.index(episodes)
        if isinstance(episodes, bool) or (count is not None and not 1 <= count <= 10**6):
            raise UsageError(f"episodes: expected a whole number in [1, 1000000], got {episodes!r}")
        _prepare()
        from music_tf.runs.inspection import ExtraMeasures, evaluate_run  # noqa: PLC0415 - numpy, MuJoCo
        from music_tf.runs.loaded_run import load_run  # noqa: PLC0415 - numpy, MuJoCo

        loaded = load_run(self.path, self.env_id, stage=str(stage))
        extras = ExtraMeasures(full, overwrite=overwrite)
        return evaluate_run(loaded, count, extras=extras, shown=False)

    def policy(self) -> "SavedPolicy":
        """Returns the latest policy, ready to act; of a run that adapts an `AdaptivePolicy`.

        Raises:
            UsageError: There is no checkpoint yet, or it does not fit config.json.
            EnvironmentFault: All checkpoints are damaged.
        """
        from music_tf.storage.loading import load_policy  # noqa: PLC0415 - numpy

        return load_policy(self.path, self.env_id)

    def play(
        self,
        path: str | os.PathLike[str] | None = None,
        episodes: int = 4,
        skill: int | str = "all",
        stage: int | str = LEARNED,
        reach: Sequence[float] = (),
    ) -> "Film":
        """Films the latest policy in a separate process; a notebook displays the result.

        Args:
            path: A .gif or .mp4 file; by default videos/policy.mp4 of the run.
            episodes: Number of episodes of each skill.
            skill: One skill, counted from 0, several as in "0,2,7", or all.
            stage: Stage of a changing world, counted from 0, or `now`, or `learned`.
            reach: Goal in place of a skill, as for `music-tf play --reach`.

        Raises:
            UsageError: There is no checkpoint yet, or the run has no such skill or stage, or cannot
                be sent to a place, or the file is no .gif or .mp4.
            EnvironmentFault: All checkpoints are damaged, or nothing can draw the environment.
        """
        out = film_path(self.path) if path is None else Path(path)
        words = ["play", str(self.path), f"--out={out}", f"--episodes={episodes}"]
        words += [f"--skill={skill}", f"--stage={stage}", "--allow-import"]
        words += ["--reach", *map(str, reach)] if len(reach) else []
        config = read_run(self.path, self.env_id).config  # checks that imports are allowed
        if is_local(config.env_id):  # another process does not know it
            importlib.import_module("music_tf.cli").run_verb(words)  # as the subprocess below does
            return Film(out)
        # TensorFlow and Mesa conflict in one process, and MuJoCo must not be loaded yet
        folders = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
        done = run_command(
            [sys.executable, "-P", "-m", "music_tf", *words],
            seconds=_DAY,
            environment={"PYTHONPATH": folders},
        )
        if not done.ok:
            lines = done.errors.strip().splitlines()
            starts = [at for at, line in enumerate(lines) if line.startswith("music-tf: ")]
            text = "\n".join(lines[starts[-1] :]) if starts else done.reason
            raise fault_of(done.code)(text.removeprefix("music-tf: "))
        return Film(out)

    def resume(self, *, callbacks: Iterable[object] = (), **options: Any) -> "Run":
        """Continues the run exactly, as `--resume` does, and returns it.

        Args:
            callbacks: As in `train`; those of the earlier call are not stored.
            options: Settings that may change: `epochs`, `max_minutes`, `hang_after`. A run that
                learns skills one after the other (DISk) also takes more `skills` behind those that
                it has, with their `incremental={"epochs": ...}` and `env={"changes": ...}`.
                Options that are no settings: `without_replay`, `device`, `track`.

        Raises:
            UsageError: Another setting differs from the run's, or the run cannot be resumed.
            MusicError: Any other that `train` raises.
        """
        words = as_typed({"run_dir": self.path, "resume": True, **options})
        if self.env_id is not None:
            words += ["--env-id", self.env_id]
        return _trained(words, callbacks)


@dataclasses.dataclass(frozen=True)
class Film:
    """A film in a file; a notebook displays it."""

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.path.read_bytes()).decode()
        if self.path.suffix == ".gif":
            return f'<img src="data:image/gif;base64,{data}">'
        return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'


def _prepare(shows_gpus: bool = False) -> None:
    """Prepares TensorFlow in a process that may have loaded it already."""
    keras = sys.modules.get("keras")
    if keras is not None and keras.config.backend() != "tensorflow":
        raise UsageError(
            f"keras: expected the backend tensorflow, this process has {keras.config.backend()}\n"
            "start another process, with KERAS_BACKEND=tensorflow before keras is imported"
        )
    prepare_tensorflow(shows_gpus)


def _trained(words: list[str], callbacks: object) -> Run:
    observers = checked(callbacks)
    if launched_world_size() > 1:
        raise UsageError(
            f"music_tf.train: expected one process, got {launched_world_size()} ranks\n"
            "for several: music-tf launch -n N train RECIPE ..."
        )
    _prepare(shows_gpus=True)  # a user's module may import TensorFlow
    command = parse_train(words)
    with as_guest():
        _prepare(command.may_use_gpu)
        from music_tf.distributed import Communicator  # noqa: PLC0415 - numpy, after parsing

        directory = start(command, Communicator(alone=True), new_drawing, observers)
    env_id = command.config.env_id if names_a_module(command.config.env_id) else None
    return Run(directory.resolve(), env_id)
