"""The tools of a Messages request that the model is offered, in the form of chat completions.

The API's own tools (`web_search_20260318` and the like, which have a `type`) run on its servers, or have no
schema because its models know them: they are skipped, and the response names them. A deferred tool is offered
once a result of the client's search for tools refers to it, or a system message adds it; if the API's own
search for tools, which would find it, is among the skipped ones, it is offered from the start.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from app.server.wire.errors import bad_request
from app.server.wire.messages_schemas import (
    ApiTool,
    ClientTool,
    PromptFields,
    ToolChangeBlock,
    ToolReferenceBlock,
    ToolResultBlock,
)

_SEARCH = "tool_search_tool"
_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What of a request's tools the model is told.

    Attributes:
        tools: in the form of chat completions, by their index in the request.
        skipped: types of the tools that are not run here.
    """

    tools: dict[int, dict[str, Any]]
    skipped: list[str]

    def fields(self, body: PromptFields) -> dict[str, Any]:
        """The fields of a chat request.

        Raises:
            ApiError: 400, the tool that must be called is not among the tools.
        """
        choice = body.tool_choice
        if not self.tools:
            if choice is not None and choice.type in ("any", "tool") and not self.skipped:
                raise bad_request("`tool_choice` needs `tools`.", param="tool_choice")
            return {}
        fields: dict[str, Any] = {"tools": list(self.tools.values())}
        if choice is None:
            return fields
        if choice.type == "tool":
            fields["tool_choice"] = {
                "type": "function",
                "function": {"name": self._chosen(choice.name)},
            }
        else:
            fields["tool_choice"] = "required" if choice.type == "any" else choice.type
        if choice.disable_parallel_tool_use:
            fields["parallel_tool_calls"] = False
        return fields

    def _chosen(self, name: str | None) -> str:
        if name is None:
            raise bad_request(
                "`tool_choice.name` is missing: type 'tool' needs it.", param="tool_choice.name"
            )
        if all(one["function"]["name"] != name for one in self.tools.values()):
            raise bad_request(
                f"`tool_choice.name` is {name[:80]!r}, which is none of the tools that the model is offered.",
                param="tool_choice.name",
            )
        return name


def offered_tools(body: PromptFields) -> OfferedTools:
    """The tools that the model is offered."""
    given = body.tools or []
    skipped = [tool.type for tool in given if isinstance(tool, ApiTool)]
    changes = dict(_changes(body))  # the last change of each tool
    searched_elsewhere = any(kind.startswith(_SEARCH) for kind in skipped)
    tools: dict[int, dict[str, Any]] = {}
    for index, tool in enumerate(given):
        if isinstance(tool, ApiTool):
            continue
        is_first_offered = searched_elsewhere or not tool.defer_loading
        if changes.get(tool.name, is_first_offered):
            tools[index] = _chat_tool(tool)
    return OfferedTools(tools, skipped)


def _changes(body: PromptFields) -> Iterator[tuple[str, bool]]:
    """(name, whether it is offered from here on) of each tool that a message loads, adds or removes."""
    for message in body.messages:
        for block in message.content:
            if isinstance(block, ToolChangeBlock) and block.tool.name is not None:
                yield block.tool.name, block.type == "tool_addition"
            if isinstance(block, ToolResultBlock) and isinstance(block.content, list):
                for one in block.content:
                    if isinstance(one, ToolReferenceBlock):
                        yield one.tool_name, True


def _chat_tool(tool: ClientTool) -> dict[str, Any]:
    description = tool.description or ""
    if tool.input_examples:
        examples = "\n".join(orjson.dumps(one).decode() for one in tool.input_examples)
        description = f"{description}\n\nExamples of arguments:\n{examples}".strip()
    schema = _NO_ARGUMENTS if tool.input_schema is None else tool.input_schema
    function: dict[str, Any] = {"name": tool.name, "description": description, "parameters": schema}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}
