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

from music_tf import files, gate
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.types import refusal

Found = TypeVar("Found")

FORMAT = 2
MANIFEST, STATE, META = "manifest.json", "state.npz", "meta.json"
CHECKPOINTS = "checkpoints"
LARGEST_MANIFEST = 2**24
_REPLAY = "replay/*/*.npz"
_FAILURES = 3
_SHOWN = 5
_LABEL = re.compile(r"epoch_(\d{6,10})(?:_(\d{1,4}))?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LOGGER = logging.getLogger(__name__)


class Restored(NamedTuple):
    """State of a run at the end of an epoch."""

    epoch: int
    arrays: gate.Arrays
    meta: dict[str, Any]
    shards: dict[str, list[gate.Arrays]]
    """Replay rows of this rank's workers, in order of saving."""


class StoredWeights(NamedTuple):
    """An intact checkpoint without its replay."""

    folder: Path
    sha256: str
    """SHA-256 of the manifest, which holds the digests of all other files."""
    names: tuple[str, ...]
    """Names of all its arrays, read or not."""
    arrays: gate.Arrays
    meta: dict[str, Any]


class Manifest(NamedTuple):
    """All files that a checkpoint needs."""

    epoch: int
    state: gate.Entry
    meta: gate.Entry
    shards: Mapping[str, tuple[gate.Entry, ...]]
    """Replay by worker, in order of saving."""
    sha256: str

    @property
    def replay(self) -> list[str]:
        return [entry.path for entries in self.shards.values() for entry in entries]


def labels(names: Iterable[str]) -> list[str]:
    """Names of checkpoints, oldest first."""
    matches = [match for name in names if (match := _LABEL.fullmatch(name))]
    return [match[0] for match in sorted(matches, key=lambda m: (int(m[1]), int(m[2] or 0)))]


def epoch_of(name: str) -> int | None:
    label = _LABEL.fullmatch(name)
    return int(label[1]) if label else None


def read_manifest(folder: Path) -> Manifest:
    try:
        raw = files.read_at_most(folder / MANIFEST, LARGEST_MANIFEST)
        content = files.parse_json(raw)["content"]
        version = content.get("format")
        if version != FORMAT:
            raise ValueError(f"written in format {version!r}, this music_tf reads {FORMAT}")
        if seal(content) != raw:
            raise ValueError("its digest does not match its content")
        manifest = Manifest(
            epoch=content["epoch"],
            state=_entry(content["state"]),
            meta=_entry(content["meta"]),
            shards={worker: tuple(map(_entry, its)) for worker, its in content["shards"].items()},
            sha256=hashlib.sha256(raw).hexdigest(),
        )
        for worker in manifest.shards:
            gate.check_path(worker)
        if not gate.is_count(manifest.epoch) or len(set(manifest.replay)) != len(manifest.replay):
            raise ValueError("expected an epoch from 0, and each file of replay once")
    except FileNotFoundError as error:
        raise gate.DamagedError(f"{MANIFEST}: missing") from error
    except OSError as error:
        raise gate.DamagedError(f"{MANIFEST}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise gate.DamagedError(f"{MANIFEST}: not what was saved ({str(error)[:120]})") from error
    if epoch_of(folder.name) not in (None, manifest.epoch):
        raise gate.DamagedError(f"{MANIFEST}: belongs to epoch {manifest.epoch}")
    return manifest


def seal(content: Mapping[str, Any]) -> bytes:
    """Returns a manifest as JSON that also holds a digest of itself."""
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"content": {text},\n"sha256": "{digest}"}}\n'.encode()


def _entry(parts: Sequence[Any]) -> gate.Entry:
    entry = gate.Entry(*parts)
    gate.check_path(entry.path)
    if not gate.is_count(entry.size) or not _SHA256.fullmatch(entry.sha256):
        raise ValueError(f"expected path, size and sha256, got {list(entry)}")
    return entry


def _write_folder(
    folder: Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    meta: Mapping[str, Any],
    epoch: int = 0,
    shards: Mapping[str, Sequence[gate.Entry]] | None = None,
) -> int:
    """Writes state and, last of all, the manifest; returns the size of that."""
    text = json.dumps(dict(meta), indent=1, default=np.generic.item, allow_nan=False)
    content = {
        "format": FORMAT,
        "epoch": epoch,
        "state": gate.write_file(folder, STATE, arrays),
        "meta": gate.write_file(folder, META, text.encode()),
        "shards": dict(shards or {}),
    }
    manifest = gate.write_file(folder, MANIFEST, seal(content))
    files.sync_directory(folder)
    return manifest.size


def discard(folder: Path) -> None:
    """Removes a checkpoint so that a crash cannot leave half of it under its name."""
    gone = folder.with_name(f"{folder.name}{files.DRAFT}old")
    os.rename(folder, gone)
    shutil.rmtree(gone)


def _all_damaged(directory: Path, damages: Sequence[str]) -> EnvironmentFault:
    shown = "\n".join(damages[:_SHOWN])
    return EnvironmentFault(
        f"{directory}: every one of {len(damages)} checkpoints is damaged:\n{shown}\n"
        "nothing was changed: put back a copy of the files, or start a new run in another --run-dir"
    )


# --- all checkpoints of a run -----------------------------------------------------------------


class Checkpoints:
    """The checkpoints of a run; every rank calls each method at the same time."""

    def __init__(self, directory: Path, comm: Communicator, keep: int = 3) -> None:
        self._directory = directory
        self._comm = comm
        self._keep = keep
        self._failures = 0
        self.crowded = False
        """Whether the list of files is so long that the next save should be compact."""
        # What follows is used by the root alone.
        self._lineage: list[str] | None = None
        self._chain: Mapping[str, tuple[gate.Entry, ...]] = {}

    @property
    def newest(self) -> Path:
        return self._directory / (self._lineage or [""])[-1]

    def save(
        self,
        epoch: int,  # epochs done, from 0
        arrays: Mapping[str, npt.NDArray[Any]],  # of all ranks, by name; the root's are written
        shards: Mapping[str, Mapping[str, npt.NDArray[Any]]],  # rows since the last complete save
        meta: Mapping[str, Any],  # JSON values; the root's are written
        compact: bool = False,  # `shards` hold all rows, so older files are removed
    ) -> bool:
        """Saves a checkpoint, then removes those no longer kept; tells ranks if it is complete."""
        root = self._comm.is_root
        label, problem = self._comm.broadcast_object(
            _tried(lambda: self._begin(epoch)) if root else None
        )
        written: dict[str, list[gate.Entry]] | None = None
        if problem is None:
            written, problem = _tried(lambda: self._write_rows(label, shards))
        outcomes = self._comm.allgather((written, problem))
        problem = next((fault for _, fault in outcomes if fault), None)
        if problem is None and root:
            added = {worker: new for rows, _ in outcomes for worker, new in rows.items()}
            older = {} if compact else self._chain
            chain = {w: (*older.get(w, ()), *added.get(w, ())) for w in {**older, **added}}
            _, problem = _tried(lambda: self._commit(label, epoch, arrays, meta, chain))
        problem, self.crowded = self._comm.broadcast_object((problem, self.crowded))
        if root:
            self._clean(label, failed=problem is not None)
        self._comm.barrier()
        self._failures = 0 if problem is None else self._failures + 1
        if self._failures >= _FAILURES:
            raise EnvironmentFault(
                f"{self._failures} checkpoints in a row could not be saved: {problem}\n"
                f"free space or mend {self._directory}, then continue with --resume"
            )
        if problem is not None and root:
            _LOGGER.warning("checkpoint not saved, older ones are kept: %s", problem)
        return problem is None

    def restore(
        self,
        workers: Sequence[str],
        expected: gate.ExpectedState | None = None,
        replay: bool = True,
    ) -> Restored | None:
        """Returns the newest checkpoint that is intact on all ranks, with the rows of `workers`."""
        listed = _tried(self._existing) if self._comm.is_root else None
        existing, problem = self._comm.broadcast_object(listed)
        if problem is not None:
            raise EnvironmentFault(f"{self._directory}: cannot be read: {problem}")
        wanted = sorted(itertools.chain.from_iterable(self._comm.allgather(list(workers))))
        damages: list[str] = []
        for label in reversed(existing):
            restored, manifest, faults = self._read(label, workers if replay else (), expected)
            outcomes = zip(*self._comm.allgather(faults), strict=True)
            damage, misfit = (next(filter(None, texts), None) for texts in outcomes)
            if damage is not None:
                damages.append(f"{label}/{damage}")
                if self._comm.is_root:
                    _LOGGER.warning("checkpoint skipped, it is damaged: %s", damages[-1])
                continue
            if misfit is not None or manifest is None:
                raise UsageError(misfit)
            if sorted(manifest.shards) != wanted:
                raise UsageError(
                    f"{label} holds replay of {len(manifest.shards)} workers, this run has "
                    f"{len(wanted)}\n"
                    "start it with the same --workers; the number of ranks may change"
                )
            self._lineage = existing[: existing.index(label) + 1]
            self._chain = manifest.shards
            break
        else:
            if damages:
                raise _all_damaged(self._directory, damages)
            restored, self._lineage, self._chain = None, [], {}
        if self._comm.is_root:
            self._tidy()
        self._comm.barrier()
        return restored

    def _begin(self, epoch: int) -> str:
        """Creates the draft folder of a new checkpoint and returns its label."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._tidy()
        names = {path.name for path in self._directory.iterdir()}
        names.update(path.stem for path in self._directory.glob(_REPLAY))
        if self._lineage is None:
            self._lineage = labels(names)
        first = f"epoch_{epoch:06d}"
        revisions = (f"{first}_{number}" for number in itertools.count(1))
        label = next(name for name in itertools.chain([first], revisions) if name not in names)
        self._temporary(label).mkdir()
        return label

    def _write_rows(
        self, label: str, shards: Mapping[str, Mapping[str, npt.NDArray[Any]]]
    ) -> dict[str, list[gate.Entry]]:
        entries: dict[str, list[gate.Entry]] = {}
        for worker, rows in shards.items():
            gate.check_path(worker)
            entries[worker] = []
            if rows:
                path = f"replay/{worker}/{label}.npz"
                folder = (self._directory / path).parent
                folder.mkdir(parents=True, exist_ok=True)
                entries[worker].append(gate.write_file(self._directory, path, rows))
                for parent in (folder, folder.parent, self._directory):
                    files.sync_directory(parent)
        return entries

    def _commit(
        self,
        label: str,
        epoch: int,
        arrays: Mapping[str, npt.NDArray[Any]],
        meta: Mapping[str, Any],
        chain: Mapping[str, tuple[gate.Entry, ...]],
    ) -> None:
        """Writes shared state and renames the complete checkpoint to its label."""
        size = _write_folder(self._temporary(label), arrays, meta, epoch, chain)
        if size > LARGEST_MANIFEST:
            raise OSError(f"its list of files takes {size} bytes; fewer --workers make it shorter")
        os.rename(self._temporary(label), self._directory / label)
        files.sync_directory(self._directory)
        self.crowded = size > LARGEST_MANIFEST // 2
        self._chain = chain
        self._lineage = [*(self._lineage or []), label][-self._keep :]

    def _clean(self, label: str, failed: bool) -> None:
        """Removes the files of a failed save, else those that no kept checkpoint needs."""
        with contextlib.suppress(OSError, gate.DamagedError):
            kept = self._lineage or []
            for other in self._existing():
                if (other == label) if failed else (other not in kept):
                    discard(self._directory / other)
            files.remove_drafts(self._directory)
            needed: set[str] = set()
            for other in () if failed else kept:
                needed.update(read_manifest(self._directory / other).replay)
            for path in self._directory.glob(_REPLAY):
                path_of_rows = str(path.relative_to(self._directory))
                if (path.stem == label) if failed else (path_of_rows not in needed):
                    path.unlink()

    def _read(
        self, label: str, workers: Sequence[str], expected: gate.ExpectedState | None
    ) -> tuple[Restored | None, Manifest | None, tuple[str | None, str | None]]:
        """Returns a checkpoint and its manifest, then the texts of a damage and of a refusal."""
        folder = self._directory / label
        shared, rows, environment = expected or (None, None, None)
        run = self._directory.parent
        try:
            manifest = read_manifest(folder)
            meta = gate.read_object(folder, manifest.meta)
            if environment and (text := refusal(gate.declared_in(meta), environment, str(run))):
                return None, None, (None, text)
            arrays, _ = gate.read_arrays(folder, manifest.state, shared)
            shards = {
                worker: [
                    gate.read_arrays(self._directory, entry, rows, rows=True)[0]
                    for entry in manifest.shards.get(worker, ())
                ]
                for worker in workers
            }
        except gate.DamagedError as damage:
            return None, None, (str(damage), None)
        except ValueError as misfit:
            epoch = epoch_of(label)
            text = f"{run}: the checkpoint of epoch {epoch} does not fit config.json\n{misfit}"
            return None, None, (None, text)
        return Restored(manifest.epoch, arrays, meta, shards), manifest, (None, None)

    def _existing(self) -> list[str]:
        try:
            return labels(path.name for path in self._directory.iterdir())
        except FileNotFoundError:
            return []

    def _temporary(self, label: str) -> Path:
        return self._directory / f"{label}{files.DRAFT}new"

    def _tidy(self) -> None:
        try:
            files.remove_drafts(self._directory)
        except OSError as error:
            _LOGGER.warning("left behind, since it cannot be removed: %s", files.describe(error))


def _tried(action: Callable[[], Found]) -> tuple[Any, str | None]:
    """Runs an action; returns its result and the text of an `OSError`, if any."""
    try:
        return action(), None
    except OSError as error:
        return "", files.describe(error)


# --- weights alone ----------------------------------------------------------------------------


def save_weights(
    directory: Path, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]
) -> bool:
    """Replaces a copy that holds weights only, on one rank; False after a warning if it is kept."""
    temporary = directory.with_name(f"{directory.name}{files.DRAFT}new")
    replaced = directory.with_name(f"{directory.name}{files.REPLACED}")
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
        files.sync_directory(directory.parent)
        if replaced.exists():
            shutil.rmtree(replaced)
    except OSError as error:
        _LOGGER.warning("weights not saved: %s", files.describe(error))
        return False
    return True


def weights_of(run: Path) -> Path:
    """Returns the folder with the checkpoints of a run; a folder of weights is its own."""
    return run if os.path.isfile(run / MANIFEST) else run / CHECKPOINTS


def newest_weights(
    directory: Path,  # all checkpoints of a run, one checkpoint, or a copy of weights
    expected: gate.Expected | gate.ExpectedFrom | None = None,  # nothing else is read into memory
    wanted: tuple[str, ...] = ("",),  # prefixes of the names of arrays to read
) -> StoredWeights:
    """Returns the newest intact checkpoint, without its replay."""
    try:
        candidates = list(_candidates(directory))
    except OSError as error:
        raise UsageError(f"{directory}: expected checkpoints: {files.describe(error)}") from error
    damages: list[str] = []
    for folder in candidates:
        try:
            manifest = read_manifest(folder)
            arrays, names = gate.read_arrays(folder, manifest.state, expected, wanted)
            meta = gate.read_object(folder, manifest.meta)
            return StoredWeights(folder, manifest.sha256, names, arrays, meta)
        except gate.DamagedError as damage:
            if not os.path.lexists(folder):  # a running job has just removed it
                return newest_weights(directory, expected, wanted)
            damages.append(f"{folder.name}/{damage}")
            _LOGGER.warning("checkpoint skipped, it is damaged: %s", damages[-1])
    if damages:
        raise _all_damaged(directory, damages)
    raise UsageError(f"{directory}: expected checkpoints, found none; has the run saved yet?")


def _candidates(directory: Path) -> Iterator[Path]:
    replaced = directory.with_name(f"{directory.name}{files.REPLACED}")
    if (directory / MANIFEST).exists():
        yield directory
    elif not directory.exists() and replaced.exists():
        yield from _candidates(replaced)
    else:
        for label in reversed(labels(path.name for path in directory.iterdir())):
            yield directory / label
