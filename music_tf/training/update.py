"""The compiled update of all networks: rewards, losses, and an Adam step in each phase."""

import contextlib
import functools
import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch, Learner
from music_tf.config.agents import AgentConfig
from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from music_tf.gate import check_fit, expected_of, is_count
from music_tf.hints import fits
from music_tf.intrinsic.base import RewardTerm
from music_tf.intrinsic.term_outputs import check_feed, gate_of, loss_of, measures_of, reward_of
from music_tf.networks.parameters import Layout, Network, Scalar, compiled
from music_tf.process.watchdog import heartbeat, longer_timeout
from music_tf.training.adam import AdamState, adam_step
from music_tf.training.feeds import Batches, Feed, Schedules, as_tensor
from music_tf.training.parts import Part
from music_tf.training.phases import LaidPhase, networks_of, phases_of
from music_tf.types import Array, Metrics

DESYNC_INTERVAL = 100
"""Updates between bitwise comparisons of the parameters of all ranks, at the end of a cycle."""
HEARTBEAT_INTERVAL = 10
"""Updates between heartbeats where one rank learns; each calls Python from the compiled loop."""
Logs: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor]
"""Metrics [metrics], minima and maxima of rewards [terms]; of all updates with an axis before."""


class Update(Part):
    """Parameters, targets, moments, and the compiled loop: one all-reduce of a gradient a phase."""

    def __init__(
        self,
        learner: Learner,
        terms: Sequence[RewardTerm],  # in the order in which they are summed
        config: AgentConfig,
        discount: float,  # gamma, for the return after the object is lost
        comm: Communicator,  # the ranks that learn
        workers: int,  # of all ranks
    ) -> None:
        """Lays out all networks in one vector and makes it equal on all ranks."""
        self.learner = learner
        self.terms = list(terms)
        self._config = config
        self.discount = discount
        self._horizon = discount / (1.0 - discount)
        self._comm = comm
        self._workers = workers
        self.layout = Layout([*learner.networks, *networks_of(learner, self.terms)])
        self.targets_layout = Layout(learner.target_networks)
        self._phases = phases_of(learner, self.terms, self.layout)
        self.learns_early = any(phase.early for phase in self._phases)
        """Whether a phase learns before the first update of actor and critics."""
        self._paid_in = [phase.learner is not None for phase in self._phases].index(True)
        self._slow = self.layout.span([network.name for network in learner.target_networks])
        initial = comm.broadcast(self.layout.initial())
        self.parameters = tf.Variable(initial)
        self.targets = tf.Variable(initial[self._slow])
        self.moments = [AdamState.zeros(initial[phase.own]) for phase in self._phases]
        self.step = tf.Variable(0, dtype=tf.int64)
        self._phase_steps = [tf.Variable(0, dtype=tf.int64) for _ in self._phases]
        self._learning_rate = tf.Variable(self.layout.learning_rates())
        self.step_scale = 1.0
        self._names: dict[tuple[frozenset[str], bool], tuple[list[tuple[str, int]], list[str]]] = {}
        self._traced: set[tuple[Hashable, ...]] = set()
        """Terms, numbers of updates, modes and shapes for which the loop has been compiled."""
        self._compile(xla=False)
        self._move_targets = compiled(self._polyak)
        self._xla = False
        self.look_up: Callable[[Any], Batches] = lambda row: row
        """Turns a row of `Draws` into `Batches` in the compiled loop."""

    def use_xla(self) -> None:
        """Compiles all updates of a cycle into one XLA program without callbacks, for a GPU."""
        # nor heartbeats: watchdogs need a timeout longer than a cycle
        if self._comm.size > 1:
            raise ValueError("use_xla: ranks that learn together meet between updates")
        self._xla = True
        self._compile(xla=True)

    def hlo(self, feed: Feed, schedules: Schedules) -> str:
        """Returns the optimised HLO program of a cycle's updates as text, after `use_xla`."""
        tensors: Any = tf.nest.map_structure(tf.convert_to_tensor, feed)
        program: Any = self._run_updates
        compiler_ir = program.experimental_get_compiler_ir(tensors, schedules)
        return str(compiler_ir(stage="optimized_hlo"))

    def run(self, feed: Feed, schedules: Schedules) -> Metrics:
        return self.run_parts([feed], schedules)

    def run_parts(
        self, feeds: Iterable[Feed], schedules: Schedules, early: bool = False
    ) -> Metrics:
        """Takes all updates of a cycle, or the steps of early phases; returns means over updates.

        The sum of these over ranks is the mean over workers; `_min` and `_max` are of this rank.
        """
        pairs = zip(self._phase_steps, self._phases, strict=True)
        steps = [count for count, phase in pairs if phase.early] if early else [self.step]
        before, parts = int(steps[0].numpy()), []
        fed: frozenset[str] = frozenset()
        evidence: Mapping[str, Array] = {}
        for feed in feeds:
            fed = frozenset(feed.terms)
            parts.append(self._take(feed, schedules, early))
            if not evidence and not np.isfinite(parts[-1][0]).all():
                evidence = feed.named()
        rows, lows, highs = (np.concatenate(logs) for logs in zip(*parts, strict=True))
        done = before + len(rows)
        if self._config.polyak_every == "cycle" and not early:
            self._move_targets()
        if done // DESYNC_INTERVAL > before // DESYNC_INTERVAL:
            self.check_equal()
        logged, paid = self._names[fed, early]
        sums = np.add.accumulate(rows)[-1]  # in a fixed order, on any processor
        values = {
            name: value / times
            for (name, every), value in zip(logged, sums, strict=True)
            if (times := done // every - before // every)
        }
        bad = [name for name, value in values.items() if not np.isfinite(value)]
        if not bad and not np.isfinite(tf.reduce_sum(self.parameters).numpy()):
            # a ReLU of NaN is 0 on some processors, so that all metrics may be finite
            arrays = self.layout.name_arrays(self.parameters.numpy())
            bad = [name for name, array in arrays.items() if not np.isfinite(array).all()]
        if self._comm.any(bool(bad)):
            bad_by_rank = self._comm.allgather(bad)
            names = dict.fromkeys(name for names in bad_by_rank for name in names)
            ranks = [rank for rank, names in enumerate(bad_by_rank) if names]
            raise NumbersFault(
                f"non-finite numbers within the {done} updates so far, on ranks "
                f"{ranks}: {', '.join(names)}\n"
                "the last checkpoint is intact; smaller learning rates may help",
                evidence or feed.named(),
            )
        for name, low, high in zip(paid, lows.min(axis=0), highs.max(axis=0), strict=True):
            values[f"reward/{name}_min"], values[f"reward/{name}_max"] = low, high
        return {name: float(value) for name, value in values.items()}

    def _take(self, feed: Feed, schedules: Schedules, early: bool) -> list[Array]:
        """Takes the updates of a part; returns rows of metrics, reward minima and maxima."""
        tensors, updates = tf.nest.map_structure(as_tensor, feed), len(feed.transitions[0])
        for name, term in self._fed(feed).items():
            check_feed(name, feed.terms[name], term.times * updates)
        shapes = tuple(np.shape(each) for each in tf.nest.flatten(tensors))
        traced = frozenset(feed.terms), updates, early, shapes
        run = self._run_early if early else self._run_updates
        new = traced not in self._traced
        self._traced.add(traced)
        try:
            with longer_timeout() if new else contextlib.nullcontext():
                return list(map(np.asarray, run(tensors, schedules)))
        except tf.errors.ResourceExhaustedError as error:
            raise MemoryError(f"the updates do not fit: {error.message[:200]}") from error

    def check_equal(self) -> None:
        """Compares the parameters of all ranks bit by bit; a collective call."""
        arrays = self.layout.name_arrays(self.parameters.numpy())
        check_same_state(arrays, int(self.step.numpy()), self._comm)

    def scale_steps(self, scale: float) -> None:
        self.step_scale = scale
        self._learning_rate.assign(np.float32(scale) * self.layout.learning_rates())

    def weights(self) -> dict[str, list[tf.Tensor]]:
        return self.layout.split(tf.convert_to_tensor(self.parameters))

    def actor_weights(self) -> dict[str, Array]:
        return self.arrays_of([self.learner.networks[0]])

    def arrays_of(self, networks: Sequence[Network | Scalar]) -> dict[str, Array]:
        span = self.layout.span([network.name for network in networks])
        return Layout(networks).name_arrays(self.parameters[span].numpy())

    def shared(self) -> dict[str, np.ndarray]:
        first, second = np.zeros([2, self.layout.size], np.float32)
        for phase, moments in zip(self._phases, self.moments, strict=True):
            first[phase.own], second[phase.own] = moments.first.numpy(), moments.second.numpy()
        vectors = {
            "parameters": (self.layout, self.parameters.numpy()),
            "adam_first": (self.layout, first),
            "adam_second": (self.layout, second),
            "targets": (self.targets_layout, self.targets.numpy()),
        }
        return {
            f"{kind}/{name}": array
            for kind, (layout, vector) in vectors.items()
            for name, array in layout.name_arrays(vector).items()
        }

    def meta(self) -> dict[str, object]:
        steps = [int(step.numpy()) for step in self._phase_steps]
        counts = {"updates": int(self.step.numpy()), "step_scale": self.step_scale}
        alike = steps == [counts["updates"]]  # one phase, and the learner was never reset
        return counts | ({} if alike else {"phase_steps": steps})

    def load(self, shared: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        updates, scale = meta.get("updates", -1), meta.get("step_scale", 0.0)
        if not (is_count(updates) and fits(scale, float) and 0.0 < scale <= 1.0):
            raise ValueError(
                f"meta.updates, step_scale: not what a run saves: {str((updates, scale))[:80]}"
            )
        first = joined(shared, "adam_first", self.layout)
        second = joined(shared, "adam_second", self.layout)
        self.start_from(shared)
        for phase, moments in zip(self._phases, self.moments, strict=True):
            moments.first.assign(first[phase.own])
            moments.second.assign(second[phase.own])
        steps = meta.get("phase_steps") or [updates]
        if not fits(steps, list[int]) or min(steps) < 0 or len(steps) != len(self._phase_steps):
            raise ValueError(f"phase_steps: not what a run saves: {str(steps)[:80]}")
        self.step.assign(updates)
        for step, number in zip(self._phase_steps, steps, strict=True):
            step.assign(number)
        self.scale_steps(scale)

    def start_from(self, shared: Mapping[str, np.ndarray]) -> None:
        self.parameters.assign(joined(shared, "parameters", self.layout))
        self.targets.assign(joined(shared, "targets", self.targets_layout))

    def begin_anew(self, initial: Array) -> None:
        """Resets weights (to the root's `initial`), targets, moments and steps of the learner."""
        # In place, so that no loop is compiled again; a collective call. Networks of terms keep
        # weights and moments, but a phase that they share with the learner counts steps anew.
        span = self.layout.span([network.name for network in self.learner.networks])
        parameters = self.parameters.numpy()
        parameters[span] = self._comm.broadcast(initial)
        self.parameters.assign(parameters)
        self.targets.assign(parameters[self._slow])
        for phase, moments, step in zip(self._phases, self.moments, self._phase_steps, strict=True):
            if phase.learner is not None:
                others = (np.arange(self.layout.size) >= span.stop)[phase.own]
                for moment in (moments.first, moments.second):
                    moment.assign(np.where(others, moment.numpy(), np.float32(0.0)))
                step.assign(0)

    def _compile(self, xla: bool) -> None:
        self._run_updates = compiled(lambda feed, now: self._updates(feed, now, early=False), xla)
        self._run_early = compiled(lambda feed, now: self._updates(feed, now, early=True), xla)

    def _updates(self, feed: Feed, schedules: Schedules, early: bool) -> Logs:
        updates = feed.transitions[0].shape[0]

        def body(index: tf.Tensor, *logs: tf.TensorArray) -> tuple[tf.Tensor, ...]:
            rows = self._update(feed, index, schedules, early)
            return index + 1, *(log.write(index, row) for log, row in zip(logs, rows, strict=True))

        start = (tf.constant(0), *(tf.TensorArray(tf.float32, updates) for _ in range(3)))
        _, *logs = tf.while_loop(
            lambda index, *_: index < updates, body, start, parallel_iterations=1
        )
        values, lows, highs = (log.stack() for log in logs)
        return values, lows, highs

    def _update(self, feed: Feed, index: tf.Tensor, schedules: Schedules, early: bool) -> Logs:
        """Takes one update, phase after phase; returns its row of each log.

        A metric of several phases is logged by the first of them. TensorFlow orders sums by the
        names of operations, such as mul_2 and mul_18, so adding, dropping or moving an operation
        here changes the last bits of results.
        """
        step = tf.constant(0, tf.int64) if early else self.step.assign_add(1)
        names: list[tuple[str, int]] = []
        rows: list[tf.Tensor] = []
        gradients: list[tf.Tensor] = []
        paid: dict[str, tf.Tensor] = {}
        carried: dict[str, tf.Tensor] = {}

        def take(number: int) -> tuple[tf.Tensor, tf.Tensor]:
            phase = self._phases[number]
            for turn in range(phase.times):
                now = self.look_up(self._row(feed, index, turn))
                now = now._replace(noise={**now.noise, **carried})
                gradient, metrics, rewards, left = self._gradient(phase, now, schedules)
                gradient = self._summed_over_ranks(gradient, index)
                adam_step(
                    self.parameters,
                    gradient,
                    self.moments[number],
                    tf.cast(self._phase_steps[number].assign_add(1), tf.float32),
                    self._learning_rate,
                    None if len(self._phases) == 1 else phase.own,
                )
            if number == self._paid_in:
                carried.update(left)
                paid.update(rewards)
                for name, reward in rewards.items():
                    metrics[f"reward/{name}_mean"] = tf.reduce_mean(reward, axis=-1)
                    metrics[f"reward/{name}_square"] = tf.reduce_mean(tf.square(reward), axis=-1)
            earlier = {name for name, _ in names}
            logged = [name for name in metrics if name not in earlier]
            names.extend((name, 1 if early else phase.every) for name in logged)
            if not logged:
                return tf.zeros([0]), gradient
            shares = [tf.reduce_sum(metrics[name]) for name in logged]
            return tf.stack(shares) / self._workers, gradient

        for number, phase in enumerate(self._phases):
            if early and not phase.early:
                continue
            if phase.every == 1 or early:
                values, gradient = take(number)
            else:
                known, size = len(names), self.moments[number].first.shape
                values, gradient = tf.cond(
                    tf.equal(step % phase.every, 0),
                    functools.partial(take, number),
                    lambda known=known, size=size: (tf.zeros([len(names) - known]), tf.zeros(size)),
                )
            rows.append(values)
            gradients.append(gradient)
        if not early:
            self._polyak_where_due(step)
        logged = [*names, ("train/grad_norm", 1)]
        self._names[frozenset(feed.terms), early] = logged, list(paid)
        norm = tf.norm(gradients[0] if len(gradients) == 1 else tf.concat(gradients, axis=0))
        return (
            tf.concat([*rows, [norm / self._comm.size]], axis=0),
            _stacked([tf.reduce_min(reward) for reward in paid.values()]),
            _stacked([tf.reduce_max(reward) for reward in paid.values()]),
        )

    def _row(self, feed: Feed, index: tf.Tensor, turn: int) -> Any:
        """Returns the feed of one update; a term with several steps has a row for each `turn`."""

        def row(at: tf.Tensor, values: Any) -> Any:
            return tf.nest.map_structure(lambda array: array[at], values)

        def rows_of_terms() -> Mapping[str, Any]:
            return {
                name: row(index if term.times == 1 else index * term.times + turn, feed.terms[name])
                for name, term in self._fed(feed).items()
            }

        fields: Any = (
            rows_of_terms() if name == "terms" else row(index, values)
            for name, values in feed._asdict().items()
        )
        return type(feed)(*fields)

    def _fed(self, feed: Feed) -> dict[str, RewardTerm]:
        return {term.name: term for term in self.terms if term.name in feed.terms}

    def _gradient(
        self, phase: LaidPhase, now: Batches, schedules: Schedules
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor], dict[str, tf.Tensor], Mapping[str, tf.Tensor]]:
        r"""Returns gradient, metrics [W], rewards [W, B] and carried tensors of a phase, by name.

        A term pays w * (pay(c * r) + shift). After the object is lost, each term pays its lowest
        reward for ever, which adds to the reward of that step

        .. math:: \frac{\gamma}{1 - \gamma} \sum_i w_i (lo_i + shift_i)

        The gradient is that of the phase's networks, flat; later phases get the carried tensors.
        """
        flat = tf.convert_to_tensor(self.parameters)
        targets = self.targets_layout.split(tf.convert_to_tensor(self.targets))
        whole = phase.own == slice(0, self.layout.size)
        own = flat if whole else flat[phase.own]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(own)
            weights = self.layout.split(own if whole else flat)
            if not whole:  # other networks are constants: no gradient flows through them
                weights |= phase.layout.split(own)
            fed, factors = self._fed(now), dict(schedules.terms)
            for name, weight in schedules.terms.items():
                if name in fed and (gate := gate_of(fed[name], now.transitions)) is not None:
                    factors[name] = weight * gate
            paid: dict[str, tf.Tensor] = {}
            measured: dict[str, tf.Tensor] = {}
            for name, term in fed.items():
                reward = reward_of(term, weights, now.transitions, now.terms[name])
                paid[name] = term.mixing(reward, factors[name])
                measured |= measures_of(term, reward, now.transitions, now.terms[name])
            total = tf.constant(0.0)
            metrics: dict[str, tf.Tensor] = {}
            carried: Mapping[str, tf.Tensor] = {}
            if phase.learner is not None:
                lowest = [term.mixing.lowest(factors[name]) for name, term in fed.items()]
                batch = self._batch(now, list(paid.values()), lowest)
                batch = batch._replace(bounds=schedules.bounds)
                losses = phase.learner.losses(weights, targets, batch, now.noise, schedules.entropy)
                total, metrics = tf.reduce_sum(losses.total), {**losses.metrics, **measured}
                paid |= losses.paid
                carried = losses.carried
            for term in phase.terms:
                if term.name in now.terms:
                    workers = now.transitions.reward.shape[0]
                    loss, learned = loss_of(term, weights, now.terms[term.name], workers)
                    total += tf.reduce_sum(loss)
                    metrics |= learned
        gradient = tape.gradient(total, own)
        gradient = tf.zeros_like(own) if gradient is None else gradient
        if self._config.gradient_reduce == "mean":
            gradient /= self._workers
        return gradient, metrics, paid, carried

    def _batch(self, now: Batches, paid: Sequence[tf.Tensor], lowest: list[tf.Tensor]) -> Batch:
        """Returns the learner's minibatch, from rewards [W, B] and the lowest reward of terms."""
        if any(each.shape.rank for each in lowest):  # a gate makes it [W, B]
            lowest = [each + tf.zeros_like(now.transitions.reward) for each in lowest]
        for_ever = self._horizon * tf.add_n(lowest)
        aftermath = tf.where(now.transitions.lost, for_ever, 0.0)
        reward, discount = tf.add_n([*paid, aftermath]), now.transitions.discount
        if self._config.truncated == "terminal":
            discount = tf.where(now.transitions.truncated, 0.0, discount)
        return Batch(
            inputs=now.inputs,
            next_inputs=now.next_inputs,
            action=now.transitions.action,
            reward=reward,
            discount=discount,
            truncated=now.transitions.truncated,
        )

    def _summed_over_ranks(self, gradient: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        """Sums the flat gradient over ranks within the compiled loop, with a heartbeat."""

        def beat() -> np.bool_:
            heartbeat()
            return np.True_

        def reduce(own: Array) -> Array:
            total = np.empty_like(own)
            self._comm.sum_into(own, total)
            heartbeat()
            return total

        if self._xla:
            return gradient
        if self._comm.size == 1:
            due = index % HEARTBEAT_INTERVAL == 0
            tf.cond(due, lambda: tf.numpy_function(beat, [], tf.bool), lambda: True)
            return gradient
        return tf.ensure_shape(tf.numpy_function(reduce, [gradient], tf.float32), gradient.shape)

    def _polyak_where_due(self, step: tf.Tensor) -> None:
        every = self._config.polyak_every
        if every in ("update", 1):
            self._polyak()
        elif every != "cycle":
            tf.cond(tf.equal(step % every, 0), self._polyak, lambda: None)

    def _polyak(self) -> None:
        """Moves the targets: theta' <- theta' + (1 - p)(theta - theta')."""
        online = self.parameters[self._slow]
        self.targets.assign_add((1.0 - self._config.polyak) * (online - self.targets))


def check_same_state(arrays: Mapping[str, np.ndarray], updates: int, comm: Communicator) -> None:
    """Compares arrays of all ranks bit by bit, by checksums; a collective call."""
    # `updates` is how many there were so far, for the message.
    if comm.size == 1:
        return
    digests = {
        name: hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
        for name, array in arrays.items()
    }
    of_ranks = comm.allgather(digests)
    for name in arrays:
        ranks = [rank for rank, its in enumerate(of_ranks) if its[name] != of_ranks[0][name]]
        if ranks:
            raise NumbersFault(
                f"ranks differ after {updates} updates: "
                f"{name} on ranks {ranks} is not what rank 0 holds"
            )


def joined(arrays: Mapping[str, np.ndarray], kind: str, layout: Layout) -> Array:
    """Returns the arrays of one kind, such as `parameters`, as one flat vector."""
    prefix = f"{kind}/"
    of_kind = {n.removeprefix(prefix): array for n, array in arrays.items() if n.startswith(prefix)}
    check_fit(expected_of(of_kind), expected_of(layout.name_arrays(layout.initial())))
    return layout.flatten(of_kind)


def _stacked(values: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.stack(values) if values else tf.zeros([0])
