"""Callbacks of a user's program, and how a run calls them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from music_tf.config.names import suggestion
from music_tf.errors import UsageError
from music_tf.process.signals import Interruption, SecondInterrupt
from music_tf.process.watchdog import longer_timeout

if TYPE_CHECKING:
    from music_tf.training.adaptation import Adaptations
    from music_tf.training.counters import Counters
    from music_tf.types import Episodes, Metrics

HOOKS = ("on_cycle", "on_epoch", "on_evaluation", "on_save")


class Callback(Protocol):
    """Called by a run on its root rank; an object with any of these methods is a callback.

    An exception of any class in a callback ends the run with that exception, after saving.
    """

    def on_cycle(self, counters: "Counters") -> None:
        """Called after each cycle with the counters: epoch, cycle, env_steps and more."""

    def on_evaluation(self, played: "Episodes | Adaptations") -> None:
        """Called after an evaluation with its episodes, actions in [-1, 1], or visits to tasks."""

    def on_save(self, checkpoint: Path) -> None:
        """Called with the folder of a checkpoint once that is complete."""

    def on_epoch(self, row: "Metrics") -> None:
        """Called at the end of an epoch with its metrics by name, as in metrics.csv."""


class CallbackFailed(Exception):  # noqa: N818  (a carrier)
    """Carries the exception of a callback past the handlers of our own faults."""

    def __init__(self, fault: BaseException) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Listeners:
    """Callbacks that `checked` has accepted, and the exception of the first that failed."""

    def __init__(self, callbacks: Iterable[object] = ()) -> None:
        self._callbacks = tuple(callbacks)
        self.fault: BaseException | None = None

    def tell(self, hook: str, argument: object) -> None:
        """Calls the method `hook` of all callbacks that have it, until one of them has failed."""
        for callback in self._callbacks:
            method = getattr(callback, hook, None)
            if method is None or self.fault is not None:
                continue
            try:
                with longer_timeout():
                    method(argument)
            except (Interruption, SecondInterrupt):  # raised by our signal handlers
                raise
            except BaseException as error:  # whatever a callback raises ends the run, after saving
                self.fault = error


def checked(callbacks: object) -> Sequence[object]:
    """Returns callbacks; refuses one without any of `HOOKS`, or with nearly the name of a hook."""
    expected = f"callbacks: expected objects with any of {', '.join(HOOKS)}"
    if not isinstance(callbacks, Iterable) or isinstance(callbacks, str):
        raise UsageError(f"{expected}, in a list, got {callbacks!r:.80}")
    listed = list(callbacks)
    for callback in listed:
        if isinstance(callback, type):
            raise UsageError(f"{expected}, got the class {callback.__name__}: make one of it")
        others = [name for name in dir(callback) if name.startswith("on") and name not in HOOKS]
        near = [f" with {name}{meant}" for name in others if (meant := suggestion(name, HOOKS))]
        if near or not any(callable(getattr(callback, hook, None)) for hook in HOOKS):
            raise UsageError(f"{expected}, got {callback!r:.80}{next(iter(near), '')}")
    return listed
