"""A call whose client has disconnected is cancelled: no stream can be resumed, so nobody would get it.

The `mcp` package itself cancels the calls of 2026-07-28 and lets those of the older revisions run on.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

Result = TypeVar("Result")

_GONE = "pravaha.mcp.client_gone"
"""Name in a scope of the event that is set when the request's client has disconnected."""


async def watched(scope: Scope, receive: Receive) -> tuple[Scope, Receive] | None:
    """A request whose disconnection `while_connected` notices; None if its client left before its end.

    The `mcp` package would log such a request as an error of the server.
    """
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
    if messages[-1]["type"] == "http.disconnect":
        return None
    messages.reverse()
    gone = asyncio.Event()

    async def receive_watched() -> Message:
        message = messages.pop() if messages else await receive()
        if message["type"] == "http.disconnect":
            gone.set()
        return message

    return {**scope, _GONE: gone}, receive_watched


async def while_connected(
    request: Request | None, work: Coroutine[Any, Any, Result]
) -> Result | None:
    """The result of `work`; None if the client of the watched request has disconnected meanwhile.

    Other transports have no request, and end their calls themselves.
    """
    if request is None:
        return await work
    gone: asyncio.Event = request.scope[_GONE]
    with anyio.CancelScope() as scope:
        watcher = asyncio.create_task(_cancel_after(gone, scope))
        try:
            return await work
        finally:
            watcher.cancel()
    return None


async def _cancel_after(event: asyncio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
