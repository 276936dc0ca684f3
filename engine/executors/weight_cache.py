"""`WeightCache`: packed weights on disk, so that the second load of a model maps what the first one packed.

One file for each model and way of packing (`rust_core/kernels/src/packed_file.rs` defines and checks it),
below one folder of the user's cache. The folder is bounded: before a file is written, those that were not
used for longest are removed. Files are replaced by renaming and removed by unlinking, never truncated, so
processes that have one mapped keep it. Whatever fails here is logged, and the model is loaded without,
unless it has experts and is larger than memory (`engine.executors.expert_file`).
"""

import logging
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.api.config import EngineConfig
from engine.files.cache_dir import CACHE_DIR_VARIABLE
from engine.files.file_lock import try_hold
from engine.models import source_identity

_log = logging.getLogger(__name__)

SUFFIX = ".packed"
_UNFINISHED = "*.packed.part"

MIN_BYTES = 128 << 20
"""Smallest packed weights that are kept: smaller ones are packed in less than half a second."""

SPARE_BYTES = 2 << 30
"""Disk space that is left free."""

PackedLocation = tuple[Path, bytes, str]
"""Folder, identity of the source and path of the model, as `_core.NativeExecutor` takes them."""


@dataclass(frozen=True, slots=True)
class CachedWeights:
    """A file of packed weights.

    Attributes:
        path: the file.
        source: path of the model, as far as it is known; empty if the file is damaged.
        size: bytes of the file.
        used_at: when it was written or last mapped, seconds since the epoch.
    """

    path: Path
    source: str
    size: int
    used_at: float


class WeightCache:
    """The packed weights in one folder. Safe for concurrent use by several processes."""

    def __init__(self, folder: Path, limit: int) -> None:
        """Use `folder`, which is created when something is saved; `limit` bounds its bytes."""
        self.folder = folder
        self.limit = limit

    def location(
        self, model: Path, paths: Sequence[Path], *, settled: bool = False
    ) -> PackedLocation | None:
        """Where a model's packed weights are; None if its files changed just now or cannot be read.

        Args:
            model: the model.
            paths: its weight files.
            settled: wait, once and for `SETTLE_S`, if the files changed just now.
        """
        try:
            identity = source_identity.source_identity(paths)
            if identity is None and settled:
                time.sleep(source_identity.SETTLE_S)
                identity = source_identity.source_identity(paths)
        except OSError:  # reported by the load
            return None
        return None if identity is None else (self.folder, identity, str(model))

    def entries(self) -> list[CachedWeights]:
        """All files, the one that was used last first."""
        found = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            try:
                stat = path.lstat()
            except OSError:  # removed meanwhile
                continue
            found.append(CachedWeights(path, _source(path), stat.st_size, stat.st_mtime))
        return sorted(found, key=lambda entry: entry.used_at, reverse=True)

    def entries_of(self, model: Path) -> list[CachedWeights]:
        """The files of the model at this path, also those of earlier versions of its files."""
        return [entry for entry in self.entries() if entry.source == str(model)]

    def verify(self, model: Path) -> list[str]:
        """Read the files of a model whole; remove damaged ones, and return a sentence for each."""
        from engine import _core

        problems = []
        for entry in self.entries_of(model):
            try:
                _core.verify_packed(entry.path)
            except ValueError as error:
                self._remove(entry.path)
                problems.append(f"{error} It is removed; the next load packs the weights again.")
        return problems

    def remove(self, entries: Sequence[CachedWeights]) -> int:
        """Remove files; returns the bytes of those that were. Processes that have them mapped keep them."""
        return sum(entry.size for entry in entries if self._remove(entry.path))

    def clear(self) -> int:
        """Remove all files, finished or not; returns the bytes of the finished ones."""
        removed = self.remove(self.entries())
        self._remove_unfinished()
        return removed

    def shortage(self, target: Path | None, size: int) -> str:
        """Why a file cannot be kept, and what to do; empty if it can, if need be once others are removed.

        Args:
            target: the file that will be written or replaced; None if it is not known.
            size: its bytes.
        """
        if reason := self._beyond_limit(size):
            return f"{reason}: raise it"
        if reason := self._unwritable():
            return f"{reason}: make it writable, or set another folder ({CACHE_DIR_VARIABLE})"
        if reason := self._beyond_disk(target, size):
            return f"{reason}: free disk space, or set another folder ({CACHE_DIR_VARIABLE})"
        return ""

    def make_room(self, target: Path, size: int) -> bool:
        """Remove files that were used least recently until `size` more bytes fit; False if they never will.

        Args:
            target: the file that will be written or replaced.
            size: its bytes.
        """
        self._remove_unfinished(keep=target)
        if reason := self._beyond_limit(size):
            _log.info("The packed weights could not be kept: %s.", reason)
            return False
        if reason := self._unwritable() or self._beyond_disk(target, size):
            _log.warning("The packed weights could not be kept: %s.", reason)
            return False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = self._others(target)
        used = sum(entry.size for entry in others)
        free = self._free_bytes()
        while others and (used + size > self.limit or free < size + SPARE_BYTES):
            removed = self.remove([others.pop()])
            used, free = used - removed, free + removed
        return True

    def _others(self, target: Path | None) -> list[CachedWeights]:
        return [entry for entry in self.entries() if entry.path != target]

    def _beyond_limit(self, size: int) -> str:
        if size <= self.limit:
            return ""
        return f"they take {_mib(size)}, and --weight-cache-bytes is {_mib(self.limit)}"

    def _beyond_disk(self, target: Path | None, size: int) -> str:
        free = self._free_bytes()
        if free + sum(entry.size for entry in self._others(target)) >= size + SPARE_BYTES:
            return ""
        return (
            f"they take {_mib(size)}, and {self.folder} has {_mib(free)} free, of which "
            f"{_mib(SPARE_BYTES)} stay free"
        )

    def _unwritable(self) -> str:
        folder = self._existing_folder()
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return ""
        return f"{folder} cannot be written"

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self._existing_folder()).free

    def _existing_folder(self) -> Path:
        """The folder, or the one above it in which it will be created."""
        above = (self.folder, *self.folder.parents)
        return next((folder for folder in above if folder.exists()), self.folder)

    def _remove_unfinished(self, keep: Path | None = None) -> None:
        """Remove what killed processes left; a living one holds a lock on its file."""
        for path in self.folder.glob(_UNFINISHED):
            if keep is not None and path.stem == keep.name:
                continue  # will be overwritten
            try:
                with try_hold(path) as abandoned:
                    if abandoned:
                        path.unlink()
            except OSError as error:
                _log.warning("%s cannot be removed: %s.", path, error)

    def _remove(self, path: Path) -> bool:
        try:
            path.unlink()
        except FileNotFoundError:  # by another process
            return False
        except OSError as error:
            _log.warning("%s cannot be removed: %s.", path, error)
            return False
        return True


def _mib(size: int) -> str:
    return f"{size >> 20:,} MiB"


def _source(path: Path) -> str:
    from engine import _core

    try:
        return str(_core.inspect_packed(path)["source"])
    except ValueError:
        return ""


def open_weight_cache(config: EngineConfig) -> WeightCache | None:
    """The cache that an engine's settings name; None if it is off."""
    if config.weight_cache_dir is None or config.weight_cache_bytes == 0:
        return None
    return WeightCache(config.weight_cache_dir, config.weight_cache_bytes)
