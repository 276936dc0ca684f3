"""Repaints the terminal when the process continues after it was stopped (`kill -TSTP`, then `fg`).

Textual 8.2.8 leaves the alternate screen before SIGTSTP stops the process and enters it again on SIGCONT,
but draws only what changes afterwards. After SIGSTOP, which cannot be handled, it enters application mode a
second time: two threads then read the keys, and the modes restored at the end are the raw ones.

The event loop handles the signal: a handler of the interpreter runs in the middle of whatever the main thread
does, and writes to the terminal, which waits forever where the main thread is writing. A terminal that is
closed sends SIGCONT too, so that the program did not end.
"""

import asyncio
import signal
from typing import Any

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver


def repaint_when_continued(app: App[Any]) -> None:
    """Handle SIGCONT for `app`; to be called on its event loop, without effect outside the main thread."""
    driver = app._driver
    if not isinstance(driver, LinuxDriver):
        return

    def continued() -> None:
        if not driver._must_signal_resume:  # it was stopped without SIGTSTP
            driver.suspend_application_mode()
            driver._must_signal_resume = True
        driver.resume_application_mode()

    app.app_resume_signal.subscribe(app, lambda _: app.screen.refresh())
    try:
        asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, continued)
    except (RuntimeError, ValueError):
        return  # not the main thread
