"""Leaving the mouse to the terminal, and taking it back."""

import pytest

from app.tui.textual_workarounds.browser_driver import BrowserDriver
from app.tui.textual_workarounds.terminal_driver import TerminalDriver

ANY_EVENT = "\x1b[?1003"


def made(kind, written, *, mouse):
    driver = kind.__new__(kind)
    driver._mouse, driver._in_band_window_resize = mouse, kind is TerminalDriver
    driver.write = written.append
    driver.flush = lambda: None
    return driver


@pytest.mark.parametrize("kind", [TerminalDriver, BrowserDriver])
def test_reporting_is_switched_and_stays_so_when_the_process_continues(kind):
    written: list[str] = []
    driver = made(kind, written, mouse=True)
    driver.report_mouse(False)
    assert f"{ANY_EVENT}l" in written
    written.clear()
    driver._enable_mouse_support()  # as after a suspension
    assert written == []
    driver.report_mouse(True)
    assert f"{ANY_EVENT}h" in written


def test_positions_are_in_pixels_again_if_the_parser_expects_them():
    written: list[str] = []
    made(TerminalDriver, written, mouse=False).report_mouse(True)
    assert written[-1] == "\x1b[?1016h"


async def test_the_command_says_what_it_takes_and_where_it_cannot_work(screen):
    async with screen() as ui:
        await ui.ask("/mouse maybe")
        assert ui.toasts[-1] == "/mouse takes on or off."
        await ui.ask("/mouse off")
        assert ui.toasts[-1] == "The mouse cannot be switched on this terminal."
