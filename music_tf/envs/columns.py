"""Which columns of an observation are the robot's, and which its surroundings'."""

from collections.abc import Sequence

from music_tf.config.settings import WorldConfig
from music_tf.errors import UsageError
from music_tf.types import EnvSpec, SplitSpec


def split_of(world: WorldConfig, spec: EnvSpec) -> SplitSpec | None:
    """Returns agent and surrounding components: as configured, else the environment's own.

    Raises:
        UsageError: A component is not there.
    """
    if not world.agent:
        return spec.split
    check_components("world.agent", world.agent, spec)
    check_components("world.surrounding", world.surrounding, spec)
    return SplitSpec(agent=world.agent, surrounding=world.surrounding)


def check_components(name: str, indices: Sequence[int], spec: EnvSpec) -> None:
    """Refuses columns that an observation does not have.

    Raises:
        UsageError: An index is out of range; `name` says whose.
    """
    if min(indices) < 0 or max(indices) >= spec.observation_dim:
        raise UsageError(
            f"{name}: expected components in 0..{spec.observation_dim - 1}, got {tuple(indices)}"
        )
