"""What a program of the user's hears of a run while it goes on."""

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
    """Hears of a run, on its root; any object will do that has any of these methods.

    One that raises ends the run with its error, whatever its class, once everything is saved.
    """

    def on_cycle(self, counters: "Counters") -> None:
        """Hears after each cycle how far the run has come: epoch, cycle, env_steps and more."""

    def on_evaluation(self, played: "Episodes | Adaptations") -> None:
        """Hears of an evaluation at the end of its epoch: its episodes, or visits to tasks."""

    def on_save(self, checkpoint: Path) -> None:
        """Hears where a checkpoint lies that is complete."""

    def on_epoch(self, row: "Metrics") -> None:
        """Hears the metrics of an epoch by name, as metrics.csv has them, once it is over."""


class CallbackFailed(Exception):  # noqa: N818  (a carrier)
    """Takes what a callback raised out of a run, past handlers of our own faults of its class."""

    def __init__(self, fault: BaseException) -> None:
        """Takes what was raised."""
        super().__init__(str(fault))
        self.fault = fault


class Listeners:
    """The callbacks of a run, and what the first of them that failed has raised."""

    def __init__(self, callbacks: Iterable[object] = ()) -> None:
        """Takes objects that `checked` has let pass."""
        self._callbacks = tuple(callbacks)
        self.fault: BaseException | None = None

    def tell(self, hook: str, said: object) -> None:
        """Calls a method of all that have it, unless a callback has failed before."""
        for callback in self._callbacks:
            method = getattr(callback, hook, None)
            if method is None or self.fault is not None:
                continue
            try:
                with longer_timeout():
                    method(said)
            except (Interruption, SecondInterrupt):  # of ours: they only met the callback
                raise
            except BaseException as error:  # whatever a callback raises ends the run, after saving
                self.fault = error


def checked(callbacks: object) -> Sequence[object]:
    """Returns callbacks that have any of `HOOKS`.

    Raises:
        UsageError: They are no collection, or one of them hears of nothing or has a method whose
            name is nearly that of a hook.
    """
    expected = f"callbacks: expected objects with any of {', '.join(HOOKS)}"
    if not isinstance(callbacks, Iterable) or isinstance(callbacks, str):
        raise UsageError(f"{expected}, in a list, got {callbacks!r:.80}")
    found = list(callbacks)
    for callback in found:
        if isinstance(callback, type):
            raise UsageError(f"{expected}, got the class {callback.__name__}: make one of it")
        others = [name for name in dir(callback) if name.startswith("on") and name not in HOOKS]
        near = [f" with {name}{meant}" for name in others if (meant := suggestion(name, HOOKS))]
        if near or not any(callable(getattr(callback, hook, None)) for hook in HOOKS):
            raise UsageError(f"{expected}, got {callback!r:.80}{next(iter(near), '')}")
    return found
