"""Builds a run from its configuration: makes all parts and connects them."""

import inspect
import math
from collections.abc import Callable, Sequence

import numpy as np

from music_tf.agents.base import Learner
from music_tf.config.epochs import cut_by_epochs
from music_tf.config.settings import Config
from music_tf.config.terms import TermConfig
from music_tf.config.world import class_in_module, named_in_module
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs, Observations, StepResults
from music_tf.errors import UsageError
from music_tf.gate import PATH
from music_tf.intrinsic.base import InputSpec, RewardTerm, TermContext
from music_tf.intrinsic.incremental import Incremental
from music_tf.networks.copies import check_actor, inputs_with_own
from music_tf.networks.parameters import Layout, in_float32
from music_tf.normalizer import InputMoments
from music_tf.randomness import seeded_layers, stream
from music_tf.replay.buffer import ReplayBuffer, empty_store, keeps_steps
from music_tf.replay.hindsight import relabel_probability
from music_tf.replay.watch import RewardWatch
from music_tf.training.actors import Actors
from music_tf.training.collect import make_collector, make_environments
from music_tf.training.incremental import SkillSequence
from music_tf.training.memory import Share
from music_tf.training.parts import Lag, Part, PolicyEvaluation
from music_tf.training.rewards import return_bounds
from music_tf.training.trainer import Trainer
from music_tf.training.update import Update
from music_tf.types import Array, BoolArray, EnvSpec, instead_of_numbers

_SCALING_EPISODES = 20
_SAME = 1e-5
"""Largest difference between the values of a column that counts as constant, or share of them."""


def build_trainer(config: Config, comm: Communicator, actors: Actors | None = None) -> Trainer:
    """Builds all parts of a run, and its loop; with actors, `comm` has the learners."""
    workers = comm.local_workers(config.workers)
    share = Share(len(workers) * config.rollouts, len(workers))
    envs = actors.make_environment() if actors else make_environments(config, comm, share)
    collector = actors or make_collector(config, envs, workers, comm)
    spec, gamma = envs.spec, discount(config, envs.spec)
    absorbs = config.lost_object == "absorb" and envs.info.support is not None
    if absorbs and keeps_steps(config, spec):
        raise UsageError(
            "--lost-object: absorb needs whole episodes, and replay that draws steps forgets which "
            "object was lost\nuse --lost-object continue"
        )
    terms = build_terms(config, envs, comm)
    learner = build_learner(config, spec, terms)
    columns = list(dict.fromkeys(column for term in terms for column in term.columns))
    shards = {worker: empty_store(config, spec, columns, worker) for worker in workers}
    cut_by_epochs(config, spec.max_episode_steps)
    inputs = InputMoments(spec, config.normalizer, config.seen_condition, comm)
    update = Update(learner, terms, config.agent, gamma, comm, config.workers)

    def initial(skill: int) -> Array:
        return Layout(build_learner(config, spec, terms, skill).networks).initial()

    paying = [_paid_in_turn(term) for term in terms if config.rewards[term.name].incremental]
    goal_reward = envs.goal_reward if "task" in config.rewards and spec.goal_dim else None
    relabelled = relabel_probability(config.replay) > 0.0 and config.goals == "environment"
    goal_end = envs.goal_terminated if relabelled and envs.ends_at_goals else None
    replay = ReplayBuffer(shards, config.replay, goal_reward, gamma, config.seed, goal_end)
    if goal_reward is not None and config.goals == "environment":
        replay.watch = RewardWatch(goal_reward)
    evaluated = None
    if config.evaluation.length is not None:
        count, world = len(workers) * config.rollouts, config.world  # without actors, len(envs)
        evaluated = LockstepEnvs(config.env_id, count, config.evaluated_env, world=world)
    trainer = Trainer(
        config=config,
        comm=comm,
        collector=collector,
        replay=replay,
        inputs=inputs,
        update=update,
        evaluated=evaluated,
        parts=[
            class_in_module(path, Part, "part of agent")(config, envs)
            for path in config.agent.parts
        ],
    )
    if paying:  # a restored skill has all the arrays that actors expect
        like = trainer.snapshot()
        trainer.parts.append(SkillSequence(config, paying[0], like, initial, update))
    if config.lag:
        trainer.parts.append(Lag(trainer.snapshot()))
    trainer.parts.append(PolicyEvaluation())
    if misfits := [name for name in trainer.shared() if not PATH.fullmatch(name)]:  # in files
        raise UsageError(
            "networks, layers and shared(): expected names of letters, digits and _ . - /, got "
            f"{misfits[0]!r}"
        )
    return trainer


def _paid_in_turn(term: RewardTerm) -> Incremental:
    """Returns the term, which has to be one for skills that are learned one after the other."""
    if not isinstance(term, Incremental):
        raise UsageError(
            f"rewards.{term.name}: its settings pay skills one after the other, expected a term "
            f"made from {Incremental.__module__}:Incremental, got {type(term).__name__}"
        )
    return term


def discount(config: Config, spec: EnvSpec) -> float:
    """Returns gamma: the configured one, else 1 - 1/T for episodes of T steps."""
    if config.agent.discount is not None:
        return config.agent.discount
    return 1.0 - 1.0 / spec.max_episode_steps


def build_terms(
    config: Config, envs: LockstepEnvs, comm: Communicator | None = None
) -> list[RewardTerm]:
    """Returns the reward terms in order; `comm` is None where a run is loaded to be inspected."""

    def measure(seen: InputSpec) -> tuple[Array, Array]:
        """Returns fixed mean and deviation: moving ones would change a trained network's inputs."""
        values = _values_at_random(config, envs, seen)
        return values.mean(axis=0), np.maximum(values.std(axis=0), config.normalizer.epsilon)

    def constant(seen: InputSpec) -> BoolArray:
        values = _values_at_random(config, envs, seen)
        largest = np.minimum(1.0, np.abs(values).max(axis=0))
        return np.asarray(np.ptp(values, axis=0) <= _SAME * largest)

    context = TermContext(
        spec=envs.spec,
        info=envs.info,
        seed=config.seed,
        skills=config.condition_size,
        measure=measure,
        constant=constant,
        condition=config.condition,
        total=np.asarray if comm is None else comm.sum_in_place,
    )
    terms = [_made(settings, context) for settings in config.rewards.values()]
    for term in terms:
        ends = (term.mixing.range[0], term.mixing.bounds[0])
        bounded = term.mixing.lost is not None or all(map(math.isfinite, ends))
        if config.lost_object == "absorb" and not bounded:
            raise UsageError(
                f"--lost-object: absorb counts a lost object as earning each reward's lowest, "
                f"but {term.name} has none; for example --{term.name}.clip -1 0"
            )
    return terms


@in_float32()
def _made(settings: TermConfig, context: TermContext) -> RewardTerm:
    option, size = f"term of {settings.name}", context.spec.observation_dim
    kind = class_in_module(settings.term, RewardTerm, option)
    if inspect.isabstract(kind):
        raise UsageError(f"{option}: expected a method reward(weights, batch, feed), got none")
    with seeded_layers(stream(context.seed, option)):
        term: RewardTerm = kind(settings, context)
    if not hasattr(term, "mixing"):
        raise UsageError(
            f"{option}: expected super().__init__(config, context) in its __init__, got none"
        )
    if outside := [column for column in term.columns if column not in range(-size, size)]:
        raise UsageError(
            f"{option}: expected columns of the observation, 0 to {size - 1}, got {outside[0]}"
        )
    for name, array in term.shared().items():
        if not isinstance(array, np.ndarray | np.generic) or instead_of_numbers(array, array.shape):
            raise UsageError(
                f"{option}: expected finite arrays from shared(), got {name}: {array!r:.80}\n"
                "nearest: np.array of it"
            )
    built = [network.name for network in term.networks]
    if {*built} != {*settings.built}:
        raise UsageError(
            f"{option}: expected `networks` of its settings to name {built}, by which a warm start "
            f"finds them, got {[*settings.built]}"
        )
    term.inputs = inputs_with_own(term.inputs, term.networks)
    return term


def _values_at_random(config: Config, envs: LockstepEnvs, seen: InputSpec) -> Array:
    """Returns the inputs `seen` in the states of a few episodes of random actions, [N, D]."""
    spec, rows = envs.spec, []

    def values_of(states: Observations | StepResults) -> Array:
        values = states.extras[seen.extra] if seen.extra else states.observation
        return values[0] if seen.extra else values[0, list(seen.columns)]

    generator = stream(config.seed, "music/input scale")
    for seed in generator.integers(2**31, size=_SCALING_EPISODES):
        rows.append(values_of(envs.reset([0], [int(seed)])))
        for _ in range(spec.max_episode_steps):
            action = generator.uniform(-1.0, 1.0, (1, spec.action_dim)).astype(np.float32)
            result = envs.step(action, [0])
            rows.append(values_of(result))
            if result.terminated[0] or result.truncated[0]:
                break
    return np.array(rows)


@in_float32()
def build_learner(
    config: Config, spec: EnvSpec, terms: Sequence[RewardTerm], skill: int = 0
) -> Learner:
    """Returns the configured learner with the initial weights for a skill."""
    input_dim = spec.observation_dim + config.seen_condition + spec.seen_goal
    bounds = return_bounds(config.agent, terms, discount(config, spec))
    seed = stream(config.seed, "initial weights/agent", 0, skill)
    kind: Callable[..., Learner] = named_in_module(config.agent.learner, "learner of agent")
    with seeded_layers(stream(config.seed, "learner of agent", 0, skill)):
        learner = kind(config.agent, input_dim, spec.action_dim, bounds, seed)
    check_actor(config.agent, learner.networks[0], input_dim, spec.action_dim)
    return learner
