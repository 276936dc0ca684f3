"""`PartedUploads`: files that clients upload in parts.

An upload lives in memory and its parts in a folder of their own, so that neither survives the process: a
client whose upload is unknown after a restart begins again. What is completed is a file of the catalogue.
"""

import hashlib
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from app.server.retrieval.errors import (
    BeingChanged,
    NoSuchObject,
    RetrievalError,
    TooManyUploads,
)
from app.server.retrieval.file_folder import FileFolder, PartialFile
from app.server.retrieval.records import UploadedFile
from app.server.wire.retrieval_schemas import MAX_UPLOAD_PARTS

LIFETIME_S = 3600
"""Seconds after its creation until an upload expires, as with OpenAI."""
MAX_PENDING = 64
MAX_PART_BYTES = 64 * 1024 * 1024
_COPY_BYTES = 1024 * 1024

UploadState = Literal["pending", "completed", "cancelled", "expired"]


@dataclass(frozen=True, slots=True)
class PartedUpload:
    """An upload.

    Attributes:
        id: `upload_` and 32 hexadecimal digits.
        filename: the client's name of the file.
        purpose: what it is for.
        size: how many bytes it will have.
        created_at: Unix time in seconds.
        lifetime_s: seconds after its completion until the file expires; None for never.
        state: of the upload.
        file: what it became, once it is completed.
    """

    id: str
    filename: str
    purpose: str
    size: int
    created_at: int
    lifetime_s: int | None
    state: UploadState = "pending"
    file: UploadedFile | None = None

    @property
    def expires_at(self) -> int:
        """Unix time from which on it takes no parts."""
        return self.created_at + LIFETIME_S


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an upload, whose bytes are on disk."""

    id: str
    upload_id: str
    created_at: int
    size: int
    path: Path


@dataclass(slots=True)
class _Entry:
    upload: PartedUpload
    parts: dict[str, Part] = field(default_factory=dict)
    completing: bool = False


class PartedUploads:
    """Thread-safe; `complete` blocks while it copies the parts."""

    def __init__(self, folder: FileFolder, *, clock: Callable[[], float]) -> None:
        """What a former process left in the folder is removed.

        Args:
            folder: for the parts, and for nothing else.
            clock: Unix time in seconds.
        """
        self._folder, self._clock = folder, clock
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        folder.erase_all_but(set())

    def create(
        self, *, filename: str, purpose: str, size: int, lifetime_s: int | None
    ) -> PartedUpload:
        """Begin an upload.

        Raises:
            TooManyUploads: as many are pending.
        """
        with self._lock:
            self._expire()
            pending = sum(one.upload.state == "pending" for one in self._entries.values())
            if pending >= MAX_PENDING:
                raise TooManyUploads(f"{MAX_PENDING} uploads are pending; complete or cancel one.")
            now = int(self._clock())
            upload = PartedUpload(
                f"upload_{uuid.uuid4().hex}", filename, purpose, size, now, lifetime_s
            )
            self._entries[upload.id] = _Entry(upload)
            return upload

    def begin_part(self, upload_id: str) -> PartialFile:
        """A file for the bytes of a part; `add_part` or `discard` ends it.

        Raises:
            NoSuchObject: there is no such upload.
            RetrievalError: it takes no parts.
            OutOfDisk: there is no room.
        """
        with self._lock:
            self._pending(upload_id)
        return self._folder.begin(f"part_{uuid.uuid4().hex}")

    def add_part(self, upload_id: str, data: PartialFile) -> Part:
        """Keep the bytes of a part.

        Raises:
            NoSuchObject, RetrievalError: as `begin_part`; the upload may have ended meanwhile. Or it has more
                bytes than it was to have.
            OutOfDisk: there is no room.
        """
        with self._lock:
            entry = self._pending(upload_id)
            held = sum(one.size for one in entry.parts.values())
            if held + data.size > entry.upload.size:
                raise RetrievalError(
                    f"The parts have more than the {entry.upload.size} bytes of the upload."
                )
            if len(entry.parts) >= MAX_UPLOAD_PARTS:
                raise RetrievalError(f"An upload has at most {MAX_UPLOAD_PARTS} parts.")
            path = self._folder.file(data.finish(""))
            part = Part(path.name, upload_id, int(self._clock()), data.size, path)
            entry.parts[part.id] = part
            return part

    def complete(
        self,
        upload_id: str,
        part_ids: Sequence[str],
        *,
        md5: str | None,
        begin: Callable[[], PartialFile],
        keep: Callable[[PartialFile, PartedUpload], UploadedFile],
    ) -> PartedUpload:
        """Join parts to a file.

        Args:
            upload_id: the upload.
            part_ids: its parts in the order of the file; others are left out.
            md5: the hash that the file must have, in hexadecimal digits; None checks none.
            begin: returns the file to write.
            keep: enters the written file into the catalogue.

        Raises:
            NoSuchObject: there is no such upload, or no such part of it.
            RetrievalError: it is not pending, or the parts are not what was announced. It stays pending.
            OutOfDisk: there is no room.
        """
        with self._lock:
            entry = self._pending(upload_id)
            parts = [self._part(entry, one) for one in part_ids]
            size = sum(one.size for one in parts)
            if size != entry.upload.size:
                raise RetrievalError(
                    f"The parts have {size} bytes together, the upload {entry.upload.size}."
                )
            entry.completing = True
        try:
            file = self._join(parts, md5, begin(), lambda data: keep(data, entry.upload))
        except BaseException:
            with self._lock:
                entry.completing = False
            raise
        with self._lock:
            entry.completing = False
            return self._end(entry, "completed", file)

    def cancel(self, upload_id: str) -> PartedUpload:
        """Give an upload up; its bytes are erased.

        Raises:
            NoSuchObject: there is no such upload.
            RetrievalError: it is not pending.
        """
        with self._lock:
            return self._end(self._pending(upload_id), "cancelled")

    # Within; the lock is held, but in `_join`.

    def _pending(self, upload_id: str) -> _Entry:
        self._expire()
        entry = self._entries.get(upload_id)
        if entry is None:
            raise NoSuchObject("upload", upload_id)
        if entry.completing:
            raise BeingChanged(f"The upload {upload_id!r} is being completed.")
        if entry.upload.state != "pending":
            raise RetrievalError(f"The upload {upload_id!r} is {entry.upload.state}.")
        return entry

    def _part(self, entry: _Entry, part_id: str) -> Part:
        part = entry.parts.get(part_id)
        if part is None:
            raise NoSuchObject("part", part_id, within=f"the upload {entry.upload.id!r}")
        return part

    def _join(
        self,
        parts: Sequence[Part],
        md5: str | None,
        data: PartialFile,
        keep: Callable[[PartialFile], UploadedFile],
    ) -> UploadedFile:
        # MD5 is what the API names: it finds transmission errors, and protects from nobody.
        hasher = hashlib.md5(usedforsecurity=False)
        try:
            for part in parts:
                with part.path.open("rb") as file:
                    while piece := file.read(_COPY_BYTES):
                        hasher.update(piece)
                        data.write(piece)
            if md5 is not None and hasher.hexdigest() != md5.lower():
                raise RetrievalError("The bytes of the parts do not have this MD5 hash.")
            return keep(data)
        finally:
            data.discard()

    def _end(
        self, entry: _Entry, state: UploadState, file: UploadedFile | None = None
    ) -> PartedUpload:
        entry.upload = replace(entry.upload, state=state, file=file)
        for part in entry.parts.values():
            part.path.unlink(missing_ok=True)
        entry.parts.clear()
        return entry.upload

    def _expire(self) -> None:
        """Erase what has expired; forget uploads that ended as long ago."""
        now = self._clock()
        for upload_id, entry in list(self._entries.items()):
            if entry.upload.state == "pending" and not entry.completing:
                if now >= entry.upload.expires_at:
                    self._end(entry, "expired")
            elif now >= entry.upload.expires_at + LIFETIME_S:
                del self._entries[upload_id]
