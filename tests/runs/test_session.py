import csv
import dataclasses
import errno
import itertools
import json
import os
import shutil
import signal

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from music_tf import process
from music_tf.config.command import TrainCommand
from music_tf.config.start import Start
from music_tf.distributed import Communicator
from music_tf.envs import lockstep
from music_tf.errors import EnvironmentFault, NumbersFault, Stopped, UsageError
from music_tf.replay.buffer import ReplayBuffer
from music_tf.runs import session
from music_tf.runs.warm_start import try_heritage
from music_tf.storage.checkpoint import Checkpoints, save_weights
from music_tf.storage.metrics import PATHS_TAG
from music_tf.training import trainer
from tests.kit.saved_run import load_weights
from tests.kit.sessions import run_session
from tests.kit.small import EVERYTHING, HER, MUSIC, TIMES

HER_RUN = dataclasses.replace(HER, workers=1, epochs=3, updates=2)


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch):
    compare = session.compare
    monkeypatch.setattr(session, "compare", lambda *given: compare(*given, 4))


@pytest.fixture
def stop_after(monkeypatch):
    """Asks for a stop the n-th time somebody looks; an epoch of 2 cycles looks 3 times."""

    def ask(cycles):
        seen = []

        def stop_requested():
            seen.append(1)
            return bool(cycles) and len(seen) >= cycles

        monkeypatch.setattr(session, "stop_requested", stop_requested)

    return ask


def train(path, config=HER_RUN, resume=False, heritage=None, start=None):
    command = TrainCommand(
        recipe="ddpg_her",
        preset="laptop",
        config=config,
        run_dir=path,
        resume=resume,
        arguments=("ddpg_her", "--epochs", str(config.epochs)),
        start=start,
    )
    run_session(command, heritage)


def rows_of(path):
    with (path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def weights_of(path):
    return load_weights(path / "checkpoints")[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        compare = session.compare
        patch.setattr(session, "compare", lambda *given: compare(*given, 4))
        train(path)
    return path


def test_a_run_leaves_configuration_metrics_events_checkpoints_and_summary(whole):
    config = json.loads((whole / "config.json").read_text())
    assert config["recipe"] == "ddpg_her"
    assert config["config"]["replay"]["relabel_k"] == 4.0
    assert [row["epoch"] for row in rows_of(whole)] == ["1", "2", "3"]
    accumulator = EventAccumulator(str(whole))
    accumulator.Reload()
    assert [event.step for event in accumulator.Scalars("train/critic_loss")] == [120, 240, 360]
    assert [event.step for event in accumulator.Images(PATHS_TAG)] == [120, 240, 360]
    text = accumulator.Tensors("configuration")[0].tensor_proto.string_val[0].decode()
    assert '"recipe": "ddpg_her"' in text
    names = {path.name for path in (whole / "checkpoints").iterdir()}
    assert {"epoch_000001", "epoch_000002", "epoch_000003", "best", "replay"} <= names
    shards = sorted((whole / "checkpoints/replay/worker_0000").glob("*.npz"))
    # a save adds what is new: 2 cycles of 2 episodes an epoch
    assert [np.load(path)["slots"].tolist() for path in shards] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
    ]
    summary = json.loads((whole / "summary.json").read_text())
    assert (summary["epochs"], summary["env_steps"], summary["updates"]) == (3, 360, 12)
    assert set(summary["evaluation"]) == {"ours", "random"}
    assert summary["wall_s"] >= summary["training_s"] > 0.0
    last = rows_of(whole)[-1]["train/critic_loss"]
    assert summary["metrics"]["train/critic_loss"] == float(last)
    assert (whole / "logs" / "rank_0000.log").is_file()


def test_now_and_then_the_whole_replay_is_written_anew_and_old_shards_go(
    whole, tmp_path, monkeypatch
):
    monkeypatch.setattr(session, "COMPACT_EVERY", 2)
    path = tmp_path / "run"
    train(path, dataclasses.replace(HER_RUN, epochs=2))
    worker = path / "checkpoints/replay/worker_0000"
    assert np.load(worker / "epoch_000002.npz")["slots"].tolist() == list(range(8))
    manifest = json.loads((path / "checkpoints/epoch_000002/manifest.json").read_text())
    assert "replay/worker_0000/epoch_000001" not in json.dumps(manifest)
    train(path, HER_RUN, resume=True)  # from the second epoch to the third
    np.testing.assert_equal(weights_of(path), weights_of(whole))
    assert rows_of(path) == rows_of(whole)


@pytest.mark.parametrize("cycles", [1, 2, 3, 4])
def test_a_stopped_run_goes_on_to_the_same_end(whole, tmp_path, stop_after, cycles):
    path = tmp_path / "run"
    stop_after(cycles)
    with pytest.raises(Stopped, match=r"(?s)after \d+ steps.*--resume"):
        train(path)
    assert not (path / "summary.json").exists()
    stop_after(0)
    train(path, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(whole))
    assert rows_of(path) == rows_of(whole)
    summary = json.loads((path / "summary.json").read_text())
    assert (summary["epochs"], summary["env_steps"]) == (3, 360)


def test_a_run_stopped_again_and_again_ends_the_same(whole, tmp_path, stop_after):
    path = tmp_path / "run"
    for attempt in range(3):
        stop_after(1)
        with pytest.raises(Stopped):
            train(path, resume=attempt > 0)
    stop_after(0)
    train(path, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(whole))
    assert rows_of(path) == rows_of(whole)


def test_a_finished_run_can_be_prolonged(whole, tmp_path):
    path = tmp_path / "run"
    train(path, dataclasses.replace(HER_RUN, epochs=1))
    train(path, HER_RUN, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(whole))
    assert rows_of(path) == rows_of(whole)


def test_resuming_a_finished_run_only_sums_up_again(whole, tmp_path):
    before = weights_of(whole)
    metrics = json.loads((whole / "summary.json").read_text())["metrics"]
    train(whole, resume=True)
    np.testing.assert_equal(weights_of(whole), before)
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["epochs"] == 3
    assert summary["metrics"] == metrics


def test_the_last_epoch_is_saved_whatever_the_interval(tmp_path):
    path = tmp_path / "run"
    train(path, dataclasses.replace(HER_RUN, checkpoint_every=2))
    _, meta = load_weights(path / "checkpoints")
    assert meta["counters"]["epoch"] == 3
    names = {entry.name for entry in (path / "checkpoints").iterdir()}
    assert "epoch_000001" not in names


def test_time_is_up_after_the_epoch_that_uses_it(tmp_path):
    path = tmp_path / "run"
    train(path, dataclasses.replace(HER_RUN, max_minutes=1e-9))
    # at the start no time has passed, so one epoch is trained
    assert json.loads((path / "summary.json").read_text())["epochs"] == 1
    _, meta = load_weights(path / "checkpoints")
    assert meta["counters"]["epoch"] == 1


def test_an_epoch_that_was_interrupted_is_finished_even_if_time_is_up(tmp_path, stop_after):
    config = dataclasses.replace(HER_RUN, max_minutes=1e-9)
    stop_after(1)
    with pytest.raises(Stopped):
        train(tmp_path / "run", config)
    stop_after(0)
    train(tmp_path / "run", config, resume=True)
    assert [row["epoch"] for row in rows_of(tmp_path / "run")] == ["1"]


def test_a_run_that_has_used_its_time_says_so(tmp_path, capsys):
    config = dataclasses.replace(HER_RUN, max_minutes=1e-9)
    train(tmp_path / "run", config)
    assert "nothing left to train" not in capsys.readouterr().out
    train(tmp_path / "run", config, resume=True)
    said = "nothing left to train: 1 of 3 epochs and 0."
    assert said in capsys.readouterr().out
    assert [row["epoch"] for row in rows_of(tmp_path / "run")] == ["1"]


def with_success(monkeypatch, rates):
    """Replaces what evaluation finds by given success rates, epoch by epoch."""
    original = trainer.Trainer.evaluate

    def evaluate(self, *arguments, **named):
        row = original(self, *arguments, **named)
        return row | {"eval/success_rate": rates[self.counters.epoch - 1]}

    monkeypatch.setattr(trainer.Trainer, "evaluate", evaluate)


def best_epoch(path):
    _, meta = load_weights(path / "checkpoints" / "best")
    return meta["counters"]["epoch"], meta["best_success_rate"]


def test_the_best_weights_are_the_latest_of_equals(tmp_path, monkeypatch):
    with_success(monkeypatch, [0.2, 0.5, 0.5])
    train(tmp_path / "run")
    assert best_epoch(tmp_path / "run") == (3, 0.5)


def test_the_best_weights_stay_the_best_after_resuming(tmp_path, monkeypatch):
    with_success(monkeypatch, [0.8, 0.1, 0.3])
    path = tmp_path / "run"
    train(path, dataclasses.replace(HER_RUN, epochs=1))
    train(path, HER_RUN, resume=True)
    assert best_epoch(path) == (1, 0.8)


def test_a_best_that_the_disk_refused_stands_in_nobodys_way(tmp_path, monkeypatch):
    with_success(monkeypatch, [0.8, 0.5, 0.3])
    saved = []

    def refuse_first(*arguments):
        saved.append(arguments)
        return len(saved) > 1 and save_weights(*arguments)

    monkeypatch.setattr(session, "save_weights", refuse_first)
    train(tmp_path / "run")
    assert best_epoch(tmp_path / "run") == (2, 0.5)


def test_unsupervised_runs_have_no_best(tmp_path):
    path = tmp_path / "run"
    train(path, dataclasses.replace(MUSIC, workers=1, epochs=1, cycles=1))
    assert not (path / "checkpoints" / "best").exists()
    assert "eval/success_rate" not in rows_of(path)[0] or not rows_of(path)[0]["eval/success_rate"]
    assert session.leading_metric(MUSIC) == "eval/object_comotion_m"
    assert session.leading_metric(HER) == "eval/success_rate"


def test_a_resumed_run_must_be_the_same_run(whole):
    with pytest.raises(UsageError, match="seed"):
        train(whole, dataclasses.replace(HER_RUN, seed=5), resume=True)


def state_of(path):
    """All that a checkpoint holds, but for the seconds that training took."""
    restored = Checkpoints(path / "checkpoints", Communicator()).restore(["worker_0000"])
    rows = restored.shards["worker_0000"]
    replay = {name: np.concatenate([np.atleast_1d(r[name]) for r in rows]) for name in rows[0]}
    counters = restored.meta.pop("counters")
    restored.meta["log"].pop("seconds")
    del counters["elapsed_s"]
    return restored.arrays, replay, restored.meta, counters


def test_one_epoch_at_a_time_ends_bit_equal_to_all_at_once(tmp_path):
    config = dataclasses.replace(EVERYTHING, workers=1, epochs=3)
    train(tmp_path / "whole", config)
    for epochs in (1, 2, 3):
        part = dataclasses.replace(config, epochs=epochs)
        train(tmp_path / "parts", part, resume=epochs > 1)
    np.testing.assert_equal(state_of(tmp_path / "parts"), state_of(tmp_path / "whole"))
    assert rows_of(tmp_path / "parts") == rows_of(tmp_path / "whole")


def test_metrics_that_the_disk_refuses_for_a_while_cost_one_warning(tmp_path, monkeypatch, caplog):
    opened, looked = os.open, []
    refused, reasons = [], itertools.cycle([errno.ENOSPC, errno.EROFS, errno.EIO])

    def refuse(path, *arguments, **options):
        if "metrics.csv" in str(path) or "tfevents" in str(path):
            refused.append(next(reasons))
            raise OSError(refused[-1], os.strerror(refused[-1]))
        return opened(path, *arguments, **options)

    def stop_requested():
        looked.append(1)
        monkeypatch.setattr(os, "open", refuse if 2 <= len(looked) < 6 else opened)
        return False

    monkeypatch.setattr(session, "stop_requested", stop_requested)
    path = tmp_path / "run"
    train(path)
    assert len(refused) > 2
    assert len([text for text in caplog.messages if "training goes on" in text]) == 1
    assert [row["epoch"] for row in rows_of(path)] == ["1", "2", "3"]
    accumulator = EventAccumulator(str(path))
    accumulator.Reload()
    assert [event.step for event in accumulator.Scalars("train/mean_q")] == [120, 240, 360]


def test_three_checkpoints_that_fail_end_the_run_and_leave_the_older_one(
    tmp_path, monkeypatch, caplog, stop_after
):
    path = tmp_path / "run"
    train(path, dataclasses.replace(HER_RUN, epochs=1))

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "_commit", full)
        with pytest.raises(EnvironmentFault, match="3 checkpoints in a row") as fault:
            train(path, dataclasses.replace(HER_RUN, epochs=9), resume=True)
    assert fault.value.exit_code == 3
    assert len([text for text in caplog.messages if "checkpoint not saved" in text]) == 2
    assert load_weights(path / "checkpoints")[1]["counters"]["epoch"] == 1
    train(path, dataclasses.replace(HER_RUN, epochs=2), resume=True)
    assert [row["epoch"] for row in rows_of(path)] == ["1", "2"]


@pytest.fixture
def failing_disk(monkeypatch):
    """Lets so many saves fail, from the first one on."""

    def fail(times):
        left, commit = [None] * times, Checkpoints._commit

        def write(*arguments):
            if left:
                left.pop()
                raise OSError(errno.ENOSPC, "No space left on device")
            return commit(*arguments)

        monkeypatch.setattr(Checkpoints, "_commit", write)

    return fail


def test_a_stop_is_reported_once_it_is_saved(whole, tmp_path, stop_after, failing_disk, caplog):
    path = tmp_path / "run"
    stop_after(1)
    failing_disk(2)
    with pytest.raises(Stopped, match="stopped and saved after 60 steps"):
        train(path)
    assert len([text for text in caplog.messages if "checkpoint not saved" in text]) == 2
    stop_after(0)
    train(path, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(whole))


def test_the_end_of_a_run_is_saved_at_last(whole, tmp_path, failing_disk):
    failing_disk(2)
    train(tmp_path / "run", dataclasses.replace(HER_RUN, epochs=1))
    assert load_weights(tmp_path / "run/checkpoints")[1]["counters"]["epoch"] == 1
    train(tmp_path / "run", resume=True)
    np.testing.assert_equal(weights_of(tmp_path / "run"), weights_of(whole))


@pytest.mark.parametrize("cycles", [1, 0])
def test_a_disk_that_stays_full_is_a_fault_at_a_stop_and_at_the_end(
    tmp_path, stop_after, failing_disk, cycles
):
    stop_after(cycles)
    failing_disk(3)
    with pytest.raises(EnvironmentFault, match="3 checkpoints in a row"):
        train(tmp_path / "run", dataclasses.replace(HER_RUN, epochs=1))
    assert not (tmp_path / "run/summary.json").exists()


def test_a_checkpoint_of_another_making_is_refused_by_name(tmp_path, monkeypatch):
    path = tmp_path / "run"
    with monkeypatch.context() as patch:
        meta = trainer.Trainer.meta
        patch.setattr(trainer.Trainer, "meta", lambda self: meta(self) | {"updates": "many"})
        train(path, dataclasses.replace(HER_RUN, epochs=1))
    with pytest.raises(UsageError, match=r"(?s)does not fit config\.json\nmeta\.updates.*many"):
        train(path, resume=True)


@pytest.fixture
def bad_numbers(monkeypatch):
    """Makes the updates of the given cycles, counted from 1, meet a gradient that is not finite."""

    def poison(*cycles):
        seen = []
        sample = ReplayBuffer.sample_transitions

        def spoiled(self, *arguments):
            batch = sample(self, *arguments)
            seen.append(1)
            if len(seen) in cycles:
                batch.reward[0, 0, 0] = np.nan
            return batch

        monkeypatch.setattr(ReplayBuffer, "sample_transitions", spoiled)

    return poison


def test_bad_numbers_cost_an_epoch_and_half_the_step_size_once(tmp_path, bad_numbers, caplog):
    bad_numbers(4)  # the second cycle of the second epoch
    path = tmp_path / "run"
    train(path)
    assert "non-finite" in caplog.text
    assert "back to the checkpoint of epoch 1, going on with 0.5 of the step size" in caplog.text
    rows = rows_of(path)
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert [row["time/env_steps"] for row in rows] == ["120", "240", "360"]
    _, meta = load_weights(path / "checkpoints")
    assert meta["step_scale"] == 0.5
    assert meta["counters"]["cycle"] == session.OTHER_CYCLES + 6
    evidence = np.load(path / "logs/rank_0000.bad_numbers.npz", allow_pickle=False)
    assert np.isnan(evidence["transitions.reward"][0, 0, 0])


def test_going_back_keeps_the_best_weights_of_an_epoch_that_is_undone(
    tmp_path, bad_numbers, monkeypatch
):
    found = iter([0.1, 0.5, 0.9, 0.6, 0.3])  # of epochs 1, 2 and 3, again 3, and 4
    original = trainer.Trainer.evaluate

    def evaluate(self, *arguments, **named):
        return original(self, *arguments, **named) | {"eval/success_rate": next(found, 0.0)}

    monkeypatch.setattr(trainer.Trainer, "evaluate", evaluate)
    bad_numbers(7)  # the first cycle of the fourth epoch; the second is saved, the third is not
    train(tmp_path / "run", dataclasses.replace(HER_RUN, epochs=4, checkpoint_every=2))
    assert best_epoch(tmp_path / "run") == (3, 0.9)


def test_ranks_that_hold_different_things_at_the_end_of_an_epoch_go_back(tmp_path, monkeypatch):
    checked = []

    def check_equal(trainer):
        checked.append(trainer.counters.epoch)
        if len(checked) == 2:
            raise NumbersFault("what ranks hold differs")

    monkeypatch.setattr(trainer.Trainer, "check_equal", check_equal)
    train(tmp_path / "run")
    assert checked == [1, 2, 2, 3]


def test_going_back_has_patience_and_shows_the_epochs_that_are_left(
    tmp_path, bad_numbers, monkeypatch, capsys
):
    restore, allowances = Checkpoints.restore, []

    def noted(*arguments):
        allowances.append(process._heart.factor)
        return restore(*arguments)

    monkeypatch.setattr(Checkpoints, "restore", noted)
    bad_numbers(7)  # in the fourth epoch, and the second was saved last
    train(tmp_path / "run", dataclasses.replace(HER_RUN, epochs=4, checkpoint_every=2))
    assert allowances == [process.LONGER]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = [line[1] for line in lines if line[:1] == ["epoch"]]
    assert shown == ["1/4", "2/4", "3/4", "3/4", "4/4"]


def test_a_run_that_was_put_back_resumes_with_its_smaller_steps(tmp_path, bad_numbers, stop_after):
    bad_numbers(4)
    whole, path = tmp_path / "whole", tmp_path / "stopped"
    train(whole)
    bad_numbers(4)
    stop_after(8)
    with pytest.raises(Stopped):
        train(path)
    stop_after(0)
    train(path, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(whole))


@pytest.mark.parametrize(("cycles", "epochs"), [((1,), 0), ((4, 6), 1)])
def test_a_second_time_or_without_a_checkpoint_they_end_the_run(
    tmp_path, bad_numbers, cycles, epochs
):
    bad_numbers(*cycles)
    with pytest.raises(NumbersFault, match="non-finite"):
        train(tmp_path / "run")
    assert len(list((tmp_path / "run/checkpoints").glob("epoch_*"))) == epochs


@pytest.fixture
def heritage(whole):
    return try_heritage(
        HER_RUN, whole / "checkpoints", ("actor", "critic", "targets", "normalizer")
    )


def test_a_run_that_starts_from_another_saves_at_once_and_needs_it_no_more(
    whole, tmp_path, heritage, stop_after, capsys
):
    straight, path = tmp_path / "straight", tmp_path / "run"
    config = dataclasses.replace(HER_RUN, seed=3)
    train(straight, config, heritage=heritage)
    stop_after(1)
    with pytest.raises(Stopped):
        train(path, config, heritage=heritage)
    first, meta = load_weights(path / "checkpoints" / "epoch_000000")
    assert meta["counters"]["epoch"] == 0
    before = weights_of(whole)
    taken = [name for name in before if name.startswith(("targets/", "normalizer/"))]
    for name in taken:
        np.testing.assert_array_equal(first[name], before[name])
    said = f"starts from {whole}, epoch 3: actor, critic, targets, normalizer"
    assert capsys.readouterr().out.splitlines().count(said) == 2  # for each of both
    stop_after(0)
    train(path, config, resume=True)
    assert capsys.readouterr().out.splitlines().count(said) == 1
    np.testing.assert_equal(weights_of(path), weights_of(straight))
    assert rows_of(path) == rows_of(straight)
    record = json.loads((path / "config.json").read_text())["init_from"]
    assert record == heritage.record
    assert record["run"] == str(whole / "checkpoints")
    assert record["checkpoint"] == "epoch_000003"


def test_a_source_of_other_epochs_than_the_published_one_is_told_of_at_the_start(
    tmp_path, heritage, caplog
):
    config = dataclasses.replace(HER_RUN, epochs=1)
    for epochs in (3, 13):  # the source has 3
        start = Start("runs/whole", tuple(heritage.record["parts"]), epochs)
        train(tmp_path / str(epochs), config, heritage=heritage, start=start)
    told = "--init-from runs/whole: published is a source of 13 epochs, got 3"
    assert [text for text in caplog.messages if "published" in text] == [told]


def test_all_checkpoints_of_an_heir_count_what_was_taken_before(whole, tmp_path, heritage):
    path = tmp_path / "run"
    steps = load_weights(whole / "checkpoints")[1]["counters"]["env_steps"]
    assert heritage.record["before"]["time/env_steps"] == steps > 0
    train(path, dataclasses.replace(HER_RUN, epochs=1), heritage=heritage)
    train(path, dataclasses.replace(HER_RUN, epochs=2), resume=True)
    for label in ("epoch_000001", "epoch_000002", "best"):
        meta = load_weights(path / "checkpoints" / label)[1]
        assert meta["before"] == heritage.record["before"]
    again = try_heritage(HER_RUN, path / "checkpoints", ("actor",)).record
    own = load_weights(path / "checkpoints")[1]["counters"]
    assert again["before"] == {
        "time/env_steps": steps + own["env_steps"],
        "time/elapsed_s": heritage.record["before"]["time/elapsed_s"] + own["elapsed_s"],
    }
    assert load_weights(whole / "checkpoints")[1]["before"] == {}


def test_an_heir_of_an_older_version_is_resumed(tmp_path, heritage, capsys):
    path = tmp_path / "run"
    older = {k: v for k, v in heritage.record.items() if k not in ("before", "epoch")}
    train(path, dataclasses.replace(HER_RUN, epochs=1), heritage=heritage._replace(record=older))
    config = json.loads((path / "config.json").read_text())
    assert config["init_from"] == older
    capsys.readouterr()
    train(path, dataclasses.replace(HER_RUN, epochs=2), resume=True)
    assert ", checkpoint epoch_000003: actor, critic, " in capsys.readouterr().out
    assert load_weights(path / "checkpoints")[1]["before"] == {}
    assert len(rows_of(path)) == 2


def test_bad_numbers_before_the_next_save_put_an_heir_back_to_what_it_started_from(
    whole, tmp_path, bad_numbers
):
    heritage = try_heritage(HER_RUN, whole / "checkpoints", ("actor",))
    ended = {}
    for cycle in (1, 2):
        path = tmp_path / f"bad_in_cycle_{cycle}"
        bad_numbers(cycle)
        train(path, heritage=heritage)
        train(path, dataclasses.replace(HER_RUN, epochs=4), resume=True)
        ended[cycle] = state_of(path)
    np.testing.assert_equal(ended[2], ended[1])


def test_a_run_that_was_cut_off_before_it_saved_its_start_says_so(tmp_path, heritage):
    path = tmp_path / "run"
    train(path, dataclasses.replace(HER_RUN, epochs=1), heritage=heritage)
    shutil.rmtree(path / "checkpoints")
    (path / "checkpoints").mkdir()
    with pytest.raises(UsageError, match=r"(?s)cut off before it had saved.*--init-from"):
        train(path, HER_RUN, resume=True)


def test_a_new_run_that_is_refused_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "limit_threads", lambda threads: None)
    nothing_to_control = dataclasses.replace(MUSIC, env_id="music_tf/PointReach-v0")
    command = TrainCommand(
        recipe="ddpg_music",
        preset="laptop",
        config=nothing_to_control,
        run_dir=tmp_path / "run",
        resume=False,
        arguments=("ddpg_music",),
    )
    begun = []
    with pytest.raises(UsageError, match="PointReach"):
        session.run(command, Communicator(), tmp_path / "run", None, begun.append)
    assert (list(tmp_path.iterdir()), begun) == ([], [])


def test_fewer_epochs_than_a_run_has_are_refused_and_change_nothing(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    before = (path / "config.json").read_bytes()
    with pytest.raises(UsageError, match=r"--epochs: expected at least the 3 .*, got 2\n"):
        train(path, dataclasses.replace(HER_RUN, epochs=2), resume=True)
    assert (path / "config.json").read_bytes() == before


def test_priorities_survive_a_stop(tmp_path, stop_after):
    straight, path = tmp_path / "straight", tmp_path / "run"
    replay = dataclasses.replace(HER.replay, priority="music")
    config = dataclasses.replace(MUSIC, workers=1, epochs=3, updates=2, replay=replay)
    train(straight, config)
    stop_after(3)
    with pytest.raises(Stopped):
        train(path, config)
    stop_after(0)
    train(path, config, resume=True)
    np.testing.assert_equal(weights_of(path), weights_of(straight))
    assert rows_of(path) == rows_of(straight)
    saved = list((path / "checkpoints/replay/worker_0000").glob("*.npz"))
    assert len(np.unique(np.concatenate([np.load(file)["priority"] for file in saved]))) > 1


def pictures_of(directory):
    """The pictures of object paths in TensorBoard, by environment steps."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory), size_guidance={"images": 0}).Reload()
    found = events.Images(PATHS_TAG) if PATHS_TAG in events.Tags()["images"] else []
    return {image.step: image.encoded_image_string for image in found}


def test_paths_are_drawn_at_evaluations_and_where_there_is_an_object(tmp_path):
    evaluation = dataclasses.replace(HER_RUN.evaluation, every=2)
    train(tmp_path / "push", dataclasses.replace(HER_RUN, evaluation=evaluation))
    train(tmp_path / "reach", dataclasses.replace(HER_RUN, env_id="music_tf/PointReach-v0"))
    assert list(pictures_of(tmp_path / "push")) == [240]
    assert pictures_of(tmp_path / "reach") == {}


def test_a_stopped_run_shows_the_paths_of_a_whole_one(whole, tmp_path, stop_after):
    path = tmp_path / "run"
    stop_after(4)  # in the second epoch
    with pytest.raises(Stopped):
        train(path)
    stop_after(0)
    train(path, resume=True)
    assert pictures_of(path) == pictures_of(whole)


@pytest.fixture
def stopped_after(monkeypatch):
    """Sends the signal while the environment of this number is made."""

    def send(number):
        made = []
        make = lockstep.make_environment

        def making(env_id):
            made.append(env_id)
            if len(made) == number:
                process._received.append(signal.SIGUSR1)
            return make(env_id)

        monkeypatch.setattr(lockstep, "make_environment", making)
        return made

    yield send
    process.forget_signals()


def begin(path, config, resume=False):
    command = TrainCommand(
        recipe="ddpg_her",
        preset="laptop",
        config=config,
        run_dir=path,
        resume=resume,
        arguments=("ddpg_her",),
    )
    session.run(command, Communicator(), path)


@pytest.mark.parametrize("number", [1, 2, 8])
def test_a_stop_while_environments_are_made_ends_a_new_run_without_a_trace(
    tmp_path, monkeypatch, stopped_after, number
):
    monkeypatch.setattr(session, "limit_threads", lambda threads: None)
    made = stopped_after(number)
    with pytest.raises(Stopped, match=r"before the first step, nothing is saved yet: start it"):
        begin(tmp_path / "run", dataclasses.replace(HER_RUN, rollouts=8))
    assert len(made) == number
    assert list(tmp_path.iterdir()) == []


def test_a_stop_while_environments_are_made_leaves_a_run_to_resume_as_it_is(
    whole, tmp_path, monkeypatch, stopped_after
):
    monkeypatch.setattr(session, "limit_threads", lambda threads: None)
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    before = (path / "metrics.csv").read_bytes(), sorted((path / "checkpoints").iterdir())
    stopped_after(1)
    longer = dataclasses.replace(HER_RUN, epochs=5)
    with pytest.raises(Stopped, match=rf"before the first step, to go on:\n.*{path} --resume"):
        begin(path, longer, resume=True)
    assert before == (
        (path / "metrics.csv").read_bytes(),
        sorted((path / "checkpoints").iterdir()),
    )
    process.forget_signals()
    begin(path, longer, resume=True)
