"""The evaluation protocol: deterministic policy, one fixed seed for each episode index.

The ranks share the episodes. Baselines are random actions, and the policy itself under noise.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from music_tf.conditions import continuous_conditions
from music_tf.config.key_metrics import INFORMATION
from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import descriptor_of
from music_tf.measures.behaviour import summarize, ways_to_goals
from music_tf.measures.information import information_of_moves
from music_tf.measures.skills import Track
from music_tf.networks.acting import Snapshot, SnapshotPolicy
from music_tf.randomness import reset_seeds, stream
from music_tf.rollout import Conditions, Perturbation, Policy, blank, play
from music_tf.training.collect import cut_where_lost
from music_tf.types import Array, EnvSpec, Episodes, IntArray, Metrics

if TYPE_CHECKING:  # actors load no TensorFlow
    from music_tf.intrinsic.base import RewardTerm

SEED = 20210308
"""Seed of evaluation episodes, which are the same for all runs."""
_PARTS = 10
"""Parts of an evaluation, from which errors of its means are estimated."""
_FEW, _STEPS, _PAIRINGS = 40, 500, 5
"""Episodes, steps and shuffles for the estimate of mutual information at each evaluation."""

Added: TypeAlias = Callable[[int], Array]
"""Maps the index of an episode to what is added to its actions before clipping, [T, A]."""


class Comparison(NamedTuple):
    """Metrics of the agent and of simple policies."""

    policies: dict[str, Metrics]
    number: int
    what: str
    """What there was a number of, such as `episodes`."""
    errors: Metrics
    """Standard errors of differences from random actions, of the metrics that have them."""


class Evaluation(NamedTuple):
    """Measures a policy on the evaluation episodes of a run; `play` is a collective call."""

    envs: LockstepEnvs
    config: Config
    comm: Communicator
    actors: Callable[[Snapshot, int, int], dict[str, np.ndarray]] | None = None
    """`Actors.evaluate`, which plays this rank's share of episodes; None without actors."""
    world: int | tuple[int, ...] = 0
    """Stage of a changing world, or one stage for each skill."""
    answers: Callable[[Episodes], Metrics] = lambda _: {}
    """Computes metrics of the reward networks on episodes; none where there are no networks."""
    turn: int = 0
    """Number of an evaluation whose episodes no other one has; 0: those that all runs have."""

    def play(
        self,
        policy: Policy,
        episodes: int,
        skill: int | None = None,
        added: Added | None = None,
        planned: Callable[[IntArray], Policy] | None = None,
    ) -> Episodes:
        """Plays episodes without exploration; returns all of them, read-only, on every rank.

        Goals are those of training: a policy that saw zero goals does not generalise to others. The
        number of ranks changes the last bits of actions alone, by the batch size. `skill` acts in
        all episodes, else skills take turns; `planned` makes another policy for each batch.
        """
        config, envs, comm = self.config, self.envs, self.comm
        plain = skill is None and added is None and planned is None
        every, size = range(episodes), envs.spec.goal_dim
        conditions = evaluation_conditions(every, config, size, skill, self.turn)

        def own_part() -> dict[str, np.ndarray]:
            snapshot = policy.snapshot if isinstance(policy, SnapshotPolicy) else None
            world = self.world
            if self.actors and plain and isinstance(snapshot, Snapshot) and isinstance(world, int):
                return self.actors(snapshot, episodes, world)
            skills = np.zeros_like(conditions.skills)
            result = blank(envs.spec, skills, envs.spec.max_episode_steps).named()
            for start in range(comm.rank * len(envs), episodes, comm.size * len(envs)):
                wanted = np.arange(start, start + len(envs)) % episodes
                goals = None if conditions.goals is None else conditions.goals[wanted]
                batch = Conditions(conditions.seeds[wanted], goals, conditions.skills[wanted])
                self.set_world(batch.skills)
                explore = None
                if added is not None:
                    actions = np.stack([added(int(index)) for index in wanted], axis=1)  # [T, E, A]
                    explore = Perturbation.adding(actions)
                acting = policy if planned is None else planned(wanted)
                played = play(envs, acting, batch, explore).named()
                kept = min(len(envs), episodes - start)
                for name, values in played.items():
                    result[name][start : start + kept] = values[:kept]
            return result

        whole = comm.together(own_part)
        for name, values in whole.items():
            summable = values.astype(np.int64) if values.dtype == np.bool_ else values
            whole[name] = comm.sum_in_place(summable).astype(values.dtype, copy=False)
        return Episodes.from_named(whole).read_only()

    def play_some(
        self, policy: Policy, indices: IntArray, together: int, moving: Array | None = None
    ) -> Episodes:
        """Plays episodes bit-equal to batches of `together`: the size changes an action's bits."""
        spec, config = self.envs.spec, self.config
        skills = np.zeros([0, config.condition_size], np.float32)
        parts = [blank(spec, skills, spec.max_episode_steps)]
        for batch in np.unique(indices // together):
            mine = indices[indices // together == batch]
            places = mine % together

            def act(*inputs: Array, places: IntArray = places) -> Array:
                padded = [np.zeros([together, *rows.shape[1:]], rows.dtype) for rows in inputs]
                for rows, whole in zip(inputs, padded, strict=True):
                    whole[places] = rows
                return policy(*padded)[places]

            conditions = evaluation_conditions(mine.tolist(), config, spec.goal_dim)
            conditions = conditions if moving is None else conditions.along(moving)
            self.set_world(conditions.skills)
            parts.append(play(self.envs, act, conditions, None))
        return Episodes.joined(parts)

    def set_world(self, skills: Array) -> None:
        """Sets the stage of the world in each environment, for episodes of skills [E, K]."""
        if isinstance(self.world, int):
            self.envs.set_world(self.world)
        else:
            self.envs.set_world([self.world[skill] for skill in skills.argmax(axis=-1)])

    def metrics_of(self, played: Episodes) -> Metrics:
        """Returns metrics of behaviour in episodes, and those of the reward networks."""
        return self.behaviour(played) | self.answers(played)

    def errors(self, *both: Episodes) -> Metrics:
        """Returns standard errors of the difference between two policies; of few episodes none."""
        size = len(both[0].length) // _PARTS
        starts = range(0, size * _PARTS, size or 1)
        parts = [[self.metrics_of(each.rows(at, at + size)) for each in both] for at in starts]
        shared = set.intersection(*(set(m) for part in parts for m in part)) if parts else ()
        differences = {name: [one[name] - other[name] for one, other in parts] for name in shared}
        return {n: float(np.std(d, ddof=1)) / math.sqrt(_PARTS) for n, d in differences.items()}

    def random(self) -> Episodes:
        few = min(self.config.evaluation.episodes, _FEW)
        return self.play(zero_policy, few, added=random_actions(self.envs.spec))

    def behaviour(self, played: Episodes) -> Metrics:
        """Returns metrics of behaviour in episodes, and their success rate or return."""
        metrics = summarize(played.observation, played.length, self.envs.info)
        metrics |= self._information(played)
        if not self.envs.spec.goal_dim:
            metrics["eval/return"] = float(played.reward.sum(axis=1).mean())
            metrics["eval/length"] = float(played.length.mean())
        elif self.config.goals == "environment":
            metrics["eval/success_rate"] = float(played.success.mean())
            metrics |= ways_to_goals(played.achieved_goal, played.desired_goal)
            if not np.isin(played.reward, (-1.0, 0.0, 1.0)).all():  # dense
                metrics["eval/return"] = float(played.reward.sum(axis=1).mean())
        return metrics

    def counted(self, played: Episodes) -> Episodes:
        """Returns the part of episodes that training uses: until the object is lost."""
        if self.config.lost_object != "absorb":
            return played
        return cut_where_lost(played, self.envs.info).read_only()

    def seen(self, played: Episodes) -> Array:
        """Returns the descriptor of skills along episodes, [E, T + 1, D]."""
        columns, extra = descriptor_of(self.envs.info, self.envs.spec)
        return played.extras[extra] if extra else played.observation[..., list(columns)]

    def track(self, played: Episodes) -> Track:
        """Returns the descriptor of skills along the part of episodes that training uses."""
        counted = self.counted(played)
        return Track(self.seen(counted), counted.length)

    def _information(self, played: Episodes) -> Metrics:
        """Returns the information of moves beyond chance where motion pays, from few steps."""
        terms = () if self.config.incremental.on else self.config.rewards.values()
        if not any(term.measures_motion and term.counts for term in terms):
            return {}
        few, generator = played.rows(0, _FEW), stream(SEED, "evaluation/information")
        information = information_of_moves(few, self.envs.spec.split, generator, _PAIRINGS, _STEPS)
        if information is None:
            return {}
        return {INFORMATION: float(information.nats - information.null.mean())}

    def heldout(
        self, terms: "Iterable[RewardTerm]", weights: Mapping[str, list[Any]], played: Episodes
    ) -> Metrics:
        """Returns metrics of reward terms on episodes that they were not trained on."""
        played = self.counted(played)
        from music_tf.intrinsic.term_outputs import heldout_of  # noqa: PLC0415 - loads TensorFlow

        measured = [heldout_of(term, weights, played) for term in terms]
        return {name: value for metrics in measured for name, value in metrics.items()}


def counting(
    terms: "Sequence[RewardTerm]", epoch: float, levels: Mapping[str, float]
) -> "Sequence[RewardTerm]":
    """Returns the reward terms with weight at this epoch or level or later; all if none has any."""
    return [term for term in terms if not term.rests(levels.get(term.name, epoch))] or terms


def evaluation_conditions(
    indices: Sequence[int], config: Config, goal_dim: int, skill: int | None = None, turn: int = 0
) -> Conditions:
    """Returns seeds, goals and conditions; skills take turns unless `skill` or settings pin one."""
    size, pinned = config.condition_size, config.pinned_skill if skill is None else skill
    key = config.seed if turn else SEED
    seeds = [int(reset_seeds(stream(key, "evaluation", turn, index), 1)[0]) for index in indices]
    goals = np.zeros([len(indices), goal_dim], np.float32) if config.goals == "zero" else None
    if config.condition.kind == "one_hot":
        chosen = [index % size if pinned is None else pinned for index in indices]
        conditions = np.eye(size, dtype=np.float32)[chosen]
    else:
        fixed = (stream(key, "evaluation/condition", turn, index) for index in indices)
        drawn = [continuous_conditions(config.condition, generator, 1) for generator in fixed]
        conditions = np.concatenate(drawn)
    return Conditions(np.array(seeds), goals, conditions)


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """Returns the 95 % Wilson score interval of a success rate."""
    if not episodes:
        return 0.0, 1.0
    z = 1.959964
    rate = successes / episodes
    centre = rate + z * z / (2 * episodes)
    spread = z * math.sqrt(rate * (1 - rate) / episodes + z * z / (4 * episodes**2))
    scale = 1 + z * z / episodes
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def random_actions(spec: EnvSpec, draw: int = 0) -> Added:
    """Returns random actions by episode, equal on any number of ranks; each `draw` gives others."""
    shape = (spec.max_episode_steps, spec.action_dim)

    def added(index: int) -> Array:
        generator = stream(0, "comparison/random", draw, index)
        return generator.uniform(-1.0, 1.0, shape).astype(np.float32)

    return added


def noise(spec: EnvSpec, deviation: float, draw: int, beside: Added | None = None) -> Added:
    """Returns Gaussian noise for the actions of each episode, plus what `beside` adds."""
    shape = (spec.max_episode_steps, spec.action_dim)

    def added(index: int) -> Array:
        generator = stream(SEED, "judging/noise", draw, index)
        drawn = np.float32(deviation) * generator.standard_normal(shape, np.float32)
        return drawn if beside is None else drawn + beside(index)

    return added


def zero_policy(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
    """The zero policy: what is added to its actions acts alone."""
    return np.zeros_like(noise)
