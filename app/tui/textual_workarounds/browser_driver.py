"""`BrowserDriver`: Textual's driver for textual-serve, with our parser and an end when the server ends.

In Textual 8.2.8 its parser sends what follows an ESC in a paste as keys (`terminal_parser`), and a process
whose server was killed goes on for ever.
"""

import logging
import os
import signal
from codecs import getincrementaldecoder
from typing import Any

from textual.app import App
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver, _ExitInput

from app.tui.textual_workarounds.mouse_driver import MouseDriver
from app.tui.textual_workarounds.terminal_parser import TerminalParser

log = logging.getLogger(__name__)


class BrowserDriver(WebDriver, MouseDriver):
    """See the module's description."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._left = False
        self._write = self._write_or_leave  # type: ignore[assignment]  # the base class calls this only

    def _write_or_leave(self, data: bytes) -> int:
        """Write to the server. If it is gone, end the app, which would try to draw for ever."""
        try:
            return 0 if self._left else os.write(self.fileno, data)
        except OSError:
            self._leave()
            return 0

    def _leave(self) -> None:
        if not self._left:
            self._left = True
            os.kill(os.getpid(), signal.SIGHUP)

    def _enable_mouse_support(self) -> None:
        if self._mouse:  # Textual's own does not ask
            super()._enable_mouse_support()

    def run_input_thread(self) -> None:
        """Read the server's packets until the app ends."""
        parser = TerminalParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        packets = ByteStream()
        try:
            for data in self._input_reader:
                for kind, payload in packets.feed(data) if data else ():
                    if kind != "D":
                        self._on_meta(kind, payload)
                        continue
                    for event in parser.feed(decode(payload)):
                        self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)
        except _ExitInput:
            return
        except Exception:
            log.exception("input from the browser could not be read")
        finally:
            self._input_reader.close()
        if not self.exit_event.is_set():
            self._leave()
