"""Levels of training, by which weights of rewards change in place of epochs (`weight_by`)."""

import logging
from collections.abc import Mapping

import numpy as np

from music_tf.config.fields import show_option
from music_tf.config.settings import Config
from music_tf.envs.registry import EnvironmentInfo
from music_tf.errors import UsageError
from music_tf.measures.behaviour import behaviour_metrics
from music_tf.training.parts import Part, Run
from music_tf.types import Episodes, Metrics

_RATES = {"moved": "object_moved", "lifted": "object_lift"}
"""What `behaviour_metrics` calls them."""
_NEEDED = {"moved": ("object",), "lifted": ("object", "gripper", "support")}
_LOGGER = logging.getLogger(__name__)


class WeightLevels(Part):
    """The highest share so far of episodes that moved or lifted the object, by reward term.

    It is 1 if `weight_latest` came first.
    """

    def __init__(self, config: Config, info: EnvironmentInfo) -> None:
        self._terms = {name: t for name, t in config.rewards.items() if t.weight_by != "epoch"}
        for name, term in self._terms.items():
            needed = _NEEDED[term.weight_by]
            if missing := [each for each in needed if getattr(info, each) is None]:
                nearest = "epoch" if "object" in missing else "moved"
                raise UsageError(
                    f"{name}.weight_by: {term.weight_by} needs {', '.join(needed)}, of which "
                    f"{config.env_id} has no known {', '.join(missing)}\n"
                    f"add {' '.join(f'--world.{each}' for each in missing)}, as music-tf check-env "
                    f"may propose\nnearest: {show_option(f'{name}.weight_by')} {nearest}"
                )
        self.now = dict.fromkeys(self._terms, 0.0)
        """The level of each term that has one, from 0 to 1."""
        self._newest = {name: np.zeros(t.weight_episodes) for name, t in self._terms.items()}
        """1 for each of the last episodes that did it, oldest first; 0 for those still to come."""

    def take_in(self, run: Run, fresh: Mapping[int, Episodes], cycle: int) -> None:
        if not self._terms:
            return
        flags = {}
        for worker, episodes in fresh.items():
            seen = behaviour_metrics(episodes.observation, episodes.length, run.envs.info)
            flags[worker] = {n: seen[_RATES[t.weight_by]].tolist() for n, t in self._terms.items()}
        every = {w: its for of_rank in run.comm.allgather(flags) for w, its in of_rank.items()}
        for name, term in self._terms.items():
            # by worker and not by rank or arrival, so that any ranks leave the same episodes
            fresh_flags = [flag for worker in sorted(every) for flag in every[worker][name]]
            newest = np.append(self._newest[name], fresh_flags)[-term.weight_episodes :]
            self._newest[name] = newest
            self.now[name] = max(self.now[name], float(newest.mean()))
            late = term.weight_latest is not None and run.counters.epoch >= term.weight_latest
            if late and self.now[name] < term.weight[-1][0]:
                if run.comm.is_root:
                    _LOGGER.warning(
                        "%s.weight: at most %.2f of %d episodes %s the object in %d epochs "
                        "(weight_latest); from here on its level is 1 all the same",
                        *(name, self.now[name], len(newest), term.weight_by, term.weight_latest),
                    )
                self.now[name] = 1.0

    def end_epoch(self, run: Run) -> Metrics:
        return {f"reward/{name}_level": level for name, level in self.now.items()}

    def shared(self) -> dict[str, np.ndarray]:
        return {f"level/{n}": np.append(self.now[n], its) for n, its in self._newest.items()}

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, object]) -> None:
        for name in self._terms:
            saved = shared[f"level/{name}"]
            self.now[name], self._newest[name] = float(saved[0]), saved[1:]
