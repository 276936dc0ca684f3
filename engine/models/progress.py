"""How far a long file operation is, in bytes that were really moved."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["download", "unpack", "verify"]


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """One report.

    Attributes:
        stage: what is being done.
        item: the file it is done to.
        done: bytes so far.
        total: bytes in all; 0 if unknown.
    """

    stage: Stage
    item: str
    done: int
    total: int


ProgressCallback = Callable[[FetchProgress], None]
"""Called on the working thread, at most about once a megabyte; it must return at once."""


def ignore_progress(_: FetchProgress) -> None:
    """For callers that do not watch."""
