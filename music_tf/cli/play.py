"""`music-tf play RUN`: a video of what a run has learned."""

import sys
from pathlib import Path

from music_tf.cli.options import asks_for_help, one_word, typed_env_id, whole_number
from music_tf.config.names import suggestion
from music_tf.config.tokens import Words, split
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.process import prepare_tensorflow
from music_tf.storage.run_directory import find_run

FORMATS = (".mp4", ".gif")
ALL_SKILLS = "all"
_OPTIONS = {"episodes": 1, "skill": 1, "out": 1, "env_id": 1, "allow_import": 0}
USAGE = """\
usage: music-tf play RUN [--episodes 4] [--skill all] [--out FILE.mp4]
                         [--env-id module:Id | --allow-import]

Films the latest policy of a run without exploration. RUN is a run directory, or latest.

  --episodes N         how many episodes, of each skill; default 4
  --skill K            one skill, counted from 0, or all (default)
  --out FILE           an .mp4 or .gif file; default RUN/videos/policy.mp4
  --env-id module:Id   repeats the id of your own environment, which no file may import
  --allow-import       lets the run import the module of your own environment that it names

example: music-tf play latest --out push.gif
"""


def main(arguments: list[str]) -> int:
    """Makes a video and returns 0.

    Raises:
        MusicError: The command line is wrong, or the run cannot be shown.
    """
    if asks_for_help(arguments):
        sys.stdout.write(USAGE)
        return EXIT_DONE
    words = split(tuple(arguments), _OPTIONS)
    run = find_run(one_word(words, "RUN", "play latest"))
    episodes = whole_number(words, "episodes", 4, 1000)
    skill = _skill(words)
    out = _out(words, run)
    env_id = typed_env_id(words, run)
    prepare_tensorflow()
    from music_tf.tools.film import play  # noqa: PLC0415 - numpy, MuJoCo

    play(run, episodes, skill, out, env_id)
    return EXIT_DONE


def _skill(words: Words) -> int | None:
    """Returns the skill to show; None for all of them."""
    (text,) = words.options.get("skill", (ALL_SKILLS,))
    if text == ALL_SKILLS:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 4):  # noqa: PLR2004 - of 4096
        raise UsageError(f"--skill: expected a skill counted from 0, or all, got {text[:80]!r}")
    return int(text)


def _out(words: Words, run: Path) -> Path:
    (text,) = words.options.get("out", (str(run / "videos" / "policy.mp4"),))
    out = Path(text)
    if out.suffix.lower() not in FORMATS:
        raise UsageError(
            f"--out: expected a file that ends in {' or '.join(FORMATS)}, got {text[:200]!r}"
            + suggestion(out.suffix, FORMATS)
        )
    return out
