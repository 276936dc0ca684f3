"""`FetchProgress`: progress of a long file operation, in bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["download", "unpack", "verify"]


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """One report.

    Attributes:
        stage: the operation.
        item: name of the file.
        done: bytes processed so far.
        total: total bytes; 0 if unknown.
    """

    stage: Stage
    item: str
    done: int
    total: int


ProgressCallback = Callable[[FetchProgress], None]
"""Called on the working thread, about once per MiB at most; must return immediately.

It may raise `FetchCancelled`, which ends the operation.
"""


class FetchCancelled(Exception):
    """Raised by a callback to end a download; what has arrived is kept."""


def ignore_progress(_: FetchProgress) -> None:
    """A callback that does nothing."""
