"""`TerminalDriver`: Textual's driver with our parser and a loop that no input can end.

In Textual 8.2.8 a byte that is not UTF-8, or an exception in the parser, ends the app. A lone Esc is
reported only at the next of the polls every 100 ms; here when the time for the rest of an escape sequence
(`ESCDELAY`, 100 ms) is over.

Textual's handler of SIGWINCH reads the size and then reports it. The next signal may interrupt it between the
two: the new size is then reported before the old one, and the app goes on drawing for the old one. Here the
event loop handles the signal, which reports one size after the other.
"""

import asyncio
import logging
import os
import selectors
import signal
from codecs import getincrementaldecoder

from textual import events
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size

from app.tui.textual_workarounds.mouse_driver import MouseDriver
from app.tui.textual_workarounds.terminal_parser import TerminalParser

_POLL_S = 0.1
"""Interval of the checks for the end of the input, and for timeouts of pastes."""
_CHUNK = 64 * 1024

log = logging.getLogger(__name__)


class TerminalDriver(LinuxDriver, MouseDriver):
    """See the module's description."""

    def start_application_mode(self) -> None:
        """As Textual's, but for the handler of SIGWINCH. Called on the event loop, also after a stop."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, self._report_size)

    def _report_size(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self.send_message(events.Resize(size, size))

    def _enable_mouse_support(self) -> None:
        super()._enable_mouse_support()
        if self._in_band_window_resize:  # the parser has been told to expect pixels
            self._enable_mouse_pixels()

    def run_input_thread(self) -> None:
        """Read the terminal until the app ends or is suspended."""
        parser = TerminalParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                waits = parser.waits
                ready = selector.select(_POLL_S if waits is None else min(_POLL_S, waits))
                data = self._read() if ready else None
                if data == b"":
                    os.kill(os.getpid(), signal.SIGHUP)
                    return
                try:
                    if data and (text := decode(data)):
                        for event in parser.feed(text):
                            self.process_message(event)
                    for event in parser.tick():
                        self.process_message(event)
                except Exception:
                    log.exception("input from the terminal could not be parsed")
                    parser = TerminalParser(self._debug)

    def _read(self) -> bytes:
        """What was typed; empty if the terminal is gone."""
        try:
            return os.read(self.fileno, _CHUNK)
        except OSError as error:
            log.warning("the terminal cannot be read: %s", error)
            return b""
