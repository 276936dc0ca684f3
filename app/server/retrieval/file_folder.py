"""`FileFolder`: the bytes of uploaded files, one regular file each, readable by the user only.

A file gets its name when it is complete and on disk, so that a file with a name is whole. All methods
block; call them off the event loop.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from app.server.retrieval.errors import OutOfDisk
from app.server.retrieval.records import UploadedFile

_PARTIAL = ".part"
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,12}")


class FileFolder:
    """The folder; it is created if it is missing."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory

    def path(self, file: UploadedFile) -> Path:
        """Where the bytes of a file are."""
        return self._directory / file.stored_as

    def file(self, name: str) -> Path:
        """The file of a name that `PartialFile.finish` returned."""
        return self._directory / name

    def begin(self, file_id: str) -> "PartialFile":
        """A new file to write.

        Raises:
            OutOfDisk: there is no room.
        """
        return PartialFile(self._directory, file_id)

    def erase(self, path: Path) -> None:
        """Remove the bytes of a file of the folder. Idempotent."""
        path.unlink(missing_ok=True)
        _sync_directory(self._directory)

    def erase_all_but(self, names: set[str]) -> None:
        """Remove what a crash left: files without one of these names. No file may be being written."""
        for entry in os.scandir(self._directory):
            if entry.name not in names:
                os.unlink(entry.path)


class PartialFile:
    """A file that is being written; `finish` or `discard` ends it."""

    def __init__(self, directory: Path, file_id: str) -> None:
        self._directory = directory
        self._file_id = file_id
        self._path = directory / (file_id + _PARTIAL)
        self.size = 0
        with _disk_errors():
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file: BinaryIO = os.fdopen(descriptor, "wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            OutOfDisk: there is no room.
        """
        view = memoryview(data)
        with _disk_errors():
            while view:  # an unbuffered write may be short
                view = view[self._file.write(view) :]
        self.size += len(data)

    def finish(self, filename: str) -> str:
        """Give the file its name and return it; the bytes are on disk then.

        Args:
            filename: the client's name; only its ending is used, which parsers look at.

        Raises:
            OutOfDisk: there is no room.
        """
        suffix = Path(filename).suffix
        name = self._file_id + (suffix.lower() if _SUFFIX.fullmatch(suffix) else "")
        with _disk_errors():
            os.fsync(self._file.fileno())
            self._file.close()
            self._path.rename(self._directory / name)
            _sync_directory(self._directory)
        return name

    def discard(self) -> None:
        """Remove what was written. Idempotent; no effect after `finish`."""
        self._file.close()
        self._path.unlink(missing_ok=True)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfDisk("The disk has no room for this file.") from error
        raise


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
