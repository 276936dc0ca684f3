"""`KeptAlive`: answers of the `mcp` package whose silence is broken by comments.

The package itself is silent for 15 seconds: a caller that has not asked for progress, or a proxy between,
does not know whether anybody is at work. Of a call that stands for itself (2026-07-28) it sends not even the
head of the answer until there is something to say; the head is then sent here, and an answer that turns out
to be one JSON object becomes the only event.
"""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from starlette.datastructures import Headers
from starlette.types import Message, Send

from app.server.mcp.silence import silence_broken
from app.server.wire.sse import COMMENT
from app.server.wire.stream_headers import raw_stream_headers

_EVENTS = "text/event-stream"
_HEAD: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": raw_stream_headers(_EVENTS),
}


class KeptAlive:
    """Sends the answer to one request."""

    def __init__(
        self,
        send: Send,
        *,
        interval_s: float,
        may_begin: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is sent yet.

        Args:
            send: of the request.
            interval_s: silence after which a comment is sent.
            may_begin: whether the answer may be begun here; the head of others has headers of its own.
            clock: monotonic seconds.
        """
        self._send = send
        self._interval_s = interval_s
        self._may_begin = may_begin
        self._clock = clock
        self._sent_at = clock()
        self._has_comments = False  # the answer has begun, and comments may be part of it
        self._begun_here = False
        self._object = b""

    async def send(self, message: Message) -> None:
        """Send a message of the package."""
        self._sent_at = self._clock()
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self._may_begin = False
            self._has_comments = kind.startswith(_EVENTS)
            if not self._begun_here:
                await self._send(message)
            return
        is_last = not message.get("more_body", False)
        if not self._begun_here or self._has_comments:
            self._has_comments = self._has_comments and not is_last
            await self._send(message)
            return
        self._object += message.get("body", b"")
        if is_last:
            event = b"event: message\ndata: " + self._object + b"\n\n"
            await self._send({"type": "http.response.body", "body": event, "more_body": False})

    def beating(self) -> AbstractAsyncContextManager[None]:
        """Within the block, silence is broken."""
        return silence_broken(self._interval_s, self._silence, self._beat)

    def _silence(self) -> float:
        return self._clock() - self._sent_at

    async def _beat(self) -> None:
        self._sent_at = self._clock()
        if self._may_begin:
            self._may_begin, self._begun_here, self._has_comments = False, True, True
            await self._send(_HEAD)
        if self._has_comments:
            await self._send({"type": "http.response.body", "body": COMMENT, "more_body": True})
