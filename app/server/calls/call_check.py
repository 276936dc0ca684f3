"""`CallCheck`: which calls of an answer have arguments that are not valid under the schemas of their tools.

A grammar enforces most of a schema, but not all schemas, and nothing of what a model writes by itself. Such
a call is passed on as it is: clients check arguments and tell their model what is wrong with them. The answer
says which calls they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from engine.api.answer_parts import AnswerPart, CallArguments, CallBegun
from engine.api.tools import Tool


class CallCheck:
    """Reads one answer."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        """Check calls of these tools."""
        self._tools = tools
        self._begun: dict[int, CallBegun] = {}
        self._arguments: dict[int, list[str]] = {}

    def add(self, parts: Sequence[AnswerPart]) -> None:
        """Take further parts of the answer."""
        for part in parts:
            if isinstance(part, CallBegun):
                self._begun[part.index] = part
            elif isinstance(part, CallArguments):
                self._arguments.setdefault(part.index, []).append(part.text)

    def invalid_calls(self) -> list[dict[str, str]]:
        """The calls whose arguments are not valid, each with what is wrong with them."""
        found = []
        for index, call in self._begun.items():
            error = self._error(call.name, "".join(self._arguments.get(index, ())))
            if error:
                found.append({"id": call.id, "name": call.name, "error": error})
        return found

    def _error(self, name: str, arguments: str) -> str:
        """What is wrong with the arguments of a call; empty if nothing is, or nothing can be said."""
        # The library is loaded by the first check.
        from engine.text.tool_calls.argument_check import Uncheckable, check_arguments

        try:
            value = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return "the arguments are no JSON: the answer was cut"
        if not isinstance(value, dict):
            return "the arguments are no object"
        tool = self._tools.get(name)
        try:
            check_arguments({} if tool is None else tool.parameters, value)
        except Uncheckable:
            return ""
        except ValueError as error:
            return str(error)
        return ""


def invalid_fields(found: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The member of a choice that names them; none if all calls are valid."""
    return {"invalid_tool_calls": [dict(one) for one in found]} if found else {}
