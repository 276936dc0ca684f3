"""Detects that a client has disconnected while its answer is being computed."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from app.server.process.context import ServerContext
from app.server.process.drain import shutting_down_error

Result = TypeVar("Result")


class ClientDisconnected(Exception):
    """The client closed the connection before its answer was ready."""


async def disconnected(receive: Receive) -> None:
    """Return when the client has disconnected. Call it after the body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(
    request: Request, context: ServerContext, work: Coroutine[Any, Any, Result]
) -> Result:
    """Await `work`; cancel it when the client disconnects or the server's drain expires.

    Raises:
        ClientDisconnected: the client disconnected.
        ApiError: 503, the drain expired.
    """
    running = asyncio.create_task(work)
    gone = asyncio.create_task(disconnected(request.receive))
    expired = asyncio.create_task(context.drain.wait_expired())
    tasks = (running, gone, expired)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        if gone.done():
            context.counters.disconnected(request.scope["route"].path)
            raise ClientDisconnected
        raise shutting_down_error()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
