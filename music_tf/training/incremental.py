"""Skills that are learned one after the other (DISk): their schedule, and what is kept of each."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.settings import Config
from music_tf.gate import Expected, ExpectedAtMost, restore_fields
from music_tf.intrinsic.incremental import PAST, Incremental
from music_tf.measures.skills import separation
from music_tf.networks import acting
from music_tf.rollout import Policy
from music_tf.training.evaluation import Evaluation, random_actions, zero_policy
from music_tf.training.parts import OnPlayed, Part, Run
from music_tf.training.update import Update
from music_tf.types import Array, Episodes, Metrics

_COUNTED = f"{acting.SKILLS}moments/observation"
"""An array with a row for each skill."""


@dataclasses.dataclass
class SequenceProgress:
    """Counters at the start of the current skill, and the worlds of the finished skills."""

    env_steps: int = 0
    updates: int = 0
    worlds: list[int] = dataclasses.field(default_factory=list)
    """Stage of a changing world in which each finished skill was learned."""

    def __post_init__(self) -> None:
        if any(world < 0 for world in self.worlds):
            raise ValueError(f"incremental.worlds: expected stages, got {self.worlds}")


class SkillSequence(Part):
    """The skills of a run, learned one after the other; each is frozen after its last epoch."""

    def __init__(
        self,
        config: Config,
        term: Incremental,
        like: acting.Snapshot,
        initial: Callable[[int], Array],
        update: Update,
    ) -> None:
        """Starts without any learned skill, with policies of names and shapes `like` a snapshot."""
        # `initial` returns the initial weights of all the learner's networks for a skill, flat.
        self._config, self._term, self._like, self._initial = config, term, like, initial
        self._update = update
        self._ends = list(itertools.accumulate(config.incremental.of_each(config.skills)))
        self.learned: list[acting.Snapshot] = []
        self.progress = SequenceProgress()
        self._played_in: dict[int, int | tuple[int, ...]] = {}
        """Stage of the world in which the stored states of each skill were collected."""

    @property
    def notices(self) -> Sequence[str]:
        return [self._term.short_of(self._config.incremental.collected)]

    @property
    def begun(self) -> tuple[int, int]:
        return self.progress.env_steps, self.progress.updates

    @property
    def skill(self) -> int:
        """Index of the skill that is learned now, or was learned last."""
        return self._term.skill

    def begins_skill(self, epoch: int) -> bool:
        return epoch in (0, *self._ends[:-1])

    def begin_cycle(self, run: Run) -> None:
        """Sets the reward term's progress in the current skill, a number in [0, 1]."""
        first, end = [0, *self._ends][self.skill], self._ends[self.skill]
        share = run.log.cycles / self._config.cycles
        self._term.progress = (run.counters.epoch - first + share) / (end - first)
        if self._term.counts_updates:
            steps, updates = run.since_begun
            self._term.progress *= updates / max(1, steps)

    def begin_epoch(self, run: Run) -> None:
        """Begins a skill with its first epoch; running moments are kept; a collective call."""
        counters, settings = run.counters, self._config.incremental
        skill = settings.skill_at(counters.epoch, self._config.skills)
        if not self.begins_skill(counters.epoch):
            return
        evaluation = run.as_trained
        if skill == 0 and settings.first == "random":
            episodes = evaluation.play(
                zero_policy, settings.collected, added=random_actions(evaluation.envs.spec)
            )
            self._term.remember(0, episodes)
        if settings.past == "refresh":
            for number, snapshot in enumerate(self.learned):
                if self._played_in.get(number) == evaluation.world:
                    self._term.remember_again(number)
                    continue
                self._term.remember(number, self._collected(snapshot, evaluation))
                self._played_in[number] = evaluation.world
        self._term.begin_skill(skill)
        worlds = self.progress.worlds
        self.progress = SequenceProgress(counters.env_steps, counters.updates, worlds)
        if skill == 0:
            return
        weights = self._initial(skill)
        if settings.begin != "fresh":
            start = self.learned[0 if settings.begin == "first" else self._term.frontier()]
            actor = np.concatenate([np.ravel(array) for array in start.weights.values()])
            weights = np.concatenate([actor, weights[len(actor) :]])
        self._update.begin_anew(weights)
        if settings.replay == "reset":
            run.replay.forget()
        elif settings.replay == "purge":
            run.replay.purge(skill)
        run.tell_replaced()

    def end_epoch(self, run: Run) -> Metrics:
        """Freezes the skill if the epoch is its last, and measures how far skills lie apart."""
        if run.counters.epoch + 1 not in self._ends:
            return {}
        snapshot = run.snapshot()
        self.learned.append(snapshot)
        self.progress.worlds.append(run.world)
        if self._config.incremental.past == "append":
            self._term.remember(self.skill, self._collected(snapshot, run.as_trained))
        tracks = [
            run.evaluation.track(self.play(run.evaluation, acting.SnapshotPolicy(each), number))
            for number, each in enumerate(self.learned)
        ]
        return separation(tracks).metrics()

    def evaluate(self, run: Run, evaluation: Evaluation, on_played: OnPlayed) -> Metrics:
        played = self.play(evaluation, run.policy(), self.skill)
        on_played(played)
        return evaluation.metrics_of(played)

    def play(self, evaluation: Evaluation, policy: Policy, skill: int) -> Episodes:
        """Plays evaluation episodes of one skill, with its one-hot condition in the episodes."""
        played = evaluation.play(policy, self._config.evaluation.episodes)
        one_hot = np.eye(self._config.skills, dtype=np.float32)[skill]
        return played._replace(skill=np.broadcast_to(one_hot, played.skill.shape).copy())

    def final_policy(self, run: Run) -> tuple[Evaluation, Policy]:
        """Returns all finished skills as one policy, which take turns; before, the current one."""
        config = self._config.of_first_skills(max(1, len(self.learned)))
        policy = run.policy()
        if self.learned:
            policy = acting.SnapshotPolicy(acting.SkillSnapshots(tuple(self.learned)))
        return run.evaluation._replace(config=config), policy

    def shared(self) -> dict[str, np.ndarray]:
        """Returns actors and moments of all skills by name, [K, ...]; zeros for later skills."""
        arrays = {}
        for name, like in acting.skill_arrays(self._like).items():
            stacked = arrays[name] = np.zeros([self._config.skills, *like.shape], np.float32)
            for skill, snapshot in enumerate(self.learned):
                stacked[skill] = acting.skill_arrays(snapshot)[name]
        return arrays

    def meta(self) -> dict[str, Any]:
        return {"incremental": dataclasses.asdict(self.progress)}

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        progress = restore_fields(SequenceProgress(), meta.get("incremental"), "incremental")
        learned = len(progress.worlds)
        if learned > self._config.skills:
            raise ValueError(f"incremental.worlds: {learned} of {self._config.skills} skills")
        self.progress, self._played_in = progress, {}
        self.learned = [acting.learned_skill(self._like, shared, n) for n in range(learned)]

    def widened(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns state or rows of replay, padded with zeros to the skills of this run."""
        padded = dict(arrays)
        for name, array in arrays.items():
            axis = 1 if name == "skill" else 0
            if name == "skill" or _is_by_skill(name):
                room = [(0, 0)] * array.ndim
                room[axis] = (0, self._config.skills - array.shape[axis])
                padded[name] = np.pad(array, room)
        return padded

    def expected(self, shared: Expected, rows: Expected) -> tuple[ExpectedAtMost, ExpectedAtMost]:
        """Allows for the state of a run that was configured to learn fewer skills."""

        def state_of(stored: Expected) -> Expected:
            skills = _skills_of(stored, shared, _COUNTED, axis=0)
            return {
                name: (kind, (skills, *shape[1:]) if _is_by_skill(name) else shape)
                for name, (kind, shape) in shared.items()
            }

        return ExpectedAtMost(shared, state_of), rows_with_fewer_skills(rows)

    def _collected(self, snapshot: acting.Snapshot, evaluation: Evaluation) -> Episodes:
        return evaluation.play(acting.SnapshotPolicy(snapshot), self._config.incremental.collected)


def rows_with_fewer_skills(ours: Expected) -> ExpectedAtMost:
    """Returns the expected replay rows, whose one-hot skill has the file's number of skills."""

    def expected(stored: Expected) -> Expected:
        kind, (length, _) = ours["skill"]
        return {**ours, "skill": (kind, (length, _skills_of(stored, ours, "skill", axis=1)))}

    return ExpectedAtMost(ours, expected)


def _skills_of(stored: Expected, ours: Expected, name: str, axis: int) -> int:
    """Returns the number of skills of a stored array; ours if it is none of 1 to ours."""
    most = ours[name][1][axis]
    shape = stored.get(name, ours[name])[1]
    return shape[axis] if len(shape) > axis and 1 <= shape[axis] <= most else most


def _is_by_skill(name: str) -> bool:
    return name.startswith((acting.SKILLS, PAST)) or name == "lagged/prior"
