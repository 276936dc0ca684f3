"""An app that shows its size, and whose terminal is resized again while the first SIGWINCH is handled."""

import fcntl
import struct
import sys
import termios
import time

from textual.app import App, ComposeResult
from textual.events import Resize
from textual.widgets import Static

from app.tui.textual_workarounds.terminal_driver import TerminalDriver

LAST = (90, 20)


class ResizedDriver(TerminalDriver):
    """Changes the size once, between reading and reporting it."""

    calls = 0

    def _get_terminal_size(self) -> tuple[int, int]:
        size = super()._get_terminal_size()
        self.calls += 1
        if self.calls == 2:  # the first is at the start
            columns, rows = LAST
            fcntl.ioctl(sys.stdin, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            time.sleep(0.1)  # a handler of the interpreter runs here
        return size


class SizeApp(App[None]):
    """Shows the last size that it was told."""

    def compose(self) -> ComposeResult:
        yield Static("no size")

    def on_resize(self, event: Resize) -> None:
        self.query_one(Static).update(f"{event.size.width} columns")


SizeApp(driver_class=ResizedDriver).run()
