"""`Repeats`: the calls of one run, so that none is made twice while nothing has changed.

Two calls are one if their validated arguments, defaults included, have the same canonical JSON, however
they were spelled. A write may have changed every result, so it clears them.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from agents.tools.tool import Effect, Tool, ToolOutput

_CHANGES = frozenset({Effect.WRITE, Effect.EXECUTE})


def canonical_call(tool: Tool, arguments: Mapping[str, Any]) -> bytes:
    """The canonical form of a call.

    Raises:
        pydantic.ValidationError: the arguments do not match the tool's schema.
    """
    checked = tool.arguments.model_validate(dict(arguments)).model_dump(mode="json")
    return orjson.dumps([tool.name, checked], option=orjson.OPT_SORT_KEYS)


class Repeats:
    """Earlier calls with their results."""

    def __init__(self) -> None:
        self._results: dict[bytes, ToolOutput] = {}
        self._alone: dict[str, set[str | None]] = {}
        self._suspended: set[str] = set()

    def used(self, tool: str) -> frozenset[str | None]:
        """Values that an argument had as the only one of a call; None stands for a call without any."""
        return frozenset(self._alone.get(tool, ()))

    def take_suspended(self) -> frozenset[str]:
        """The tools whose last call was a repeat; they are left out of one step."""
        suspended = frozenset(self._suspended)
        self._suspended.clear()
        return suspended

    def earlier(self, tool: Tool, call: bytes) -> ToolOutput | None:
        """The result of the same call before, which then suspends the tool for a step; None if it is new."""
        output = self._results.get(call)
        if output is not None:
            self._suspended.add(tool.name)
        return output

    def add(
        self, tool: Tool, call: bytes, arguments: Mapping[str, Any], output: ToolOutput
    ) -> None:
        """Record a call that was made. A tool that writes or executes clears what was known before."""
        if tool.effects & _CHANGES:
            self._results.clear()
            self._alone.clear()
        self._results[call] = output
        values = list(arguments.values())
        if len(values) <= 1 and all(isinstance(value, str) for value in values):
            self._alone.setdefault(tool.name, set()).add(values[0] if values else None)
