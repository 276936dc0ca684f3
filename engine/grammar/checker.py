"""`Checker`: builds a grammar in a separate process first, to test whether it can be built.

The grammar library limits most of its work, but not all: some small schemas take gigabytes or minutes,
and a crash in it would end the engine. A grammar is therefore built once in a process whose memory and
processor time the kernel limits, and only then in the engine's process. The second build costs about a
millisecond. The process is started for the first grammar.
"""

import json
import selectors
import subprocess
import sys
import threading
from pathlib import Path

from engine.grammar.limits import (
    BUILD_BYTES,
    BUILD_CPU_S,
    BUILD_WALL_S,
    PARSER_LIMITS,
)

_PROGRAM = Path(__file__).with_name("check_program.py")
TOO_COSTLY = (
    f"building it takes more than {BUILD_CPU_S} seconds or {BUILD_BYTES >> 20} MiB; make it simpler"
)


class Checker:
    """A checking process, started by the first `check` and restarted after a grammar ended it.

    Threads: `check` is called by one thread at a time; `close` may be called from any.
    """

    def __init__(
        self,
        *,
        cpu_s: int = BUILD_CPU_S,
        wall_s: float = BUILD_WALL_S,
        max_bytes: int = BUILD_BYTES,
    ) -> None:
        self._settings = json.dumps({"cpu_s": cpu_s, "bytes": max_bytes, "parser": PARSER_LIMITS})
        self._wall_s = wall_s
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()  # guards the two above

    def check(self, text: str) -> str:
        """The error of a grammar in llguidance's format; empty if it can be built. Blocks for the build."""
        process = self._running()
        if process is None or process.stdin is None or process.stdout is None:
            return "the engine is shutting down"
        try:
            process.stdin.write(json.dumps(text).encode() + b"\n")
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                answered = selector.select(self._wall_s)
            line = process.stdout.readline() if answered else b""
        except (OSError, ValueError):  # the process ended or was closed in the meantime
            line = b""
        if not line:
            self._end()
            return TOO_COSTLY
        error: str = json.loads(line)
        return error

    def close(self) -> None:
        """End the process; a check in progress returns an error. Idempotent."""
        with self._lock:
            self._closed = True
        self._end()

    def _running(self) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._closed:
                return None
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", str(_PROGRAM), self._settings],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl+C at the terminal goes to the parent only
                )
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
