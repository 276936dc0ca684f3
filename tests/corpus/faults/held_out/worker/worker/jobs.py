"""Jobs and their states."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Job:
    name: str
    work: Callable[[], object]
    attempts: int = 0
    state: str = "waiting"
    result: object = None
    error: str = ""


class Fatal(Exception):
    """A failure that another attempt cannot mend."""
