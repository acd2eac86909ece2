"""Draws recorded episodes, in a process of its own: `python -m music_tf.tools.painter`.

TensorFlow and Mesa, which draws where there is no graphics card, each bring an LLVM of their
own, and a process that has loaded both crashes. So this module must not import TensorFlow: it
is given seeds and actions, plays them again, and sends the pictures back through a pipe.
"""

import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EXIT_DONE, EnvironmentFault, MusicError
from music_tf.types import Array, IntArray

Picture = npt.NDArray[np.uint8]  # [height, width, 3]
HEADER = struct.Struct("<II")
"""Height and width of each picture, sent before the first one."""
_SAME_STATE = 1e-4


class Take(NamedTuple):
    """What is needed to play episodes again."""

    seeds: IntArray  # [E]
    goals: Array  # [E, G], or [0, G] for the environment's own
    action: Array  # [E, T, A]
    length: IntArray  # [E]
    observation: Array  # [E, T + 1, O], what the episodes must look like again

    def save(self, path: Path) -> None:
        """Writes a file for `load`."""
        np.savez(path, **self._asdict())

    @classmethod
    def load(cls, path: Path) -> "Take":
        """Reads what `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{name: arrays[name] for name in cls._fields})


def pictures(envs: LockstepEnvs, take: Take) -> Iterator[Picture]:
    """Yields a picture of each first state, then, step by step, of each episode still going on.

    Raises:
        EnvironmentFault: The environment cannot be drawn, or does not repeat itself.
    """
    active = list(range(len(take.seeds)))
    goals = take.goals if len(take.goals) else None
    shown = envs.reset(active, [int(seed) for seed in take.seeds], goals).observation
    for step in range(int(take.length.max()) + 1):
        if step:
            active = [index for index in active if take.length[index] >= step]
            shown = envs.step(take.action[active, step - 1], active).observation
        if not np.allclose(shown, take.observation[active, step], atol=_SAME_STATE):
            raise EnvironmentFault(
                f"{envs.spec.env_id}: the same seed and actions do not lead to the same states "
                f"at step {step}, so it cannot be filmed; see music-tf check-env"
            )
        for index in active:
            yield envs.render(index)


def main(arguments: list[str]) -> int:
    """Draws the episodes of a file into a pipe and returns an exit code.

    Args:
        arguments: Id of the environment, path of the file, descriptor of the pipe.
    """
    env_id, path, descriptor = arguments
    take = Take.load(Path(path))
    try:
        envs = LockstepEnvs(env_id, len(take.seeds))
        with os.fdopen(int(descriptor), "wb") as pipe:
            _send(pictures(envs, take), pipe.write)
        envs.close()
    except BrokenPipeError:
        return EXIT_DONE  # nobody looks any more
    except MusicError as fault:
        sys.stderr.write(f"{fault}\n")
        return fault.exit_code
    return EXIT_DONE


def _send(drawn: Iterator[Picture], write: Callable[[bytes], object]) -> None:
    size: tuple[int, ...] | None = None
    for picture in drawn:
        if size is None:
            size = picture.shape
            write(HEADER.pack(*size[:2]))
        if picture.shape != size:
            raise EnvironmentFault(f"pictures change their size from {size} to {picture.shape}")
        write(picture.tobytes())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
