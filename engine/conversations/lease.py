"""`WriterLease`: a lock file per process that writes conversations, to detect dead writers.

A process records its lease in the nodes that it streams into. The lease is an exclusive `flock` on a
file of that name, released by the kernel when the process dies, so detection does not depend on process
ids or clocks. Leases work on one machine: the database must be on a local disk.
"""

import fcntl
import os
from pathlib import Path

from engine.conversations.ulid import new_ulid


class WriterLease:
    """The lease of this process, held until `release` or exit.

    Args:
        folder: directory of the lease files; created if missing (mode 0700).

    Attributes:
        id: the lease, a ULID.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.id = new_ulid()
        self._path = folder / self.id
        self._fd = _lock_file(self._path)

    def release(self) -> None:
        """Release the lease. Idempotent."""
        if self._fd >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def _lock_file(path: Path) -> int:
    """Create and lock the file; returns the file descriptor that holds the lock."""
    while True:
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except FileNotFoundError:
            pass
        os.close(fd)  # another process removed the file between open and lock


def is_alive(folder: Path, lease_id: str) -> bool:
    """Whether the process with this lease is running; removes the file of a dead one."""
    path = folder / lease_id
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(fd)


def sweep(folder: Path) -> bool:
    """Remove the lease files of dead processes; True if there were any, i.e. after an unclean exit."""
    if not folder.is_dir():
        return False
    dead = [path for path in folder.iterdir() if not is_alive(folder, path.name)]
    return bool(dead)
