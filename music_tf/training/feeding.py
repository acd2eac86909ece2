"""Draws what updates are fed from replay, and looks it up here or on the GPU."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from music_tf.conditions import fresh_conditions
from music_tf.config.settings import Config
from music_tf.intrinsic.base import RewardTerm
from music_tf.networks.acting import Moments
from music_tf.normalizer import InputMoments
from music_tf.randomness import stream
from music_tf.replay.buffer import ReplayBuffer
from music_tf.replay.rows import Picks
from music_tf.training import feeds
from music_tf.training.device import DeviceReplay
from music_tf.training.rewards import Rewards
from music_tf.types import Array

_ROWS_AT_ONCE = 409_600
"""Steps of a worker that are looked up at a time: those of 100 minibatches of 4,096."""


class Feeding:
    """Feeds updates with transitions that are looked up on the host."""

    def __init__(
        self, config: Config, replay: ReplayBuffer, inputs: InputMoments, rewards: Rewards
    ) -> None:
        self._config, self._replay, self._inputs, self._rewards = config, replay, inputs, rewards

    def parts(
        self, cycle: int, terms: Sequence[RewardTerm], count: int | None = None
    ) -> Iterator[feeds.Feed]:
        """Yields a turn's inputs in `count` parts, since all would take hundreds of megabytes."""
        config, replay, inputs = self._config, self._replay, self._inputs.now
        picks, noise = self._drawn(cycle, terms)
        fed = {term.name: term.feed(replay, config.updates * term.times, cycle) for term in terms}
        rows = config.updates * config.replay.batch_size
        size = math.ceil(config.updates / (count or math.ceil(rows / _ROWS_AT_ONCE)))
        for start in range(0, config.updates, size):
            part = slice(start, min(start + size, config.updates))
            beside = feeds.rows_of_part(part, config.updates, noise)
            batch = replay.transitions(Picks(*(each[part] for each in picks)))
            batch = feeds.under_fresh_conditions(batch, beside)
            yield feeds.Batches(
                batch,
                inputs(batch.observation, batch.desired_goal, batch.skill),
                inputs(batch.next_observation, batch.desired_goal, batch.skill),
                feeds.rows_of_part(part, config.updates, fed),
                beside,
            )

    def _drawn(self, cycle: int, terms: Sequence[RewardTerm]) -> tuple[Picks, dict[str, Array]]:
        """Draws transitions, noise and fresh conditions, the same with a GPU and without."""
        config, replay, learner = self._config, self._replay, self._rewards.update.learner
        noise = learner.draws(
            [stream(config.seed, "agent/noise", worker, cycle) for worker in replay.shards],
            config.updates,
            config.replay.batch_size,
        )
        noise |= learner.feed(replay, self._inputs.now, config.updates, cycle)
        picks = replay.pick(config.updates, cycle)
        return picks, noise | self._fresh_conditions(cycle, picks, terms)

    def _fresh_conditions(
        self, cycle: int, picks: Picks, terms: Sequence[RewardTerm]
    ) -> dict[str, Array]:
        """Draws fresh conditions and the steps that get one; empty without such relabelling."""
        config, replay, rewards = self._config, self._replay, self._rewards
        if not config.condition.relabel:
            return {}
        shape, chances = (config.updates, config.replay.batch_size), rewards.prior()
        fresh, chosen = [], []
        for worker in replay.shards:
            generator = stream(config.seed, "replay/conditions", worker, cycle)
            chosen.append(generator.random(shape) < config.condition.relabel)
            size = config.condition_size
            fresh.append(fresh_conditions(config.condition, size, generator, shape, chances))
        conditions, relabelled = np.stack(fresh, axis=1), np.stack(chosen, axis=1)
        for term in terms:
            if term.fulfilled is not None:
                conditions = term.fulfilled(rewards.update.weights(), replay, picks)
        return {feeds.FRESH: conditions, feeds.RELABELLED: relabelled.astype(np.float32)}


class DeviceFeeding(Feeding):
    """Feeds updates with draws, which compiled updates look up in a copy of replay on the GPU."""

    def __init__(
        self,
        config: Config,
        replay: ReplayBuffer,
        inputs: InputMoments,
        rewards: Rewards,
        device: DeviceReplay,
    ) -> None:
        super().__init__(config, replay, inputs, rewards)
        self.device = device
        rewards.update.look_up = self._looked_up

    def parts(
        self, cycle: int, terms: Sequence[RewardTerm], count: int | None = None
    ) -> Iterator[feeds.Draws]:
        """Yields the draws of one turn of updates at once, since they are small."""
        updates, inputs = self._config.updates, self._inputs.now
        picks, noise = self._drawn(cycle, terms)
        self.device.refresh()
        drawn = {}
        for term in terms:
            draw = term.feed if term.feeds_itself else term.draws
            drawn[term.name] = draw(self._replay, updates * term.times, cycle)
        moments = [
            Moments(*(np.broadcast_to(each, (updates, len(each))) for each in moment))
            for moment in (inputs.observation, inputs.goal)
        ]
        yield feeds.Draws(picks, moments, drawn, noise)

    def _looked_up(self, now: feeds.Draws) -> feeds.Batches:
        """Returns the minibatches of one update, within the compiled loop."""
        device, by_name = self.device, {term.name: term for term in self._rewards.terms}
        batch = feeds.under_fresh_conditions(device.transitions(now.transitions), now.noise)
        terms = {
            name: drawn if by_name[name].feeds_itself else by_name[name].looked_up(drawn, device)
            for name, drawn in now.terms.items()
        }
        inputs, next_inputs = (
            device.inputs(now.moments, state, batch.desired_goal, batch.skill)
            for state in (batch.observation, batch.next_observation)
        )
        return feeds.Batches(batch, inputs, next_inputs, terms, now.noise)
