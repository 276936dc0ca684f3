"""`mcp_tool`: a tool of an MCP server as a `Tool` named `SERVER.TOOL`.

Its effects are execution and egress whatever its hints say: a hint may add an effect, never take one away.
What it returns is untrusted. Its description is bounded and without invisible characters.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

import orjson
from pydantic import BaseModel, RootModel, model_validator

from agents.mcp.definition import ToolDefinition
from agents.mcp.errors import McpError
from agents.mcp.results import CallResult
from agents.mcp.server import McpServer
from agents.text.plain import plain, plain_line
from agents.tools.bounded_text import bounded
from agents.tools.sensitive import taint_of
from agents.tools.tool import Effect, Taint, Tool, ToolContext, ToolOutput

MAX_DESCRIPTION_CHARS = 200
MAX_STRUCTURED_BYTES = 64_000
Call = Callable[[str, Mapping[str, Any]], Awaitable[CallResult]]
"""Calls a tool by its name at the server."""


class McpArguments(RootModel[dict[str, Any]]):
    """Arguments checked by a server's JSON schema; a subclass for each tool."""

    schema_of_server: ClassVar[Mapping[str, Any]] = {"type": "object"}

    @model_validator(mode="before")
    @classmethod
    def _check(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            # needed for calls only
            from engine.text.tool_calls.argument_check import check_arguments

            check_arguments(cls.schema_of_server, value)
        return value

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """The server's schema, as far as grammars know it."""
        from agents.mcp.schema import offered_schema

        return offered_schema(cls.schema_of_server)


def arguments_model(name: str, schema: Mapping[str, Any]) -> type[BaseModel]:
    """The model of a tool's arguments."""
    return type(
        f"Arguments of {name}",
        (McpArguments,),
        {"schema_of_server": schema, "__module__": __name__},
    )


def tool_name(server: str, tool: str) -> str:
    """The name by which a model calls it."""
    return f"{server}.{tool}"


def mcp_tool(server: McpServer, definition: ToolDefinition, call: Call) -> Tool:
    """The tool over `call`."""
    name = tool_name(server.name, definition.name)

    async def act(arguments: Any, context: ToolContext) -> ToolOutput:
        try:
            result = await call(definition.name, arguments.root)
        except McpError as error:
            return ToolOutput(str(error), failed=True, taint=frozenset({Taint.UNTRUSTED}))
        return _output(result)

    return Tool(
        name=name,
        description=plain_line(definition.description or definition.title, MAX_DESCRIPTION_CHARS),
        arguments=arguments_model(name, definition.schema),
        effects=effects_of(definition),
        call=act,
        timeout_s=server.connect_s + server.call_s + 10,
        idempotent=False,
        target=lambda arguments: orjson.dumps(arguments.root, option=orjson.OPT_SORT_KEYS).decode(),
    )


def effects_of(definition: ToolDefinition) -> frozenset[Effect]:
    """Execution and egress; writing, too, if the server says that the tool destroys something."""
    effects = {Effect.EXECUTE, Effect.EGRESS}
    if definition.annotations.get("destructiveHint") is True:
        effects.add(Effect.WRITE)
    return frozenset(effects)


def _output(result: CallResult) -> ToolOutput:
    text = plain(result.text)
    data: dict[str, Any] = {"content": bounded(text)}
    if result.structured is not None:
        encoded = orjson.dumps(result.structured)
        if len(encoded) <= MAX_STRUCTURED_BYTES:
            data["structured"] = result.structured
        text = text or plain(encoded.decode())
    return ToolOutput(
        bounded(text) or "No output.",
        data=data,
        failed=result.failed,
        taint=frozenset({Taint.UNTRUSTED}) | (taint_of(text) - {Taint.TRUSTED}),
    )
