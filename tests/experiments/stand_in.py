"""Stands in for `music-tf train` and `evaluate`: an epoch takes a moment, and some seeds go wrong.

As a program it does either; `study FILE JOBS MINUTES` runs a study whose runs are such programs.
STAND_IN_EPOCHS says how many epochs a run has; with STAND_IN_FAILS no evaluation works, and a run
of seed 13 ends with exit code 4.
"""

import json
import os
import pathlib
import signal
import sys
import time

EPOCH_SECONDS = 0.1
RESULTS = pathlib.Path("experiments/results")
TRAINER = (sys.executable, __file__)
WORLDS = (
    "epoch,env_steps,stage,next_stage,world,skill,learned_in,episodes,return,length,success_rate,"
    "end_0,end_1,end_2,spread,hausdorff,moved\n2,200,0,0,0,,0,5,1.5,10.0,,3.0,,,0.5,,0.0\n"
)
VERSIONS = {"tensorflow": "2.0", "mujoco": "3.0", "gymnasium-robotics": "1.0", "python": "3"}


def study(arguments):  # the exit code of `music-tf study`, with this program for training
    from music_tf.cli.exits import guarded
    from music_tf.tools.study_runner import train_missing

    file, jobs, minutes = pathlib.Path(arguments[0]), int(arguments[1]), float(arguments[2])
    return guarded(lambda: train_missing(file, RESULTS, jobs, minutes, TRAINER))


def train(words):
    stopped = []
    signal.signal(signal.SIGUSR1, lambda *_: stopped.append(True))
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    directory = pathlib.Path(words[words.index("--run-dir") + 1])
    if (directory / "config.json").exists() and "--resume" not in words:
        return 2  # as training does: the directory holds a run already
    (directory / "checkpoints").mkdir(parents=True, exist_ok=True)
    metrics = directory / "metrics.csv"
    if "--resume" not in words:
        metrics.write_text("epoch,time/env_steps,time/elapsed_s,eval/success_rate\n")
        made = {"versions": VERSIONS, "init_from": start(words)}
        (directory / "config.json").write_text(json.dumps(made))
    with (directory / "words.json").open("a") as file:
        file.write(json.dumps([*words, time.time(), os.environ["OMP_NUM_THREADS"]]) + "\n")
    sys.stdout.write("a line that is printed\n")
    if words[words.index("--seed") + 1] == "13":
        sys.stdout.write("numbers went bad\n")
        return 4
    done = len(metrics.read_text().splitlines()) - 1
    for epoch in range(done + 1, int(os.environ.get("STAND_IN_EPOCHS", "2")) + 1):
        time.sleep(EPOCH_SECONDS)
        with metrics.open("a") as file:
            file.write(f"{epoch},{100 * epoch},{60 * epoch},{epoch / 10}\n")
        (directory / "checkpoints" / f"epoch_{epoch:06d}").mkdir()
        if stopped:
            return 75
    evaluation = {"ours": {"eval/success_rate": 0.5}}
    (directory / "summary.json").write_text(json.dumps({"evaluation": evaluation}))
    (directory / "worlds.csv").write_text(WORLDS)
    (directory / "evaluations.csv").write_text("cycle,time/env_steps\n6,2400\n")
    return 0


def start(words):  # what is noted of the run that one starts from; all there have two epochs
    if "--init-from" not in words:
        return None
    return {"before": {"time/env_steps": 200.0, "time/elapsed_s": 120.0}}


def evaluate(words):
    directory, *options = words
    if options != ["--env-id", "music_tf/PointPush-v0", "--full"] or "STAND_IN_FAILS" in os.environ:
        return 2
    judged = {"control": {"ours": {"control/coverage": 0.25}}, "coverage": {}, "skills": []}
    (pathlib.Path(directory) / "evaluation.json").write_text(json.dumps(judged))
    return 0


if __name__ == "__main__":
    code = {"study": study, "train": train, "evaluate": evaluate}[sys.argv[1]](sys.argv[2:])
    if sys.argv[1] == "train":
        place = pathlib.Path(sys.argv[sys.argv.index("--run-dir") + 1])
        (place / "ending").write_text(str(code))
        (place / "ending").rename(place / "ended")
    sys.stdout.flush()
    os._exit(code)  # as a real run does: an interpreter that shuts down forgets its handlers
