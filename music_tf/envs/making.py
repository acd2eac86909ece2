"""Finds and creates Gymnasium environments, and explains failures."""

import contextlib
import ctypes
import dataclasses
import functools
import importlib
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium

from music_tf.config import names
from music_tf.config.settings import Config, EnvConfig
from music_tf.config.world import import_own, registered_world
from music_tf.envs import simulator
from music_tf.envs.skill_choice import SkillChoice
from music_tf.errors import (
    FROM_USERS,
    EnvironmentFault,
    MusicError,
    Stopped,
    UsageError,
    error_line,
)
from music_tf.process.children import PIP_INSTALL
from music_tf.process.notices import keep_notices
from music_tf.process.signals import keep_signal_handlers, stop_requested
from music_tf.process.tensorflow_start import standard_error_to

GOAL_KEYS = ("observation", "achieved_goal", "desired_goal")
_ROBOTICS = "gymnasium_robotics"
_EXTRAS = {"Box2D": "box2d", "panda_gym": "panda", "pybullet": "panda"}
"""Modules that environments import, and the extra of music_tf that installs each."""


def make_environment(
    env_id: str, settings: EnvConfig | None = None, **options: Any
) -> gymnasium.Env[Any, Any]:
    """Creates an environment, imports the module of `module:Id`, checks what learning needs."""
    if settings is not None:
        options |= json.loads(settings.kwargs)
        if settings.max_episode_steps is not None:
            options.setdefault("max_episode_steps", settings.max_episode_steps)
    spec = find_spec(env_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            with _silenced(spec):
                environment = gymnasium.make(spec, disable_env_checker=True, **options)
        except (UsageError, EnvironmentFault):
            raise
        except FROM_USERS as error:
            _refuse_without_extra(env_id, error)
            text = error_line(error)
            if settings is not None and settings.kwargs != "{}" and isinstance(error, TypeError):
                raise UsageError(
                    f"env.kwargs: {env_id} does not take {settings.kwargs}: {text}"
                ) from error
            raise EnvironmentFault(
                f"{env_id}: the environment cannot be created ({text})\n"
                "music-tf doctor names versions of packages that do not fit; arguments that it "
                "needs: --env.kwargs '{\"NAME\": VALUE}'"
            ) from error
    keep_signal_handlers()
    keep_notices()
    simulator.catch_warnings()
    simulator.take_warnings()
    try:
        simulator.refuse_wrong(environment)
        if settings is not None and settings.skills:
            environment = SkillChoice(environment, settings)
        _require_vectors(env_id, environment)
    except MusicError:
        environment.close()
        raise
    return environment


def dropped(environment: gymnasium.Env[Any, Any]) -> list[str]:
    """Returns the observations of a goal environment beside `GOAL_KEYS`, which are not used."""
    space = environment.observation_space
    keys = list(space.spaces) if isinstance(space, gymnasium.spaces.Dict) else []
    return [str(key) for key in keys if key not in GOAL_KEYS]


@contextlib.contextmanager
def _silenced(spec: gymnasium.envs.registration.EnvSpec) -> Iterator[None]:
    """Hides the lines that PyBullet prints from C for each simulator."""
    if not str(spec.entry_point).startswith("panda_gym"):
        yield
        return
    libc = ctypes.CDLL(None)
    sys.stdout.flush()
    libc.fflush(None)
    terminal = os.dup(1)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        libc.fflush(None)
        os.dup2(terminal, 1)
        os.close(terminal)


def _require_vectors(env_id: str, environment: gymnasium.Env[Any, Any]) -> None:
    """Refuses observations that are neither a vector nor a goal environment's."""
    space = environment.observation_space
    keys = set(space.spaces) if isinstance(space, gymnasium.spaces.Dict) else set()
    axes = len(space.shape or ())
    if keys >= set(GOAL_KEYS):
        if not hasattr(environment.unwrapped, "compute_reward"):
            of_wrapper = environment.has_wrapper_attr("compute_reward")
            cure = "; derive the wrapper from gymnasium.Env, and keep what it wraps in an attribute"
            raise UsageError(
                f"env_id: {env_id!r} has goals: expected a method compute_reward(self, "
                "achieved_goal, desired_goal, info) of the environment itself\nit takes goals [G] "
                f"and rows of them [N, G], and step returns the same{cure if of_wrapper else ''}"
            )
        shapes = {key: space[key].shape or () for key in GOAL_KEYS}
        if any(len(shape) != 1 for shape in shapes.values()):
            raise UsageError(f"env_id: {env_id!r}: expected vectors [N], got shapes {shapes}")
        return
    if isinstance(space, gymnasium.spaces.Box) and axes == 1:
        return
    came = f"a dict with {sorted(keys)}" if keys else str(space)[:100]
    made = f"{type(environment.unwrapped).__name__}(**options)"
    raise UsageError(
        f"env_id: {env_id!r}: expected observations that are a vector, or a dict with "
        f"{', '.join(GOAL_KEYS)}; got {came}\nregister what is no image under another id, as "
        f"lambda **options: gymnasium.wrappers.FlattenObservation({made})"
    )


def find_spec(env_id: str) -> gymnasium.envs.registration.EnvSpec:
    module, _, name = env_id.rpartition(":")
    if module or name not in gymnasium.registry or _ROBOTICS in sys.modules:
        import_robotics()
    if module:
        try:
            import_own(module, "env_id")
        except UsageError as error:
            _refuse_without_extra(env_id, error)
            raise
    spec = gymnasium.registry.get(name)
    if spec is None:
        if names.is_one_of(name, names.ROBOTICS) and _ROBOTICS not in sys.modules:
            if stop_requested():  # mpirun passes signals on to the processes that imports start
                raise Stopped("stopped before the first step")
            raise EnvironmentFault(
                f"{env_id}: gymnasium-robotics cannot be imported\n"
                f"cure, in this environment: {PIP_INSTALL} gymnasium-robotics "
                "'mujoco>=3.3,!=4.0.0,<5'"
            )
        near = _nearest(name, module)
        if not module:
            near += f"\nif a notebook registers it, put it into a module: --env-id my_module:{name}"
        raise UsageError(f"env_id: unknown environment {env_id!r}{near}")
    if "MujocoPy" in str(spec.entry_point):
        raise UsageError(
            f"env_id: {env_id!r} needs mujoco-py, which is no longer maintained{_nearest(name)}"
        )
    return spec


def _refuse_without_extra(env_id: str, error: BaseException) -> None:
    cause: BaseException | None = error
    while cause is not None:
        extra = _EXTRAS.get(cause.name or "") if isinstance(cause, ImportError) else None
        if extra is not None:
            raise EnvironmentFault(
                f"{env_id}: its simulator is not installed ({str(cause)[:80]})\n"
                f"cure, in this environment: {PIP_INSTALL} 'music_tf[{extra}]'"
            ) from error
        cause = cause.__cause__


def with_registered_world(config: Config) -> Config:
    """Returns the configuration with its registered world, so that other processes have it too."""
    find_spec(config.env_id)  # its module may register a world
    return dataclasses.replace(config, world=config.world.over(registered_world(config.env_id)))


@functools.cache
def import_robotics() -> None:
    """Registers the environments of gymnasium-robotics, if installed, without its warning."""
    messages = io.StringIO()
    try:
        with standard_error_to(messages), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(_ROBOTICS)
    except ImportError:
        return
    finally:
        rest = [line for line in messages.getvalue().splitlines() if "Adroit" not in line]
        sys.stderr.write("".join(f"{line}\n" for line in rest))
    simulator.catch_warnings()
    simulator.mend_joints()


def goal_environments() -> list[str]:
    """Returns the sorted ids of known and probable goal environments."""
    import_robotics()
    entries = {env_id: str(spec.entry_point) for env_id, spec in gymnasium.registry.items()}
    alive = {env_id for env_id, entry in entries.items() if "MujocoPy" not in entry}
    with_goals = {env_id for env_id in alive if names.is_one_of(env_id, names.WITH_GOALS)}
    return sorted(with_goals | set(filter(names.is_local, gymnasium.registry)))


def _nearest(name: str, module: str = "") -> str:
    """Returns advice for an unknown name: the nearest id, or how a module registers it."""
    others = set(filter(names.is_local, gymnasium.registry))
    if module and not others:
        return (
            f": the module {module!r} registers none\ncure: gymnasium.register({name!r}, ...) in it"
        )
    typed = {each: f"{module}:{each}" for each in others if module}
    typed |= {names.without_module(each): each for each in names.KNOWN}
    near = names.likely_names(name, goal_environments())[:1]
    return "".join(f"; did you mean {typed.get(each, each)!r}?" for each in near)
