"""Signals that end a process end the app, so that the terminal is restored."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def exit_on_signals(exit_app: Callable[[int], None]) -> None:
    """Call `exit_app` with the exit status at a signal; to be called on the running event loop."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, partial(exit_app, 128 + number))
        except (NotImplementedError, RuntimeError, ValueError):
            return  # not the main thread (tests), or not POSIX
