"""`confine`: takes from this process what a parser does not need. It cannot be undone.

A parser computes on bytes that it is given. So the process may read only Python and its libraries, which are
imported when they are needed, writes no file, opens no socket, and gains no privileges. Each layer is applied
where the kernel has it; without Landlock, files can still not be written, because their size is limited to 0.
"""

import contextlib
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from engine import _core

_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/usr/local/lib")
_MACHINE = (
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/dev/null",
    "/dev/urandom",
)
_MAX_DESCRIPTORS = 64


def confine(root: Path, memory_bytes: int) -> None:
    """Restrict this process.

    Args:
        root: the folder that contains the package `engine`.
        memory_bytes: address space.
    """
    for limit, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MAX_DESCRIPTORS),
    ):
        hard = resource.getrlimit(limit)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (most, most))
    _core.drop_privileges()
    if _core.landlock_abi():
        _core.restrict_files(readable=_readable(root), writable=(), tcp=False)
    if _core.has_seccomp_filters():
        _core.filter_system_calls(
            internet=False, unix_sockets=False, tracing=False, own_namespaces=False
        )
    with contextlib.suppress(OSError):
        os.nice(5)


def limit_cpu_time(seconds: int) -> None:
    """Let this process be killed after so many seconds of processor time from now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + seconds + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    until = until if hard == resource.RLIM_INFINITY else min(until, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def _readable(root: Path) -> Sequence[str]:
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *(one for one in sys.path if one)}
    if root.name not in ("site-packages", "dist-packages"):
        python.discard(str(root))  # a clone, of which the package is enough
    return (*python, str(root / "engine"), *_LIBRARIES, *_MACHINE)
