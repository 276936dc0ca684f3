"""`/v1/agents/tools`: the tools of a chat whose answers the client generates itself, such as a screen.

The tools are open as long as the stream in which they were opened; a client that leaves stops what runs.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from agents.api.agent_spec import PermissionMode
from agents.api.errors import AgentError
from agents.tool_loop.values import LoopEvent, ToolLoopRequest
from app.server.calls.agent_service import agent_service
from app.server.calls.event_stream import EventStream
from app.server.calls.extra_fields import check_extra_fields
from app.server.middleware.auth import requires
from app.server.middleware.disconnect import while_connected
from app.server.process.context import server_context
from app.server.wire import sse
from app.server.wire.answers.agents import AgentTools, AgentToolsEvent, CallResults
from app.server.wire.described import answers
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.tool_schemas import AgentToolsRequest, ToolCallsRequest
from engine.api.tools import OpenTools, Tool, ToolCall, ToolRound

router = APIRouter(route_class=JsonRoute)


@router.get("/v1/agents/tools")
@requires("agents")
@answers(AgentTools)
async def choices(request: Request, mode: PermissionMode = "ask") -> Response:
    """The tools and MCP servers that can be opened, and why a tool cannot be used here."""
    service = agent_service(request)
    found = await asyncio.to_thread(service.tool_choices, mode, None)
    tools = [
        {"name": name, "description": description, "refused": found.refused.get(name)}
        for name, description in found.tools.items()
    ]
    return json_response({"object": "list", "data": tools, "mcp_servers": list(found.mcp_servers)})


@router.post("/v1/agents/tools")
@requires("agents")
@answers(None, events=AgentToolsEvent)
async def open_tools(body: AgentToolsRequest, request: Request) -> Response:
    """Open tools. A stream of events: `opened`, `offered`, then what the calls do; it ends with the tools."""
    context, service = server_context(request), agent_service(request)
    check_extra_fields(request, body)
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[LoopEvent] = asyncio.Queue()

    def report(event: LoopEvent) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    try:
        opened = await asyncio.to_thread(service.open_tools, _loop_request(body), report)
    except AgentError as error:
        raise bad_request(str(error)) from error
    name = f"tools-{uuid.uuid4().hex}"
    resources = AsyncExitStack()
    resources.callback(opened.close)
    context.open_tools[name] = opened
    resources.callback(context.open_tools.pop, name, None)
    return EventStream(_events(name, opened, events), context, resources)


@router.post("/v1/agents/tools/{name}/calls")
@requires("agents")
@answers(CallResults)
async def call(name: str, body: ToolCallsRequest, request: Request) -> Response:
    """Make the calls of one answer; the results, once all are made."""
    context = server_context(request)
    check_extra_fields(request, body)
    opened = context.open_tools.get(name)
    if opened is None:
        raise ApiError(404, f"There are no tools {name!r:.60}: they were closed.", code="no_tools")
    calls = [ToolCall(one.id, one.name, one.arguments) for one in body.calls]
    made = await while_connected(request, context, _made(opened, calls))
    return json_response(_round_fields(made))


async def _made(opened: OpenTools, calls: list[ToolCall]) -> ToolRound:
    try:
        return await asyncio.wrap_future(opened.act(calls))
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise ApiError(410, "The tools were closed.", code="no_tools") from error


async def _events(
    name: str, opened: OpenTools, events: "asyncio.Queue[LoopEvent]"
) -> AsyncGenerator[bytes, None]:
    yield sse.event({"type": "opened", "id": name})
    offered = asyncio.wrap_future(opened.offered())
    told = False
    taking: asyncio.Future[LoopEvent] = asyncio.ensure_future(events.get())
    try:
        while True:
            waited = (taking,) if told else (taking, offered)
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                yield sse.event(taking.result().fields())
                taking = asyncio.ensure_future(events.get())
            elif offered.done():
                try:
                    tools = offered.result()
                except AgentError as error:
                    yield sse.event({"type": "refused", "reason": str(error)})
                    return
                told = True
                yield sse.event({"type": "offered", "tools": [_tool_fields(one) for one in tools]})
    finally:
        taking.cancel()


def _loop_request(body: AgentToolsRequest) -> ToolLoopRequest:
    return ToolLoopRequest(
        None if body.tools is None else tuple(body.tools),
        tuple(body.mcp_servers),
        max_rounds=body.max_rounds,
        mode=body.mode,
        conversation=body.conversation,
        text=body.text,
        has_results=body.has_results,
    )


def _tool_fields(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def _round_fields(made: ToolRound) -> dict[str, Any]:
    results = [
        {
            "call_id": one.call.id,
            "text": one.text,
            "state": one.state.value,
            "seconds": one.seconds,
        }
        for one in made.results
    ]
    return {"object": "agent.tool_round", "results": results, "may_call": made.may_call}
