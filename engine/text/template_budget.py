"""How much a chat template may do before it is stopped."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jinja2 import TemplateError

MAX_TEXT = 16 << 20
"""Characters any one string may have, the rendered chat included."""
MAX_NODES = 200_000
"""Elements any one nested list or mapping may have, counted at every depth."""
_MAX_WORK = 1 << 28
_STEP_WORK = 256
_MAX_SECONDS = 2.0


class TemplateLimitError(TemplateError):
    """A template went over one of the limits."""


class TemplateBudget:
    """The allowance of one rendering: work, in characters made and steps done, and time."""

    __slots__ = ("_clock", "_deadline", "_left")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = _MAX_WORK
        self._clock = clock
        self._deadline = clock() + _MAX_SECONDS

    def step(self) -> None:
        """Count one turn of a loop or one call."""
        self._spend(_STEP_WORK)

    def text(self, length: int) -> None:
        """Count a string of `length` characters, before it is made."""
        if length > MAX_TEXT:
            raise TemplateLimitError(
                f"it makes a text of more than {MAX_TEXT >> 20} million characters"
            )
        self._spend(length)

    def nodes(self, count: int) -> None:
        """Count a walk over `count` elements."""
        if count > MAX_NODES:
            raise TemplateLimitError(f"it builds a value of more than {MAX_NODES:,} elements")
        self._spend(count)

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TemplateLimitError("it does more work than any chat needs")
        if self._clock() > self._deadline:
            raise TemplateLimitError(f"it takes longer than {_MAX_SECONDS:g} seconds")


_current: ContextVar[TemplateBudget] = ContextVar("template_budget")


def current_budget() -> TemplateBudget:
    """The budget of the rendering that runs on this thread."""
    return _current.get()


@contextmanager
def spending(budget: TemplateBudget) -> Iterator[None]:
    """Make `budget` the current one."""
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)
