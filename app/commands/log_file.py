"""Where warnings and tracebacks go while a person looks at the terminal: to a file, never to it."""

import logging
from pathlib import Path

_LIMIT = 1024**2


def log_to_file(path: Path) -> None:
    """Send log records of level WARNING and above to a file (0600), which starts anew at 1 MiB.

    A folder that can't be written to silences the log; the
    store, which needs the folder more, says so.
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
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.setLevel(logging.WARNING)
    root.addHandler(handler)
