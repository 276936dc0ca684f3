"""`ProcessMemory`: the memory that a process holds, as the kernel counts it. Linux only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

FIELDS = {"peak": "VmHWM", "resident": "VmRSS", "anonymous": "RssAnon", "file": "RssFile"}


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Bytes of one process, its interpreter and libraries included.

    Pages of mapped files count as far as they are resident, since the process reads its weights from
    them; the kernel may drop them under pressure and read them again. Pages shared with other processes
    count in full.

    Attributes:
        peak: highest resident bytes so far.
        resident: resident bytes: anonymous, mapped from files, and shared memory.
        anonymous: of these, anonymous ones.
        file: of these, mapped from files.
    """

    peak: int
    resident: int
    anonymous: int
    file: int

    @classmethod
    def of(cls, pid: int) -> Self:
        """Read it from /proc.

        Raises:
            OSError: there is no such process.
        """
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        return cls(**{name: int(status[key].split()[0]) * 1024 for name, key in FIELDS.items()})
