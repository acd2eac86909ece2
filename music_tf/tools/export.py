"""Exports episodes for other programs: plain arrays in a `.npz` file, or a Minari dataset."""

import importlib
import io
import json
import logging
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from music_tf.config.settings import EnvConfig
from music_tf.envs.making import make_environment
from music_tf.envs.portable import MadeAgain, held_by, import_minari, spaces_of
from music_tf.errors import EnvironmentFault, MusicError, UsageError
from music_tf.files import replace_file
from music_tf.gate import ENVIRONMENT
from music_tf.types import Episodes, bounds_of, to_bounds

_LOGGER = logging.getLogger(__name__)
_COLUMNS = (
    *("observation", "achieved_goal", "desired_goal", "action", "reward"),
    *("length", "terminated", "success"),
)


def exporter(npz: Path | None, minari: str | None) -> Callable[..., list[str]] | None:
    """A function that writes episodes and returns lines about it; None without an option."""
    if minari is not None and (folder := _folder_of(minari)).exists():
        raise UsageError(
            f"--minari: {minari} exists already\n"
            f"choose another id, or remove {folder}, as minari delete {minari} does for a data set"
        )
    if npz is None and minari is None:
        return None
    place = None if npz is None else npz.absolute()  # the working directory may change

    def export(
        episodes: Episodes,
        about: Mapping[str, Any],
        beside: Mapping[str, np.ndarray],
        settings: EnvConfig,
    ) -> list[str]:
        lines = []
        if place is not None:
            export_npz(place, episodes, about, beside)
            lines.append(f"written: {npz}")
        if minari is not None:
            export_minari(minari, episodes, about, settings)
            lines.append(f"written: Minari dataset {minari}")
        return lines

    return export


def export_npz(
    path: Path, episodes: Episodes, about: Mapping[str, Any], beside: Mapping[str, np.ndarray]
) -> None:
    """Writes the arrays that docs/viewing.md lists, which need no pickle to be read."""
    columns = {name: getattr(episodes, name) for name in _COLUMNS}
    numbers = episodes.skill_numbers()
    if ENVIRONMENT in about:
        actions = to_bounds(episodes.action, bounds_of(about[ENVIRONMENT]))
        columns["action"] = actions * episodes.step_mask[..., None]
    columns["skill"] = episodes.skill if numbers is None else numbers
    columns |= {"seed": episodes.seed, "about": np.array(json.dumps(dict(about)))}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **columns, **beside)
    try:
        replace_file(path, buffer.getvalue())
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written ({error.strerror})") from error


def export_minari(
    dataset_id: str, episodes: Episodes, about: Mapping[str, Any], settings: EnvConfig | None = None
) -> None:
    """Writes episodes as a new Minari dataset, in the types and bounds of the environment."""
    minari = import_minari("--minari")
    environment, new = make_environment(about["env_id"], settings), list[Path]()
    try:
        buffers = _buffers(episodes, environment)
        described = MadeAgain(environment)
        if described.spec is None:
            _LOGGER.warning(
                "--minari: %s does not say how its environment is made: no other process could",
                dataset_id,
            )
        folder = _folder_of(dataset_id)
        new = [place for place in (folder, *folder.parents) if not place.exists()]
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # on missing authors
            minari.create_dataset_from_buffers(
                dataset_id,
                buffers,
                env=described,
                observation_space=spaces_of(environment)[0],
                action_space=environment.action_space,
                algorithm_name=about["recipe"],
                description=f"music_tf evaluation episodes: {json.dumps(dict(about))}",
            )
        new = []
    except MusicError:
        raise
    except Exception as error:  # Minari and h5py raise many classes
        text = f"{type(error).__name__}: {error}"
        raise EnvironmentFault(f"--minari: {dataset_id} cannot be written ({text})") from error
    finally:
        environment.close()
        if new:  # nothing of a fault is left behind
            shutil.rmtree(new[-1], ignore_errors=True)


def _buffers(episodes: Episodes, environment: Any) -> list[Any]:
    space, clipped = environment.action_space, np.clip(episodes.action, -1.0, 1.0)
    actions = to_bounds(clipped, (space.low, space.high))  # as they were taken
    has_goals = episodes.desired_goal.shape[1] > 0
    _, shown = spaces_of(environment)
    buffers = []
    for index, steps in enumerate(episodes.length.tolist()):
        over = np.arange(1, steps + 1) == steps
        terminated = over & bool(episodes.terminated[index])
        states = {
            "observation": episodes.observation[index, : steps + 1],
            "achieved_goal": episodes.achieved_goal[index, : steps + 1],
            "desired_goal": np.tile(episodes.desired_goal[index], (steps + 1, 1)),
        }
        try:
            observations = {
                key: held_by(space_of_key, states[key], key) for key, space_of_key in shown.items()
            }
            taken_actions = held_by(space, actions[index, :steps], "action")
        except ValueError as error:
            raise EnvironmentFault(
                f"--minari: episode {index}: {error}\n"
                "nothing was written; correct that space, or take --out FILE.npz"
            ) from error
        buffers.append(
            import_minari("--minari").data_collector.EpisodeBuffer(
                id=index,
                seed=int(episodes.seed[index]),
                observations=observations if has_goals else observations["observation"],
                actions=taken_actions,
                rewards=[float(reward) for reward in episodes.reward[index, :steps]],
                terminations=terminated.tolist(),
                truncations=(over & ~terminated).tolist(),
            )
        )
    return buffers


def _folder_of(dataset_id: str) -> Path:
    import_minari("--minari")
    folder: Path = importlib.import_module("minari.storage").get_dataset_path(dataset_id)
    return folder
