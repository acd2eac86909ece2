"""Checkpoints that survive a crash at any moment.

    checkpoints/epoch_000012/{manifest.json, meta.json, parameters.actor.hidden_0.kernel.npy, ...}
    checkpoints/replay/worker_0003/epoch_000012/observation.npy

A checkpoint is written beside its place, synced, and renamed once every rank has written its
part. Replay is append-only: a save adds the new rows, and manifests list all shards they need.
"""

import contextlib
import dataclasses
import itertools
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy.typing as npt

from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.durable import DamagedError, StoredFile, sync_directory, write_array
from music_tf.storage.manifest import (
    LARGEST_MANIFEST,
    Manifest,
    Shard,
    check_name,
    parse_shards,
    read_manifest,
)
from music_tf.storage.state_folder import (
    TEMPORARY,
    Arrays,
    Sizes,
    all_damaged,
    describe,
    discard,
    file_name,
    finish_folder,
    labels,
    read_arrays,
    read_labelled,
    read_state,
    remove_temporary,
    write_state,
)

_LOGGER = logging.getLogger(__name__)
_REPLAY = "replay"
_FAILURES = 3


@dataclasses.dataclass(frozen=True)
class Restored:
    """State of a run at the end of an epoch."""

    epoch: int
    arrays: Arrays
    meta: dict[str, Any]
    shards: dict[str, list[Arrays]]
    """Replay rows of this rank's workers, in order of saving."""


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
        """Whether the list of shards is so long that the next save had better be compact."""
        # What follows is used by the root alone.
        self._lineage: list[str] | None = None
        self._chain: dict[str, tuple[Shard, ...]] = {}

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
            compact: `shards` hold all rows, not only new ones: older shards are let go.

        Returns:
            On every rank, whether the checkpoint is complete. If it is not, a warning was
            logged, older checkpoints are as they were, and the rows must be passed again.

        Raises:
            EnvironmentFault: Three saves in a row failed.
            ValueError: A name or an array cannot be stored.
        """
        label, problem = self._comm.share(self._begin(epoch) if self._comm.is_root else None)
        entries: dict[str, Any] = {}
        stored: list[StoredFile] = []
        if problem is None:
            entries, problem = self._attempt_shards(label, shards)
        if problem is None and self._comm.is_root:
            stored, problem = self._attempt_state(label, arrays, meta)
        outcomes = self._comm.collect((entries, problem))
        problem = next((found for _, found in outcomes if found), None)
        if problem is None and self._comm.is_root:
            chain = self._extended({} if compact else self._chain, outcomes)
            manifest = Manifest(epoch, stored[0], tuple(stored[1:]), chain)
            problem = self._attempt_commit(label, manifest)
        problem, self.crowded = self._comm.share((problem, self.crowded))
        return self._conclude(label, problem)

    def restore(self, workers: Sequence[str], sizes: Sizes | None = None) -> Restored | None:
        """Returns the newest checkpoint that is intact on all ranks, with the rows of `workers`.

        A damaged checkpoint is skipped with a warning; whatever came after the restored one
        is removed once the next save is complete.

        Args:
            workers: This rank's workers; all ranks together must name each worker once.
            sizes: Larger files count as damaged, before any of them is read.

        Returns:
            The state, or None if there is no checkpoint at all.

        Raises:
            EnvironmentFault: There are checkpoints, but none is intact; nothing is changed.
            UsageError: The checkpoint is one of other workers.
        """
        existing, problem = self._comm.share(self._listed() if self._comm.is_root else None)
        if problem is not None:
            raise EnvironmentFault(f"{self._directory}: cannot be read: {problem}")
        wanted = sorted(itertools.chain.from_iterable(self._comm.collect(list(workers))))
        damages: list[str] = []
        for label in reversed(existing):
            restored, manifest, damage = self._load(label, workers, sizes)
            damage = next((found for found in self._comm.collect(damage) if found), None)
            if damage is None and restored is not None and manifest is not None:
                _check_workers(label, wanted, sorted(manifest.shards))
                self._adopt(existing[: existing.index(label) + 1], manifest)
                return restored
            damages.append(f"{label}/{damage}")
            if self._comm.is_root:
                _LOGGER.warning("checkpoint skipped, it is damaged: %s", damages[-1])
        if damages:
            raise all_damaged(self._directory, damages)
        self._adopt([], None)
        return None

    def _begin(self, epoch: int) -> tuple[str, str | None]:
        """Makes room for a new checkpoint; returns its label, or "" and what went wrong."""
        label = f"epoch_{epoch:06d}"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._tidy()
            taken = {path.name for path in self._directory.iterdir()}
            taken.update(path.name for path in self._shard_folders())
            if self._lineage is None:
                self._lineage = labels(taken)
            revisions = (f"{label}_{number}" for number in itertools.count(1))
            label = next(name for name in itertools.chain([label], revisions) if name not in taken)
            self._temporary(label).mkdir()
        except OSError as error:
            return "", describe(error)
        return label, None

    def _attempt_shards(
        self, label: str, shards: Mapping[str, Mapping[str, npt.NDArray[Any]]]
    ) -> tuple[dict[str, Any], str | None]:
        """Writes this rank's replay rows; returns their entries and what went wrong."""
        entries: dict[str, Any] = {}
        try:
            for worker, rows in shards.items():
                entries[worker] = []
                if rows:
                    files = self._write_shard(label, worker, rows)
                    entries[worker].append([dataclasses.asdict(stored) for stored in files])
        except OSError as error:
            return entries, describe(error)
        return entries, None

    def _write_shard(
        self, label: str, worker: str, rows: Mapping[str, npt.NDArray[Any]]
    ) -> list[StoredFile]:
        folder = PurePosixPath(_REPLAY, check_name(worker), label)
        (self._directory / folder).mkdir(parents=True)
        files = [
            write_array(name, self._directory, f"{folder}/{file_name(name)}", array)
            for name, array in rows.items()
        ]
        for parent in (folder, *folder.parents[:2]):
            sync_directory(self._directory / parent)
        return files

    def _attempt_state(
        self, label: str, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]
    ) -> tuple[list[StoredFile], str | None]:
        """Writes shared state; returns the entries, meta first, and what went wrong."""
        try:
            return write_state(self._temporary(label), arrays, meta), None
        except OSError as error:
            return [], describe(error)

    def _attempt_commit(self, label: str, manifest: Manifest) -> str | None:
        """Puts a complete checkpoint in its place; returns what went wrong."""
        try:
            size = finish_folder(self._temporary(label), manifest)
            if size > LARGEST_MANIFEST:
                return f"its list of files takes {size} bytes; fewer --workers make it shorter"
            os.rename(self._temporary(label), self._directory / label)
            sync_directory(self._directory)
        except OSError as error:
            return describe(error)
        self.crowded = size > LARGEST_MANIFEST // 2
        self._chain = dict(manifest.shards)
        self._lineage = [*(self._lineage or []), label][-self._keep :]
        return None

    def _conclude(self, label: str, problem: str | None) -> bool:
        """Cleans up after a save on the root while others wait; every rank counts failures."""
        if self._comm.is_root:
            with contextlib.suppress(OSError):
                if problem is None:
                    self._remove_all_but(self._lineage or [])
                elif label:
                    self._remove_failed(label)
        self._comm.barrier()
        if problem is None:
            self._failures = 0
            return True
        self._failures += 1
        if self._failures >= _FAILURES:
            raise EnvironmentFault(
                f"{self._failures} checkpoints in a row could not be saved: {problem}\n"
                f"free space or mend {self._directory}, then continue with --resume"
            )
        if self._comm.is_root:
            _LOGGER.warning("checkpoint not saved, older ones are kept: %s", problem)
        return False

    def _extended(
        self, chain: Mapping[str, tuple[Shard, ...]], outcomes: Iterable[tuple[Any, Any]]
    ) -> dict[str, tuple[Shard, ...]]:
        """Returns the shards of all workers with those that the ranks have just written."""
        extended = dict(chain)
        for entries, _ in outcomes:
            for worker, added in parse_shards(entries).items():
                extended[worker] = extended.get(worker, ()) + added
        return extended

    def _listed(self) -> tuple[list[str], str | None]:
        try:
            return labels(path.name for path in self._directory.iterdir()), None
        except FileNotFoundError:
            return [], None
        except OSError as error:
            return [], describe(error)

    def _load(
        self, label: str, workers: Sequence[str], sizes: Sizes | None
    ) -> tuple[Restored | None, Manifest | None, str | None]:
        """Returns a checkpoint and its manifest, or what is wrong with it."""
        try:
            manifest = read_labelled(self._directory / label)
            arrays, meta = read_state(self._directory / label, manifest, sizes)
            largest = sizes.rows if sizes else None
            shards = {
                worker: [
                    read_arrays(self._directory, shard, largest)
                    for shard in manifest.shards.get(worker, ())
                ]
                for worker in workers
            }
        except DamagedError as damage:
            return None, None, str(damage)
        return Restored(manifest.epoch, arrays, meta, shards), manifest, None

    def _adopt(self, lineage: list[str], manifest: Manifest | None) -> None:
        """Continues from a restored checkpoint."""
        self._lineage = lineage
        self._chain = dict(manifest.shards) if manifest else {}
        if self._comm.is_root:
            self._tidy()
        self._comm.barrier()

    def _tidy(self) -> None:
        """Removes what earlier saves left behind; what cannot be removed stops no save."""
        try:
            remove_temporary(self._directory)
        except OSError as error:
            _LOGGER.warning("left behind, since it cannot be removed: %s", describe(error))

    def _temporary(self, label: str) -> Path:
        return self._directory / f"{label}{TEMPORARY}new"

    def _shard_folders(self) -> list[Path]:
        return [path for path in self._directory.glob(f"{_REPLAY}/*/*") if path.is_dir()]

    def _remove_all_but(self, kept: Sequence[str]) -> None:
        """Removes other checkpoints, and shards that no kept manifest lists."""
        for name in labels(path.name for path in self._directory.iterdir()):
            if name not in kept:
                discard(self._directory / name)
        try:
            manifests = [read_manifest(self._directory / label) for label in kept]
        except DamagedError:
            return  # what that checkpoint needs is unknown until it is let go
        files = (shard[0] for manifest in manifests for shard in _shards(manifest))
        listed = {(self._directory / stored.path).parent for stored in files}
        for folder in self._shard_folders():
            if folder not in listed:
                shutil.rmtree(folder)

    def _remove_failed(self, label: str) -> None:
        if (self._directory / label).exists():
            discard(self._directory / label)
        remove_temporary(self._directory)
        for folder in self._shard_folders():
            if folder.name == label:
                shutil.rmtree(folder)


def _check_workers(label: str, wanted: Sequence[str], found: Sequence[str]) -> None:
    if list(wanted) != list(found):
        raise UsageError(
            f"{label} holds replay of {len(found)} workers, this run has {len(wanted)}\n"
            "start it with the same --workers; the number of ranks may change"
        )


def _shards(manifest: Manifest) -> Iterator[Shard]:
    return (shard for shards in manifest.shards.values() for shard in shards)
