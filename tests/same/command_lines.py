"""Command lines with their exit codes and words that their answers hold, whatever the sentence.

`{name}` stands for a place: folders `empty` and `new`, `held` with a broken run, `run` with a
whole one.
"""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
from typing import NamedTuple

from tests.same.jobs import environment, run_job

MOST_LINES = 10


class Line(NamedTuple):
    """What a command answers."""

    words: str
    code: int
    parts: tuple[str, ...]

    def command(self, base):
        """Returns the words that are typed, with places under a folder."""
        places = {name: f"{base}/{name}" for name in ("empty", "new", "held", "run")}
        return shlex.split(self.words.format(base=base, **places))

    def faults(self, code, output, errors):
        """Returns what is wrong with an answer, nothing where it is as it must be."""
        found = [f"no {part!r}" for part in self.parts if part not in output + errors]
        if code != self.code:
            found.append(f"exit code {code}, expected {self.code}")
        if code and len(errors.splitlines()) > MOST_LINES:
            found.append(f"{len(errors.splitlines())} lines")
        if "Traceback" in errors:
            found.append("a traceback")
        return found


def _lines(table):
    return [Line(words, code, tuple(parts)) for words, code, *parts in table]


LIGHT = _lines(
    [
        ("", 0, "train", "evaluate", "recipes", "--help"),
        ("--help", 0, "train", "doctor", "launch", "check-env"),
        ("--version", 0, "music-tf"),
        ("recipes", 0, "ddpg_her\n", "sac_diayn\n"),
        ("train --help", 0, "--env-id", "--resume", "ddpg_her"),
        ("train ddpg_her --help all", 0, "--replay.strategy", "--agent.polyak", "future"),
        ("train sac_diayn --help all", 0, "--skill.scale", "--agent.entropy-mode"),
        ("evaluate --help", 0, "--episodes", "--full"),
        ("play --help", 0, "--skill", "--out"),
        ("plot --help", 0, "--metric", "--out"),
        ("report --help", 0, "--out"),
        ("launch --help", 0, "-n", "train"),
        ("check-env --help", 0, "ID"),
        ("doctor --help", 0, "doctor"),
        ("recipes --help", 0, "recipes"),
        ("trian", 2, "trian", "did you mean train"),
        ("eval", 2, "evaluate"),
        ("--versoin", 2, "--version"),
        ("recipes x", 2, "'x'"),
        ("train", 2, "RECIPE", "ddpg_her"),
        ("train ddgp", 2, "ddgp", "did you mean ddpg"),
        ("train ddpg sac", 2, "'sac'"),
        ("train ddpg --epoch 3", 2, "--epoch", "--epochs"),
        ("train ddpg --polyak 0.9", 2, "--agent.polyak"),
        ("train ddpg --agent.polyk 0.9", 2, "--agent.polyk", "--agent.polyak"),
        ("train ddpg --preset papr", 2, "papr", "paper"),
        ("train ddpg --goals zer", 2, "expected", "environment", "zer", "did you mean zero"),
        ("train ddpg --rewards taks", 2, "taks", "task"),
        ("train ddpg --replay.strategy futur", 2, "futur", "future"),
        ("train ddpg --workers 1.5", 2, "--workers", "1.5", "4096"),
        ("train ddpg --workers 0", 2, "workers", "4096", "0"),
        ("train ddpg --workers many", 2, "--workers", "many"),
        ("train ddpg --agent.polyak nan", 2, "agent.polyak", "nan"),
        ("train ddpg --agent.polyak 2", 2, "agent.polyak", "expected", "[0, 1]", "2"),
        ("train ddpg --agent.critics 11", 2, "agent.critics", "10", "11"),
        ("train ddpg --agent.hidden-sizes 0", 2, "agent.hidden_sizes", "8192"),
        ("train ddpg --seed -1", 2, "seed", "-1"),
        ("train ddpg --epochs 0", 2, "epochs", "0"),
        ("train ddpg --max-minutes nan", 2, "max", "minutes", "nan"),
        ("train ddpg --env-id FetchPsh-v4", 2, "FetchPsh-v4", "FetchPush-v4"),
        ("train ddpg --exploration.sample true", 2, "exploration.sample"),
        ("train ddpg_music --music.clip 2 1", 2, "music.clip", "lower"),
        ("train ddpg_music --music.weight 5 1 0 1", 2, "music.weight", "increasing"),
        ("train ddpg_music --music.train maybe", 2, "--music.train", "maybe"),
        ("train ddpg_music --music.pair-negatives swop", 2, "swop", "did you mean swap"),
        ("train sac_her --agent.return-clip auto", 2, "agent.return_clip", "entropy"),
        ("train sac_diayn_finetune --pinned-skill 5", 2, "pinned_skill", "4"),
        ("train ddpg --resume", 2, "--resume", "--run-dir"),
        ("train ddpg --run-dir {new} --resume", 2, "new", "config.json"),
        ("train ddpg --run-dir {held} --resume", 2, "config.json"),
        ("train ddpg --init-from {run}", 2, "--init-from", "--parts"),
        ("train ddpg --parts actor", 2, "--parts", "--init-from"),
        ("train ddpg --init-from {run} --parts actr", 2, "--parts", "actr", "actor"),
        ("train ddpg_music_finetune", 2, "--init-from", "ddpg_music"),
        ("evaluate nowhere", 2, "nowhere", "config.json"),
        ("evaluate {held} --episode 5", 2, "--episodes"),
        ("play", 2, "RUN"),
        ("play nowhere", 2, "nowhere"),
        ("play {held} --out film.avi", 2, "--out", ".mp4"),
        ("plot {base}/none.csv --axis minuts", 2, "minuts", "minutes"),
        ("plot {empty}", 2, "empty"),
        ("report", 2, "RUN"),
        ("report nowhere", 2, "nowhere"),
        ("check-env FetchPsh-v4", 2, "FetchPush-v4"),
        ("launch", 2, "-n"),
        ("launch -n 0 train ddpg", 2, "4096", "0"),
        ("launch -n two train", 2, "two"),
        ("launch -n 2 trian", 2, "trian", "train"),
        ("launch -n 2 train ddgp", 2, "ddgp", "ddpg"),
    ]
)
"""What is answered before TensorFlow is loaded and before any rank meets another."""

_SMALL = (
    "--workers 2 --rollouts 1 --cycles 1 --updates 1 --epochs 1 --threads 1 "
    "--agent.hidden-sizes 8 --replay.batch-size 8 --evaluation.episodes 2"
)
_POINT = f"--env-id music_tf/PointPush-v0 {_SMALL}"

SESSION = _lines(
    [
        ("check-env music_tf/PointPush-v0", 0, "reward"),
        ("train ddpg --run-dir {held}", 2, "--run-dir", "held", "--resume"),
        ("train ddpg --run-dir /dev/null/x", 3, "/dev/null/x"),
        ("train ddpg --init-from nowhere --parts actor", 2, "--init-from", "nowhere"),
        (
            "train sac_music_skills --music.hidden-size 8 --music.trajectories 2 "
            f"--run-dir {{run}} {_POINT}",
            *(0, "run directory", "eval/object_comotion_m", "random"),
        ),
        (f"train sac_music_skills --run-dir {{run}} {_POINT}", 2, "--run-dir", "--resume"),
        ("train --run-dir {run} --resume", 0, "1", "epochs", "--epochs"),
        ("train --run-dir {run} --resume --seed 5", 2, "--seed", "0", "5"),
        ("train sac --run-dir {run} --resume", 2, "sac_music_skills"),
        (f"train ddpg --init-from {{run}} --parts discriminator {_POINT}", 2, "discriminator"),
        (
            f"train sac --init-from {{run}} --parts actor {_POINT}",
            *(2, "--parts", "actor", "expected", "found"),
        ),
        (
            f"train ddpg_music --env-id music_tf/PointReach-v0 {_SMALL} --run-dir {{new}}",
            *(2, "PointReach"),
        ),
        ("evaluate {run} --episodes 2", 0, "eval/object_comotion_m"),
        ("play {run} --episodes 1 --skill 7", 2, "--skill", "7"),
        ("play {run} --episodes 1 --skill 0 --out {base}/film.gif", 0, "film.gif"),
        ("plot {run} --metric eval/object_comotin_m", 2, "eval/object_comotion_m"),
        ("plot {run} --metric eval/object_comotion_m --out {base}/curve.png", 0, "curve.png"),
        ("report {run} --out {base}/page.html", 0, "page.html"),
    ]
)
"""What needs TensorFlow, or a run that an earlier one of these has made: in this order."""


def prepare(base):
    """Makes the places that the command lines name."""
    for name in ("empty", "held"):
        pathlib.Path(base, name).mkdir()
    pathlib.Path(base, "held", "config.json").write_text("{}")


def session(package, base):
    """Runs `SESSION` in one process and returns (exit code, output, errors) of each line."""
    commands = [line.command(base) for line in SESSION]
    results = pathlib.Path(base, "answers")
    results.mkdir()
    run_job(package, [{"name": "session", "commands": commands, "go_on": True}], results)
    codes = results / "session.json"
    if not codes.exists():
        raise RuntimeError((results / "job.log").read_text())
    return [
        (code, *(_text(results / f"session.{number}.{end}") for end in ("out", "err")))
        for number, code in enumerate(json.loads(codes.read_text()))
    ]


def check(package):
    """Runs all lines, prints those that answer otherwise, and returns whether there is none."""
    with tempfile.TemporaryDirectory(prefix="lines-") as base:
        prepare(base)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            light = list(pool.map(lambda line: _alone(package, base, line), LIGHT))
        answers = [*light, *session(package, base)]
    lines = [*LIGHT, *SESSION]
    wrong = 0
    for line, answer in zip(lines, answers, strict=True):
        faults = line.faults(*answer)
        wrong += bool(faults)
        if faults:
            said = "\n  ".join((answer[1] + answer[2]).splitlines()[:MOST_LINES])
            sys.stdout.write(f"DIFFERENT {line.words!r}: {', '.join(faults)}\n  {said}\n")
    sys.stdout.write(f"same {len(lines) - wrong} of {len(lines)} command lines\n")
    return not wrong


def _alone(package, base, line):
    """Returns what a process of its own answers."""
    done = subprocess.run(
        [sys.executable, "-m", "music_tf", *line.command(base)],
        cwd=base,
        env=environment(package, base),
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def _text(path):
    return path.read_text(errors="replace")
