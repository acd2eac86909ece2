"""Checks of goals and rewards: what replay would pay wrongly, and what no metric would show."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.names import FEW, few
from music_tf.envs.registry import UNKNOWN, layers_of
from music_tf.errors import FROM_USERS, EnvironmentFault, Finding
from music_tf.replay.rows import reward_gaps
from music_tf.replay.watch import TOLERATED_SHARE
from music_tf.training.environment_trial import AROUND, EnvironmentTrial, RawStep, same

_NOT_SET = "cannot tell: no attribute `goal` sets the goal of an episode"
_DOES_NOT_REPEAT = "cannot tell: it does not repeat itself under one seed"
_MANY_AT_ONCE = "compute_reward must take goals [N, G] and give rewards [N]: use axis=-1"
_NEAR = 1e-3
"""Largest difference between the object's place and an achieved goal, in the unit of both."""
_FINE = 1e-3
"""Share of a step by which single precision may move goals."""


def goal_stays(trial: EnvironmentTrial) -> Finding:
    """Looks for a goal that moves within an episode, by itself or once it has been met."""
    for steps, first, which in ((trial.raw, 0, ""), (trial.at_goal, 1, " that meets it")):
        goals = [step.observation["desired_goal"] for step in steps[first:]]
        moved = [number for number, goal in enumerate(goals, first) if not same(goal, goals[0])]
        if moved:
            return Finding(
                f"the goal moves at step {moved[0]} of an episode{which}: replay pays all steps of "
                "an episode under its first goal",
                "draw goals in reset only; in a maze leave reset_target False",
            )
    return Finding("a goal stays within an episode")


def digits(trial: EnvironmentTrial) -> Finding:
    """Looks for goals that single precision moves by more than a thousandth of a step."""
    goal, length = trial.episode.desired_goal[0], trial.length
    moved = np.abs(np.diff(trial.achieved, axis=0)).max()
    moved = max(moved, np.abs(goal - trial.achieved).max() / length)
    largest = np.float32(max(np.abs(trial.achieved).max(), np.abs(goal).max()))
    unknown = trial.envs.info.why_no_split == UNKNOWN.why_no_split
    if unknown and np.spacing(largest) > _FINE * moved > 0.0:
        return Finding(*_too_many_digits(goal))
    return Finding("single precision holds them")


def _too_many_digits(goal: Any) -> tuple[str, str]:
    shown = ", ".join(f"{number:.10g}" for number in goal[:FEW])
    return (
        f"goals such as ({shown}{', ...' if len(goal) > FEW else ''}) have more digits than the "
        "single precision in which replay keeps them",
        "give goals relative to a place near them: subtract a constant in achieved and desired "
        "goals",
    )


def reward(trial: EnvironmentTrial) -> Finding:
    """Compares the reward of each step with the one that replay computes for the same goal."""
    try:
        computed, paid = trial.replayed
    except EnvironmentFault as fault:
        cure = "let compute_reward take goals [N, G] and use only what each step's info has"
        text = str(fault).removeprefix(f"{trial.env_id}: ")
        return Finding(text.removesuffix("\nsee music-tf check-env"), cure)
    if not trial.gaps.any():
        return Finding(f"replay computes what {len(paid)} steps paid")
    step = int(np.argmax(trial.gaps))
    cause, cure = _cause(trial, step)
    return Finding(
        f"step {step + 1} paid {paid[step]:g}, and replay computes {computed[step]:g} under "
        f"the same goal ({int(trial.gaps.sum())} of {len(paid)} steps differ): {cause}",
        cure,
        warning=bool(trial.gaps.mean() <= TOLERATED_SHARE),
    )


def _cause(trial: EnvironmentTrial, step: int) -> tuple[str, str]:
    """Returns why a step's reward differs from replay's, by computing it with less and less."""
    first, *_, last = trial.record(trial.episode.action[0, : step + 1], int(trial.episode.seed[0]))
    goals = [np.asarray(last.observation[key]) for key in ("achieved_goal", "desired_goal")]
    if not np.array_equal(goals[1], first.observation["desired_goal"]):
        return "the goal moves within the episode", "draw goals in reset only"
    rounded = [np.float32(goal).astype(goal.dtype) for goal in goals]
    layers = map(type, layers_of(trial.envs.environment))
    common = "gymnasium.wrappers.common"
    wrappers = [layer.__name__ for layer in layers if not layer.__module__.startswith(common)]
    around = f"; around the environment are {few(wrappers)}, which it does not know"
    kept = few(list(trial.envs.extras.entries_read)) or "none"
    causes: Sequence[tuple[Sequence[Any], Mapping[str, Any], str, str]] = (
        (
            *(goals, last.info),
            "step pays something else than compute_reward" + around * bool(wrappers),
            "step must return compute_reward(achieved_goal, desired_goal, info), and no wrapper "
            "change goals or rewards",
        ),
        (rounded, last.info, *_too_many_digits(goals[1])),
        (
            *(rounded, {}),
            "compute_reward reads from info what replay does not keep; kept of "
            f"{few(list(last.info)) or 'nothing'}: {kept}",
            "let it read numbers that every step's info has, by their names, as in "
            "info['cost']; or put them into the achieved goal",
        ),
    )
    for pair, info, cause, cure in causes:
        if not _pays_the_same(trial, last, pair, info):
            return cause, cure
    trial.midst_of_another_episode()
    if _pays_the_same(trial, last, rounded, {}):
        return "compute_reward is wrong for many goals at once", _MANY_AT_ONCE
    return (
        "compute_reward reads from the environment itself what other episodes change, such as "
        "its goal or its time",
        "let compute_reward use nothing but what it is given",
    )


def _pays_the_same(
    trial: EnvironmentTrial, step: RawStep, goals: Sequence[Any], info: Mapping[str, Any]
) -> bool:
    """Whether `compute_reward` gives the reward of a step for its goals, in this precision."""
    method: Any = trial.envs.environment.unwrapped
    with np.errstate(all="ignore"), contextlib.suppress(*FROM_USERS):
        computed = float(method.compute_reward(*map(np.copy, goals), dict(info)))
        return not reward_gaps(np.float32(step.reward), np.float32(computed))
    return False


def other_goal(trial: EnvironmentTrial) -> Finding:
    """Finds a `compute_reward` that reads the episode's goal from info or the environment."""
    steps, places, goal = trial.at_goal[1:], trial.places_at_goal, trial.near_goal
    if not steps:
        return Finding(_NOT_SET)
    if not trial.repeats:
        return Finding(_DOES_NOT_REPEAT)
    if trial.gaps.any():
        return Finding("cannot tell: rewards under the own goal differ already")
    paid = np.array([step.reward for step in steps], np.float32)
    computed = trial.under_goal(trial.envs.goal_reward, goal, places)
    gaps = trial.gaps_under(goal, places, paid, computed)
    if not gaps.any():
        return Finding(f"replay computes what {len(paid)} steps under another goal paid")
    if not reward_gaps(paid, trial.replayed[0][: len(paid)]).any():
        return Finding("cannot tell: steps pay for another goal than the attribute `goal`")
    number = int(np.argmax(gaps))
    return Finding(
        f"step {number + 1} under another goal pays {paid[number]:g}, and replay computes "
        f"{computed[number]:g} ({int(gaps.sum())} of {len(paid)} steps differ): compute_reward "
        "knows the goal of the episode from info or from the environment; read of info: "
        f"{few(list(trial.envs.extras.entries_read)) or 'nothing'}",
        "let compute_reward use the desired goal that it is given, and read nothing from info "
        "that depends on the goal",
    )


def batched_reward(trial: EnvironmentTrial) -> Finding:
    """Compares the rewards of many pairs of goals at once with those of single pairs."""
    envs = trial.envs
    if not envs.info.batched_reward:
        return Finding("known to be wrong here, goals are rewarded one by one")
    if envs.extras.entries_read:
        names = few(list(envs.extras.entries_read))
        return Finding(f"it reads {names} of info, so goals are rewarded one by one")
    achieved = np.concatenate([trial.achieved[1:]] * 2)
    of_episode = np.broadcast_to(trial.episode.desired_goal[0], trial.achieved[1:].shape)
    desired = np.concatenate([of_episode, trial.achieved[:0:-1]])
    try:
        many = envs.goal_reward(achieved, desired)
        pairs = zip(achieved[:, None], desired[:, None], strict=True)
        single = np.concatenate([envs.goal_reward(*pair) for pair in pairs])
    except EnvironmentFault as fault:
        return Finding(str(fault).splitlines()[0], _MANY_AT_ONCE)
    if wrong := int(reward_gaps(single, many).sum()):
        return Finding(f"{wrong} of {len(single)} rewards differ from single ones", _MANY_AT_ONCE)
    return Finding(f"{len(single)} goals at once give the rewards of single ones")


def goal_apart(trial: EnvironmentTrial) -> Finding:
    """Looks for observation columns that depend on the goal: relabelling cannot change them."""
    if trial.first_steps is None:
        return Finding(_NOT_SET)
    first, again, under = (step.observation["observation"] for step in trial.first_steps)
    if not np.array_equal(first, again, equal_nan=True):
        return Finding(_DOES_NOT_REPEAT)
    columns = np.flatnonzero(first != under).tolist()
    if not columns:
        return Finding("the observation does not change with the goal")
    return Finding(
        f"columns {few(list(map(str, columns)))} of the observation change with the goal: "
        "hindsight gives a step another goal, and leaves them as they are",
        "leave the goal out of the observation: policies get it separately",
    )


def place(trial: EnvironmentTrial) -> Finding:
    """Compares achieved goals with the object's place, from which `replay.reach` measures goals."""
    columns = list(trial.envs.info.object or ())
    if len(columns) != trial.achieved.shape[-1]:
        return Finding("")
    seen = trial.episode.observation[0, : trial.length + 1, columns].T
    if np.allclose(seen, trial.achieved, rtol=0.0, atol=_NEAR):
        return Finding("achieved goals are places of the object")
    return Finding(
        f"achieved goals are not what columns {columns} of the object hold: under --replay.reach "
        "networks would see wrong distances",
        "name the columns of the object in the order of the goal: --world.object",
        warning=True,
    )


def goal_set(trial: EnvironmentTrial) -> Finding:
    """Warns if `goal_apart` could not set a goal; known ids have no goal in observations."""
    if trial.at_goal or trial.is_known:
        return Finding("goals can be set, or the id is known")
    return Finding(
        f"{_NOT_SET.removeprefix('cannot tell: ')}, so nothing can tell whether the observation "
        "holds the goal: hindsight would leave the old one there",
        "leave the goal out of the observation; kept in an attribute `goal` that step reads, "
        "it can be tried",
        warning=True,
    )


def success(trial: EnvironmentTrial) -> Finding:
    """Looks for what evaluations count, in steps that meet a goal where goals can be set."""
    for steps in (trial.at_goal, trial.raw):
        if any({"is_success", "success"} & {*step.info} for step in steps):
            return Finding("info tells it")
    return Finding(
        "info has no is_success, so the success rate is always 0",
        'return {"is_success": ...} as info of each step',
        warning=True,
    )


def ends(trial: EnvironmentTrial) -> Finding:
    """Looks for episodes that end at their goal in an environment without a test for others."""
    if trial.envs.ends_at_goals:
        return _ends_alike(trial)
    episode, earlier = trial.episode, len(trial.at_goal) <= trial.length
    ended = earlier and any(step.terminated for step in trial.at_goal)
    ended |= bool((episode.terminated & episode.success).any())
    if not ended or trial.settings.success_ends is False:
        return Finding("no episode was seen to end at its goal")
    return Finding(
        "episodes end at their goal, and nothing says where they end under another one: steps "
        "that met a goal of hindsight are valued as if the episode went on",
        "define compute_terminated(achieved_goal, desired_goal, info), or give "
        "--env.success-ends False",
        warning=True,
    )


def _ends_alike(trial: EnvironmentTrial) -> Finding:
    """Compares the end of an episode that meets its goal with `compute_terminated`."""
    fine = Finding("compute_terminated says where an episode ends under another goal")
    steps, goal = trial.at_goal[1:], trial.near_goal
    if not steps or not trial.repeats:
        return fine
    terminal = trial.under_goal(trial.envs.goal_terminated, goal, trial.places_at_goal)
    ended = np.array([step.terminated for step in steps])
    earlier = len(steps) < min(AROUND, trial.length)  # it ended for its goal
    wrong = (terminal & ~ended) | (~terminal & ended & earlier)
    if not wrong.any():
        return fine
    number = int(np.argmax(wrong))
    does, says = ("ends", "does not") if ended[number] else ("goes on", "does")
    return Finding(
        f"step {number + 1} of an episode that meets its goal {does}, and compute_terminated "
        f"says that it {says} end: replay would believe the latter",
        "let step end episodes where compute_terminated says so, or give --env.success-ends False",
        warning=True,
    )
