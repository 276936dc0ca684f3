"""`TemplateBudget`: limits of work, size and time for rendering a chat template."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jinja2 import TemplateError

MAX_TEXT = 16 << 20
"""Maximum length of a string in characters, including the rendered chat."""
MAX_NODES = 200_000
"""Maximum number of elements of a nested list or mapping, counted at every depth."""
_MAX_WORK = 1 << 28
_STEP_WORK = 256
_MAX_SECONDS = 2.0


class TemplateLimitError(TemplateError):
    """A template exceeded a limit."""


class TemplateBudget:
    """The budget of one rendering: work (characters produced and steps executed) and time.

    All methods raise `TemplateLimitError` if a limit is exceeded.
    """

    __slots__ = ("_clock", "_deadline", "_left")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = _MAX_WORK
        self._clock = clock
        self._deadline = clock() + _MAX_SECONDS

    def step(self) -> None:
        """Charge one loop iteration or one call."""
        self._spend(_STEP_WORK)

    def text(self, length: int) -> None:
        """Charge a string of `length` characters, before it is created."""
        if length > MAX_TEXT:
            raise TemplateLimitError(
                f"it creates a string of more than {MAX_TEXT >> 20} million characters"
            )
        self._spend(length)

    def nodes(self, count: int) -> None:
        """Charge a traversal of `count` elements."""
        if count > MAX_NODES:
            raise TemplateLimitError(f"it builds a value of more than {MAX_NODES:,} elements")
        self._spend(count)

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TemplateLimitError("it exceeds the work limit")
        if self._clock() > self._deadline:
            raise TemplateLimitError(f"it takes longer than {_MAX_SECONDS:g} seconds")


_current: ContextVar[TemplateBudget] = ContextVar("template_budget")


def current_budget() -> TemplateBudget:
    """The budget of the rendering in progress on this thread."""
    return _current.get()


@contextmanager
def spending(budget: TemplateBudget) -> Iterator[None]:
    """Make `budget` the current one."""
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)
