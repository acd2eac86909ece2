"""Each command line of two tables answers with its code and its words, whatever the sentence."""

import json
import shlex

import pytest

from music_tf.cli import main
from tests.kit.cases import cases
from tests.kit.sources import ROOT
from tests.same.jobs import run_job

MOST_LINES = 10
LIGHT = (
    ("", 0, "train", "evaluate", "recipes", "--help"),
    ("train --help", 0, "--env-id", "--resume", "ddpg_her"),
    ("train ddpg_her --help all", 0, "--replay.strategy", "--agent.polyak", "future"),
    ("train sac_diayn --help all", 0, "--skill.scale", "--agent.entropy-mode"),
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
    ("train ddpg --workers 1.5", 2, "--workers", "1.5", "4096"),
    ("train ddpg --workers 0", 2, "workers", "4096", "0"),
    ("train ddpg --workers many", 2, "--workers", "many"),
    ("train ddpg --agent.polyak 2", 2, "agent.polyak", "expected", "[0, 1]", "2"),
    ("train ddpg --max-minutes nan", 2, "max", "minutes", "nan"),
    ("train ddpg --env-id FetchPsh-v4", 2, "FetchPsh-v4", "FetchPush-v4"),
    ("train ddpg_music --music.train maybe", 2, "--music.train", "maybe"),
    ("train ddpg --resume", 2, "--resume", "--run-dir"),
    ("train ddpg --run-dir {new} --resume", 2, "new", "config.json"),
    ("train ddpg --run-dir {held} --resume", 2, "config.json"),
    ("evaluate nowhere", 2, "nowhere", "config.json"),
    ("evaluate {held} --episode 5", 2, "--episodes"),
    ("plot {base}/none.csv --axis minuts", 2, "minuts", "minutes"),
    ("plot {empty}", 2, "empty"),
    ("report .", 2, "RUN", "config.json"),
    ("report {held} --out page.htlm", 2, "--out", ".html, .htm, got 'page.htlm'"),
    ("check-env FetchPsh-v4", 2, "FetchPush-v4"),
    ("check-env --help", 0, "--env.kwargs"),
    ("launch", 2, "-n"),
    ("launch -n 0 train ddpg", 2, "4096", "0"),
    ("launch -n 2 trian", 2, "trian", "train"),
    ("launch -n 2 train ddgp", 2, "ddgp", "ddpg"),
    ("plot", 2, "RUN", "music-tf plot latest"),
    ("plot latest", 2, "RUN", "latest"),
    ("plot none.csv", 2, "none.csv", "No such file"),
    ("evaluate", 2, "RUN", "music-tf evaluate latest"),
    ("evaluate a b", 2, "RUN", "'a b'"),
    ("evaluate {held} --full=yes", 2, "--full", "takes no value"),
    ("evaluate {held} --out no/a.npz", 2, "--out", "folder", "'no'"),
    ("evaluate {held} --out", 2, "--out", "expected a value"),
    ("evaluate {held} --export a.npz", 2, "--export", "--parts", "--out A.npz"),
    ("evaluate {held} --parts actor", 2, "--export", "--parts", "'actor'"),
    ("evaluate {held} --minari music", 2, "--minari", "push/music-v0", "'music'"),
    ("play {held} --skill -1", 2, "--skill", "'-1'"),
    ("play {held} --episode 2", 2, "--strip", "--episodes"),
    ("play {held} --out film.avi", 2, ".mp4, .gif, got 'film.avi'\ndid you mean .mp4?"),
    ("play {held} --strip a.png --out a.gif", 2, "leave out --out"),
    ("play {held} --strip a.png --episodes 8", 2, "expected --episode, not --episodes"),
    ("play {held} --live --beside random", 2, "--live: opens a window"),
    ("play {held} --reach 1 2 --zero-shot", 2, "--reach: sets the goal, as --zero-shot and --path"),
    ("play {held} --path circle --zero-shot", 2, "leave one out"),
    ("play {held} --path circle --skill 0", 2, "--skill: the goal decides which skill acts"),
    ("check-env", 2, "ID", "check-env FetchPush-v4"),
    ("study", 2, "FILE", "music-tf study experiments/studies/"),
    ("study x.py --lst", 2, "did you mean --list?"),
    ("launch -n 2", 2, "expected one of train"),
    ("launch --rank 2 train", 2, "did you mean --ranks?"),
    (
        "launch -n 3 --learners 1 train",
        2,
        "--learners: expected after train",
        "train ddpg_music --learners 1",
    ),
    ("launch -n 2 launch -n 2", 2, "'launch'"),
    ("launch -n 3 train ddpg", 2, "--workers: expected", "3 ranks", "got 4", "--workers 3"),
    ("launch -n 2 train ddpg --learners 2", 2, "--learners 2 needs at least 3 ranks"),
    ("launch --help", 0, "--restarts", "node1:8,node2:8"),
    ("study nofile.py", 2, "'nofile.py'\nstudies of the project: experiments/studies"),
    ("recipes push ddpg_music", 0, "made by: music-tf train ddpg_music", "presets: laptop, paper"),
)
"""What is answered before TensorFlow is loaded and before any rank meets another.

`{name}` stands for a place: folders `empty` and `new`, `held` with a broken run, `run` with a
whole one.
"""

_SMALL = (
    "--workers 2 --rollouts 1 --cycles 1 --updates 1 --epochs 1 --threads 1 "
    "--agent.hidden-sizes 8 --replay.batch-size 8 --evaluation.episodes 2"
)
_POINT = f"--env-id music_tf/PointPush-v0 {_SMALL}"

SESSION = (
    ("check-env music_tf/PointPush-v0", 0, "reward"),
    ("train ddpg --run-dir {held}", 2, "--run-dir", "held", "--resume"),
    ("train ddpg --run-dir /dev/null/x", 3, "/dev/null/x"),
    ("train ddpg --init-from nowhere", 2, "--init-from: expected a run", "'nowhere'"),
    ("train ddpg --init-from push", 2, "which parts", "any of actor,critic,targets,normalizer\n"),
    (
        "train sac_music_skills --music.hidden-size 8 --music.trajectories 2 "
        f"--run-dir {{run}} {_POINT}",
        *(0, "run directory", "eval/object_comotion_m", "random"),
    ),
    (f"train sac_music_skills --run-dir {{run}} {_POINT}", 2, "--run-dir", "--resume"),
    (
        "train --run-dir {run} --resume",
        *(0, "nothing left to train: 1 of 1 epochs", "--resume --epochs 2\n"),
    ),
    ("train --run-dir {run} --resume --seed 5", 2, "--seed", "0", "5"),
    ("train sac --run-dir {run} --resume", 2, "sac_music_skills"),
    (f"train ddpg --init-from {{run}} --parts discriminator {_POINT}", 2, "discriminator"),
    (f"train sac --init-from {{run}} --parts actor {_POINT}", 2, "--parts", "expected", "found"),
    ("train ddpg_music --world.agent 99 --world.surrounding 1", 2, "--world.agent: expected comp"),
    (
        f"train ddpg_music --env-id music_tf/PointReach-v0 {_SMALL} --run-dir {{new}}",
        *(2, "PointReach-v0 has no object, whose motion"),
    ),
    ("evaluate {run} --episodes 2", 0, "eval/object_comotion_m"),
    ("play {run} --episodes 1 --skill 7", 2, "--skill", "7"),
    ("play {run} --episodes 1 --skill 0 --out {base}/film.gif", 0, "film.gif"),
    ("plot {run} --metric eval/object_comotin_m", 2, "eval/object_comotion_m"),
    ("plot {run} --metric eval/comotion", 2, "did you mean eval/object_comotion_m?"),
    ("play push --reach 1.3 0.8", 2, "push cannot be sent to a place", "reach_pick, reach_push"),
    ("skills push", 2, "push acts with one\nagents with several: ant, cheetah, hopper"),
    ("plot {run} --metric eval/object_comotion_m --out {base}/curve.png", 0, "curve.png"),
    ("report {run} --out {base}/page.html", 0, "page.html"),
)
"""What needs TensorFlow, or a run that an earlier one of these has made: in this order."""


@pytest.fixture
def places(tmp_path, monkeypatch):  # by name, and a name that is too long for a file
    for name in ("empty", "held"):
        (tmp_path / name).mkdir()
    (tmp_path / "held/config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    names = ("empty", "new", "held", "run")
    return {name: tmp_path / name for name in names} | {"base": tmp_path, "long": "x" * 300}


def faults(line, answered, output, errors):
    """What is wrong with an answer, nothing where it is as it must be."""
    _, code, *parts = line
    found = [f"no {part!r}" for part in parts if part not in output + errors]
    found += [f"exit code {answered}, expected {code}"] * (answered != code)
    found += [f"{len(errors.splitlines())} lines"] * (code and errors.count("\n") > MOST_LINES)
    return found + ["a traceback"] * ("Traceback" in errors)


@cases("line", *LIGHT, ids=lambda line: line[0] or "nothing")
def test_a_command_line_answers_as_the_table_says(line, places, capfd):
    with pytest.raises(SystemExit) as left:
        main(shlex.split(line[0].format(**places)))
    assert faults(line, left.value.code or 0, *capfd.readouterr()) == []


def test_a_run_from_its_start_to_its_page_answers_as_the_table_says(places):
    answers = places["base"] / "answers"
    answers.mkdir()
    commands = [shlex.split(words.format(**places)) for words, *_ in SESSION]
    run_job(ROOT, [{"name": "all", "commands": commands, "go_on": True}], answers)
    assert (answers / "all.json").exists(), (answers / "job.log").read_text()
    codes = json.loads((answers / "all.json").read_text())
    wrong = {}
    for number, (line, code) in enumerate(zip(SESSION, codes, strict=True)):
        said = [(answers / f"all.{number}.{end}").read_text() for end in ("out", "err")]
        if found := faults(line, code, *said):
            wrong[line[0]] = found, said
    assert wrong == {}
