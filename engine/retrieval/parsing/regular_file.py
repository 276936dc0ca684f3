"""`read_regular_file`: the bytes of a file, if it is one that can be read to its end."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from engine.retrieval.api.errors import Unreadable

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_regular_file(path: Path, most: int) -> bytes:
    """The file's bytes; never waits for a pipe or a device.

    Args:
        path: of the file; links are followed.
        most: the longest file.

    Raises:
        Unreadable: it is missing, no regular file, too long, or may not be read.
    """
    try:
        with open_regular_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise too_long(size, most)
            data = file.read(most + 1)
    except OSError as error:
        raise Unreadable(f"It cannot be read: {error.strerror or error}.") from error
    except ValueError as error:  # a null character in the path
        raise Unreadable(f"It cannot be read: {error}.") from error
    if len(data) > most:  # it has grown, or its file system names no sizes
        raise too_long(len(data), most)
    return data


@contextmanager
def open_regular_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, if it is a regular one.

    Raises:
        Unreadable: it is none.
        OSError: it cannot be opened.
    """
    # A device may act when it is opened, and a pipe wait for its writer.
    _refuse_unless_regular(os.stat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        _refuse_unless_regular(os.fstat(descriptor).st_mode)
        yield file


def _refuse_unless_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "no file")
        raise Unreadable(f"It is {kind}, not a regular file.")


def too_long(size: int, most: int) -> Unreadable:
    """The refusal of a file for its length."""
    return Unreadable(f"It has {size:,} bytes; files up to {most:,} bytes are read.")
