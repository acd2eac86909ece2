"""The command `music-tf VERB`; the imports of a verb are loaded only for that verb."""

import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from music_tf.cli.exits import guarded, leave, open_streams
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.process.launcher import launched_rank
from music_tf.process.notices import PACKAGE, SCREEN
from music_tf.process.signals import end_as_ctrl_c, install_signal_handlers

VERBS = {
    "train": "trains a recipe, or continues a run",
    "evaluate": "measures a trained run: success rate and behaviour",
    "play": "makes a video of what a run has learned",
    "skills": "compares the skills of a run",
    "plot": "draws learning curves of runs",
    "report": "writes one page about one or many runs",
    "study": "trains the missing runs of a comparison, several side by side",
    "tune": "searches settings for an environment, yours for example",
    "recipes": "lists recipes and ready-made agents",
    "launch": "runs a verb on several MPI ranks: launch -n 2 train ...",
    "check-env": "checks an environment, yours for example",
    "doctor": "checks the installation and says how to mend it",
}
_ELSEWHERE = {
    "train": "music_tf.cli.train",
    "launch": "music_tf.cli.launch",
    "doctor": "music_tf.tools.doctor",
}
"""Modules of verbs that do not need `music_tf.cli.verbs`."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    arguments = list(sys.argv[1:] if argv is None else argv)
    open_streams()
    end_as_ctrl_c()
    PACKAGE.addHandler(SCREEN)  # a library may set up the root logger
    leave(guarded(lambda: run_verb(arguments)))


def run_verb(arguments: list[str]) -> int:
    """Runs `VERB ...` and returns its exit code; on several ranks only `train` runs on all."""
    verb, *rest = arguments or ["help"]
    if verb in ("train", "launch"):
        install_signal_handlers()
    if verb != "train" and launched_rank() > 0:
        return EXIT_DONE
    if verb in ("help", "--help", "-h"):
        sys.stdout.write(help_text())
        return EXIT_DONE
    if verb == "--version":
        sys.stdout.write(f"music-tf {sys.modules['music_tf'].__version__}\n")
        return EXIT_DONE
    if verb not in VERBS:
        raise UsageError(
            f"VERB: expected one of {', '.join(VERBS)}, got {verb[:80]!r}"
            + suggestion(verb, (*VERBS, "--help", "--version"))
        )
    try:
        if verb in _ELSEWHERE:
            return int(importlib.import_module(_ELSEWHERE[verb]).main(rest))
        from music_tf.cli import verbs  # noqa: PLC0415 - tyro, which the doctor does without

        return verbs.run(verb, rest)
    except SystemExit as end:
        if end.code:
            raise
        return EXIT_DONE  # the help was written


def help_text() -> str:
    verbs = "\n".join(f"  {verb:10} {says}" for verb, says in VERBS.items())
    return f"""\
usage: music-tf VERB [options]

verbs:
{verbs}

music-tf VERB --help explains a verb; music-tf --version shows the version

first steps:
  music-tf play push
  music-tf train ddpg_music
  music-tf play latest
"""
