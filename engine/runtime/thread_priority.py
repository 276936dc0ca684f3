"""How the engine's threads stand beside the others of their process."""

import os
import sys
import threading

_LOWEST = 19


def lower_thread_priority(niceness: int) -> None:
    """Lower the calling thread's priority, and that of the threads it starts from now on.

    Linux alone knows priorities of threads; elsewhere nothing happens.

    Args:
        niceness: how far, as nice(1) counts. Never below what the process was started with.
    """
    if niceness <= 0 or sys.platform != "linux":
        return
    thread = threading.get_native_id()
    now = os.getpriority(os.PRIO_PROCESS, thread)
    os.setpriority(os.PRIO_PROCESS, thread, min(now + niceness, _LOWEST))
