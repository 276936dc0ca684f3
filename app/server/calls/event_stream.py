"""A streamed response over plain ASGI: server-sent events, or another form.

Hot path: one `send` for each chunk, no validation and no task for each chunk. The response ends in
one of four ways: the events are exhausted; the client disconnects (the events are cancelled
immediately, which frees their blocks); the drain expires (an error event); an error (an error event).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.server.middleware.disconnect import disconnected
from app.server.process.context import ServerContext
from app.server.process.drain import shutting_down_error
from app.server.wire.errors import ApiError, from_engine
from app.server.wire.sse import COMMENT, error_event
from app.server.wire.stream_headers import STREAM_HEADERS


@dataclass(frozen=True, slots=True)
class StreamForm:
    """How a protocol writes what is no part of an answer.

    Attributes:
        media_type: of the response.
        keep_alive: what is sent after some time of silence.
        error: an error after the first byte.
    """

    media_type: str
    keep_alive: Callable[[], bytes]
    error: Callable[[ApiError], bytes]


SERVER_SENT_EVENTS = StreamForm("text/event-stream", lambda: COMMENT, error_event)

LAST_EVENT_S = 1.0
"""Timeout of the last event, for clients that do not read."""


class EventStream(Response):
    """Streams a generator of events until it is exhausted, the client disconnects or the drain expires.

    `resources` are closed at the end, after the generator, even if it never ran.
    """

    charset = "utf-8"

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        context: ServerContext,
        resources: AsyncExitStack,
        *,
        form: StreamForm = SERVER_SENT_EVENTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the response.

        Args:
            events: the stream.
            context: the server.
            resources: closed at the end.
            form: of what is no part of the answer.
            clock: monotonic seconds.
        """
        super().__init__(media_type=form.media_type, headers=STREAM_HEADERS)
        del self.headers["content-length"]
        self._form = form
        self._events = events
        self._context = context
        self._resources = resources
        self._clock = clock
        self._last_sent = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; returns when it has ended."""
        async with self._resources, aclosing(self._events):
            await self._send_all(scope, receive, send)

    async def _send_all(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(disconnected(receive))
        expired = asyncio.create_task(self._context.drain.wait_expired())
        quiet = asyncio.create_task(self._keep_alive(send))
        tasks = (pump, gone, expired, quiet)
        try:
            await asyncio.wait((pump, gone, expired), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if gone.done() and not gone.cancelled() and not _finished(pump):
            self._context.counters.disconnected(scope["route"].path)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EVENT_S):
                if not _finished(pump):
                    await self._send(send, self._form.error(shutting_down_error()))
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        try:
            async for chunk in self._events:
                await self._send(send, chunk)
        except Exception as error:
            await self._send(send, self._form.error(from_engine(error)))

    async def _send(self, send: Send, chunk: bytes) -> None:
        self._last_sent = self._clock()
        await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _keep_alive(self, send: Send) -> None:
        interval = self._context.config.keep_alive_s
        while True:
            silent = self._clock() - self._last_sent
            if silent >= interval:
                await self._send(send, self._form.keep_alive())
                silent = 0.0
            await asyncio.sleep(interval - silent)


def _finished(pump: "asyncio.Task[None]") -> bool:
    return pump.done() and not pump.cancelled()
