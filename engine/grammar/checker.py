"""`Checker`: builds a grammar in a separate process first, to test whether it can be built.

The grammar library limits most of its work, but not all, and it runs in the engine's process. A grammar is
therefore built once in a process whose memory and processor time the kernel limits, and only then in the
engine's process. The second build costs about a millisecond. The process is started for the first grammar.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from engine.api.errors import EngineUnavailable
from engine.grammar.limits import (
    BUILD_BYTES,
    BUILD_CPU_S,
    BUILD_WALL_S,
    PARSER_LIMITS,
    QUICK_CPU_S,
)

_PROGRAM = Path(__file__).with_name("check_program.py")


class Checker:
    """A checking process, started by the first `check` and restarted after it ended.

    Threads: `check` is called by one thread at a time; `close` may be called from any.
    """

    def __init__(
        self,
        *,
        cpu_s: float = BUILD_CPU_S,
        quick_cpu_s: float = QUICK_CPU_S,
        wall_s: float = BUILD_WALL_S,
        max_bytes: int = BUILD_BYTES,
    ) -> None:
        self._settings = json.dumps({"bytes": max_bytes, "parser": PARSER_LIMITS})
        self._cpu_s, self._quick_cpu_s, self._wall_s = cpu_s, quick_cpu_s, wall_s
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()  # guards the two above

    def check(self, text: str, *, quick: bool) -> str | None:
        """Build a grammar in llguidance's format; blocks for the build.

        Args:
            text: the grammar.
            quick: allow only the processor time of a first attempt.

        Returns:
            The library's error, empty if the grammar can be built; None if it exceeds a limit.

        Raises:
            EngineUnavailable: the checker is closed.
        """
        process = self._running()
        if process.stdin is None or process.stdout is None:
            raise AssertionError("the checking process has no pipes")
        cpu_s = self._quick_cpu_s if quick else self._cpu_s
        try:
            process.stdin.write(json.dumps([text, cpu_s]).encode() + b"\n")
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                answered = selector.select(self._wall_s)
            line = process.stdout.readline() if answered else b""
        except (OSError, ValueError):  # the process ended or was closed in the meantime
            line = b""
        if not line:
            self._end()
            self._check_open()
            return None
        error: str | None = json.loads(line)
        return error

    def close(self) -> None:
        """End the process; a check in progress raises. Idempotent."""
        with self._lock:
            self._closed = True
        self._end()

    def _running(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            self._check_open()
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", str(_PROGRAM), self._settings],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl+C at the terminal goes to the parent only
                )
            return self._process

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("The engine has stopped.")

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its fork, too
            process.communicate()
