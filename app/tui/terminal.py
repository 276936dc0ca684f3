"""`Terminal`: what the screen does with its terminal beside drawing: clipboard, mouse, other programs."""

import os
from contextlib import AbstractContextManager
from typing import Any

from textual.app import App

from app.tui import clipboard
from app.tui.textual_workarounds.mouse_driver import MouseDriver
from app.tui.toasts import toast
from engine.api.errors import InvalidRequest


class Terminal:
    """The terminal of a running app."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app

    def write_sequence(self, sequence: str) -> None:
        """Write a control sequence that draws nothing."""
        driver = self._app._driver
        if driver is not None:
            driver.write(sequence)

    def copy_text(self, text: str) -> None:
        """Copy a text to the clipboard and say which way it took."""
        path = clipboard.choose_path(os.environ)
        name = clipboard.copy(text, path, self._app.copy_to_clipboard)
        toast(self._app, f"{len(text)} characters copied with {name}.")

    def report_mouse(self, on: bool) -> None:
        """Use the mouse, or leave it to the terminal's own selection of text.

        Raises:
            InvalidRequest: not on this terminal.
        """
        driver = self._app._driver
        if not isinstance(driver, MouseDriver):
            raise InvalidRequest("The mouse cannot be switched on this terminal.")
        driver.report_mouse(on)

    def suspended(self) -> AbstractContextManager[None]:
        """The context in which another program has the terminal.

        Raises:
            SuspendNotSupported: on entry, if this terminal cannot be lent.
        """
        return self._app.suspend()
