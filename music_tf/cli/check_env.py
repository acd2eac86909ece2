"""`music-tf check-env ID`: whether an environment keeps what training needs of it."""

import sys

from music_tf.cli.options import asks_for_help, one_word
from music_tf.config.environments import check_env_id
from music_tf.config.tokens import split
from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT

USAGE = """\
usage: music-tf check-env ID

Makes an environment, plays it with random actions, and says what training would stumble over.
ID is a known environment, or module:Id for your own.

example: music-tf check-env my_package:MyTask-v0
"""


def main(arguments: list[str]) -> int:
    """Prints every check and returns 0, or 3 if any found a fault.

    Raises:
        MusicError: The command line is wrong, or the environment cannot be made.
    """
    if asks_for_help(arguments):
        sys.stdout.write(USAGE)
        return EXIT_DONE
    words = split(tuple(arguments), {"help": 0})
    env_id = check_env_id(one_word(words, "ID", "check-env FetchPush-v4"))
    from music_tf.tools.check_env import check_environment  # noqa: PLC0415 - numpy, MuJoCo

    findings = list(check_environment(env_id))
    width = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        state = "ok  " if finding.ok else "FAIL"
        sys.stdout.write(f"{state}  {finding.name:{width}}  {finding.detail}\n")
        if not finding.ok and finding.cure:
            sys.stdout.write(f"{'':{width + 6}}  cure: {finding.cure}\n")
    return EXIT_DONE if all(finding.ok for finding in findings) else EXIT_ENVIRONMENT
