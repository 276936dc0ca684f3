"""Errors of the store; each message is one sentence that a user can act on."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.api.errors import PravahaError


class RetrievalStoreError(PravahaError):
    """The database of collections cannot be used."""


class LibraryBusy(RetrievalStoreError):
    """Another process, or another thread of this one, writes to the library."""


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of full disks into `RetrievalStoreError`.

    Raises:
        RetrievalStoreError: the block raised one of them.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise RetrievalStoreError(_sentence(error, path)) from error
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise RetrievalStoreError(_disk_full(path)) from error


def is_disk_full(error: OSError) -> bool:
    """Whether there is no room left, or no more of it allowed."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _sentence(error: sqlite3.Error, path: Path) -> str:
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE")):
        return _disk_full(path)
    return f"The database {path} cannot be used: {error}."


def _disk_full(path: Path) -> str:
    return (
        f"There is no room left on the disk of {path.parent}: everything up to the last saved file is "
        "kept; free some space and run the command again."
    )
