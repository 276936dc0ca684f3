"""A disk without room: the kernel lets no file of a process grow beyond the database's journal."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def full_disk(database: Path, pid: int = 0) -> Iterator[None]:
    """Writes that make a file longer than the journal of `database` fail, in this process or in `pid`."""
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    size = database.with_name(database.name + "-wal").stat().st_size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
