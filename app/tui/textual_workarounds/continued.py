"""Repaints the terminal when the process continues after it was stopped (`kill -TSTP`, then `fg`).

Textual 8.2.8 leaves the alternate screen before SIGTSTP stops the process and enters it again on SIGCONT,
but draws only what changes afterwards. After SIGSTOP, which cannot be handled, it enters application mode a
second time: two threads then read the keys, and the modes restored at the end are the raw ones.
"""

import signal
from typing import Any

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver


def repaint_when_continued(app: App[Any]) -> None:
    """Handle SIGCONT for `app`, which is running; without effect outside the main thread."""
    driver = app._driver
    if not isinstance(driver, LinuxDriver):
        return

    def continued(*_: object) -> None:
        if not driver._must_signal_resume:  # it was stopped without SIGTSTP
            driver.suspend_application_mode()
            driver._must_signal_resume = True
        driver.resume_application_mode()

    app.app_resume_signal.subscribe(app, lambda _: app.screen.refresh())
    try:
        signal.signal(signal.SIGCONT, continued)
    except ValueError:
        return  # not the main thread
