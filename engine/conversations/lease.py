"""Who is alive: a lock file per process that writes conversations.

A process that streams into a node signs it with its lease. The lease is an exclusive `flock` on a
file named after it; the kernel drops the lock when the process dies, however it dies, so neither
pid reuse nor a stopped clock can make a dead writer look alive. Leases guard one machine: keep the
database on a local disk.
"""

import fcntl
import os
from pathlib import Path

from engine.conversations.ulid import new_ulid


class WriterLease:
    """This process's lease, held until `release` or death.

    Args:
        folder: where lease files live; made if missing (0700).
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.id = new_ulid()
        self._path = folder / self.id
        self._fd = _lock_file(self._path)

    def release(self) -> None:
        """Give the lease back. Idempotent."""
        if self._fd >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def _lock_file(path: Path) -> int:
    """Create and lock; the file descriptor, which holds the lock."""
    while True:
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except FileNotFoundError:
            pass
        os.close(fd)  # another process swept the file between our open and our lock


def is_alive(folder: Path, lease_id: str) -> bool:
    """Whether the process that signed with this lease still runs; a dead one's file is removed."""
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
    """Remove the files of dead writers; whether there were any (the last exit was not clean)."""
    if not folder.is_dir():
        return False
    dead = [path for path in folder.iterdir() if not is_alive(folder, path.name)]
    return bool(dead)
