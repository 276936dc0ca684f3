"""`source_identity`: identifies the contents of model files without reading them."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

SETTLE_S = 2.0
"""Age in seconds from which a file's timestamps show every later change: the coarsest granularity of
common file systems."""

_HEAD_BYTES = 64 << 10


def source_identity(
    paths: Sequence[Path], *, now_ns: Callable[[], int] = time.time_ns
) -> bytes | None:
    """32 bytes that change whenever a file changes, or is replaced; None if that cannot be promised.

    Made of each file's path, inode, size, time of modification and of status change, and a hash of its first
    64 KiB. A program that rewrites a file can restore its size and time of modification, but not its time of
    status change, which the kernel sets. If a file changed less than `SETTLE_S` ago, another change could
    have the same time, so there is no identity yet.

    Args:
        paths: the weight files of a model.
        now_ns: the current time, ns since the epoch.

    Raises:
        OSError: a file cannot be read.
    """
    facts = []
    for path in paths:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if now_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < SETTLE_S * 1e9:
                return None
            head = hashlib.blake2b(file.read(_HEAD_BYTES), digest_size=32).hexdigest()
        times = [found.st_mtime_ns, found.st_ctime_ns]
        # No device number: those of some file systems differ after a restart.
        facts.append([str(path.resolve()), found.st_ino, found.st_size, *times, head])
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=32).digest()
