"""A disk without room: the kernel lets no file of a process grow beyond the database's journal."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SMALL = 8192  # less than the schema, and than the index of a journal


@contextmanager
def full_disk(database: Path, pid: int = 0) -> Iterator[None]:
    """Writes that make a file longer than the journal of `database` fail, in this process or in `pid`.

    Without a journal no file may become longer than `_SMALL` bytes.
    """
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    journal = database.with_name(database.name + "-wal")
    size = journal.stat().st_size if journal.exists() else _SMALL
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
