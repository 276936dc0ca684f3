"""Files that are written without waiting for the disk, in the tests' own process.

What another process reads, and what kill -9 leaves, is the same. A loss of power, which no test causes,
would not be survived. A commit waits for milliseconds, and the tests make tens of thousands.
"""

import os
import sqlite3

durable_connect = sqlite3.connect


class _Connection(sqlite3.Connection):
    """Takes `synchronous = OFF` where the program says `FULL`."""

    def execute(self, sql, *parameters):
        return super().execute(sql.replace("synchronous = FULL", "synchronous = OFF"), *parameters)


def use_undurable_disk() -> None:
    """Let SQLite and `os.fsync` wait for no disk from now on."""
    sqlite3.connect = lambda *file, **options: durable_connect(
        *file, **{"factory": _Connection} | options
    )
    os.fsync = lambda descriptor: None
