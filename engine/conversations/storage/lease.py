"""Leases: lock files of a process that writes conversations, to detect dead and concurrent writers.

A lease is an exclusive `flock` on a file, released by the kernel when the process dies, so detection does
not depend on process ids or clocks. A process has one lease of its own, which it records in the nodes that
it streams into, and one for each conversation that it is writing to (`TreeLeases`). Leases work on one
machine: the database must be on a local disk.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal

from engine.conversations.ulid import new_ulid

Claim = Literal["new", "held", "elsewhere"]
"""Result of `TreeLeases.claim`: `new` if the lease was taken just now, `held` if this process already had
it, `elsewhere` if another process has it."""

log = logging.getLogger(__name__)


class Lease:
    """A locked file, held until `release` or exit.

    Args:
        folder: directory of the lease files; created if missing (mode 0700).
        name: name of the file.

    Raises:
        BlockingIOError: another process holds it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.id = name
        self._path = folder / name
        self._fd = _lock_file(self._path)

    def release(self) -> None:
        """Release the lease. Idempotent."""
        if self._fd >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


class WriterLease(Lease):
    """The lease of this process; its id is a ULID. On a full disk it has no file and protects nothing."""

    def __init__(self, folder: Path) -> None:
        name = new_ulid()
        try:
            super().__init__(folder, name)
        except OSError as error:
            log.warning("no lease for this process: %s", error)
            self.id, self._path, self._fd = name, folder / name, -1


class TreeLeases:
    """The leases of the conversations that this process is writing to. Thread-safe.

    Args:
        folder: directory of the lease files.
        committed: returns a future that is done once everything that is queued now is committed.
    """

    def __init__(self, folder: Path, committed: "Callable[[], Future[Any]]") -> None:
        self._folder = folder
        self._committed = committed
        self._lock = threading.Lock()
        self._held: dict[str, tuple[Lease | None, object]] = {}  # with the latest claim's token

    def claim(self, tree_id: str) -> Claim:
        """Take the right to add to a conversation, which one process at a time has.

        A lease whose release is pending is kept.
        """
        with self._lock:
            held = self._held.get(tree_id)
            if held is not None:
                self._held[tree_id] = (held[0], object())
                return "held"
            lease: Lease | None = None
            try:
                lease = Lease(self._folder, tree_id)
            except BlockingIOError:
                return "elsewhere"
            except OSError as error:  # a full disk: continue without protection
                log.warning("no lease for conversation %s: %s", tree_id, error)
            self._held[tree_id] = (lease, object())
            return "new"

    def release(self, tree_id: str) -> None:
        """Release the lease once all queued writes are committed, unless it is claimed again before that."""
        saved = self._committed()
        with self._lock:
            held = self._held.get(tree_id)
        if held is None:
            return

        def committed(_: object) -> None:
            with self._lock:
                if self._held.get(tree_id) is held:
                    self._release(tree_id)

        saved.add_done_callback(committed)

    def release_all(self) -> None:
        """Release all leases."""
        with self._lock:
            for tree_id in list(self._held):
                self._release(tree_id)

    def _release(self, tree_id: str) -> None:
        lease, _ = self._held.pop(tree_id)
        if lease is not None:
            lease.release()


def _lock_file(path: Path) -> int:
    """Create and lock the file; returns the file descriptor that holds the lock."""
    while True:
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except FileNotFoundError:
            pass
        except OSError:
            os.close(fd)
            raise
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
