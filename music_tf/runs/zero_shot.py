"""Lets a run reach places that it never had as goals: by its embedding, or by its skills."""

import dataclasses
from typing import NamedTuple, TypeAlias

import numpy as np

from music_tf.errors import UsageError
from music_tf.networks.acting import SkillSnapshots, Snapshot
from music_tf.networks.embedding import Embedding
from music_tf.networks.ends import Ends
from music_tf.rollout import Policy
from music_tf.training.evaluation import Evaluation, random_actions, still
from music_tf.types import Array, BoolArray, Episodes, IntArray, Metrics

GOALS = 200
"""How many goals a measurement is about."""
_PRACTICE = 48
"""Other goals, on which the distance is chosen at which to stop."""
_FEW = 8
"""Episodes among these that show which columns goals are about."""
_SAME = 1e-5
"""Up to which difference a column and a number of the achieved goal are the same."""
_APART = 10**6
"""Number of the first of these episodes, beyond those of any evaluation."""
_TOLD = {Embedding: "an embedding that sees", Ends: "skills that are told apart by"}
_COLUMNS = {Embedding: "--distance.columns", Ends: "--world.descriptor"}
_STOPS = (0.0, 0.1, 0.2, 0.3, 0.45)
"""Distances to try, as shares of the median distance at the start of an episode. The first is
no brake."""


Leads: TypeAlias = Embedding | Ends
"""What leads to places: conditions by an embedding, or skills by where they end."""


class Places(NamedTuple):
    """How goals of an environment become places that a condition leads to."""

    columns: IntArray  # [n], of the observation, that a place consists of
    given: BoolArray  # [n], which of them a goal says
    numbers: IntArray  # [n], which number of the goal that is

    def of(self, observation: Array, goal: Array) -> tuple[Array, Array]:
        """Returns the places of states [E, O], and those at goals [E, G], each [E, n]."""
        here = observation[:, self.columns]
        return here, np.where(self.given, goal[:, self.numbers], here)

    def goal_at(self, place: Array, achieved: Array) -> Array:
        """Returns goals [E, G] that say a place [n], and beside it what is achieved [E, G]."""
        goals = achieved.copy()
        goals[:, self.numbers[self.given]] = place[self.given]
        return goals


def places_of(leads: Leads, played: Episodes, run: str) -> Places:
    """Returns how goals become places.

    A goal says a column where that is always equal to a number of the achieved goal. What it does
    not say stays as it is.

    Args:
        leads: What leads to places.
        played: Any episodes of the environment.
        run: For messages.

    Raises:
        UsageError: No goal says anything of a place.
    """
    seen = played.observation[..., list(leads.columns), None]
    alike = np.isclose(seen, played.achieved_goal[..., None, :], rtol=0.0, atol=_SAME)
    same: BoolArray = np.asarray(alike.all(axis=(0, 1)))  # [n, G]
    given = np.array([row.any() for row in same], np.bool_)
    if not given.any():
        raise UsageError(
            f"--zero-shot: {run}: expected {_TOLD[type(leads)]} what goals are about, got "
            f"columns {list(leads.columns)}, none of which is in the achieved goal\n"
            f"train one with them: {_COLUMNS[type(leads)]}"
        )
    return Places(np.array(leads.columns), given, same.argmax(axis=1))


@dataclasses.dataclass(frozen=True)
class Reaching:
    """A snapshot as a policy that goes to the goal of its environment, of which it is not told.

    The goal becomes a condition at each step: by the embedding, or the skill that ends nearest. The
    networks of the policy see zero goals, as in training.
    """

    snapshot: Snapshot | SkillSnapshots
    leads: Leads
    places: Places
    stop: float = 0.0
    """Distance, in the embedding where there is one, below which it does nothing."""
    place: Array | None = None
    """Where it goes in place of the goal, [n]."""

    def __call__(self, observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        """Returns actions [E, A]."""
        del skill, noise
        here = observation[:, self.places.columns]
        if self.place is None:
            here, there = self.places.of(observation, goal)
        else:
            there = np.broadcast_to(self.place, here.shape)
        condition = self.leads.leading(here, there)
        action = self.snapshot.act(observation, np.zeros_like(goal), condition, None)
        near = self.leads.distance(here, there) < self.stop
        return np.where(near[:, None], np.float32(0.0), action)


def reaching(
    evaluation: Evaluation, snapshot: Snapshot | SkillSnapshots, leads: Leads, run: str
) -> tuple[Evaluation, Reaching]:
    """Returns what plays under the environment's own goals, and the policy that goes there.

    Raises:
        UsageError: The environment has no goals, or none that says anything of a place.
    """
    spec = evaluation.envs.spec
    if not spec.goal_dim:
        raise UsageError(f"--zero-shot: {run}: {spec.env_id} has no goals that could be reached")
    config = dataclasses.replace(evaluation.config, goals="environment")
    shown = evaluation._replace(config=config)
    few = np.arange(_APART, _APART + _FEW)
    aimless = _under_fixed_conditions(snapshot)
    places = places_of(leads, shown.play_some(aimless, few, len(shown.envs)), run)
    return shown, Reaching(snapshot, leads, places)


def measure_zero_shot(
    evaluation: Evaluation,
    snapshot: Snapshot | SkillSnapshots,
    leads: Leads,
    run: str,
    goals: int = GOALS,
) -> dict[str, Metrics]:
    """Measures how many of the environment's own goals a run reaches that never had one.

    Args:
        evaluation: Of the run.
        snapshot: What acts.
        leads: What leads to places.
        run: For messages.
        goals: How many.

    Returns:
        By policy, shares of goals that are reached at any state and at the last one, with the
        distance at which to stop chosen on other goals (`stop`, in the embedding) and without.
        Beside the run: conditions at random, random actions and none.

    Raises:
        UsageError: The environment has no goals, or none that says anything of a place.
    """
    spec = evaluation.envs.spec
    shown, plain = reaching(evaluation, snapshot, leads, run)
    others = np.arange(_APART, _APART + _PRACTICE)
    aimless = _under_fixed_conditions(snapshot)

    def practised(policy: Policy) -> Episodes:
        return shown.play_some(policy, others, len(shown.envs))

    starts = practised(plain)
    first = plain.places.of(starts.observation[:, 0], starts.desired_goal)
    usual = float(np.median(leads.distance(*first)))
    braked = [dataclasses.replace(plain, stop=share * usual) for share in _STOPS]
    tried = (starts, *map(practised, braked[1:]))  # the first has no brake
    best = braked[int(np.argmax([_shares(shown, played)["zero_shot/end"] for played in tried]))]
    ours = _shares(shown, shown.play(plain, goals))
    stopped = ours if best is braked[0] else _shares(shown, shown.play(best, goals))
    ours |= {"zero_shot/end_with_brake": stopped["zero_shot/end"], "zero_shot/stop": best.stop}
    beside = {
        "random conditions": shown.play(aimless, goals),
        "random": shown.play(still, goals, added=random_actions(spec)),
        "nothing": shown.play(still, goals),
    }
    return {"ours": ours} | {name: _shares(shown, played) for name, played in beside.items()}


def _shares(evaluation: Evaluation, played: Episodes) -> Metrics:
    """Returns how many goals are reached at any state, and at the last one."""
    reached = reached_states(evaluation, played)
    last = reached[np.arange(len(reached)), played.length]
    return {
        "zero_shot/ever": float(reached.any(axis=1).mean()),
        "zero_shot/end": float(last.mean()),
    }


def reached_states(evaluation: Evaluation, played: Episodes) -> BoolArray:
    """Returns at which states episodes are at their goal, [E, T + 1].

    As the environment's own reward says, which is then the highest there is.

    Raises:
        UsageError: Its reward does not say so.
    """
    envs = evaluation.envs
    highest = envs.info.reward_bounds[1]
    if envs.goal_reward is None or not np.isfinite(envs.info.reward_bounds).all():
        raise UsageError(_two_values(envs.spec.env_id))
    count, states = played.achieved_goal.shape[:2]
    goals = np.repeat(played.desired_goal[:, None], states, axis=1)
    extras = {name: values.reshape(count * states, -1) for name, values in played.extras.items()}
    width = played.achieved_goal.shape[-1]
    paid = envs.goal_reward(
        played.achieved_goal.reshape(-1, width), goals.reshape(-1, width), extras
    ).reshape(count, states)
    kept = np.arange(states) <= played.length[:, None]
    if not np.isin(paid[kept], np.array(envs.info.reward_bounds, np.float32)).all():
        raise UsageError(_two_values(envs.spec.env_id))
    reached: BoolArray = (paid >= highest) & kept
    return reached


def _two_values(env_id: str) -> str:
    """Returns what is expected of rewards that say when a goal is reached."""
    return (
        f"--zero-shot: {env_id}: expected a reward of two values, which says when a goal "
        "is reached\n"
        "declare it where the program does not know it: --world.reward -1 0"
    )


def _under_fixed_conditions(snapshot: Snapshot | SkillSnapshots) -> Policy:
    """Returns the run's policy under conditions that have nothing to do with the goal."""

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        del noise
        return snapshot.act(observation, np.zeros_like(goal), skill, None)

    return act
