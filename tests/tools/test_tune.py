"""The search for settings: its logic with a trainer of a moment, and one real run."""

import fcntl
import json
import math
import signal
import subprocess
import sys
import time

import pytest

from music_tf import recipes
from music_tf.cli import run_verb
from music_tf.errors import EnvironmentFault, Stopped, UsageError
from music_tf.process import children
from music_tf.tools import subprocesses, tune
from music_tf.tools.spaces import METHODS, Choices, Method, Numbers, method_of, read_space
from tests.kit.arm import ARM
from tests.kit.cases import cases
from tests.kit.odd import ODD

optuna = pytest.importorskip("optuna")

TRAINER = """
import json, os, sys, time
words = dict(zip(sys.argv[3::1], sys.argv[4::1]))
folder, epochs = words["--run-dir"], int(words["--epochs"])
noise = float(words.get("--exploration.noise", 0.2))
if noise == FAILS:
    sys.exit("out of memory")
os.makedirs(folder)
with open(folder + "/metrics.csv", "w") as file:
    file.write("epoch,time/env_steps,eval/success_rate\\n")
    for epoch in range(1, epochs + 1):
        time.sleep(100.0 if noise == 0.05 and epoch == 20 else SLEEP)
        file.write(f"{epoch},{100 * epoch},{1.0 - (noise - 0.3) ** 2}\\n")
        file.flush()
open(folder + "/summary.json", "w").write("{}")
with open(os.environ["SEEN"], "a") as file:
    file.write(json.dumps([noise, int(words["--seed"])]) + "\\n")
"""
"""Trains to a score that is highest at a noise of 0.3; the least noise takes for ever."""
REACH = "FetchReach-v4 --method"
METHOD = Method(("eval/success_rate",), {"exploration.noise": Numbers(0.05, 0.4)})


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """Returns what starts the trainer; `seen` lists what it has trained to its end."""
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setattr(subprocesses, "_POLL_SECONDS", 0.05)

    def made(sleep=0.0, fails=-1.0):
        path = tmp_path / f"trainer_{sleep}.py"
        path.write_text(f"SLEEP, FAILS = {sleep}, {fails}\n{TRAINER}")
        return (sys.executable, str(path))

    return made


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def seen(tmp_path):
    file = tmp_path / "seen"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def search(method=METHOD, **changes):
    options = {"epochs": 3, "seeds": (100, 101), **changes}
    return tune.search_of("FetchReach-v4", "ddpg_her", "laptop", method, options)


def tuner_of(trainer, say=lambda text: None, **changes):
    return tune.Tuner(search(**changes), say, trainer)


def queue(tuner, *noises):
    for noise in noises:
        tuner.study.enqueue_trial({"exploration.noise": noise})


def states(tuner):
    return [trial.state.name for trial in tuner.study.trials]


# Spaces.


@pytest.mark.parametrize("env_id", ["FetchPush-v4", "Pendulum-v1", "mine:Arm-v0"])
@pytest.mark.parametrize("name", METHODS)
def test_train_accepts_every_space_and_all_presets_lie_within(name, env_id):
    method = method_of(name)
    for preset in recipes.presets(name):
        made = tune.search_of(env_id, name, preset, method, {"epochs": None, "seeds": (100,)})
        assert made.of_preset().keys() == method.space.keys()
        assert made.left_out() == {}


@cases(
    ("content", "text"),
    ("[]", "expected an object with a setting or more"),
    ('{"a": 3}', r'a: expected \{"low": 0\.1, "high": 1\}.*"choices".*got 3'),
    ('{"a": {"low": 2, "high": 1}}', "low below high"),
    ('{"a": {"low": 0, "high": 1, "log": true}}', "above 0 with log"),
    ('{"a": {"choices": [1]}}', r"two choices or more, got \[1\]"),
    (f'{{"a": {{"low": -{10**308}, "high": {10**308}}}}}', "low below high"),
    ('{"a": {"low": false, "high": true}}', "low below high"),
)
def test_a_file_that_is_no_space_is_refused(tmp_path, content, text):
    (tmp_path / "space.json").write_text(content)
    with pytest.raises(UsageError, match=f"--space: .*{text}"):
        read_space(tmp_path / "space.json")


@cases(
    ("words", "text"),
    (f"{REACH} ddpg_hre", r"--method: expected one of .*\ndid you mean ddpg_her"),
    (f"{REACH} ddpg_her --seeds 200", r"--check-seeds: .*got 200 in --seeds"),
    (f"{REACH} ddpg_her --space none.json", "--space: none.json: cannot be read"),
    (f"{REACH} ddpg_her --space far.json", r"--space: .*exploration\.noise.*-1"),
    (ARM, rf"{ARM} has no .*\nmusic-tf check-env {ARM} looks for .* --world.agent COLUMNS"),
    ("tests.kit.arm:Arm-v1", f"did you mean '{ARM}'"),
)
def test_a_search_of_which_every_trial_would_fail_is_refused(
    root, tmp_path, monkeypatch, words, text
):
    monkeypatch.chdir(tmp_path)
    space = {"exploration.noise": {"low": -1.0, "high": 0.2}}
    (tmp_path / "far.json").write_text(json.dumps(space))
    with pytest.raises(UsageError, match=text):
        run_verb(["tune", *words.split()])
    assert not root.exists()


def test_an_environment_that_never_steps_is_refused_before_a_study_is_written(root, odd):
    odd.fault = "four"
    with pytest.raises(EnvironmentFault, match="4 episodes failed in their first step"):
        run_verb(["tune", f"tests.kit.odd:{ODD}", "--method", "ddpg_her"])
    assert not root.exists()


@pytest.mark.thorough
def test_all_runs_share_what_is_said_of_environment_and_world(root, monkeypatch, capsys):
    trained = []

    class Instant(tune.Tuner):  # notes what would be trained
        ended, best = 1, {"exploration.noise": 0.3}

        def work(self, *_):
            self.study.tell(self.study.ask(), 1.0)
            trained.append(" ".join(self._search.words(self.best, 100, root)))

        def check(self, *_):
            return {}

    monkeypatch.setattr(tune, "Tuner", Instant)
    world = "--world.agent 4 5 --world.surrounding 6 7"
    words = ["tune", ARM, *world.split(), "--env.max-episode-steps", "40", "--epochs", "3"]
    assert run_verb(words) == 0
    shared = f"ddpg_music --env-id {ARM} --env.max-episode-steps 40 {world}"
    assert trained[0].startswith(f"{shared} --exploration.noise 0.3 --seed 100 --epochs 3 ")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"music-tf train {shared} --exploration.noise 0.3"
    assert run_verb(["tune", ARM, *world.split(), "--epochs", "3"]) == 0
    assert len(list((root / "tune").glob(f"{ARM.partition(':')[2]}_ddpg_music_*/study.db"))) == 2


def test_without_optuna_what_installs_it_is_named(root, monkeypatch):
    monkeypatch.setattr(children.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentFault, match=r"-m pip install 'music_tf\[tune\]'"):
        run_verb(["tune", *f"{REACH} ddpg_her".split()])
    assert not root.exists()


# The search.


def test_the_preset_is_the_first_trial_and_seeds_follow_each_other(root, trainer, tmp_path):
    tuner = tuner_of(trainer())
    tuner.work(4, 1, math.inf)
    assert len([*root.glob("tune/FetchReach-v4_ddpg_her_*/study.db")]) == 1
    assert seen(tmp_path)[0] == [0.2, 100]
    assert [trial.user_attrs["seed"] for trial in tuner.study.trials] == [100, 101, 100, 101]
    assert tuner.study.best_value >= 1.0 - 0.1**2 - 1e-9
    assert not [*root.glob("tune/*/worker_*")]


@cases("change", {"epochs": 4}, {"seeds": (100,)}, {"settings": ("--updates", "9")})
def test_another_search_has_a_study_of_its_own(root, trainer, monkeypatch, change):
    assert search(**change).folder != search().folder == search().folder
    before = search().folder
    monkeypatch.setattr(tune, "versions", lambda: {"music_tf": "0.0.1"})
    assert search().folder != before


def test_what_was_found_is_compared_with_the_preset_on_other_seeds(root, trainer, tmp_path):
    tuner = tuner_of(trainer())
    queue(tuner, 0.3)
    tuner.work(2, 1, math.inf)
    scores = tuner.check((200, 201, 200), 2)
    assert scores == {"preset": [pytest.approx(0.99)] * 2, "found": [pytest.approx(1.0)] * 2}
    assert sorted(seed for _, seed in seen(tmp_path)[2:]) == [200, 200, 201, 201]
    assert tuner.check((200, 201), 2) == scores
    assert len(seen(tmp_path)) == 6  # read again
    lines = tune.summary(search(), tuner, scores)
    assert lines[-1] == ("music-tf train ddpg_her --env-id FetchReach-v4 --exploration.noise 0.3")
    # Had other seeds said that the preset is better, the line would train with that.
    lines = tune.summary(search(), tuner, {"preset": [0.9], "found": [0.5]})
    assert lines[-2:] == [
        "on seeds of its own the preset is better; this line trains with it",
        "music-tf train ddpg_her --env-id FetchReach-v4",
    ]


@pytest.mark.thorough
def test_trials_far_behind_end_early(root, trainer):
    tuner = tuner_of(trainer(), epochs=40)
    queue(tuner, 0.3, 0.29, 0.28, 0.05)
    tuner.work(5, 1, math.inf)
    assert states(tuner) == [*["COMPLETE"] * 4, "PRUNED"]


@cases(
    ("metric", "noises", "text"),
    ("eval/success_rate", (0.2, 0.2001), r"exit code 1\nout of memory"),
    ("eval/return", (0.3, 0.4), "evaluation has eval/return"),
)
def test_trials_that_fail_end_the_search_with_what_they_said(root, trainer, metric, noises, text):
    method = Method((metric,), {"exploration.noise": Choices(noises)})
    tuner = tuner_of(trainer(fails=0.2), method=method)
    queue(tuner, *noises[:1] * 3)
    with pytest.raises(EnvironmentFault, match=rf"trials fail(.|\n)*{text}"):
        tuner.work(9, 1, math.inf)
    assert states(tuner)[:3] == ["FAIL"] * 3


def test_the_end_of_the_minutes_leaves_a_trial_for_the_next_time(root, trainer):
    tuner = tuner_of(trainer(10.0))
    tuner.work(9, 1, 1.0 / 60.0)
    with pytest.raises(Stopped, match="no trial has ended yet"):
        tuner.check((200,), 1)
    waiting = tuner.study.get_trials(states=(optuna.trial.TrialState.WAITING,))
    assert [trial.system_attrs["fixed_params"] for trial in waiting] == [{"exploration.noise": 0.2}]


def test_a_new_study_reads_no_run_of_an_old_one(root, trainer, tmp_path):
    tuner_of(trainer()).work(1, 1, math.inf)
    search().storage.unlink()
    tuner_of(trainer()).work(1, 1, math.inf)
    assert len(seen(tmp_path)) == 2


@cases(
    ("value", "low", "high", "log", "expected"),
    (0.21344, 0.05, 0.4, False, 0.2134),
    (0.399999, 0.05, 0.399996, False, 0.399996),  # never above the range
    (0.99951234, 0.999, 0.9999, False, 0.9995123),
    (2.34567e-4, 1e-4, 3e-3, True, 2.346e-4),
    (0.1000043214, 0.1, 0.10002, True, 0.10000432),
    (123456.0, 0.0, 1e6, False, 123000.0),
)
def test_numbers_are_rounded_within_their_range(value, low, high, log, expected):
    assert Numbers(low, high, log).rounded(value) == pytest.approx(expected, rel=1e-12)


def test_what_is_reported_was_trained(root, trainer, tmp_path):
    tuner = tuner_of(trainer())
    tuner.work(3, 1, math.inf)
    values = [trial.user_attrs["values"]["exploration.noise"] for trial in tuner.study.trials]
    assert [noise for noise, _ in seen(tmp_path)] == values
    assert all(noise == round(noise, 4) for noise in values)
    assert tuner.best["exploration.noise"] in values


@pytest.mark.parametrize("name", ["epochs", "run-dir", "preset"])
def test_a_space_holds_nothing_that_tune_sets(tmp_path, name):
    (tmp_path / "space.json").write_text(json.dumps({name: {"choices": [1, 2]}}))
    method = Method(METHOD.metrics, read_space(tmp_path / "space.json"))
    with pytest.raises(UsageError, match=f"--space: .*got {name.replace('-', '_')}"):
        search(method)
    with pytest.raises(UsageError, match=r"--metric: no .*\ndid you mean eval/success_rate?"):
        search(Method(("eval/sucess_rate",), METHOD.space))


def test_trials_that_all_score_nothing_are_told_at_once_and_at_the_end(root, trainer, monkeypatch):
    said = []
    tuner = tuner_of(trainer(), said.append)
    monkeypatch.setattr(tuner, "_trained", lambda *_: 0.0)
    tuner.work(3, 1, math.inf)
    (told,) = (at for at, text in enumerate(said) if text.startswith("all trials so far score 0"))
    assert said[told - 1].startswith("trial 1: score 0")
    assert said[told] in tune.summary(search(), tuner, {})
    monkeypatch.setattr(tuner, "_trained", lambda *_: 0.25)
    tuner.work(4, 1, math.inf)
    assert said[told] not in tune.summary(search(), tuner, {})


def test_those_who_ask_for_a_trial_wait_for_each_other(root, trainer, monkeypatch):
    tuner = tuner_of(trainer())
    ask, path = tuner.study.ask, tuner._search.storage.with_suffix(".lock")

    def asked():
        with open(path) as beside, pytest.raises(BlockingIOError):
            fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return ask()

    monkeypatch.setattr(tuner.study, "ask", asked)
    tuner.work(1, 1, math.inf)
    assert states(tuner) == ["COMPLETE"]


def test_a_trial_is_held_until_the_study_knows_its_score(root, trainer):
    tuner = tuner_of(trainer())
    tell = tuner.study.sampler.after_trial

    def late(*arguments):
        tuner_of(trainer())  # another process begins just now
        tell(*arguments)

    tuner.study.sampler.after_trial = late
    tuner.work(1, 1, math.inf)
    assert states(tuner) == ["COMPLETE"]


def locked(*_, **__):  # fails as a full disk does
    from sqlalchemy.exc import OperationalError

    raise OperationalError("INSERT", {}, OSError("database or disk is full"))


def test_a_full_disk_during_a_trial_ends_its_process(root, trainer, monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1]
    )
    tuner = tuner_of(trainer(0.2), epochs=100)
    monkeypatch.setattr(optuna.trial.Trial, "report", locked)
    with pytest.raises(EnvironmentFault, match=r"study\.db: cannot be .* written .*disk is full"):
        tuner.work(9, 1, math.inf)
    assert ([process.poll() for process in started], tuner.ended) == ([-signal.SIGKILL], 0)


def test_a_file_that_is_no_database_is_the_fault_of_the_machine(root, trainer):
    search().folder.mkdir(parents=True)
    search().storage.write_text("no database " * 100)
    text = r"study\.db: cannot be .* written \(.*not a database.*\n.*move .*FetchReach-v4_ddpg_her"
    with pytest.raises(EnvironmentFault, match=text):
        tuner_of(trainer())


WORKER = """
import json, math, sys
from tests.tools.test_tune import tuner_of
tuner = tuner_of(json.loads(sys.argv[1]), print)
tuner.work(int(sys.argv[2]), 1, math.inf)
tuner.check([int(seed) for seed in sys.argv[3:]], 1)
"""


def started(trainer, trials, *seeds):
    words = [sys.executable, "-c", WORKER, json.dumps(trainer), str(trials), *map(str, seeds)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, text=True)


@pytest.mark.thorough
def test_two_processes_share_a_study_and_one_that_is_killed_loses_nothing(root, trainer, tmp_path):
    endless = started(trainer(100.0), 1)
    begun, end = search().folder / "trial_0000/metrics.csv", time.monotonic() + 60.0
    while not begun.exists() and time.monotonic() < end:
        time.sleep(0.1)
    endless.kill()
    endless.wait(timeout=60)
    both = [started(trainer(), 6, 200) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    tuner = tuner_of(trainer())
    assert 6 <= tuner.ended <= 7  # two processes may each be at the last one
    assert states(tuner)[0] == "FAIL"
    retried = [trial.params["exploration.noise"] for trial in tuner.study.trials[1:]]
    assert 0.2 in retried
    checked = [noise for noise, seed in seen(tmp_path) if seed == 200]
    assert len(checked) == len(set(checked))  # each process reads what the other has trained


@pytest.mark.thorough
def test_a_toy_is_tuned_for_real(root, tmp_path, capsys, monkeypatch):
    space = {"cycles": {"choices": [1, 2]}, "updates": {"choices": [1, 2]}}
    (tmp_path / "space.json").write_text(json.dumps(space))
    words = ["--method", "ddpg_her", "--epochs", "1", "--trials", "1", "--jobs", "1"]
    words += ["--space", str(tmp_path / "space.json"), "--check-seeds"]
    monkeypatch.chdir(tmp_path)
    assert run_verb(["tune", "music_tf/PointPush-v0", *words]) == 0
    preset, first, begun, *_, last = capsys.readouterr().out.splitlines()
    assert preset.startswith("the preset is no trial: the space does not hold its cycles ")
    (storage,) = root.glob("tune/music_tf_PointPush-v0_ddpg_her_*/study.db")
    assert first == f"study: {storage}, 0 of 1 trials have ended"
    assert begun.startswith("trial 0 begins: seed 100, --cycles ")
    assert last.startswith("music-tf train ddpg_her --env-id music_tf/PointPush-v0 --cycles ")
    assert (storage.parent / "trial_0000/summary.json").exists()
