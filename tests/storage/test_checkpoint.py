import builtins
import errno
import logging
import os
import shutil
import zipfile

import numpy as np
import pytest

from music_tf import gate
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.gate import ExpectedState, expected_of
from music_tf.storage import checkpoint
from music_tf.storage.checkpoint import MANIFEST, Checkpoints, labels, read_manifest, save_weights
from music_tf.training.incremental import rows_with_fewer_skills
from music_tf.types import Declared
from tests.kit.cases import cases
from tests.kit.forged import archived, reseal, saved_array
from tests.kit.saved_run import load_weights

WORKERS = ["worker_0000", "worker_0001"]


@pytest.fixture(autouse=True)
def syncing_takes_no_time(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def state_of(epoch):
    arrays = {
        "parameters/actor/hidden_0/kernel": np.full((2, 3), epoch, np.float32),
        "normalizer/count": np.array(epoch, np.int64),
    }
    shards = {
        worker: {"observation": np.full((2, 4), epoch + 100 * index, np.float32)}
        for index, worker in enumerate(WORKERS)
    }
    return arrays, shards, {"epoch": epoch, "counter": [epoch, 2**80]}


def saved(directory, epochs, keep=3):
    checkpoints = Checkpoints(directory, Communicator(), keep=keep)
    for epoch in epochs:
        assert checkpoints.save(epoch, *state_of(epoch))
    return checkpoints


def restore(directory, workers=WORKERS):
    return Checkpoints(directory, Communicator()).restore(workers)


def assert_holds(restored, epoch, first=1):
    arrays, _, meta = state_of(epoch)
    assert restored.epoch == epoch
    assert (restored.meta, set(restored.arrays)) == (meta, set(arrays))
    for name, array in arrays.items():
        assert restored.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(restored.arrays[name], array)
    for index, worker in enumerate(WORKERS):
        found = [rows["observation"][0, 0] for rows in restored.shards[worker]]
        assert found == [number + 100 * index for number in range(first, epoch + 1)]


def relative_files(directory):
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


def test_only_the_newest_checkpoints_are_kept_and_replay_is_never_rewritten(tmp_path):
    checkpoints = saved(tmp_path, range(1, 3), keep=2)
    shard = tmp_path / "replay/worker_0000/epoch_000001.npz"
    before = shard.stat()
    for epoch in range(3, 6):
        checkpoints.save(epoch, *state_of(epoch))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["epoch_000004", "epoch_000005", "replay"]
    assert (shard.stat().st_ino, shard.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def full(descriptor):
    raise OSError(errno.EDQUOT, "Disk quota exceeded")


@pytest.mark.parametrize("sync", [lambda descriptor: None, full])
def test_no_rank_leaves_a_save_before_the_root_has_cleaned_up(tmp_path, monkeypatch, sync):
    checkpoints = saved(tmp_path, [1, 2], keep=1)
    monkeypatch.setattr(os, "fsync", sync)
    seen = []
    monkeypatch.setattr(Communicator, "barrier", lambda _: seen.append(relative_files(tmp_path)))
    checkpoints.save(3, *state_of(3))
    assert seen == [relative_files(tmp_path)]


def test_every_file_and_folder_is_synced_before_it_is_renamed_into_place(tmp_path, monkeypatch):
    synced, renamed = [], []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    rename = os.rename

    def record(source, target):
        renamed.append((str(source), list(synced)))
        rename(source, target)

    monkeypatch.setattr(os, "rename", record)
    saved(tmp_path, [1])
    [(source, before)] = renamed
    assert source == str(tmp_path / "epoch_000001.tmp-new")
    files = {f"epoch_000001.tmp-new/{name}" for name in ("manifest.json", "meta.json", "state.npz")}
    shards = {f"replay/{worker}/epoch_000001.npz" for worker in WORKERS}
    folders = {os.path.dirname(path) for path in files | shards}
    assert {str(tmp_path / path) for path in files | shards | folders} <= set(before)
    assert synced[-1] == str(tmp_path)


def test_compact_lets_older_shards_go_once_no_kept_checkpoint_needs_them(tmp_path):
    checkpoints = saved(tmp_path, [1, 2], keep=2)
    assert checkpoints.save(3, *state_of(3), compact=True)
    assert (tmp_path / "replay/worker_0000/epoch_000001.npz").exists()
    assert checkpoints.save(4, *state_of(4))
    assert not (tmp_path / "replay/worker_0000/epoch_000001.npz").exists()
    assert_holds(restore(tmp_path), 4, first=3)


def test_a_worker_without_new_rows_keeps_its_older_ones_and_other_workers_are_refused(tmp_path):
    checkpoints = saved(tmp_path, [1])
    arrays, shards, meta = state_of(2)
    assert checkpoints.save(2, arrays, {**shards, "worker_0001": {}}, meta)
    assert [len(rows) for rows in restore(tmp_path).shards.values()] == [2, 1]
    with pytest.raises(UsageError, match="holds replay of 2 workers, this run has 3"):
        restore(tmp_path, [*WORKERS, "worker_0002"])


def test_an_epoch_saved_twice_leaves_the_later_state(tmp_path):
    checkpoints = saved(tmp_path, [1])
    arrays, shards, meta = state_of(1)
    assert checkpoints.save(1, arrays, {worker: {} for worker in shards}, {**meta, "cycle": 7})
    restored = restore(tmp_path)
    assert (restored.meta["cycle"], len(restored.shards["worker_0000"])) == (7, 1)


def test_object_arrays_and_unsafe_names_are_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path, Communicator())
    with pytest.raises(ValueError, match="array of numbers"):
        checkpoints.save(1, {"a": np.array([None])}, {}, {})
    for name in ("../a", "/a", "a/../b", "", "a b", ".hidden"):
        with pytest.raises(ValueError, match="expected a name"):
            checkpoints.save(1, {name: np.zeros(1)}, {}, {})


# --- damage ---------------------------------------------------------------------------------


NEWEST = [
    *("epoch_000002/manifest.json", "epoch_000002/meta.json", "epoch_000002/state.npz"),
    *("replay/worker_0000/epoch_000002.npz", "replay/worker_0001/epoch_000002.npz"),
]


def flip(share):
    def damage(path):
        content = bytearray(path.read_bytes())
        content[min(len(content) - 1, int(share * len(content)))] ^= 1
        path.write_bytes(content)

    return damage


def truncate(share):
    return lambda path: os.truncate(path, int(share * path.stat().st_size))


DAMAGES = [
    *(pytest.param(flip(share), id=f"flip {share}") for share in (0, 0.3, 0.6, 1)),
    *(pytest.param(truncate(s), id=f"truncate {s}") for s in (0, 0.25, 0.5, 0.75, 0.99)),
    pytest.param(lambda path: path.write_bytes(path.read_bytes() + b"\n"), id="extend"),
    pytest.param(os.unlink, id="delete"),
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", NEWEST)
def test_damage_is_named_once_and_the_older_checkpoint_restored(tmp_path, caplog, name, damage):
    checkpoints = saved(tmp_path, [1])
    before = relative_files(tmp_path)
    assert checkpoints.save(2, *state_of(2))
    assert sorted(set(relative_files(tmp_path)) - set(before)) == NEWEST
    damage(tmp_path / name)
    with caplog.at_level(logging.WARNING):
        assert_holds(restore(tmp_path), 1)
    assert len(caplog.records) == 1
    assert os.path.basename(name) in caplog.text
    assert "epoch_000002" in caplog.text


def test_swapped_files_and_a_manifest_of_another_epoch_are_damage(tmp_path, caplog):
    saved(tmp_path, [1, 2])
    first, second = (tmp_path / f"replay/{w}/epoch_000002.npz" for w in WORKERS)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    assert_holds(restore(tmp_path), 1)
    saved(tmp_path / "b", [1, 2])
    shutil.rmtree(tmp_path / "b/epoch_000002")
    shutil.copytree(tmp_path / "b/epoch_000001", tmp_path / "b/epoch_000002")
    assert_holds(restore(tmp_path / "b"), 1)
    assert "belongs to epoch 1" in caplog.text


def test_where_all_are_damaged_a_fault_says_so_and_nothing_changes(tmp_path):
    saved(tmp_path, [1, 2])
    for label in ("epoch_000001", "epoch_000002"):
        truncate(0.5)(tmp_path / label / "meta.json")
    before = {name: (tmp_path / name).read_bytes() for name in relative_files(tmp_path)}
    with pytest.raises(EnvironmentFault, match=r"every one of 2 .*\n.*meta\.json.*") as fault:
        restore(tmp_path)
    assert len(str(fault.value).splitlines()) <= 10
    assert {name: (tmp_path / name).read_bytes() for name in relative_files(tmp_path)} == before


def test_what_came_after_a_restored_checkpoint_is_gone_after_the_next_save(tmp_path):
    saved(tmp_path, [1, 2, 3])
    os.unlink(tmp_path / "epoch_000003/meta.json")
    checkpoints = Checkpoints(tmp_path, Communicator())
    assert_holds(checkpoints.restore(WORKERS), 2)
    arrays, shards, meta = state_of(3)
    assert checkpoints.save(3, arrays, shards, {**meta, "again": True})
    restored = restore(tmp_path)
    assert restored.meta["again"]
    assert [rows["observation"][0, 0] for rows in restored.shards[WORKERS[0]]] == [1, 2, 3]
    assert len(list(tmp_path.glob("epoch_*"))) == 3
    assert len(list(tmp_path.glob("replay/worker_0000/*"))) == 3


@cases(
    "change",
    lambda c: c["state"].__setitem__(0, "../../secret.npz"),
    lambda c: c["state"].__setitem__(0, "/etc/passwd"),
    lambda c: c["state"].__setitem__(0, None),
    lambda c: c["state"].__setitem__(1, -1),
    lambda c: c["state"].__setitem__(1, True),
    lambda c: c["state"].__setitem__(2, "0"),
    lambda c: c["state"].append(1),
    lambda c: c["shards"]["worker_0000"].append(c["shards"]["worker_0000"][0]),
    lambda c: c["shards"].update({"../worker": []}),
    lambda c: c["shards"].update({"worker_0000": 3}),
    lambda c: c.update(epoch=-1),
    lambda c: c.update(format=1),
    lambda c: c.pop("meta"),
)
def test_a_manifest_that_asks_for_the_impossible_is_damage(tmp_path, change):
    saved(tmp_path, [1])
    reseal(tmp_path / "epoch_000001", change)
    with pytest.raises(EnvironmentFault, match=r"manifest\.json"):
        restore(tmp_path)


@pytest.mark.thorough
def test_the_longest_lists_of_the_shortest_names_are_still_read(tmp_path):
    def entry(path):
        return [path, 9, "0" * 64]

    workers = {f"w{w}": [entry(f"{w}_{shard}") for shard in range(40)] for w in range(4096)}
    content = {"format": 2, "epoch": 1, "state": entry("a"), "meta": entry("m"), "shards": workers}
    (tmp_path / MANIFEST).write_bytes(checkpoint.seal(content))
    assert sum(map(len, read_manifest(tmp_path).shards.values())) == 4096 * 40


def expected_state():
    arrays, shards, _ = state_of(1)
    return ExpectedState(expected_of(arrays), expected_of(shards[WORKERS[0]]), Declared())


def test_a_file_larger_than_the_run_has_room_for_is_damage_before_it_is_read(tmp_path, caplog):
    checkpoints = saved(tmp_path, [1])
    arrays, shards, meta = state_of(2)
    shards["worker_0001"]["observation"] = np.zeros((1, 4), np.float32)  # there is room for two
    checkpoints.save(2, arrays, shards, meta)
    assert checkpoints.restore(WORKERS, expected_state()).epoch == 2
    reseal(tmp_path / "epoch_000002", lambda c: c["shards"]["worker_0001"][1].__setitem__(1, 2**36))
    os.truncate(tmp_path / "replay/worker_0001/epoch_000002.npz", 2**36)
    assert checkpoints.restore(WORKERS, expected_state()).epoch == 1
    assert "epoch_000002.npz: 68719476736 bytes, more than the" in caplog.text


def test_rows_of_a_run_that_learns_skills_in_turn_are_bounded_by_its_replay(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "_LARGEST_STATE", 1000)
    monkeypatch.setattr(gate, "_MARGIN", 0)
    full = {"skill": np.zeros((50, 4), np.float32), "observation": np.zeros((50, 10), np.float32)}
    expected = rows_with_fewer_skills(expected_of(full))
    fewer = {"skill": full["skill"][:, :3], "observation": full["observation"]}
    entry = gate.write_file(tmp_path, "full.npz", fewer)
    assert entry.size > 2600
    assert gate.read_arrays(tmp_path, entry, expected, rows=True)[0]["skill"].shape == (50, 3)
    entry = gate.write_file(tmp_path, "more.npz", {"observation": np.zeros((200, 10), np.float32)})
    with pytest.raises(gate.DamagedError, match="more than the 5600 allowed"):  # 2 * 4 * 50 * 14
        gate.read_arrays(tmp_path, entry, expected, rows=True)
    states = {"disk/own": np.zeros((1, 2), np.float32)}
    some = rows_with_fewer_skills(expected_of(full) | expected_of(states, free=True))
    with pytest.raises(gate.DamagedError, match="more than the 6600 allowed"):
        gate.read_arrays(tmp_path, entry, some, rows=True)


@cases(
    ("change", "text"),
    (lambda a, r: a.pop("normalizer/count"), "normalizer/count: missing"),
    (lambda a, r: a.update(more=np.zeros(1)), "more: no such weight in this run"),
    (lambda a, r: a.update({"normalizer/count": np.array(1.0)}), r"int64 \(\), found float64"),
    (lambda a, r: r.update(observation=np.zeros((3, 4), np.float32)), r"\(2, 4\) at most, fou"),
    (lambda a, r: r.update(observation=np.zeros((2, 3), np.float32)), r"found float32 \(2, 3\)"),
    (lambda a, r: r.update(observation=np.zeros((), np.float32)), r"found float32 \(\)"),
    (lambda a, r: r.clear() or r.update(more=np.zeros(1)), "observation: missing"),
    (
        lambda a, r: r.update(observation=np.full((1, 4), np.nan, np.float32)),
        "observation: expected finite numbers",
    ),
)
def test_arrays_that_no_run_has_are_named_and_no_older_taken(tmp_path, monkeypatch, change, text):
    saved(tmp_path, [1])
    arrays, shards, meta = state_of(2)
    change(arrays, shards["worker_0001"])
    if "finite" in text:
        with pytest.raises(ValueError, match="got non-finite"):
            Checkpoints(tmp_path, Communicator()).save(2, arrays, shards, meta)
        monkeypatch.setattr(gate, "instead_of_numbers", lambda *_: "")
    Checkpoints(tmp_path, Communicator()).save(2, arrays, shards, meta)
    with pytest.raises(UsageError, match=rf"(?s)epoch 2 does not fit config\.json\n.*{text}"):
        Checkpoints(tmp_path, Communicator()).restore(WORKERS, expected_state())


HUGE = saved_array(np.zeros(2)).replace(b"(2,)", b"(2000000000000,)", 1)[:128] + bytes(16)
ONES = archived({"a.npy": saved_array(np.ones(2))})
ARCHIVES = {
    "claims more than its file holds": (archived({"a.npy": HUGE}), "does not fit the size"),
    "compressed": (
        archived({"a.npy": saved_array(np.zeros(10**6))}, zipfile.ZIP_DEFLATED),
        "not compressed",
    ),
    "pickled": (archived({"a.npy": saved_array(np.array([{}]))}), "expected numbers"),
    "no array": (archived({"a.npy": b"cbuiltins\nopen\n"}), "not an array file"),
    "no archive": (saved_array(np.ones(2)), "not an array file"),
    "a name twice": (archived({"a.npy": b"", "b.npy": b""}).replace(b"b.npy", b"a.npy"), "twice"),
    "a name that leads out": (ONES.replace(b"a.npy", b"/.npy"), "expected a name"),
    "a larger size in its contents": (
        ONES.replace((144).to_bytes(4, "little"), (10**9).to_bytes(4, "little")),
        "larger than the file",
    ),
    "other bytes than its checksum": (ONES.replace(b"\xf0?", b"\xf1?"), "Bad CRC-32"),
    "encrypted": (ONES.replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"), "encrypted"),
    "a long table of contents": (archived({f"a{n}.npy": b"" for n in range(20_000)}), "too long"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_of_anything_but_plain_arrays_is_damage(tmp_path, kind):
    content, text = ARCHIVES[kind]
    entry = gate.write_file(tmp_path, "a.npz", content)
    with pytest.raises(gate.DamagedError, match=text):
        gate.read_arrays(tmp_path, entry)


def test_a_list_of_files_that_grows_long_asks_for_a_compact_save(tmp_path, monkeypatch, caplog):
    checkpoints = saved(tmp_path, [1])
    assert not checkpoints.crowded
    size = (tmp_path / "epoch_000001" / MANIFEST).stat().st_size
    monkeypatch.setattr(checkpoint, "LARGEST_MANIFEST", 2 * size)
    assert checkpoints.save(2, *state_of(2))
    assert checkpoints.crowded
    assert checkpoints.save(3, *state_of(3), compact=True)
    assert not checkpoints.crowded
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "LARGEST_MANIFEST", size // 2)
        assert not checkpoints.save(4, *state_of(4), compact=True)
    assert "its list of files takes" in caplog.text
    assert restore(tmp_path).epoch == 3


# --- crashes and failing disks --------------------------------------------------------------


class Unsynced:  # files that were opened to be written and not synced: a power cut may empty them
    def __init__(self, monkeypatch):
        self._open = {}
        opened, synced = builtins.open, os.fsync

        def note(path, mode="r", *arguments, **options):
            file = opened(path, mode, *arguments, **options)
            if "x" in mode:
                self._open[os.fstat(file.fileno()).st_ino] = os.dup(file.fileno())
            return file

        def forget(descriptor):
            self._open.pop(os.fstat(descriptor).st_ino, None)
            return synced(descriptor)

        monkeypatch.setattr(builtins, "open", note)
        monkeypatch.setattr(os, "fsync", forget)

    def lose(self):
        for descriptor in self._open.values():
            os.ftruncate(descriptor, 0)


class Halved:  # a file of which a write may end half-way: `counted` says when
    def __init__(self, file, counted):
        self._file = file
        self.write = counted(file.write, self.half)

    def half(self, data):
        self._file.write(bytes(data)[: len(data) // 2])
        self._file.flush()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self._file.close()


def count_calls(monkeypatch, at, action):
    """Runs `action` before the `at`-th call that changes the disk, and half-way in a write."""
    calls = iter(range(1, 10**6))

    def counted(original, before=lambda *arguments: None):
        def call(*arguments, **options):
            if next(calls) == at:
                before(*arguments)
                action()
            return original(*arguments, **options)

        return call

    for name in ("fsync", "rename", "mkdir", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    original = builtins.open
    creating = counted(original)

    def opened(path, mode="r", *arguments, **options):
        if "x" in mode:
            return Halved(creating(path, mode, *arguments, **options), counted)
        return original(path, mode, *arguments, **options)

    monkeypatch.setattr(builtins, "open", opened)


def killed_at(at, save, power_cut=False):
    """Saves in a child that dies with code 9 at a given call; returns the child's code.

    With a power cut, what was not synced by then is lost.
    """
    child = os.fork()
    if child == 0:
        try:
            with pytest.MonkeyPatch.context() as monkeypatch:
                unsynced = Unsynced(monkeypatch)

                def die():
                    if power_cut:
                        unsynced.lose()
                    os._exit(9)

                count_calls(monkeypatch, at, die)
                os._exit(0 if save() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def continued(directory):
    checkpoints = Checkpoints(directory, Communicator(), keep=2)
    return checkpoints, checkpoints.restore(WORKERS)


@pytest.mark.thorough
@pytest.mark.parametrize("power_cut", [False, True], ids=["kill", "power cut"])
@pytest.mark.parametrize("compact", [False, True], ids=["new rows", "all rows"])
def test_an_end_at_any_call_of_a_save_loses_at_most_that_epoch(tmp_path, compact, power_cut):
    saved(tmp_path / "base", [1, 2, 3], keep=2)
    epochs = []
    for at in range(1, 1000):
        directory = tmp_path / str(at)
        shutil.copytree(tmp_path / "base", directory)
        checkpoints, _ = continued(directory)

        def save(own=checkpoints):
            return own.save(4, *state_of(4), compact=compact)

        code = killed_at(at, save, power_cut)
        for label in labels(path.name for path in directory.iterdir()):
            load_weights(directory / label)
        checkpoints, restored = continued(directory)
        first = 4 if compact and restored.epoch == 4 else 1
        assert_holds(restored, restored.epoch, first)
        assert not list(directory.glob("*.tmp-*"))
        epochs.append(restored.epoch)
        for epoch in (restored.epoch + 1, restored.epoch + 2):
            assert checkpoints.save(epoch, *state_of(epoch))
            assert_holds(restore(directory), epoch, first)
        assert len(list(directory.glob("epoch_*"))) == 2
        assert len(list(directory.glob("replay/*/*"))) == 2 * (restored.epoch + 3 - first)
        shutil.rmtree(directory)
        if code == 0:
            break
        assert code == 9
    assert epochs == sorted(epochs)
    assert epochs.count(3) > 20
    assert epochs.count(4) > 5


@pytest.mark.thorough
def test_a_full_disk_at_any_call_keeps_the_older_checkpoints(tmp_path, caplog):
    saved(tmp_path / "base", [1, 2, 3], keep=2)
    outcomes = []
    for at in range(1, 1000):
        directory = tmp_path / str(at)
        shutil.copytree(tmp_path / "base", directory)
        checkpoints = Checkpoints(directory, Communicator(), keep=2)
        checkpoints.restore(WORKERS)
        caplog.clear()
        reached = []

        def fail(reached=reached):
            reached.append(True)
            raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.MonkeyPatch.context() as monkeypatch:
            count_calls(monkeypatch, at, fail)
            outcomes.append(checkpoints.save(4, *state_of(4)))
        assert_holds(restore(directory), 4 if outcomes[-1] else 3)
        assert ("No space left" in caplog.text) is (not outcomes[-1])
        if not outcomes[-1]:
            assert checkpoints.save(4, *state_of(4))
            assert_holds(restore(directory), 4)
            assert len(list(directory.glob("replay/*/*"))) == 8
        shutil.rmtree(directory)
        if not reached:
            break
    assert outcomes.count(False) > 20
    assert outcomes[-1]


def test_what_an_earlier_save_left_stops_none_if_it_cannot_go(tmp_path, monkeypatch, caplog):
    checkpoints = saved(tmp_path, [1])

    def busy(path):
        raise OSError(errno.EBUSY, "Device or resource busy", str(path))

    monkeypatch.setattr(checkpoint.files, "remove_drafts", busy)
    assert checkpoints.save(2, *state_of(2))
    assert "cannot be removed: Device or resource busy" in caplog.text
    assert_holds(restore(tmp_path), 2)


def test_three_failures_in_a_row_end_the_run_and_a_success_counts_anew(tmp_path, monkeypatch):
    checkpoints = saved(tmp_path, [1])
    for epoch in (2, 3):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            assert not checkpoints.save(epoch, *state_of(epoch))
    assert checkpoints.save(2, *state_of(2))
    monkeypatch.setattr(os, "fsync", full)
    assert not checkpoints.save(3, *state_of(3))
    assert not checkpoints.save(4, *state_of(4))
    with pytest.raises(EnvironmentFault, match=r"3 checkpoints in a row.*quota"):
        checkpoints.save(5, *state_of(5))
    assert_holds(restore(tmp_path), 2)


def test_a_failure_before_a_write_leaves_a_checkpoint_of_the_same_epoch(tmp_path, monkeypatch):
    checkpoints = saved(tmp_path, [1])

    def forbidden(path, mode=0o777):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "mkdir", forbidden)
    assert not checkpoints.save(1, *state_of(1))
    assert_holds(restore(tmp_path), 1)


# --- weights --------------------------------------------------------------------------------


def test_a_copy_of_weights_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch, caplog):
    best = tmp_path / "best"
    assert save_weights(best, {"a": np.ones(2)}, {"score": 1})
    assert save_weights(best, {"b": np.ones(2)}, {"score": 2})
    arrays, meta = load_weights(best)
    assert list(arrays) == ["b"]
    assert (meta, [path.name for path in tmp_path.iterdir()]) == ({"score": 2}, ["best"])
    saved(tmp_path, range(1, 6))  # leaves it alone
    monkeypatch.setattr(os, "fsync", full)
    assert not save_weights(best, {"a": np.ones(2)}, {"score": 3})
    assert "quota exceeded" in caplog.text
    assert load_weights(best)[1] == {"score": 2}


@pytest.mark.thorough
def test_a_kill_at_any_call_of_saving_weights_leaves_a_whole_copy(tmp_path):
    best = tmp_path / "best"
    scores = []
    for at in range(1, 1000):
        assert save_weights(best, {"a": np.ones(2)}, {"score": 1})
        code = killed_at(at, lambda: save_weights(best, {"a": np.ones(2)}, {"score": 2}))
        scores.append(load_weights(best)[1]["score"])
        if code == 0:
            break
    assert scores.count(1) > 8
    assert (scores[-1], sorted(path.name for path in tmp_path.iterdir())) == (2, ["best"])


def test_weights_of_a_folder_without_checkpoints_are_refused(tmp_path):
    with pytest.raises(UsageError, match="found none"):
        load_weights(tmp_path)
    with pytest.raises(UsageError, match="expected checkpoints"):
        load_weights(tmp_path / "missing")
    saved(tmp_path, [1])
    os.unlink(tmp_path / "epoch_000001/manifest.json")
    with pytest.raises(EnvironmentFault, match=r"manifest\.json: missing"):
        load_weights(tmp_path)
