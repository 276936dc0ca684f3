"""Scheduling priority of the engine's threads within their process."""

import os
import sys
import threading

_LOWEST = 19


def lower_thread_priority(niceness: int) -> None:
    """Lower the calling thread's priority, and that of the threads it starts from now on.

    Only Linux has per-thread niceness; elsewhere this does nothing.

    Args:
        niceness: added to the current niceness; values up to 0 change nothing.
    """
    if niceness <= 0 or sys.platform != "linux":
        return
    thread = threading.get_native_id()
    now = os.getpriority(os.PRIO_PROCESS, thread)
    os.setpriority(os.PRIO_PROCESS, thread, min(now + niceness, _LOWEST))
