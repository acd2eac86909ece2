"""Demonstrations: episodes of another source for replay, checked like any foreign data."""

import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from music_tf.config.names import without_module
from music_tf.envs.endings import never_ends
from music_tf.envs.making import GOAL_KEYS
from music_tf.envs.portable import import_minari
from music_tf.errors import MusicError, UsageError
from music_tf.files import open_regular, parse_json
from music_tf.gate import ENVIRONMENT
from music_tf.replay.buffer import Shard
from music_tf.replay.hindsight import relabel_probability
from music_tf.replay.rows import explained_by_rounding, reward_gaps
from music_tf.rollout import blank, padded
from music_tf.training.collect import cut_where_lost
from music_tf.training.parts import Run
from music_tf.types import Episodes, bounds_of, instead_of_numbers, to_unit

Stored: TypeAlias = tuple[str, list[np.ndarray]]
"""Id of an environment, or "", and the arrays `_NAMES` of an episode of it, in its units."""
_NAMES = (*GOAL_KEYS, "action", "reward", "terminated")  # [T + 1, ...], then [T, ...]
_MOST = 2**30
"""Maximum size in bytes of a file's arrays."""


def read_demonstrations(sources: Sequence[str]) -> list[tuple[str, Stored]]:
    """Reads `.npz` files of `evaluate --out` and Minari data sets, with places for messages."""
    episodes: list[tuple[str, Stored]] = []
    for source in sources:
        try:
            read = _of_file(source) if source.endswith(".npz") else _of_minari(source)
            for number, (env_id, columns) in enumerate(read):
                arrays = list(map(np.asarray, columns))
                episodes.append((f"{source}, episode {number}", (env_id, arrays)))
        except MusicError:
            raise
        except Exception as error:  # zipfile, numpy, Minari and h5py raise many classes
            raise UsageError(
                f"--demonstrations: {source}: expected a FILE.npz of evaluate --out, or the id of "
                "a Minari data set with goals on this machine (minari download ID)\n"
                f"it cannot be read: {error!r:.200}"
            ) from error
    return episodes


def _of_file(source: str) -> Iterator[tuple[str, Sequence[Any]]]:
    with open_regular(Path(source)) as file:
        if sum(member.file_size for member in zipfile.ZipFile(file).infolist()) > _MOST:
            raise ValueError(f"more than {_MOST} bytes")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            arrays = [archive[name] for name in (*_NAMES, "length", "about")]
    *columns, lengths, about = arrays
    origin = parse_json(str(about))
    if ENVIRONMENT not in origin:  # its actions are in [-1, 1]
        raise ValueError("written by an earlier version")
    for number, length in enumerate(lengths):
        if not 0 < length < columns[0].shape[1]:
            raise ValueError(f"episode {number}: length {length}")
        states, achieved, goal, actions, rewards, ended = (column[number] for column in columns)
        goals, last = [goal] * (length + 1), np.arange(length) == length - 1
        steps = (actions[:length], rewards[:length], last & ended)
        yield str(origin["env_id"]), (states[: length + 1], achieved[: length + 1], goals, *steps)


def _of_minari(source: str) -> Iterator[tuple[str, Sequence[Any]]]:
    dataset = import_minari("--demonstrations").load_dataset(source)
    env_id = "" if dataset.env_spec is None else str(dataset.env_spec.id)
    for each in dataset.iterate_episodes():
        steps = (each.actions, each.rewards, each.terminations)
        yield env_id, (*(each.observations[key] for key in GOAL_KEYS), *steps)


def checked(run: Run, stored: Sequence[tuple[str, Stored]]) -> Episodes:
    """Returns the episodes as replay takes them; a UsageError names the first misfit."""
    config, envs, spec = run.config, run.envs, run.envs.spec
    most = math.ceil(len(stored) / config.workers) + config.rollouts
    whole = [store for store in run.replay.shards.values() if isinstance(store, Shard)]
    needed = {
        "a recipe with goals, as ddpg_her": spec.goal_dim and config.goals != "zero",
        f"one skill, got {len(config.acting_skills)}": len(config.acting_skills) == 1,
        f"no world.extras, got {', '.join(spec.extras)}": not spec.extras,
        f"{config.workers} episodes or more, one for each worker, got {len(stored)}": len(stored)
        >= config.workers,
        "replay of whole episodes (replay.draw, collect.steps)": len(whole)
        == len(run.replay.shards),
        f"--replay.capacity {most * spec.max_episode_steps} or more": all(
            store.capacity >= most for store in whole
        ),
    }
    for text, holds in needed.items():
        if not holds:
            raise UsageError(f"--demonstrations: expected {text}")
    bounds = bounds_of(vars(envs.declared))
    skill = np.eye(config.condition_size, dtype=np.float32)[list(config.acting_skills)]
    episodes = blank(spec, np.repeat(skill, len(stored), axis=0), spec.max_episode_steps)
    for number, (place, (env_id, arrays)) in enumerate(stored):
        misfit = _misfit(arrays, run)
        if env_id and without_module(env_id) != without_module(config.env_id):
            misfit = f"expected {config.env_id}, got {env_id:.80}"
        if misfit:
            raise UsageError(f"--demonstrations: {place}: {misfit}")
        observation, achieved, goal, action, reward, terminated = arrays
        length = episodes.length[number] = len(reward)
        episodes.observation[number, : length + 1] = observation
        episodes.achieved_goal[number, : length + 1] = achieved
        episodes.action[number, :length] = to_unit(action, bounds)
        episodes.reward[number, :length] = reward
        episodes.desired_goal[number], episodes.terminated[number] = goal[0], terminated[-1]
    episodes = padded(episodes._replace(truncated=~episodes.terminated))
    return cut_where_lost(episodes, envs.info) if config.lost_object == "absorb" else episodes


def _misfit(arrays: Sequence[np.ndarray], run: Run) -> str:
    """Returns the first way in which an episode is not one of the run; empty if it is."""
    envs, spec, count = run.envs, run.envs.spec, arrays[4].size
    if not 1 <= count <= spec.max_episode_steps:
        return f"expected 1 to {spec.max_episode_steps} steps, got {count}"
    sizes = (spec.observation_dim, spec.goal_dim, spec.goal_dim)
    shapes = [*((count + 1, size) for size in sizes), (count, spec.action_dim), (count,), (count,)]
    for name, array, shape in zip(_NAMES, arrays, shapes, strict=True):
        if came := instead_of_numbers(array, shape):
            return f"{name}: expected {shape} finite numbers, got {came}"
    _, achieved, goal, action, paid, terminated = (each.astype(np.float32) for each in arrays)
    if not (goal.any() or relabel_probability(run.config.replay)):
        return (
            "without a goal it can only be relabelled\n"
            "nearest: --replay.strategy future --replay.relabel-k 4"
        )
    places = achieved[1:], goal[1:]
    computed = envs.goal_reward(*places) if goal.any() else paid  # nobody knows what zeros paid
    near = explained_by_rounding(lambda p: envs.goal_reward(p, goal[1:]), places, paid, computed)
    gaps = reward_gaps(paid, computed) & ~near
    over = terminated > 0.0
    may_end = run.config.env.success_ends is not False and not never_ends(envs.environment)
    ends = over & may_end
    if goal.any() and envs.ends_at_goals:
        ends = envs.goal_terminated(*places)
    first = int(gaps.argmax())
    low, high = map(np.float32, bounds_of(vars(envs.declared)))
    wrong = {
        "another desired_goal than before": (goal != goal[0]).any(axis=1),
        f"action outside {low}..{high}": ((action < low) | (action > high)).any(axis=1),
        "terminated before the last step": over[:-1],
        "not terminated, as compute_terminated says": ends & ~over,
        "terminated, as no episode of this run (compute_terminated, env.success-ends)": over
        & ~ends,
        f"reward {paid[first]:g}, compute_reward gives {computed[first]:g}": gaps,
    }
    texts = (f"step {steps.argmax()}: {text}" for text, steps in wrong.items() if steps.any())
    return next(texts, "")
