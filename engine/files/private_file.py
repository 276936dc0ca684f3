"""`create_private_file`: an empty file that only the user can read, for a database."""

import os
from contextlib import suppress
from pathlib import Path


def create_private_file(path: Path) -> None:
    """Create an empty file with mode 0600 if there is none.

    An existing one is not opened: closing a descriptor of a database drops the locks that connections of this
    process have on it, and another process could then delete the log in use (SQLite, "How To Corrupt An
    SQLite Database File", 2.2).

    Raises:
        OSError: it cannot be created.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
