"""`LogRing`: the newest log records of engine and app, for the log pane.

Records are sanitised when they are added; the cost of one is a few microseconds, on the thread that logs.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.text.safe_text import safe_line

CAPACITY = 2000
"""Records that are kept."""
LEVEL = logging.INFO
"""The lowest level that is kept: no text of a chat is logged above the level DEBUG."""
_LOGGERS = ("app", "engine")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One record.

    Attributes:
        number: counts the records, from 0.
        level: as in `logging`.
        time: seconds since the epoch.
        logger: name of the logger.
        text: the message and, of an exception, its last line; without control sequences.
    """

    number: int
    level: int
    time: float
    logger: str
    text: str


class LogRing(logging.Handler):
    """Keeps the last `CAPACITY` records. Any thread may log; one thread reads."""

    def __init__(self) -> None:
        super().__init__(LEVEL)
        self._entries: deque[LogEntry] = deque(maxlen=CAPACITY)
        self._count = 0
        self._guard = threading.Lock()
        self._listener: Callable[[], None] = lambda: None

    @property
    def count(self) -> int:
        """Records that were ever added."""
        return self._count

    def entries(self) -> list[LogEntry]:
        """The kept records, oldest first."""
        with self._guard:
            return list(self._entries)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every record, on the thread that logs; it must return immediately."""
        self._listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        """Add a record."""
        try:
            text = record.getMessage()
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                text = f"{text} {type(error).__name__}: {error}"
            with self._guard:
                self._entries.append(
                    LogEntry(
                        self._count,
                        record.levelno,
                        record.created,
                        safe_line(record.name),
                        safe_line(text),
                    )
                )
                self._count += 1
            self._listener()
        except Exception:
            self.handleError(record)


@contextmanager
def kept_log() -> Iterator[LogRing]:
    """A ring that gets the records of engine and app from `LEVEL` on, and all warnings."""
    ring, root = LogRing(), logging.getLogger()
    before = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(LEVEL)
    root.addHandler(ring)
    try:
        yield ring
    finally:
        root.removeHandler(ring)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
