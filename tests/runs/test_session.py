import errno
import json
import shutil
import signal
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from music_tf.config.settings import CollectConfig, EnvConfig, ReplayConfig
from music_tf.config.warm_start import WarmStart
from music_tf.distributed import Communicator
from music_tf.envs import lockstep
from music_tf.envs.member import PlainMember
from music_tf.envs.toys import PointReach
from music_tf.errors import EnvironmentFault, NumbersFault, Stopped, UsageError
from music_tf.process import signals, watchdog
from music_tf.process.signals import since_launch
from music_tf.replay.buffer import ReplayBuffer
from music_tf.runs import session
from music_tf.runs.warm_start import read_parts
from music_tf.storage.checkpoint import Checkpoints, save_weights
from music_tf.storage.metrics import PATHS_TAG
from music_tf.storage.results import read_result
from music_tf.training.trainer import Trainer
from tests.kit.cases import cases
from tests.kit.counting import FORGETFUL, RAISING
from tests.kit.saved_run import load_weights, rows_of
from tests.kit.sessions import command_of, run_session, stop_asked
from tests.kit.small import EVERYTHING, HER, MUSIC, SMALL_SKILL, paying

pytestmark = pytest.mark.thorough

HER_RUN = replace(HER, workers=1, epochs=3, updates=2)
"""Epochs of 2 cycles of 60 steps."""
ONE = replace(HER_RUN, epochs=1)
FORGETS = replace(
    HER_RUN, env_id=FORGETFUL, env=EnvConfig(remake=True), replay=ReplayConfig(batch_size=8)
)
RAISES = replace(FORGETS, env_id=RAISING, env=EnvConfig())
SHORT = replace(HER_RUN, max_minutes=1e-9)


@pytest.fixture
def failing_disk(monkeypatch):  # lets so many checkpoints fail, from the next one on
    commit = Checkpoints._commit

    def fail(times):
        left = [None] * times

        def write(*arguments):
            if left:
                left.pop()
                raise OSError(errno.ENOSPC, "No space left on device")
            return commit(*arguments)

        monkeypatch.setattr(Checkpoints, "_commit", write)

    return fail


@pytest.fixture
def bad_numbers(monkeypatch):
    """Makes the updates of the given cycles, counted from 1, meet a gradient that is not finite."""
    sample = ReplayBuffer.transitions

    def poison(*cycles):
        seen = []

        def spoiled(self, *arguments, **named):
            batch = sample(self, *arguments, **named)
            seen.append(1)
            if len(seen) in cycles:
                batch.reward[0, 0, 0] = np.nan
            return batch

        monkeypatch.setattr(ReplayBuffer, "transitions", spoiled)

    return poison


def train(path, config=HER_RUN, resume=False, warm_start=None, gpu=None, **more):
    run_session(command_of(config, path, resume, **more), warm_start, gpu=gpu)


def epochs_of(path):
    return [int(row["epoch"]) for row in rows_of(path)]


def weights_of(path):
    return load_weights(path / "checkpoints")[0]


def meta_of(path, label=""):
    return load_weights(path / "checkpoints" / label)[1]


def summary_of(path):
    return json.loads((path / "summary.json").read_text())


def shown_of(path):  # the events of a run; pictures of object paths by environment steps
    events = EventAccumulator(str(path), size_guidance={"images": 0}).Reload()
    found = events.Images(PATHS_TAG) if PATHS_TAG in events.Tags()["images"] else []
    return events, {image.step: image.encoded_image_string for image in found}


def state_of(path):  # all that a checkpoint holds, but for the seconds that training took
    restored = Checkpoints(path / "checkpoints", Communicator()).restore(["worker_0000"])
    rows = restored.shards["worker_0000"]
    replay = {n: [row for save in rows for row in save[n]] for n in rows[0] if rows[0][n].ndim}
    replay |= {name: last for name, last in rows[-1].items() if not last.ndim}
    counters = restored.meta.pop("counters")
    restored.meta["log"].pop("seconds")
    del counters["elapsed_s"], counters["wall_s"]
    return restored.arrays, replay, restored.meta, counters


def assert_same_end(path, other):
    np.testing.assert_equal(state_of(path), state_of(other))
    assert rows_of(path) == rows_of(other)
    assert shown_of(path)[1] == shown_of(other)[1]
    for name in ("epochs", "env_steps", "updates"):
        assert summary_of(path)[name] == summary_of(other)[name]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    train(path)
    return path


def test_a_run_leaves_configuration_metrics_events_checkpoints_and_summary(whole):
    config = json.loads((whole / "config.json").read_text())
    assert config["recipe"] == "ddpg_her"
    assert config["config"]["replay"]["relabel_k"] == 4.0
    assert epochs_of(whole) == [1, 2, 3]
    events, pictures = shown_of(whole)
    assert [event.step for event in events.Scalars("train/critic_loss")] == [120, 240, 360]
    assert list(pictures) == [120, 240, 360]
    text = events.Tensors("configuration")[0].tensor_proto.string_val[0].decode()
    assert '"recipe": "ddpg_her"' in text
    names = {path.name for path in (whole / "checkpoints").iterdir()}
    assert {"epoch_000001", "epoch_000002", "epoch_000003", "best", "replay"} <= names
    shards = sorted((whole / "checkpoints/replay/worker_0000").glob("*.npz"))
    # a save adds what is new: 2 cycles of 2 episodes an epoch
    saved = [np.load(path)["slots"].tolist() for path in shards]
    assert saved == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    summary = summary_of(whole)
    assert (summary["epochs"], summary["env_steps"], summary["updates"]) == (3, 360, 12)
    assert set(summary["evaluation"]) == {"ours", "random"}
    launched = read_result(whole / "metrics.csv").columns["time/wall_s"][-1]
    assert summary["wall_s"] > launched > summary["training_s"] > 0.0
    assert summary["metrics"]["train/critic_loss"] == float(rows_of(whole)[-1]["train/critic_loss"])
    assert (whole / "logs" / "rank_0000.log").is_file()


def test_at_times_the_whole_replay_is_written_anew_and_old_shards_go(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "COMPACT_EVERY", 2)
    path = tmp_path / "run"
    train(path, replace(HER_RUN, epochs=2))
    worker = path / "checkpoints/replay/worker_0000"
    assert np.load(worker / "epoch_000002.npz")["slots"].tolist() == list(range(8))
    manifest = json.loads((path / "checkpoints/epoch_000002/manifest.json").read_text())
    assert "replay/worker_0000/epoch_000001" not in json.dumps(manifest)
    train(path, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(whole))
    assert rows_of(path) == rows_of(whole)


def train_in_parts(path, config, parts):
    """Trains up to the given looks for a stop, of which an epoch of 2 cycles has 3, or epochs."""
    for number, (stop, epochs) in enumerate([*parts, (0, 3)]):
        command = command_of(replace(config, epochs=epochs), path, resume=number > 0)
        if not stop:
            run_session(command)
            continue
        with stop_asked(stop), pytest.raises(Stopped, match="steps; to resume:\n") as stopped:
            run_session(command)
        assert str(stopped.value).endswith(f"--run-dir {path} --resume")
        assert not (path / "summary.json").exists()


@cases("parts", *([(looks, 3)] for looks in (1, 2, 3, 4)), [(1, 3)] * 3, [(0, 1)], ids=str)
def test_a_run_in_parts_ends_as_a_whole_one(whole, tmp_path, parts):
    train_in_parts(tmp_path / "run", HER_RUN, parts)
    assert_same_end(tmp_path / "run", whole)


@cases(
    ("config", "parts"),
    (EVERYTHING, [(0, 1), (0, 2)]),
    (replace(MUSIC, replay=replace(HER.replay, priority="music")), [(3, 3)]),
    ids=["everything", "priorities"],
)
def test_other_configurations_in_parts_end_as_whole_runs_too(tmp_path, config, parts):
    config = replace(config, workers=1, epochs=3, updates=2)
    train(tmp_path / "whole", config)
    train_in_parts(tmp_path / "run", config, parts)
    assert_same_end(tmp_path / "run", tmp_path / "whole")
    if config.replay.priority in config.rewards:
        assert len(np.unique(state_of(tmp_path / "run")[1]["priority"])) > 1


def test_resuming_a_finished_run_only_sums_up_again(whole):
    before, metrics = weights_of(whole), summary_of(whole)["metrics"]
    train(whole, resume=True)
    np.testing.assert_equal(weights_of(whole), before)
    assert (summary_of(whole)["epochs"], summary_of(whole)["metrics"]) == (3, metrics)


@cases(
    ("config", "said"),
    (HER_RUN, 0),
    (replace(FORGETS, env=EnvConfig()), 1),
    (FORGETS, 0),
    (RAISES, 1),
    (paying(RAISES, SMALL_SKILL, skills=2), 0),
)
def test_a_run_that_cannot_be_exact_says_so_once_at_its_start(config, said, tmp_path, capsys):
    train(tmp_path / "run", replace(config, epochs=1))
    lines = capsys.readouterr().out.splitlines()
    text = f"{config.env_id} does not repeat itself under one seed, so neither does this run; "
    assert [line.startswith(text) for line in lines].count(True) == said


def test_a_run_too_short_to_learn_says_so(tmp_path, capsys):
    train(tmp_path / "run", replace(ONE, collect=CollectConfig(update_after=10**6)))
    assert "no update was made, learning begins after 1000000" in capsys.readouterr().out


def test_time_is_up_after_the_epoch_that_uses_it_and_resuming_says_so(tmp_path, capsys):
    path = tmp_path / "run"
    train(path, SHORT)  # at the start no time has passed, so one epoch is trained
    assert summary_of(path)["epochs"] == meta_of(path)["counters"]["epoch"] == 1
    shown = capsys.readouterr().out
    assert "nothing left to train" not in shown
    assert "no update was made" not in shown
    assert "ended by --max-minutes 1e-09: 1 of 3 epochs in 0." in shown
    assert shown.count("if these rise") == 1
    again = f"music-tf train ddpg_her --run-dir {path} --resume --max-minutes "
    assert f"\ngo on:  {again}" in shown
    assert "success 0.000 (random 0.000): not yet 0.9\n" in shown
    for missing in (False, True):
        if missing:  # as after an end within the last comparison, which is then made
            (path / "summary.json").unlink()
        train(path, SHORT, resume=True)
        shown = capsys.readouterr().out
        said = "nothing left to train: 1 of 3 epochs in 0."
        assert (said in shown, "comparing" in shown) == (not missing, missing)
        assert again in shown
    assert summary_of(path)["epochs"] == 1
    with stop_asked(1), pytest.raises(Stopped):
        train(tmp_path / "stopped", SHORT)
    train(tmp_path / "stopped", SHORT, resume=True)  # finishes the epoch all the same
    assert epochs_of(path) == epochs_of(tmp_path / "stopped") == [1]


@cases(
    ("rates", "disturbance", "best"),
    ([0.2, 0.5, 0.5], "", (3, 0.5)),
    ([0.8, 0.1, 0.3], "resumed", (1, 0.8)),
    ([0.8, 0.5, 0.3], "the disk refuses the first", (2, 0.5)),
    # the third epoch of four is not saved, and is played again
    ([0.1, 0.5, 0.9, 0.6, 0.3], "bad numbers", (3, 0.9)),
    ids=str,
)
def test_the_best_weights_are_the_latest_of_equals(
    tmp_path, monkeypatch, bad_numbers, rates, disturbance, best
):
    found, path, saved = iter(rates), tmp_path / "run", []
    evaluate = Trainer.evaluate

    def refuse_first(*arguments):
        saved.append(arguments)
        return len(saved) > 1 and save_weights(*arguments)

    monkeypatch.setattr(
        Trainer, "evaluate", lambda *given: evaluate(*given) | {"eval/success_rate": next(found)}
    )
    config = HER_RUN
    if disturbance == "the disk refuses the first":
        monkeypatch.setattr(session, "save_weights", refuse_first)
    if disturbance == "bad numbers":
        bad_numbers(7)
        config = replace(HER_RUN, epochs=4, checkpoint_every=2)
    if disturbance == "resumed":
        train(path, ONE)
    train(path, config, resume=disturbance == "resumed")
    meta = meta_of(path, "best")
    assert (meta["counters"]["epoch"], meta["best_success_rate"]) == best


def test_unsupervised_runs_have_no_best_and_are_about_control(tmp_path, capsys):
    path = tmp_path / "run"
    train(path, replace(MUSIC, workers=1, epochs=1, cycles=1))
    assert not (path / "checkpoints" / "best").exists()
    assert not rows_of(path)[0].get("eval/success_rate")
    assert "  co-motion " in capsys.readouterr().out


def test_a_stop_and_an_end_are_saved_at_the_third_try(whole, tmp_path, failing_disk, caplog):
    path = tmp_path / "run"
    failing_disk(2)
    with stop_asked(1), pytest.raises(Stopped, match="stopped and saved after 60 steps"):
        train(path, ONE)
    assert meta_of(path)["counters"]["cycle"] == 1
    failing_disk(2)
    train(path, ONE, resume=True)
    assert meta_of(path)["counters"]["cycle"] == 2
    assert len([text for text in caplog.messages if "checkpoint not saved" in text]) == 4
    train(path, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(whole))


def test_a_checkpoint_of_another_making_is_refused_by_name(tmp_path, monkeypatch):
    path, meta = tmp_path / "run", Trainer.meta
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "meta", lambda self: meta(self) | {"updates": "many"})
        train(path, ONE)
    with pytest.raises(UsageError, match=r"(?s)does not fit config\.json\nmeta\.updates.*many"):
        train(path, resume=True)


def test_bad_numbers_cost_an_epoch_and_halve_steps_once(tmp_path, bad_numbers, caplog):
    path, parts = tmp_path / "run", tmp_path / "stopped"
    bad_numbers(4)  # the second cycle of the second epoch
    train(path)
    assert "non-finite" in caplog.text
    assert "back to the checkpoint of epoch 1, continuing with 0.5 of the step size" in caplog.text
    assert epochs_of(path) == [1, 2, 3]
    assert [row["time/env_steps"] for row in rows_of(path)] == ["120", "240", "360"]
    meta = meta_of(path)
    assert (meta["step_scale"], meta["counters"]["cycle"]) == (0.5, session.OTHER_CYCLES + 6)
    evidence = np.load(path / "logs/rank_0000.bad_numbers.npz", allow_pickle=False)
    assert np.isnan(evidence["transitions.reward"][0, 0, 0])

    bad_numbers(4)  # a run that was put back resumes with its smaller steps
    with stop_asked(8), pytest.raises(Stopped):
        train(parts)
    train(parts, resume=True)
    assert_same_end(parts, path)


def test_ranks_that_hold_different_things_at_the_end_of_an_epoch_go_back(tmp_path, monkeypatch):
    checked = []

    def check_equal(trainer):
        checked.append(trainer.counters.epoch)
        if len(checked) == 2:
            raise NumbersFault("ranks differ")

    monkeypatch.setattr(Trainer, "check_equal", check_equal)
    train(tmp_path / "run")
    assert checked == [1, 2, 2, 3]


def test_going_back_has_patience_and_shows_epochs_left(tmp_path, bad_numbers, monkeypatch, capsys):
    restore, allowances = Checkpoints.restore, []

    def noted(*arguments, **options):
        allowances.append(watchdog._heart.factor)
        return restore(*arguments, **options)

    monkeypatch.setattr(Checkpoints, "restore", noted)
    bad_numbers(7)  # in the fourth epoch, and the second was saved last
    train(tmp_path / "run", replace(HER_RUN, epochs=4, checkpoint_every=2))
    assert allowances == [watchdog.LONGER]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = [line[1] for line in lines if line[:1] == ["epoch"]]
    assert shown == ["1/4", "2/4", "3/4", "3/4", "4/4"]


@pytest.mark.parametrize(("cycles", "epochs"), [((1,), 0), ((4, 6), 1)])
def test_a_second_time_or_without_checkpoint_they_end_a_run(tmp_path, bad_numbers, cycles, epochs):
    bad_numbers(*cycles)
    with pytest.raises(NumbersFault, match="non-finite"):
        train(tmp_path / "run")
    assert len(list((tmp_path / "run/checkpoints").glob("epoch_*"))) == epochs


@pytest.fixture
def warm_start(whole):
    parts = ("actor", "critic", "targets", "normalizer")
    return read_parts(HER_RUN, whole / "checkpoints", parts)


def test_a_run_that_starts_from_another_needs_it_once(whole, tmp_path, warm_start, capsys):
    straight, path = tmp_path / "straight", tmp_path / "run"
    config = replace(HER_RUN, seed=3)
    train(straight, config, warm_start=warm_start)
    with stop_asked(1), pytest.raises(Stopped):
        train(path, config, warm_start=warm_start)
    first, before = load_weights(path / "checkpoints" / "epoch_000000"), weights_of(whole)
    assert first[1]["counters"]["epoch"] == 0
    for name in before:
        if name.startswith(("targets/", "normalizer/")):
            np.testing.assert_array_equal(first[0][name], before[name])
    said = f"starts from {whole}, epoch 3: actor, critic, targets, normalizer"
    assert capsys.readouterr().out.splitlines().count(said) == 2  # for each of both
    train(path, config, resume=True)
    assert capsys.readouterr().out.splitlines().count(said) == 1
    assert_same_end(path, straight)
    record = json.loads((path / "config.json").read_text())["init_from"]
    assert record == warm_start.record
    assert (record["run"], record["checkpoint"]) == (str(whole / "checkpoints"), "epoch_000003")


def test_all_checkpoints_of_a_warm_start_count_the_steps_of_its_source(
    whole, tmp_path, warm_start, caplog
):
    path, before = tmp_path / "run", warm_start.record["before"]
    assert before["time/env_steps"] == meta_of(whole)["counters"]["env_steps"] > 0
    assert meta_of(whole)["before"] == {}
    start = WarmStart("runs/whole", tuple(warm_start.record["parts"]), 13)
    train(path, ONE, warm_start=warm_start, start=start)
    assert "published is a source of 13 epochs, got 3" in caplog.text
    train(path, replace(HER_RUN, epochs=2), resume=True)
    for label in ("epoch_000001", "epoch_000002", "best"):
        assert meta_of(path, label)["before"] == before
    again, own = (read_parts(HER_RUN, path / "checkpoints", ("actor",)), meta_of(path)["counters"])
    assert again.record["before"] == {
        f"time/{name}": before[f"time/{name}"] + own[name]
        for name in ("env_steps", "episodes", "episodes_cut", "elapsed_s", "wall_s")
    }


def test_seconds_since_the_launch_go_on_after_a_resume(tmp_path):
    path = tmp_path / "run"
    train(path, ONE)
    first = read_result(path / "metrics.csv").columns["time/wall_s"]
    saved = meta_of(path)["counters"]["wall_s"]
    assert saved >= first[0]  # saving comes after
    train(path, replace(HER_RUN, epochs=2), resume=True)
    later = read_result(path / "metrics.csv").columns["time/wall_s"]
    assert later[0] == first[0]
    assert later[1] > saved + since_launch() - 60.0  # this process has run both


def test_bad_numbers_before_a_save_return_a_warm_start_to_its_start(
    tmp_path, bad_numbers, warm_start
):
    for cycle in (1, 2):
        bad_numbers(cycle)
        train(tmp_path / f"{cycle}", warm_start=warm_start)
        train(tmp_path / f"{cycle}", replace(HER_RUN, epochs=4), resume=True)
    np.testing.assert_equal(state_of(tmp_path / "2"), state_of(tmp_path / "1"))


def test_a_run_that_was_cut_off_before_it_saved_its_start_says_so(tmp_path, warm_start):
    path = tmp_path / "run"
    train(path, ONE, warm_start=warm_start)
    shutil.rmtree(path / "checkpoints")
    (path / "checkpoints").mkdir()
    with pytest.raises(UsageError, match=r"(?s)stopped before it had saved.*--init-from"):
        train(path, HER_RUN, resume=True)


@pytest.mark.parametrize(("recipe", "times"), [(HER_RUN, 1), (MUSIC, 0)])
def test_success_before_the_last_step_alone_is_told_once(
    tmp_path, monkeypatch, caplog, recipe, times
):
    step = lockstep.LockstepEnvs.step

    def early(self, actions, indices):
        taken = step(self, actions, indices)
        taken.success[:] = ~(taken.terminated | taken.truncated)
        return taken

    monkeypatch.setattr(lockstep.LockstepEnvs, "step", early)
    train(tmp_path / "run", recipe)
    told = [record.getMessage() for record in caplog.records]
    assert sum("none at the last, which alone counts" in text for text in told) == times


def test_paths_are_drawn_at_evaluations_of_an_object_and_the_last_epoch_is_saved(tmp_path):
    seldom = replace(HER_RUN.evaluation, every=2)
    train(tmp_path / "push", replace(HER_RUN, checkpoint_every=2, evaluation=seldom))
    train(tmp_path / "reach", replace(HER_RUN, env_id="music_tf/PointReach-v0"))
    drawn, others = (list(shown_of(tmp_path / name)[1]) for name in ("push", "reach"))
    assert (drawn, others) == ([240, 360], [])  # the last epoch in any case
    saved = sorted(folder.name for folder in (tmp_path / "push/checkpoints").glob("epoch_*"))
    assert saved == ["epoch_000002", "epoch_000003"]


def test_a_new_run_that_is_refused_leaves_its_folder_alone(tmp_path, monkeypatch):
    config, run = replace(MUSIC, env_id="music_tf/PointReach-v0"), tmp_path / "run"
    with pytest.raises(UsageError, match="PointReach"):
        run_session(command_of(config, run))
    assert list(tmp_path.rglob("*")) == []
    for owner, name, told in (
        (PlainMember, "reset", "reset with seed 0 fails twice"),
        (PointReach, "step", "episodes failed in their first step"),
        (gymnasium, "make", "cannot be created"),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, lambda *given, **options: 1 / 0)
            with pytest.raises(EnvironmentFault, match=told):
                run_session(command_of(HER_RUN, run))
        assert list(tmp_path.rglob("*")) == [run]  # in which a launcher reads how it ended


@pytest.fixture
def stopped_after(monkeypatch):
    """Sends the signal while the environment of this number is made."""

    def send(number):
        made, make = [], lockstep.make_environment

        def making(env_id, *options):
            made.append(env_id)
            if len(made) == number:
                signals._received.append(signal.SIGUSR1)
            return make(env_id, *options)

        monkeypatch.setattr(lockstep, "make_environment", making)
        return made

    yield send
    signals.forget_signals()


@pytest.mark.parametrize("number", [1, 2, 8])
def test_a_stop_while_environments_are_made_leaves_no_new_run(tmp_path, stopped_after, number):
    made = stopped_after(number)
    with pytest.raises(Stopped, match=r"before the first step, nothing is saved yet: start it"):
        train(tmp_path / "run", replace(HER_RUN, rollouts=8))
    assert len(made) == max(number, 2)  # the first is that of the trial
    assert list(tmp_path.rglob("*")) == [tmp_path / "run"]


def test_a_stop_while_environments_are_made_keeps_a_resumed_run(whole, tmp_path, stopped_after):
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    kept = [path / name for name in ("metrics.csv", "config.json")]
    before = [file.read_bytes() for file in kept], sorted((path / "checkpoints").iterdir())
    stopped_after(1)
    told = rf"before the first step, no setting has changed yet; to resume:\n.*{path} --resume"
    with pytest.raises(Stopped, match=told):
        train(path, replace(HER_RUN, epochs=5), resume=True)
    after = [file.read_bytes() for file in kept], sorted((path / "checkpoints").iterdir())
    assert after == before


def test_with_a_gpu_updates_look_up_replay_there_and_a_resume_is_bit_equal(tmp_path, capsys):
    straight, path, config = tmp_path / "straight", tmp_path / "run", replace(HER_RUN, epochs=2)
    train(straight, config, gpu="a GPU", device="gpu")
    assert "replay has a copy on the device, 0.00 GiB" in capsys.readouterr().out
    train(path, ONE, gpu="a GPU", device="gpu")
    train(path, config, resume=True, gpu="a GPU", device="gpu")
    np.testing.assert_equal(weights_of(path), weights_of(straight))
