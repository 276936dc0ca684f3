"""The real `pravaha` on a pseudo-terminal whose reader may be as slow as a link.

Reuses the terminal of the tests: the output is fed to `pyte`, and the program's questions are answered when
they are read, as a terminal at the far end of the link would do.
"""

import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.pty.terminal import Terminal  # noqa: E402 - found beside this folder, not installed

CHUNK_S = 0.01
"""Seconds of the link's rate that are read at once."""


class SlowTerminal(Terminal):
    """A terminal behind a link of `bytes_per_second`.

    Args:
        buffered: whether something between program and link accepts any amount of output at once, as ssh
            does up to its window of two megabytes; else only the kernel's pseudo-terminal buffers.
    """

    def __init__(
        self,
        command: list[str],
        environ: dict[str, str],
        *,
        bytes_per_second: int,
        buffered: bool,
        columns: int = 120,
        rows: int = 36,
    ) -> None:
        self._chunk = max(1, round(bytes_per_second * CHUNK_S))
        self._buffered = buffered
        self._rate = bytes_per_second
        self._between: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        super().__init__(command, environ, columns=columns, rows=rows)

    def _receive(self) -> Iterator[bytes]:
        if self._buffered:
            threading.Thread(target=self._accept_all, daemon=True).start()
        due = time.monotonic()
        while True:
            data = self._between.get() if self._buffered else self._from_program(self._chunk)
            for begin in range(0, len(data), self._chunk):
                part = data[begin : begin + self._chunk]
                due = max(due, time.monotonic()) + len(part) / self._rate
                time.sleep(max(0.0, due - time.monotonic()))
                yield part
            if not data:
                yield b""
                return

    def _accept_all(self) -> None:
        while data := self._from_program(65536):
            self._between.put(data)
        self._between.put(b"")


@contextmanager
def fresh_environ() -> Iterator[dict[str, str]]:
    """An environment with new data and configuration folders."""
    with tempfile.TemporaryDirectory() as directory:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PRAVAHA_", "TEXTUAL")) and name not in {"NO_COLOR", "TMUX"}
        }
        yield kept | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PRAVAHA_DATA_DIR": f"{directory}/data",
            "PRAVAHA_CONFIG_DIR": f"{directory}/config",
        }


def pravaha(*options: str) -> list[str]:
    """The command line of this checkout's `pravaha`."""
    return [sys.executable, "-c", "from app.cli import main; main()", *options]
