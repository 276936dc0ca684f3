"""One TCP connection: uvicorn's protocol with a timeout for request heads and our error bodies.

uvicorn has no timeout for a request's head, so a client that sends half of one would hold a file
descriptor forever. `middleware.body_limit` has the timeout for bodies.
"""

import asyncio
from typing import Any

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.server.wire.errors import error_body

MAX_HEAD_BYTES = 16 * 1024
"""Of a request; uvicorn's own limit."""
HEAD_S = 15.0
"""Timeout of a head, from the connection or from the first byte of a further head."""


class _Http(h11.Connection):
    """h11's connection that writes the chunks of a body itself.

    Hot path: a chunk for each token of each stream. h11 takes its state machine and a generator to write
    three pieces of bytes, a tenth of the event loop's time for a token.
    """

    _is_chunked = False

    def send(self, event: Any) -> Any:  # h11 has three overloads
        """The bytes of an event of a response."""
        if self._is_chunked and type(event) is h11.Data and self.our_state is h11.SEND_BODY:
            return b"%x\r\n%b\r\n" % (len(event.data), event.data) if event.data else b""
        output = super().send(event)
        if type(event) is h11.Response:
            self._is_chunked = b"\r\ntransfer-encoding: chunked\r\n" in (output or b"").lower()
        return output


class Connection(H11Protocol):
    """An HTTP/1.1 connection that is closed if a request's head takes longer than `head_s`."""

    head_s = HEAD_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _Http(h11.SERVER, MAX_HEAD_BYTES)
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first head."""
        super().connection_made(transport)
        self._update_head_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timeout if the head is complete."""
        super().data_received(data)
        self._update_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._cancel_head_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer input that is not HTTP with an error body like all others."""
        body = orjson.dumps(error_body(400, msg, param=None, code="invalid_http"))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _update_head_timer(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._cancel_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._on_head_timeout)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
