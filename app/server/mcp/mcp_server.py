"""`mcp_server`: the MCP server, for every transport and both live revisions of the protocol.

The `mcp` package reads and writes the protocol; here are its handlers. A tool that cannot answer returns a
result with `isError` and a sentence, because the package withholds the text of exceptions, and the model
that called is to correct itself.
"""

import logging
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from app.server.mcp.api_client import ApiClient
from app.server.mcp.collections import known_collections
from app.server.mcp.disconnect import while_connected
from app.server.mcp.progress import Progress
from app.server.mcp.prompts import PROMPTS
from app.server.mcp.resources import (
    TEMPLATES,
    NoSuchResource,
    listed_resources,
    read_resource,
)
from app.server.mcp.tool import Output, Tool, ToolCall
from app.server.mcp.tools.catalogue import TOOLS
from app.server.mcp.user_data import UserData
from engine.api.errors import PravahaError

log = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Pravāha runs the user's own language model. `chat` asks it, `decide` gets a yes, a choice or a score "
    "with probabilities in one token, `search` finds passages in the user's documents, and `run_agent` runs "
    "agents such as code auditors."
)
_LASTING = CacheHint(ttl_ms=3_600_000, scope="public")
_MAX_COMPLETIONS = 100

Context = ServerRequestContext[Any, Any]


def mcp_server(api: ApiClient, user: UserData | None = None) -> Server[Any]:
    """The server over an API.

    Args:
        api: the API; over HTTP it is called with the credentials of each request.
        user: the user's own data; None for the clients of a server.
    """
    handlers = _Handlers(api, user)
    return Server(
        "pravaha",
        version=metadata.version("pravaha"),
        title="Pravāha",
        description="The user's own language model, with documents and agents.",
        instructions=INSTRUCTIONS,
        cache_hints={
            "tools/list": _LASTING,
            "prompts/list": _LASTING,
            "resources/templates/list": _LASTING,
        },
        get_tool_input_schema=handlers.input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
    )


class _Handlers:
    """The handlers of one server."""

    def __init__(self, api: ApiClient, user: UserData | None) -> None:
        self._api = api
        self._user = user
        # Schemas take milliseconds to make: once for all requests.
        self._listed = {tool.name: _shown(tool) for tool in TOOLS.values()}

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments, for the checks of headers."""
        tool = self._listed.get(name)
        return None if tool is None else tool.input_schema

    async def list_tools(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """All tools."""
        return types.ListToolsResult(tools=list(self._listed.values()))

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool, until its caller cancels the call or disconnects."""
        tool = TOOLS.get(params.name)
        if tool is None:
            names = ", ".join(TOOLS)
            return _failed(f"There is no tool {params.name!r:.60}; there are: {names}.")
        try:
            arguments = tool.parse(params.arguments or {})
            progress = Progress(context.session.report_progress)
            call = ToolCall(self._api_of(context), progress, self._user)
            async with progress.kept_alive():
                output = await while_connected(context.request, tool.run(call, arguments))
        except PravahaError as error:
            return _failed(str(error))
        except Exception:
            log.exception("the tool %s failed", tool.name)
            return _failed(f"{tool.name} failed; the server's log has the details.")
        if output is None:
            return _failed("The client has disconnected.")
        return _result(output)

    async def list_resources(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The resources."""
        try:
            return types.ListResourcesResult(resources=await listed_resources(self._user))
        except PravahaError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=str(error)) from error

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The templates of resources."""
        return types.ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """The contents of a resource."""
        uri = str(params.uri)
        try:
            text, kind = await read_resource(uri, self._api_of(context), self._user)
        except NoSuchResource:
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"There is no resource {uri[:200]!r}; resources/list has them.",
                data={"uri": uri},
            ) from None
        except PravahaError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=str(error)) from error
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """All prompts."""
        return types.ListPromptsResult(prompts=[one.shown() for one in PROMPTS.values()])

    async def get_prompt(
        self, _: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """The message of a prompt."""
        prompt = PROMPTS.get(params.name)
        if prompt is None:
            names = ", ".join(PROMPTS)
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"There is no prompt {params.name!r:.60}; there are: {names}.",
            )
        try:
            text = prompt.message(params.arguments or {})
        except PravahaError as error:
            raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Names that an argument of a prompt or a template can have."""
        api, begun = self._api_of(context), params.argument.value.lower()
        try:
            names = await self._names(api, params.argument.name)
        except PravahaError:
            names = []  # a completion that cannot be had is none
        fitting = [name for name in names if begun in name.lower()]
        completion = types.Completion(
            values=fitting[:_MAX_COMPLETIONS],
            total=len(fitting),
            has_more=len(fitting) > _MAX_COMPLETIONS,
        )
        return types.CompleteResult(completion=completion)

    async def _names(self, api: ApiClient, argument: str) -> list[str]:
        match argument:
            case "collection":
                return [one.name or one.id for one in await known_collections(api, self._user)]
            case "agent":
                listed = (await api.get("/v1/agents"))["data"]
                return [one["name"] for one in listed if one["kind"] == "agent"]
            case "conversation" if self._user is not None:
                return [one["id"] for one in await self._user.conversations()]
        return []

    def _api_of(self, context: Context) -> ApiClient:
        """The API as the caller: over HTTP with the caller's own key."""
        request = context.request
        return self._api if request is None else self._api.for_caller(request.headers)


def _shown(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=not tool.read_only,
            open_world_hint=not tool.read_only,
        ),
    )


def _result(output: Output) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=output.text)],
        structured_content=output.model_dump(mode="json", exclude_none=True),
    )


def _failed(reason: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=reason)], is_error=True)
