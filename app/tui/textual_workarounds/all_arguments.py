"""Actions with `*arguments` get all of them.

Textual 8.2.8 passes an action as many arguments as its signature has parameters, and counts `*arguments`
as one.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Action = TypeVar("Action", bound=Callable[..., Any])
_MANY = 100


def takes_all_arguments(action: Action) -> Action:
    """Decorator of an action whose last parameter is `*arguments`."""
    action._param_count = _MANY  # type: ignore[attr-defined]  # where Textual keeps its count
    return action
