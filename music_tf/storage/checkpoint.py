"""Checkpoints that survive a crash at any moment, and copies of weights.

    checkpoints/epoch_000012/{state.npz, meta.json, manifest.json}
    checkpoints/replay/worker_0003/epoch_000012.npz

A checkpoint is written beside its place, synced, and renamed once every rank has written its
part. Replay is append-only: a save adds the new rows, and a manifest lists all files that it
needs.
"""

import contextlib
import hashlib
import itertools
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.files import describe, read_at_most, sync_directory
from music_tf.storage.gate import (
    Arrays,
    DamagedError,
    Entry,
    Expected,
    ExpectedFrom,
    ExpectedState,
    check_path,
    parse_json,
    read_arrays,
    read_object,
    storable,
    write_file,
)

Found = TypeVar("Found")

FORMAT = 2
MANIFEST, STATE, META = "manifest.json", "state.npz", "meta.json"
LARGEST_MANIFEST = 2**24
_REPLAY = "replay"
_TEMPORARY = ".tmp-"
"""Marks names of what is being written or removed, and may be deleted by the next run."""
_REPLACED = ".replaced"
_FAILURES = 3
_SHOWN = 5
_LABEL = re.compile(r"epoch_(\d{6,10})(?:_(\d{1,4}))?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LOGGER = logging.getLogger(__name__)


class Restored(NamedTuple):
    """State of a run at the end of an epoch."""

    epoch: int
    arrays: Arrays
    meta: dict[str, Any]
    shards: dict[str, list[Arrays]]
    """Replay rows of this rank's workers, in order of saving."""


class StoredWeights(NamedTuple):
    """An intact checkpoint without its replay."""

    folder: Path
    sha256: str
    """Of its manifest, which holds the digests of all else."""
    names: tuple[str, ...]
    """Of all its arrays, read or not."""
    arrays: Arrays
    meta: dict[str, Any]


class Manifest(NamedTuple):
    """All files that a checkpoint needs."""

    epoch: int
    state: Entry
    meta: Entry
    shards: Mapping[str, tuple[Entry, ...]]
    """Replay by worker, in order of saving."""


def labels(names: Iterable[str]) -> list[str]:
    """Returns the names that are checkpoints', oldest first."""
    found = [match for name in names if (match := _LABEL.fullmatch(name))]
    return [match[0] for match in sorted(found, key=lambda m: (int(m[1]), int(m[2] or 0)))]


def _epoch_of(label: str) -> int | None:
    found = _LABEL.fullmatch(label)
    return int(found[1]) if found else None


def read_manifest(folder: Path) -> Manifest:
    """Reads the list of files of a checkpoint and checks that it belongs to its folder.

    Raises:
        DamagedError: It is missing, changed, or of another format.
    """
    try:
        raw = read_at_most(folder / MANIFEST, LARGEST_MANIFEST)
        manifest = _decoded(raw)
    except FileNotFoundError as error:
        raise DamagedError(f"{MANIFEST}: missing") from error
    except OSError as error:
        raise DamagedError(f"{MANIFEST}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{MANIFEST}: not what was saved ({str(error)[:120]})") from error
    if _epoch_of(folder.name) not in (None, manifest.epoch):
        raise DamagedError(f"{MANIFEST}: belongs to epoch {manifest.epoch}")
    return manifest


def _encoded(content: Mapping[str, Any]) -> bytes:
    """Returns a manifest as JSON that also holds a digest of itself."""
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"content": {text},\n"sha256": "{digest}"}}\n'.encode()


def _decoded(raw: bytes) -> Manifest:
    content = parse_json(raw)["content"]
    version = content.get("format", content.get("format_version"))
    if version != FORMAT:
        raise ValueError(f"written in format {version!r}, this music_tf reads {FORMAT}")
    if _encoded(content) != raw:
        raise ValueError("its digest does not match its content")
    if type(content["epoch"]) is not int or content["epoch"] < 0:
        raise ValueError(f"expected an epoch from 0, got {content['epoch']!r}")
    shards = {
        worker: tuple(_entry(found) for found in entries)
        for worker, entries in content["shards"].items()
    }
    for worker in shards:
        check_path(worker)
    paths = [entry.path for entries in shards.values() for entry in entries]
    if len(set(paths)) != len(paths):
        raise ValueError("a file appears twice")
    return Manifest(content["epoch"], _entry(content["state"]), _entry(content["meta"]), shards)


def _entry(found: Sequence[Any]) -> Entry:
    """Returns what a manifest says about a file after checking each part of it."""
    entry = Entry(*found)
    check_path(entry.path)
    if type(entry.size) is not int or entry.size < 0 or not _SHA256.fullmatch(entry.sha256):
        raise ValueError(f"expected path, size and sha256, got {list(entry)}")
    return entry


def _write_folder(
    folder: Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    meta: Mapping[str, Any],
    epoch: int = 0,
    shards: Mapping[str, Sequence[Entry]] | None = None,
) -> int:
    """Writes state and, last of all, the manifest; returns the size of that."""
    state = write_file(folder, STATE, storable(arrays))
    text = json.dumps(dict(meta), indent=1, default=_plain)
    about = write_file(folder, META, text.encode())
    content = {"format": FORMAT, "epoch": epoch, "state": state, "meta": about}
    manifest = write_file(folder, MANIFEST, _encoded({**content, "shards": dict(shards or {})}))
    sync_directory(folder)
    return manifest.size


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"meta: expected JSON values, got {type(value).__name__}")


def discard(folder: Path) -> None:
    """Removes a checkpoint so that a crash cannot leave half of it under its name."""
    gone = folder.with_name(f"{folder.name}{_TEMPORARY}old")
    os.rename(folder, gone)
    shutil.rmtree(gone)


def _remove_temporary(directory: Path) -> None:
    """Removes what an interrupted save left behind."""
    for path in directory.glob(f"*{_TEMPORARY}*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _all_damaged(directory: Path, damages: Sequence[str]) -> EnvironmentFault:
    shown = "\n".join(damages[:_SHOWN])
    return EnvironmentFault(
        f"{directory}: every one of {len(damages)} checkpoints is damaged:\n{shown}\n"
        "nothing was changed: put back a copy of the files, or train anew in another --run-dir"
    )


# --- all checkpoints of a run -----------------------------------------------------------------


class Checkpoints:
    """The checkpoints of a run; every rank calls each method at the same time."""

    def __init__(self, directory: Path, comm: Communicator, keep: int = 3) -> None:
        """Remembers where checkpoints lie; nothing is read or written yet.

        Args:
            directory: Where checkpoints lie, visible to every rank.
            comm: The ranks that save and restore together.
            keep: Newest checkpoints to keep, at least 1.

        Raises:
            ValueError: `keep` is below 1.
        """
        if keep < 1:
            raise ValueError(f"keep: expected at least 1, got {keep}")
        self._directory = directory
        self._comm = comm
        self._keep = keep
        self._failures = 0
        self.crowded = False
        """Whether the list of files is so long that the next save had better be compact."""
        # What follows is used by the root alone.
        self._lineage: list[str] | None = None
        self._chain: Mapping[str, tuple[Entry, ...]] = {}

    def save(
        self,
        epoch: int,
        arrays: Mapping[str, npt.NDArray[Any]],
        shards: Mapping[str, Mapping[str, npt.NDArray[Any]]],
        meta: Mapping[str, Any],
        compact: bool = False,
    ) -> bool:
        """Saves a checkpoint, then removes those that are no longer kept.

        Args:
            epoch: Epochs done, from 0.
            arrays: State that all ranks share, by name; the root's is written.
            shards: Replay rows added since the last save that returned True, by worker of this
                rank (`worker_0003`) and name. A worker without new rows has an empty mapping.
            meta: JSON values; the root's are written.
            compact: `shards` hold all rows, not only new ones: older files are let go.

        Returns:
            On every rank, whether the checkpoint is complete. If it is not, a warning was
            logged, older checkpoints are as they were, and the rows must be passed again.

        Raises:
            EnvironmentFault: Three saves in a row failed.
            ValueError: A name or an array cannot be stored.
        """
        root = self._comm.is_root
        label, problem = self._comm.share(_tried(lambda: self._begin(epoch)) if root else None)
        written: dict[str, list[Entry]] | None = None
        if problem is None:
            written, problem = _tried(lambda: self._write_rows(label, shards))
        outcomes = self._comm.collect((written, problem))
        problem = next((found for _, found in outcomes if found), None)
        if problem is None and root:
            added = {worker: new for rows, _ in outcomes for worker, new in rows.items()}
            older = {} if compact else self._chain
            chain = {w: (*older.get(w, ()), *added.get(w, ())) for w in {**older, **added}}
            _, problem = _tried(lambda: self._commit(label, epoch, arrays, meta, chain))
        problem, self.crowded = self._comm.share((problem, self.crowded))
        if root:
            with contextlib.suppress(OSError, DamagedError):
                if problem is None:
                    self._remove_all_but(self._lineage or [])
                else:
                    self._remove_failed(label)
        self._comm.barrier()
        return self._conclude(problem)

    def restore(
        self, workers: Sequence[str], expected: ExpectedState | None = None
    ) -> Restored | None:
        """Returns the newest checkpoint that is intact on all ranks, with the rows of `workers`.

        A damaged checkpoint is skipped with a warning; whatever came after the restored one
        is removed once the next save is complete.

        Args:
            workers: This rank's workers; all ranks together must name each worker once.
            expected: What the run has room for: no memory is taken for anything else.

        Returns:
            The state, or None if there is no checkpoint at all.

        Raises:
            EnvironmentFault: There are checkpoints, but none is intact; nothing is changed.
            UsageError: The checkpoint is one of another run or of other workers.
        """
        listed = _tried(self._existing) if self._comm.is_root else None
        existing, problem = self._comm.share(listed)
        if problem is not None:
            raise EnvironmentFault(f"{self._directory}: cannot be read: {problem}")
        wanted = sorted(itertools.chain.from_iterable(self._comm.collect(list(workers))))
        damages: list[str] = []
        for label in reversed(existing):
            restored, manifest, damage, misfit = self._load(label, workers, expected)
            damage = next((found for found in self._comm.collect(damage) if found), None)
            if damage is not None:
                damages.append(f"{label}/{damage}")
                if self._comm.is_root:
                    _LOGGER.warning("checkpoint skipped, it is damaged: %s", damages[-1])
                continue
            misfit = next((found for found in self._comm.collect(misfit) if found), None)
            if misfit is not None or manifest is None:
                raise UsageError(
                    f"{self._directory.parent}: the checkpoint of epoch {_epoch_of(label)} does "
                    f"not fit config.json\n{misfit}"
                )
            _check_workers(label, wanted, sorted(manifest.shards))
            self._adopt(existing[: existing.index(label) + 1], manifest.shards)
            return restored
        if damages:
            raise _all_damaged(self._directory, damages)
        self._adopt([], {})
        return None

    def _begin(self, epoch: int) -> str:
        """Makes room for a new checkpoint and returns its label."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._tidy()
        taken = {path.name for path in self._directory.iterdir()}
        taken.update(path.stem for path in self._replay_files())
        if self._lineage is None:
            self._lineage = labels(taken)
        label = f"epoch_{epoch:06d}"
        revisions = (f"{label}_{number}" for number in itertools.count(1))
        label = next(name for name in itertools.chain([label], revisions) if name not in taken)
        self._temporary(label).mkdir()
        return label

    def _write_rows(
        self, label: str, shards: Mapping[str, Mapping[str, npt.NDArray[Any]]]
    ) -> dict[str, list[Entry]]:
        """Writes this rank's replay rows."""
        entries: dict[str, list[Entry]] = {}
        for worker, rows in shards.items():
            check_path(worker)
            entries[worker] = []
            if rows:
                folder = self._directory / _REPLAY / worker
                folder.mkdir(parents=True, exist_ok=True)
                path = f"{_REPLAY}/{worker}/{label}.npz"
                entries[worker].append(write_file(self._directory, path, storable(rows)))
                for parent in (folder, folder.parent, self._directory):
                    sync_directory(parent)
        return entries

    def _commit(
        self,
        label: str,
        epoch: int,
        arrays: Mapping[str, npt.NDArray[Any]],
        meta: Mapping[str, Any],
        chain: Mapping[str, tuple[Entry, ...]],
    ) -> None:
        """Writes shared state, and puts a complete checkpoint in its place."""
        size = _write_folder(self._temporary(label), arrays, meta, epoch, chain)
        if size > LARGEST_MANIFEST:
            raise OSError(f"its list of files takes {size} bytes; fewer --workers make it shorter")
        os.rename(self._temporary(label), self._directory / label)
        sync_directory(self._directory)
        self.crowded = size > LARGEST_MANIFEST // 2
        self._chain = chain
        self._lineage = [*(self._lineage or []), label][-self._keep :]

    def _conclude(self, problem: str | None) -> bool:
        """Counts failures; returns whether there was none."""
        self._failures = self._failures + 1 if problem is not None else 0
        if self._failures >= _FAILURES:
            raise EnvironmentFault(
                f"{self._failures} checkpoints in a row could not be saved: {problem}\n"
                f"free space or mend {self._directory}, then continue with --resume"
            )
        if problem is not None and self._comm.is_root:
            _LOGGER.warning("checkpoint not saved, older ones are kept: %s", problem)
        return problem is None

    def _existing(self) -> list[str]:
        try:
            return labels(path.name for path in self._directory.iterdir())
        except FileNotFoundError:
            return []

    def _load(
        self, label: str, workers: Sequence[str], expected: ExpectedState | None
    ) -> tuple[Restored | None, Manifest | None, str | None, str | None]:
        """Returns a checkpoint and its manifest, then what is damaged and what does not fit."""
        folder = self._directory / label
        shared, rows = expected or (None, None)
        try:
            manifest = read_manifest(folder)
            arrays, _ = read_arrays(folder, manifest.state, shared)
            meta = read_object(folder, manifest.meta)
            shards = {
                worker: [
                    read_arrays(self._directory, entry, rows, rows=True)[0]
                    for entry in manifest.shards.get(worker, ())
                ]
                for worker in workers
            }
        except DamagedError as damage:
            return None, None, str(damage), None
        except ValueError as misfit:
            return None, None, None, str(misfit)
        return Restored(manifest.epoch, arrays, meta, shards), manifest, None, None

    def _adopt(self, lineage: list[str], chain: Mapping[str, tuple[Entry, ...]]) -> None:
        """Continues from a restored checkpoint."""
        self._lineage, self._chain = lineage, chain
        if self._comm.is_root:
            self._tidy()
        self._comm.barrier()

    def _tidy(self) -> None:
        """Removes what earlier saves left behind; what cannot be removed stops no save."""
        try:
            _remove_temporary(self._directory)
        except OSError as error:
            _LOGGER.warning("left behind, since it cannot be removed: %s", describe(error))

    def _temporary(self, label: str) -> Path:
        return self._directory / f"{label}{_TEMPORARY}new"

    def _replay_files(self) -> list[Path]:
        return list(self._directory.glob(f"{_REPLAY}/*/*.npz"))

    def _remove_failed(self, label: str) -> None:
        if label and (self._directory / label).exists():
            discard(self._directory / label)
        _remove_temporary(self._directory)
        for path in self._replay_files():
            if path.stem == label:
                path.unlink()

    def _remove_all_but(self, kept: Sequence[str]) -> None:
        """Removes other checkpoints, and rows that no kept manifest lists."""
        for label in self._existing():
            if label not in kept:
                discard(self._directory / label)
        manifests = [read_manifest(self._directory / label) for label in kept]
        chains = (entries for manifest in manifests for entries in manifest.shards.values())
        needed = {self._directory / entry.path for entry in itertools.chain.from_iterable(chains)}
        for path in self._replay_files():
            if path not in needed:
                path.unlink()


def _check_workers(label: str, wanted: Sequence[str], found: Sequence[str]) -> None:
    if list(wanted) != list(found):
        raise UsageError(
            f"{label} holds replay of {len(found)} workers, this run has {len(wanted)}\n"
            "start it with the same --workers; the number of ranks may change"
        )


def _tried(action: Callable[[], Found]) -> tuple[Any, str | None]:
    """Returns what an action returns, and what the disk had against it."""
    try:
        return action(), None
    except OSError as error:
        return "", describe(error)


def save_weights(
    directory: Path, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]
) -> bool:
    """Writes a copy that holds weights only, replacing an older one; for one rank.

    Args:
        directory: The copy's own directory, such as `checkpoints/best`.
        arrays: Weights by name.
        meta: JSON values.

    Returns:
        Whether it worked; if not, a warning was logged and the older copy is still there.

    Raises:
        ValueError: A name or an array cannot be stored.
    """
    temporary = directory.with_name(f"{directory.name}{_TEMPORARY}new")
    replaced = directory.with_name(f"{directory.name}{_REPLACED}")
    try:
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir(parents=True)
        _write_folder(temporary, arrays, meta)
        if directory.exists():
            if replaced.exists():
                shutil.rmtree(replaced)
            os.rename(directory, replaced)
        os.rename(temporary, directory)
        sync_directory(directory.parent)
        if replaced.exists():
            shutil.rmtree(replaced)
    except OSError as error:
        _LOGGER.warning("weights not saved: %s", describe(error))
        return False
    return True


def newest_weights(
    directory: Path,
    expected: Expected | ExpectedFrom | None = None,
    wanted: tuple[str, ...] = ("",),
) -> StoredWeights:
    """Returns the newest intact checkpoint, without its replay.

    Args:
        directory: All checkpoints of a run, or one checkpoint, or a copy of weights.
        expected: What the run has: no memory is taken for anything else.
        wanted: How names of arrays begin; others are not read.

    Raises:
        UsageError: There is no checkpoint.
        EnvironmentFault: There are checkpoints, but none is intact.
        ValueError: The newest intact one is not as expected, or not finite; the text names what.
    """
    try:
        candidates = list(_candidates(directory))
    except OSError as error:
        raise UsageError(f"{directory}: expected checkpoints: {describe(error)}") from error
    damages: list[str] = []
    for folder in candidates:
        try:
            manifest = read_manifest(folder)
            digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
            arrays, names = read_arrays(folder, manifest.state, expected, wanted)
            return StoredWeights(folder, digest, names, arrays, read_object(folder, manifest.meta))
        except (DamagedError, OSError) as damage:
            if not os.path.lexists(folder):  # the run is going, and has removed it meanwhile
                return newest_weights(directory, expected, wanted)
            damages.append(f"{folder.name}/{damage}")
            _LOGGER.warning("checkpoint skipped, it is damaged: %s", damages[-1])
    if damages:
        raise _all_damaged(directory, damages)
    raise UsageError(f"{directory}: expected checkpoints, found none; has the run saved yet?")


def _candidates(directory: Path) -> Iterator[Path]:
    """Yields folders that may hold weights, best first."""
    replaced = directory.with_name(f"{directory.name}{_REPLACED}")
    if (directory / MANIFEST).exists():
        yield directory
    elif not directory.exists() and replaced.exists():
        yield from _candidates(replaced)
    else:
        for label in reversed(labels(path.name for path in directory.iterdir())):
            yield directory / label
