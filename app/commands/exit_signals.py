"""Signals that end a server on standard input and output."""

import asyncio
import os
import signal
from collections.abc import Callable


def exit_on_signals(close: Callable[[], None]) -> None:
    """End at SIGTERM and Ctrl+C, although threads wait for standard input or output.

    To be called on the running event loop.

    Args:
        close: gives back what must not outlive the process.
    """

    def leave(number: int) -> None:
        try:
            close()
        finally:
            os._exit(128 + number)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
