"""`AsgiTransport`: HTTP requests to an application in this process, without a socket.

httpx has one that hands out an answer when it is complete. This one streams, and closing an answer early
cancels the application's work on it, as a client that disconnects does.
"""

import asyncio
from collections.abc import AsyncIterator

import anyio
import httpx
from starlette.types import ASGIApp, Message, Scope

_CHUNKS = 16
"""Chunks of an answer that the application may be ahead of its reader."""


class AsgiTransport(httpx.AsyncBaseTransport):
    """Sends requests to an ASGI application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, as soon as it has begun."""
        exchange = _Exchange(self._app, request, await request.aread())
        try:
            status, headers = await exchange.started()
        except BaseException:
            await exchange.aclose()
            raise
        return httpx.Response(status, headers=headers, stream=exchange)


class _Exchange(httpx.AsyncByteStream):
    """One request and the body of its answer."""

    def __init__(self, app: ASGIApp, request: httpx.Request, body: bytes) -> None:
        self._body: bytes | None = body
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(_CHUNKS)
        self._head: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._task = asyncio.create_task(self._run(app, _scope_of(request)))

    async def started(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers."""
        await asyncio.wait((self._head, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not self._head.done():
            self._task.result()
            raise httpx.RemoteProtocolError("The application ended without an answer.")
        return self._head.result()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk
        await self._task  # an exception after the answer had begun

    async def aclose(self) -> None:
        """Stop the application's work, if it goes on; return when it has stopped."""
        self._task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(self._task, return_exceptions=True)
        self._head.cancel()

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._receive, self._send)
        except Exception:
            await self._chunks.put(None)  # the reader gets what there is, then the exception
            raise
        await self._chunks.put(None)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.Event().wait()  # this client leaves by cancelling
        raise AssertionError("nothing sets this event")

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head.set_result((message["status"], list(message.get("headers", ()))))
        elif message.get("body"):
            await self._chunks.put(message["body"])


def _scope_of(request: httpx.Request) -> Scope:
    target = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": target.scheme,
        "path": target.path,
        "raw_path": target.raw_path.partition(b"?")[0],
        "query_string": target.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (target.host, target.port),
        "client": None,
        "state": {},
    }
