"""`FolderNames`: what is in a folder, read on threads, so that a folder that does not answer holds nobody up.

A network drive that is gone lets a read wait for minutes. At most `MAX_READS` wait at a time; further folders
are not read meanwhile. The threads are daemons: the program ends without them.
"""

import os
import threading
import time
from collections.abc import Callable

MAX_NAMES = 10_000
"""Entries of a folder that are read at most."""
MAX_READS = 4
FRESH_S = 2.0
"""Seconds after which a folder is read again when it is asked for."""
_MAX_KEPT = 16


def list_folder(folder: str) -> tuple[str, ...]:
    """The names in a folder, sorted, those of folders with a slash; none if it cannot be read. May block.

    Args:
        folder: its path; an empty one is the working folder, and `~` at its beginning the user's own.
    """
    names: list[str] = []
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            for entry in entries:
                names.append(entry.name + ("/" if entry.is_dir() else ""))
                if len(names) == MAX_NAMES:
                    break
    except (OSError, ValueError):
        pass
    return tuple(sorted(names))


class FolderNames:
    """Used by one thread, and its own.

    Args:
        on_read: called on a thread of its own whenever a folder was read.
        read: reads a folder; may block.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        on_read: Callable[[], None],
        *,
        read: Callable[[str], tuple[str, ...]] = list_folder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_read = on_read
        self._read = read
        self._clock = clock
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._reading: set[str] = set()
        self._lock = threading.Lock()  # guards the two above

    def __call__(self, folder: str) -> tuple[str, ...]:
        """The names in a folder as far as they are known; begins to read them if need be. Never blocks."""
        now = self._clock()
        with self._lock:
            at, names = self._known.get(folder, (float("-inf"), ()))
            due = now - at > FRESH_S and folder not in self._reading
            if due and len(self._reading) < MAX_READS:
                self._reading.add(folder)
                threading.Thread(
                    target=self._run, args=(folder,), name="pravaha-folder", daemon=True
                ).start()
        return names

    @property
    def reading(self) -> bool:
        """Whether a folder is being read."""
        with self._lock:
            return bool(self._reading)

    def _run(self, folder: str) -> None:
        names: tuple[str, ...] = ()
        try:
            names = self._read(folder)
        finally:
            with self._lock:
                self._reading.discard(folder)
                self._known.pop(folder, None)
                self._known[folder] = self._clock(), names
                while len(self._known) > _MAX_KEPT:
                    del self._known[next(iter(self._known))]
        self._on_read()
