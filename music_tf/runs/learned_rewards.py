"""The learned rewards of a run, without learner, replay or optimiser; importing loads TensorFlow.

`python -m music_tf.runs.learned_rewards RUN JOB.npz OUT.npz ENV_ID` writes them along episodes.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EXIT_DONE, MusicError, UsageError
from music_tf.gate import Arrays
from music_tf.intrinsic.base import RewardTerm
from music_tf.intrinsic.term_outputs import reward_of
from music_tf.networks.parameters import Layout
from music_tf.reading.stored import allow_modules, read_run
from music_tf.replay.buffer import all_transitions
from music_tf.runs.comparison import Trace
from music_tf.training.build import build_terms
from music_tf.training.evaluation import Evaluation, counting
from music_tf.training.update import joined
from music_tf.types import Array, Episodes, Metrics


class LearnedRewards:
    """The reward terms of a run at the weights of one checkpoint."""

    def __init__(self, evaluation: Evaluation, arrays: Arrays) -> None:
        self._evaluation = evaluation
        self._terms = build_terms(evaluation.config, evaluation.envs)
        by_level = (n for n, t in evaluation.config.rewards.items() if t.weight_by != "epoch")
        self._levels = {n: float(arrays.get(f"level/{n}", [0.0])[0]) for n in by_level}
        """Levels of weights; those of the start in weights that were exported."""
        layout = Layout(network for term in self._terms for network in term.networks)
        try:
            self._weights = layout.split(tf.constant(joined(arrays, "parameters", layout)))
            for term in self._terms:
                term.load(arrays)
        except ValueError as error:
            raise UsageError(f"the checkpoint does not fit config.json\n{error}") from error

    def heldout(self, played: Episodes, epoch: int) -> Metrics:
        """Returns hold-out metrics of the terms that still count at an epoch, or of all."""
        terms = [term for term in counting(self._terms, epoch, self._levels) if term.networks]
        return self._evaluation.heldout(terms, self._weights, played)

    def traces(self, played: Episodes) -> list[Trace]:
        """Returns each learned reward at each step with full weight, also in the padding."""
        return [
            Trace(
                term.name,
                term.mixing(self._raw(term, played), tf.constant(1.0)).numpy(),
                *term.mixing.range,
            )
            for term in self._terms
            if term.networks
        ]

    def raw(self, name: str, played: Episodes) -> Array:
        """Returns the raw reward of one term for each step, [E, T]; padding too."""
        (term,) = (term for term in self._terms if term.name == name)
        rewards: Array = self._raw(term, played).numpy()
        return rewards

    def _raw(self, term: RewardTerm, played: Episodes) -> tf.Tensor:
        steps = tf.nest.map_structure(tf.convert_to_tensor, all_transitions(played))
        return reward_of(term, self._weights, steps, term.steady_feed(len(played.length)))


def main(arguments: list[str]) -> int:
    run, job, out, env_id = arguments
    try:
        with np.load(job, allow_pickle=False) as file:
            arrays = dict(file)
        allow_modules(Path(run))  # the calling process was allowed to read this run
        config = read_run(Path(run), env_id).config
        envs = LockstepEnvs(env_id, 1, config.env, world=config.world)
        evaluation = Evaluation(envs, config, Communicator(alone=True))
        traces = LearnedRewards(evaluation, arrays).traces(Episodes.from_named(arrays))
        envs.close()
    except MusicError as fault:
        sys.stdout.write(f"{fault}\n")
        return fault.exit_code
    rewards: dict[str, Any] = {}
    for trace in traces:
        rewards[trace.name] = trace.values
        rewards[f"{trace.name}/range"] = np.array([trace.lowest, trace.highest])
    np.savez(out, **rewards)
    return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
