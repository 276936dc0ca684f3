"""Noticing that a client has gone, while something else is being awaited."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from app.server.process.context import ServerContext
from app.server.process.drain import cut_off

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client closed the connection before its answer was ready."""


async def disconnected(receive: Receive) -> None:
    """Return when the client is gone. Call it once the body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(
    request: Request, context: ServerContext, work: Coroutine[Any, Any, Result]
) -> Result:
    """Await `work` for as long as anybody wants it; cancelled the moment nobody does.

    Raises:
        ClientGone: the client left.
        ApiError: 503, the server's drain ran out.
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
            raise ClientGone
        raise cut_off()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
