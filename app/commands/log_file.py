"""Log file of the interactive commands: warnings and tracebacks must not reach the terminal."""

import logging
from pathlib import Path

from app.commands.log_format import LOG_FORMAT

_LIMIT = 1024**2


def log_to_file(path: Path) -> None:
    """Send log records of level WARNING and above to a file (0600), replaced when it exceeds 1 MiB.

    If the folder is not writable, records are discarded; opening the store in it reports the error.
    """
    root = logging.getLogger()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _LIMIT:
            path.unlink()
        path.touch(mode=0o600)
    except OSError:
        root.addHandler(logging.NullHandler())
        return
    handler = logging.FileHandler(path, delay=True, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(LOG_FORMAT)
    handler.setLevel(logging.WARNING)
    root.addHandler(handler)
