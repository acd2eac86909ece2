"""Settings of what a policy is conditioned on: skills, skills one after the other, and tasks."""

import bisect
import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from music_tf.config.changes import OPTION
from music_tf.config.fields import In, Settings, show_option
from music_tf.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConditionConfig(Settings):
    """What the policy is conditioned on beside state and goal; evaluation has a fixed list."""

    name: ClassVar[str] = "condition"

    kind: Literal["one_hot", "gaussian", "sphere", "ball", "box", "belief"] = "one_hot"
    """One of `skills` as a one-hot vector; or a vector drawn from a standard Gaussian, the unit
    sphere, the unit ball with uniform lengths, or the box [-1, 1]^K; or a latent drawn from the
    agent's belief over its task."""
    size: Annotated[int | None, In(1, 4096)] = None
    """Numbers K in it; unset, for one_hot alone: `skills`."""
    groups: Annotated[int, In(1, 4096)] = 1
    """Groups of K / groups numbers of a `ball`, the velocities of as many objects. In an episode,
    one group at random is drawn, and the others are 0: those objects are to stay in place."""
    relabel: Annotated[float, In(0, 1)] = 0.0
    """Share of replayed steps that actor and critics see under a fresh condition, for which rewards
    are computed anew; networks of rewards learn under the condition that acted."""
    sampler: Literal["random", "tiled", "stratified"] = "random"
    """How one-hot conditions are assigned: each drawn with equal chance; environment i keeps i
    modulo K; or dealt from a shuffled deck, so that all act equally often in the episodes of a
    cycle (with `collect.steps`: of a worker in an epoch)."""
    every: Annotated[int | None, In(1, 10**6)] = None
    """Steps after which the condition changes within an episode; unset: one for the whole episode.
    Needs `collect.steps`, since an episode that replay keeps whole has one condition."""

    def check(self, run: Any) -> None:
        self._check_size(run)
        kind, pinned, alone = self.kind, run.pinned_skill, len(run.acting_skills) == 1
        if self.sampler != "random" and (kind != "one_hot" or pinned is not None):
            raise UsageError(
                f"condition.sampler: {self.sampler} shares out one_hot conditions, expected random "
                f"for condition.kind {kind}, pinned_skill {pinned}"
            )
        size, together = run.condition_size, run.workers * run.rollouts
        if self.sampler == "tiled" and together % size:
            unit = size // math.gcd(size, run.workers)
            raise UsageError(
                f"condition.sampler: tiled needs a multiple of {size} environments, got workers "
                f"{run.workers} x rollouts {run.rollouts} = {together}\n"
                f"nearest: --rollouts {unit * max(1, round(run.rollouts / unit))}, or "
                "--condition.sampler stratified"
            )
        if self.every is not None and (self.sampler == "tiled" or alone):
            raise UsageError(
                f"condition.every: expected conditions that may change, got skills {size}, "
                f"pinned_skill {pinned}, condition.sampler {self.sampler}; leave it out"
            )
        if self.every is not None and run.collect.steps is None:
            hindsight = " --replay.relabel-k 0" if run.replay.relabel_k else ""
            raise UsageError(
                "condition.every: replay keeps whole episodes, each with one condition, got "
                f"another every {self.every} steps\n"
                f"for example: --collect.steps 50 --replay.draw steps{hindsight}"
            )
        if self.relabel and (kind == "belief" or run.incremental.on or alone):
            raise UsageError(
                "condition.relabel: expected conditions that are drawn for each episode, got "
                f"condition.kind {kind}, skills {run.skills}, pinned_skill {pinned}, "
                f"incremental.epochs {run.incremental.epochs}\nnearest: --condition.relabel 0"
            )

    def _check_size(self, run: Any) -> None:
        kind, size, pinned = self.kind, run.condition_size, run.pinned_skill
        discrete = kind == "one_hot"
        if discrete and self.size not in (None, run.skills) and run.skills > 1:
            raise UsageError(
                f"condition.size: expected {run.skills}, as skills says, got {self.size}; "
                "leave skills out, or add --condition.size None"
            )
        if discrete and pinned is not None and pinned >= size:
            raise UsageError(f"pinned_skill: expected a number in [0, {size - 1}], got {pinned}")
        if not discrete and (run.skills > 1 or pinned is not None):
            raise UsageError(
                f"condition.kind: expected one_hot for skills {run.skills} and pinned_skill "
                f"{pinned}, got {kind}\nfor skills: --condition.kind one_hot --condition.size "
                "None; for directions: --skills 1 --pinned-skill None"
            )
        if kind == "belief" and self.size not in (None, size):
            raise UsageError(
                f"condition.size: expected {size}, as agent.latent_size says, got {self.size}; "
                "leave one of the two out"
            )
        implied = discrete or kind == "belief" or run.agent.inference is not None
        if self.size is None and not implied:
            raise UsageError(
                f"condition.size: expected how many numbers a {kind} condition has, got none; "
                "for example --condition.size 2"
            )
        if self.groups > 1 and (kind != "ball" or (self.size or 1) % self.groups):
            raise UsageError(
                f"condition.groups: expected a ball and a size that {self.groups} divides, got "
                f"{kind} of size {self.size}\n"
                f"nearest: --condition.kind ball --condition.size {2 * self.groups}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class IncrementalConfig(Settings):
    """Skills that are learned one after the other, each by its own actor."""

    name: ClassVar[str] = "incremental"

    epochs: Annotated[tuple[int, ...], In(1, 10**9)] = ()
    """Epochs of each skill: one number for all, or one for each. Empty: one agent learns all skills
    at once."""
    replay: Literal["keep", "reset", "purge"] = "keep"
    """How much of the experience of earlier skills a new skill learns from: all, none, or half as
    many steps, drawn with replacement (half of the episodes where replay keeps these whole)."""
    past: Literal["refresh", "append"] = "refresh"
    """When earlier skills are played to see where they go: all anew before each skill, in the world
    as it is then, unless they were played in that world before; or each once, as soon as it is
    learned."""
    collected: Annotated[int, In(1, 10**5)] = 10
    """Episodes that each earlier skill plays for `incremental.past`."""
    first: Literal["random", "nothing"] = "random"
    """What the first skill is compared with: episodes of uniform actions, or nothing."""
    begin: Literal["fresh", "first", "nearest"] = "fresh"
    """Initial weights of a later skill's actor: random, or those of the first skill, or of the
    skill whose steps are furthest from those of all others. Critics start at random."""

    @property
    def on(self) -> bool:
        return bool(self.epochs)

    def of_each(self, skills: int) -> tuple[int, ...]:
        return self.epochs * skills if len(self.epochs) == 1 else self.epochs

    def skill_at(self, epoch: int, skills: int) -> int:
        """Returns the index of the skill that is learned in an epoch; at most the last one."""
        ends = list(itertools.accumulate(self.of_each(skills)))
        return min(bisect.bisect_right(ends, epoch), max(0, len(ends) - 1))

    def check(self, run: Any) -> None:
        if not self.on:
            return
        condition, every, epochs = run.condition, self.of_each(run.skills), run.epochs
        if sum(term.incremental for term in run.rewards.values()) != 1:
            raise UsageError(
                "incremental.epochs: skills one after the other need one reward that tells a skill "
                f"from earlier ones, got {' '.join(run.rewards)}; for example --rewards disk"
            )
        drawn = condition.sampler != "random" or condition.every is not None
        if drawn or condition.kind != "one_hot" or run.pinned_skill is not None:
            raise UsageError(
                "incremental.epochs: one skill acts at a time, in turn, got condition.kind "
                f"{condition.kind}, condition.sampler {condition.sampler}, condition.every "
                f"{condition.every}, pinned_skill {run.pinned_skill}; leave all out"
            )
        if len(every) != run.skills:
            raise UsageError(
                f"incremental.epochs: expected one number, or one for each of {run.skills} "
                f"skills, got {len(every)}\nnearest: --skills {len(every)}"
            )
        if epochs != sum(every):
            near = f"--epochs {sum(every)}"
            if len(self.epochs) == 1:
                near = f"--skills {max(1, round(epochs / every[0]))}"
            raise UsageError(
                f"epochs: expected those of all skills together, {sum(every)}, got {epochs}\n"
                f"leave --epochs out; nearest: {near}"
            )


BOTH: Literal["both"] = "both"
Visited: TypeAlias = Literal["both", "test", "train"]
"""Which tasks of a run are visited: those kept for evaluation (`test`), those of training, both."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TasksConfig(Settings):
    """Tasks of a family that share robot and sizes, and how each is explored.

    A visit plays episodes of one task: under the prior, then under the belief inferred in it.
    Numbers of episodes are rounded up to multiples of `rollouts`.
    """

    name: ClassVar[str] = "tasks"
    metrics: ClassVar[Mapping[str, str]] = {
        "adapt/return_prior": "mean return in evaluation tasks under latents of the prior",
        "adapt/return_1": "the same in the episode after 1 context episode",
        "adapt/return_2": "the same in the episode after 2 context episodes",
        "adapt/return_last": "the same in the last episode of a visit, after all others",
        "adapt/random_return": "the same of random actions in these last episodes",
        "adapt/train_return": "the same of the last episode in training tasks, explored anew",
        "adapt/success_prior": "share of evaluation tasks solved under latents of the prior",
        "adapt/success_1": "share solved after 1 context episode",
        "adapt/success_2": "share solved after 2 context episodes",
        "adapt/success_last": "share solved in the last episode of a visit",
        "adapt/context_return_prior": "adapt/return_prior of the reward that contexts hold, where "
        "`agent.context_reward` is another than the environment's",
        "adapt/context_return_last": "adapt/return_last of that reward",
        "adapt/context_return_late": "mean of that over the last 30 % of the episodes of a visit",
        "adapt/variance": "mean variance of what is believed after all episodes of a visit",
        "adapt/probe_r2": "R^2 of evaluation tasks, read from beliefs after two episodes by a "
        "linear map",
    }

    train: Annotated[int, In(0, 10**5)] = 0
    """Tasks for training, divided among workers; 0: the environment has one task."""
    test: Annotated[int, In(0, 10**5)] = 0
    """Tasks that are kept for evaluation."""
    seed: Annotated[int | None, In(0, 2**32 - 1)] = None
    """Seed of the drawn tasks; unset: 1337 + `seed`, so that each run has its own tasks."""
    initial: Annotated[int, In(1, 10**6)] = 10
    """Episodes under the prior in each task before anything is learned; all are context."""
    prior: Annotated[int, In(1, 10**6)] = 2
    """Episodes of a visit under latents of the prior; they are context."""
    posterior: Annotated[int, In(0, 10**6)] = 2
    """Episodes of a visit after those, under latents of the posterior; they are context too."""
    extra: Annotated[int, In(0, 10**6)] = 0
    """Episodes of a visit after those, under the posterior; they are no context."""
    posterior_first: bool = True
    """Whether the first episodes of `tasks.posterior`, and those of `tasks.extra`, already use the
    posterior. False: the prior, as many as `tasks.resample_posterior`."""
    visits: Annotated[int | None, In(1, 10**6)] = None
    """Visits of each worker before updates, which then follow in as many turns of `updates`; visits
    to all tasks come before the first, and contexts may repeat steps of a visit, as in the authors'
    code. Unset: one visit a cycle, in the first cycle one to each task instead."""
    resample_belief: Literal["episode", "step"] = "episode"
    """Whether a latent is drawn for each episode of training, or anew at each step. Evaluations
    have one for each episode."""
    resample_posterior: Annotated[int, In(1, 10**6)] = 1
    """Episodes of each environment until the posterior is inferred again."""
    explore: Annotated[int, In(1, 10**4)] = 1
    """Episodes of an evaluation under the prior, before a belief is inferred."""
    adapt: Annotated[int, In(1, 10**4)] = 6
    """Episodes of an evaluation after those of `tasks.explore`; before each the belief is
    inferred."""

    @property
    def evaluation_episodes(self) -> int:
        return self.explore + self.adapt

    def check(self, run: Any) -> None:
        count, workers, kind = self.train, run.workers, run.condition.kind
        if run.agent.inference is None:
            if count or self.test or self.visits or kind == "belief":
                raise UsageError(
                    "tasks.train: several tasks need an agent that infers which one it is in, got "
                    f"{count} and condition.kind {kind}\nrecipes for it: sac_pearl"
                )
            return
        if count == 0 or self.test == 0:
            raise UsageError(
                "tasks.train and tasks.test: expected at least 1 of each, got "
                f"{count} and {self.test}; for example --tasks.train 20 --tasks.test 10"
            )
        if kind != "belief":
            raise UsageError(
                "condition.kind: expected belief for an agent that infers its condition, got "
                f"{kind}; leave it out"
            )
        if count % workers:
            raise UsageError(
                f"tasks.train: expected a multiple of workers {workers}, which share them out, got "
                f"{count}; nearest: {max(workers, workers * round(count / workers))}"
            )
        for unfit, name, why in (
            (run.collect.steps, "collect.steps", "a visit to a task is made of whole episodes"),
            (run.collect.random_steps, "collect.random_steps", "a visit begins under the prior"),
            (run.env.stages, OPTION, "tasks do not change while one is visited"),
            (run.replay.relabel_k, "replay.relabel_k", "a task is inferred, not shown as a goal"),
            (run.goals == "zero", "goals", "a task is inferred, not shown as a goal"),
            (run.replay.draw == "episodes", "replay.draw", "tasks are kept apart by steps"),
        ):
            if unfit:
                raise UsageError(f"{name}: {why}; leave {show_option(name)} out")
