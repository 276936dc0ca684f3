"""Redirects output of native code to the log, because a `printf` would corrupt the screen.

File descriptors 1 and 2 point to the log while the screen is open; Textual writes to the terminal
through duplicates of the original ones.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def native_output_to(log: Path) -> Iterator[None]:
    """Send descriptors 1 and 2 to `log` (0600) inside the context, or to /dev/null if it cannot be opened."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    before = sys.__stdout__, sys.__stderr__
    try:
        sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        sink = os.open(os.devnull, os.O_WRONLY)
    # In another encoding, the first character outside it would end Textual's writer thread.
    terminals = [
        open(fd, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for fd in saved
    ]
    sys.__stdout__, sys.__stderr__ = terminals  # type: ignore[misc]
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.close(sink)
    try:
        yield
    finally:
        for terminal in terminals:
            with suppress(OSError):  # the terminal is gone after a hang-up
                terminal.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        sys.__stdout__, sys.__stderr__ = before  # type: ignore[misc]
        for fd in saved:
            os.close(fd)
