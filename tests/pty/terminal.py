"""A terminal that a test reads: a program on a pseudo-terminal, its output fed to `pyte`.

One thread reads; `wait_for` blocks on a condition until the screen satisfies it, so nothing sleeps.
"""

import codecs
import fcntl
import os
import pty
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyte

FRAME_BEGINS, FRAME_ENDS = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: a terminal shows what is between them at once, never half of it."""
ASKS_FOR_FRAMES, HAS_FRAMES = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
"""The program's question whether the terminal can do that, and the answer."""

DEADLINE_S = 120.0
"""Generous: a loaded machine makes a test slow, never wrong."""
_CHUNK = 65536


class Terminal:
    """A running program and the screen it draws.

    Attributes:
        output: every byte it wrote.
        left_raw: whether it had left the terminal in raw mode when it ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        columns: int = 120,
        rows: int = 36,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        self._changed = threading.Condition()
        self._closed = False
        self._hung_up = False
        self.left_raw = False
        self._held = ""  # the beginning of a frame
        self._unread: list[str] | None = None
        self._status: int | None = None
        self.output = bytearray()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            # The size must be there before the program asks for it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(command[0], list(command), dict(environ))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        answered = 0  # the output before was searched for questions
        for data in self._receive():
            with self._changed:
                self.output += data
                while (asked := self.output.find(ASKS_FOR_FRAMES, answered)) >= 0:
                    os.write(self._fd, HAS_FRAMES)
                    answered = asked + len(ASKS_FOR_FRAMES)
                answered = max(answered, len(self.output) - len(ASKS_FOR_FRAMES))
                if self._unread is None:
                    self._show(decoder.decode(data))
                else:
                    self._unread.append(decoder.decode(data))
                self._closed = not data
                self._changed.notify_all()

    def _receive(self) -> Iterator[bytes]:
        """The program's output in pieces; the last one is empty."""
        while data := self._from_program(_CHUNK):
            yield data
        yield b""

    def _from_program(self, size: int) -> bytes:
        try:
            return os.read(self._fd, size)
        except OSError:  # EIO: the program closed its side
            return b""

    def _show(self, text: str) -> None:
        """Draw all complete frames."""
        self._held += text
        begin = self._held.rfind(FRAME_BEGINS)
        if begin <= self._held.rfind(FRAME_ENDS):
            begin = len(self._held)
            escape = self._held.rfind("\x1b")
            if escape >= 0 and FRAME_BEGINS.startswith(self._held[escape:]):  # half of a mark
                begin = escape
        if not text:  # the end of the output
            begin = len(self._held)
        self._stream.feed(self._held[:begin])
        self._held = self._held[begin:]

    @contextmanager
    def unread(self) -> Iterator[None]:
        """Collect output without emulating it: the terminal emulation in Python needs a whole core."""
        with self._changed:
            self._unread = []
        try:
            yield
        finally:
            with self._changed:
                self._show("".join(self._unread))
                self._unread = None

    @property
    def text(self) -> str:
        """What is on the screen, row by row."""
        with self._changed:
            return self._text()

    def _text(self, rows: range | None = None) -> str:
        buffer = self._screen.buffer
        return "\n".join(
            "".join(buffer[row][column].data for column in range(self._screen.columns))
            for row in rows or range(self._screen.lines)
        )

    def wait_for(self, *words: str) -> str:
        """Wait until every one of `words` is on the screen; the screen then."""
        return self.wait_until(lambda text: all(word in text for word in words), words)

    def wait_until(
        self, condition: Callable[[str], bool], what: object, *, rows: range | None = None
    ) -> str:
        """Wait until the screen satisfies `condition`; `what` names it in the failure.

        Args:
            rows: the only rows to look at; None takes all.
        """
        deadline = time.monotonic() + DEADLINE_S
        with self._changed:
            while True:
                text = self._text(rows)
                if condition(text):
                    return text
                left = deadline - time.monotonic()
                if self._closed or left <= 0:
                    why = "the program ended" if self._closed else "time is up"
                    raise AssertionError(f"{why} before {what!r}:\n{text}")
                self._changed.wait(left)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._fd, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size; the kernel sends SIGWINCH."""
        with self._changed:
            self._screen.resize(rows, columns)
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal(self, number: int) -> None:
        """Send a signal to the program."""
        os.kill(self.pid, number)

    def wait_stopped(self) -> None:
        """Wait until the program is stopped, as by Ctrl+Z in a shell."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def clear(self) -> None:
        """Clear the screen, as a shell does that was in the foreground meanwhile."""
        with self._changed:
            self._screen.reset()

    @property
    def is_raw(self) -> bool:
        """Whether keys reach the program one by one and are not echoed."""
        modes = termios.tcgetattr(self._fd)[3]
        return not modes & (termios.ECHO | termios.ICANON)

    def hang_up(self) -> None:
        """Close the terminal: the kernel sends SIGHUP, reads and writes of the program fail.

        The program must write once more before it notices, because the reader waits for output.
        """
        self._hung_up = True
        # The descriptor stays open, without the terminal: the reader may be about to use its number.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self._fd)
        os.close(nothing)

    def exit_status(self) -> int:
        """Wait for the end; the exit status, negative for a signal."""
        if self._status is None:
            self._reader.join(DEADLINE_S)
            assert not self._reader.is_alive(), f"the program goes on:\n{self.text}"
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            if not self._hung_up:
                self.left_raw = self.is_raw
            os.close(self._fd)
        return self._status

    def kill(self) -> int:
        """Kill the program if it still runs."""
        if self._status is None:
            self.signal(signal.SIGKILL)
        return self.exit_status()
