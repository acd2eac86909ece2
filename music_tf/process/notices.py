"""Our notices, which the libraries of an environment do not mute."""

import logging

PACKAGE = logging.getLogger("music_tf")
"""Parent of all our loggers."""
SCREEN = logging.lastResort or logging.NullHandler()
"""Shows warnings as Python does where nothing is set up, until a run shows them itself."""


class _Unmuted(logging.Logger):
    """A logger that heeds neither `logging.disable` nor `dictConfig`, which disables loggers."""

    disabled = property(lambda self: False, lambda self, value: None)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's name
        return level >= self.getEffectiveLevel()


def keep_notices() -> None:
    """Makes the loggers that this package has so far independent of what libraries set."""
    for name, logger in list(logging.Logger.manager.loggerDict.items()):
        if name.partition(".")[0] == PACKAGE.name and isinstance(logger, logging.Logger):
            logger.__class__ = _Unmuted
