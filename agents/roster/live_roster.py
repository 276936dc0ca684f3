"""`LiveRoster`: a roster that follows its specification files.

A changed file holds for runs that start after the change: a run keeps the specifications it began with. The
files are looked at when a run or a list asks for the roster, which costs a `stat` for each (0.3 ms for 51).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from agents.roster.roster import Roster

_LOG = logging.getLogger(__name__)
Fingerprint = tuple[tuple[str, int, int], ...]


class LiveRoster:
    """Loads a roster again once a file of its folders was added, changed or removed. Any thread."""

    def __init__(self, load: Callable[[], Roster], folders: Sequence[Path]) -> None:
        """Load the roster.

        Args:
            load: reads all specifications.
            folders: where they are; a folder need not exist.
        """
        self._load = load
        self._folders = tuple(folders)
        self._lock = threading.Lock()
        self._seen = self._fingerprint()
        self._roster = load()

    def current(self) -> Roster:
        """The roster of the files as they are now."""
        with self._lock:
            seen = self._fingerprint()
            if seen != self._seen:
                self._roster = self._load()
                self._seen = seen
                for problem in self._roster.problems:
                    _LOG.warning("specification left out: %s", problem)
            return self._roster

    def _fingerprint(self) -> Fingerprint:
        """Name, time of the last change in nanoseconds and size of every file."""
        found = []
        for folder in self._folders:
            for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
                try:
                    status = path.stat()
                except OSError:
                    continue  # it was removed meanwhile
                found.append((str(path), status.st_mtime_ns, status.st_size))
        return tuple(found)
