"""How much work each measurement takes; standard library only."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
    """Counts of one repetition."""

    env_episodes: int
    """Episodes of 50 steps, of each of the three ways to step."""
    stored_episodes: int
    """Episodes in replay before updates are timed."""
    rounds: int
    """Timed calls of all updates of a cycle, each after a look at the matrix-multiply peak."""
    updates: int
    """Updates a call."""
    trajectories: int
    """Episodes in a batch of the statistics network."""
    matrices: tuple[int, ...]
    """Sizes of the square matrices whose fastest product is the peak."""
    warm_cycles: int
    """Cycles of two ranks before the timed ones."""
    cycles: int
    """Timed cycles of two ranks."""
    memory_env: str
    memory_cycles: int
    """Cycles of the run whose memory is looked at."""


FULL = Sizes(
    env_episodes=20,
    stored_episodes=200,
    rounds=8,
    updates=40,
    trajectories=256,
    matrices=(512, 1024, 2048),
    warm_cycles=3,
    cycles=10,
    memory_env="FetchPush-v4",
    memory_cycles=4,
)
QUICK = Sizes(
    env_episodes=1,
    stored_episodes=4,
    rounds=1,
    updates=2,
    trajectories=4,
    matrices=(64,),
    warm_cycles=1,
    cycles=1,
    memory_env="music_tf/PointPush-v0",
    memory_cycles=1,
)
