"""A copy of replay on the GPU: numpy draws indices on the host, compiled updates look them up.

A cycle transfers only its new episodes and the indices of its minibatches. A checkpoint is made
from replay on the host, so a run can be resumed with or without a copy.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from music_tf.config.world import DISCOUNT
from music_tf.envs.distance import DistanceReward
from music_tf.networks.acting import NO_GOAL, Moments, NetworkInputs
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.replay.rows import OWN, REACHES, Picks
from music_tf.training.memory import GIB
from music_tf.types import A_PLACE, EXTRAS, IntArray, Transition

_AT_ONCE = 256
"""Episodes of a worker that are transferred at a time, which limits the memory of the transfer."""
_NONE = np.zeros(0, np.int64)


def why_not_on_device(replay: ReplayBuffer, near: DistanceReward | None) -> str:
    """Returns the reason why replay has to stay on the host; empty if it can be copied."""
    if not all(isinstance(shard, Shard) for shard in replay.shards.values()):
        return "it is a ring of steps"
    if replay.goal_reward is not None and near is None:
        return "compute_reward is Python, which a device cannot call"
    if replay.goal_end is not None and (near is None or not near.ends):
        return "compute_terminated is Python, which a device cannot call"
    return ""


def _taken(values: tf.Tensor, columns: Sequence[int]) -> tf.Tensor:
    within = np.arange(values.shape[-1])[list(columns)]  # a device takes -1 for column 0
    return tf.gather(values, within, axis=-1)


class DeviceReplay:
    """Packed rows of all workers on the device, from the start as many as full stores have."""

    def __init__(
        self, replay: ReplayBuffer, near: DistanceReward | None, inputs: NetworkInputs
    ) -> None:
        """Allocates the tables, and registers a callback for rows that replay writes."""
        # `near` is the environment's reward under any goal; None without a task reward.
        shards = [shard for shard in replay.shards.values() if isinstance(shard, Shard)]
        self._shards, self._near = shards, near if replay.goal_reward is not None else None
        self._ends = replay.goal_end is not None
        self.discount, self._inputs = replay.discount, inputs
        self._reach, self._goals = shards[0].reach, shards[0].arrays["desired_goal"].shape[-1]
        self._count, self._layout = shards[0].capacity, shards[0].layout
        self._first = self._count * np.arange(len(shards))[:, None]  # [W, 1]
        self._written: list[list[IntArray]] = []
        for shard in shards:
            self._written.append([np.arange(shard.size)])
            shard.on_write = self._written[-1].append
        sizes = [rows.shape[-1] for rows in shards[0].numbers(_NONE)]
        self._each = (replay.longest + 1, replay.longest, 1)
        counts = [len(shards) * self._count * each for each in self._each]
        shapes = list(zip(counts, sizes, strict=True))
        self.bytes = sum(4 * rows * size for rows, size in shapes)
        try:
            self.tables = [tf.Variable(tf.zeros(shape), trainable=False) for shape in shapes]
        except tf.errors.ResourceExhaustedError as error:
            text = f"{self.bytes / GIB:.1f} GiB of replay do not fit on the device"
            raise MemoryError(text) from error

    def refresh(self) -> None:
        """Copies the rows that have been written since the last call."""
        waiting = [np.unique(np.concatenate(written or [_NONE])) for written in self._written]
        for written in self._written:
            written.clear()
        for start in range(0, max(map(len, waiting)), _AT_ONCE):
            slots = [written[start : start + _AT_ONCE] for written in waiting]
            rows = zip(*map(Shard.numbers, self._shards, slots), strict=True)
            places = np.concatenate([*map(np.add, self._first[:, 0], slots)])
            for table, each, new in zip(self.tables, self._each, rows, strict=True):
                at = (places[:, None] * each + np.arange(each)).ravel()
                values = np.concatenate(new).reshape(len(at), table.shape[1])
                table.scatter_update(tf.IndexedSlices(values, at))

    def transitions(self, picks: Picks, *, paid: bool = True) -> Transition:
        """Returns the picked transitions as tensors, [W, B, ...]."""
        del paid  # a compiled program computes no reward that nobody reads
        states, steps, episodes = self.tables
        slot, time, chosen = picks.slot + self._first, picks.time, picks.goal
        if self._reach is not None:
            chosen = tf.where(chosen < OWN, REACHES - chosen, chosen)
        states_each, steps_each, _ = self._each
        first = slot * states_each
        state, after = tf.gather(states, first + time), tf.gather(states, first + time + 1)
        step = tf.gather(steps, slot * steps_each + time)
        episode = tf.gather(episodes, slot)
        goal = episode[..., : self._goals]
        later = tf.gather(states, first + tf.maximum(chosen, 0))
        goal = tf.where((chosen >= 0)[..., None], self._of(later, "achieved_goal"), goal)
        returned, terminated, lost, length = tf.unstack(episode[..., -4:], axis=-1)
        ended, lost = terminated > 0.0, lost > 0.0
        last = time == tf.cast(length, tf.int64) - 1
        reward = self._of(step, "reward")[..., 0]
        if self._goals:
            reward = self._paid(self._of(after, "achieved_goal"), goal)
        over = last & (ended | lost)
        if self._near is not None and self._ends:
            near = within(self._near.threshold, self._of(after, "achieved_goal"), goal)
            over |= (picks.goal >= 0) & near
        discount = tf.where(over, 0.0, tf.constant(self.discount, tf.float32))
        if self._reach is not None:
            reach, reaches = self._reach, picks.goal < OWN
            places = self._seen(later, reach.hand), self._seen(state, reach.object)
            place, leads = tf.where((chosen >= 0)[..., None], *places), reaches[..., None]
            goal = tf.concat(
                [tf.where(leads, 0.0, goal), tf.where(leads, place + A_PLACE, 0.0)], -1
            )
            if self._near is not None:
                there = within(reach.within, self._seen(after, reach.hand), place)
                reward = tf.where(reaches, tf.where(there, *reversed(reach.rewards)), reward)
        extras, next_extras = self._extras(state), self._extras(after)
        if DISCOUNT in next_extras:
            discount *= next_extras[DISCOUNT][..., 0]
        return Transition(
            observation=self._of(state, "observation"),
            desired_goal=goal,
            action=self._of(step, "action"),
            reward=reward,
            discount=discount,
            truncated=last & ~over,
            lost=last & lost,
            next_observation=self._of(after, "observation"),
            skill=episode[..., self._goals : -4],
            episode_return=returned,
            extras=extras,
            next_extras=next_extras,
        )

    def trajectories(self, slots: tf.Tensor, columns: Sequence[int]) -> tf.Tensor:
        """Returns observation columns of the episodes in `slots` [W, M], [W, M, T + 1, D]."""
        states = (slots + self._first)[..., None] * self._each[0] + np.arange(self._each[0])
        return self._seen(tf.gather(self.tables[0], states), columns)

    def inputs(
        self, moments: Sequence[Moments], observation: tf.Tensor, goal: tf.Tensor, skill: tf.Tensor
    ) -> tf.Tensor:
        """Returns network inputs [W, B, I] as `NetworkInputs` does, with the given moments."""

        def normalized(values: tf.Tensor, mean: tf.Tensor, deviation: tf.Tensor) -> tf.Tensor:
            most, clip = self._inputs.config.input_clip, self._inputs.config.clip
            scaled = (tf.clip_by_value(values, -most, most) - mean) / deviation
            return tf.clip_by_value(scaled, -clip, clip)

        observed, goals = moments
        if self._inputs.condition < skill.shape[-1]:
            skill = skill[..., : self._inputs.condition]
        if self._reach is None:
            aims = normalized(goal, *goals)
        else:  # as `types.offsets`
            hand, thing = (_taken(observation, of) for of in (self._reach.hand, self._reach.object))
            goal, place = tf.split(goal, 2, axis=-1)
            reaches = tf.reduce_any(place != 0.0, axis=-1, keepdims=True)
            ways = tf.concat([goal - thing, tf.where(reaches, place, thing) - hand], -1)
            of_object, of_hand = tf.split(normalized(ways, *goals), 2, axis=-1)
            aims = tf.concat([tf.where(reaches, NO_GOAL, of_object), of_hand], -1)
        return tf.concat([normalized(observation, *observed), skill, aims], -1)

    def _of(self, rows: tf.Tensor, name: str) -> tf.Tensor:
        return rows[..., self._layout[name]]

    def _seen(self, state: tf.Tensor, columns: Sequence[int]) -> tf.Tensor:
        return _taken(self._of(state, "observation"), columns)

    def _extras(self, state: tf.Tensor) -> Mapping[str, tf.Tensor]:
        names = [name for name in self._layout if name.startswith(EXTRAS)]
        return {name.removeprefix(EXTRAS): self._of(state, name) for name in names}

    def _paid(self, achieved: tf.Tensor, goal: tf.Tensor) -> tf.Tensor:
        """Returns the task reward under each goal, [W, B]; zeros without a task reward."""
        if self._near is None:
            return tf.zeros(goal.shape[:-1])
        near = within(self._near.threshold, achieved, goal)
        return tf.where(near, self._near.near, self._near.far)


def within(threshold: float, achieved: tf.Tensor, goal: tf.Tensor) -> tf.Tensor:
    """Returns whether goals [..., G] lie at most `threshold` apart, [...]."""
    return tf.sqrt(tf.reduce_sum(tf.square(achieved - goal), axis=-1)) <= threshold
