"""Minibatches and trajectories as replay draws them, in one step."""

from music_tf.replay.buffer import LEARNING


def sample_transitions(replay, updates, cycle, purpose=LEARNING):
    """Relabelled minibatches for all updates of a cycle, [U, W, B, ...]."""
    return replay.transitions(replay.pick(updates, cycle, purpose))


def sample_trajectories(replay, updates, count, cycle, columns=None):
    """Whole trajectories [U, W, M, T + 1, D] for each update, and their lengths [U, W, M]."""
    slots, lengths = replay.pick_trajectories(updates, count, cycle)
    return replay.trajectories(slots, columns), lengths
